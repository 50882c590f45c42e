"""DCA-GM by mini-batches: the alternation on some rows at a time.

A batch gives a step of the projection and sums for EM, which are mixed with those of the
batches before. Both count less and less, as a stochastic approximation needs, and memory is
that of a batch. Chunks are never cut.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models import dca_gm
from gnomon.models.dca_gm import Search, Settings, State
from gnomon.models.dca_gm_problem import Problem, groups, start_directions_of
from gnomon.stats.mixture import Moments, m_step

# When k batches were seen, the sums of the next count (1 + k / delay) ** -FORGETTING, and its
# step of the projection is shortened by as much, with the delays below.
FORGETTING, EM_DELAY, STEP_DELAY = 0.6, 3.0, 10.0


class Stream(NamedTuple):
    """Where some batches have led, the sums EM has of them, and their number."""

    state: State
    moments: Moments
    n_batches: int


def cut(problem: Problem, size: int, rng) -> list[np.ndarray]:
    """Row numbers of batches of at least ``size`` rows in random order, chunks kept whole."""
    chunks = problem.chunks
    units = np.where(chunks >= 0, chunks, chunks.max() + 1 + np.arange(len(chunks)))
    _, units = np.unique(units, return_inverse=True)
    order = np.argsort(rng.permutation(units.max() + 1)[units], kind="stable")
    edges = np.append(np.flatnonzero(np.diff(units[order])) + 1, len(order))
    cuts = np.unique(edges[np.searchsorted(edges, np.arange(size, len(order), size))])
    return [np.sort(part) for part in np.split(order, cuts[cuts < len(order)])]


def part_of(problem: Problem, index) -> Problem:
    """The problem of some rows."""
    return problem._replace(
        X=problem.X.rows(index),
        codes=problem.codes[index],
        chunks=problem.chunks[index],
        weights=problem.weights[index],
    )


def begin(problem: Problem, first, settings: Settings) -> Stream:
    """The start, from the rows of the first batch and some of every class."""
    P = start_directions_of(problem)
    n_classes = groups(problem).n_classes
    some = [
        np.flatnonzero(problem.codes == c)[: len(first) // n_classes + 1] for c in range(n_classes)
    ]
    part = part_of(problem, np.unique(np.concatenate([first, *some])))
    rows = part.rows
    state = dca_gm.start(P, part.X, rows, part.owner, settings)
    moments, _ = dca_gm.em_moments(state.mixture, state.Z, rows, settings)
    share = rows.weights.sum() / problem.weights.sum()
    return Stream(state, _scaled(moments, 1 / share), 0)


def epoch(stream: Stream, problem: Problem, batches, settings: Settings, search: Search):
    """All batches once; and the sum of the values of J each batch met before it changed it."""
    value = 0.0
    for index in batches:
        stream, part = batch_step(stream, problem, index, settings, search)
        value += part
    return stream, value


def batch_step(stream: Stream, problem: Problem, index, settings: Settings, search: Search):
    """A step of the projection and of EM on the rows of a batch; J of the batch before it."""
    part = part_of(problem, index)
    rows = part.rows
    share = rows.weights.sum() / problem.weights.sum()
    own = settings._replace(ridge=share * settings.ridge)
    rate = (1 + stream.n_batches / EM_DELAY) ** -FORGETTING
    shorter = (1 + stream.n_batches / STEP_DELAY) ** -FORGETTING
    Z = rows.sort(np.asarray(part.X @ stream.state.P, dtype=float))

    def damped(along, value, slope, guess):
        return shorter * search(along, value, slope, guess)

    before = stream.state._replace(Z=Z)
    moved, value = dca_gm.step(before, part.X, rows, own._replace(n_em=0), damped)
    mixture, moments = moved.mixture, stream.moments
    for _ in range(settings.n_em):
        seen, _ = dca_gm.em_moments(mixture, moved.Z, rows, settings)
        moments = _mixed(stream.moments, _scaled(seen, 1 / share), rate)
        mixture = m_step(mixture, moments, dca_gm.prior_of(moved.Z, rows, settings))
    return Stream(moved._replace(mixture=mixture), moments, stream.n_batches + 1), value


def finish(stream: Stream, problem: Problem, rows, settings: Settings) -> State:
    """The state of all rows at the projection reached, after EM on all of them."""
    P, mixture = stream.state.P, stream.state.mixture
    Z = rows.sort(np.asarray(problem.X @ P, dtype=float))
    return dca_gm.settle(P, Z, mixture, rows, settings)


def _scaled(moments, factor):
    return Moments(*(factor * part for part in moments))


def _mixed(old, new, rate):
    return Moments(*((1 - rate) * a + rate * b for a, b in zip(old, new, strict=True)))
