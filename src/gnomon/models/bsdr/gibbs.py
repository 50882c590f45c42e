"""Gibbs sampling for BSDR: all full conditionals, exact draws of the scores [G13, appendix].

All chains move together: every array has an axis for them before its own, so that a round costs
little more than that of one chain. Z is drawn given T as well, which the print omits
(docs/errata.md, E-G13-7). P is drawn with Z integrated out, and scale and bias of the classifier
once more with the scores of the other classes integrated out, else chains crawl.

With S_i = (I / noise + V E_i V')^-1, E_i the noise precisions of the outputs that row i observes,
and h_i = V E_i (t_i - b),

    vec P | T    has precision  phi P + X'(X P W),  W_i = (I - S_i / noise) / noise,
                 and right-hand side  X'H S / noise
    z_i | P, T   ~ N(S_i (P'x_i / noise + h_i), S_i)
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Callback
from gnomon.inference.sampling import Schedule, bulk_ess, draw_chains, split_rhat, tail_ess
from gnomon.linalg.solve import SMALL, preconditioned_solution, stacked_covariances
from gnomon.models.bsdr.factors import (
    Factors,
    Gamma,
    Model,
    log_densities,
    noise_precision,
    observed_counts,
    observed_only,
    of_entries,
    precision_posterior,
    projection_precisions,
    score_means,
    sum_shared,
    with_ones,
)
from gnomon.models.bsdr.inputs import GramRidge, Inputs, SpectralRidge, loadings
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs
from gnomon.models.bsdr.sweeps import by_pattern

# Conjugate gradients until the draw of P is exact but for rounding.
EXACT_STEPS, EXACT_TOLERANCE = 500, 1e-8
# Entries of P up to which its whole precision is formed and solved at once; measured with four
# chains of five components, conjugate gradients are as fast at 200 and slower below.
DIRECT = 200
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
    """One value of every variable in each of k chains."""

    phi: np.ndarray
    P: np.ndarray
    projected: np.ndarray
    """X P (k, n, q)."""
    rest: np.ndarray
    """Squared norms (k, q) of the weights outside the span of the data."""
    Z: np.ndarray
    psi: np.ndarray
    lam: np.ndarray
    B: np.ndarray
    T: np.ndarray
    eps: np.ndarray
    """Noise precisions (k, c); ones for classes and labels."""


class Evidence(NamedTuple):
    """What the scores say of z."""

    H: np.ndarray
    """Rows h_i (k, n, q)."""
    S: np.ndarray
    """Covariances of z given x and t, one for every pattern of observed outputs (k, m, q, q)."""


class KeptDraw(NamedTuple):
    """What is kept of the draws: aligned parameters and quantities that no rotation changes."""

    P: np.ndarray
    V: np.ndarray
    b: np.ndarray
    noise_precision: np.ndarray
    log_joint: np.ndarray
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
    model = with_rows_at_hand(model)

    def callback(n_iter, draw):
        if sampling.watch is not None:
            return sampling.watch(n_before + n_iter, draw, float(log_joint(draw, model)[0]))

    return draw_chains(
        partial(step, model=model),
        start(factors, model, sampling.n_chains, rng),
        rng,
        Schedule(sampling.n_draws, sampling.n_warmup, LEAST_DRAWS),
        keep=partial(keep, model=model, reference=factors.projected),
        callback=callback,
    )


def with_rows_at_hand(model: Model) -> Model:
    """The model with its rows as one array where they are few, for thousands of products."""
    n, width = model.ridge.X.shape
    return model if n * width > SMALL else model._replace(ridge=model.ridge.with_array())


def read_draws(kept: KeptDraw, inputs: Inputs, model: Model) -> Draws:
    """The draws with projections in the units of X, and whether they have mixed."""
    each = [loadings(inputs, P).T for P in merge_chains(kept.P)]
    values: dict[str, np.ndarray] = {
        "projection": np.stack(each).reshape(*kept.P.shape[:2], *each[0].shape),
        "weights": kept.V,
        "bias": kept.b,
        "log_joint": kept.log_joint,
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


def start(factors: Factors, model: Model, n_chains, rng) -> Draw:
    """Draws around a variational fit."""

    def repeated(value):
        return np.repeat(np.asarray(value)[None], n_chains, axis=0)

    return Draw(
        phi=repeated(factors.phi.mean),
        P=repeated(factors.P),
        projected=repeated(factors.projected),
        rest=repeated(factors.P_covariances.rest),
        Z=repeated(factors.Z),
        psi=repeated(factors.psi.mean),
        lam=repeated(factors.lam.mean),
        B=repeated(factors.B),
        T=model.outputs.draw(repeated(score_means(factors)), rng),
        eps=repeated(noise_precision(factors)),
    )


def step(draw: Draw, rng, model: Model) -> Draw:
    """One round: precisions and the projection, Z, the classifier, its scale, scores."""
    draw, evidence = draw_projection(draw, rng, model)
    draw = draw_latent(draw, evidence, rng, model)
    for update in (draw_weights, draw_noise, draw_scale, draw_scores):
        draw = update(draw, rng, model)
    return draw


def draw_projection(draw, rng, model) -> tuple[Draw, Evidence]:
    """Precisions, then P given T with Z integrated out; Z must be drawn next, by the evidence.

    P and Z given each other move by the latent noise only, which is small. A draw solves the
    joint equation for a right-hand side with noise of its precision.
    """
    ridge, kind, (k, width, q) = model.ridge, model.priors.kind, draw.P.shape
    squares = sum_shared(draw.P**2, kind) + (draw.rest if kind == "column" else 0.0)
    phi = _draw_gamma(projection_precisions(squares, model, q), rng)
    evidence = evidence_of(draw, model)
    P = draw_joint(phi, evidence, rng, model)
    rest, outside = np.zeros((k, q)), ridge.n_features - width
    if outside > 0:
        rest = rng.chisquare(outside, (k, q)) / phi
    draw = draw._replace(phi=phi, P=P, projected=_of_each(ridge.X, P), rest=rest)
    return draw, evidence


def evidence_of(draw: Draw, model: Model) -> Evidence:
    """The evidence of the scores T, given V and b."""
    k, _, q = draw.Z.shape
    bias, V = draw.B[:, :1], draw.B[:, 1:]
    weights = model.patterns.masks * draw.eps[:, None]
    precision = (
        np.eye(q) / model.ridge.noise + (V[:, None] * weights[:, :, None]) @ _turned(V)[:, None]
    )
    S, _ = stacked_covariances(precision.reshape(-1, q, q))
    H = (observed_only(draw.T - bias, model) * draw.eps[:, None]) @ _turned(V)
    return Evidence(H, S.reshape(k, -1, q, q))


def draw_joint(phi, evidence: Evidence, rng, model):
    """P (k, d, q) of the law with precision P -> phi P + X'(X P W) and its right-hand side."""
    H, S = evidence
    noise, (k, _, q) = model.ridge.noise, H.shape
    W = (np.eye(q) - S / noise) / noise
    entries = of_entries(phi, model.priors.kind, (k, model.ridge.X.shape[1], q))
    rows = by_pattern(H, S, model) / noise
    rows += by_pattern(rng.standard_normal(H.shape), _roots(W), model)
    R = _of_each(model.ridge.X.T, rows) + np.sqrt(entries) * rng.standard_normal(entries.shape)
    if model.patterns.of_row is not None:
        return _by_conjugate_gradients(phi, entries, W, R, model)
    if isinstance(model.ridge, SpectralRidge):
        return _by_axes(phi, W[:, 0], R, model.ridge)
    if isinstance(model.ridge, GramRidge) and R[0].size <= DIRECT:
        return _directly(entries, W[:, 0], R, model.ridge)
    return _by_conjugate_gradients(phi, entries, W, R, model)


