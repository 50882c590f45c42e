"""How much of the variance of some columns one component explains by itself."""

import numpy as np
from scipy import sparse

from gnomon.displays._style import read_labels


def explained_shares(X, Z) -> np.ndarray:
    """Share (q,) of the variance of X that a regression on each column of Z alone explains.

    For uncorrelated columns the shares add up; NaN in X is left out pair by pair. Any
    embedding has these shares, also one that comes from no model of variance.
    """
    X, observed = _observed(X)
    counts = observed.sum(axis=0).reshape(-1, 1) if observed is not None else len(Z)
    Z = Z - Z.mean(axis=0)
    sums = (observed.T @ Z) if observed is not None else 0.0
    squares = (observed.T @ Z**2) if observed is not None else np.sum(Z**2, axis=0)
    x_sums = np.asarray(X.sum(axis=0)).reshape(-1, 1)
    # The product needs no centring: columns of X have mean zero, or Z has, where X is sparse.
    cross = X.T @ Z
    spread = np.maximum(squares - sums**2 / counts, np.finfo(float).tiny)
    total = np.asarray((X * X).sum(axis=0)).reshape(-1, 1) - x_sums**2 / counts
    return np.sum(cross**2 / spread, axis=0) / max(total.sum(), np.finfo(float).tiny)


def target_columns(y, n_samples):
    """Y as float columns with NaN where unlabelled: an indicator per class, or the numbers."""
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if values.ndim == 2 and values.shape[1] > 1:
        return values.astype(float)
    labels = read_labels(values, n_samples)
    if labels.classes is None:
        return labels.values[:, None]
    columns = (labels.codes[:, None] == np.arange(len(labels.classes.names))).astype(float)
    columns[~labels.labelled] = np.nan
    return columns


def _observed(X):
    """X with zeros for its gaps, centred where dense, and the mask of what is there."""
    if sparse.issparse(X):
        return sparse.csr_array(X), None
    X = np.asarray(X, dtype=float)
    observed = np.isfinite(X)
    counts = np.maximum(observed.sum(axis=0), 1)
    means = np.where(observed, X, 0.0).sum(axis=0) / counts
    X = np.where(observed, X - means, 0.0)
    return X, None if observed.all() else observed.astype(float)
