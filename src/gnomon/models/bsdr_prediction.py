"""Predictive distributions of BSDR from means B and covariances C of [b; V].

Plug-in: scores at z = E[z | x], t_c ~ N(m_c, 1 + [1, z]' C_c [1, z]). Integral: z itself is
drawn from its posterior by fixed low-discrepancy points, so the answer is deterministic.

Errata: [G13] divides by the variance of the scores in place of its root (E-G13-5) and drops
the variance of z (E-G13-6); with draws it counts the noise of the scores twice (E-G13-8).
"""

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from gnomon.models.bsdr import lift
from gnomon.stats.probit import DEFAULT_NODES, class_probabilities

INTEGRATION_POINTS = 64
ROWS_AT_ONCE = 2**14


def probabilities(M, variance, are_classes, n_nodes=DEFAULT_NODES):
    """Class probabilities (n, c), or of every label on its own, from independent scores."""
    if are_classes:
        return class_probabilities(M, variance, n_nodes)
    return ndtr(M / np.sqrt(variance))


def plug_in(Z, B, C, are_classes, n_nodes=DEFAULT_NODES):
    """Probabilities (n, c) at given z."""
    return probabilities(lift(Z) @ B, score_variances(Z, C), are_classes, n_nodes)


def integrated(Z, variances, B, C, are_classes, n_nodes=DEFAULT_NODES):
    """Probabilities (n, c) averaged over z ~ N(Z, diag(variances))."""
    sd = np.sqrt(variances)
    points = normal_points(Z.shape[1], INTEGRATION_POINTS)
    return sum(plug_in(Z + sd * u, B, C, are_classes, n_nodes) for u in points) / len(points)


def from_draws(projected, weights, bias, noise, are_classes, n_nodes=DEFAULT_NODES):
    """Probabilities (n, c) averaged over draws: projected rows (n, q), weights (q, c), bias (c,).

    Each draw gets one point of z's own noise; the scores enter by their means.
    """
    points = np.sqrt(noise) * normal_points(weights.shape[1], len(weights))
    waiting, total = [], 0.0
    for Z, V, b, u in zip(projected, weights, bias, points, strict=True):
        waiting.append((Z + u) @ V + b)
        if len(waiting) * len(Z) >= ROWS_AT_ONCE:
            total, waiting = total + _summed(waiting, are_classes, n_nodes), []
    if waiting:
        total = total + _summed(waiting, are_classes, n_nodes)
    return total / len(weights)


def _summed(scores, are_classes, n_nodes):
    """Sum over draws of the probabilities; many draws at once cost little more than one."""
    M = np.concatenate(scores)
    P = probabilities(M, np.ones_like(M), are_classes, n_nodes)
    return P.reshape(len(scores), -1, M.shape[1]).sum(axis=0)


def score_variances(Z, C):
    """1 + [1, z]' C_c [1, z] (n, c): variances of the scores at given z."""
    lifted = lift(Z)
    return 1.0 + np.einsum("na,cab,nb->nc", lifted, C, lifted, optimize=True)


def number_variances(Z, variances, B, C, noise):
    """Variances (n, c) of numbers: of the weights, of z, and the noise (c,) of each output."""
    of_weights = score_variances(Z, C) - 1.0
    spread = B[1:] ** 2 + np.diagonal(C, axis1=1, axis2=2).T[1:]
    return of_weights + variances @ spread + noise


def normal_points(q, size):
    """Points (size, q) spread like N(0, I), always the same."""
    uniform = qmc.Halton(q, scramble=False).random(size + 1)[1:]
    return ndtri(uniform)
