"""Mean-field inference for BSDR: the updates (4)-(10) of [G13] and a change of basis, in sweeps.

q = q(phi) q(P) q(Z) q(psi) q(lambda) q(b, V) q(T), with a factor for the noise of numbers.

An expected square in [G13] is written like the square of an expectation; the updates here keep
the second moments (docs/errata.md, E-G13-1 to E-G13-3). q(P) and q(Z) are strongly coupled,
so their means move together: with S = Cov(z), H_i = E[V t_i - V b] and everything else fixed,

    P phi + X'X P (I - S / noise) / noise = X'H S / noise.

A sweep ends with a change of basis of the latent variables that raises the bound,

    P -> P R,    Z -> Z R,    V -> R^-1 V,

which leaves all scores as they are, so that no score is integrated anew; the bound depends on R
by statistics of size q only. The updates change the basis slowly, since P, Z and V each follow
the other two; here all three move at once [LI10], and the spread of Z with them: where classes lie
far apart P grows and V falls for hundreds of sweeps if that spread is turned like Z.
`printed_step` is Algorithm 1 of [G13] alone.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gnomon.inference.loop import Method, squarem
from gnomon.linalg.solve import preconditioned_solution, stacked_covariances
from gnomon.models.bsdr.factors import (
    Factors,
    Gamma,
    Model,
    bound,
    counted,
    latent_moments,
    noise_precision,
    observed_counts,
    observed_only,
    of_entries,
    of_rows,
    pack,
    precision_posterior,
    projection_precisions,
    projection_squares,
    residual_squares,
    score_means,
    sum_shared,
    unpack,
    weight_moments,
    weight_squares,
    with_ones,
)
from gnomon.models.bsdr.inputs import SpectralRidge
from gnomon.models.bsdr.outputs import NumberOutputs

# Any number of conjugate-gradient steps ascends; these many bring nearly all of the gain.
CG_STEPS, CG_TOLERANCE = 20, 1e-2
# Scores and latent means of a row follow each other until none moves by this share of the latent
# noise: three or four steps where rows are many, more where weights are large, which mixtures of
# the last images shorten. The ridge keeps these defined where images agree.
SETTLING_STEPS, SETTLED, MIXED, MIXING_RIDGE = 50, 1e-5, 4, 1e-12
# Quasi-Newton steps to a better basis; the next sweep goes on from where they lead. They end by
# what a row gains or by its slope: at SciPy's own 2e-9 and 1e-5 a million rows hardly move.
BASIS_STEPS, BASIS_GAIN, BASIS_SLOPE = 10, 1e-12, 1e-8
# The first of these steps has length one in this unit. In the unit of the basis itself a step that
# shortens a direction would end where it is singular, and the search there: digits with 20 labels a
# class ended up to 12 nats lower; .03, .1 and .3 end alike.
BASIS_UNIT = 0.3


def start(model: Model, P) -> Factors:
    """Factors around a projection P (d, q) whose columns give Z of unit variance."""
    q, c = P.shape[1], model.outputs.n_outputs
    priors, ridge, counts = model.priors, model.ridge, observed_counts(model)
    numbers = isinstance(model.outputs, NumberOutputs)
    phi = projection_precisions(sum_shared(P**2, priors.kind), model, q)
    projected = np.asarray(ridge.X @ P, dtype=float)
    half = np.broadcast_to(0.5 * ridge.noise * np.eye(q), (len(model.patterns.masks), q, q))
    factors = Factors(
        phi=phi,
        P=P,
        projected=projected,
        P_covariances=ridge.covariances(phi.mean, q),
        Z=projected,
        S=half,
        S_log_det=np.full(len(half), q * np.log(0.5 * ridge.noise)),
        T=np.zeros((len(projected), c)),
        T_normaliser=0.0,
        psi=_unit_precisions(priors.weights, (q, c)),
        lam=_unit_precisions(priors.bias, c),
        B=np.zeros((q + 1, c)),
        C=np.broadcast_to(np.eye(q + 1), (c, q + 1, q + 1)),
        C_log_det=np.zeros(c),
        eps=precision_posterior(priors.noise, counts, counts) if numbers else None,
    )
    return update_weights(update_scores(factors, model), model)


def _unit_precisions(prior, shape):
    """Precisions of mean one with the shape parameter that one entry gives them."""
    return Gamma(prior.shape + 0.5, np.full(shape, 1 / (prior.shape + 0.5)))


def step(factors: Factors, model: Model):
    """One sweep; the bound returned is that of the given means with all else at its best."""
    factors = update_scores(update_spreads(factors, model), model)
    objective = bound(factors, model)
    factors = update_means(factors, model)
    factors = update_weights(factors, model)
    factors = update_noise(factors, model)
    return update_basis(factors, model), objective


def accelerated(model: Model, start: Factors) -> Method:
    """The sweeps from a start on, three to a step."""
    plain = Method(start, partial(step, model=model))
    return squarem(plain, pack, partial(unpack, like=start))


def update_spreads(factors, model):
    """Covariances of q(P) and q(Z) and the precisions of weights, given the means."""
    factors = update_projection_covariances(factors, model)
    return update_weight_precisions(update_latent_covariances(factors, model), model)


def settle(factors, model):
    """Means of q(T) and q(Z) at their best given all factors that rows share, each row alone.

    Rows that have settled are left out of what follows, so that one of many blocks ends as it does
    in another.
    """
    Z, T = np.array(factors.Z), np.empty((len(factors.Z), factors.B.shape[1]))
    left, part, gains = np.arange(len(Z)), model, np.empty(len(Z))
    images: list[np.ndarray] = []
    residuals: list[np.ndarray] = []
    for _ in range(SETTLING_STEPS):
        before = _mixed(images, residuals) if images else Z[left]
        here = factors._replace(Z=before, projected=factors.projected[left])
        T[left], gains[left] = row_scores(score_means(here, part), part)
        Z[left] = update_latent_means(here._replace(T=T[left]), part).Z
        moved = Z[left] - before
        unsettled = np.max(np.abs(moved), axis=1) > SETTLED * np.sqrt(model.ridge.noise)
        if not unsettled.any():
            break
        images = [image[unsettled] for image in [*images, Z[left]][-MIXED:]]
        residuals = [residual[unsettled] for residual in [*residuals, moved][-MIXED:]]
        left, part = left[unsettled], of_rows(part, unsettled)
    return factors._replace(Z=Z, T=T, T_normaliser=_summed(gains, model))


def _mixed(images, residuals):
    """Row by row the mixture of images with the least residual; the last where that has grown."""
    away = np.stack([residuals[-1] - other for other in residuals], axis=2)
    lengths = np.sum(away**2, axis=(1, 2)) + np.finfo(float).tiny
    gram = np.matmul(away.transpose(0, 2, 1), away) / lengths[:, None, None]
    gram += MIXING_RIDGE * np.eye(len(residuals))
    right = np.matmul(away.transpose(0, 2, 1), residuals[-1][:, :, None]) / lengths[:, None, None]
    worse = len(residuals) > 1 and np.sum(residuals[-1] ** 2 - residuals[-2] ** 2, axis=1) > 0
    weights = np.where(np.reshape(worse, (-1, 1, 1)), 0.0, np.linalg.solve(gram, right))
    step = np.stack([images[-1] - other for other in images], axis=2)
    return images[-1] - np.matmul(step, weights)[:, :, 0]


def printed_step(factors: Factors, model: Model):
    """Lines 3-6 of Algorithm 1 of [G13]: each factor in turn given the others, nothing besides.

    The noise of numbers, which [G13] does not have, comes last. The bound is that of the factors
    given.
    """
    objective = bound(factors, model)
    factors = update_projection_precisions(factors, model)
    factors = update_projection(factors, model)
    factors = update_latent(factors, model)
    factors = update_weight_precisions(factors, model)
    factors = update_weights(factors, model)
    factors = update_scores(factors, model)
    return in_row_order(update_noise(factors, model)), objective


def in_row_order(value):
    """The same values, arrays row by row: as they are read from a file, so that sums end alike."""
    if isinstance(value, tuple):
        return type(value)(*map(in_row_order, value))
    return np.ascontiguousarray(value) if np.ndim(value) else value


def update_projection_precisions(factors, model):
    """q(phi), eq. (4) of [G13], with E[p^2] in full."""
    squares = projection_squares(factors, model.priors.kind)
    return factors._replace(phi=projection_precisions(squares, model, factors.P.shape[1]))


def update_projection_covariances(factors, model):
    """Covariances of q(P), eq. (5) of [G13]."""
    covariances = model.ridge.covariances(factors.phi.mean, factors.P.shape[1])
    return factors._replace(P_covariances=covariances)


def update_projection(factors, model):
    """q(P) given q(Z), eq. (5) of [G13]; `update_means` solves for both together."""
    factors = update_projection_covariances(factors, model)
    R = np.asarray(model.ridge.X.T @ factors.Z, dtype=float) / model.ridge.noise
    P = model.ridge.solve(factors.phi.mean, factors.P_covariances, R)
    return factors._replace(P=P, projected=np.asarray(model.ridge.X @ P, dtype=float))


def update_latent_covariances(factors, model):
    """Covariances of q(Z), eq. (6) of [G13], with E[V V'] in full: one for every pattern."""
    precision = np.eye(factors.P.shape[1]) / model.ridge.noise
    S, log_det = stacked_covariances(precision + _latent_evidence(factors, model))
    return factors._replace(S=S, S_log_det=log_det)


def _latent_evidence(factors, model):
    """What the weights add to the precision of z for every pattern, E[V V'] (m, q, q)."""
    weights = model.patterns.masks * noise_precision(factors)
    return np.einsum("mc,cab->mab", weights, weight_moments(factors)[:, 1:, 1:])


def update_latent(factors, model):
    """q(Z), eq. (6) of [G13]."""
    return update_latent_means(update_latent_covariances(factors, model), model)


def update_latent_means(factors, model):
    """Means of q(Z), eq. (6) of [G13]."""
    return _with_latent_means(factors, _evidence(factors, model), model)


def update_means(factors, model):
    """Means of q(P) and q(Z) together, given their covariances and all other factors."""
    H = _evidence(factors, model)
    P = joint_solution(factors, model, joint_right_side(factors, model, H))
    factors = factors._replace(P=P, projected=np.asarray(model.ridge.X @ P, dtype=float))
    return _with_latent_means(factors, H, model)


def joint_right_side(factors, model, H):
    """X'H S / noise: what the scores say of P (d, q)."""
    ridge, rows = model.ridge, counted(by_pattern(H, factors.S, model), model)
    return np.asarray(ridge.X.T @ rows, dtype=float) / ridge.noise


def joint_solution(factors, model, R):
    """P of the joint equation for the right-hand side R: exact along principal axes.

    Else by conjugate gradients from the P at hand, preconditioned by the ridge.
    """
    ridge = model.ridge
    if isinstance(ridge, SpectralRidge) and model.patterns.of_row is None:
        return _spectral_solution(factors, R, ridge)
    phi = of_entries(factors.phi.mean, model.priors.kind, factors.P.shape)
    solve = partial(ridge.solve, factors.phi.mean, factors.P_covariances)

    def apply(P):
        return phi * P + _damped_gram(P, factors.S, model) / ridge.noise

    return preconditioned_solution(apply, R, factors.P, solve, CG_STEPS, CG_TOLERANCE)


def update_weight_precisions(factors, model):
    """q(lambda) and q(psi), eqs. (7) and (8) of [G13], with second moments in full."""
    squares = weight_squares(factors)
    return factors._replace(
        lam=precision_posterior(model.priors.bias, 1, squares[0]),
        psi=precision_posterior(model.priors.weights, 1, squares[1:]),
    )


def update_weights(factors, model):
    """q(b, V), eq. (9) of [G13], with E[Z'Z] in full."""
    eps = noise_precision(factors)
    precision = eps[:, None, None] * latent_moments(factors, model)
    prior = np.vstack([factors.lam.mean, factors.psi.mean])
    diagonal = np.arange(len(prior))
    precision[:, diagonal, diagonal] += prior.T
    C, log_det = stacked_covariances(precision)
    rhs = with_ones(factors.Z, model).T @ counted(observed_only(factors.T, model) * eps, model)
    return factors._replace(B=np.einsum("cab,bc->ac", C, rhs), C=C, C_log_det=log_det)


def update_scores(factors, model):
    """q(T), eq. (10) of [G13]."""
    T, gains = row_scores(score_means(factors, model), model)
    return factors._replace(T=T, T_normaliser=_summed(gains, model))


def row_scores(M, model):
    """E[T] around M, and log Z(m) + m^2 / 2 - E[t] m of every row (n,)."""
    free = len(M) if model.standing is None else len(M) - len(model.standing.slopes)
    T, log_Z = model.outputs.row_scores(M[:free])
    return _completed(M, T, log_Z, model)


def with_scores(factors, M, T, log_Z, model):
    """q(T) of E[t] and log Z of the rows that are no tangents, at the means M of all."""
    T, gains = _completed(M, T, log_Z, model)
    return factors._replace(T=T, T_normaliser=_summed(gains, model))


def _completed(M, T, log_Z, model):
    """The same of all rows; where they stand for others log Z of the last is linear in m."""
    if model.standing is not None:
        last, slopes = M[len(T) :], model.standing.slopes
        T = np.concatenate([T, last + slopes])
        log_Z = np.concatenate([log_Z, np.sum(last * slopes, axis=1)])
    return T, log_Z + np.sum(observed_only(M, model) * (0.5 * M - T), axis=1)


def _summed(gains, model):
    constant = 0.0 if model.standing is None else model.standing.constant
    return float(np.sum(counted(gains[:, None], model))) + constant


def update_noise(factors, model):
    """q(eps): the noise precisions of numbers; nothing for classes and labels."""
    if factors.eps is None:
        return factors
    squares = residual_squares(factors, model)
    eps = precision_posterior(model.priors.noise, observed_counts(model), squares)
    return factors._replace(eps=eps)


def by_pattern(H, S, model):
    """Rows h_i' S_i (..., n, q), with the matrix (..., m, q, q) of each row's pattern."""
    if model.patterns.of_row is None:
        return H @ S[..., 0, :, :]
    return np.einsum("...nab,...na->...nb", S[..., model.patterns.of_row, :, :], H)


def _evidence(factors, model):
    """H (n, q): what the scores say of z."""
    eps = noise_precision(factors)
    with_bias = weight_moments(factors)[:, 1:, 0]
    H = (observed_only(factors.T, model) * eps) @ factors.B[1:].T
    less = (eps if model.observed is None else model.observed * eps) @ with_bias
    return H - (less if model.standing is None else model.standing.ones * less)


def _spectral_solution(factors, R, ridge):
    """The joint equation along each principal axis: p (diag(phi) + l (I - S / noise)) = r."""
    root = 1.0 / np.sqrt(factors.phi.mean)
    shrink = np.eye(len(root)) - factors.S[0] / ridge.noise
    values, vectors = np.linalg.eigh(root[:, None] * shrink * root)
    turn = root[:, None] * vectors
    return (R @ turn / (1.0 + ridge.values[:, None] / ridge.noise * values)) @ turn.T


def _damped_gram(P, S, model):
    """X'(X P (I - S_i / noise))."""
    ridge = model.ridge
    if model.patterns.of_row is None:
        return ridge.gram_product(P - P @ S[0] / ridge.noise)
    projected = np.asarray(ridge.X @ P, dtype=float)
    return np.asarray(ridge.X.T @ (projected - by_pattern(projected, S, model) / ridge.noise))


def _with_latent_means(factors, H, model):
    Z = by_pattern(factors.projected / model.ridge.noise + H, factors.S, model)
    return factors._replace(Z=Z)


class BasisMoments(NamedTuple):
    """What tells how good a basis is."""

    P: np.ndarray
    variances: np.ndarray
    """What the covariances of P add to the squares that share a precision."""
    latent: np.ndarray
    """Second moments (q, q) of the means Z - X P, in units of the latent noise."""
    weights: np.ndarray
    """E[v_c v_c'] (c, q, q)."""
    evidence: np.ndarray
    """What these add to the precision of z, for every pattern (m, q, q)."""


def update_basis(factors: Factors, model: Model) -> Factors:
    """The factors in a better basis of the latent variables, with the precisions of P and V."""
    moments = basis_moments(factors, model)
    same = np.eye(factors.P.shape[1])

    def evaluate(x):
        loss, slope = basis_loss(same.ravel() + BASIS_UNIT * x, moments, model)
        return loss, BASIS_UNIT * slope

    nowhere = np.zeros(same.size)
    few: Any = {"maxiter": BASIS_STEPS, "ftol": BASIS_GAIN, "gtol": BASIS_SLOPE}
    found = minimize(evaluate, nowhere, jac=True, method="L-BFGS-B", options=few)
    x = found.x if found.fun < evaluate(nowhere)[0] else nowhere
    return change_basis(factors, same + BASIS_UNIT * x.reshape(same.shape), model)


def basis_moments(factors, model) -> BasisMoments:
    """The statistics by which the bound depends on the basis."""
    kind, gap = model.priors.kind, factors.Z - factors.projected
    latent = counted(gap, model).T @ gap / model.ridge.noise
    variances = projection_squares(factors, kind) - sum_shared(factors.P**2, kind)
    weights = weight_moments(factors)[:, 1:, 1:]
    return BasisMoments(factors.P, variances, latent, weights, _latent_evidence(factors, model))


def basis_loss(x, moments, model):
    """The bound that is lost by the basis R, per row, and its gradient (q * q,)."""
    q = moments.P.shape[1]
    R = x.reshape(q, q)
    sign, log_det = np.linalg.slogdet(R)
    if sign <= 0:
        return np.inf, np.zeros(q * q)
    inverse = np.linalg.inv(R)
    freedom = model.n_samples - model.outputs.n_outputs
    gain = freedom * log_det - 0.5 * np.sum(R * (moments.latent @ R))
    gradient = freedom * inverse.T - moments.latent @ R
    of_P, slope_P = _projection_part(R, moments, model)
    of_V, slope_V = _weight_part(inverse, moments, model)
    of_S, slope_S = _spread_part(R, moments, model)
    gain, gradient = gain + of_P + of_V + of_S, gradient + slope_P + slope_V + slope_S
    return -gain / model.n_samples, -gradient.ravel() / model.n_samples


def change_basis(factors, R, model):
    """The same scores in the basis R; spreads of Z and precisions of P, V at their best in it."""
    whole = np.eye(len(R) + 1)
    whole[1:, 1:] = np.linalg.inv(R)
    _, log_det = np.linalg.slogdet(R)
    factors = factors._replace(
        P=factors.P @ R,
        projected=factors.projected @ R,
        Z=factors.Z @ R,
        B=whole @ factors.B,
        C=whole @ factors.C @ whole.T,
        C_log_det=factors.C_log_det - 2 * log_det,
    )
    psi = precision_posterior(model.priors.weights, 1, weight_squares(factors)[1:])
    factors = update_latent_covariances(factors, model)
    return update_projection_precisions(factors, model)._replace(psi=psi)


def _projection_part(R, moments, model):
    """The terms of P with its precisions at their best, and their slope."""
    kind, P = model.priors.kind, moments.P @ R
    phi = projection_precisions(sum_shared(P**2, kind) + moments.variances, model, len(R))
    gain = phi.shape * np.sum(np.log(phi.scale))
    return gain, -moments.P.T @ (of_entries(phi.mean, kind, P.shape) * P)


def _weight_part(inverse, moments, model):
    """The terms of V with its precisions at their best, and their slope."""
    turned = inverse @ moments.weights
    squares = np.einsum("cab,ab->ac", turned, inverse)
    psi = precision_posterior(model.priors.weights, 1, squares)
    slope = np.einsum("ac,cab->ab", psi.mean, turned)
    return psi.shape * np.sum(np.log(psi.scale)), inverse.T @ slope @ inverse.T


def _spread_part(R, moments, model):
    """The terms of Z with its covariances at their best, less those of log |R|, and their slope."""
    precision = R @ R.T / model.ridge.noise + moments.evidence
    inverses, log_det = stacked_covariances(precision)
    counts = model.patterns.counts
    slope = np.einsum("m,mab->ab", counts, inverses) @ R / model.ridge.noise
    return 0.5 * float(counts @ log_det), -slope
