"""Columns of the data matrix in units of their own, and its rows in a basis of their span."""

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
    mean, centered = center(X.weighted(weights)) if np.ptp(weights) else center(X)
    centered = centered.unweighted
    sd, about, kurtosis = column_spread(centered, weights)
    varying = varies(about, mean, X.dtype)
    _check_units(sd[varying], X.dtype)
    return Columns(mean, sd, varying, centered, kurtosis)


def _check_units(sd, dtype):
    """Raise where a column in units of its deviation would leave the range of numbers."""
    if sd.size and sd.min() < np.finfo(dtype).tiny:
        raise ValueError(
            f"X has a column that varies by {sd.min():.3g}, too little for numbers of {dtype}; "
            "rescale X"
        )


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
    mean, sd, varying, centered, kurtosis = column_statistics(X, weights)
    unit = np.where(varying, sd, 1.0)
    if by_column == "auto":
        by_column = not are_components(centered, unit, varying, weights)
    if by_column:
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

    def in_columns(self, P, X: Data) -> np.ndarray:
        """A projection of T as one of X."""
        return np.asarray(X.T @ (self.combinations @ P), dtype=float)


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
    unit, sums = X.reduced(_powers, weights, join=_joined)
    mean, square, fourth = sums / weights.sum()
    own = np.maximum(square - mean**2, 0.0)
    kurtosis = fourth / np.where(square > 0, square, 1.0) ** 2
    return Spread(unit * np.sqrt(square), unit * np.sqrt(own), kurtosis)


# Powers of the entries that spread is told by.
POWERS = np.array([1, 2, 4])[:, None]


class Powers(NamedTuple):
    """Largest entries of the columns, and weighted sums (3, d) of `POWERS` in units of these.

    So no power overflows or vanishes, whatever the scale of the data.
    """

    top: np.ndarray
    sums: np.ndarray


def _joined(a: Powers, b: Powers) -> Powers:
    """The same of the rows of both."""
    top = np.maximum(a.top, b.top)
    unit = np.where(top > 0, top, 1.0)
    return Powers(top, sum(part.sums * (part.top / unit) ** POWERS for part in (a, b)))


def _powers(X, weights) -> Powers:
    if X.is_sparse and isinstance(X, Centered) and isinstance(X.X, Matrix):
        return _sparse_powers(X.X.X, X.mean.astype(float), weights)
    found = Powers(np.zeros(X.n_features), np.zeros((3, X.n_features)))
    for rows, block in placed(X.dense_blocks()):
        found = _joined(found, _dense_powers(block, weights[rows]))
    return found


def _dense_powers(block, weights):
    if block.dtype == np.float32:
        # The powers of single precision are within the range of double precision as they are.
        top, scaled = np.ones(block.shape[1]), block.astype(float)
    else:
        top = np.abs(block).max(axis=0, initial=0)
        scaled = block / np.where(top > 0, top, 1.0)
    squares = scaled * scaled
    sums = [weights @ scaled, weights @ squares]
    np.square(squares, out=squares)
    return Powers(top, np.array([*sums, weights @ squares]))


def _sparse_powers(X, mean, weights):
    """The same of x - mu, at the cost of the stored entries."""
    stored = X.tocoo()
    rows, columns = stored.coords
    gaps, counts = stored.data - mean[columns], weights[rows]
    top = np.abs(mean)
    np.maximum.at(top, columns, np.abs(gaps))
    unit = np.where(top > 0, top, 1.0)
    gaps, elsewhere = gaps / unit[columns], _weight_elsewhere(rows, columns, weights, len(mean))
    inside = [np.bincount(columns, counts * gaps**power, len(mean)) for power in POWERS[:, 0]]
    return Powers(top, np.array(inside) + elsewhere * (-mean / unit) ** POWERS)


def _weight_elsewhere(rows, columns, weights, d):
    """Weight of the rows that have no entry in a column, none at all where every row has one.

    A difference of two sums would leave their rounding, of which the root is taken.
    """
    left = weights.sum() - np.bincount(columns, weights[rows], d)
    return np.where(np.bincount(columns, minlength=d) < len(weights), left, 0.0)
