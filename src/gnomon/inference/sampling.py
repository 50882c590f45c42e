"""Draws from a Markov kernel ``(state, rng) -> state``: warm-up, thinning, several chains."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Kernel = Callable[[Any, np.random.Generator], Any]


class Schedule(NamedTuple):
    """How many draws to keep, how many rounds to drop before, how many rounds per draw."""

    n_draws: int
    n_warmup: int = 0
    thin: int = 1


def draw(kernel: Kernel, state, rng: np.random.Generator, schedule: Schedule, **settings):
    """Values ``keep(state)`` of every thin-th state after the warm-up, stacked (draw, ...)."""
    return stack(_rounds(kernel, [state], [rng], schedule, **settings)[0])


def draw_chains(
    kernel: Kernel, states: Sequence, rng: np.random.Generator, schedule: Schedule, **settings
):
    """One chain from every state, each with a generator of its own, stacked (chain, draw, ...).

    Chains advance together, so that all have as many draws when ``callback(n_iter, states)``,
    which sees every round, ends them with True; it is not heeded before ``least`` draws.
    """
    chains = _rounds(kernel, list(states), rng.spawn(len(states)), schedule, **settings)
    return stack([stack(chain) for chain in chains])


def _rounds(kernel, states, generators, schedule, *, keep=None, callback=None, least=1):
    kept: list[list] = [[] for _ in states]
    n_draws, n_warmup, thin = schedule
    for n_iter in range(1, n_warmup + n_draws * thin + 1):
        states = [kernel(state, rng) for state, rng in zip(states, generators, strict=True)]
        if n_iter > n_warmup and (n_iter - n_warmup) % thin == 0:
            for chain, state in zip(kept, states, strict=True):
                chain.append(state if keep is None else keep(state))
        if callback is not None and callback(n_iter, states) and len(kept[0]) >= least:
            break
    return kept


def stack(values: Sequence):
    """Arrays, or named tuples of arrays, of equal shapes as one with a leading axis."""
    first = values[0]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(np.stack(field) for field in zip(*values, strict=True)))
    return np.stack(values)
