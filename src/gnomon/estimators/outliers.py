"""Rows far from the rest: within the map (T²), from the map (Q), and by their log density.

    T²  Hotelling's: distance from the mean within the map, in units of the model's variances
    Q   squared distance of the row from the map, the squared prediction error of chemometrics

The squared Mahalanobis distance of a row, of which its log density is minus a half up to a
constant, is T² + Q / noise variance.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, f
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import check_real
from gnomon.estimators.ppca import PPCA
from gnomon.estimators.sppca import SPPCA
from gnomon.stats import gaussian
from gnomon.typing import RowsLike

# Models whose rows are independent draws of one Gaussian.
OF_ONE_GAUSSIAN = (PPCA, SPPCA)
# Quartiles of fewer rows say next to nothing of a limit.
LEAST_ROWS = 10
# In distances between the quartiles: a normal number lies further out once in 40,000 times.
FAR = 3.0


class Outliers(NamedTuple):
    """How far every row lies from the rest, and how far is unusual.

    Attributes
    ----------
    t2, q, log_density : ndarray of shape (n_samples,)
        Hotelling's T², the squared distance to the map, and the log density.
    t2_limit, q_limit : ndarray of shape (n_levels,)
        What a usual row stays below with the probability of each level.
    """

    t2: np.ndarray
    q: np.ndarray
    log_density: np.ndarray
    t2_limit: np.ndarray
    q_limit: np.ndarray


class Contributions(NamedTuple):
    """What each column adds to the distances of a row; the sum over columns is the distance.

    Attributes
    ----------
    t2, q : ndarray of shape (n_samples, n_features)
    """

    t2: np.ndarray
    q: np.ndarray


def outliers(
    model: Any, X: RowsLike, *, levels: Sequence[float] = (0.95, 0.99), reference: RowsLike = None
) -> Outliers:
    """Distances of rows within the map and from it, with their limits.

    Parameters
    ----------
    model : PPCA or SPPCA, or Pipeline that ends in one
        A fitted linear Gaussian model.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows. Of rows with NaN the observed entries count.
    levels : sequence of float, default=(0.95, 0.99)
        Probabilities with which a usual row stays below the limits.
    reference : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
        Usual rows that the limits are taken from; X itself if None. Pass the rows of the fit to
        judge new rows.

    Returns
    -------
    outliers : Outliers
        Named tuple (t2, q, log_density, t2_limit, q_limit).

    See Also
    --------
    outlier_contributions : Which columns make a row unusual.

    Notes
    -----
    The limit of T² is q (n² - 1) / (n (n - q)) F(q, n - q) for n reference rows and q components,
    which is that of a new row. The limit of Q is Box's [1]_: g chi²(h), with the mean and the
    variance of Q over the reference rows, as usual in chemometrics [2]_; rows far beyond the
    quartiles take no part, so that gross outliers do not hide the others.

    References
    ----------
    .. [1] G. E. P. Box, "Some theorems on quadratic forms applied in the study of analysis of
       variance problems", Annals of Mathematical Statistics 25 (1954), 290-302.
    .. [2] P. Nomikos and J. F. MacGregor, "Multivariate SPC charts for monitoring batch
       processes", Technometrics 37 (1995), 41-59.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PPCA, outliers
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(200, 6))
    >>> model = PPCA(n_components=2).fit(X)
    >>> X[7, 3] += 2
    >>> found = outliers(model, X)
    >>> int(np.argmax(found.q / found.q_limit[1]))
    7
    """
    model, X, usual = _unwrapped(model, X, reference)
    levels = np.array([check_real("levels", level, low=0, high=1) for level in levels])  # type: ignore[assignment]
    log_density, (t2, q) = model.score_samples(X), model._distances(model._read(X))
    across = q if usual is None else model._distances(model._read(usual)).q
    n, least = len(across), max(LEAST_ROWS, len(model.components_) + 1)
    if n < least:
        raise ValueError(
            f"reference has {n} rows; limits need at least {least}: pass those of the fit"
        )
    limits = _t2_limit(len(model.components_), n, levels), _q_limit(across, levels)
    return Outliers(t2, q, log_density, *limits)


def outlier_contributions(model: Any, X: RowsLike) -> Contributions:
    """What each column adds to the distances of every row, within the map and from it.

    Parameters
    ----------
    model : PPCA or SPPCA, or Pipeline that ends in one
        A fitted linear Gaussian model.
    X : array-like of shape (n_samples, n_features)
        Rows, a few at a time: the result has as many entries. A gap adds nothing.

    Returns
    -------
    contributions : Contributions
        Named tuple (t2, q) of arrays of shape (n_samples, n_features). Parts of T² may be
        negative; where a row has no gaps they add up to its distances.

    See Also
    --------
    outliers : The distances and their limits.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PPCA, outlier_contributions
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(200, 6))
    >>> model = PPCA(n_components=2).fit(X)
    >>> X[7, 3] += 2
    >>> int(np.argmax(outlier_contributions(model, X[7:8]).q))
    3
    """
    model, X, _ = _unwrapped(model, X, None)
    X = model._read(X)
    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    gaps = np.isnan(rows)
    filled = model.impute(rows) if gaps.any() else rows
    parts = gaussian.distance_parts(filled - model.mean_, *model._view())
    return Contributions(*(np.where(gaps, 0.0, part) for part in parts))


def _unwrapped(model, X, reference):
    """The model at the end of a pipeline, and rows as it takes them."""
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        before, model = model[:-1], model[-1]
        X, reference = (rows if rows is None else before.transform(rows) for rows in (X, reference))
    if not isinstance(model, OF_ONE_GAUSSIAN):
        raise TypeError(f"model is {type(model).__name__}; accepted are PPCA and SPPCA")
    return model, X, reference


def _t2_limit(q, n, levels):
    return q * (n**2 - 1) / (n * (n - q)) * f.ppf(levels, q, n - q)


def _q_limit(q, levels):
    usual = q[q <= _far_beyond(q)]
    mean, variance = usual.mean(), max(usual.var(), np.finfo(float).tiny)
    weight, freedom = variance / (2 * mean or 1.0), 2 * mean**2 / variance
    return weight * chi2.ppf(levels, max(freedom, np.finfo(float).tiny))


def _far_beyond(q):
    """A bound from the quartiles, whose cube roots are nearly normal."""
    low, middle, high = np.cbrt(np.quantile(q, [0.25, 0.5, 0.75]))
    return (middle + FAR * (high - low)) ** 3
