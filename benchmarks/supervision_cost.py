"""What the automatic choice of supervision costs: fits with "auto" against fits at s = 0.5.

All in one run and in turn; the least of several repeats counts, in seconds of the processor.

    python benchmarks/supervision_cost.py
"""

import time

import numpy as np
from sklearn.decomposition import TruncatedSVD

import supervision_sets as sets
from gnomon import SPPCA

import measure

SMALL = ("orl", "yale", "tumors11", "digits", "usps", "tdt2")


def main():
    shapes = ((2_000, 100, 5), (50_000, 200, 3), (200_000, 200, 2))
    rows = [synthetic(n, d, repeats) for n, d, repeats in shapes]
    if measure.data_folder() is not None:
        from load import load, tfidf

        found = load("ng20")
        rows.append(compare("ng20 TF-IDF", tfidf(found["X"]), found["y"], 5, 20, repeats=2))
        for name in SMALL:
            X, y, per_class = sets.read(name)
            rows.append(compare(name, X, y, per_class, 10, repeats=5))
    measure.write(
        "supervision_cost",
        'Processor seconds of SPPCA with supervision="auto" against one fit at s = 0.5',
        [
            *("set", "rows", "columns", "components", "s = 0.5", "auto", "auto / s = 0.5", "SVD"),
            *("auto, nearest rows", "that / s = 0.5"),
        ],
        rows,
        [
            "SVD is scikit-learn's TruncatedSVD(n_iter=5) with as many components; nearest rows: "
            'with links="neighbours" among the candidates.'
        ],
    )


def synthetic(n, d, repeats):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 10
    X = rng.standard_normal((n, d)) * np.arange(1, d + 1) ** -0.5
    X += 0.3 * rng.standard_normal((10, d))[y]
    return compare(f"dense {n:,} x {d}", X, y, 20, 10, repeats)


def compare(name, X, y, per_class, q, repeats):
    rng = np.random.default_rng(0)
    labels = np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.choice(np.flatnonzero(y == c), per_class, replace=False)
        labels[rows] = c
    seconds = measure.alternate(
        {
            "one": lambda: SPPCA(q, supervision=0.5).fit(X, labels),
            "auto": lambda: SPPCA(q).fit(X, labels),
            "near": lambda: SPPCA(q).fit(X, labels, links="neighbours"),
            "svd": lambda: TruncatedSVD(q, n_iter=5, random_state=0).fit(X),
        },
        repeats,
        clock=time.process_time,
    )
    times = {key: f"{value:.3f}" for key, value in seconds.items()}
    ratios = {key: f"{seconds[key] / seconds['one']:.2f}" for key in ("auto", "near")}
    first = [name, *map(str, X.shape), str(q), times["one"], times["auto"], ratios["auto"]]
    row = [*first, times["svd"], times["near"], ratios["near"]]
    print(" | ".join(row), flush=True)
    return row


if __name__ == "__main__":
    main()
