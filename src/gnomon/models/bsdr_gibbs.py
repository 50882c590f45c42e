"""Gibbs sampling for BSDR: all full conditionals, exact draws of the scores [G13, appendix].

A full conditional is the variational update in which every other variable is a point, so the
means and covariances come from `bsdr_variational` with all its spreads at zero. Z is drawn
given T as well, which the print omits (docs/errata.md, E-G13-7). P is drawn with Z integrated
out, and scale and bias of the classifier once more with T integrated out, else chains crawl.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models import bsdr_variational as variational
from gnomon.models.bsdr import Problem, lift, shared, shared_count, spread_out
from gnomon.models.bsdr_factors import Factors
from gnomon.stats.gamma import Gamma, log_density, precision_posterior
from gnomon.stats.ridge import Spread

# Conjugate gradients until the draw of P is exact but for rounding.
EXACT_STEPS, EXACT_TOLERANCE = 500, 1e-8
# Of the latent noise that the scores leave to a component, so that none is divided by nothing.
LEAST_SHARE = 1e-3
# Sizes of proposed changes of the classifier: one of them fits, however many rows there are.
MOVES = (0.7, 0.2, 0.05)


class Draw(NamedTuple):
    """One value of every variable."""

    phi: np.ndarray
    P: np.ndarray
    projected: np.ndarray
    """X P (n, q)."""
    rest: np.ndarray
    """Squared norms (q,) of the weights outside the span of the data."""
    Z: np.ndarray
    psi: np.ndarray
    lam: np.ndarray
    B: np.ndarray
    T: np.ndarray
    eps: np.ndarray
    """Noise precisions (c,); ones for classes and labels."""


class Kept(NamedTuple):
    """What is kept of a draw: aligned parameters and quantities that no rotation changes."""

    P: np.ndarray
    V: np.ndarray
    b: np.ndarray
    noise_precision: np.ndarray
    log_joint: float
    bias_contrasts: np.ndarray
    score_spread: np.ndarray
    """Singular values of the scores X P V of the training rows, per root of n."""


def init(factors: Factors, problem: Problem, rng) -> Draw:
    """A draw around a variational fit."""
    eps = np.ones(factors.B.shape[1]) if factors.eps is None else factors.eps.mean
    return Draw(
        phi=factors.phi.mean,
        P=factors.P,
        projected=factors.projected,
        rest=np.asarray(factors.spread.rest),
        Z=factors.Z,
        psi=factors.psi.mean,
        lam=factors.lam.mean,
        B=factors.B,
        T=problem.outputs.draw(variational.score_means(factors), rng),
        eps=eps,
    )


def kernel(draw: Draw, rng, problem: Problem) -> Draw:
    """One round: precisions and the projection, Z, the classifier, its scale, scores."""
    moves = (draw_projection, draw_latent, draw_weights, draw_noise, draw_scale, draw_scores)
    for update in moves:
        draw = update(draw, rng, problem)
    return draw


def draw_projection(draw, rng, problem):
    """Precisions, then P given T with Z integrated out; Z must be drawn next.

    P and Z given each other move by the latent noise only, which is small. A draw solves the
    joint equation of `bsdr_variational` for a right-hand side with noise of its precision.
    """
    kind, ridge, q = problem.priors.kind, problem.ridge, draw.P.shape[1]
    squares = shared(draw.P**2, kind)
    if kind == "column":
        squares = squares + draw.rest
    count = shared_count(kind, ridge.n_features, q)
    phi = _draw_gamma(precision_posterior(problem.priors.projection, count, squares), rng)
    P = _draw_joint(draw._replace(phi=phi), rng, problem)
    rest, outside = np.zeros(q), ridge.n_features - len(P)
    if outside > 0:
        rest = rng.chisquare(outside, q) / phi
    projected = np.asarray(ridge.X @ P, dtype=float)
    return draw._replace(phi=phi, P=P, projected=projected, rest=rest)


def _draw_joint(draw, rng, problem):
    """P (d, q) of the law with precision P -> phi P + X'X P (I - S / noise) / noise."""
    ridge, kind = problem.ridge, problem.priors.kind
    points = variational.update_latent_spread(_points(draw, problem), problem)
    precision = (np.eye(draw.P.shape[1]) - points.S / ridge.noise) / ridge.noise
    phi = spread_out(draw.phi, kind, draw.P.shape)
    R = variational.joint_evidence(points, problem)
    R += np.sqrt(phi) * rng.standard_normal(phi.shape)
    noise = variational.by_pattern(rng.standard_normal(draw.Z.shape), _roots(precision), problem)
    R += np.asarray(ridge.X.T @ noise, dtype=float)
    solve = _preconditioner(draw.phi, precision, problem)
    return variational.joint_solution(points, problem, R, solve, EXACT_STEPS, EXACT_TOLERANCE)


def _preconditioner(phi, precision, problem):
    """The solution with the couplings between components left out."""
    ridge = problem.ridge
    weight = np.average(precision, axis=0, weights=problem.patterns.counts)
    share = np.maximum(np.diagonal(weight) * ridge.noise, LEAST_SHARE)
    if problem.priors.kind == "row":
        share = share.mean()
    inner = ridge.solver(phi / share)
    return lambda R: inner(R) / share


def _roots(precision):
    """Symmetric roots of semi-definite matrices (m, q, q)."""
    values, vectors = np.linalg.eigh(precision)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[:, None]) @ np.swapaxes(vectors, 1, 2)


def draw_latent(draw, rng, problem):
    """Z given P, V, b and T."""
    conditional = variational.update_latent(_points(draw, problem), problem)
    noise = rng.standard_normal(draw.Z.shape)
    return draw._replace(
        Z=conditional.Z + variational.by_pattern(noise, _roots(conditional.S), problem)
    )


