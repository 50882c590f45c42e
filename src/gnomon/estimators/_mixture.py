"""What follows from a fitted projection and a mixture of Gaussians per class in it."""

import numpy as np
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import read_data
from gnomon.linalg.data import Centered, as_data
from gnomon.stats.mixture import Mixture, by_class, log_joint, log_sum


class MixtureProjection(ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin):
    """Transform, predict and judge rows with fitted components and Gaussians."""

    def transform(self, X):
        """Coordinates of the rows in the subspace.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = read_data(self, X, fitting=False, allow_nan=False)
        return np.asarray(Centered(as_data(X), self.mean_.astype(X.dtype)) @ self.components_.T)

    def predict_proba(self, X):
        """Probabilities of the classes given the coordinates of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X):
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        L = self._class_densities(X)
        return (L - log_sum(L)).T

    def predict(self, X):
        """The most probable class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        best = np.argmax(self._class_densities(X), axis=0)
        return self.classes_[best]

    def responsibilities(self, X):
        """Probabilities of the Gaussians given the coordinates of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_gaussians_total)
            In the order of `gaussian_classes_`.
        """
        joint = log_joint(self._mixture(), np.asarray(self.transform(X), dtype=float))
        return np.exp(joint - log_sum(joint)).T

    def density_quantile(self, X):
        """Share of training rows that lie where the mixture is thinner than at each row.

        A row of a class that was never labelled tends to fit none of the known ones: a value
        near 0 says that it lies where hardly any training row does.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        quantiles : ndarray of shape (n_samples,)
            Between 0 and 1.
        """
        values = log_sum(self._class_densities(X))
        return np.interp(
            values, self.density_quantiles_, np.linspace(0, 1, len(self.density_quantiles_))
        )

    @property
    def metric_(self):
        """Mahalanobis matrix of the distances between transformed rows (d, d)."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def __sklearn_tags__(self):
        """Sparse X and both float types are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _keep_state(self, state, standard, dtype):
        """Keep a state in standard units as components and Gaussians of X itself."""
        mixture = state.mixture
        self.mean_ = standard.mean.astype(dtype)
        self.components_ = np.ascontiguousarray((standard.factors[:, None] * state.P).T, dtype)
        self.class_weights_ = mixture.alpha
        self.gaussian_classes_ = mixture.owner
        self.weights_ = mixture.beta
        self.means_ = mixture.means
        self.covariances_ = mixture.covariances[mixture.form]

    def _class_densities(self, X):
        mixture = self._mixture()
        Z = np.asarray(self.transform(X), dtype=float)
        return by_class(mixture, log_joint(mixture, Z))

    def _mixture(self):
        check_is_fitted(self)
        return Mixture(
            self.gaussian_classes_,
            np.arange(len(self.gaussian_classes_)),
            self.class_weights_,
            self.weights_,
            self.means_,
            self.covariances_,
        )
