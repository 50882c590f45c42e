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
# Residuals of all penalties are made for some rows at a time, about so many numbers.
CHUNK = 2**14


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
            sample = _sample(F, Y, rows, columns, (weights, balanced, counts))
            tuned = _tuned(sample, grid)
            B[:, columns], E[_block(rows, columns, E)], penalty[columns] = tuned
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
            sample = _sample(F, Y, rows, columns, (weights, balanced, weights))
            fit = _ridge(sample, penalty[columns[0]] * sample.unit)
            B[:, columns], E[_block(rows, columns, E)] = fit
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
    if seen.all():
        return _shrunk((weights[:, None] * E).T @ E / max(weights.sum(), TINY))
    if not seen.any():
        return np.eye(E.shape[1])
    E = np.where(seen, E, 0.0)
    counts = np.maximum((weights[:, None] * seen).T @ seen.astype(float), TINY)
    S = _shrunk((weights[:, None] * E).T @ E / counts)
    # Pairwise averages over different rows need not be positive definite.
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.maximum(values, SHRINKAGE * values.mean())) @ vectors.T


def _shrunk(S):
    """S (..., c, c) drawn towards a sphere of the same trace; I where it is zero."""
    c = S.shape[-1]
    level = np.trace(S, axis1=-2, axis2=-1)[..., None, None] / max(c, 1)
    S = (1 - SHRINKAGE) * S + SHRINKAGE * level * np.eye(c)
    return np.where(level > 0, S, np.eye(c))


def _block(rows, columns, E):
    """The index of some rows and columns of E."""
    whole = rows.all() and len(columns) == E.shape[1]
    return slice(None) if whole else np.ix_(rows, columns)


def _sample(F, Y, rows, columns, shares):
    """The rows that see these columns; ``shares`` are their weights, balanced ones and counts."""
    if not rows.all():
        F, Y, shares = F[rows], Y[rows], [share[rows] for share in shares]
    Y = Y if len(columns) == Y.shape[1] else Y[:, columns]
    weights, balanced, counts = shares
    total = balanced.sum()
    f_mean, y_mean = balanced @ F / total, balanced @ Y / total
    roots = np.sqrt(balanced)[:, None]
    Ft = F - f_mean
    Ft *= roots
    unit = max(float(np.vdot(Ft, Ft)) / total, TINY)
    return Sample(Ft, roots * (Y - y_mean), f_mean, y_mean, roots, weights, counts, unit)


def _tuned(sample, grid):
    """B, leave-one-out residuals and penalty of least log determinant over the grid."""
    squares, V = _principal(sample.F)
    U_of, UY = V / np.sqrt(squares), V.T @ (sample.F.T @ sample.Y) / np.sqrt(squares)[:, None]
    n, c = sample.Y.shape
    grid = grid if sample.counts.sum() <= MANY_ROWS else grid[::2]
    shrink = squares / (squares + (grid * sample.unit)[:, None])
    leverage, S = np.empty((len(grid), n)), np.zeros((len(grid), c, c))
    for rows in _slices(n, CHUNK // max(len(grid) * c, 1)):
        U = sample.F[rows] @ U_of
        leverage[:, rows] = shrink @ (U**2).T
        E = sample.Y[rows] - _products(U, shrink[:, :, None] * UY)
        E /= _left_out_scale(sample, leverage[:, rows], rows)[..., None]
        S += np.swapaxes(sample.weights[rows, None] * E, 1, 2) @ E
    k = int(np.argmin(np.linalg.slogdet(_shrunk(S / max(sample.weights.sum(), TINY)))[1]))
    B = U_of @ (shrink[k, :, None] * UY)
    left = sample.Y - sample.F @ B
    return B, left / _left_out_scale(sample, leverage[k])[:, None], grid[k]


def _principal(F):
    """Squared singular values above rounding and right vectors (p, r), by the smaller side."""
    wide = F.shape[0] < F.shape[1]
    squares, vectors = np.linalg.eigh(F @ F.T if wide else F.T @ F)
    kept = squares > max(1e-14 * squares[-1], TINY)
    squares, vectors = squares[kept], vectors[:, kept]
    return squares, (F.T @ vectors) / np.sqrt(squares) if wide else vectors


def _slices(n, size):
    """Slices of n rows of about the given size, which stay near the processor."""
    size = max(size, 64)
    return [slice(start, start + size) for start in range(0, n, size)]


def _products(U, stack):
    """U times every matrix (p, c) of a stack, as one product."""
    m, p, c = stack.shape
    side_by_side = U @ np.swapaxes(stack, 0, 1).reshape(p, m * c)
    return np.swapaxes(side_by_side.reshape(len(U), m, c), 0, 1)


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
    return B, left / _left_out_scale(sample, leverage)[:, None]


def _left_out_scale(sample, leverage, rows=slice(None)):
    """By what weighted residuals are divided when one occurrence of their row is left out.

    A row that counts less than once is left out whole.
    """
    roots = sample.roots[rows, 0]
    leverage = leverage + roots**2 / np.sum(sample.roots**2)
    share = 1 - leverage / np.maximum(sample.counts[rows], 1.0)
    return roots * np.maximum(share, 1e-10)
