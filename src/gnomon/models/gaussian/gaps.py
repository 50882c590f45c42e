"""Linear Gaussian models with entries missing anywhere, by the likelihood of what is observed.

    x = mu + W z + e,    z ~ N(0, I),    e_j ~ N(0, noise[groups[j]])

Columns share a noise variance within their group: PPCA has one group, SPPCA one for inputs
and one for outputs. Rows with the same gaps share a posterior covariance, so work on
q x q matrices is per pattern, in batches; a gap is never filled in during the fit.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import Method, Run, anderson
from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.linalg.eigen import from_dual, from_moments
from gnomon.linalg.moments import Moments, Summed
from gnomon.linalg.solve import Cholesky, one_thread, stacked_covariances
from gnomon.models.gaussian.patterns import (
    Parts,
    Patterns,
    Table,
    column_squares,
    condensed,
    group_sizes,
    n_observed,
    over_parts,
    units,
)
from gnomon.stats.gaussian import Distances, split_distances

# Numbers of the q x q matrices that are worked on at a time: few enough for the cache.
BATCH_ENTRIES = 2**17
# Rows of a pattern from which products of its own are faster than matrices for every row.
MANY_ROWS = 512
# Rows of one pattern that are worked on at a time.
PART_ROWS = 4096


class State(NamedTuple):
    """Loadings (d, q), mean (d,) and noise variances (g,)."""

    W: np.ndarray
    mean: np.ndarray
    noise: np.ndarray


def init(data: Table, q: int) -> State:
    """Principal axes of the rows with their gaps at the column means: a start without chance."""
    n, d, spectrum = _principal(data, q)
    # Each axis has its own scale from the start; see `em.init`.
    rest = max(spectrum.trace - spectrum.values.sum(), 1e-6 * spectrum.trace) / (n * d)
    scales = np.sqrt(np.maximum(spectrum.values / n - rest, 0.1 * spectrum.values / n))
    noise = np.maximum(np.full(len(data.floors), rest), data.floors)
    return State(spectrum.vectors * scales, data.shift, noise)


def _principal(data, q):
    """Weight of the rows, number of columns, and leading axes with gaps at the column means."""
    if isinstance(data, Parts):
        scatter = data.gram - np.outer(data.sums, data.sums) / data.n
        rows = Summed(Moments(data.shape[0], data.n, np.zeros(len(scatter)), scatter))
        return data.n, len(scatter), from_moments(rows, q)
    n, d = data.weights.sum(), data.X.shape[1]
    _, centered = center(Weighted(Matrix(data.X), data.weights))
    return n, d, (from_moments if d <= data.X.shape[0] else from_dual)(centered, q)


class Posteriors(NamedTuple):
    """A run of patterns with the posterior means (r, q) of its rows and covariances (p, q, q)."""

    patterns: slice
    rows: slice
    of_row: np.ndarray
    Z: np.ndarray
    covariances: np.ndarray
    distances: np.ndarray
    log_likelihoods: np.ndarray


def posteriors(state: State, data: Patterns) -> Iterator[Posteriors]:
    """E-step a batch of patterns at a time, with the log likelihood of each row."""
    W, q = state.W, state.W.shape[1]
    noise = state.noise[data.groups]
    outer = (W[:, :, None] * W[:, None, :]).reshape(-1, q * q) / noise[:, None]
    offset = state.mean - data.shift
    for patterns, rows in _batches(data.starts, q):
        of_row = _patterns_of(rows, data.starts[patterns.start : patterns.stop + 1])
        observed = data.observed[patterns]
        A = np.eye(q) + (observed @ outer).reshape(-1, q, q)
        covariances, logdets = stacked_covariances(A)
        residual = data.X[rows] - _of_rows(observed, of_row) * offset
        projected = (residual / noise) @ W
        Z = _rows_times(projected, covariances, of_row)
        constants = observed @ np.log(2 * np.pi * noise) - logdets
        # At a z that is rounded this is the lowest to second order, which z'(projected) is not:
        # where noise is 1e-5 of a variance that errs by 1e-6 nats, and a likelihood seems to fall.
        explained = np.sum(Z * (2 * projected - _rows_times(Z, A, of_row)), axis=1)
        distances = np.einsum("rj,rj,j->r", residual, residual, 1 / noise) - explained
        log_likelihoods = -0.5 * (constants[of_row] + distances)
        yield Posteriors(patterns, rows, of_row, Z, covariances, distances, log_likelihoods)


def _patterns_of(rows, starts):
    """The place of each row's pattern among those that start there."""
    edges = np.clip(starts, rows.start, rows.stop)
    return np.repeat(np.arange(len(starts) - 1), np.diff(edges))


