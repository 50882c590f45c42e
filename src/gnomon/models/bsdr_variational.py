"""Mean-field inference for BSDR: factors, updates (4)-(10) of [G13], the lower bound (3).

q = q(phi) q(P) q(Z) q(psi) q(lambda) q(b, V) q(T), with a factor for the noise of numbers.

An expected square in [G13] is written like the square of an expectation; the updates here keep
the second moments (docs/errata.md, E-G13-1 to E-G13-3). q(P) and q(Z) are strongly coupled,
so their means move together: with S = Cov(z), H_i = E[V t_i - V b] and everything else fixed,

    P phi + X'X P (I - S / noise) / noise = X'H S / noise.

A sweep ends with a change of basis of the latent variables (`bsdr_basis`).
"""

from functools import partial

import numpy as np

from gnomon.linalg.solve import preconditioned_solution, stacked_covariances
from gnomon.models.bsdr import NumberOutputs, Problem, lift, shared, shared_count, spread_out
from gnomon.models.bsdr_basis import update_basis
from gnomon.models.bsdr_bound import (
    bound,
    latent_moments,
    noise_precision,
    observed_counts,
    projection_squares,
    residual_squares,
    score_means,
    seen,
    weight_moments,
)
from gnomon.models.bsdr_factors import Factors
from gnomon.stats.gamma import Gamma, precision_posterior
from gnomon.stats.ridge import SpectralRidge

# Any number of conjugate-gradient steps ascends; these many bring nearly all of the gain.
CG_STEPS = 20
CG_TOLERANCE = 1e-2


def init(problem: Problem, P) -> Factors:
    """Factors around a projection P (d, q) whose columns give Z of unit variance."""
    n, q = problem.n_samples, P.shape[1]
    c, priors, ridge = problem.outputs.n_outputs, problem.priors, problem.ridge
    count = shared_count(priors.kind, ridge.n_features, q)
    phi = precision_posterior(priors.projection, count, shared(P**2, priors.kind))
    projected = np.asarray(ridge.X @ P, dtype=float)
    half = np.broadcast_to(0.5 * ridge.noise * np.eye(q), (len(problem.patterns.masks), q, q))
    counts = observed_counts(problem)
    numbers = isinstance(problem.outputs, NumberOutputs)
    factors = Factors(
        phi=phi,
        P=P,
        projected=projected,
        spread=ridge.spread(phi.mean, q),
        Z=projected,
        S=half,
        S_log_det=np.full(len(half), q * np.log(0.5 * ridge.noise)),
        T=np.zeros((n, c)),
        T_normaliser=0.0,
        psi=Gamma(priors.weights.shape + 0.5, np.full((q, c), 1 / (priors.weights.shape + 0.5))),
        lam=Gamma(priors.bias.shape + 0.5, np.full(c, 1 / (priors.bias.shape + 0.5))),
        B=np.zeros((q + 1, c)),
        C=np.broadcast_to(np.eye(q + 1), (c, q + 1, q + 1)),
        C_log_det=np.zeros(c),
        eps=precision_posterior(priors.noise, counts, counts) if numbers else None,
    )
    return update_weights(update_scores(factors, problem), problem)


def step(factors: Factors, problem: Problem):
    """One sweep; the bound returned is that of the given means with all else at its best."""
    for update in (update_spread, update_latent_spread, update_scores, update_weight_precisions):
        factors = update(factors, problem)
    objective = bound(factors, problem)
    for update in (update_means, update_weights, update_noise, update_basis):
        factors = update(factors, problem)
    return factors, objective


def update_projection_precisions(factors, problem):
    """q(phi), eq. (4), with E[p^2] in full."""
    priors, ridge = problem.priors, problem.ridge
    squares = projection_squares(factors, priors.kind)
    count = shared_count(priors.kind, ridge.n_features, factors.P.shape[1])
    return factors._replace(phi=precision_posterior(priors.projection, count, squares))


def update_spread(factors, problem):
    """Covariances of q(P), eq. (5)."""
    spread = problem.ridge.spread(factors.phi.mean, factors.P.shape[1])
    return factors._replace(spread=spread)


def update_projection(factors, problem):
    """q(P), eq. (5), given q(Z)."""
    factors = update_spread(factors, problem)
    ridge = problem.ridge
    R = np.asarray(ridge.X.T @ factors.Z, dtype=float) / ridge.noise
    return _with_projection(factors, ridge.solve(factors.phi.mean, factors.spread, R), problem)


def update_latent_spread(factors, problem):
    """Covariances of q(Z), eq. (6), with E[V V'] in full: one for every pattern of outputs."""
    second, _ = weight_moments(factors)
    q = factors.P.shape[1]
    weights = problem.patterns.masks * noise_precision(factors)
    precision = np.eye(q) / problem.ridge.noise + np.einsum("mc,cab->mab", weights, second)
    S, log_det = stacked_covariances(precision)
    return factors._replace(S=S, S_log_det=log_det)


def update_latent(factors, problem):
    """q(Z), eq. (6)."""
    factors = update_latent_spread(factors, problem)
    return _with_latent_means(factors, _evidence(factors, problem), problem)