def draw_weights(draw, rng, problem):
    """Precisions, then b and V given Z and T."""
    priors = problem.priors
    lam = _draw_gamma(precision_posterior(priors.bias, 1, draw.B[0] ** 2), rng)
    psi = _draw_gamma(precision_posterior(priors.weights, 1, draw.B[1:] ** 2), rng)
    draw = draw._replace(lam=lam, psi=psi)
    conditional = variational.update_weights(_points(draw, problem), problem)
    noise = rng.standard_normal(draw.B.shape)
    roots = np.linalg.cholesky(conditional.C)
    return draw._replace(B=conditional.B + np.einsum("cab,bc->ac", roots, noise))


def draw_noise(draw, rng, problem):
    """Noise precisions of numbers; nothing for classes and labels."""
    points = _points(draw, problem)
    if points.eps is None:
        return draw
    return draw._replace(eps=_draw_gamma(variational.update_noise(points, problem).eps, rng))


def draw_scale(draw, rng, problem):
    """Metropolis steps of (b, V) with T integrated out; T must be drawn next.

    Given T the classifier moves by 1 / sqrt(n) at a time, which is slow where classes are
    separated and only the prior holds it: here its scale moves, and its bias. Nothing for
    numbers, which have no T.
    """
    if hasattr(problem.outputs, "Y"):
        return draw
    lifted, prior = lift(draw.Z), np.vstack([draw.lam, draw.psi])

    def log_density(B):
        return problem.outputs.scores(lifted @ B)[1] - 0.5 * np.sum(prior * B**2)

    B, value = draw.B, log_density(draw.B)
    for size in MOVES:
        for propose in (_rescaled, _shifted):
            proposal, log_volume = propose(B, size * rng.standard_normal(B.shape[1]))
            proposed = log_density(proposal)
            if np.log(1.0 - rng.random()) < proposed - value + log_volume:
                B, value = proposal, proposed
    return draw._replace(B=B)


def _rescaled(B, noise):
    return np.exp(noise[0]) * B, B.size * noise[0]


def _shifted(B, noise):
    return np.vstack([B[0] + noise, B[1:]]), 0.0


def draw_scores(draw, rng, problem):
    """T given Z, V, b and y."""
    return draw._replace(T=problem.outputs.draw(lift(draw.Z) @ draw.B, rng))


def log_joint(draw: Draw, problem: Problem) -> float:
    """Log density of all variables and y given X, less the constants of the normal laws."""
    priors, ridge = problem.priors, problem.ridge
    total = log_density(draw.phi, priors.projection) + log_density(draw.psi, priors.weights)
    total += log_density(draw.lam, priors.bias)
    phi = spread_out(draw.phi, priors.kind, draw.P.shape)
    total += 0.5 * float(np.sum(np.log(phi) - phi * draw.P**2))
    total -= 0.5 * float(np.sum((draw.Z - draw.projected) ** 2)) / ridge.noise
    weights = np.vstack([draw.lam, draw.psi])
    total += 0.5 * float(np.sum(np.log(weights) - weights * draw.B**2))
    observed = problem.outputs.observed
    squares = (draw.T - lift(draw.Z) @ draw.B) ** 2 * draw.eps
    terms = np.log(draw.eps) - squares
    return total + 0.5 * float(np.sum(terms if observed is None else observed * terms))


def keep(draw: Draw, problem: Problem, reference) -> Kept:
    """The draw turned so that its projections lie closest to the reference (n, q).

    Turning z by an orthogonal matrix changes nothing that is observed, so averages over draws
    mean something only after this; signs and order of components are special turns.
    """
    U, _, Vt = np.linalg.svd(draw.projected.T @ reference)
    turn = U @ Vt
    b, V = draw.B[0], draw.B[1:]
    common = _has_common_shift(problem)
    contrasts = V - V.mean(axis=1, keepdims=True) if common else V
    scores = draw.projected @ contrasts
    values = np.linalg.eigvalsh(scores.T @ scores / len(scores))
    rank = min(draw.P.shape[1], V.shape[1] - common)
    return Kept(
        P=draw.P @ turn,
        V=turn.T @ V,
        b=b,
        noise_precision=draw.eps,
        log_joint=log_joint(draw, problem),
        bias_contrasts=b - b.mean() if common else b,
        score_spread=np.sqrt(np.maximum(values[::-1][:rank], 0.0)),
    )


def _has_common_shift(problem):
    """Whether adding a number to all scores of a row leaves its class as it is."""
    return hasattr(problem.outputs, "codes")


def _points(draw, problem):
    """Factors without spread around a draw."""
    q, c = draw.P.shape[1], draw.B.shape[1]
    m = len(problem.patterns.masks)
    nothing = np.zeros(q)
    return Factors(
        phi=Gamma(1.0, draw.phi),
        P=draw.P,
        projected=draw.projected,
        spread=Spread(nothing, nothing, nothing, nothing, nothing),
        Z=draw.Z,
        S=np.zeros((m, q, q)),
        S_log_det=np.zeros(m),
        T=draw.T,
        T_normaliser=0.0,
        psi=Gamma(1.0, draw.psi),
        lam=Gamma(1.0, draw.lam),
        B=draw.B,
        C=np.zeros((c, q + 1, q + 1)),
        C_log_det=np.zeros(c),
        eps=Gamma(1.0, draw.eps) if hasattr(problem.outputs, "Y") else None,
    )


def _draw_gamma(law: Gamma, rng):
    # Sparse priors give draws below the least number, whose logarithm would be infinite.
    x = rng.gamma(law.shape, law.scale, np.shape(law.scale))
    return np.maximum(x, np.finfo(float).tiny)
