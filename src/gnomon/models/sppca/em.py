"""SPPCA and S2PPCA by maximum likelihood, from second moments: EM, faster EM, its finish.

A step of EM needs of the data only their `Statistics`, and so costs the same for any number of
rows. Without outputs this is PPCA; with all rows labelled it is SPPCA, Theorem 2 of [YYTKW06].

    init -> e_step, m_step      the steps of Algorithm 2, with parameter expansion
    pack, unpack, gradient      the parameters as one free vector
    maximise                    start, EM with Anderson's mixing, L-BFGS where EM creeps
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.inference.lbfgs import ascend
from gnomon.inference.loop import Method, Run, anderson, iterate
from gnomon.linalg.solve import Cholesky, column_signs, stacked_covariances
from gnomon.linalg.tall import mixed
from gnomon.models.sppca.closed_form import closed_form
from gnomon.models.sppca.statistics import (
    Noise,
    Outputs,
    State,
    Statistics,
    at_floor,
    free_levels,
    has_closed_form,
    learnt_levels,
    output_means,
    tied,
    units,
)


class Expected(NamedTuple):
    """Expected moments: x with z, z with z, y with [z, 1], and [z, 1] where an output is seen.

    ``ZZ_y`` (c, q + 1, q + 1) has a table for every output, or one for all (1, q + 1, q + 1)
    where all are seen in the same rows.
    """

    XZ: np.ndarray
    ZZ: np.ndarray
    YZ: np.ndarray
    ZZ_y: np.ndarray


def init(stats: Statistics, q, noise: Noise) -> State:
    """PPCA of x in closed form; outputs not yet explained. Coordinates in falling order."""
    variances = stats.g[:q] / stats.n
    rest = max(stats.energy / stats.n - variances.sum(), 0.0) / max(stats.d - q, 1)
    sigma2 = max(rest, noise.floor_x)
    W = np.zeros((len(stats.g), q))
    # A direction no stronger than noise keeps a small loading, since zero is a saddle of EM.
    k = np.arange(min(q, len(stats.g)))
    W[k, k] = np.sqrt(np.maximum(variances - sigma2, 1e-2 * variances))
    mean_y, variance_y = output_means(stats.outputs)
    sigma2_y = np.maximum(variance_y, noise.floor_y)
    if not noise.per_output and sigma2_y.size:
        sigma2_y = np.full_like(sigma2_y, sigma2_y.mean())
    levels = tied(np.append(sigma2, sigma2_y), noise)
    return State(W, float(levels[0]), np.zeros((len(mean_y), q)), levels[1:], mean_y)


def e_step(state: State, stats: Statistics) -> tuple[Expected, float]:
    """Expected moments, eqs. (5), (6), (11), (12) of [YYTKW06], and the log likelihood.

    Every row counts first as if it had no outputs; those that have some are then corrected.
    Erratum E-YYTKW06-1: (12) lacks the factor sigma_x^2 that (4) has.
    """
    n, q, c = stats.n, state.W.shape[1], len(state.mean_y)
    alone = given_inputs(state)
    XZ = stats.g[:, None] * alone.h
    ZZ = alone.h.T @ XZ + n * alone.covariance
    log_likelihood = -0.5 * (
        n * stats.d * np.log(2 * np.pi * state.sigma2)
        + stats.energy / state.sigma2
        - n * alone.logdet
        - np.sum(alone.B * XZ)
    )
    if not len(stats.outputs.T):
        nothing = np.zeros((c, q + 1)), np.zeros((c, q + 1, q + 1))
        return Expected(XZ, ZZ, *nothing), float(log_likelihood)
    rows = posteriors(state, stats.outputs)
    tables = _pattern_tables(stats.outputs, rows)
    XZ_more, ZZ_less, gain = _label_corrections(state, stats.outputs, rows, alone)
    ZZ = ZZ + (tables[:, :q, :q].sum(axis=0) - ZZ_less)
    expected = Expected(XZ + XZ_more, ZZ, *_output_moments(stats.outputs, rows, tables))
    return expected, float(log_likelihood + gain)


class Unlabelled(NamedTuple):
    """z given x alone: means T @ h with h = B @ covariance; the log determinant of that."""

    B: np.ndarray
    h: np.ndarray
    covariance: np.ndarray
    logdet: float


def given_inputs(state: State) -> Unlabelled:
    """The rows as if they had no outputs, eqs. (11)-(12) of [YYTKW06]."""
    q = state.W.shape[1]
    B = state.W / state.sigma2
    A = Cholesky(np.eye(q) + state.W.T @ B)
    covariance = A.solve(np.eye(q))
    return Unlabelled(B, B @ covariance, covariance, -A.logdet())


class LabelledRows(NamedTuple):
    """z given x and y: covariances (P, q, q) of the patterns, their log determinants, and rows.

    ``Z`` (p, q) are the means, ``b`` what they are before the covariance multiplies it.
    """

    covariances: np.ndarray
    logdets: np.ndarray
    residual: np.ndarray
    b: np.ndarray
    Z: np.ndarray


def precisions(state: State, seen) -> np.ndarray:
    """A of eq. (3) of [YYTKW06] for every pattern of outputs seen (P, c), as (P, q, q)."""
    q = state.W.shape[1]
    products = (state.W_y[:, :, None] * state.W_y[:, None, :]).reshape(-1, q * q)
    A = np.eye(q) + state.W.T @ state.W / state.sigma2
    return A + ((seen / state.sigma2_y) @ products).reshape(-1, q, q)


def posteriors(state: State, outputs: Outputs) -> LabelledRows:
    """The rows with outputs, given x and what they have of y, eqs. (5)-(6) of [YYTKW06]."""
    T, Y, ones, pattern, seen, _ = outputs
    covariances, logdets = stacked_covariances(precisions(state, seen))
    residual = (Y - ones[:, None] * state.mean_y) * seen[pattern]
    b = T @ (state.W / state.sigma2) + (residual / state.sigma2_y) @ state.W_y
    if len(covariances) == 1:
        Z = b @ covariances[0]
    else:
        Z = np.einsum("pj,pjk->pk", b, covariances[pattern])
    return LabelledRows(covariances, logdets, residual, b, Z)


def _label_corrections(state, outputs, rows, alone):
    """What outputs add to x z', what z z' had of their rows without them, the gain in nats."""
    counts, b_x = outputs.counts, outputs.T @ alone.B
    Z_x = b_x @ alone.covariance
    gain = -0.5 * (
        counts @ (alone.logdet - rows.logdets)
        + outputs.sizes @ np.log(2 * np.pi * state.sigma2_y)
        + np.sum(rows.residual**2 / state.sigma2_y)
        - np.sum(rows.b * rows.Z)
        + np.sum(b_x * Z_x)
    )
    ZZ_less = Z_x.T @ Z_x + counts.sum() * alone.covariance
    return outputs.T.T @ (rows.Z - Z_x), ZZ_less, gain


def _pattern_tables(outputs, rows):
    """Sums of <[z; 1][z; 1]'> over the rows of each pattern (P, q + 1, q + 1)."""
    q, n_patterns = rows.Z.shape[1], len(outputs.seen)
    Z = np.column_stack([rows.Z, outputs.ones])
    if n_patterns == 1:
        tables = (Z.T @ Z)[None]
    else:
        ones, index = np.ones(len(Z)), (outputs.pattern, np.arange(len(Z)))
        add_up = sparse.csr_array((ones, index), (n_patterns, len(Z)))
        tables = np.stack([add_up @ (column[:, None] * Z) for column in Z.T], axis=1)
    tables[:, :q, :q] += outputs.counts[:, None, None] * rows.covariances
    return tables


