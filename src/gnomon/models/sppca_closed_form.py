"""SPPCA with every row labelled, without iteration: Theorem 2 of [YYTKW06].

Given the noise, the loadings are leading eigenvectors of the moments of [x/s_x, y/s_y].
Given only the ratio r = s_y^2/s_x^2, [x, y/sqrt(r)] is plain PPCA and its noise is known too.
With noise learnt there remains a search along log r, where the likelihood may have two
maxima (E-YYTKW06-4): a grid finds the better one.
"""

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar

from gnomon.models.sppca import Noise, State
from gnomon.models.sppca_statistics import Statistics, output_means

# Steps of about one unit of log r; in every curve looked at the maxima were wider apart.
GRID = 24


def applies(stats: Statistics, noise: Noise) -> bool:
    """Whether all rows have all outputs and the noise is of one level for each view."""
    outputs = stats.outputs
    complete = len(outputs.counts) == 1 and bool(outputs.seen.all())
    everywhere = complete and np.isclose(outputs.counts.sum(), stats.n, rtol=1e-12)
    return everywhere and not noise.per_output and noise.prior_x == 0 == noise.prior_y


def closed_form(stats: Statistics, q, noise: Noise) -> State:
    """The maximum of the likelihood, at the given noise or ratio, or at the best ratio."""
    if noise.fixed is not None:
        return _given_noise(stats, q, *noise.fixed)
    if noise.ratio is not None:
        return _given_ratio(stats, q, noise.ratio, noise)
    return _given_ratio(stats, q, best_ratio(stats, q, noise), noise)


def best_ratio(stats: Statistics, q, noise: Noise) -> float:
    """The ratio of noise levels of highest likelihood between what the floors allow."""
    variance_x = stats.energy / (stats.n * stats.d)
    variance_y = max(float(output_means(stats.outputs)[1].mean()), np.finfo(float).tiny)
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
    values = np.maximum(_leading(stats, q, r, vectors=False), np.finfo(float).tiny)
    sigma2 = max(_rest(stats, values, r), np.finfo(float).tiny)
    total = size * (np.log(2 * np.pi) + 1) + np.log(values).sum() + (size - q) * np.log(sigma2)
    return -0.5 * stats.n * (total + c * np.log(r))


def _given_ratio(stats, q, r, noise):
    values, U = _leading(stats, q, r)
    sigma2 = max(_rest(stats, values, r), noise.floor_x)
    U = U * np.sqrt(np.maximum(values - sigma2, 0.0))
    m, c = len(stats.g), stats.outputs.Y.shape[1]
    mean_y = output_means(stats.outputs)[0]
    return State(U[:m], sigma2, U[m:] * np.sqrt(r), np.full(c, r * sigma2), mean_y)


def _given_noise(stats, q, sigma2, sigma2_y):
    """Theorem 2 (i); a direction of eigenvalue below one has no loading."""
    r = sigma2_y / sigma2
    values, U = _leading(stats, q, r)
    U = U * np.sqrt(np.maximum(values - sigma2, 0.0))
    m, c = len(stats.g), stats.outputs.Y.shape[1]
    mean_y = output_means(stats.outputs)[0]
    return State(U[:m], sigma2, U[m:] * np.sqrt(r), np.full(c, float(sigma2_y)), mean_y)


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
        return _pad(np.maximum(found[::-1], np.finfo(float).tiny) / stats.n, q)
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
