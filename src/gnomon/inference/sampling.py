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


def draw(
    kernel: Kernel,
    state,
    rng: np.random.Generator,
    schedule: Schedule,
    *,
    keep: Callable = lambda state: state,
    callback: Callable | None = None,
):
    """Values ``keep(state)`` of every thin-th state after the warm-up, stacked (draw, ...).

    ``callback(n_iter, state)`` sees every round; draws made before it says True are returned.
    """
    kept: list = []
    n_draws, n_warmup, thin = schedule
    for n_iter in range(1, n_warmup + n_draws * thin + 1):
        state = kernel(state, rng)
        if n_iter > n_warmup and (n_iter - n_warmup) % thin == 0:
            kept.append(keep(state))
        if callback is not None and callback(n_iter, state):
            break
    return stack(kept)


def draw_chains(
    kernel: Kernel, states: Sequence, rng: np.random.Generator, schedule: Schedule, **settings
):
    """One chain from every state, each with a generator of its own, stacked (chain, draw, ...)."""
    generators = rng.spawn(len(states))
    return stack(
        [
            draw(kernel, state, stream, schedule, **settings)
            for state, stream in zip(states, generators, strict=True)
        ]
    )


def stack(values: Sequence):
    """Arrays, or named tuples of arrays, of equal shapes as one with a leading axis."""
    first = values[0]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(np.stack(field) for field in zip(*values, strict=True)))
    return np.stack(values)
