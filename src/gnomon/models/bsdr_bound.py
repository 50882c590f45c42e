"""Expected sums under the mean-field factors of BSDR, and the lower bound (3) of [G13]."""

import numpy as np

from gnomon.models.bsdr import Problem, lift, shared, shared_count
from gnomon.models.bsdr_factors import Factors
from gnomon.stats.gamma import kl


def bound(factors: Factors, problem: Problem) -> float:
    """The lower bound (3) on log p(y | X), for any values of the factors."""
    return (
        _score_term(factors, problem)
        + _latent_term(factors, problem)
        + _projection_term(factors, problem)
        + _weight_term(factors, problem)
    )


def score_means(factors):
    """E[V'z + b] (n, c)."""
    return lift(factors.Z) @ factors.B


def weight_moments(factors):
    """E[v_c v_c'] (c, q, q) and E[v_c b_c] (c, q)."""
    B = factors.B.T
    second = factors.C + B[:, :, None] * B[:, None, :]
    return second[:, 1:, 1:], second[:, 1:, 0]


def latent_moments(factors, problem):
    """Sum over the rows that observe output c of E[[1, z] [1, z]'] (c, q + 1, q + 1)."""
    lifted, observed = lift(factors.Z), problem.outputs.observed
    c = problem.outputs.n_outputs
    if observed is None:
        moments = np.repeat((lifted.T @ lifted)[None], c, axis=0)
    else:
        moments = np.stack([(lifted * column[:, None]).T @ lifted for column in observed.T])
    counts = problem.patterns.masks * problem.patterns.counts[:, None]
    moments[:, 1:, 1:] += np.einsum("mc,mab->cab", counts, factors.S)
    return moments


def projection_squares(factors, kind):
    """Expected squares of P, summed over the entries that share a precision."""
    squares = shared(factors.P**2 + factors.spread.variance, kind)
    return squares + factors.spread.rest if kind == "column" else squares


def noise_precision(factors):
    """E[eps] (c,); ones for classes and labels."""
    return np.ones(factors.B.shape[1]) if factors.eps is None else factors.eps.mean


def observed_counts(problem):
    """Number of rows that observe each output (c,)."""
    return (problem.patterns.masks * problem.patterns.counts[:, None]).sum(axis=0)


def seen(values, problem):
    """Values (n, c) with zeros where the output is not observed."""
    observed = problem.outputs.observed
    return values if observed is None else values * observed


def _score_squares(factors, problem):
    """Sum over observed rows of E[(V'z + b)_c^2] (c,)."""
    B = factors.B.T
    second = factors.C + B[:, :, None] * B[:, None, :]
    return np.einsum("cab,cab->c", second, latent_moments(factors, problem))


def residual_squares(factors, problem):
    """Sum over observed rows of E[(y - V'z - b)_c^2] (c,)."""
    Y = seen(factors.T, problem)
    cross = np.sum(Y * (Y - 2 * score_means(factors)), axis=0)
    return cross + _score_squares(factors, problem)


def _score_term(factors, problem):
    """E log p(y, T | Z, V, b) - E log q(T); E|t|^2 cancels."""
    if factors.eps is not None:
        counts, eps = observed_counts(problem), factors.eps
        fit = counts * (eps.log_mean - np.log(2 * np.pi))
        fit -= eps.mean * residual_squares(factors, problem)
        return 0.5 * float(np.sum(fit)) - kl(eps, problem.priors.noise)
    agreement = np.sum(seen(factors.T, problem) * score_means(factors))
    return factors.T_normaliser + float(agreement - 0.5 * np.sum(_score_squares(factors, problem)))


def _latent_term(factors, problem):
    """E log p(Z | P, X) - E log q(Z)."""
    n, q = factors.Z.shape
    noise, counts = problem.ridge.noise, problem.patterns.counts
    squares = np.sum((factors.Z - factors.projected) ** 2) + np.sum(factors.spread.gram_trace)
    squares += counts @ np.trace(factors.S, axis1=1, axis2=2)
    entropy = counts @ factors.S_log_det + n * q * (1.0 - np.log(noise))
    return 0.5 * float(entropy - squares / noise)


def _projection_term(factors, problem):
    """E log p(P, phi) - E log q(P, phi)."""
    kind, ridge = problem.priors.kind, problem.ridge
    q = factors.P.shape[1]
    count = shared_count(kind, ridge.n_features, q)
    fit = count * np.sum(factors.phi.log_mean)
    fit -= np.sum(factors.phi.mean * projection_squares(factors, kind))
    fit += np.sum(factors.spread.log_det) + ridge.n_features * q
    return 0.5 * float(fit) - kl(factors.phi, problem.priors.projection)


def _weight_term(factors, problem):
    """E log p(b, V, lambda, psi) - E log q(b, V, lambda, psi)."""
    squares = factors.B**2 + np.diagonal(factors.C, axis1=1, axis2=2).T
    fit = np.sum(factors.lam.log_mean - factors.lam.mean * squares[0])
    fit += np.sum(factors.psi.log_mean - factors.psi.mean * squares[1:])
    fit += np.sum(factors.C_log_det) + factors.B.size
    penalty = kl(factors.lam, problem.priors.bias) + kl(factors.psi, problem.priors.weights)
    return 0.5 * float(fit) - penalty
