"""How far loadings would move with other rows."""

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.base import clone

from gnomon.displays._reading import last_step
from gnomon.estimators import n_rows, take_rows


def bootstrap_sd(estimator, X, y, n_bootstrap, random_state) -> np.ndarray:
    """Standard deviations (q, d) of the loadings over fits to rows drawn with replacement.

    Each fit is turned onto the given one first: axes may turn or change sign without any change
    of the subspace, and that is no uncertainty of a loading.
    """
    rng = np.random.default_rng(random_state)
    reference = last_step(estimator)[0].components_
    draws = []
    for _ in range(n_bootstrap):
        rows = rng.integers(n_rows(X), size=n_rows(X))
        labels = None if y is None else take_rows(y, rows)
        model, _ = last_step(clone(estimator).fit(take_rows(X, rows), labels))
        draws.append(_turned(model.components_, reference))
    return np.std(draws, axis=0, ddof=1)


def _turned(loadings, reference):
    if loadings.shape != reference.shape:
        raise ValueError(
            f"a fit to resampled rows has {len(loadings)} components in place of "
            f"{len(reference)}; give n_components as a number for n_bootstrap"
        )
    turn, _ = orthogonal_procrustes(loadings.T, reference.T)
    return (loadings.T @ turn).T
