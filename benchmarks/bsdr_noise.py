"""The default of BSDR's `latent_noise`, by cross-validation inside the training rows.

Each split draws up to 12 rows of every class; two folds of these alone say how good a value is.
The rule was fixed before the run: the default is the value with the highest accuracy of the
model's own predictions, in the mean over all cells of data set and size. Log loss of these, and the
accuracy of the five nearest rows in the projection, stand beside it. One start, by discriminant
analysis, so that a fit takes a second.

    GNOMON_DATA=folder python benchmarks/bsdr_noise.py --splits 10
"""

import argparse
import json
import time
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from gnomon import BSDR

import measure

NOISES = (0.1, 0.3, 1.0)
SIZES = (2, 5)
NAMES = ("iris", "wine", "vowel_vj", "digits", "usps", "mfeat")
PER_CLASS, FOLDS = 12, 2
PATH = measure.RESULTS / "bsdr_noise_cells.json"


def data_of(name):
    """Rows and classes."""
    if name == "digits":
        return load_digits(return_X_y=True)
    from load import load

    found = load(name)
    return np.asarray(found["X"], dtype=float), found["y"].astype(int)


def drawn(y, rng):
    """Some rows of every class, at random."""
    order = rng.permutation(len(y))
    return np.concatenate([order[y[order] == c][:PER_CLASS] for c in np.unique(y)])


def quality(model, X, y, X_test, y_test):
    """Accuracy and log loss of the predictions, accuracy of the five nearest rows."""
    P = model.predict_proba(X_test)
    near = KNeighborsClassifier(5).fit(model.transform(X), y)
    return (
        np.mean(model.classes_[P.argmax(axis=1)] == y_test),
        log_loss(y_test, np.maximum(P, 1e-12), labels=model.classes_),
        near.score(model.transform(X_test), y_test),
    )


def measured(X, y, q, noise, split):
    """Means over the folds of the training rows."""
    rows = drawn(y, np.random.default_rng(split))
    model = BSDR(q, latent_noise=noise, n_init=1, proba="plug-in", random_state=split)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=split).split(rows, y[rows])
    inside = [
        quality(model.fit(X[rows[a]], y[rows[a]]), X[rows[a]], y[rows[a]], X[rows[b]], y[rows[b]])
        for a, b in folds
    ]
    return np.mean(inside, axis=0).tolist()


def run(n_splits, deadline):
    """Cells that were not measured before, until the deadline; all of them."""
    done = json.loads(PATH.read_text()) if PATH.exists() else {}
    for split in range(n_splits):
        for name in NAMES:
            X, y = data_of(name)
            for q in [q for q in SIZES if q <= X.shape[1]]:
                for noise in NOISES:
                    key = f"{name}, {q}, {noise}, {split}"
                    if key not in done and time.monotonic() < deadline:
                        done[key] = measured(X, y, q, noise, split)
            PATH.write_text(json.dumps(done) + "\n")
            print(name, split, flush=True)
    return done


def table(done):
    """A row for every data set and size, and their mean: a cell for every noise."""
    cells = {}
    for key, values in done.items():
        name, q, noise, _ = key.split(", ")
        cells.setdefault((name, int(q)), {}).setdefault(float(noise), []).append(values)
    means = {c: np.array([np.mean(found[v], axis=0) for v in NOISES]) for c, found in cells.items()}
    rows = [[f"{name}, {q}", *map(_cell, values)] for (name, q), values in means.items()]
    return [*rows, ["mean", *map(_cell, np.mean(list(means.values()), axis=0))]]


def _cell(values):
    return " / ".join(f"{value:.3f}" for value in values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=np.inf)
    options = parser.parse_args()
    if measure.data_folder() is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = run(options.splits, time.monotonic() + 60 * options.minutes)
    splits = len({key.rsplit(", ", 1)[1] for key in done})
    measure.write(
        "bsdr_noise",
        "BSDR by its latent noise, cross-validated inside the training rows",
        ["data, components", *map(str, NOISES)],
        table(done),
        [
            f"{splits} splits of {PER_CLASS} rows a class, {FOLDS} folds of these. Accuracy, log "
            "loss of the model's predictions, accuracy of the five nearest rows in the "
            "projection."
        ],
    )


if __name__ == "__main__":
    main()