def _by_axes(phi, W, R, ridge):
    """The equation along each principal axis: p (diag(phi) + l W) = r."""
    root = 1.0 / np.sqrt(phi)
    values, vectors = np.linalg.eigh(root[:, :, None] * W * root[:, None])
    turn = root[:, :, None] * vectors
    return (R @ turn / (1.0 + ridge.values[:, None] * values[:, None])) @ _turned(turn)


def _directly(entries, W, R, ridge):
    """The equation with its matrix (d q, d q) formed."""
    k, size = len(R), R[0].size
    matrix = (ridge.table[:, None, :, None] * W[:, None, :, None]).reshape(k, size, size)
    matrix[:, np.arange(size), np.arange(size)] += entries.reshape(k, size)
    return np.linalg.solve(matrix, R.reshape(k, size, 1)).reshape(R.shape)


def _by_conjugate_gradients(phi, entries, W, R, model):
    """The equation of one chain after another, by products with X."""
    X, found = model.ridge.X, []
    for own, weights, part, right in zip(phi, entries, W, R, strict=True):

        def apply(P, weights=weights, part=part):
            projected = np.asarray(X @ P, dtype=float)[None]
            return weights * P + X.T @ by_pattern(projected, part[None], model)[0]

        solve = _preconditioner(own, part, model)
        start = solve(right)
        limits = (EXACT_STEPS, EXACT_TOLERANCE)
        found.append(preconditioned_solution(apply, right, start, solve, *limits))
    return np.stack(found)