def _of_rows(values, of_row):
    """What the patterns of rows have, as it is where each row is one or all are of one."""
    return values if len(values) in (1, len(of_row)) else values[of_row]


def _rows_times(rows, matrices, of_row):
    """Rows times the symmetric matrix of their pattern."""
    if len(matrices) == 1:
        return rows @ matrices[0]
    return (_of_rows(matrices, of_row) @ rows[:, :, None])[:, :, 0]


class Known(NamedTuple):
    """z of the last rows, each a pattern of its own, by more than their entries say of it."""

    Z: np.ndarray
    covariances: np.ndarray


def step(
    state: State, data: Table, ridge=None, fixed_mean=None, known: Known | None = None
) -> tuple[State, float]:
    """One EM step with parameter expansion, and the log likelihood it started from.

    ``ridge`` (d,) penalises the squared loadings of a column, in units of its noise; since
    the penalty sees the scale of z, that step is taken without expansion. Columns of the mask
    ``fixed_mean`` keep their mean, and only the covariance of z is expanded then.
    """
    q = state.W.shape[1]
    (ZZ, XZ, total), objective = _all_moments(state, data, known)
    theta = _regressions(state, data, (ZZ, XZ), ridge, fixed_mean)
    noise = _noise(data, theta, ZZ, XZ)
    if ridge is not None:
        return State(theta[:, :q], data.shift + theta[:, q], noise), objective
    return _absorb(theta, total / total[-1, -1], data.shift, noise, fixed_mean is None), objective


def noise_step(state: State, data: Table) -> tuple[State, float]:
    """An EM step that leaves loadings and mean as they are, and the log likelihood before it.

    Columns have one noise variance. With C = Cov(z) what is left of a row is expected to be
    |x - W z|^2 = noise (distance - |z|^2 + q - tr C), so that no second moments are needed.
    """
    left, objective = 0.0, 0.0
    for found, more in over_parts(partial(_noise_left, state), data):
        left, objective = left + found, objective + more
    noise = np.maximum(state.noise * left / n_observed(data), data.floors)
    return state._replace(noise=noise), objective


def _noise_left(state, data: Patterns):
    """What some rows add to the sum of `noise_step`, and to the log likelihood."""
    q, left, objective = state.W.shape[1], 0.0, 0.0
    for part in posteriors(state, data):
        weights = data.weights[part.rows]
        objective += float(weights @ part.log_likelihoods)
        known = q - np.trace(part.covariances, axis1=1, axis2=2)[part.of_row]
        left += weights @ (part.distances - np.einsum("rj,rj->r", part.Z, part.Z) + known)
    return left, objective


def _all_moments(state, data, known):
    """The sums of `_moments` over all rows, in memory or not."""
    if not isinstance(data, Parts):
        return _moments(state, data, known)
    total, objective = [0.0, 0.0, 0.0], 0.0
    for sums, more in over_parts(partial(_moments, state), data):
        total = [a + b for a, b in zip(total, sums, strict=True)]
        objective += more
    return tuple(total), objective


def _moments(state, data, known=None):
    """Sums over the observed rows of each column and over all rows; the log likelihood.

    They are <[z; 1][z; 1]'> (d, q + 1, q + 1), x [z; 1]' (d, q + 1), and the first of all rows.
    """
    d, q = state.W.shape
    ZZ = np.zeros((d, (q + 1) ** 2))
    XZ = np.zeros((d, q + 1))
    total, objective = np.zeros((q + 1, q + 1)), 0.0
    for part in posteriors(state, data):
        weights = data.weights[part.rows]
        objective += float(weights @ part.log_likelihoods)
        part = part if known is None else _with_known(part, known, len(data.X))
        second = _second_moments(part, weights)
        ZZ += data.observed[part.patterns].T @ second
        total += second.sum(axis=0).reshape(q + 1, q + 1)
        ones = np.column_stack([part.Z, np.ones(len(part.Z))])
        XZ += data.X[part.rows].T @ (weights[:, None] * ones)
    return (ZZ.reshape(d, q + 1, q + 1), XZ, total), objective