def _output_moments(outputs, rows, tables):
    """Moments of y with [z, 1], and of [z, 1] over the rows that have an output."""
    YZ = outputs.Y.T @ np.column_stack([rows.Z, outputs.ones])
    if outputs.alike:
        return YZ, tables
    return YZ, np.tensordot(outputs.seen.T.astype(float), tables, axes=1)


def m_step(state: State, expected: Expected, stats: Statistics, noise: Noise) -> State:
    """Regressions of x and y on z, eqs. (13)-(16) of [YYTKW06], with parameter expansion.

    The mean of y is learnt with its loadings, as the regression on [z, 1]: with unlabelled
    rows the mean of the labelled ones, eq. (7), is not the maximum (E-YYTKW06-2).
    """
    q = state.W.shape[1]
    ridge = noise.prior_x * state.sigma2
    W = Cholesky(expected.ZZ + ridge * np.eye(q)).solve(expected.XZ.T).T
    W_y, mean_y = output_regression(state, expected.YZ, expected.ZZ_y, noise)
    levels = np.append(state.sigma2, state.sigma2_y)
    if noise.fixed is None:
        squares = _squares(W, np.column_stack([W_y, mean_y]), expected, stats)
        levels = learnt_levels(squares, _sizes(stats), noise)
    if noise.prior_x == 0 and noise.prior_y == 0:
        # z ~ N(0, ZZ/n) fits better than N(0, I); its root goes into the loadings.
        L = Cholesky(expected.ZZ / stats.n).L
        W, W_y = W @ L, W_y @ L
    return State(W, float(levels[0]), W_y, levels[1:], mean_y)


