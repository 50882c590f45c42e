"""Outputs and latent variables given inputs, from the fitted attributes of a model of both.

A subclass fits, besides what `LinearGaussianModel` needs,

    projection_, latent_scale_      transform(X) = (X - mean) projection, z = that * latent_scale
    coef_, target_mean_, target_covariance_     y | x, in the columns of target_coding_
    target_components_, target_noise_variance_, latent_covariance_      z | x, y
"""

import numpy as np

from gnomon.estimators._base import LatentPosterior, LinearGaussianModel
from gnomon.estimators._targets import contrasts, read_like
from gnomon.linalg.data import has_gaps
from gnomon.models import sppca_prediction as given_inputs
from gnomon.models.gaussian import gaps
from gnomon.models.sppca import State


class ConditionalOutputs(LinearGaussianModel):
    """Conditional means and covariances where x, y or both have gaps."""

    def _rows(self, X):
        """X less its mean, gaps at their means given the rest of the row."""
        if has_gaps(X):
            X = gaps.fill(self._state(), self._patterns(X))[0].astype(X.dtype, copy=False)
        return self._center(X)

    def _read_outputs(self, y, n_samples):
        if y is not None:
            return read_like(y, n_samples, self.target_coding_)
        nothing = np.zeros((n_samples, len(self.target_mean_)))
        return nothing, nothing.astype(bool)

    def _outputs_given(self, X):
        """Mean (n, c) of the coded outputs, covariances (P, c, c), and which of them a row has."""
        mean = self._rows(X) @ self.coef_.astype(X.dtype) + self.target_mean_
        return (
            np.asarray(mean, dtype=float),
            *self._spread(X, self.coef_, self.target_covariance_),
        )

    def _spread(self, X, coef, covariance):
        """Covariances of (x - mean)' coef + noise where x has gaps."""
        if not has_gaps(X):
            return covariance[None], np.zeros(X.shape[0], dtype=int)
        gaps, pattern = np.unique(np.isnan(X), axis=0, return_inverse=True)
        found = given_inputs.Prediction(coef, np.zeros(coef.shape[1]), covariance)
        spread = given_inputs.spread_by_gaps(found, *self._view(), gaps.astype(float))
        return spread, pattern.ravel()

    def _log_odds(self, mean, covariances, pattern):
        codes = contrasts(len(self.target_coding_.classes))
        return given_inputs.class_log_odds(mean, covariances, pattern, codes)

    def _completed_posterior(self, X, Y, observed):
        """Posterior where outputs count by their completion; a known y replaces its prediction."""
        stretch = self._stretch()
        mean = np.asarray(self._rows(X) @ self.projection_, dtype=float)
        _, spread = given_inputs.stretched(mean, self.latent_covariance_, stretch)
        covariances, pattern = self._spread(X, self.projection_, spread)
        if observed.any():
            expected, spread, which = self._outputs_given(X)
            filled, _ = given_inputs.fill(expected, Y, observed, spread, which)
            surprise = (filled - expected) @ self.target_whitener_
            weights = self.target_components_.T / self.target_noise_variance_[:, None]
            mean = mean + surprise @ weights @ self.latent_covariance_ * stretch
        if len(covariances) == 1:
            covariances = np.broadcast_to(covariances[0], (len(mean), *covariances.shape[1:]))
            return LatentPosterior(mean, covariances)
        return LatentPosterior(mean, covariances[pattern])

    def _stretch(self):
        """Factors from the latent variables to the coordinates; an axis without any has one."""
        scale = np.asarray(self.latent_scale_, dtype=float)
        return 1 / np.where(scale > 0, scale, 1.0)

    def _sppca_state(self):
        return State(
            *self._view(),
            self.target_components_.T.astype(float),
            self.target_noise_variance_,
            self.target_mean_,
        )

    def _table(self, X, Y, observed):
        """Inputs and outputs side by side, with a noise level for every output."""
        d, c = X.shape[1], Y.shape[1]
        groups = np.concatenate([np.zeros(d, dtype=int), 1 + np.arange(c)])
        shift = np.concatenate([self.mean_, self.target_mean_])
        rows = np.hstack([X, np.where(observed, Y, np.nan)]).astype(float)
        return gaps.group_rows(rows, groups, shift=shift)
