"""SPPCA as views and blocks, for the EM of [YYTKW06] on the rows themselves."""

import numpy as np

from gnomon.linalg.data import Data, Matrix, Weighted
from gnomon.models.gaussian.em import Block
from gnomon.models.sppca import State
from gnomon.stats.gaussian import View


def blocks(X: Data, Y, observed, weights=None) -> tuple[list[Block], np.ndarray]:
    """Labelled and unlabelled rows of centred X, and the mean of y over the labelled ones."""
    labelled = observed.all(axis=1) if observed.shape[1] else np.zeros(len(Y), dtype=bool)
    if not labelled.any():
        return [(X, None)], np.zeros(Y.shape[1])
    own = np.ones(len(Y)) if weights is None else weights
    mean = np.average(Y[labelled], axis=0, weights=own[labelled])
    outputs = Weighted(Matrix(Y[labelled] - mean), own[labelled])
    found: list[Block] = [(X.rows(labelled), outputs)]
    return found + ([] if labelled.all() else [(X.rows(~labelled), None)]), mean


def init(found: list[Block], q, rng) -> tuple[View, ...]:
    """Random loadings with half of the mean variance of a view, noise with the other half."""
    views = []
    for parts in zip(*found, strict=True):
        seen = [part for part in parts if part is not None]
        if seen:
            size = sum(part.n_samples * part.n_features for part in seen)
            variance = max(sum(part.squared_norm for part in seen) / size, np.finfo(float).tiny)
            W = rng.standard_normal((seen[0].n_features, q)) * np.sqrt(variance / (2 * q))
            views.append(View(W, variance / 2))
    return tuple(views)


def state(views, mean_y) -> State:
    """The views as a state; outputs that no row has keep loadings of zero."""
    c, q = len(mean_y), views[0].W.shape[1]
    outputs = views[1] if len(views) > 1 else View(np.zeros((c, q)), 1.0)
    return State(views[0].W, views[0].sigma2, outputs.W, np.full(c, outputs.sigma2), mean_y)