def output_regression(state: State, YZ, ZZ, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
    """Loadings and mean of y from its moments with [z, 1], and those of [z, 1]."""
    c, q = state.W_y.shape
    if not c:
        return state.W_y, state.mean_y
    if len(ZZ) == 1 and noise.prior_y == 0 and noise.learn_mean and ZZ[0, q, q] > 0:
        solved = np.linalg.solve(ZZ[0], YZ.T).T
        return solved[:, :q], solved[:, q]
    ZZ = ZZ + _output_penalty(state, ZZ, noise)
    if noise.learn_mean:
        solved = np.linalg.solve(ZZ, YZ[:, :, None])[:, :, 0]
        return solved[:, :q], solved[:, q]
    rest = YZ[:, :q] - state.mean_y[:, None] * ZZ[:, :q, q]
    return np.linalg.solve(ZZ[:, :q, :q], rest[:, :, None])[:, :, 0], state.mean_y


def _output_penalty(state, ZZ, noise):
    """What the prior adds to the tables of [z, 1] (c, q + 1, q + 1)."""
    c, q = state.W_y.shape
    penalty = np.zeros((c, q + 1, q + 1))
    k = np.arange(q)
    penalty[:, k, k] = noise.prior_y * state.sigma2_y[:, None]
    # An output nobody has keeps loadings of zero.
    absent = np.broadcast_to(ZZ[:, q, q] == 0, c)
    penalty[absent] += np.eye(q + 1)
    return penalty


def _squares(W, V, expected, stats):
    """Expected squared residuals (1 + c) of x and of every output, for V = [W_y, mean_y]."""
    square_x = stats.energy - 2 * np.sum(W * expected.XZ) + np.sum((W @ expected.ZZ) * W)
    fitted = np.sum(_times_tables(V, expected.ZZ_y) * V, axis=1)
    square_y = np.sum(stats.outputs.Y**2, axis=0) - 2 * np.sum(V * expected.YZ, axis=1) + fitted
    return np.append(square_x, square_y)


def _times_tables(V, ZZ_y):
    """Row c of V times its table, or the table of all."""
    return V @ ZZ_y[0] if len(ZZ_y) == 1 else np.einsum("cj,cjk->ck", V, ZZ_y)


def _sizes(stats):
    """Numbers (1 + c) of entries of x and of every output, by weight."""
    return np.append(stats.n * stats.d, stats.outputs.sizes)


def em_step(state: State, stats: Statistics, noise: Noise) -> tuple[State, float]:
    """One step of Algorithm 2 of [YYTKW06], and the objective it started from."""
    expected, log_likelihood = e_step(state, stats)
    return m_step(state, expected, stats, noise), log_likelihood - penalty(state, noise)


def penalty(state: State, noise: Noise) -> float:
    """Minus the log prior of the loadings, less its constant."""
    return 0.5 * float(noise.prior_x * np.sum(state.W**2) + noise.prior_y * np.sum(state.W_y**2))


def canonical(state: State, basis=None) -> State:
    """Axes in falling order of the noise-weighted energy A - I, signs fixed, in full space.

    The basis is orthonormal, so that the energy is that of the coordinates.
    Erratum E-YYTKW06-3: section 5.1 prints W_x'W_x + W_y'W_y, without the noise levels.
    """
    W_y, sigma2_y = state.W_y, state.sigma2_y[:, None]
    _, R = np.linalg.eigh(state.W.T @ state.W / state.sigma2 + W_y.T @ (W_y / sigma2_y))
    R = R[:, ::-1]
    W = state.W @ R if basis is None else mixed(basis, state.W @ R)
    signs = column_signs(W)
    return state._replace(W=W * signs, W_y=W_y @ R * signs)


# The parameters as one free vector. What the noise rule fixes or ties is left out, so that every
# vector is a valid state; logarithms keep noise positive.


def pack(state: State, noise: Noise) -> np.ndarray:
    """Loadings, logarithms of the free noise levels, and the mean of y where it is learnt.

    Loadings and means are in units of the data: a step that mixes vectors has none of its own.
    """
    W, sigma2, W_y, sigma2_y, mean_y = state
    (unit, unit_y), free = units(noise), len(free_levels(noise, len(mean_y)).floors)
    levels = np.log(np.append(sigma2, sigma2_y)[:free])
    mean = mean_y / unit_y if noise.learn_mean else np.zeros(0)
    of_y = W_y / unit_y[:, None] * _balance(W)
    return np.concatenate([(W / unit).ravel(), of_y.ravel(), levels, mean])


def unpack(x, like: State, noise: Noise) -> State:
    """The state of a vector, its noise not below the floors; the rest is taken from ``like``."""
    (m, q), c = like.W.shape, len(like.mean_y)
    group, factor, floors = free_levels(noise, c)
    W, W_y, levels, mean = np.split(x, np.cumsum([m * q, c * q, len(floors)]))
    unit, unit_y = units(noise)
    W, W_y = W.reshape(m, q) * unit, W_y.reshape(c, q) / _balance(like.W) * unit_y[:, None]
    mean = mean * unit_y if noise.learn_mean else like.mean_y
    if noise.fixed is not None:
        return like._replace(W=W, W_y=W_y, mean_y=mean)
    levels = factor * np.exp(np.maximum(levels, np.log(floors)))[group]
    return State(W, float(levels[0]), W_y, levels[1:], mean)


def bounds(like: State, noise: Noise) -> list[tuple[float | None, None]]:
    """Lower bounds of the vector: the floors of the noise."""
    c = len(like.mean_y)
    free: list[tuple[float | None, None]] = [(None, None)] * (like.W.size + like.W_y.size)
    free += [(float(floor), None) for floor in np.log(free_levels(noise, c).floors)]
    return free + [(None, None)] * (c * noise.learn_mean)


def value_and_gradient(x, like: State, stats: Statistics, noise: Noise):
    """Objective at a vector and its gradient, which the E-step has for free."""
    state = unpack(x, like, noise)
    expected, log_likelihood = e_step(state, stats)
    return log_likelihood - penalty(state, noise), _gradient(state, expected, stats, noise)


def _gradient(state, expected, stats, noise):
    W, sigma2, W_y, sigma2_y, mean_y = state
    q = W_y.shape[1]
    V = np.column_stack([W_y, mean_y])
    dW = (expected.XZ - W @ expected.ZZ) / sigma2 - noise.prior_x * W
    dV = (expected.YZ - _times_tables(V, expected.ZZ_y)) / sigma2_y[:, None]
    dW_y = dV[:, :q] - noise.prior_y * W_y
    squares = _squares(W, V, expected, stats)
    d_levels = 0.5 * (squares / np.append(sigma2, sigma2_y) - _sizes(stats))
    group, _, floors = free_levels(noise, len(mean_y))
    # Along the logarithm of a free number, what is tied to it adds up.
    levels = np.bincount(group, d_levels)[: len(floors)]
    unit, unit_y = units(noise)
    mean = dV[:, q] * unit_y if noise.learn_mean else np.zeros(0)
    of_y = dW_y * unit_y[:, None] / _balance(W)
    return np.concatenate([(dW * unit).ravel(), of_y.ravel(), levels, mean])


def _balance(W):
    """Outputs are few beside features: their loadings count as much as all those of x."""
    return np.sqrt(max(W.shape[0], 1))


def first(stats: Statistics, q, noise: Noise) -> State:
    """Where to start: PPCA, or with all rows labelled the closed form at the best noise ratio."""
    return (closed_form if has_closed_form(stats, noise) else init)(stats, q, noise)


def maximise(
    stats: Statistics, q, noise: Noise, *, max_iter, tol, loop=iterate, start: State | None = None
) -> Run:
    """The run to the maximum; its state is in the coordinates of the statistics.

    Where noise is tied or held by its floor EM creeps, and L-BFGS finishes.
    """
    if start is None:
        start = first(stats, q, noise)
    method = anderson(
        Method(start, partial(em_step, stats=stats, noise=noise)),
        partial(pack, noise=noise),
        partial(unpack, like=start, noise=noise),
    )
    run = loop(method, max_iter=max_iter, tol=tol)
    left = max_iter - len(run.objective)
    if run.converged and left > 0 and (noise.ratio is not None or any(at_floor(run.state, noise))):
        return _finish(run, stats, noise, max_iter=left, tol=tol)
    return run


def _finish(run, stats, noise, *, max_iter, tol):
    """The run gone on with by L-BFGS, unless that finds nothing better."""
    found = ascend(
        partial(value_and_gradient, like=run.state, stats=stats, noise=noise),
        pack(run.state, noise),
        bounds=bounds(run.state, noise),
        max_iter=max_iter,
        tol=tol,
    )
    if not found.objective[-1] >= run.objective[-1]:
        return run
    state = unpack(found.state, run.state, noise)
    return Run(state, run.objective + found.objective, found.converged)
