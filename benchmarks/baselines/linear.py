"""A linear map as a transformer: what all baselines share."""

from sklearn.base import BaseEstimator, TransformerMixin


class LinearMap(TransformerMixin, BaseEstimator):
    """Subtracts ``mean_`` and multiplies by ``map_`` (d, q)."""

    def __init__(self, n_components=2):
        self.n_components = n_components

    def transform(self, X):
        return (X - self.mean_) @ self.map_
