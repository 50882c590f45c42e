"""PPCA with the parameters, attributes and units of scikit-learn's PCA.

Its maximum likelihood has the principal axes, with variances over n in place of n - 1; the
posterior mean of z is the principal score, shrunk. Only these units are changed here.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from gnomon import PPCA

# Routes of PPCA by the names of scikit-learn's solvers.
SOLVERS = {
    "auto": "auto",
    "full": "auto",
    "covariance_eigh": "moments",
    "arpack": "subspace",
    "randomized": "subspace",
}


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """scikit-learn's PCA by a fit of PPCA."""

    def __init__(
        self,
        n_components=None,
        *,
        copy=True,
        whiten=False,
        svd_solver="auto",
        tol=0.0,
        iterated_power="auto",
        random_state=None,
    ):
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit PPCA and put what it found in the units of PCA."""
        size = self.n_components or min(np.shape(X))
        self.model_ = PPCA(size, solver=SOLVERS[self.svd_solver], random_state=0, tol=1e-12).fit(X)
        n = np.shape(X)[0]
        self.unit_ = n / (n - 1)
        W = self.model_.components_
        lengths = np.linalg.norm(W, axis=1)
        self.components_ = W / lengths[:, None]
        self.mean_ = self.model_.mean_
        self.noise_variance_ = self.unit_ * self.model_.noise_variance_
        self.explained_variance_ = (self.unit_ * lengths**2 + self.noise_variance_).astype(W.dtype)
        self.singular_values_ = np.sqrt((n - 1) * self.explained_variance_)
        total = np.trace(self.get_covariance())
        self.explained_variance_ratio_ = (self.explained_variance_ / total).astype(W.dtype)
        # Of a score, what is left of it in the posterior mean.
        self.shrinkage_ = (lengths * self.unit_ / self.explained_variance_).astype(W.dtype)
        self.n_components_ = len(W)
        self.n_features_in_, self.n_samples_ = W.shape[1], n
        if hasattr(self.model_, "feature_names_in_"):
            self.feature_names_in_ = self.model_.feature_names_in_
        return self

    @property
    def _n_features_out(self):
        return self.n_components_

    def _scale(self):
        white = np.sqrt(self.explained_variance_) if self.whiten else 1.0
        return self.shrinkage_ * white

    def transform(self, X):
        """Principal scores."""
        return self.model_.transform(X) / self._scale()

    def inverse_transform(self, Z):
        """Rows of these scores."""
        lengths = np.linalg.norm(self.model_.components_, axis=1)
        white = np.sqrt(self.explained_variance_) if self.whiten else 1.0
        return self.model_.inverse_transform(np.asarray(Z) * white / lengths)

    def get_covariance(self):
        """Of the model."""
        return self.unit_ * self.model_.get_covariance()

    def get_precision(self):
        """Its inverse."""
        return self.model_.get_precision() / self.unit_

    def score_samples(self, X):
        """Log densities, of the maximum likelihood."""
        return self.model_.score_samples(X)

    def score(self, X, y=None):
        """Their mean."""
        return self.model_.score(X)
