"""How often 90 % intervals of predicted numbers hold the value, on rows that the fit has not seen.

    python benchmarks/intervals.py --repeats 20

Intervals are the mean and 1.645 standard deviations of `predict(X, return_std=True)`; of each set
some rows are labelled, the others are there without, and 200 more are held out.
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.preprocessing import scale

from gnomon import SPPCA, KernelSPPCA

import measure

LABELLED = (10, 30, 100)
HELD_OUT = 200
# Of a Gaussian, this many standard deviations about its mean hold 90 %.
DEVIATIONS = 1.645
MODELS = {
    "SPPCA": lambda: SPPCA(3),
    "KernelSPPCA": lambda: KernelSPPCA(3),
    "SPPCA by likelihood": lambda: SPPCA(3, supervision="likelihood"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first repeat")
    options = parser.parse_args()
    seeds, rows = range(options.first, options.first + options.repeats), []
    for name, (X, y) in sets(np.random.default_rng(0)).items():
        for n in LABELLED:
            held = [np.mean([holds(m, X, y, n, s) for s in seeds]) for m in MODELS.values()]
            rows.append([f"{name}, {n}", *(f"{share:.3f}" for share in held)])
            print(rows[-1], flush=True)
    measure.write(
        "intervals",
        "Share of held-out values inside 90 % intervals",
        ["set, labelled rows", *MODELS],
        rows,
        [f"{options.repeats} draws of the labelled rows, seeds {options.first} and following."],
    )


def sets(rng):
    """Name to inputs and numbers."""
    linear = rng.standard_normal((500, 20))
    Z = rng.standard_normal((500, 4))
    low_rank = Z @ rng.standard_normal((4, 30)) + 0.5 * rng.standard_normal((500, 30))
    axis = np.linspace(0, 1, 150)
    bands = np.exp(-((axis - np.array([[0.2], [0.5], [0.8]])) ** 2) / 0.02)
    amounts = rng.gamma(4, 1, (500, 3))
    spectra = amounts @ bands + 0.1 * rng.standard_normal((500, 150))
    diabetes, progress = load_diabetes(return_X_y=True)
    friedman = make_friedman1(500, 10, noise=1.0, random_state=0)
    return {
        "linear": (linear, linear[:, :5].sum(axis=1) + rng.standard_normal(500)),
        "low rank": (low_rank, Z[:, 0] + 0.3 * rng.standard_normal(500)),
        "spectra": (spectra, amounts[:, 0] + 0.1 * rng.standard_normal(500)),
        "diabetes": (scale(diabetes), progress + 0.5),
        "friedman": (scale(friedman[0]), friedman[1]),
    }


def holds(make, X, y, n, seed):
    """Share of held-out rows whose interval holds the value."""
    order = np.random.default_rng(seed).permutation(len(y))
    seen, held = order[:-HELD_OUT], order[-HELD_OUT:]
    known = np.full(len(seen), np.nan)
    known[:n] = y[seen[:n]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean, std = make().fit(X[seen], known).predict(X[held], return_std=True)
    return np.mean(np.abs(mean - y[held]) < DEVIATIONS * std)


if __name__ == "__main__":
    main()
