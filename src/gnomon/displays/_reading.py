"""What displays ask of a fitted estimator, alone or at the end of a pipeline."""

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def last_step(estimator, X=None):
    """The model at the end of a pipeline, and X as that model sees it."""
    check_is_fitted(estimator)
    if not isinstance(estimator, Pipeline):
        return estimator, X
    before = estimator[:-1]
    if X is not None and len(before) > 0:
        X = before.transform(X)
    return estimator[-1], X


def embed(estimator, X) -> np.ndarray:
    """The embedding as a float array (n, q)."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "transform"):
        raise TypeError(f"estimator {type(estimator).__name__} has no transform")
    Z = estimator.transform(X)
    Z = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
    return Z.astype(float, copy=False)


def posterior_covariance(estimator, X):
    """Covariances (n, q, q) of the embedded points; None where the model has none."""
    model, X = last_step(estimator, X)
    if not hasattr(model, "posterior"):
        return None
    return np.asarray(model.posterior(X).covariance, dtype=float)


def feature_names(estimator, n_features):
    """Names of the features that the model sees; x0, x1, ... where they have none."""
    model, _ = last_step(estimator)
    names = getattr(model, "feature_names_in_", None)
    if names is None and isinstance(estimator, Pipeline) and len(estimator) > 1:
        names = _names_out(estimator[:-1])
    if names is None or len(names) != n_features:
        names = [f"x{j}" for j in range(n_features)]
    return np.asarray(names, dtype=object)


def _names_out(steps):
    try:
        return steps.get_feature_names_out()
    except (AttributeError, ValueError):
        return None
