"""What a fit of DCA-GM reports: coordinates with a meaning, and how dense rows lie."""

import numpy as np
from scipy.linalg import eigh

from gnomon.linalg.solve import fix_signs
from gnomon.models.dca_gm import Settings, State
from gnomon.stats.known_rows import Labelled, Rows
from gnomon.stats.mixture import class_covariances, log_joint, log_sum, moved

METRICS = ("within", "unit", "raw")


def reported(state: State, rows: Rows, settings: Settings, metric: str) -> State:
    """The state in the coordinates wanted.

    "within": the average covariance of the classes is I; "unit": that of all rows is; both
    with axes in order of how far they part the classes. "raw": as they are.
    """
    if metric == "raw":
        return state
    K = (state.Z.T * rows.weights) @ state.Z / rows.weights.sum()
    if not settings.as_printed:
        K += settings.shrinkage * state.P.T @ state.P
    average = np.tensordot(state.mixture.alpha, class_covariances(state.mixture), 1)
    values, V = eigh(K, average)
    V = V[:, ::-1] if metric == "within" else (V / np.sqrt(values))[:, ::-1]
    P = state.P @ V
    signs = np.where(np.sum(fix_signs(P) * P, axis=0) < 0, -1.0, 1.0)
    V = V * signs
    return state._replace(P=P * signs, Z=state.Z @ V, mixture=moved(state.mixture, V))


def density_quantiles(state: State, rows: Rows, n_quantiles=1001) -> np.ndarray:
    """Quantiles of log p(z) over the labelled rows, at equal steps from 0 to 1."""
    densities, weights = [], []
    for block in rows.blocks:
        if isinstance(block, Labelled):
            joint = log_joint(state.mixture, state.Z[block.rows])
            densities.append(log_sum(joint))
            weights.append(block.weights)
    steps = np.linspace(0, 1, n_quantiles)
    values, w = np.concatenate(densities), np.concatenate(weights)
    return np.quantile(values, steps, weights=w, method="inverted_cdf")
