"""Gibbs sampling for BSDR: all full conditionals, exact draws of the scores [G13, appendix].

A full conditional is the variational update in which every other variable is a point, so the
means and covariances come from `sweeps` with all covariances at zero. Z is drawn given T as
well, which the print omits (docs/errata.md, E-G13-7). P is drawn with Z integrated out, and
scale and bias of the classifier once more with T integrated out, else chains crawl.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Callback
from gnomon.inference.sampling import Schedule, bulk_ess, draw_chains, split_rhat, tail_ess
from gnomon.models.bsdr import sweeps
from gnomon.models.bsdr.factors import (
    Factors,
    Gamma,
    Model,
    log_density,
    noise_precision,
    observed_only,
    of_entries,
    precision_posterior,
    projection_precisions,
    score_means,
    sum_shared,
    with_ones,
)
from gnomon.models.bsdr.inputs import Covariances, Inputs, loadings
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs

# Conjugate gradients until the draw of P is exact but for rounding.
EXACT_STEPS, EXACT_TOLERANCE = 500, 1e-8
# Of the latent noise that the scores leave to a component, so that none is divided by nothing.
LEAST_SHARE = 1e-3
# Sizes of proposed changes of the classifier: one of them fits, however many rows there are.
MOVES = (0.7, 0.2, 0.05)
# Fewer draws cannot be split in halves to be compared.
LEAST_DRAWS = 4
# [VGSCB21]: above and below these, means over draws are not to be trusted.
MOST_RHAT, LEAST_ESS = 1.01, 400
# What no rotation of the latent variables changes, so that chains can be compared by it.
INVARIANT = ("log_joint", "bias_contrasts", "score_spread")


class Sampling(NamedTuple):
    """How many chains, draws kept of each and rounds dropped before; who watches the rounds.

    ``watch(n_iter, draws, log_joint)`` sees the draws of all chains and the log joint density of
    the first after every round, and ends the sampling with True.
    """

    n_chains: int
    n_draws: int
    n_warmup: int
    watch: Callback | None = None


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


class KeptDraw(NamedTuple):
    """What is kept of a draw: aligned parameters and quantities that no rotation changes."""

    P: np.ndarray
    V: np.ndarray
    b: np.ndarray
    noise_precision: np.ndarray
    log_joint: float | np.ndarray
    bias_contrasts: np.ndarray
    score_spread: np.ndarray
    """Singular values of the scores X P V of the training rows, per root of n."""


class Draws(NamedTuple):
    """Draws (chain, draw, ...) by name, and R-hat and effective sizes of the invariant ones."""

    values: dict[str, np.ndarray]
    rhat: dict[str, np.ndarray]
    ess: dict[str, np.ndarray]

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat."""
        return max(float(np.max(value)) for value in self.rhat.values())

    @property
    def least_ess(self) -> float:
        """The least effective sample size."""
        return min(float(np.min(value)) for value in self.ess.values())

    @property
    def have_mixed(self) -> bool:
        """Whether means over the draws may be trusted."""
        return self.worst_rhat <= MOST_RHAT and self.least_ess >= LEAST_ESS


def sample(factors: Factors, model: Model, sampling: Sampling, rng, n_before=0) -> KeptDraw:
    """Draws (chain, draw, ...) of chains that start at a variational fit.

    Rounds are counted on from ``n_before``, the steps that the fit took.
    """

    def callback(n_iter, draws):
        if sampling.watch is not None:
            return sampling.watch(n_before + n_iter, draws, log_joint(draws[0], model))

    return draw_chains(
        partial(step, model=model),
        [start(factors, model, rng) for _ in range(sampling.n_chains)],
        rng,
        Schedule(sampling.n_draws, sampling.n_warmup, LEAST_DRAWS),
        keep=partial(keep, model=model, reference=factors.projected),
        callback=callback,
    )


def read_draws(kept: KeptDraw, inputs: Inputs, model: Model) -> Draws:
    """The draws with projections in the units of X, and whether they have mixed."""
    each = [loadings(inputs, P).T for P in merge_chains(kept.P)]
    values: dict[str, np.ndarray] = {
        "projection": np.stack(each).reshape(*kept.P.shape[:2], *each[0].shape),
        "weights": kept.V,
        "bias": kept.b,
        "log_joint": np.asarray(kept.log_joint),
        "bias_contrasts": kept.bias_contrasts,
        "score_spread": kept.score_spread,
    }
    if isinstance(model.outputs, NumberOutputs):
        values["noise_variance"] = 1.0 / kept.noise_precision
    rhat = {name: split_rhat(values[name]) for name in INVARIANT}
    ess = {name: np.minimum(bulk_ess(values[name]), tail_ess(values[name])) for name in INVARIANT}
    return Draws(values, rhat, ess)


