"""Columns of the data matrix in units of their own, and its rows in a basis of their span."""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Centered, Data, Matrix, center, placed
from gnomon.linalg.solve import above_rounding

# A column with a kurtosis above this is rare: one that is 0 but in a share p of the rows has
# 1 / p, so it is one of which at most two rows in a hundred say something.
RARE = 50.0
# A column whose deviations are below so many roundings of its mean does not vary.
ROUNDINGS = 8
# Columns whose correlations are below this power of the rounding have none: principal components of
# the same rows stay far below it, and other columns far above.
UNCORRELATED = 0.4


def varies(sd, mean, dtype=float) -> np.ndarray:
    """Which columns vary by more than the rounding of their means; one rule for all.

    The mean of a constant column, as one of 0.1, need not be that constant to the last bit.
    """
    return sd > ROUNDINGS * np.finfo(dtype).eps * np.abs(mean)


class Columns(NamedTuple):
    """Means and standard deviations of the columns, which of them vary, and X less the means."""

    mean: np.ndarray
    sd: np.ndarray
    varying: np.ndarray
    centered: Data


def column_statistics(X: Data, weights=None) -> Columns:
    """Means, deviations and variation of the columns of X, whose rows may have weights."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    mean, centered = center(X.weighted(weights)) if np.ptp(weights) else center(X)
    centered = centered.unweighted
    sd, about = column_deviations(centered, weights)
    return Columns(mean, sd, varies(about, mean, X.dtype), centered)


class Standard(NamedTuple):
    """Means and factors of the columns, and the data in these units, not formed."""

    mean: np.ndarray
    factors: np.ndarray
    data: Data


def standardize(X: Data, weights, *, by_column: bool | str) -> Standard:
    """X centred, its columns with unit variance each or, with one factor, on average.

    ``by_column`` "auto" is by column but for principal components, whose variances are what they
    mean: unit variances would give the least of them the weight of the first.
    Unit variance would make the few entries of a rare column huge, and a crowd of such columns
    drown the others; those are given unit size where they are not zero, up to one factor for
    all. With more columns than rows it is the eigenvalues of the covariance that are not zero
    that have mean 1. Columns that do not vary, but for rounding, have the factor zero.
    """
    mean, sd, varying, centered = column_statistics(X, weights)
    unit = np.where(varying, sd, 1.0)
    if by_column == "auto":
        by_column = not are_components(centered, unit, varying, weights)
    if by_column:
        kurtosis = column_kurtosis(centered, unit, weights)
        scale = unit * np.sqrt(np.maximum(kurtosis / RARE, 1.0))
    else:
        scale = np.full(len(unit), unit.max(where=varying, initial=0.0) or 1.0)
    factors = np.where(varying, 1 / scale, 0.0)
    n_varying = max(varying.sum(), 1)
    size = np.sqrt(np.sum((sd * factors) ** 2) / n_varying) or 1.0
    factors *= np.sqrt(min(1.0, weights.sum() / n_varying)) / size
    return Standard(mean, factors, centered.scaled(factors))


def are_components(centered: Data, unit, varying, weights) -> bool:
    """Whether columns are principal components: of falling variance, and uncorrelated.

    Columns that were measured are hardly ever sorted so, and then no product is needed. The others
    have correlations R, and R v = v for any v where they are components.
    """
    if np.any(np.diff(unit[varying]) > 0):
        return False
    v = np.random.default_rng(0).standard_normal((len(unit), 1)) * varying[:, None]
    Z = np.asarray(centered @ (v / unit[:, None]).astype(centered.dtype), dtype=float)
    mean = weights @ Z / weights.sum()
    weighed = (weights[:, None] * (Z - mean)).astype(centered.dtype)
    again = np.asarray(centered.T @ weighed, dtype=float) / unit[:, None] / weights.sum()
    away = np.where(varying[:, None], again - v, 0.0)
    return bool(np.abs(away).max() < np.finfo(centered.dtype).eps ** UNCORRELATED)


class RowSpace(NamedTuple):
    """X = T V' with V orthonormal and never formed: T (n, r), and V = X' combinations (n, r)."""

    T: np.ndarray
    combinations: np.ndarray


def row_space(X: Data) -> RowSpace:
    """The rows of a wide X in an orthonormal basis of their span, from X X'."""
    values, U = np.linalg.eigh(X.dual_gram())
    kept = above_rounding(values, X.dtype)
    roots = np.sqrt(values[kept])
    return RowSpace(U[:, kept] * roots, U[:, kept] / roots)


