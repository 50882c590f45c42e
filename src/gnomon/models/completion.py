"""Stage 1 of supervision: labels completed on all rows by ridge regression on the labelled ones.

    y = m + B'(f - fbar) + e,    e ~ N(0, Sigma)

f are coordinates of the rows in a pool of principal directions. The penalty is the one whose
leave-one-out residuals have the least log|Sigma|; it is measured in mean squared lengths of a
labelled row. Sigma is theirs too, so that outputs count by how well they are predicted.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.solve import Cholesky

PENALTIES = 10.0 ** np.arange(-4, 3.25, 0.5)
# Many rows decide well between fewer penalties.
MANY_ROWS = 200
# With numbers as y the lowest penalties interpolate heavy-tailed columns.
LEAST_NUMERIC_PENALTY = 0.1
# Share of Sigma that is spherical, as the labelled rows are few.
SHRINKAGE = 0.1
TINY = np.finfo(float).tiny


class Completion(NamedTuple):
    """E[y|x] = offset + f'B, its covariance, and penalties and leave-one-out residuals (n, c)."""

    B: np.ndarray
    offset: np.ndarray
    covariance: np.ndarray
    penalty: np.ndarray
    residuals: np.ndarray


class Sample(NamedTuple):
    """Centred rows and outputs, each scaled by the root of its weight; their means and weights."""

    F: np.ndarray
    Y: np.ndarray
    f_mean: np.ndarray
    y_mean: np.ndarray
    roots: np.ndarray
    weights: np.ndarray
    counts: np.ndarray
    unit: float


def complete(F, Y, observed, weights, codes=None, counts=None) -> Completion:
    """Ridge regression of the labelled rows, its penalty tuned by leaving out one row.

    ``counts`` says how often a row occurs, by default as often as it weighs: weights so count
    as repeated rows. Columns seen on different rows are fitted each on its own. Where there
    are classes, all of them count the same.
    """
    counts = weights if counts is None else counts
    balanced = weights if codes is None else class_weights(codes, weights)
    B, offset = np.zeros((F.shape[1], Y.shape[1])), np.zeros(Y.shape[1])
    penalty, E = np.full(Y.shape[1], np.inf), np.full(Y.shape, np.nan)
    grid = PENALTIES if codes is not None else PENALTIES[PENALTIES >= LEAST_NUMERIC_PENALTY]
    for columns in same_pattern(observed):
        rows = observed[:, columns[0]]
        if rows.any():
            sample = _sample(F[rows], Y[np.ix_(rows, columns)], weights[rows], balanced[rows])
            tuned = _tuned(sample._replace(counts=counts[rows]), grid)
            B[:, columns], E[np.ix_(rows, columns)], penalty[columns] = tuned
            offset[columns] = sample.y_mean - sample.f_mean @ B[:, columns]
    return Completion(B, offset, residual_covariance(E, weights), penalty, E)


def recomplete(F, Y, observed, weights, penalty, codes=None) -> Completion:
    """The same at a given penalty for each column, by one Cholesky factor."""
    balanced = weights if codes is None else class_weights(codes, weights)
    B, offset = np.zeros((F.shape[1], Y.shape[1])), np.zeros(Y.shape[1])
    E = np.full(Y.shape, np.nan)
    for columns in same_pattern(observed):
        rows = observed[:, columns[0]]
        if rows.any() and np.isfinite(penalty[columns[0]]):
            sample = _sample(F[rows], Y[np.ix_(rows, columns)], weights[rows], balanced[rows])
            fit = _ridge(sample, penalty[columns[0]] * sample.unit)
            B[:, columns], E[np.ix_(rows, columns)] = fit
            offset[columns] = sample.y_mean - sample.f_mean @ B[:, columns]
    return Completion(B, offset, residual_covariance(E, weights), penalty, E)


def class_weights(codes, weights) -> np.ndarray:
    """Weights of labelled rows that make every class count the same; their sum is unchanged."""
    counts = np.bincount(codes, weights)
    share = weights.sum() / max(np.count_nonzero(counts), 1)
    return weights * (share / np.maximum(counts, TINY))[codes]


