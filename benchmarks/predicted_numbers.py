"""Predicted numbers on rows that the fit has not seen, beside PLS and ridge regression.

    python benchmarks/predicted_numbers.py --repeats 100

The sets are those of `intervals.py`, of which some rows are labelled; the other rows are there
without, for SPPCA alone. PLS has the number of components, ridge regression the penalty, that five
folds of the labelled rows prefer; both see standardised columns, those of spectra centred only.
"""

import argparse
import warnings

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import intervals
from gnomon import SPPCA, KernelSPPCA

import measure

OURS = {"SPPCA": SPPCA, "KernelSPPCA": KernelSPPCA}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--first", type=int, default=100, help="seed of the first repeat")
    options = parser.parse_args()
    rows, ratios = [], []
    for name, (X, y) in intervals.sets(np.random.default_rng(0)).items():
        for n in intervals.LABELLED:
            seeds = range(options.first, options.first + options.repeats)
            found = np.mean([errors(X, y, n, seed, name) for seed in seeds], axis=0)
            ratios.append(found[: len(OURS)] / found[len(OURS) :].min())
            rows.append([f"{name}, {n}", *(f"{error:.4f}" for error in found)])
            rows[-1].append(", ".join(f"{ratio:.2f}" for ratio in ratios[-1]))
            print(rows[-1], flush=True)
    shares = np.mean(np.array(ratios) <= 1.1, axis=0)
    within = ", ".join(f"{m} {share:.0%}" for m, share in zip(OURS, shares, strict=True))
    measure.write(
        "predicted_numbers",
        "Mean squared error of predicted numbers, in variances of y",
        ["set, labelled rows", *OURS, "PLS", "RidgeCV", "over the better peer"],
        rows,
        [
            f"{options.repeats} draws, seeds {options.first} and following. Within 1.1 of the "
            f"better peer: {within}."
        ],
    )


def errors(X, y, n, seed, name):
    """Mean squared errors on held-out rows, in variances of y."""
    order = np.random.default_rng(seed).permutation(len(y))
    seen, held = order[: -intervals.HELD_OUT], order[-intervals.HELD_OUT :]
    known = np.full(len(seen), np.nan)
    known[:n] = y[seen[:n]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        guesses = [m(3).fit(X[seen], known).predict(X[held]) for m in OURS.values()]
        for peer in peers(n, X.shape[1], name):
            guesses.append(peer.fit(X[seen[:n]], known[:n]).predict(X[held]).ravel())
    return [np.mean((guess - y[held]) ** 2) / y.var() for guess in guesses]


def peers(n, d, name):
    """PLS and ridge regression, tuned inside the labelled rows."""
    by_column = name != "spectra"
    sizes = range(1, min(10, d, int(0.8 * n) - 1) + 1)
    pls = GridSearchCV(
        PLSRegression(scale=by_column),
        {"n_components": list(sizes)},
        scoring="neg_mean_squared_error",
    )
    ridge = make_pipeline(StandardScaler(with_std=by_column), RidgeCV(np.logspace(-4, 4, 17)))
    return pls, ridge


if __name__ == "__main__":
    main()
