"""How well a relational model foresees rows that it was not fitted to (see `relational`).

Axes that were turned to the rows of a fit look smoother on these than on others. Rows that
were held out tell by how much, and when to stop turning.
"""

from typing import Any, NamedTuple

import numpy as np

from gnomon.linalg.data import Data
from gnomon.linalg.lanczos import apply, lanczos, unit_rule
from gnomon.models.relational import STEPS, Relational, variances_at


class HeldOut(NamedTuple):
    """All rows X of a graph, centred as those of a fit, and S; the held-out ones are ``rows``.

    The last of it is a rule for their entries on the diagonal of a function of L: eigenvalues
    and weights (steps, m).
    """

    X: Data
    S: Any
    rows: np.ndarray
    norms: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray


def hold_out(X: Data, S, rows) -> HeldOut:
    """All rows of a graph, some of which are held out."""
    theta, weights = unit_rule(S, rows, STEPS)
    norms = X.rows(rows).row_squared_norms()
    return HeldOut(X, S, rows, norms, np.maximum(1.0 - theta, 0.0), weights)


def foresight(state: Relational, held: HeldOut, factors) -> np.ndarray:
    """Log density of each held-out row given all other rows, summed, for a times each factor."""
    (d, k), q, sigma2 = state.U.shape, len(state.a), state.sigma2
    scores = held.X @ state.U.astype(held.X.dtype)
    squares = scores[held.rows].astype(float) ** 2
    own = state.c[q:] + sigma2
    alone = np.sum(np.log(2 * np.pi * own) + squares[:, q:] / own)
    alone += np.sum(held.norms - squares.sum(axis=1)) / sigma2
    alone += len(held.rows) * (d - k) * np.log(2 * np.pi * sigma2)
    krylov = lanczos(held.S, scores[:, :q], STEPS)
    shrunk = (state._replace(a=factor * state.a) for factor in factors)
    return np.array([_smooth_density(each, krylov, held) for each in shrunk]) - 0.5 * alone


def _smooth_density(state, krylov, held):
    """The part of the smooth axes.

    With the precision P = v(L)^-1 of all scores s of an axis, that of one of them given the
    others is P_ii, and its distance from its mean is (P s)_i / P_ii.
    """
    precisions = np.einsum(
        "jm,jmq->mq", held.weights, 1.0 / variances_at(state, held.nodes[:, :, None])
    )
    lam = np.maximum(1.0 - krylov.nodes, 0.0)
    pulled = apply(krylov, 1.0 / variances_at(state, lam))[held.rows]
    return 0.5 * np.sum(np.log(precisions / (2 * np.pi)) - pulled**2 / precisions)
