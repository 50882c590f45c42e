"""The projections of [YYTKW06], by name: each gives all rows of a task for K dimensions.

A task is a data set, and the labels that one repeat shows. Fits and principal components that
several methods share are kept.
"""

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from benchmarks.papers.data import prepared
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

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


def indicators(given: Task):
    """One column of 0 and 1 for each class or label, of the rows shown."""
    shown = given.shown[given.known]
    return shown if shown.ndim == 2 else (shown[:, None] == np.unique(shown)).astype(float)


@lru_cache(maxsize=1)
def span(name, repeat):
    """The rows shown, less their mean, in a basis of their span, fewer columns than features.

    Also a function that takes axes in this basis and gives all rows on them.
    """
    given = task(name, repeat)
    X = given.X[given.known]
    X = X.toarray() if sparse.issparse(X) else X
    mean = X.mean(axis=0)
    basis, coordinates = np.linalg.qr((X - mean).T)

    def on_axes(axes):
        return given.X @ (basis @ axes) - mean @ basis @ axes

    return coordinates.T, on_axes


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
    X, on_axes = span(name, repeat)
    return on_axes(np.linalg.svd(X)[2][:q].T)


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
    X, on_axes = span(name, repeat)
    model = PLSRegression(min(q, len(X) - 1), scale=False)
    return on_axes(model.fit(X, indicators(task(name, repeat))).x_rotations_)


def maximum(X, y, q, *, fixed):
    """The model at the maximum of the likelihood, with learnt noise or that of the start."""
    noise = START_NOISE if fixed else "learn"
    return SPPCA(q, supervision="likelihood", noise=noise, random_state=0).fit(X, y)


@lru_cache(maxsize=2)
def fitted(name, repeat, q, semi, fixed):
    """SPPCA of the labelled rows, or S2PPCA of all."""
    given = task(name, repeat)
    rows = slice(None) if semi else given.known
    # Labelled rows alone have no maximum with more components than this.
    size = q if semi else min(q, int(given.known.sum()) - 2)
    return maximum(given.X[rows], given.shown[rows], size, fixed=fixed)


@lru_cache(maxsize=6)
def told_all(name, q, fixed):
    """SPPCA of all rows with the labels of all, which no method may see: a bound on the fit."""
    X, truth = prepared(name, PREPARATION[name])
    return maximum(X, truth, q, fixed=fixed)


def likelihood(name, repeat, q, *, semi, fixed=False, **placement):
    return placed(task(name, repeat), fitted(name, repeat, q, semi, fixed), **placement)


def all_labels(name, repeat, q, *, fixed=False, **placement):
    return placed(task(name, repeat), told_all(name, q, fixed), **placement)


def placed(given, model, *, outputs=False, data_scale=False):
    """E[z | x] of all rows; with `outputs`, E[z | x, y] of those whose outputs are shown.

    With `data_scale` each axis has the length of its loadings, as the scores of PCA have.
    """
    Z = model.transform(given.X)
    if data_scale:
        return Z * np.linalg.norm(model.components_, axis=1)
    if outputs:
        Z[given.known] = model.posterior(given.X[given.known], given.shown[given.known]).mean
    return Z


def em(name, repeat, q, *, semi):
    """The paper's algorithm as it stands: 1000 steps of EM from its start, a column for a class."""
    given = task(name, repeat)
    rows = slice(None) if semi else given.known
    options = {"solver": "em", "max_iter": 1000, "tol": 0, "random_state": repeat}
    model = SPPCA(q, supervision="likelihood", target="multilabel", **options)
    return model.fit(given.X[rows], one_of_c(given)[rows]).transform(given.X)


def one_of_c(given: Task):
    """Outputs as the paper has them: one column for each class or label, NaN where not shown."""
    columns = np.full((len(given.truth), indicators(given).shape[1]), np.nan)
    columns[given.known] = indicators(given)
    return columns


def completed(name, repeat, q, **settings):
    """The library's own way: labels completed on all rows, their weight chosen or given."""
    given = task(name, repeat)
    return SPPCA(q, random_state=0, **settings).fit(given.X, given.shown).transform(given.X)


METHODS = {
    "FULL": full,
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
    "S2PPCA, s = 0.15": partial(completed, supervision=0.15, scale="latent"),
    "S2PPCA, all labels": all_labels,
    "S2PPCA, all labels, with y": partial(all_labels, outputs=True),
    "S2PPCA, all labels, noise fixed": partial(all_labels, fixed=True),
    "S2PPCA, all labels, noise fixed, with y": partial(all_labels, fixed=True, outputs=True),
    "SPPCA auto": completed,
}
# Where no change had brought the paper's figures within.
DOUBTFUL = ("pie", "yeast", "rcv1")
# The moments of EM need few features; LDA needs one class a row.
ONLY = {
    **{method: DOUBTFUL for method in METHODS if "all labels" in method},
    "SPPCA, 1000 EM steps": ("yale", "orl", "yaleb", "pie", "yeast"),
    "S2PPCA, 1000 EM steps": ("yale", "orl", "yaleb", "pie", "yeast"),
    "LDA": tuple(name for name in PREPARATION if name not in ("yeast", "rcv1")),
}


def methods(name):
    """The projections that apply to a data set."""
    projections = [method for method in METHODS if method != "FULL"]
    return [method for method in projections if name in ONLY.get(method, PREPARATION)]
