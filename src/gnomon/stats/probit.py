"""Probit outputs: moments of the truncated scores, class probabilities, exact draws.

    t ~ N(m, I),    y = argmax_c t_c  (classes)    or    y_c = sign(t_c)  (labels)

With u = t_y - m_y the scores of one row given its class leave one integral,

    Z(m) = E_u[prod_(j != y) Phi(u + m_y - m_j)],    E[t] = m + d log Z / d m,

whose integrand is log-concave: Gauss-Hermite nodes are centred at its mode and scaled by the
curvature there. Nodes that stay at the origin miss the mass when scores are far apart.
"""

from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri_exp

DEFAULT_NODES = 16
# Rows are taken in blocks whose tables of nodes stay in the cache.
BLOCK_ENTRIES = 2**17
NEWTON_STEPS = 50
# Newton's steps shrink quadratically: after one this small the next would be below rounding.
NEWTON_TOLERANCE = 1e-5
# The density of u is skewed; nodes a little closer than its curvature says err least.
NODE_SCALE = 0.94
LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)


def class_scores(M, codes, n_nodes=DEFAULT_NODES):
    """E[t] (n, c) and log Z (n,) of scores around M (n, c) whose largest is that of the class."""
    T, log_Z = np.empty_like(M), np.empty(len(M))
    for rows in _blocks(len(M), M.shape[1] * n_nodes):
        T[rows], log_Z[rows] = _class_scores(M[rows], codes[rows], n_nodes)
    return T, log_Z


def sign_scores(M, signs):
    """E[t] and log Z, both (n, c), of scores with the signs +1 and -1; 0 leaves one free."""
    A = M * signs
    log_Z = np.where(signs == 0, 0.0, log_ndtr(A))
    return M + signs * hazard(A), log_Z


def class_probabilities(M, variance, n_nodes=DEFAULT_NODES):
    """P(the largest is t_c) (n, c) for independent t_c ~ N(M_c, variance_c)."""
    n, c = M.shape
    sd = np.sqrt(np.broadcast_to(variance, M.shape))
    log_P = np.empty((n, c))
    for rows in _blocks(n, c * n_nodes):
        for k in range(c):
            others = np.arange(c) != k
            shift = (M[rows, k, None] - M[rows][:, others]) / sd[rows][:, others]
            slope = sd[rows, k, None] / sd[rows][:, others]
            log_P[rows, k] = _orthant(shift, slope, n_nodes)[0]
    # The quadrature error is below 1e-5; the sum is one by construction.
    return np.exp(log_P - logsumexp(log_P, axis=1, keepdims=True))


def draw_class_scores(M, codes, rng):
    """An exact draw of t (n, c) around M given that the largest is that of the class.

    The density of u is exp(f) with f'' <= -1, so a normal curve of unit variance that touches
    it lies above: rejection accepts at least 1 / sqrt(c) of its proposals whatever the scores.
    """
    rows = np.arange(len(M))
    shift = _differences(M, codes)
    u = _draw_winner(shift, rng)
    bound = u[:, None] + shift
    below = ndtri_exp(log_ndtr(bound) + np.log(1.0 - rng.random(bound.shape)))
    T = np.empty_like(M)
    T[_others(codes, M.shape[1])] = below.ravel()
    T += M
    T[rows, codes] = M[rows, codes] + u
    return T


def draw_sign_scores(M, signs, rng):
    """An exact draw of scores around M with the signs +1 and -1; 0 leaves one free."""
    A = M * signs
    tail = -ndtri_exp(log_ndtr(A) + np.log(1.0 - rng.random(M.shape)))
    return M + np.where(signs == 0, rng.standard_normal(M.shape), signs * tail)


def hazard(A):
    """phi(a) / Phi(a), the derivative of log Phi."""
    return _hazard(A, log_ndtr(A))


def _hazard(A, log_cdf):
    return np.exp(-0.5 * A * A - LOG_ROOT_TWO_PI - log_cdf)


def _class_scores(M, codes, n_nodes):
    shift = _differences(M, codes)
    log_Z, weights, nodes, A, log_cdf = _orthant(shift, 1.0, n_nodes)
    excess = np.einsum("ik,ikj->ij", weights, _hazard(A, log_cdf))
    T = M.copy()
    T[_others(codes, M.shape[1])] -= excess.ravel()
    T[np.arange(len(M)), codes] += np.sum(weights * nodes, axis=1)
    return T, log_Z


def _orthant(shift, slope, n_nodes):
    """Log of E_u[prod_j Phi(slope_j u + shift_j)], and the law of u as weights on nodes (n, k).

    The arguments of Phi at the nodes (n, k, j) and their log Phi are returned for further use.
    """
    mode, curvature = _mode(shift, slope)
    points, log_weights = _hermite(n_nodes)
    scale = NODE_SCALE / np.sqrt(curvature)
    nodes = mode[:, None] + scale[:, None] * points
    slope = np.broadcast_to(slope, shift.shape)
    A = nodes[:, :, None] * slope[:, None, :] + shift[:, None, :]
    log_cdf = log_ndtr(A)
    log_terms = log_cdf.sum(axis=2)
    log_terms += log_weights + 0.5 * (points**2 - nodes**2) + np.log(scale)[:, None]
    log_Z = logsumexp(log_terms, axis=1)
    return log_Z, np.exp(log_terms - log_Z[:, None]), nodes, A, log_cdf


def _mode(shift, slope):
    """Mode and curvature of f(u) = -u^2/2 + sum_j log Phi(slope_j u + shift_j).

    f' is convex and falls, so Newton's steps approach its root from the left and never leave.
    """
    u = np.zeros(len(shift))
    for _ in range(NEWTON_STEPS):
        gradient, curvature = _derivatives(u, shift, slope)
        step = gradient / curvature
        u += step
        if np.max(np.abs(step), initial=0.0) < NEWTON_TOLERANCE:
            break
    return u, curvature


def _derivatives(u, shift, slope):
    A = u[:, None] * slope + shift
    h = hazard(A)
    return (slope * h).sum(axis=1) - u, 1.0 + (slope**2 * h * (h + A)).sum(axis=1)


def _draw_winner(shift, rng):
    mode, _ = _mode(shift, 1.0)
    gradient, _ = _derivatives(mode, shift, 1.0)
    centre = mode + gradient
    top = _log_density(mode, shift) + 0.5 * gradient**2
    u = np.empty(len(shift))
    open_rows = np.arange(len(shift))
    while open_rows.size:
        noise = rng.standard_normal(open_rows.size)
        proposal = centre[open_rows] + noise
        log_ratio = _log_density(proposal, shift[open_rows]) - top[open_rows] + 0.5 * noise**2
        accepted = np.log(1.0 - rng.random(open_rows.size)) < log_ratio
        u[open_rows[accepted]] = proposal[accepted]
        open_rows = open_rows[~accepted]
    return u


def _log_density(u, shift):
    return -0.5 * u * u + log_ndtr(u[:, None] + shift).sum(axis=1)


def _differences(M, codes):
    """m_y - m_j for the other classes j, (n, c - 1)."""
    others = M[_others(codes, M.shape[1])].reshape(len(M), -1)
    return M[np.arange(len(M)), codes][:, None] - others


def _others(codes, n_classes):
    return np.arange(n_classes) != codes[:, None]


@lru_cache
def _hermite(n_nodes):
    """Nodes and log weights of the normal distribution."""
    points, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return points, np.log(weights) - LOG_ROOT_TWO_PI


def _blocks(n, width):
    size = max(1, BLOCK_ENTRIES // width)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
