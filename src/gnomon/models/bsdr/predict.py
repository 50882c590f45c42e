"""Predictive distributions of BSDR from means B and covariances C of [b; V].

Plug-in: scores at z = E[z | x], t_c ~ N(m_c, 1 + [1, z]' C_c [1, z]). Integral: z itself is
drawn from its posterior by fixed low-discrepancy points, so the answer is deterministic.

Errata: [G13] divides by the variance of the scores in place of its root (E-G13-5) and drops
the variance of z (E-G13-6); with draws it counts the noise of the scores twice (E-G13-8).
"""

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from gnomon.models.bsdr.factors import with_ones
from gnomon.models.bsdr.probit import class_probabilities

# With so many points probabilities err by less than 0.02 where z deviates by 0.7, see the tests.
INTEGRATION_POINTS = 64
# Many draws at once cost little more than one, but each row of theirs needs memory.
ROWS_AT_ONCE = 2**14


def probabilities(M, variance, are_classes):
    """Class probabilities (n, c), or of every label on its own, from independent scores."""
    if are_classes:
        return class_probabilities(M, variance)
    return ndtr(M / np.sqrt(variance))


def plug_in(Z, B, C, are_classes):
    """Probabilities (n, c) at given z."""
    return probabilities(with_ones(Z) @ B, score_variances(Z, C), are_classes)


def integrated(Z, variances, B, C, are_classes):
    """Probabilities (n, c) averaged over z ~ N(Z, diag(variances))."""
    sd = np.sqrt(variances)
    points = normal_points(Z.shape[1], INTEGRATION_POINTS)
    return sum(plug_in(Z + sd * u, B, C, are_classes) for u in points) / len(points)


def from_draws(projected, weights, bias, noise, are_classes):
    """Probabilities (n, c) averaged over draws: projected rows (n, q), weights (q, c), bias (c,).

    Each draw gets one point of z's own noise; the scores enter by their means.
    """
    points = np.sqrt(noise) * normal_points(weights.shape[1], len(weights))
    waiting, total = [], 0.0
    for Z, V, b, u in zip(projected, weights, bias, points, strict=True):
        waiting.append((Z + u) @ V + b)
        if len(waiting) * len(Z) >= ROWS_AT_ONCE:
            total, waiting = total + _summed(waiting, are_classes), []
    if waiting:
        total = total + _summed(waiting, are_classes)
    return total / len(weights)


def _summed(scores, are_classes):
    """Sum over draws of the probabilities."""
    M = np.concatenate(scores)
    P = probabilities(M, np.ones_like(M), are_classes)
    return P.reshape(len(scores), -1, M.shape[1]).sum(axis=0)


def covariance_of_draws(projected, mean, noise):
    """Covariance (n, q, q) of z over projections (n, q) of many draws, and the latent noise."""
    q, n_draws = mean.shape[1], 0
    total = np.zeros((len(mean), q, q))
    for Z in projected:
        gap = Z - mean
        total += gap[:, :, None] * gap[:, None, :]
        n_draws += 1
    return total / n_draws + noise * np.eye(q)


def score_variances(Z, C):
    """1 + [1, z]' C_c [1, z] (n, c): variances of the scores at given z."""
    Z = with_ones(Z)
    return 1.0 + np.einsum("na,cab,nb->nc", Z, C, Z, optimize=True)


def number_variances(Z, variances, B, C, noise):
    """Variances (n, c) of numbers: of the weights, of z, and the noise (c,) of each output."""
    of_weights = score_variances(Z, C) - 1.0
    squares = B[1:] ** 2 + np.diagonal(C, axis1=1, axis2=2).T[1:]
    return of_weights + variances @ squares + noise


def normal_points(q, size):
    """Points (size, q) spread like N(0, I), always the same."""
    uniform = qmc.Halton(q, scramble=False).random(size + 1)[1:]
    return ndtri(uniform)