def _with_known(part, known, n):
    """A part with those of its rows that are known better, which are its last."""
    first = n - len(known.Z)
    many = part.rows.stop - max(part.rows.start, first)
    if many <= 0:
        return part
    own = slice(part.rows.stop - many - first, part.rows.stop - first)
    Z, covariances = part.Z.copy(), part.covariances.copy()
    Z[-many:], covariances[-many:] = known.Z[own], known.covariances[own]
    return part._replace(Z=Z, covariances=covariances)


@one_thread
def log_density(state: State, data: Patterns) -> np.ndarray:
    """Log density of what each row observes (n,), in the order before sorting."""
    out = np.empty(len(data.X))
    for part in posteriors(state, data):
        out[data.order[part.rows]] = part.log_likelihoods
    return out


@one_thread
def distances(state: State, data: Patterns) -> Distances:
    """Distances of what each row observes, of one group of columns.

    Q is as large as if the unseen part of the row lay as far from the span as the seen part.
    """
    n, (d, q) = len(data.X), state.W.shape
    outer = (state.W[:, :, None] * state.W[:, None, :]).reshape(-1, q * q)
    found = Distances(np.empty(n), np.empty(n))
    for part in posteriors(state, data):
        observed, rows = data.observed[part.patterns], data.order[part.rows]
        residual = data.X[part.rows] - observed[part.of_row] * (state.mean - data.shift)
        lengths, vectors = np.linalg.eigh((observed @ outer).reshape(-1, q, q))
        along = np.einsum("ri,rij->rj", residual @ state.W, vectors[part.of_row])
        squares = np.einsum("rj,rj->r", residual, residual)
        t2, across = split_distances(lengths[part.of_row], along, squares, state.noise[0])
        found.t2[rows] = t2
        free = np.maximum(observed.sum(axis=1) - q, 1.0)
        found.q[rows] = across * ((d - q) / free)[part.of_row]
    return found


@one_thread
def posterior(state: State, data: Patterns) -> tuple[np.ndarray, np.ndarray]:
    """Means (n, q) and covariances (n, q, q) of z given what each row observes."""
    q = state.W.shape[1]
    means, covariances = np.empty((len(data.X), q)), np.empty((len(data.X), q, q))
    for part in posteriors(state, data):
        rows = data.order[part.rows]
        means[rows], covariances[rows] = part.Z, part.covariances[part.of_row]
    return means, covariances


@one_thread
def latent_means(state: State, data: Patterns) -> np.ndarray:
    """Means (n, q) of z alone, without a covariance per row."""
    means = np.empty((len(data.X), state.W.shape[1]))
    for part in posteriors(state, data):
        means[data.order[part.rows]] = part.Z
    return means


@one_thread
def fill(state: State, data: Patterns) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, d) with the gaps filled by their means, and the deviations, zero elsewhere."""
    n, (d, q) = len(data.X), state.W.shape
    values, deviations = np.empty((n, d)), np.zeros((n, d))
    outer = (state.W[:, :, None] * state.W[:, None, :]).reshape(-1, q * q)
    for part in posteriors(state, data):
        rows, seen = data.order[part.rows], data.observed[part.patterns] > 0
        values[rows] = data.X[part.rows] + data.shift
        if seen.all():
            continue
        gaps = ~_of_rows(seen, part.of_row)
        means = state.mean + part.Z @ state.W.T
        values[rows] = np.where(gaps, means, values[rows])
        variances = part.covariances.reshape(-1, q * q) @ outer.T + state.noise[data.groups]
        deviations[rows] = _of_rows(np.where(seen, 0.0, np.sqrt(variances)), part.of_row)
    return values, deviations


@one_thread
def maximise(data: Table, q: int, loop, *, max_iter, tol) -> Run:
    """PPCA of what is observed, by EM with Anderson's mixing; ``tol`` is in nats per entry."""
    start, data = init(data, q), condensed(data)
    method = mixing(Method(start, partial(step, data=data)), units(data))
    return loop(method, max_iter=max_iter, tol=tol * n_observed(data))


