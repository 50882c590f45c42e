"""Predictive distributions of BSDR from means B and covariances C of [b; V].

Plug-in: scores at z = E[z | x], t_c ~ N(m_c, 1 + [1, z]' C_c [1, z]). Integral: z itself is
drawn from its posterior by fixed low-discrepancy points, so the answer is deterministic.

What rows do not observe is part of the uncertainty of z, or of the scores where there is no z; it
is integrated out whichever of the two is asked for. A fit to rows with gaps meets it as noise of
the outputs: numbers and scores are widened by what goes beyond that.

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
# Added to covariances that may be singular, in shares of their traces.
ROUNDING = 1e-12
# Of the noise of numbers at least this share is their own, whatever gaps explain of it.
LEAST_OWN_NOISE = 0.1
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


def integrated(Z, covariances, B, C, are_classes):
    """Probabilities (n, c) averaged over z ~ N(Z, covariances)."""
    return sum(plug_in(z, B, C, are_classes) for z in spread(Z, covariances)) / INTEGRATION_POINTS


def spread(means, covariances):
    """Points (n, q) of each N(means, covariances), one after another, always the same."""
    q = means.shape[1]
    largest = np.trace(covariances, axis1=1, axis2=2)[:, None, None]
    least = np.maximum(ROUNDING * largest, np.finfo(float).tiny)
    L = np.linalg.cholesky(covariances + least * np.eye(q))
    for u in normal_points(q, INTEGRATION_POINTS):
        yield means + L @ u


def beyond(covariances, seen):
    """Covariances (n, k, k) less those that a fit has seen on average (k, k), not below zero."""
    values, vectors = np.linalg.eigh(covariances - seen)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def integrated_scores(M, variance, covariances):
    """Class probabilities (n, c) where means of the scores are N(M, covariances) themselves."""
    points = spread(M, covariances)
    return sum(class_probabilities(m, variance) for m in points) / INTEGRATION_POINTS


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


def number_variances_of_draws(projected, weights, bias, mean, noise):
    """Variances (n, c) of numbers over draws, around their mean (n, c), less their own noise.

    Scales of projection and weights are known by their product alone, so that the variances of
    the two, taken as independent, would add up to too much.
    """
    total = 0.0
    for Z, V, b in zip(projected, weights, bias, strict=True):
        total = total + (Z @ V + b - mean) ** 2
    return total / len(weights) + noise * np.mean(np.sum(weights**2, axis=1), axis=0)


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


def number_variances(Z, covariances, B, C, noise):
    """Variances (n, c) of numbers: of the weights, of z, and the noise (c,) of each output."""
    of_weights = score_variances(Z, C) - 1.0
    squares = B[1:].T[:, :, None] * B[1:].T[:, None, :] + C[:, 1:, 1:]
    return of_weights + np.einsum("nij,cij->nc", covariances, squares, optimize=True) + noise


def noise_without_gaps(noise, unseen, V):
    """Noise (c,) of numbers less what gaps of the fit, of covariance (q, q) on average, put in."""
    of_gaps = np.einsum("ic,ij,jc->c", V, unseen, V)
    return np.maximum(noise - of_gaps, LEAST_OWN_NOISE * noise)


def normal_points(q, size):
    """Points (size, q) spread like N(0, I), always the same."""
    uniform = qmc.Halton(q, scramble=False).random(size + 1)[1:]
    return ndtri(uniform)