def merge_chains(values):
    """Draws of all chains one after another (chain * draw, ...)."""
    return values.reshape(-1, *values.shape[2:])


def start(factors: Factors, model: Model, rng) -> Draw:
    """A draw around a variational fit."""
    return Draw(
        phi=factors.phi.mean,
        P=factors.P,
        projected=factors.projected,
        rest=np.asarray(factors.P_covariances.rest),
        Z=factors.Z,
        psi=factors.psi.mean,
        lam=factors.lam.mean,
        B=factors.B,
        T=model.outputs.draw(score_means(factors), rng),
        eps=noise_precision(factors),
    )


def step(draw: Draw, rng, model: Model) -> Draw:
    """One round: precisions and the projection, Z, the classifier, its scale, scores."""
    moves = (draw_projection, draw_latent, draw_weights, draw_noise, draw_scale, draw_scores)
    for update in moves:
        draw = update(draw, rng, model)
    return draw


def draw_projection(draw, rng, model):
    """Precisions, then P given T with Z integrated out; Z must be drawn next.

    P and Z given each other move by the latent noise only, which is small. A draw solves the
    joint equation of `sweeps` for a right-hand side with noise of its precision.
    """
    ridge, q, kind = model.ridge, draw.P.shape[1], model.priors.kind
    squares = sum_shared(draw.P**2, kind) + (draw.rest if kind == "column" else 0.0)
    phi = _draw_gamma(projection_precisions(squares, model, q), rng)
    P = draw_joint(draw._replace(phi=phi), rng, model)
    rest, outside = np.zeros(q), ridge.n_features - len(P)
    if outside > 0:
        rest = rng.chisquare(outside, q) / phi
    projected = np.asarray(ridge.X @ P, dtype=float)
    return draw._replace(phi=phi, P=P, projected=projected, rest=rest)


def draw_joint(draw, rng, model):
    """P (d, q) of the law with precision P -> phi P + X'X P (I - S / noise) / noise."""
    ridge, kind = model.ridge, model.priors.kind
    points = sweeps.update_latent_covariances(_points(draw, model), model)
    precision = (np.eye(draw.P.shape[1]) - points.S / ridge.noise) / ridge.noise
    phi = of_entries(draw.phi, kind, draw.P.shape)
    R = sweeps.joint_right_side(points, model)
    R += np.sqrt(phi) * rng.standard_normal(phi.shape)
    noise = sweeps.by_pattern(rng.standard_normal(draw.Z.shape), _roots(precision), model)
    R += np.asarray(ridge.X.T @ noise, dtype=float)
    solve = _preconditioner(draw.phi, precision, model)
    return sweeps.joint_solution(points, model, R, solve, EXACT_STEPS, EXACT_TOLERANCE)


def _preconditioner(phi, precision, model):
    """The solution with the couplings between components left out."""
    ridge = model.ridge
    weight = np.average(precision, axis=0, weights=model.patterns.counts)
    share = np.maximum(np.diagonal(weight) * ridge.noise, LEAST_SHARE)
    if model.priors.kind == "row":
        share = share.mean()
    inner = ridge.solver(phi / share)
    return lambda R: inner(R) / share


def _roots(precision):
    """Symmetric roots of semi-definite matrices (m, q, q)."""
    values, vectors = np.linalg.eigh(precision)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[:, None]) @ np.swapaxes(vectors, 1, 2)


def draw_latent(draw, rng, model):
    """Z given P, V, b and T."""
    conditional = sweeps.update_latent(_points(draw, model), model)
    noise = rng.standard_normal(draw.Z.shape)
    return draw._replace(Z=conditional.Z + sweeps.by_pattern(noise, _roots(conditional.S), model))


def draw_weights(draw, rng, model):
    """Precisions, then b and V given Z and T."""
    priors = model.priors
    lam = _draw_gamma(precision_posterior(priors.bias, 1, draw.B[0] ** 2), rng)
    psi = _draw_gamma(precision_posterior(priors.weights, 1, draw.B[1:] ** 2), rng)
    draw = draw._replace(lam=lam, psi=psi)
    conditional = sweeps.update_weights(_points(draw, model), model)
    noise = rng.standard_normal(draw.B.shape)
    roots = np.linalg.cholesky(conditional.C)
    return draw._replace(B=conditional.B + np.einsum("cab,bc->ac", roots, noise))