def mixing(method: Method, unit) -> Method:
    """The method with Anderson's mixing of numbers that have no unit."""
    like = partial(unpack, like=method.start, unit=unit)
    return anderson(method, partial(pack, unit=unit), like)


def pack(state: State, unit) -> np.ndarray:
    """The state as an unconstrained vector, in deviations (d,) of the data."""
    W, mean = state.W / unit[:, None], state.mean / unit
    return np.concatenate([W.ravel(), mean, np.log(state.noise)])


def unpack(x, like: State, unit) -> State:
    """The inverse of `pack` for a state of the same sizes."""
    size, d = like.W.size, len(like.mean)
    W = x[:size].reshape(like.W.shape) * unit[:, None]
    return State(W, x[size : size + d] * unit, np.exp(x[size + d :]))


def _second_moments(part, weights):
    """Weighted sums of <[z; 1][z; 1]'> over the rows of each pattern (p, (q + 1)^2)."""
    p, q, _ = part.covariances.shape
    ones = np.column_stack([part.Z, np.ones(len(part.Z))])
    if p == 1:
        outer = (weights[:, None] * ones).T @ ones
        weights = weights.sum(keepdims=True)
    else:
        outer = (weights[:, None] * ones)[:, :, None] * ones[:, None, :]
    if 1 < p < len(ones):
        starts = np.flatnonzero(np.diff(part.of_row, prepend=-1))
        outer = np.add.reduceat(outer, starts, axis=0)
        weights = np.bincount(part.of_row, weights, minlength=p)
    outer = outer.reshape(p, q + 1, q + 1)
    outer[:, :q, :q] += weights[:, None, None] * part.covariances
    return outer.reshape(p, -1)


def _regressions(state, data, moments, ridge, fixed_mean):
    """Loadings and mean (d, q + 1) of every column, from its moments with [z, 1]."""
    (A, b), q = moments, state.W.shape[1]
    if ridge is not None:
        levels = ridge * state.noise[data.groups]
        A = A + np.diag(np.append(np.ones(q), 0.0)) * levels[:, None, None]
    if fixed_mean is not None:
        A, b = A.copy(), b.copy()
        A[fixed_mean, q] = np.eye(q + 1)[q]
        b[fixed_mean, q] = (state.mean - data.shift)[fixed_mean]
    try:
        return np.linalg.solve(A, b[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError as error:
        raise NumericalError("a column has too few observed entries for its loadings") from error


def _noise(data, theta, ZZ, XZ):
    """Mean squared residual of each group of columns with the given loadings."""
    explained = 2 * XZ - np.einsum("dj,djk->dk", theta, ZZ)
    squares = column_squares(data) - np.sum(theta * explained, axis=1)
    return np.maximum(np.bincount(data.groups, squares) / group_sizes(data), data.floors)


def _absorb(theta, second, shift, noise, centred):
    """Loadings and mean for z ~ N(0, I) that equal these for z of the moments seen."""
    q = theta.shape[1] - 1
    center = second[:q, q] * centred
    L = Cholesky(second[:q, :q] - np.outer(center, center)).L
    return State(theta[:, :q] @ L, shift + theta[:, q] + theta[:, :q] @ center, noise)


def _batches(starts, q):
    """Pairs of slices: patterns, and rows of theirs that hold about BATCH_ENTRIES entries.

    A pattern of many rows comes alone, in parts; such ones are first.
    """
    many = int(np.argmin(np.append(np.diff(starts) >= MANY_ROWS, False)))
    for p in range(many):
        for first in range(starts[p], starts[p + 1], PART_ROWS):
            yield slice(p, p + 1), slice(first, min(first + PART_ROWS, starts[p + 1]))
    size = max(1, BATCH_ENTRIES // (q + 1) ** 2)
    edges = np.searchsorted(starts, np.arange(starts[many], starts[-1], size), side="left")
    for first, last in pairwise(np.unique(np.append(edges, len(starts) - 1)).tolist()):
        yield slice(first, last), slice(starts[first], starts[last])
