"""The graph of nearest rows inside SPPCA: 1-NN error of maps and errors of predictions.

Some rows of each class have their label, and all rows take part in the fit. The map is judged by
the nearest labelled row of each row without a label, predictions on the same rows.

    GNOMON_DATA=folder python benchmarks/neighbours.py --repeats 10
"""

import argparse

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import supervision_sets as sets
from gnomon import SPPCA
from supervision import draw_labels

import measure

SETS = [*sets.MAIN, *sets.OTHER]
LABELS = (2, 5, 20)
SIZES = (2, 5)
# The least rows of a class without a label.
LEFT = 1.4


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--first", type=int, default=400, help="seed of the first repeat")
    options = parser.parse_args()
    if measure.data_folder() is None:
        return
    rows, values = [], []
    for name in SETS:
        X, y, _ = sets.read(name)
        for labels in LABELS:
            if np.bincount(y).min() < LEFT * (labels + 1):
                continue
            seeds = range(options.first, options.first + options.repeats)
            values.append(np.mean([one(X, y, labels, seed) for seed in seeds], axis=0))
            rows.append([f"{name}, {labels}", *(f"{value:.3f}" for value in values[-1])])
            print(rows[-1], flush=True)
    rows.append(["mean", *(f"{value:.3f}" for value in np.mean(values, axis=0))])
    heads = [
        f"{what}{end}" for what in ("q = 2", "q = 5", "predicted") for end in ("", ", nearest")
    ]
    measure.write(
        "neighbours",
        'Errors of SPPCA, and of SPPCA with links="neighbours"',
        ["set, labels a class", *heads, "used"],
        rows,
        [f"{options.repeats} draws, seeds {options.first} and following. Used: share of the fits."],
    )


def one(X, y, labels, seed):
    """Errors at two sizes and of predictions, without and with the graph; whether it is used."""
    known = draw_labels(y, labels, np.random.default_rng(seed))
    codes = np.where(known, y, -1)
    found = []
    for size in SIZES:
        models = [SPPCA(size).fit(X, codes, links=graph) for graph in (None, "neighbours")]
        found += [nearest_error(model.transform(X), y, known) for model in models]
    found += [1 - model.score(X[~known], y[~known]) for model in models]
    return [*found, models[1].links_used_]


def nearest_error(T, y, known):
    return 1 - KNeighborsClassifier(1).fit(T[known], y[known]).score(T[~known], y[~known])


if __name__ == "__main__":
    main()
