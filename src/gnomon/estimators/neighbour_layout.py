"""A picture of a map of many dimensions: rows that are near on the map are near in the plane."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import orthogonal_procrustes
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from gnomon.estimators._door import (
    by_rows,
    check_integer,
    check_real,
    forget_fit,
    repeatable,
)
from gnomon.estimators.links import NEIGHBOURS
from gnomon.exceptions import NumericalError
from gnomon.typing import OutputsLike, RowsLike, SeedLike

# What the plane of a picture shows: two axes of the map, or all of them by their neighbours.
LAYOUTS = ("axes", NEIGHBOURS)

# t-SNE starts this small, as scikit-learn's own start from principal components does: rows then
# find their neighbours before they repel each other.
START = 1e-4
# Laid-out rows between which a new one is placed: with one it would lie on another row, with
# many between groups that have nothing between them.
BETWEEN = 5
# Draws from the posterior of a row, in pairs of opposite sign: a deviation of their positions is
# right within a sixth or so.
DRAWS = 20
# No more than this share of the rows counts as neighbours of one: small tables have small groups.
LARGEST_SHARE = 0.1
# Of a few dozen rows so many do nevertheless; t-SNE falls apart with fewer.
LEAST_PERPLEXITY = 5.0
# Fewer rows have no neighbourhoods to keep: they lie as on the first two axes.
FEWEST = 8


class NeighbourLayout(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Two dimensions for a map that has more: rows near each other on the map stay near.

    The layout is t-SNE [1]_ of the coordinates of a map, started from its first two axes and
    turned back towards them at the end, so that it has no chance in it and keeps the orientation
    of the map. It shows which rows are neighbours on the whole map, which no two axes can; how
    far groups are from each other, how large they are and where an axis points it does not show.

    Parameters
    ----------
    perplexity : float, default=30.0
        How many neighbours of a row the layout keeps near it, softly counted; in small tables
        a tenth of the rows, or five.
    max_rows : int, default=5000
        Rows that are laid out; of more a sample is, and the others are placed among them.
    random_state : int, RandomState instance, Generator or None, default=None
        Which rows are laid out where there are more. None stands for 0, so that two fits agree.

    Attributes
    ----------
    rows_ : ndarray of shape (n_laid_out, n_features)
        Coordinates on the map of the rows that are laid out, each different.
    positions_ : ndarray of shape (n_laid_out, 2)
        Where they lie in the plane.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    gnomon.displays.EmbeddingDisplay : Draws it, with ``layout="neighbours"``.

    Notes
    -----
    Rows that were not laid out lie between the five that are nearest to them on the map, nearer
    to the nearer ones. A row that is unlike all of them still lies among them: what `outliers`
    says of it is not seen here.

    References
    ----------
    .. [1] L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", Journal of Machine
       Learning Research 9 (2008), 2579-2605.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from gnomon import SPPCA, NeighbourLayout
    >>> X, y = load_digits(return_X_y=True)
    >>> y[100:] = -1
    >>> Z = SPPCA(10).fit(X[:300], y[:300]).transform(X)
    >>> layout = NeighbourLayout().fit(Z[:300])
    >>> layout.transform(Z[300:]).shape
    (1497, 2)
    """

    def __init__(
        self,
        perplexity: float = 30.0,
        *,
        max_rows: int = 5000,
        random_state: SeedLike = None,
    ) -> None:
        self.perplexity = perplexity
        self.max_rows = max_rows
        self.random_state = random_state

    def __sklearn_is_fitted__(self):
        """Whether a fit came to its end."""
        return hasattr(self, "positions_")

    def fit(self, X: RowsLike, y: OutputsLike = None) -> Self:
        """Lay out the rows of a map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Coordinates of the rows, as ``transform`` of a model gives them, the leading axes
            first.
        y : None
            For scikit-learn.

        Returns
        -------
        self : NeighbourLayout
        """
        perplexity = check_real("perplexity", self.perplexity, low=1.0)
        most = check_integer("max_rows", self.max_rows, low=FEWEST)
        forget_fit(self)
        X = validate_data(self, X, dtype=float, ensure_min_samples=2)
        _refuse_large(X)
        rows = np.unique(X, axis=0)
        if len(rows) > most:
            chosen = repeatable(self.random_state).choice(len(rows), most, replace=False)
            rows = rows[np.sort(chosen)]
        self.rows_ = rows
        self.positions_ = _laid_out(rows, perplexity)
        self._n_features_out = 2
        return self

    @by_rows
    def transform(self, X: RowsLike) -> np.ndarray:
        """Positions of rows in the plane: of those laid out their own, of others between these.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Coordinates on the map.

        Returns
        -------
        P : ndarray of shape (n_samples, 2)
        """
        return self._place(self._read(X))

    def covariance(self, X: RowsLike, covariance: ArrayLike) -> np.ndarray:
        """Covariances of the positions of rows whose coordinates on the map are not certain.

        Twenty draws from the posterior of a row are placed as new rows are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Coordinates on the map.
        covariance : ndarray of shape (n_features, n_features) or \
                (n_samples, n_features, n_features)
            Their posterior covariance, one for all or one for each.

        Returns
        -------
        C : ndarray of shape (n_samples, 2, 2)
        """
        X = self._read(X)
        roots = _roots(np.asarray(covariance, dtype=float))
        half = np.random.default_rng(0).standard_normal((DRAWS // 2, X.shape[1]))
        draws = np.array([self._place(X + roots @ e) for e in (*half, *-half)])
        draws -= draws.mean(axis=0)
        return np.einsum("kni,knj->nij", draws, draws) / (DRAWS - 1)

    def _read(self, X):
        check_is_fitted(self)
        return validate_data(self, X, dtype=float, reset=False)

    def _place(self, X):
        """Weighted means of the nearest positions, by the inverse squares of the distances."""
        size = min(BETWEEN, len(self.rows_))
        nearest = NearestNeighbors(n_neighbors=size, algorithm="brute").fit(self.rows_)
        distances, at = nearest.kneighbors(X)
        least = np.maximum(distances[:, :1], np.finfo(float).tiny)
        weights = (least / np.maximum(distances, least)) ** 2
        weights[distances[:, 0] == 0, 1:] = 0.0
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("nk,nkj->nj", weights, self.positions_[at])


def _refuse_large(X):
    """Raise where distances of rows, which are sums of squares, would not be numbers."""
    with np.errstate(over="ignore"):
        if not np.isfinite(np.sum(np.square(2 * X.max(axis=0)) + np.square(2 * X.min(axis=0)))):
            raise NumericalError(
                "X has entries whose squares leave the range of numbers; rescale X"
            )


def _laid_out(rows, perplexity):
    """Positions of different rows, by t-SNE from the first axes and turned back to them."""
    start = _on_axes(rows, slice(2))
    if len(rows) < FEWEST:
        return start
    if not start.any():
        start = _on_axes(rows, np.flatnonzero(np.ptp(rows, axis=0))[:2])
    scale = start.std(axis=0).max() or 1.0
    most = max(LARGEST_SHARE * len(rows), LEAST_PERPLEXITY)
    perplexity = min(perplexity, most, (len(rows) - 1) / 3)
    tsne = TSNE(2, init=start * (START / scale), perplexity=perplexity, random_state=0)
    # On a busy machine threads that wait for each other take ten times as long.
    with threadpool_limits(1):
        # In single precision: by a power of two rows of any unit are the same there.
        found = tsne.fit_transform(np.ldexp(rows, -np.frexp(np.abs(rows).max())[1])).astype(float)
    turn, _ = orthogonal_procrustes(found - found.mean(axis=0), start)
    return (found - found.mean(axis=0)) @ turn


def _on_axes(rows, axes):
    """Rows on one or two of their axes, about their mean."""
    leading = rows[:, axes] - rows[:, axes].mean(axis=0)
    return np.pad(leading, ((0, 0), (0, 2 - leading.shape[1])))


def _roots(covariance):
    """Symmetric square roots of covariances, which rounding may have left slightly indefinite."""
    values, vectors = np.linalg.eigh(covariance)
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return scaled @ np.swapaxes(vectors, -1, -2)
