"""Probit outputs: moments of the truncated scores, class probabilities, exact draws.

    t ~ N(m, I),    y = argmax_c t_c  (classes)    or    y_c = sign(t_c)  (labels)

With u = t_y - m_y the scores of one row given its class leave one integral,

    Z(m) = E_u[prod_(j != y) Phi(u + m_y - m_j)],    E[t] = m + d log Z / d m,

whose integrand is log-concave: Gauss-Hermite nodes are centred at its mode and scaled by the
curvature there. Nodes that stay at the origin miss the mass when scores are far apart.
Tables here have the other classes j first and the rows last, so that sums over j are sums of
long vectors.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from gnomon.stats.normal import LOG_ROOT_TWO_PI, LOWEST, cdf_and_density, hazard

DEFAULT_NODES = 16
# Tables of this size stay in the cache, and are small enough that memory is not asked anew.
BLOCK_ENTRIES = 2**13
NEWTON_STEPS = 50
# Steps shrink quadratically: the next is below rounding, whatever rows share the block.
NEWTON_TOLERANCE = 1e-5
# The density of u is skewed; nodes a little closer than its curvature says err least.
NODE_SCALE = 0.94
# So many factors of Phi(LOWEST) do not underflow.
FACTORS_AT_ONCE = 6


def class_scores(M, codes, n_nodes=DEFAULT_NODES):
    """E[t] (n, c) and log Z (n,) of scores around M (n, c) whose largest is that of the class."""
    n, c = M.shape
    T, log_Z = np.array(M), np.empty(n)
    room = Room.of(n, c - 1, n_nodes)
    for rows in _blocks(n, n_nodes):
        shift = _differences(M[rows], codes[rows])
        winner, excess, log_Z[rows] = _moments(shift, n_nodes, room)
        own = np.arange(rows.start, rows.stop)
        T[rows][_others(codes[rows], c)] -= excess.T.ravel()
        T[own, codes[rows]] += winner
    return T, log_Z


def sign_scores(M, signs):
    """E[t] and log Z, both (n, c), of scores with the signs +1 and -1; 0 leaves one free."""
    A = M * signs
    log_cdf = log_ndtr(A)
    return M + signs * hazard(A, log_cdf), np.where(signs == 0, 0.0, log_cdf)


def class_probabilities(M, variance, n_nodes=DEFAULT_NODES):
    """P(the largest is t_c) (n, c) for independent t_c ~ N(M_c, variance_c)."""
    n, c = M.shape
    sd = np.sqrt(np.broadcast_to(variance, M.shape))
    log_P = np.empty((n, c))
    room = Room.of(n, c - 1, n_nodes)
    for rows in _blocks(n, n_nodes):
        m, s = M[rows].T, sd[rows].T
        for k in range(c):
            others = np.arange(c) != k
            shift, slope = (m[k] - m[others]) / s[others], s[k] / s[others]
            log_P[rows, k] = _log_orthant(shift, slope, n_nodes, room)
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
    bound = (u + shift).T
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


class Room(NamedTuple):
    """Memory for the tables of one block, used again for the next: asking for it anew is slow."""

    work: np.ndarray
    hazards: np.ndarray

    @classmethod
    def of(cls, n, n_others, n_nodes):
        """Room for blocks of n rows at most."""
        shape = (n_nodes, min(n, _block_size(n_nodes)))
        return cls(np.empty((5, *shape)), np.empty((n_others, *shape)))

    def narrow(self, n):
        """The room of n rows."""
        return Room(self.work[..., :n], self.hazards[..., :n])


def _moments(shift, n_nodes, room):
    """E[u] (n,), the excess E[hazard] of the others (j, n) and log Z (n,)."""
    nodes, log_weights = _nodes(shift, 1.0, n_nodes)
    log_product, hazards = _product(nodes, shift, None, room)
    log_Z, weights = _normalise(log_product + log_weights)
    winner = np.einsum("kn,kn->n", weights, nodes)
    return winner, np.stack([np.einsum("kn,kn->n", weights, h) for h in hazards]), log_Z


def _log_orthant(shift, slope, n_nodes, room):
    """Log of E_u[prod_j Phi(slope_j u + shift_j)] (n,)."""
    nodes, log_weights = _nodes(shift, slope, n_nodes)
    log_product, _ = _product(nodes, shift, slope, room)
    return _normalise(log_product + log_weights)[0]


def _nodes(shift, slope, n_nodes):
    """Nodes (k, n) around the mode and the logs of their weights times the normal density."""
    mode, curvature = _mode(shift, slope)
    points, log_weights = _hermite(n_nodes)
    scale = NODE_SCALE / np.sqrt(curvature)
    nodes = mode + scale * points
    return nodes, log_weights + np.log(scale) + 0.5 * (points**2 - nodes**2)


def _normalise(log_terms):
    """Log of the sum over nodes (n,), and the terms (k, n) as shares of it."""
    top = log_terms.max(axis=0)
    shares = np.exp(log_terms - top)
    total = shares.sum(axis=0)
    shares /= total
    return top + np.log(total), shares


def _product(nodes, shift, slope, room):
    """Sum over j of log Phi(slope_j u + shift_j) at nodes u (k, n), and the hazards (j, k, n)."""
    work, hazards = room.narrow(nodes.shape[1])
    log_product, product = np.zeros_like(nodes), np.ones_like(nodes)
    for j, gap in enumerate(shift):
        A = np.add(nodes if slope is None else slope[j] * nodes, gap, out=work[4])
        if not np.min(A[0], initial=0.0) > LOWEST:
            log_cdf = log_ndtr(A)
            log_product += log_cdf
            hazards[j] = hazard(A, log_cdf)
            continue
        cdf, density = cdf_and_density(A, work)
        product *= cdf
        np.divide(density, cdf, out=hazards[j])
        if j % FACTORS_AT_ONCE == FACTORS_AT_ONCE - 1:
            log_product += np.log(product)
            product.fill(1.0)
    log_product += np.log(product)
    return log_product, hazards


def _mode(shift, slope):
    """Mode and curvature of f(u) = -u^2/2 + sum_j log Phi(slope_j u + shift_j).

    f' is convex and falls, so Newton's steps approach its root from the left and never leave.
    """
    u = np.zeros(shift.shape[1])
    for _ in range(NEWTON_STEPS):
        gradient, curvature = _derivatives(u, shift, slope)
        step = gradient / curvature
        u += step
        if np.max(np.abs(step), initial=0.0) < NEWTON_TOLERANCE:
            break
    return u, curvature


def _derivatives(u, shift, slope):
    A = u * slope + shift
    h = _hazard(A)
    return (slope * h).sum(axis=0) - u, 1.0 + (slope**2 * h * (h + A)).sum(axis=0)


def _hazard(A):
    if not np.min(A, initial=0.0) > LOWEST:
        return hazard(A)
    cdf, density = cdf_and_density(A)
    return density / cdf


def _draw_winner(shift, rng):
    mode, _ = _mode(shift, 1.0)
    gradient, _ = _derivatives(mode, shift, 1.0)
    centre = mode + gradient
    top = _log_density(mode, shift) + 0.5 * gradient**2
    u = np.empty(len(mode))
    open_rows = np.arange(len(mode))
    while open_rows.size:
        noise = rng.standard_normal(open_rows.size)
        proposal = centre[open_rows] + noise
        log_ratio = _log_density(proposal, shift[:, open_rows]) - top[open_rows] + 0.5 * noise**2
        accepted = np.log(1.0 - rng.random(open_rows.size)) < log_ratio
        u[open_rows[accepted]] = proposal[accepted]
        open_rows = open_rows[~accepted]
    return u


def _log_density(u, shift):
    return -0.5 * u * u + log_ndtr(u + shift).sum(axis=0)


def _differences(M, codes):
    """m_y - m_j for the other classes j, (c - 1, n)."""
    others = M[_others(codes, M.shape[1])].reshape(len(M), -1)
    return M[np.arange(len(M)), codes] - others.T


def _others(codes, n_classes):
    return np.arange(n_classes) != codes[:, None]


@lru_cache
def _hermite(n_nodes):
    """Nodes and log weights (k, 1) of the normal distribution."""
    points, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return points[:, None], np.log(weights)[:, None] - LOG_ROOT_TWO_PI


def _block_size(width):
    return max(1, BLOCK_ENTRIES // width)


def _blocks(n, width):
    size = _block_size(width)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