def _preconditioner(phi, W, model):
    """The solution for one chain with the couplings between components left out."""
    ridge = model.ridge
    weight = np.average(W, axis=0, weights=model.patterns.counts)
    share = np.maximum(np.diagonal(weight) * ridge.noise, LEAST_SHARE)
    if model.priors.kind == "row":
        share = share.mean()
    inner = ridge.solver(phi / share)
    return lambda R: inner(R) / share


def _roots(matrices):
    """Symmetric roots of semi-definite matrices (..., q, q)."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ _turned(vectors)


def draw_latent(draw, evidence: Evidence, rng, model):
    """Z given P, V, b and T."""
    H, S = evidence
    mean = by_pattern(draw.projected / model.ridge.noise + H, S, model)
    noise = by_pattern(rng.standard_normal(H.shape), _turned(np.linalg.cholesky(S)), model)
    return draw._replace(Z=mean + noise)


def draw_weights(draw, rng, model):
    """Precisions, then b and V given Z and T."""
    priors, Z, eps = model.priors, with_ones(draw.Z), draw.eps
    lam = _draw_gamma(precision_posterior(priors.bias, 1, draw.B[:, 0] ** 2), rng)
    psi = _draw_gamma(precision_posterior(priors.weights, 1, draw.B[:, 1:] ** 2), rng)
    prior = np.concatenate([lam[:, None], psi], axis=1)
    precision = eps[:, :, None, None] * _output_moments(Z, model)
    diagonal = np.arange(prior.shape[1])
    precision[:, :, diagonal, diagonal] += _turned(prior)
    right = _turned(Z) @ (observed_only(draw.T, model) * eps[:, None])
    half = np.linalg.inv(np.linalg.cholesky(precision))
    seen = (half @ _turned(right)[..., None])[..., 0]
    noise = rng.standard_normal(seen.shape)
    B = (_turned(half) @ (seen + noise)[..., None])[..., 0]
    return draw._replace(lam=lam, psi=psi, B=_turned(B))


def _output_moments(Z, model):
    """Sums over the rows that observe each output of [1, z] [1, z]' (k, c or 1, q + 1, q + 1)."""
    if model.observed is None:
        return (_turned(Z) @ Z)[:, None]
    return np.stack([_turned(Z * column[:, None]) @ Z for column in model.observed.T], axis=1)


def draw_noise(draw, rng, model):
    """Noise precisions of numbers; nothing for classes and labels."""
    if not isinstance(model.outputs, NumberOutputs):
        return draw
    gaps = observed_only(draw.T - with_ones(draw.Z) @ draw.B, model)
    law = precision_posterior(model.priors.noise, observed_counts(model), np.sum(gaps**2, axis=1))
    return draw._replace(eps=_draw_gamma(law, rng))


