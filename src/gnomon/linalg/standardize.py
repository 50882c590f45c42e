"""Columns of the data matrix in units of their own, and its rows in a basis of their span."""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Centered, Data, Matrix, Weighted, center, placed
from gnomon.linalg.solve import above_rounding

# A column with a kurtosis above this is rare: one that is 0 but in a share p of the rows has
# 1 / p, so it is one of which at most two rows in a hundred say something.
RARE = 50.0
# A column whose deviations are below so many roundings of its mean does not vary.
ROUNDINGS = 8


def varies(sd, mean, dtype=float) -> np.ndarray:
    """Which columns vary by more than the rounding of their means; one rule for all.

    The mean of a constant column, as one of 0.1, need not be that constant to the last bit.
    """
    return sd > ROUNDINGS * np.finfo(dtype).eps * np.abs(mean)


class Scaled(Data):
    """X diag(factors), never formed; a factor of zero leaves its column out."""

    def __init__(self, X: Data, factors):
        super().__init__(X.dtype, X.shape, X.n_samples)
        self.X, self.factors = X, np.asarray(factors, dtype=X.dtype)

    @property
    def is_sparse(self):
        """Whether a product costs less than its dense shape says."""
        return self.X.is_sparse

    def dense_blocks(self):
        """Runs of rows as arrays."""
        for block in self.X.dense_blocks():
            yield block * self.factors

    def rows(self, mask):
        """The rows that a mask or an index selects."""
        return Scaled(self.X.rows(mask), self.factors)

    def _matmat(self, B):
        return self.X @ (self.factors[:, None] * B.astype(self.dtype, copy=False))

    def _rmatmat(self, Z):
        return self.factors[:, None] * (self.X.T @ Z)


class Columns(NamedTuple):
    """Means and standard deviations of the columns, which of them vary, and X less the means.

    ``kurtosis`` is the mean fourth power of each column in units of its deviation, 0 without one.
    """

    mean: np.ndarray
    sd: np.ndarray
    varying: np.ndarray
    centered: Data
    kurtosis: np.ndarray


def column_statistics(X: Data, weights=None) -> Columns:
    """Means, deviations and variation of the columns of X, whose rows may have weights."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    mean, centered = center(Weighted(X, weights)) if np.ptp(weights) else center(X)
    centered = centered.X if isinstance(centered, Weighted) else centered
    sd, about, kurtosis = column_spread(centered, weights)
    return Columns(mean, sd, varies(about, mean, X.dtype), centered, kurtosis)


class Standard(NamedTuple):
    """Means and factors of the columns, and the data in these units, not formed."""

    mean: np.ndarray
    factors: np.ndarray
    data: Data


def standardize(X: Data, weights, *, by_column: bool) -> Standard:
    """X centred, its columns with unit variance each or, with one factor, on average.

    Unit variance would make the few entries of a rare column huge, and a crowd of such columns
    drown the others; those are given unit size where they are not zero, up to one factor for
    all. With more columns than rows it is the eigenvalues of the covariance that are not zero
    that have mean 1. Columns that do not vary, but for rounding, have the factor zero.
    """
    mean, sd, varying, centered, kurtosis = column_statistics(X, weights)
    unit = np.where(varying, sd, 1.0)
    if by_column:
        scale = unit * np.sqrt(np.maximum(kurtosis / RARE, 1.0))
    else:
        scale = np.full(len(unit), unit.max(where=varying, initial=0.0) or 1.0)
    factors = np.where(varying, 1 / scale, 0.0)
    n_varying = max(varying.sum(), 1)
    size = np.sqrt(np.sum((sd * factors) ** 2) / n_varying) or 1.0
    factors *= np.sqrt(min(1.0, weights.sum() / n_varying)) / size
    return Standard(mean, factors, Scaled(centered, factors))


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


class Spread(NamedTuple):
    """Root mean squares of centred columns (d,), deviations from their own means, kurtosis."""

    sd: np.ndarray
    about: np.ndarray
    kurtosis: np.ndarray


def column_spread(X: Data, weights) -> Spread:
    """How the columns of X spread, in float64 and one pass over the rows; ``weights`` count them.

    X is centred, so that both deviations agree but for the rounding of the means, which grows
    with the rows: only those from their own means are zero for a constant column.
    """
    if X.is_sparse and isinstance(X, Centered) and isinstance(X.X, Matrix):
        unit, sums = _sparse_sums(X.X.X, X.mean.astype(float), weights)
    else:
        unit, sums = _dense_sums(X, weights)
    mean, square, fourth = sums / weights.sum()
    own = np.maximum(square - mean**2, 0.0)
    kurtosis = fourth / np.where(square > 0, square, 1.0) ** 2
    return Spread(unit * np.sqrt(square), unit * np.sqrt(own), kurtosis)


# Powers of the entries that spread is told by.
POWERS = np.array([1, 2, 4])[:, None]


def _dense_sums(X, weights):
    """Largest entries of the columns, and weighted sums of entries, squares and fourth powers.

    These are in units of the largest, which grow on the way: so no power overflows or vanishes,
    whatever the scale of the data.
    """
    top, sums = np.zeros(X.n_features), np.zeros((3, X.n_features))
    for rows, block in placed(X.dense_blocks()):
        before, top = top, np.maximum(top, np.abs(block).max(axis=0, initial=0))
        unit = np.where(top > 0, top, 1.0)
        sums *= (before / unit) ** POWERS
        scaled = block / unit
        squares = scaled**2
        sums += [weights[rows] @ part for part in (scaled, squares, squares**2)]
    return top, sums


def _sparse_sums(X, mean, weights):
    """The same of x - mu, in units of the largest, at the cost of the stored entries."""
    stored = X.tocoo()
    rows, columns = stored.coords
    gaps, counts = stored.data - mean[columns], weights[rows]
    top = np.abs(mean)
    np.maximum.at(top, columns, np.abs(gaps))
    unit = np.where(top > 0, top, 1.0)
    gaps, elsewhere = gaps / unit[columns], weights.sum() - _sums(columns, counts, len(mean))
    inside = [_sums(columns, counts * gaps**power, len(mean)) for power in POWERS[:, 0]]
    return top, np.array(inside) + elsewhere * (-mean / unit) ** POWERS


def _sums(columns, values, d):
    return np.bincount(columns, values, d)
