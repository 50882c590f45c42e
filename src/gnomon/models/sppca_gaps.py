"""SPPCA with missing entries in the inputs, by the likelihood of what is observed.

Inputs and outputs stand side by side as columns of one table with two kinds of noise, and
gaps in both are alike; see `gnomon.models.gaussian.gaps`.
"""

import numpy as np

from gnomon.models.gaussian import gaps
from gnomon.models.sppca import INPUT_FLOOR, OUTPUT_FLOOR, Noise, State


def table(X, Y, observed, weights=None, *, per_output=False) -> gaps.Patterns:
    """Rows [x, y] with NaN in the gaps, grouped by what they observe; floors as without gaps."""
    d, c = X.shape[1], Y.shape[1]
    outputs = 1 + np.arange(c) if per_output else np.ones(c, dtype=int)
    groups = np.concatenate([np.zeros(d, dtype=int), outputs])
    data = gaps.group_rows(np.hstack([X, np.where(observed, Y, np.nan)]), groups, weights)
    variances = data.floors / gaps.NOISE_FLOOR
    floors = variances * np.where(np.arange(len(variances)) == 0, INPUT_FLOOR, OUTPUT_FLOOR)
    return data._replace(floors=np.maximum(floors, np.finfo(float).tiny))


def no_outputs(n) -> tuple[np.ndarray, np.ndarray]:
    """Columns and mask of rows without outputs."""
    nothing = np.zeros((n, 0))
    return nothing, nothing.astype(bool)


def init(data: gaps.Patterns, inputs: gaps.State, noise: Noise) -> gaps.State:
    """PPCA of the inputs as far as it is known; outputs not yet explained."""
    d, q = inputs.W.shape
    W = np.vstack([inputs.W, np.zeros((len(data.groups) - d, q))])
    mean = np.concatenate([inputs.mean, data.shift[d:]])
    levels = np.concatenate([inputs.noise, data.floors[1:] / OUTPUT_FLOOR])
    return gaps.State(W, mean, _ruled(levels, None, noise))


def step(state: gaps.State, data: gaps.Patterns, noise: Noise):
    """One EM step, its noise fixed or tied where the rule says so, and the objective."""
    priors = np.where(data.groups == 0, noise.prior_x, noise.prior_y)
    held = None if noise.learn_mean else data.groups > 0
    # Levels that are not learnt apart have no floors of their own.
    rows = data if noise.ratio is None else data._replace(floors=np.zeros_like(data.floors))
    found, objective = gaps.step(state, rows, priors if priors.any() else None, held)
    objective -= 0.5 * float(priors @ np.sum(state.W**2, axis=1))
    counts = np.add.reduceat(data.weights, data.starts[:-1]) @ data.observed
    sizes = np.bincount(data.groups, counts, len(data.floors))
    return found._replace(noise=_ruled(found.noise, sizes, noise)), objective


def unpack(x, like: gaps.State, data: gaps.Patterns, noise: Noise):
    """The state of a vector of `gnomon.models.gaussian.gaps.pack`, its noise not below the floors."""
    state = gaps.unpack(x, like)
    if noise.fixed is not None or noise.ratio is not None:
        return state
    return state._replace(noise=np.maximum(state.noise, data.floors))


def split(state: gaps.State, d, c) -> tuple[np.ndarray, State]:
    """Mean of the inputs, and the state of SPPCA."""
    levels = np.broadcast_to(state.noise[1:], (c,)) if c else np.zeros(0)
    return state.mean[:d], State(
        state.W[:d], float(state.noise[0]), state.W[d:], levels.copy(), state.mean[d:]
    )


def join(mean, state: State) -> gaps.State:
    """The table's state, a noise level for every output."""
    return gaps.State(
        np.vstack([state.W, state.W_y]),
        np.concatenate([mean, state.mean_y]),
        np.concatenate([[state.sigma2], state.sigma2_y]),
    )


def _ruled(levels, sizes, noise):
    outputs = np.arange(len(levels)) > 0
    if noise.fixed is not None:
        return np.where(outputs, noise.fixed[1], noise.fixed[0])
    if noise.ratio is None:
        return levels
    ratios = np.where(outputs, noise.ratio, 1.0)
    sizes = ~outputs if sizes is None else sizes
    return ratios * max(np.sum(sizes * levels / ratios) / np.sum(sizes), noise.floor_x)
