"""PPCA with gaps by EM that completes the rows: z is never seen, x is expected whole.

    E-step    mean and covariance of the rows, given what is observed of them
    M-step    PPCA of these in closed form, eqs. (7)-(8) of [TB99]

The maximum is that of `gaps`. Small axes, which EM for z takes for noise for long, settle in far
fewer steps. A step takes d^2 q operations a pattern, where `gaps.step` takes d q^2, so that it
is for tables of few columns.
"""

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Method, anderson, iterate
from gnomon.linalg.solve import one_thread
from gnomon.models.gaussian import gaps, patterns

# Columns up to which sizes are fitted in this way: beyond, d^2 operations are too many.
MOST_COLUMNS = 200
# Numbers that are worked on at a time: few enough for the cache.
BATCH_ENTRIES = 2**15
# Steps that are mixed: more than a few do not help here.
DEPTH = 4


class Completed(NamedTuple):
    """Mean less the shift (d,) and covariance (d, d) that the rows are expected to have whole."""

    mean: np.ndarray
    covariance: np.ndarray


def fit_state(
    data: patterns.Patterns, q, start: Completed | None = None, *, max_iter, tol
) -> tuple[gaps.State, Completed | None]:
    """PPCA of what is observed, by the way that is faster for so many columns.

    Also the rows as it completes them, where that is this one: they do not depend on q but for
    what it lets them say, and are a start for another q.
    """
    limits = {"max_iter": max_iter, "tol": tol}
    if data.X.shape[1] > MOST_COLUMNS:
        return gaps.maximise(data, q, iterate, **limits).state, None
    rows = maximise(data, q, start, **limits)
    return closed_form(rows, data, q), rows


def gaps_at_means(data: patterns.Patterns) -> Completed:
    """Where nothing is known yet: gaps at the column means, without a variance."""
    n = data.weights.sum()
    mean = data.weights @ data.X / n
    return Completed(mean, (data.weights[:, None] * data.X).T @ data.X / n - np.outer(mean, mean))


@one_thread
def maximise(
    data: patterns.Patterns, q, start: Completed | None = None, *, max_iter, tol
) -> Completed:
    """The rows as the most likely PPCA completes them; ``tol`` is in nats per entry."""
    data = patterns.condensed(data)
    method = Method(start or gaps_at_means(data), partial(step, data=data, q=q))
    unit = patterns.units(data)
    method = anderson(method, partial(_pack, unit=unit), partial(_unpack, unit=unit), depth=DEPTH)
    return iterate(method, max_iter=max_iter, tol=tol * patterns.n_observed(data)).state


def step(rows: Completed, data: patterns.Patterns, q) -> tuple[Completed, float]:
    """PPCA of the rows, the rows completed by it, and its log likelihood."""
    state = closed_form(rows, data, q)
    n, d, offset = data.weights.sum(), len(state.mean), state.mean - data.shift
    first, second, objective = np.zeros(d), np.zeros((d, d)), 0.0
    for part in gaps.posteriors(state, data):
        weights, missing = data.weights[part.rows], 1 - data.observed[part.patterns]
        objective += float(weights @ part.log_likelihoods)
        filled = data.X[part.rows] + missing[part.of_row] * (offset + part.Z @ state.W.T)
        counts = missing * np.bincount(part.of_row, weights, minlength=len(missing))[:, None]
        first += weights @ filled / n
        second += (weights[:, None] * filled).T @ filled / n
        second += _spread(state.W, part.covariances, missing, counts / n)
        second += np.diag(state.noise * counts.sum(axis=0) / n)
    return Completed(first, second - np.outer(first, first)), objective


def _spread(W, covariances, missing, counts):
    """Sum (d, d) over patterns of the covariance that z has in their gaps."""
    (d, q), total = W.shape, np.zeros((len(W), len(W)))
    size = max(1, BATCH_ENTRIES // (d * q))
    for part in (slice(k, k + size) for k in range(0, len(missing), size)):
        right = (covariances[part].reshape(-1, q) @ W.T).reshape(-1, q, d)
        right *= counts[part, None]
        left = W.T * missing[part, None]
        total += left.reshape(-1, d).T @ right.reshape(-1, d)
    return total


def closed_form(rows: Completed, data: patterns.Patterns, q) -> gaps.State:
    """PPCA of whole rows, its noise not below the floor."""
    values, vectors = np.linalg.eigh((rows.covariance + rows.covariance.T) / 2)
    noise = np.maximum(values[:-q].mean(), data.floors)
    scales = np.sqrt(np.maximum(values[: -q - 1 : -1] - noise, 0.0))
    return gaps.State(vectors[:, : -q - 1 : -1] * scales, data.shift + rows.mean, noise)


@lru_cache
def _upper(d):
    """Places of the upper triangle, which a step asks for several times."""
    return np.triu_indices(d)


def _pack(rows, unit):
    covariance = rows.covariance / np.outer(unit, unit)
    return np.concatenate([rows.mean / unit, covariance[_upper(len(unit))]])


def _unpack(x, unit):
    d = len(unit)
    half = np.zeros((d, d))
    half[_upper(d)] = x[d:]
    return Completed(x[:d] * unit, (half + np.triu(half, 1).T) * np.outer(unit, unit))
