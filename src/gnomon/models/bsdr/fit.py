"""The fit of BSDR, from rows and outputs to a posterior: where to start reading.

1. Priors are chosen for the data; rows in standard units become a ridge (`read_inputs`).
2. The best of some starts is warmed up, then swept to the end by the loop that is given
   (`sweeps.start`, `sweeps.step`, accelerated); or Algorithm 1 of [G13] is run as printed, from a
   random start (`sweeps.printed_step`).
3. Components are put in order of relevance, those that carry nothing left out where asked.
4. Chains may start from there (`gibbs.sample`).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Method, Run, best_of, iterate
from gnomon.linalg.data import Data
from gnomon.linalg.solve import above_rounding, column_signs, threads_for
from gnomon.models.bsdr import gibbs, sampled, sweeps
from gnomon.models.bsdr.factors import Factors, Gamma, Model, Priors, counted, make_model, reorder
from gnomon.models.bsdr.inputs import (
    Inputs,
    loading_variances,
    loadings,
    read_inputs,
    standard_loadings,
    standard_rows,
)
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs, Outputs

# With more features the factors of the entrywise prior cost more than they give.
MOST_ENTRYWISE = 1000
# Precisions with this prior drop features that the data do not support [G13].
FEATURE_PRIOR = Gamma(0.001, 1000.0)
# The same for components: with the prior of [G13] a third of what tells five classes apart is
# dropped, with (0.1, 10) labels that mean nothing keep some (`benchmarks/defaults.py --only bsdr`).
COMPONENT_PRIOR = Gamma(0.01, 100.0)
# Sparse priors prune at once what has not grown yet; steps at (1, 1) come first.
WARM_UP_STEPS = 10
# Steps of all starts, then of the two best: before 20 the order of the bounds says little of
# where runs will end, but at 7 the best is one of the two (three splits of digits), in two thirds
# of the time of 20 steps for all.
TRIAL_STEPS = (7, 13)
# One by regression and four random ones, where the order of the classes is a local maximum.
N_STARTS = 5
# With more classes one start: on planted sets of 12 and 30 classes none of the random ones led to a
# higher bound in six fits, one to a lower, and they take half of the time.
MOST_CLASSES_WITH_STARTS = 26
# Components whose projections deviate by less than this share of the latent noise carry nothing.
KEPT_ABOVE = 0.1
# And where their number is to be found, with less latent noise: components of noise reach .02 with
# classes and .32 with eight numbers of 300 or 1,200 rows each, planted ones 1.7 and more. At .1 one
# regression in ten had the planted number.
FOUND_ABOVE = 0.5


class Problem(NamedTuple):
    """Rows and their outputs."""

    X: Data
    outputs: Outputs


class Settings(NamedTuple):
    """Parameters of a fit, checked."""

    n_components: int | None
    """None: as many as the columnwise prior keeps."""
    prior: str
    """"auto", "entry", "column" or "row": which entries of P share a precision."""
    projection_prior: Gamma | None
    """None: a sparse one for the rowwise prior and where components are to be found."""
    weight_prior: Gamma
    latent_noise: float
    """Standard deviation of z around the projection of x."""
    standardize: bool | str
    n_init: int | None
    """Number of starts; None: several where up to 26 outnumber the components by two or more."""
    max_iter: int
    tol: float
    """Per row, of the bound."""
    rng: np.random.Generator
    solver: str = "accelerated"
    """"accelerated", or "paper": plain sweeps of Algorithm 1 from a random start."""
    sampling: gibbs.Sampling | None = None
    """Gibbs sampling after the variational fit; None for none."""


class BsdrFit(NamedTuple):
    """Posterior means and deviations of projection, weights and noise, and how the fit went."""

    loadings: np.ndarray
    """On centred features (d, q)."""
    loadings_sd: np.ndarray
    B: np.ndarray
    """Means of [b; V] (q + 1, c)."""
    C: np.ndarray
    """Their covariances (c, q + 1, q + 1)."""
    noise_variance: np.ndarray | None
    """Of numbers (c,)."""
    relevance: np.ndarray
    """Deviation of the projections along each component tried, in units of the latent noise."""
    kept: np.ndarray
    """Which of them carry something."""
    feature_relevance: np.ndarray
    """Length of each feature's loadings in standard units (d,)."""
    inputs: Inputs
    precisions: np.ndarray
    run: Run
    draws: gibbs.Draws | None


def fit(problem: Problem, settings: Settings, loop) -> BsdrFit:
    """The posterior by mean field, or by Gibbs sampling from there."""
    with threads_for(problem.X):
        return _fit(problem, settings, loop)


