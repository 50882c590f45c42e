"""The projections of [YYTKW06], by name: each gives all rows of a task for K dimensions.

A task is a data set, and the labels that one repeat shows. Fits and principal components that
several methods share are kept.
"""

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from benchmarks.papers.data import prepared
from benchmarks.papers.em_yytkw06 import paper_em
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from gnomon import SPPCA

# How the inputs of each set are prepared, as in the paper.
PREPARATION = {
    "yale": "unit rows",
    "orl": "unit rows",
    "yaleb": "unit rows",
    "pie": "unit rows",
    "lung_bhatt203": "",
    "tumors11": "",
    "tumors14_part98": "",
    "tdt2": "tf-idf",
    "ng20": "tf-idf",
    "yeast": "",
    "rcv1": "",
}
# The paper starts EM at these noise variances; kept there, they give labels much more weight.
START_NOISE = (1e-5, 1e-5)
LEADING = 100


class Task(NamedTuple):
    """Inputs, truth (classes or indicators), what the fit may see of it, and the rows shown."""

    X: object
    truth: np.ndarray
    shown: np.ndarray
    known: np.ndarray


@lru_cache(maxsize=2)
def task(name, repeat):
    X, truth = prepared(name, PREPARATION[name])
    rng = np.random.default_rng(repeat)
    if truth.ndim == 1:
        shown = few_labels(truth, rng)
        return Task(X, truth, shown, shown >= 0)
    known = np.isin(np.arange(len(truth)), five_positives(truth, rng))
    shown = np.where(known[:, None], truth, np.nan)
    return Task(X, truth, shown, known)


def few_labels(y, rng):
    """Two labels for each class if there are fewer than 500 rows, else five; -1 elsewhere."""
    per_class = 2 if len(y) < 500 else 5
    shown = np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))[:per_class]
        shown[rows] = c
    return shown


def five_positives(Y, rng):
    """Rows that hold five positive examples of each label, or as many as there are."""
    picked = [rng.permutation(np.flatnonzero(column))[:5] for column in Y.T]
    return np.unique(np.concatenate(picked))


def neighbour_error(Z, given):
    known, classes = given.known, given.truth
    model = KNeighborsClassifier(1, algorithm="brute").fit(Z[known], classes[known])
    return {"error": float(np.mean(model.predict(Z[~known]) != classes[~known]))}


def indicators(given: Task):
    """One column of 0 and 1 for each class or label, of the rows shown."""
    shown = given.shown[given.known]
    return shown if shown.ndim == 2 else (shown[:, None] == np.unique(shown)).astype(float)


def dense_rows(given: Task):
    """The rows shown, few enough to be dense, less their mean, and that mean."""
    X = given.X[given.known]
    X = X.toarray() if sparse.issparse(X) else X
    mean = X.mean(axis=0)
    return X - mean, mean


@lru_cache(maxsize=1)
def principal(name):
    """Leading principal components of all rows, which no label changes."""
    X, _ = prepared(name, PREPARATION[name])
    size = min(LEADING, *X.shape) - (min(X.shape) <= LEADING)
    solver = "arpack" if sparse.issparse(X) else "auto"
    return PCA(size, svd_solver=solver, random_state=0).fit_transform(X)


def full(name, repeat, q):
    return task(name, repeat).X


def pca(name, repeat, q):
    return principal(name)[:, :q]


def pca_labelled(name, repeat, q):
    """Principal components of the rows shown, without their labels."""
    given = task(name, repeat)
    X, mean = dense_rows(given)
    axes = np.linalg.svd(X, full_matrices=False)[2][:q].T
    return given.X @ axes - mean @ axes


def whitened(name, repeat, q):
    Z = pca(name, repeat, q)
    return Z / Z.std(axis=0)


def lda(name, repeat, q):
    """Leading components of all rows, then LDA with the covariance shrunk by a tenth."""
    given, F = task(name, repeat), principal(name)
    y = given.shown[given.known]
    size = min(q, len(np.unique(y)) - 1)
    model = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1, n_components=size)
    return model.fit(F[given.known], y).transform(F)


