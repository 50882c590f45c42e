"""Probit outputs: the normal law from a table, moments and draws of scores, probabilities.

    t ~ N(m, I),    y = argmax_c t_c  (classes)    or    y_c = sign(t_c)  (signs)

With u = t_y - m_y the scores of one row given its class leave one integral,

    Z(m) = E_u[prod_(j != y) Phi(u + m_y - m_j)],    E[t] = m + d log Z / d m,

whose integrand is log-concave: Gauss-Hermite nodes are centred at its mode and scaled by the
curvature there. Nodes that stay at the origin miss the mass when scores are far apart.
Tables here have the other classes j first and the rows last, so that sums over j are sums of
long vectors.

The many values of the normal law come from a table: around the nearest point a of a grid, with
e = a d,

    Phi(a + d) = Phi(a) + phi(a) d (1 - e / 2 + (e^2 - d^2) / 6 - ...)
    phi(a + d) = phi(a) exp(-e - d^2 / 2)

to a relative 2e-12 in [-5, 5] and 1e-10 at the ends, several times faster than a call for each.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri_exp

from gnomon.linalg.data import slices
from gnomon.models.bsdr import many

# Ends of the table: below, a factor is computed by its logarithm; above, Phi is 1 to the last bit.
LOWEST, HIGHEST = -14.0, 9.0
# Below this Laplace's continued fraction of four terms has all digits of phi / Phi.
FAR = -50.0
# So fine that three terms are enough, so coarse that both tables stay in the cache.
PER_UNIT = 1024
# Of the normal density.
LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)
# With so many nodes up to 26 classes err by less than 2e-5, see the tests.
N_NODES = 16
# Calls of this size are long enough for two threads to share the interpreter: a million rows take
# 6 us each on two threads and 10 on one, with 2^13 entries 14 and 12; small fits do not care.
BLOCK_ENTRIES = 2**17
# Where scores are so large that rounding alone moves the mode, steps do not shrink: they end here.
NEWTON_STEPS = 50
# Steps shrink quadratically: the next is below rounding, whatever rows share the block.
NEWTON_TOLERANCE = 1e-5
# The density of u is skewed; nodes a little closer than its curvature says err least.
NODE_SCALE = 0.94
# With more classes one grid for all is faster than nodes for each: both take 20 ms for 200 rows.
MANY_CLASSES = 16
# The grid of the largest score: so many deviations below the mean of the class that is likely the
# largest (the table has them) and above every mean, where nothing of 1e-16 is left out.
GRID_BELOW, GRID_ABOVE = 12.0, 8.5
# The largest of 1000 scores deviates by a third of what one does: half of that errs by 1e-9.
STEPS_PER_SD = 6
# Points where deviations are alike, and entries of a block: 8 MB.
GRID_POINTS, GRID_ENTRIES = 125, 2**20
# A class that is so far above all others has log Z = 0 and E[t] = m to the last bit, as
# Phi(-12 / sqrt 2) is 1e-17: rows like that are not integrated.
CLEAR = 12.0
# So many factors of Phi(LOWEST) do not underflow.
FACTORS_AT_ONCE = 6

_GRID = np.arange(int(LOWEST * PER_UNIT), int(HIGHEST * PER_UNIT) + 1) / PER_UNIT
_CDF = ndtr(_GRID)
_PDF = np.exp(-0.5 * _GRID**2 - LOG_ROOT_TWO_PI)


def class_scores(M, labels):
    """E[t] (n, c) and log Z (n,) of scores around M (n, c) given the class, eq. (10) of [G13]."""
    near = _near(M, labels)
    T, log_Z = np.array(M), np.zeros(len(M))
    T[near], log_Z[near] = _near_scores(M[near], labels[near])
    return T, log_Z


def _near(M, labels):
    """Rows whose class is not so far above the others that it says nothing of the scores."""
    rows, others = np.arange(len(M)), np.array(M)
    others[rows, labels] = -np.inf
    return ~(M[rows, labels] - others.max(axis=1) > CLEAR)


def _near_scores(M, labels):
    n, c = M.shape
    T, log_Z = np.array(M), np.empty(n)
    memory = _Memory.of(n, c - 1)
    for rows in slices(n, _block_size()):
        shift = _differences(M[rows], labels[rows])
        winner, excess, log_Z[rows] = _moments(shift, memory)
        own = np.arange(rows.start, rows.stop)
        T[rows][_others(labels[rows], c)] -= excess.T.ravel()
        T[own, labels[rows]] += winner
    return T, log_Z


def curved_class_scores(M, labels):
    """The same and I - Cov(t) (n, c, c), by which log Z curves; for rows of one block."""
    near = _near(M, labels)
    T, log_Z, D = np.array(M), np.zeros(len(M)), np.zeros((*M.shape, M.shape[1]))
    T[near], log_Z[near], D[near] = _near_curved_scores(M[near], labels[near])
    return T, log_Z, D


def _near_curved_scores(M, labels):
    n, c = M.shape
    others = _others(labels, c)
    shift = _differences(M, labels)
    nodes, hazards, weights, log_Z = _weighed_nodes(shift, _Memory.of(n, c - 1, n))
    means = np.concatenate([nodes[None], -hazards])
    excess = np.einsum("jkn,kn->nj", means, weights)
    # Given u the others are independent normal scores below it.
    within = np.einsum("jkn,jkn,kn->nj", hazards, hazards + nodes + shift[:, None], weights)
    means -= excess.T[:, None]
    covariance = (means * weights).transpose(2, 0, 1) @ means.transpose(2, 1, 0)
    covariance[:, np.arange(1, c), np.arange(1, c)] += 1.0 - within
    order = np.concatenate([labels[:, None], np.nonzero(others)[1].reshape(n, -1)], axis=1)
    T, D, own = np.array(M), np.empty((n, c, c)), np.arange(n)[:, None]
    T[own, order] += excess
    D[own[:, :, None], order[:, :, None], order[:, None, :]] = np.eye(c) - covariance
    return T, log_Z, D


def sign_scores(M, signs):
    """E[t] and log Z, both (n, c), of scores with the signs +1 and -1; 0 leaves one free."""
    A = M * signs
    log_cdf = log_ndtr(A)
    return M + signs * hazard(A, log_cdf), np.where(signs == 0, 0.0, log_cdf)


def class_probabilities(M, variance):
    """P(the largest is t_c) (n, c) for independent t_c ~ N(M_c, variance_c)."""
    n, c = M.shape
    sd = np.sqrt(np.broadcast_to(variance, M.shape))
    if c > MANY_CLASSES:
        blocks = slices(n, max(1, GRID_ENTRIES // (c * GRID_POINTS)))
        return np.concatenate([_on_one_grid(M[rows].T, sd[rows].T) for rows in blocks])
    log_P = np.empty((n, c))
    memory = _Memory.of(n, c - 1)
    for rows in slices(n, _block_size()):
        m, s = M[rows].T, sd[rows].T
        for k in range(c):
            others = np.arange(c) != k
            shift, slope = (m[k] - m[others]) / s[others], s[k] / s[others]
            log_P[rows, k] = _log_orthant(shift, slope, memory)
    # The quadrature error is below 1e-5 where deviations are alike, and up to 1e-3 in a row where
    # one is several times another; the sum is one by construction.
    return np.exp(log_P - logsumexp(log_P, axis=1, keepdims=True))


def _on_one_grid(m, s):
    """The same (n, c), m and s (c, n), from one grid of values t of the largest score.

    P_c is the integral of phi(a_c) / Phi(a_c) / s_c times prod_j Phi(a_j), a_j = (t - m_j) / s_j:
    the product is shared, so that c classes cost c integrands and not c^2. Sums over even steps are
    exact to rounding for integrands that end at zero on both sides.
    """
    low, high = np.max(m - GRID_BELOW * s, axis=0), np.max(m + GRID_ABOVE * s, axis=0)
    n_points = 2 + int(STEPS_PER_SD * np.max((high - low) / s.min(axis=0)))
    t = low + (high - low) * np.linspace(0, 1, n_points)[:, None]
    log_product, hazards = np.zeros_like(t), np.empty((len(m), *t.shape))
    for j in range(len(m)):
        cdf, density = cdf_and_density((t - m[j]) / s[j])
        log_product += np.log(cdf)
        hazards[j] = density / (cdf * s[j])
    P = np.einsum("jkn,kn->nj", hazards, np.exp(log_product))
    return P / P.sum(axis=1, keepdims=True)


def rivals(labels, n_classes):
    """Places in scores (n * c,) of the class of a row and of another, for all pairs of these."""
    others = np.flatnonzero(_others(labels, n_classes))
    rows = others // n_classes
    return rows * n_classes + labels[rows], others


def draw_class_scores(M, labels, rng):
    """An exact draw of t (n, c) around M given that the largest is that of the class.

    The density of u is exp(f) with f'' <= -1, so a normal curve of unit variance that touches
    it lies above: rejection accepts at least 1 / sqrt(c) of its proposals whatever the scores.
    """
    rows = np.arange(len(M))
    shift = _differences(M, labels)
    u = _draw_winner(shift, rng)
    bound = (u + shift).T
    below = ndtri_exp(log_ndtr(bound) + np.log(1.0 - rng.random(bound.shape)))
    T = np.empty_like(M)
    T[_others(labels, M.shape[1])] = below.ravel()
    T += M
    T[rows, labels] = M[rows, labels] + u
    return T


def draw_sign_scores(M, signs, rng):
    """An exact draw of scores around M with the signs +1 and -1; 0 leaves one free."""
    A = M * signs
    tail = -ndtri_exp(log_ndtr(A) + np.log(1.0 - rng.random(M.shape)))
    return M + np.where(signs == 0, rng.standard_normal(M.shape), signs * tail)


def cdf_and_density(A, work=None):
    """Phi(a) and phi(a) for a of any size above LOWEST; beyond HIGHEST they are 1 and 0.

    ``work`` (5, ...) is memory of the shape of A to compute in, which saves asking for it in a
    loop; the answer is a part of it, and A may be one too (the last).
    """
    cdf, density, d, e, s = np.empty((5, *np.shape(A))) if work is None else work
    np.minimum(A, HIGHEST, out=d)
    d *= PER_UNIT
    np.rint(d, out=e)
    index = (e - LOWEST * PER_UNIT).astype(np.intp)
    np.take(_PDF, index, mode="clip", out=density)
    np.take(_CDF, index, mode="clip", out=cdf)
    d -= e
    d *= 1.0 / PER_UNIT
    e *= 1.0 / PER_UNIT
    e *= d
    cdf += _integral(d, e, density, out=s)
    d *= d
    d *= 0.5
    e += d
    density *= _exp_minus(e, out=s)
    return cdf, density


def hazard(A, log_cdf=None):
    """phi(a) / Phi(a), the derivative of log Phi, at any a.

    Far out both logarithms are huge, and their difference is lost; Laplace's fraction is exact.
    """
    log_cdf = log_ndtr(A) if log_cdf is None else log_cdf
    found = np.exp(-0.5 * A * A - LOG_ROOT_TWO_PI - log_cdf)
    x = np.maximum(-A, -FAR)
    return np.where(A < FAR, x + 1 / (x + 2 / (x + 3 / (x + 4 / x))), found)


def _integral(d, e, density, out):
    """Phi(a + d) - Phi(a) for small d and e = a d."""
    np.subtract(e, 3.0, out=out)
    out *= e
    out *= 1.0 / 6.0
    out += 1.0
    out -= d * d / 6.0
    out *= d
    out *= density
    return out


def _exp_minus(e, out):
    """exp(-e) for small e."""
    np.multiply(e, -1.0 / 6.0, out=out)
    out += 0.5
    out *= e
    out -= 1.0
    out *= e
    out += 1.0
    return out


class _Memory(NamedTuple):
    """The tables of one block, used again for the next: asking for memory anew is slow."""

    work: np.ndarray
    hazards: np.ndarray

    @classmethod
    def of(cls, n, n_others, most=None):
        """Tables for blocks of n rows at most, or of so many."""
        shape = (N_NODES, most or min(n, _block_size()))
        return cls(np.empty((5, *shape)), np.empty((n_others, *shape)))

    def narrow(self, n):
        """The tables of n rows."""
        return _Memory(self.work[..., :n], self.hazards[..., :n])


def _moments(shift, memory):
    """E[u] (n,), the excess E[hazard] of the others (j, n) and log Z (n,)."""
    if many.are_many(shift):
        return _moments_of_many(shift)
    nodes, hazards, weights, log_Z = _weighed_nodes(shift, memory)
    winner = np.einsum("kn,kn->n", weights, nodes)
    return winner, np.stack([np.einsum("kn,kn->n", weights, h) for h in hazards]), log_Z


def _moments_of_many(shift):
    """The same where sums over the classes are sums over a few points."""
    winner, excess, log_Z = (
        np.empty(shift.shape[1]),
        np.empty(shift.shape),
        np.empty(shift.shape[1]),
    )
    for rows in slices(shift.shape[1], max(1, many.ENTRIES // len(shift))):
        points = many.points_of(shift[:, rows])
        nodes, log_weights = _nodes(points.shift, 1.0, points.counts)
        A = nodes + points.shift[:, None]
        log_cdf = log_ndtr(A)
        log_product = np.einsum("pkn,pn->kn", log_cdf, points.counts)
        log_Z[rows], weights = _normalise(log_product + log_weights)
        winner[rows] = np.einsum("kn,kn->n", weights, nodes)
        hazards = np.einsum("pkn,kn->pn", hazard(A, log_cdf), weights)
        excess[:, rows] = points.at_places(hazards)
    return winner, excess, log_Z


def _weighed_nodes(shift, memory):
    """Nodes u (k, n), hazards of the others there (j, k, n), shares of log Z and log Z (n,)."""
    nodes, log_weights = _nodes(shift, 1.0)
    log_product, hazards = _product(nodes, shift, None, memory)
    log_Z, weights = _normalise(log_product + log_weights)
    return nodes, hazards, weights, log_Z


def _log_orthant(shift, slope, memory):
    """Log of E_u[prod_j Phi(slope_j u + shift_j)] (n,)."""
    nodes, log_weights = _nodes(shift, slope)
    log_product, _ = _product(nodes, shift, slope, memory)
    return _normalise(log_product + log_weights)[0]


def _nodes(shift, slope, counts=1.0):
    """Nodes (k, n) around the mode and the logs of their weights times the normal density."""
    mode, curvature = _mode(shift, slope, counts)
    points, log_weights = _hermite(N_NODES)
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


def _product(nodes, shift, slope, memory):
    """Sum over j of log Phi(slope_j u + shift_j) at nodes u (k, n), and the hazards (j, k, n)."""
    work, hazards = memory.narrow(nodes.shape[1])
    log_product, product, n_factors = np.zeros_like(nodes), np.ones_like(nodes), 0
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
        n_factors += 1
        if n_factors % FACTORS_AT_ONCE == 0:
            log_product += np.log(product)
            product.fill(1.0)
    log_product += np.log(product)
    return log_product, hazards


def _mode(shift, slope, counts=1.0):
    """Mode and curvature of f(u) = -u^2/2 + sum_j counts_j log Phi(slope_j u + shift_j).

    f' is convex and falls, so Newton's steps approach its root from the left and never leave.
    """
    u = np.zeros(shift.shape[1])
    for _ in range(NEWTON_STEPS):
        gradient, curvature = _derivatives(u, shift, slope, counts)
        step = gradient / curvature
        u += step
        if np.max(np.abs(step), initial=0.0) < NEWTON_TOLERANCE:
            break
    return u, curvature


def _derivatives(u, shift, slope, counts=1.0):
    A = u * slope + shift
    h = _hazard_by_table(A)
    # Between 0 and 1 for any a; far out rounding leaves less of it, or more.
    falls = np.clip(h * (h + A), 0.0, 1.0)
    slopes = counts * slope
    return (slopes * h).sum(axis=0) - u, 1.0 + (slopes * slope * falls).sum(axis=0)


def _hazard_by_table(A):
    if not np.min(A, initial=0.0) > LOWEST:
        return hazard(A)
    cdf, density = cdf_and_density(A)
    return density / cdf


def _draw_winner(shift, rng):
    """A draw of u (n,) by rejection from the normal curve that touches its density at the mode."""
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


def _differences(M, labels):
    """m_y - m_j for the other classes j, (c - 1, n)."""
    others = M[_others(labels, M.shape[1])].reshape(len(M), -1)
    return M[np.arange(len(M)), labels] - others.T


def _others(labels, n_classes):
    return np.arange(n_classes) != labels[:, None]


@lru_cache
def _hermite(n_nodes):
    """Nodes and log weights (k, 1) of the normal distribution."""
    points, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return points[:, None], np.log(weights)[:, None] - LOG_ROOT_TWO_PI


def _block_size():
    return max(1, BLOCK_ENTRIES // N_NODES)