def _fit(problem, settings, loop):
    priors = choose_priors(problem, settings)
    noise = settings.latent_noise**2
    inputs, ridge = read_inputs(problem.X, priors.kind, noise, settings.standardize)
    model = make_model(ridge, problem.outputs, priors)
    run = _solved(sampled.Whole(standard_rows(problem.X, inputs), model, inputs), settings, loop)
    least = FOUND_ABOVE if settings.n_components is None else KEPT_ABOVE
    factors, relevance = _in_order(run.state, inputs, model, settings)
    found = _of_factors(factors, inputs, relevance, run)._replace(kept=relevance > least)
    if settings.sampling is None:
        return found
    kept = gibbs.sample(factors, model, settings.sampling, settings.rng, len(run.objective))
    return _of_draws(found, gibbs.read_draws(kept, inputs, model))


def choose_priors(problem: Problem, settings: Settings) -> Priors:
    """The prior that was asked for, or the one for data of this shape."""
    kind = _kind(problem.X, settings)
    plain = COMPONENT_PRIOR if settings.n_components is None else Gamma(1.0, 1.0)
    projection = settings.projection_prior or (FEATURE_PRIOR if kind == "row" else plain)
    return Priors(kind, projection, settings.weight_prior, settings.weight_prior)


def _kind(X, settings):
    d, to_be_found = X.shape[1], settings.n_components is None
    if settings.prior == "auto":
        return "column" if to_be_found or d > MOST_ENTRYWISE or X.is_sparse else "entry"
    if to_be_found and settings.prior != "column":
        raise ValueError(
            f"prior == {settings.prior!r} with n_components == 'auto'; accepted are 'auto' and "
            "'column', whose precisions switch components off"
        )
    if settings.prior != "column":
        refuse_wide_sparse(X, settings.prior)
    return settings.prior


def refuse_wide_sparse(X: Data, prior):
    """Priors by entry and by row need dense tables of the size of a wide X."""
    if X.is_sparse and X.shape[0] < X.shape[1]:
        raise ValueError(
            f"prior == {prior!r} with a sparse X of more features than rows; accepted "
            "are 'auto' and 'column', which need products with X only"
        )


def _solved(whole: sampled.Whole, settings: Settings, loop) -> Run:
    """Sweeps over all rows; of more than are kept in memory with few reads, where that can be."""
    plain = settings.solver == "accelerated" and settings.sampling is None
    if not plain or not sampled.suits(whole):
        return _run(whole.model, settings, loop)
    if isinstance(whole.model.outputs, NumberOutputs):
        return _run(sampled.compressed(whole), settings, loop)
    part, tol = sampled.draw(whole), settings.tol * whole.model.n_samples
    method = sampled.faster(sampled.alone(part), _started(sampled.alone(part), settings))
    first = iterate(method, max_iter=min(settings.max_iter, sampled.FIRST_STEPS), tol=tol).state
    last = sampled.LAST * tol
    method = sampled.rounds(first, part, whole, steps=settings.max_iter, tol=last)
    return loop(method, max_iter=min(settings.max_iter, sampled.MOST_ROUNDS), tol=last)


def _run(model: Model, settings: Settings, loop) -> Run:
    """Sweeps over the rows of a model to their end."""
    tol = settings.tol * model.n_samples
    if settings.solver == "paper":
        method = printed_method(model, _n_components(model, settings), settings.rng)
    else:
        method = _faster(model, _started(model, settings))
    return loop(method, max_iter=settings.max_iter, tol=tol)


def _faster(model: Model, start: Factors) -> Method:
    """What leads from a start to the end."""
    stands = model.standing is not None
    return sampled.faster(model, start) if stands else sweeps.accelerated(model, start)


def _started(model: Model, settings: Settings) -> Factors:
    """The best start; with a sparse prior after a warm-up with a plain one."""
    first = model
    if model.priors.projection.shape < 1:
        first = model._replace(priors=model.priors._replace(projection=Gamma(1.0, 1.0)))
    state = _best_start(first, settings)
    if first is not model:
        steps = min(WARM_UP_STEPS, settings.max_iter)
        state = iterate(_faster(first, state), max_iter=steps, tol=0).state
        state = sweeps.update_projection_precisions(state, model)
    return state


def printed_method(model: Model, q, rng) -> Method:
    """Algorithm 1 of [G13]: random factors, then its sweeps."""
    factors = sweeps.start(model, random_start(model, q, rng))
    Z = rng.standard_normal(factors.Z.shape)
    B = np.vstack([factors.B[:1], rng.standard_normal(factors.B[1:].shape)])
    factors = sweeps.update_scores(factors._replace(Z=Z, B=B), model)
    return Method(sweeps.in_row_order(factors), partial(sweeps.printed_step, model=model))


