"""What all linear Gaussian estimators share: x = mean + W z + noise.

A subclass fits ``components_`` (W', of shape (q, d)), ``mean_`` and ``noise_variance_``;
everything here follows from these. NaN marks a missing value.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import (
    TakesRows,
    by_rows,
    check_dense,
    check_integer,
    generator,
    in_memory_by_rows,
)
from gnomon.linalg.data import as_data, has_gaps
from gnomon.models.gaussian import gaps, patterns
from gnomon.stats import gaussian
from gnomon.typing import OutputsLike, RowsLike, SeedLike


class LatentPosterior(NamedTuple):
    """Posterior of the latent variables, one row per sample.

    Attributes
    ----------
    mean : ndarray of shape (n_samples, n_components)
    covariance : ndarray of shape (n_samples, n_components, n_components)
    """

    mean: np.ndarray
    covariance: np.ndarray


class LinearGaussianModel(
    TakesRows, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Transform, score, impute and sample with fitted loadings, mean and noise variance."""

    _takes_gaps = True

    @by_rows
    def transform(self, X: RowsLike) -> np.ndarray:
        """Posterior mean of the latent variables of every row, E[z | x].

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to project. NaN marks missing values.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        return self._latent_means(self._read(X))

    @by_rows
    def posterior(self, X: RowsLike) -> LatentPosterior:
        """Posterior of the latent variables of every row, mean and covariance of z given x.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to project. NaN marks missing values, which widen the posterior.

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components).
        """
        return self._latent_posterior(self._read(X))

    @in_memory_by_rows
    def inverse_transform(self, Z: RowsLike) -> np.ndarray:
        """Mean of the rows that have these latent variables, E[x | z].

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        Z = np.asarray(Z)
        q = self.components_.shape[0]
        if Z.ndim != 2 or Z.shape[1] != q:
            raise ValueError(f"Z has shape {Z.shape}; accepted is (n_samples, {q})")
        return Z @ self.components_ + self.mean_

    @by_rows
    def score_samples(self, X: RowsLike) -> np.ndarray:
        """Log density of every row, of its observed entries where some are missing.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        X = self._read(X)
        if has_gaps(X):
            return gaps.log_density(self._state(), self._patterns(X))
        return gaussian.log_density(self._center(X), *self._view())

    def score(self, X: RowsLike, y: OutputsLike = None) -> float:
        """Average log density of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        score : float
        """
        return float(np.mean(self.score_samples(X)))

    @in_memory_by_rows
    def impute(self, X: RowsLike, *, return_std: bool = False) -> Any:
        """Rows with their missing values replaced by their means given the observed ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with NaN for missing values.
        return_std : bool, default=False
            Whether to return the standard deviations of the filled values too.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        std : ndarray of shape (n_samples, n_features)
            Zero where the value was observed. Only if ``return_std``.
        """
        X = self._read(X)
        check_dense(X)
        values, deviations = gaps.fill(self._content_state(), self._patterns(X))
        values = np.where(np.isnan(X), values.astype(X.dtype), X)
        return (values, deviations) if return_std else values

    def sample(self, n_samples: int = 1, *, random_state: SeedLike = None) -> np.ndarray:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance, Generator or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, low=1)
        return gaussian.sample(generator(random_state), n_samples, self.mean_, *self._view())

    def get_covariance(self) -> np.ndarray:
        """Covariance of a row under the model.

        Returns
        -------
        covariance : ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return gaussian.covariance(*self._view())

    def get_precision(self) -> np.ndarray:
        """Inverse of the covariance of a row under the model.

        Returns
        -------
        precision : ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        return gaussian.precision(*self._view())

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def _latent_means(self, X):
        if has_gaps(X):
            Z = gaps.latent_means(self._state(), self._patterns(X))
            return Z.astype(X.dtype, copy=False)
        weights = gaussian.latent_posterior(*self._view()).weights
        return self._center(X) @ weights.astype(X.dtype)

    def _latent_posterior(self, X):
        if has_gaps(X):
            return LatentPosterior(*gaps.posterior(self._state(), self._patterns(X)))
        weights, covariance = gaussian.latent_posterior(*self._view())
        mean = np.asarray(self._center(X) @ weights, dtype=float)
        return LatentPosterior(mean, np.broadcast_to(covariance, (len(mean), *covariance.shape)))

    def _distances(self, X):
        if has_gaps(X):
            return gaps.distances(self._state(), self._patterns(X))
        return gaussian.distances(self._center(X), *self._view())

    def _view(self):
        return self.components_.T.astype(float), self.noise_variance_

    def _center(self, X):
        return as_data(X).less_mean(self.mean_)

    def _state(self):
        W, sigma2 = self._view()
        return gaps.State(W, np.asarray(self.mean_, dtype=float), np.array([sigma2]))

    def _content_state(self):
        """The model by which gaps are filled."""
        return self._state()

    def _patterns(self, X):
        groups = np.zeros(X.shape[1], dtype=int)
        return patterns.group_rows(np.asarray(X, dtype=float), groups, shift=self.mean_)
