"""A change of basis of the latent variables that raises the bound of BSDR.

    P -> P R,    Z -> Z R,    V -> R^-1 V

leaves all scores as they are, so that no score is integrated anew, and the bound depends on R by
statistics of size q only. Sweeps change the basis slowly, since P, Z and V each follow the other
two; here all three move at once [LI10].
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gnomon.models.bsdr import Problem, shared, shared_count, spread_out
from gnomon.models.bsdr_bound import projection_squares, weight_moments
from gnomon.models.bsdr_factors import Factors
from gnomon.stats.gamma import precision_posterior

# Of the quasi-Newton method; the next sweep goes on from where they lead.
STEPS = 10


class Moments(NamedTuple):
    """What tells how good a basis is."""

    P: np.ndarray
    variances: np.ndarray
    """What the covariances of P add to the squares that share a precision."""
    latent: np.ndarray
    """Second moments (q, q) of Z - X P, in units of the latent noise."""
    weights: np.ndarray
    """E[v_c v_c'] (c, q, q)."""


def update_basis(factors: Factors, problem: Problem) -> Factors:
    """The factors in a better basis of the latent variables, and the precisions of P in it."""
    moments = _moments(factors, problem)
    same = np.eye(factors.P.shape[1])
    evaluate = partial(_loss, moments=moments, problem=problem)
    before, _ = evaluate(same.ravel())
    few: Any = {"maxiter": STEPS}
    found = minimize(evaluate, same.ravel(), jac=True, method="L-BFGS-B", options=few)
    R = found.x.reshape(same.shape) if found.fun < before else same
    return _turned(factors, R, problem)


def _moments(factors, problem):
    kind, ridge, counts = problem.priors.kind, problem.ridge, problem.patterns.counts
    gap = factors.Z - factors.projected
    latent = gap.T @ gap + np.einsum("m,mab->ab", counts, factors.S)
    variances = projection_squares(factors, kind) - shared(factors.P**2, kind)
    return Moments(factors.P, variances, latent / ridge.noise, weight_moments(factors)[0])


def _loss(x, moments, problem):
    """The bound that is lost by the basis R, per row, and its gradient (q * q,)."""
    q = moments.P.shape[1]
    R = x.reshape(q, q)
    sign, log_det = np.linalg.slogdet(R)
    if sign <= 0:
        return np.inf, np.zeros(q * q)
    inverse = np.linalg.inv(R)
    freedom = problem.n_samples - problem.outputs.n_outputs
    gain = freedom * log_det - 0.5 * np.sum(R * (moments.latent @ R))
    gradient = freedom * inverse.T - moments.latent @ R
    for term in (_projection_part, _weight_part):
        more, slope = term(R, inverse, moments, problem)
        gain, gradient = gain + more, gradient + slope
    return -gain / problem.n_samples, -gradient.ravel() / problem.n_samples


def _projection_part(R, inverse, moments, problem):
    """The terms of P with its precisions at their best."""
    kind, q = problem.priors.kind, len(R)
    P = moments.P @ R
    count = shared_count(kind, problem.ridge.n_features, q)
    squares = shared(P**2, kind) + moments.variances
    phi = precision_posterior(problem.priors.projection, count, squares)
    gain = phi.shape * np.sum(np.log(phi.scale))
    return gain, -moments.P.T @ (spread_out(phi.mean, kind, P.shape) * P)


def _weight_part(R, inverse, moments, problem):
    """The terms of V with its precisions at their best."""
    turned = inverse @ moments.weights
    squares = np.einsum("cab,ab->ac", turned, inverse)
    psi = precision_posterior(problem.priors.weights, 1, squares)
    slope = np.einsum("ac,cab->ab", psi.mean, turned)
    return psi.shape * np.sum(np.log(psi.scale)), inverse.T @ slope @ inverse.T


def _turned(factors, R, problem):
    """The same scores in the basis R."""
    kind = problem.priors.kind
    whole = np.eye(len(R) + 1)
    whole[1:, 1:] = np.linalg.inv(R)
    _, log_det = np.linalg.slogdet(R)
    factors = factors._replace(
        P=factors.P @ R,
        projected=factors.projected @ R,
        Z=factors.Z @ R,
        S=R.T @ factors.S @ R,
        S_log_det=factors.S_log_det + 2 * log_det,
        B=whole @ factors.B,
        C=whole @ factors.C @ whole.T,
        C_log_det=factors.C_log_det - 2 * log_det,
    )
    squares = projection_squares(factors, kind)
    count = shared_count(kind, problem.ridge.n_features, len(R))
    weights = factors.B[1:] ** 2 + np.diagonal(factors.C, axis1=1, axis2=2).T[1:]
    return factors._replace(
        phi=precision_posterior(problem.priors.projection, count, squares),
        psi=precision_posterior(problem.priors.weights, 1, weights),
    )
