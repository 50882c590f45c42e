"""SPPCA with every row labelled, without iteration: Theorem 2 of [YYTKW06].

Given the noise, the loadings are leading eigenvectors of the moments of [x/s_x, y/s_y].
Given only the ratio r = s_y^2/s_x^2, [x, y/sqrt(r)] is plain PPCA and its noise is known too.
With noise learnt there remains a search along log r, where the likelihood may have two
maxima (E-YYTKW06-4): a grid finds the better one.
"""

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from gnomon.models.sppca.statistics import TINY, Noise, State, Statistics, output_means, tied

# Steps of about one unit of log r; in every curve looked at the maxima were wider apart.
GRID = 24


def closed_form(stats: Statistics, q, noise: Noise) -> State:
    """The maximum of the likelihood, Theorem 2 (i) of [YYTKW06], at given or best noise.

    A direction whose eigenvalue is below the noise has no loading (E-YYTKW06-6).
    """
    r = _ratio(stats, q, noise)
    values, U = _leading(stats, q, r)
    m, c = len(stats.g), stats.outputs.Y.shape[1]
    sigma2 = max(_rest(stats, values, r), noise.floor_x)
    levels = tied(np.append(sigma2, np.full(c, r * sigma2)), noise)
    U = U * np.sqrt(np.maximum(values - levels[0], 0.0))
    mean_y = output_means(stats.outputs)[0]
    return State(U[:m], float(levels[0]), U[m:] * np.sqrt(r), levels[1:], mean_y)


def _ratio(stats, q, noise):
    if noise.fixed is not None:
        return noise.fixed[1] / noise.fixed[0]
    return best_ratio(stats, q, noise) if noise.ratio is None else noise.ratio


def best_ratio(stats: Statistics, q, noise: Noise) -> float:
    """The ratio of noise levels of highest likelihood between what the floors allow."""
    variance_x = stats.energy / (stats.n * stats.d)
    variance_y = max(float(output_means(stats.outputs)[1].mean()), TINY)
    low = np.log(noise.floor_y.mean() / variance_x)
    high = np.log(variance_y / noise.floor_x)

    def loss(log_r):
        return -profile(stats, q, np.exp(log_r))

    grid = np.linspace(low, high, GRID)
    best = int(np.argmin([loss(log_r) for log_r in grid]))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
    found = minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))


def profile(stats: Statistics, q, r) -> float:
    """Log likelihood at the ratio r, maximised over all else."""
    c = stats.outputs.Y.shape[1]
    size = stats.d + c
    values = np.maximum(_leading(stats, q, r, vectors=False), TINY)
    sigma2 = max(_rest(stats, values, r), TINY)
    total = size * (np.log(2 * np.pi) + 1) + np.log(values).sum() + (size - q) * np.log(sigma2)
    return -0.5 * stats.n * (total + c * np.log(r))


def _leading(stats, q, r, vectors=True):
    """The q largest eigenvalues (and vectors) of the moments of [x, y/sqrt(r)], descending."""
    outputs = stats.outputs
    centred = outputs.Y - np.outer(outputs.ones, output_means(outputs)[0])
    m, c = len(stats.g), centred.shape[1]
    S = np.zeros((m + c, m + c))
    S[np.arange(m), np.arange(m)] = stats.g
    S[m:, :m] = centred.T @ outputs.T / np.sqrt(r)
    S[m:, m:] = centred.T @ centred / r
    top = (max(m + c - q, 0), m + c - 1)
    if not vectors:
        found = eigh(S, lower=True, eigvals_only=True, subset_by_index=top)
        return _pad(np.maximum(found[::-1], TINY) / stats.n, q)
    found, U = eigh(S, lower=True, subset_by_index=top)
    return _pad(np.maximum(found[::-1], 0.0) / stats.n, q), _pad(U[:, ::-1], q)


def _pad(columns, q):
    """Zeros for directions that the moments do not have."""
    missing = q - columns.shape[-1]
    return np.pad(columns, [(0, 0)] * (columns.ndim - 1) + [(0, missing)]) if missing else columns


def _rest(stats, values, r):
    """Mean of the eigenvalues left out."""
    outputs = stats.outputs
    c = outputs.Y.shape[1]
    trace = stats.energy / stats.n + c * output_means(outputs)[1].mean() / r
    return max(trace - values.sum(), 0.0) / max(stats.d + c - len(values), 1)
