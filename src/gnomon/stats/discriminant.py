"""Where discriminative components start: discriminant directions, and clusters in classes.

Linear discriminant directions with a shrunk within-group covariance, whitened by it (LDA, then
RCA), and padded by principal directions where more are wanted than classes give. Groups are
the classes of labelled rows and the chunks of others: both tell how rows of one class differ.
Rows are centred and in units where the mean variance of a column is 1.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from gnomon.linalg.data import Data, Weighted
from gnomon.linalg.solve import Cholesky

# Up to this many columns a covariance is formed; beyond, only products are taken.
MOST_COLUMNS = 1000


class Groups(NamedTuple):
    """Group of every row (n,), -1 for none, its weight, and how many groups are classes."""

    ids: np.ndarray
    weights: np.ndarray
    n_classes: int


def averaging(groups: Groups):
    """R (g, n), sparse: R'R is the projection on group means in the weights' metric."""
    rows = np.flatnonzero(groups.ids >= 0)
    ids, w = groups.ids[rows], groups.weights[rows]
    totals = np.bincount(ids, w)
    values = w / np.sqrt(totals[ids])
    return sparse.csr_array((values, (ids, rows)), shape=(len(totals), len(groups.ids)))


def within(X: Data, groups: Groups):
    """The within-group covariance as a matrix (d, d), or as its product for many columns."""
    inside = np.where(groups.ids >= 0, groups.weights, 0.0)
    R = averaging(groups)
    spare = max(inside.sum() - R.shape[0], 1.0)
    if X.n_features > MOST_COLUMNS:

        def product(V):
            T = np.asarray(X @ V, dtype=float)
            return np.asarray(X.T @ (inside[:, None] * T - R.T @ (R @ T)), dtype=float) / spare

        return LinearOperator((X.n_features,) * 2, matvec=product, matmat=product, dtype=float)
    means, start = np.zeros((R.shape[0], X.n_features)), 0
    for block in X.dense_blocks():
        means += R[:, start : start + len(block)] @ block.astype(float, copy=False)
        start += len(block)
    return (Weighted(X, inside).gram() - means.T @ means) / spare


def discriminant_directions(X: Data, groups: Groups, q: int, shrinkage: float) -> np.ndarray:
    """At most q directions V (d, r) that part the class means, with V'(S_w + shrinkage)V = I."""
    classes = averaging(groups)[: groups.n_classes]
    means = np.asarray(X.T @ classes.toarray().T, dtype=float)
    roots = np.asarray(classes.sum(axis=1)).ravel()
    means -= np.outer(means @ roots, roots) / (roots @ roots)
    solved = _solve(within(X, groups), shrinkage, means)
    values, U = np.linalg.eigh(means.T @ solved)
    kept = values > max(1e-10 * values[-1], np.finfo(float).tiny)
    values, U = values[kept][::-1][:q], U[:, kept][:, ::-1][:, :q]
    return solved @ (U / np.sqrt(values))


def _solve(S, shrinkage, B):
    if isinstance(S, np.ndarray):
        return Cholesky(S + shrinkage * np.eye(len(S))).solve(B)
    return conjugate_gradients(lambda V: S @ V + shrinkage * V, B)


def conjugate_gradients(product, B, *, tol=1e-6, max_iter=200):
    """A^-1 B for all columns at once, with A known by its product."""
    V, R = np.zeros_like(B), B.copy()
    D, old = R.copy(), np.sum(R**2, axis=0)
    limit = tol**2 * np.maximum(old, np.finfo(float).tiny)
    for _ in range(max_iter):
        if np.all(old <= limit):
            break
        AD = product(D)
        length = old / np.maximum(np.sum(D * AD, axis=0), np.finfo(float).tiny)
        V += length * D
        R -= length * AD
        new = np.sum(R**2, axis=0)
        D = R + (new / np.maximum(old, np.finfo(float).tiny)) * D
        old = new
    return V


def principal_directions(X: Data, weights, k: int) -> np.ndarray:
    """The k leading directions of the covariance (d, k)."""
    data = Weighted(X, weights)
    if X.n_features <= MOST_COLUMNS:
        return np.linalg.eigh(data.gram())[1][:, ::-1][:, :k]

    def product(V):
        return np.asarray(data.T @ (data @ V), dtype=float)

    S = LinearOperator((X.n_features,) * 2, matvec=product, matmat=product, dtype=float)
    return eigsh(S, k, v0=np.ones(X.n_features))[1][:, ::-1]


def start_directions(X: Data, groups: Groups, q: int, shrinkage: float) -> np.ndarray:
    """Q directions (d, q): discriminant ones first, then principal ones new to them."""
    V = discriminant_directions(X, groups, q, shrinkage)
    V = V / np.maximum(np.linalg.norm(V, axis=0), np.finfo(float).tiny)
    missing = q - V.shape[1]
    if missing == 0:
        return V
    U = principal_directions(X, groups.weights, min(q, X.n_features))
    basis = np.linalg.qr(V)[0]
    U = U - basis @ (basis.T @ U)
    new = np.linalg.svd(U, full_matrices=False)[0][:, :missing]
    return np.column_stack([V, new])


def clusters(Z, weights, k: int, rng=None, *, n_steps=20) -> np.ndarray:
    """Cluster numbers of the rows by k-means with weights.

    Starts from slices along the longest axis, so that it depends neither on chance nor on
    whether a row is repeated or has a weight; from random rows if ``rng`` is given.
    """
    if k == 1 or len(Z) == 0:
        return np.zeros(len(Z), dtype=int)
    if rng is None:
        ids = _slices(Z, weights, k)
    else:
        drawn = rng.choice(len(Z), size=k, p=weights / weights.sum())
        ids = _nearest(Z, Z[drawn])
    for _ in range(n_steps):
        totals = np.bincount(ids, weights, minlength=k)
        sums = np.stack([np.bincount(ids, weights * z, minlength=k) for z in Z.T], axis=1)
        centres = sums / np.maximum(totals, np.finfo(float).tiny)[:, None]
        centres[totals == 0] = np.inf
        new = _nearest(Z, centres)
        if np.array_equal(new, ids):
            break
        ids = new
    return ids


def _slices(Z, weights, k):
    away = Z - weights @ Z / weights.sum()
    axis = np.linalg.eigh((away.T * weights) @ away)[1][:, -1]
    # Equal rows must come out equal: rounding is cut off.
    along = np.round(away @ axis / max(np.abs(Z).max(), np.finfo(float).tiny), 9)
    order = np.argsort(along)
    share = np.cumsum(weights[order]) / weights.sum()
    # Cut between values, by the weight below each, so that equal rows stay together.
    edges = along[order][np.searchsorted(share, np.arange(1, k) / k - 1e-12)]
    return np.searchsorted(edges, along, side="left")


def _nearest(Z, centres):
    distances = np.stack([np.sum((Z - centre) ** 2, axis=1) for centre in centres])
    return np.argmin(distances, axis=0)
