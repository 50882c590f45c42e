"""The parameters of SPPCA as one free vector, and the gradient along it.

Acceleration and quasi-Newton steps work on vectors. What the noise rule fixes or ties is
left out, so every vector is a valid state; logarithms keep noise positive.
"""

import numpy as np

from gnomon.models.sppca import Noise, State, e_step, output_squares, penalty
from gnomon.models.sppca_statistics import Statistics


def pack(state: State, noise: Noise) -> np.ndarray:
    """Loadings, logarithms of the free noise levels, and the mean of y where it is learnt."""
    W, sigma2, W_y, sigma2_y, mean_y = state
    levels = np.log(np.concatenate([[sigma2], sigma2_y]))[_free(noise, len(mean_y))]
    mean = mean_y if noise.learn_mean else np.zeros(0)
    return np.concatenate([W.ravel(), W_y.ravel() * _balance(W), levels, mean])


def unpack(x, like: State, noise: Noise) -> State:
    """The state of a vector, its noise not below the floors; the rest is taken from ``like``."""
    (m, q), c = like.W.shape, len(like.mean_y)
    n_levels = len(_free(noise, c))
    W, W_y, levels, mean = np.split(x, np.cumsum([m * q, c * q, n_levels]))
    W, W_y = W.reshape(m, q), W_y.reshape(c, q) / _balance(like.W)
    levels = np.exp(np.maximum(levels, _log_floors(noise, c)))
    sigma2, sigma2_y = _levels(levels, like, noise)
    return State(W, sigma2, W_y, sigma2_y, mean if noise.learn_mean else like.mean_y)


def bounds(like: State, noise: Noise) -> list[tuple[float | None, None]]:
    """Lower bounds of the vector: the floors of the noise."""
    free: list[tuple[float | None, None]] = [(None, None)] * (like.W.size + like.W_y.size)
    free += [(float(floor), None) for floor in _log_floors(noise, len(like.mean_y))]
    return free + [(None, None)] * (len(like.mean_y) * noise.learn_mean)


def value_and_gradient(x, like: State, stats: Statistics, noise: Noise):
    """Objective at a vector and its gradient, which the E-step has for free."""
    state = unpack(x, like, noise)
    expected, log_likelihood = e_step(state, stats)
    return log_likelihood - penalty(state, noise), _gradient(state, expected, stats, noise)


def _gradient(state, expected, stats, noise):
    W, sigma2, W_y, sigma2_y, mean_y = state
    q = W_y.shape[1]
    V = np.column_stack([W_y, mean_y])
    dW = (expected.XZ - W @ expected.ZZ) / sigma2 - noise.prior_x * W
    dV = (expected.YZ - np.einsum("cj,cjk->ck", V, expected.ZZ_y)) / sigma2_y[:, None]
    dW_y = dV[:, :q] - noise.prior_y * W_y
    square_x = stats.energy - 2 * np.sum(W * expected.XZ) + np.sum((W @ expected.ZZ) * W)
    square_y = output_squares(V, expected, stats.outputs)
    counts = stats.outputs.counts @ stats.outputs.seen
    d_x = 0.5 * (square_x / sigma2 - stats.n * stats.d)
    d_y = 0.5 * (square_y / sigma2_y - counts)
    levels = _add_up(d_x, d_y, noise)
    mean = dV[:, q] if noise.learn_mean else np.zeros(0)
    return np.concatenate([dW.ravel(), dW_y.ravel() / _balance(W), levels, mean])


def _free(noise, c):
    """Which of the levels [x, y_1, ..., y_c] are free numbers."""
    if noise.fixed is not None:
        return np.arange(0)
    if noise.ratio is not None or c == 0:
        return np.arange(1)
    return np.arange(c + 1) if noise.per_output else np.arange(2)


def _log_floors(noise, c):
    floor_y = noise.floor_y if noise.per_output or not c else np.full(c, noise.floor_y.mean())
    return np.log(np.concatenate([[noise.floor_x], floor_y]))[_free(noise, c)]


def _levels(levels, like, noise):
    if noise.fixed is not None:
        return like.sigma2, like.sigma2_y
    if noise.ratio is not None:
        return float(levels[0]), np.full_like(like.sigma2_y, noise.ratio * levels[0])
    if noise.per_output or len(levels) == 1:
        return float(levels[0]), levels[1:]
    return float(levels[0]), np.full_like(like.sigma2_y, levels[1])


def _add_up(d_x, d_y, noise):
    """Gradient along the free levels: what is tied adds up."""
    if noise.fixed is not None:
        return np.zeros(0)
    if noise.ratio is not None or not len(d_y):
        return np.array([d_x + d_y.sum()])
    return np.concatenate([[d_x], d_y if noise.per_output else [d_y.sum()]])


def _balance(W):
    """Outputs are few beside features: their loadings count as much as all those of x."""
    return np.sqrt(max(W.shape[0], 1))