def update_means(factors, problem):
    """Means of q(P) and q(Z) together, given their covariances and all other factors."""
    H = _evidence(factors, problem)
    R = joint_evidence(factors, problem, H)
    solve = partial(problem.ridge.solve, factors.phi.mean, factors.spread)
    P = joint_solution(factors, problem, R, solve, CG_STEPS, CG_TOLERANCE)
    return _with_latent_means(_with_projection(factors, P, problem), H, problem)


def joint_evidence(factors, problem, H=None):
    """The right-hand side of the joint equation, what the scores say of P (d, q)."""
    H = _evidence(factors, problem) if H is None else H
    ridge = problem.ridge
    return np.asarray(ridge.X.T @ by_pattern(H, factors.S, problem), dtype=float) / ridge.noise


def joint_solution(factors, problem, R, solve, steps, tolerance):
    """P of the joint equation for the right-hand side R: exact along principal axes.

    Else by conjugate gradients from the P at hand, preconditioned by ``solve``.
    """
    ridge = problem.ridge
    if isinstance(ridge, SpectralRidge) and problem.patterns.row_pattern is None:
        return _spectral_means(factors, R, ridge)
    phi = spread_out(factors.phi.mean, problem.priors.kind, factors.P.shape)

    def apply(P):
        return phi * P + _damped_gram(P, factors.S, problem) / ridge.noise

    return preconditioned_solution(apply, R, factors.P, solve, steps, tolerance)


def update_weight_precisions(factors, problem):
    """q(lambda) and q(psi), eqs. (7) and (8), with second moments in full."""
    squares = factors.B**2 + np.diagonal(factors.C, axis1=1, axis2=2).T
    return factors._replace(
        lam=precision_posterior(problem.priors.bias, 1, squares[0]),
        psi=precision_posterior(problem.priors.weights, 1, squares[1:]),
    )


def update_weights(factors, problem):
    """q(b, V), eq. (9), with E[Z'Z] in full."""
    eps = noise_precision(factors)
    precision = eps[:, None, None] * latent_moments(factors, problem)
    prior = np.vstack([factors.lam.mean, factors.psi.mean])
    diagonal = np.arange(len(prior))
    precision[:, diagonal, diagonal] += prior.T
    C, log_det = stacked_covariances(precision)
    rhs = lift(factors.Z).T @ (seen(factors.T, problem) * eps)
    B = np.einsum("cab,bc->ac", C, rhs)
    return factors._replace(B=B, C=C, C_log_det=log_det)


def update_scores(factors, problem):
    """q(T), eq. (10)."""
    M = score_means(factors)
    T, log_Z = problem.outputs.scores(M)
    gain = np.sum(seen(M, problem) * (0.5 * M - T))
    return factors._replace(T=T, T_normaliser=log_Z + float(gain))


def update_noise(factors, problem):
    """q(eps): the noise precisions of numbers; nothing for classes and labels."""
    if factors.eps is None:
        return factors
    squares = residual_squares(factors, problem)
    return factors._replace(
        eps=precision_posterior(problem.priors.noise, observed_counts(problem), squares)
    )


def _spectral_means(factors, R, ridge):
    """The joint equation along each principal axis: p (diag(phi) + l (I - S / noise)) = r."""
    root = 1.0 / np.sqrt(factors.phi.mean)
    shrink = np.eye(len(root)) - factors.S[0] / ridge.noise
    values, vectors = np.linalg.eigh(root[:, None] * shrink * root)
    turn = root[:, None] * vectors
    return (R @ turn / (1.0 + ridge.values[:, None] / ridge.noise * values)) @ turn.T


def _damped_gram(P, S, problem):
    """X'(X P (I - S_i / noise))."""
    ridge = problem.ridge
    if problem.patterns.row_pattern is None:
        return ridge.gram_product(P - P @ S[0] / ridge.noise)
    projected = np.asarray(ridge.X @ P, dtype=float)
    return np.asarray(ridge.X.T @ (projected - by_pattern(projected, S, problem) / ridge.noise))


def _with_projection(factors, P, problem):
    return factors._replace(P=P, projected=np.asarray(problem.ridge.X @ P, dtype=float))


def _with_latent_means(factors, H, problem):
    Z = by_pattern(factors.projected / problem.ridge.noise + H, factors.S, problem)
    return factors._replace(Z=Z)


def by_pattern(H, S, problem):
    """Rows h_i' S_i, with the matrix (m, q, q) of each row's pattern of observed outputs."""
    if problem.patterns.row_pattern is None:
        return H @ S[0]
    return np.einsum("nab,na->nb", S[problem.patterns.row_pattern], H)


def _evidence(factors, problem):
    """H (n, q): what the scores say of z."""
    eps = noise_precision(factors)
    _, with_bias = weight_moments(factors)
    H = (seen(factors.T, problem) * eps) @ factors.B[1:].T
    if problem.patterns.row_pattern is None:
        return H - eps @ with_bias
    return H - (problem.outputs.observed * eps) @ with_bias
