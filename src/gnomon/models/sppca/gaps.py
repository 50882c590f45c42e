"""SPPCA with missing entries in the inputs, by the likelihood of what is observed.

Inputs and outputs stand side by side as columns of one table with two kinds of noise, and
gaps in both are alike; see `gnomon.models.gaussian.gaps`. With a probit likelihood the table has
the inputs alone, and labelled rows, each with a posterior of its own, come last.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Method, Run, anderson
from gnomon.linalg.solve import one_thread
from gnomon.models.gaussian import gaps, patterns
from gnomon.models.sppca import em, probit
from gnomon.models.sppca.statistics import Noise, State, floors, learnt_levels, noise_for, tied


class Parts(NamedTuple):
    """The mean of the inputs, and the state of SPPCA for rows less that mean."""

    mean: np.ndarray
    state: State


def maximise(problem, settings, loop) -> tuple[Run, Noise]:
    """The run to the maximum for a `fit.Problem` with gaps, its states `Parts`; the noise rule."""
    X, Y, observed, _, weights, _ = problem
    inputs = patterns.inputs_of_any_number(X, weights)
    data = table(X, Y, observed, weights, per_output=settings.noise == "per_output")
    variances = patterns.variances(data)
    noise = noise_for(variances[0], variances[1:], settings)
    start = init(data, gaps.init(inputs, settings.n_components), noise)
    parts = partial(split, d=X.shape[1], c=Y.shape[1])
    max_iter, tol = settings.max_iter, settings.tol
    run = climb(data, start, noise, max_iter=max_iter, tol=tol, loop=loop, finish=parts)
    return run, noise


@one_thread
def climb(data, start, noise, *, max_iter, tol, loop, finish=lambda state: state) -> Run:
    """The run of EM on a table, with ``tol`` in nats per observed entry.

    ``finish`` makes of a `gnomon.models.gaussian.gaps.State` what the run ends with.
    """
    data = patterns.condensed(data)
    unit = patterns.units(data)
    method = anderson(
        Method(start, partial(step, data=data, noise=noise), finish),
        partial(gaps.pack, unit=unit),
        partial(unpack, like=start, unit=unit, data=data, noise=noise),
    )
    return loop(method, max_iter=max_iter, tol=tol * patterns.n_observed(data))


def table(X, Y, observed, weights=None, *, per_output=False, shift=None) -> patterns.Table:
    """Rows [x, y] with NaN in the gaps, grouped by what they observe; floors as without gaps."""
    d, c = X.shape[1], Y.shape[1]
    outputs = 1 + np.arange(c) if per_output else np.ones(c, dtype=int)
    groups = np.concatenate([np.zeros(d, dtype=int), outputs])
    if patterns.too_many(X) and shift is None:
        beside = partial(_seen, Y, observed)
        data: patterns.Table = patterns.in_parts(X, weights, (beside, c), groups)
    else:
        rows = np.hstack([X.astype(float), _seen(Y, observed)])
        data = patterns.group_rows(rows, groups, weights, shift)
    variances = patterns.variances(data)
    return data._replace(floors=np.append(*floors(variances[0], variances[1:])))


def _seen(Y, observed, rows=slice(None)):
    return np.where(observed[rows], Y[rows], np.nan)


def no_outputs(n) -> tuple[np.ndarray, np.ndarray]:
    """Columns and mask of rows without outputs."""
    nothing = np.zeros((n, 0))
    return nothing, nothing.astype(bool)


def init(data: patterns.Table, inputs: gaps.State, noise: Noise) -> gaps.State:
    """PPCA of the inputs as far as it is known; outputs not yet explained."""
    d, q = inputs.W.shape
    W = np.vstack([inputs.W, np.zeros((len(data.groups) - d, q))])
    mean = np.concatenate([inputs.mean, data.shift[d:]])
    levels = np.append(inputs.noise, np.maximum(patterns.variances(data), data.floors)[1:])
    return gaps.State(W, mean, tied(levels, noise))


def step(state: gaps.State, data: patterns.Table, noise: Noise):
    """One EM step, its noise fixed or tied where the rule says so, and the objective."""
    priors = np.where(data.groups == 0, noise.prior_x, noise.prior_y)
    fixed_mean = None if noise.learn_mean else data.groups > 0
    # Levels that are not learnt apart have no floors of their own.
    rows = data if noise.ratio is None else data._replace(floors=np.zeros_like(data.floors))
    found, objective = gaps.step(state, rows, priors if priors.any() else None, fixed_mean)
    objective -= 0.5 * float(priors @ np.sum(state.W**2, axis=1))
    return found._replace(noise=_apply_noise_rule(found.noise, data, noise)), objective


def _apply_noise_rule(levels, data, noise):
    """Levels of the groups of columns, as they were learnt apart, fixed or tied."""
    if noise.ratio is None:
        return tied(levels, noise)
    sizes = patterns.group_sizes(data)
    return learnt_levels(sizes * levels, sizes, noise)


def unpack(x, like: gaps.State, unit, data: patterns.Table, noise: Noise):
    """The state of a vector of `gnomon.models.gaussian.gaps.pack`, noise not below the floors."""
    state = gaps.unpack(x, like, unit)
    if noise.fixed is not None or noise.ratio is not None:
        return state
    return state._replace(noise=np.maximum(state.noise, data.floors))


def split(state: gaps.State, d, c) -> Parts:
    """Mean of the inputs, and the state of SPPCA."""
    levels = np.broadcast_to(state.noise[1:], (c,)) if c else np.zeros(0)
    return Parts(
        state.mean[:d],
        State(state.W[:d], float(state.noise[0]), state.W[d:], levels.copy(), state.mean[d:]),
    )


def join(mean, state: State) -> gaps.State:
    """The table's state, a noise level for every output."""
    return gaps.State(
        np.vstack([state.W, state.W_y]),
        np.concatenate([mean, state.mean_y]),
        np.concatenate([[state.sigma2], state.sigma2_y]),
    )