def draw_scale(draw, rng, model):
    """Metropolis steps of (b, V) given less of T than there is; T must be drawn next.

    Given T the classifier moves by 1 / sqrt(n) at a time, which is slow where classes are
    separated and only the prior holds it: here its scale moves, and its bias. Nothing for
    numbers, which have no T.
    """
    if isinstance(model.outputs, NumberOutputs):
        return draw
    Z, prior = with_ones(draw.Z), np.concatenate([draw.lam[:, None], draw.psi], axis=1)
    log_chances = model.outputs.log_chances(draw.T - Z @ draw.B)

    def log_conditional(B):
        return log_chances(Z @ B) - 0.5 * _totals(prior * B**2)

    B, value = draw.B, log_conditional(draw.B)
    for size in MOVES:
        for propose in (_rescaled, _shifted):
            proposal, log_volume = propose(B, size * rng.standard_normal((len(B), B.shape[2])))
            proposed = log_conditional(proposal)
            taken = np.log(1.0 - rng.random(len(B))) < proposed - value + log_volume
            value = np.where(taken, proposed, value)
            B = np.where(taken[:, None, None], proposal, B)
    return draw._replace(B=B)


def _rescaled(B, noise):
    return np.exp(noise[:, 0])[:, None, None] * B, B[0].size * noise[:, 0]


def _shifted(B, noise):
    return np.concatenate([B[:, :1] + noise[:, None], B[:, 1:]], axis=1), 0.0


def draw_scores(draw, rng, model):
    """T given Z, V, b and y."""
    return draw._replace(T=model.outputs.draw(with_ones(draw.Z) @ draw.B, rng))


def log_joint(draw: Draw, model: Model) -> np.ndarray:
    """Log density (k,) of all variables and y given X, less the constants of the normal laws."""
    priors = model.priors
    total = _totals(log_densities(draw.phi, priors.projection))
    total += _totals(log_densities(draw.psi, priors.weights))
    total += _totals(log_densities(draw.lam, priors.bias))
    phi = of_entries(draw.phi, priors.kind, draw.P.shape)
    total += 0.5 * _totals(np.log(phi) - phi * draw.P**2)
    total -= 0.5 * _totals((draw.Z - draw.projected) ** 2) / model.ridge.noise
    weights = np.concatenate([draw.lam[:, None], draw.psi], axis=1)
    total += 0.5 * _totals(np.log(weights) - weights * draw.B**2)
    eps = draw.eps[:, None]
    squares = (draw.T - with_ones(draw.Z) @ draw.B) ** 2 * eps
    return total + 0.5 * _totals(observed_only(np.log(eps) - squares, model))


def keep(draw: Draw, model: Model, reference) -> KeptDraw:
    """The draws turned so that their projections lie closest to the reference (n, q).

    Turning z by an orthogonal matrix changes nothing that is observed, so averages over draws
    mean something only after this (docs/errata.md, E-G13-9); signs and order of components are
    special turns.
    """
    U, _, Vt = np.linalg.svd(_turned(draw.projected) @ reference)
    turn = U @ Vt
    b, V = draw.B[:, 0], draw.B[:, 1:]
    # A number added to all scores of a row leaves its class as it is.
    common = isinstance(model.outputs, ClassOutputs)
    contrasts = V - V.mean(axis=2, keepdims=True) if common else V
    scores = draw.projected @ contrasts
    values = np.linalg.eigvalsh(_turned(scores) @ scores / scores.shape[1])
    rank = min(draw.P.shape[2], V.shape[2] - common)
    return KeptDraw(
        P=draw.P @ turn,
        V=_turned(turn) @ V,
        b=b,
        noise_precision=draw.eps,
        log_joint=log_joint(draw, model),
        bias_contrasts=b - b.mean(axis=1, keepdims=True) if common else b,
        score_spread=np.sqrt(np.maximum(values[:, ::-1][:, :rank], 0.0)),
    )


def _of_each(X, P):
    """X P for each of a stack of matrices (k, d, q), in one product."""
    k, d, q = P.shape
    flat = np.asarray(X @ P.transpose(1, 0, 2).reshape(d, k * q), dtype=float)
    return flat.reshape(-1, k, q).transpose(1, 0, 2)


def _turned(matrices):
    """Transposes of a stack."""
    return np.swapaxes(matrices, -1, -2)


def _totals(values):
    """Sums over all but the chains (k,)."""
    return values.reshape(len(values), -1).sum(axis=1)


def _draw_gamma(law: Gamma, rng):
    # Sparse priors give draws below the least number, whose logarithm would be infinite.
    x = rng.gamma(law.shape, law.scale, np.shape(law.scale))
    return np.maximum(x, np.finfo(float).tiny)