def column_deviations(X: Data, weights) -> tuple[np.ndarray, np.ndarray]:
    """Root mean squares of the columns (d,) in float64, and deviations from their own means.

    X is centred, so that both agree but for the rounding of the means, which grows with the
    rows: only the latter are zero for a constant column. ``weights`` (n,) count rows.
    """
    unit = X.reduced(_units, join=np.maximum)
    sums, squares = X.reduced(partial(_sums, unit=np.where(unit > 0, unit, 1.0)), weights)
    mean, square = sums / weights.sum(), squares / weights.sum()
    return unit * np.sqrt(square), unit * np.sqrt(np.maximum(square - mean**2, 0.0))


def _is_stored_sparse(X):
    """Whether sums over the stored entries are all that is needed."""
    return X.is_sparse and isinstance(X, Centered) and isinstance(X.X, Matrix)


def _units(X):
    """Largest entries of the columns of dense rows, ones of sparse ones."""
    if _is_stored_sparse(X):
        return np.ones(X.n_features)
    top = np.zeros(X.n_features)
    for block in X.dense_blocks():
        np.maximum(top, np.abs(block).max(axis=0, initial=0), out=top)
    return top


def _sums(X, weights, unit):
    """Weighted sums (2, d) of the entries and of their squares, in units of the columns.

    So no square overflows or vanishes, whatever the scale of the data.
    """
    if _is_stored_sparse(X):
        sums, squares = _sparse_sums(X.X.X, X.mean.astype(float), weights)
        return np.stack([sums / unit, squares / unit**2])
    total = np.zeros((2, X.n_features))
    for rows, block in placed(X.dense_blocks()):
        scaled = block / unit
        total[0] += weights[rows] @ scaled
        total[1] += weights[rows] @ scaled**2
    return total


def column_kurtosis(X: Data, spread, weights) -> np.ndarray:
    """Mean fourth powers of the columns (d,) in units of their spread; X is centred."""
    return X.reduced(partial(_fourth_powers, spread=spread), weights) / weights.sum()


def _fourth_powers(X, weights, spread):
    """Weighted sum of the fourth powers down the columns (d,)."""
    if _is_stored_sparse(X):
        return _sparse_fourth_powers(X.X.X, X.mean.astype(float), spread, weights)
    total = np.zeros(X.n_features)
    for rows, block in placed(X.dense_blocks()):
        squares = (block / spread) ** 2
        total += weights[rows] @ squares**2
    return total


def _sparse_fourth_powers(X, mean, spread, weights):
    """Weighted sum of ((x - mu) / s)^4 down the columns, at the cost of the stored entries."""
    stored = X.tocoo()
    rows, columns = stored.coords
    powers = ((stored.data - mean[columns]) / spread[columns]) ** 4
    inside = np.bincount(columns, weights[rows] * powers, len(mean))
    elsewhere = weights.sum() - np.bincount(columns, weights[rows], len(mean))
    return inside + elsewhere * (mean / spread) ** 4


def _sparse_sums(X, mean, weights):
    """The same sums of x - mu, without units, at the cost of the stored entries."""
    stored = X.tocoo()
    rows, columns = stored.coords
    gaps, counts = stored.data - mean[columns], weights[rows]
    elsewhere = weights.sum() - np.bincount(columns, counts, len(mean))
    sums = np.bincount(columns, counts * gaps, len(mean)) - elsewhere * mean
    squares = np.bincount(columns, counts * gaps**2, len(mean)) + elsewhere * mean**2
    return sums, squares