def _best_start(model, settings):
    """The state of the best of several short runs: discriminant analysis, then random."""
    q, n_starts = _n_components(model, settings), settings.n_init
    if n_starts is None:
        n_classes = model.outputs.n_outputs
        n_starts = N_STARTS if q + 1 < n_classes <= MOST_CLASSES_WITH_STARTS else 1
    projections = [regression_start(model, q, settings.rng)]
    projections += [random_start(model, q, settings.rng) for _ in range(n_starts - 1)]
    states = [sweeps.start(model, P) for P in projections]
    if n_starts == 1:
        return states[0]
    runs = _tried([_faster(model, state) for state in states], TRIAL_STEPS[0])
    best = sorted(runs, key=lambda run: run.objective[-1])[-2:]
    return best_of(_tried([run.rest for run in best], TRIAL_STEPS[1])).state


def _tried(trials, steps):
    return [iterate(trial, max_iter=steps, tol=0) for trial in trials]


def _n_components(model, settings):
    """As many as were asked for, or as the scores can tell apart."""
    if settings.n_components is not None:
        return settings.n_components
    n_scores = model.outputs.n_outputs - isinstance(model.outputs, ClassOutputs)
    return max(1, min(model.ridge.n_features, n_scores))


def regression_start(model: Model, q, rng):
    """P (d, q) of regularised discriminant analysis (classes) or reduced-rank regression.

    Regresses the outputs on X and keeps the leading directions of the fitted values; columns
    beyond their rank are random.
    """
    columns = _centred(model.outputs.start_columns(), model)
    ridge, c = model.ridge, columns.shape[1]
    R = np.asarray(ridge.X.T @ counted(columns, model), dtype=float) / ridge.noise
    weights = ridge.solver(ridge.equal_precisions(c))(R)
    fitted = ridge.X @ weights
    values, vectors = np.linalg.eigh(fitted.T @ counted(fitted, model))
    # Directions within the rounding of single precision are no better than random ones.
    leading = np.flatnonzero(above_rounding(values, np.float32))[::-1][:q]
    P = random_start(model, q, rng)
    P[:, : len(leading)] = _with_unit_variance(model, weights @ vectors[:, leading])
    return P


def random_start(model: Model, q, rng):
    """P (d, q) of random directions, each with projections of unit variance."""
    P = rng.standard_normal((model.ridge.X.shape[1], q))
    return _with_unit_variance(model, P)


def _centred(columns, model):
    """Columns less their means over all rows; rows that stand for others may have none."""
    if model.standing is None:
        return columns - columns.mean(axis=0)
    ones, whole = model.standing.ones, np.zeros((len(model.standing.ones), columns.shape[1]))
    whole[: len(columns)] = columns
    return whole - ones @ (counted(ones, model).T @ whole) / model.n_samples


def _with_unit_variance(model, P):
    squares = counted((model.ridge.X @ P) ** 2, model).sum(axis=0)
    sd = np.sqrt(np.maximum(squares, 0.0)) / np.sqrt(model.n_samples)
    return P / np.where(sd > 0, sd, 1.0)


def _in_order(factors, inputs, model, settings):
    """Components by falling relevance, largest loading positive, and the relevance of all.

    Those that carry nothing are left out where components were to be found.
    """
    squares = np.sum(factors.P * model.ridge.gram_product(factors.P), axis=0)
    relevance = np.sqrt(np.maximum(squares, 0.0) / model.n_samples / inputs.noise)
    order = np.argsort(-relevance, kind="stable")
    relevance = relevance[order]
    if settings.n_components is None:
        order = order[: max(1, np.sum(relevance > FOUND_ABOVE))]
    P = standard_loadings(inputs, factors.P[:, order])
    signs = column_signs(P)
    return reorder(factors, order, signs, model.priors.kind), relevance


def _of_factors(factors, inputs, relevance, run) -> BsdrFit:
    """The posterior of the mean field."""
    phi, eps = factors.phi.mean, factors.eps
    variances = loading_variances(inputs, phi, factors.P_covariances.variance)
    return BsdrFit(
        loadings=loadings(inputs, factors.P),
        loadings_sd=np.sqrt(variances),
        B=factors.B,
        C=factors.C,
        noise_variance=None if eps is None else 1.0 / (eps.scale * (eps.shape - 1.0)),
        relevance=relevance,
        kept=relevance > KEPT_ABOVE,
        feature_relevance=np.linalg.norm(standard_loadings(inputs, factors.P), axis=1),
        inputs=inputs,
        precisions=phi,
        run=run,
        draws=None,
    )


def _of_draws(found: BsdrFit, draws: gibbs.Draws) -> BsdrFit:
    """The same with means and deviations of the draws."""
    values = {name: gibbs.merge_chains(value) for name, value in draws.values.items()}
    B = np.concatenate([values["bias"][:, None], values["weights"]], axis=1)
    gaps = B - B.mean(axis=0)
    noise = values.get("noise_variance")
    return found._replace(
        loadings=values["projection"].mean(axis=0).T,
        loadings_sd=values["projection"].std(axis=0).T,
        B=B.mean(axis=0),
        C=np.einsum("lac,lbc->cab", gaps, gaps) / len(gaps),
        noise_variance=None if noise is None else noise.mean(axis=0),
        draws=draws,
    )
