"""DCA-GM by mini-batches: the alternation on some rows at a time.

A batch gives a step of the projection and sums for EM, which are mixed with those of the
batches before. Both count less and less, as a stochastic approximation needs, and memory is
that of a batch. Chunks are never cut.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.dcagm.alternation import N_EM, Model, State, ascend, em_moments, prior_of
from gnomon.models.dcagm.mixture import Moments, m_step
from gnomon.models.dcagm.rows import Rows, Sample, arrange
from gnomon.models.dcagm.start import start_at, start_directions

# When k batches were seen, the sums of the next count (1 + k / delay) ** -FORGETTING, and its
# step of the projection is shortened by as much: a stochastic approximation needs a power above
# 0.5 and up to 1. The delays are the number of batches that count nearly in full.
FORGETTING, EM_DELAY, STEP_DELAY = 0.6, 3.0, 10.0


class Stream(NamedTuple):
    """Where some batches have led, the sums EM has of them, and their number.

    The coordinates in the state are those of the last batch.
    """

    state: State
    moments: Moments
    n_batches: int


def cut(sample: Sample, size: int, rng) -> list[np.ndarray]:
    """Row numbers of batches of about ``size`` rows in random order, chunks kept whole."""
    _, units = np.unique(sample.units, return_inverse=True)
    order = np.argsort(rng.permutation(units.max() + 1)[units], kind="stable")
    edges = np.append(np.flatnonzero(np.diff(units[order])) + 1, len(order))
    cuts = np.unique(edges[np.searchsorted(edges, np.arange(size, len(order), size))])
    return [np.sort(part) for part in np.split(order, cuts[cuts < len(order)])]


def begin(sample: Sample, first, model: Model) -> Stream:
    """The start, from the rows of the first batch and some of every class."""
    classes = np.unique(sample.class_of)
    most = len(first) // len(classes) + 1
    some = [np.flatnonzero(sample.labels == c)[:most] for c in classes]
    rows = arrange(sample.take(np.unique(np.concatenate([first, *some]))))
    P = start_directions(sample, model.n_components)
    state = start_at(P, rows, sample.class_of, model)
    moments, _ = em_moments(state.mixture, state.Z, rows, model)
    return Stream(state, _scaled(moments, 1 / _share(rows, sample)), 0)


def epoch(stream: Stream, sample: Sample, batches, model: Model) -> tuple[Stream, float]:
    """All batches once; and the sum of the values of J that each batch had before its step."""
    total = 0.0
    for index in batches:
        stream, value = batch_step(stream, sample, index, model)
        total += value
    return stream, total


def batch_step(stream: Stream, sample: Sample, index, model: Model) -> tuple[Stream, float]:
    """A step of the projection and of EM on the rows of a batch; J of the batch before it."""
    rows = arrange(sample.take(index))
    share = _share(rows, sample)
    before = stream.state._replace(Z=rows.project(stream.state.P))
    shorten = _forgetting(stream.n_batches, STEP_DELAY)
    state, value = ascend(before, rows, model._replace(ridge=share * model.ridge), shorten)
    rate = _forgetting(stream.n_batches, EM_DELAY)
    mixture, moments = state.mixture, stream.moments
    for _ in range(N_EM):
        seen, _ = em_moments(mixture, state.Z, rows, model)
        pairs = zip(stream.moments, _scaled(seen, 1 / share), strict=True)
        moments = Moments(*((1 - rate) * old + rate * new for old, new in pairs))
        mixture = m_step(mixture, moments, prior_of(state.Z, rows, model))
    return Stream(state._replace(mixture=mixture), moments, stream.n_batches + 1), value


def _share(rows: Rows, sample):
    """Weight of some rows as a share of that of all."""
    return rows.weights.sum() / sample.weights.sum()


def _forgetting(n_batches, delay):
    return (1 + n_batches / delay) ** -FORGETTING


def _scaled(moments, factor):
    return Moments(*(factor * part for part in moments))
