"""SPPCA's automatic supervision with numbers as y, few of them known, against PCA and PLS.

Thirty rows have a number; all x are seen. A linear regression on the components, fitted to these
rows, predicts the others; its squared error is relative to their variance. "heavy tails" has
Student noise of two degrees of freedom, "no relation" a y that x says nothing about.

    python benchmarks/supervision_numbers.py
"""

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from gnomon import SPPCA

import measure

LABELLED, REPEATS, FIRST = 30, 20, 500
METHODS = ("PCA", "PLS", "auto")


def main():
    rows = [row(name, read, q) for name, read in SETS.items() for q in (2, 5)]
    measure.write(
        "supervision_numbers",
        "Relative squared error of a regression on the components, 30 numbers known",
        ["set (components)", *METHODS, "auto below PCA", "strength chosen (median)"],
        rows,
        [
            f"{REPEATS} repeats, seeds {FIRST} and following; medians over them. "
            "PLS sees the labelled rows only."
        ],
    )


def row(name, read, q):
    found = [one(read, q, seed) for seed in range(FIRST, FIRST + REPEATS)]
    errors = np.array([errors for errors, _ in found])
    wins = int(np.sum(errors[:, 2] < errors[:, 0]))
    values = [f"{value:.3f}" for value in np.median(errors, axis=0)]
    strength = np.median([strength for _, strength in found])
    cells = [f"{name} ({q})", *values, f"{wins} of {REPEATS}", f"{strength:.2g}"]
    print(" | ".join(cells), flush=True)
    return cells


def one(read, q, seed):
    rng = np.random.default_rng(seed)
    X, y = read(rng)
    known = np.zeros(len(y), dtype=bool)
    known[rng.choice(len(y), LABELLED, replace=False)] = True
    auto = SPPCA(q, target="numeric", random_state=seed).fit(X, np.where(known, y, np.nan))
    pls = PLSRegression(q, scale=False).fit(X[known], y[known])
    maps = PCA(q).fit_transform(X), pls.transform(X), auto.transform(X)
    return [error(T, y, known) for T in maps], auto.supervision_


def error(T, y, known):
    T = T / T[known].std(axis=0).max()
    predicted = Ridge(1e-6).fit(T[known], y[known]).predict(T[~known])
    return float(np.mean((predicted - y[~known]) ** 2) / np.var(y[~known]))


def standard(X, y):
    return StandardScaler().fit_transform(X), y


def column(load, j):
    """One feature of a set to be predicted from the others."""
    X = load().data
    return standard(np.delete(X, j, axis=1), X[:, j])


def planted(rng, noise):
    """Five hundred rows whose y hangs on directions of little variance."""
    X = rng.standard_normal((500, 30)) * np.r_[np.full(10, 4.0), np.ones(20)]
    return X, X[:, 10:13].sum(axis=1) + noise(rng)


SETS = {
    "diabetes": lambda rng: standard(*load_diabetes(return_X_y=True)),
    "wine, alcohol": lambda rng: column(load_wine, 0),
    "breast, mean smoothness": lambda rng: column(load_breast_cancer, 4),
    "planted": lambda rng: planted(rng, lambda rng: 0.5 * rng.standard_normal(500)),
    "heavy tails": lambda rng: planted(rng, lambda rng: 0.5 * rng.standard_t(2, 500)),
    "no relation": lambda rng: (planted(rng, lambda rng: 0.0)[0], rng.standard_normal(500)),
}


if __name__ == "__main__":
    main()