class ProbitState(NamedTuple):
    """The state of the inputs, loadings (c, q) and means (c,) of the scores."""

    inputs: gaps.State
    W_y: np.ndarray
    mean_y: np.ndarray


class ProbitRows(NamedTuple):
    """All rows, the labelled ones last; these alone; what is known of them."""

    every: patterns.Patterns
    labelled: patterns.Patterns
    targets: probit.Classes | probit.Signs


@one_thread
def maximise_probit(problem, settings, loop) -> tuple[Run, Noise]:
    """The same as `maximise` with a probit likelihood."""
    mask, _, targets = probit.read_targets(problem)
    c, q = problem.Y.shape[1], settings.n_components
    inputs = patterns.inputs(problem.X, problem.weights)
    noise = probit.noise_rule(patterns.variances(inputs)[0], c, settings)
    start = ProbitState(gaps.init(inputs, q), np.zeros((c, q)), np.zeros(c))
    rows, unit = _probit_rows(problem, inputs, mask, targets), patterns.units(inputs)
    method = anderson(
        Method(start, partial(probit_step, rows=rows, noise=noise), _probit_parts),
        partial(_probit_pack, unit=unit),
        partial(_probit_unpack, like=start, unit=unit, floor=noise.floor_x),
    )
    tol = settings.tol * patterns.n_observed(inputs)
    return loop(method, max_iter=settings.max_iter, tol=tol), noise


def _probit_rows(problem, inputs, mask, targets):
    """Rows without label by their patterns, and those with one, each alone."""
    weights = np.ones(len(mask)) if problem.weights is None else problem.weights
    X, own = problem.X[mask].astype(float), weights[mask]
    without = patterns.condensed(patterns.select(inputs, ~mask))
    nobody = patterns.select(inputs, np.zeros_like(mask))
    with_them = patterns.with_rows(without, X, own)
    return ProbitRows(with_them, patterns.with_rows(nobody, X, own), targets)


def probit_step(state: ProbitState, rows: ProbitRows, noise: Noise):
    """One step of EM, and the objective it started from."""
    model, targets = _probit_parts(state).state, rows.targets
    Z, covariances = gaps.posterior(state.inputs, rows.labelled)
    every = []
    for part in probit.blocks(model, len(Z)):
        found = probit.scored(model, Z[part], covariances[part], targets.rows(part))
        Z[part], covariances[part] = found.Z, found.covariances
        every.append(probit.sums(found, rows.labelled.weights[part], targets.rows(part).seen))
    total, ridge = probit.add_up(every), np.full(len(model.W), noise.prior_x)
    known = gaps.Known(Z, covariances)
    inputs, objective = gaps.step(state.inputs, rows.every, ridge, known=known)
    scores = em.output_regression(model, *probit.output_moments(model, total), noise)
    return ProbitState(inputs, *scores), objective + total.log_probability - em.penalty(
        model, noise
    )


def _probit_pack(state, unit):
    return np.concatenate([gaps.pack(state.inputs, unit), state.W_y.ravel(), state.mean_y])


def _probit_unpack(x, like, unit, floor):
    c, q = like.W_y.shape
    of_inputs, W_y, mean_y = np.split(x, [len(x) - c * (q + 1), len(x) - c])
    inputs = gaps.unpack(of_inputs, like.inputs, unit)
    inputs = inputs._replace(noise=np.maximum(inputs.noise, floor))
    return ProbitState(inputs, W_y.reshape(c, q), mean_y)


def _probit_parts(state: ProbitState) -> Parts:
    W, mean, noise = state.inputs
    c = len(state.mean_y)
    return Parts(mean, State(W, float(noise[0]), state.W_y, np.ones(c), state.mean_y))