def draw_noise(draw, rng, model):
    """Noise precisions of numbers; nothing for classes and labels."""
    if not isinstance(model.outputs, NumberOutputs):
        return draw
    conditional = sweeps.update_noise(_points(draw, model), model)
    return draw._replace(eps=_draw_gamma(conditional.eps, rng))


def draw_scale(draw, rng, model):
    """Metropolis steps of (b, V) with T integrated out; T must be drawn next.

    Given T the classifier moves by 1 / sqrt(n) at a time, which is slow where classes are
    separated and only the prior holds it: here its scale moves, and its bias. Nothing for
    numbers, which have no T.
    """
    if isinstance(model.outputs, NumberOutputs):
        return draw
    Z, prior = with_ones(draw.Z), np.vstack([draw.lam, draw.psi])

    def log_conditional(B):
        return model.outputs.scores(Z @ B)[1] - 0.5 * np.sum(prior * B**2)

    B, value = draw.B, log_conditional(draw.B)
    for size in MOVES:
        for propose in (_rescaled, _shifted):
            proposal, log_volume = propose(B, size * rng.standard_normal(B.shape[1]))
            proposed = log_conditional(proposal)
            if np.log(1.0 - rng.random()) < proposed - value + log_volume:
                B, value = proposal, proposed
    return draw._replace(B=B)


def _rescaled(B, noise):
    return np.exp(noise[0]) * B, B.size * noise[0]


def _shifted(B, noise):
    return np.vstack([B[0] + noise, B[1:]]), 0.0


def draw_scores(draw, rng, model):
    """T given Z, V, b and y."""
    return draw._replace(T=model.outputs.draw(with_ones(draw.Z) @ draw.B, rng))


def log_joint(draw: Draw, model: Model) -> float:
    """Log density of all variables and y given X, less the constants of the normal laws."""
    priors = model.priors
    total = log_density(draw.phi, priors.projection) + log_density(draw.psi, priors.weights)
    total += log_density(draw.lam, priors.bias)
    phi = of_entries(draw.phi, priors.kind, draw.P.shape)
    total += 0.5 * float(np.sum(np.log(phi) - phi * draw.P**2))
    total -= 0.5 * float(np.sum((draw.Z - draw.projected) ** 2)) / model.ridge.noise
    weights = np.vstack([draw.lam, draw.psi])
    total += 0.5 * float(np.sum(np.log(weights) - weights * draw.B**2))
    squares = (draw.T - with_ones(draw.Z) @ draw.B) ** 2 * draw.eps
    return total + 0.5 * float(np.sum(observed_only(np.log(draw.eps) - squares, model)))


def keep(draw: Draw, model: Model, reference) -> KeptDraw:
    """The draw turned so that its projections lie closest to the reference (n, q).

    Turning z by an orthogonal matrix changes nothing that is observed, so averages over draws
    mean something only after this (docs/errata.md, E-G13-9); signs and order of components are
    special turns.
    """
    U, _, Vt = np.linalg.svd(draw.projected.T @ reference)
    turn = U @ Vt
    b, V = draw.B[0], draw.B[1:]
    # A number added to all scores of a row leaves its class as it is.
    common = isinstance(model.outputs, ClassOutputs)
    contrasts = V - V.mean(axis=1, keepdims=True) if common else V
    scores = draw.projected @ contrasts
    values = np.linalg.eigvalsh(scores.T @ scores / len(scores))
    rank = min(draw.P.shape[1], V.shape[1] - common)
    return KeptDraw(
        P=draw.P @ turn,
        V=turn.T @ V,
        b=b,
        noise_precision=draw.eps,
        log_joint=log_joint(draw, model),
        bias_contrasts=b - b.mean() if common else b,
        score_spread=np.sqrt(np.maximum(values[::-1][:rank], 0.0)),
    )


def _points(draw, model) -> Factors:
    """Factors around a draw, all their covariances zero."""
    q, c = draw.P.shape[1], draw.B.shape[1]
    m = len(model.patterns.masks)
    nothing = np.zeros(q)
    return Factors(
        phi=Gamma(1.0, draw.phi),
        P=draw.P,
        projected=draw.projected,
        P_covariances=Covariances(nothing, nothing, nothing, nothing, nothing),
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
        eps=Gamma(1.0, draw.eps) if isinstance(model.outputs, NumberOutputs) else None,
    )


def _draw_gamma(law: Gamma, rng):
    # Sparse priors give draws below the least number, whose logarithm would be infinite.
    x = rng.gamma(law.shape, law.scale, np.shape(law.scale))
    return np.maximum(x, np.finfo(float).tiny)