def pls(name, repeat, q):
    given = task(name, repeat)
    X, mean = dense_rows(given)
    model = PLSRegression(min(q, len(X) - 1), scale=False).fit(X, indicators(given))
    return given.X @ model.x_rotations_ - mean @ model.x_rotations_


@lru_cache(maxsize=2)
def fitted(name, repeat, q, semi, fixed):
    """SPPCA of the labelled rows, or S2PPCA of all, at the maximum of the likelihood."""
    given = task(name, repeat)
    rows = slice(None) if semi else given.known
    # Labelled rows alone have no maximum with more components than this.
    size = q if semi else min(q, int(given.known.sum()) - 2)
    noise = START_NOISE if fixed else "learn"
    model = SPPCA(size, supervision="likelihood", noise=noise, random_state=0)
    return model.fit(given.X[rows], given.shown[rows])


def likelihood(name, repeat, q, *, semi, fixed=False, outputs=False, data_scale=False):
    """E[z | x] of all rows; with `outputs`, E[z | x, y] of those whose outputs are shown.

    With `data_scale` each axis has the length of its loadings, as the scores of PCA have.
    """
    given, model = task(name, repeat), fitted(name, repeat, q, semi, fixed)
    Z = model.transform(given.X)
    if data_scale:
        return Z * np.linalg.norm(model.components_, axis=1)
    if outputs:
        Z[given.known] = model.posterior(given.X[given.known], given.shown[given.known]).mean
    return Z


def em(name, repeat, q, *, semi):
    """The paper's algorithm as it stands: 1000 steps of EM from random loadings."""
    given = task(name, repeat)
    centre = given.X.mean(axis=0) if semi else given.X[given.known].mean(axis=0)
    X = given.X - centre
    unlabelled = X[~given.known] if semi else X[:0]
    rng = np.random.default_rng(repeat)
    W, noise = paper_em(X[given.known], indicators(given), unlabelled, q, rng)
    return X @ np.linalg.solve(W.T @ W + noise * np.eye(q), W.T).T


def auto(name, repeat, q):
    given = task(name, repeat)
    return SPPCA(q, random_state=0).fit(given.X, given.shown).transform(given.X)


METHODS = {
    "PCA": pca,
    "PCA, labelled rows": pca_labelled,
    "PCA whitened": whitened,
    "LDA": lda,
    "PLS": pls,
    "SPPCA": partial(likelihood, semi=False),
    "SPPCA, with y": partial(likelihood, semi=False, outputs=True),
    "SPPCA, data scale": partial(likelihood, semi=False, data_scale=True),
    "SPPCA, noise fixed": partial(likelihood, semi=False, fixed=True),
    "SPPCA, noise fixed, with y": partial(likelihood, semi=False, fixed=True, outputs=True),
    "SPPCA, 1000 EM steps": partial(em, semi=False),
    "S2PPCA": partial(likelihood, semi=True),
    "S2PPCA, with y": partial(likelihood, semi=True, outputs=True),
    "S2PPCA, data scale": partial(likelihood, semi=True, data_scale=True),
    "S2PPCA, noise fixed": partial(likelihood, semi=True, fixed=True),
    "S2PPCA, noise fixed, with y": partial(likelihood, semi=True, fixed=True, outputs=True),
    "S2PPCA, 1000 EM steps": partial(em, semi=True),
    "SPPCA auto": auto,
}
# The moments of EM need few features; LDA needs one class a row.
ONLY = {
    "SPPCA, 1000 EM steps": ("yale", "orl", "yaleb", "pie", "yeast"),
    "S2PPCA, 1000 EM steps": ("yale", "orl", "yaleb", "pie", "yeast"),
    "LDA": tuple(name for name in PREPARATION if name not in ("yeast", "rcv1")),
}


def methods(name):
    """The methods that apply to a data set."""
    return [method for method in METHODS if name in ONLY.get(method, PREPARATION)]