def same_pattern(observed) -> list[np.ndarray]:
    """Columns grouped by the rows on which they are seen."""
    if observed.shape[1] == 0:
        return []
    if observed.all():
        return [np.arange(observed.shape[1])] if observed.size else []
    _, group = np.unique(observed, axis=1, return_inverse=True)
    return [np.flatnonzero(group.ravel() == g) for g in range(group.max() + 1)]


def residual_covariance(E, weights) -> np.ndarray:
    """Covariance of residuals (n, c) with gaps, shrunk towards a sphere; I where there are none."""
    seen = ~np.isnan(E)
    if not seen.any():
        return np.eye(E.shape[1])
    E = np.where(seen, E, 0.0)
    counts = np.maximum((weights[:, None] * seen).T @ seen.astype(float), TINY)
    S = (weights[:, None] * E).T @ E / counts
    level = np.trace(S) / max(len(S), 1)
    if not level > 0:
        return np.eye(len(S))
    S = (1 - SHRINKAGE) * S + SHRINKAGE * level * np.eye(len(S))
    if seen.all():
        return S
    # Pairwise averages over different rows need not be positive definite.
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.maximum(values, SHRINKAGE * level)) @ vectors.T


def _sample(F, Y, weights, balanced):
    total = balanced.sum()
    f_mean, y_mean = balanced @ F / total, balanced @ Y / total
    roots = np.sqrt(balanced)[:, None]
    Ft = roots * (F - f_mean)
    unit = max(float(np.sum(Ft**2)) / total, TINY)
    return Sample(Ft, roots * (Y - y_mean), f_mean, y_mean, roots, weights, weights, unit)


def _tuned(sample, grid):
    """B, leave-one-out residuals and penalty of least log determinant over the grid."""
    U, d, V = _thin_svd(sample.F)
    UY, squares = U.T @ sample.Y, U**2
    grid = grid if len(U) <= MANY_ROWS else grid[::2]
    best = np.inf
    for penalty in grid:
        a = penalty * sample.unit
        shrink = d**2 / (d**2 + a)
        left = sample.Y - U @ (shrink[:, None] * UY)
        E = _left_out(sample, left, squares @ shrink)
        value = np.linalg.slogdet(residual_covariance(E, sample.weights))[1]
        if value < best or penalty == grid[0]:
            best, kept = value, (V @ ((d / (d**2 + a))[:, None] * UY), E, penalty)
    return kept


def _thin_svd(F):
    """U, d, V with F = U diag(d) V'; by F'F where rows are many."""
    if F.shape[0] < 2 * F.shape[1]:
        U, d, Vt = np.linalg.svd(F, full_matrices=False)
        return U, d, Vt.T
    values, V = np.linalg.eigh(F.T @ F)
    kept = values > 1e-14 * values[-1]
    d, V = np.sqrt(values[kept]), V[:, kept]
    return (F @ V) / d, d, V


def _ridge(sample, a):
    """B and leave-one-out residuals at penalty a, on the smaller side of the rows."""
    n, p = sample.F.shape
    if n <= p:
        M = Cholesky(sample.F @ sample.F.T + a * np.eye(n))
        dual = M.solve(sample.Y)
        B, left = sample.F.T @ dual, a * dual
        leverage = 1 - a * np.sum(M.half_solve(np.eye(n)) ** 2, axis=0)
    else:
        M = Cholesky(sample.F.T @ sample.F + a * np.eye(p))
        B = M.solve(sample.F.T @ sample.Y)
        left = sample.Y - sample.F @ B
        leverage = np.sum(M.half_solve(sample.F.T) ** 2, axis=0)
    return B, _left_out(sample, left, leverage)


def _left_out(sample, left, leverage):
    """Residuals of rows when one occurrence of them is left out of the fit.

    A row that counts less than once is left out whole.
    """
    leverage = leverage + sample.roots[:, 0] ** 2 / np.sum(sample.roots**2)
    share = 1 - leverage / np.maximum(sample.counts, 1.0)
    return left / sample.roots / np.maximum(share, 1e-10)[:, None]
