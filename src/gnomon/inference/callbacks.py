"""Callables that watch a loop: ``callback(n_iter, state, objective)``, True stops it."""

import time
from collections.abc import Callable

from gnomon.inference.fixed_point import Callback


def both(*callbacks: Callback | None) -> Callback | None:
    """One callback that calls those given in turn, all of them, and stops if any says so."""
    present = [callback for callback in callbacks if callback is not None]
    if len(present) < 2:
        return present[0] if present else None

    def call_all(n_iter, state, objective):
        return any([callback(n_iter, state, objective) for callback in present])

    return call_all


class History:
    """Keeps the objective of every iteration, and the state if asked.

    Examples
    --------
    >>> from gnomon.inference.callbacks import History
    >>> from gnomon.inference.fixed_point import iterate
    >>> history = History()
    >>> run = iterate(lambda x: (x / 2, -x), 1.0, max_iter=3, tol=0, callback=history)
    >>> history.objective
    [-1.0, -0.5, -0.25]
    """

    def __init__(self, keep_states=False):
        self.keep_states = keep_states
        self.objective: list[float] = []
        self.states: list = []

    def __call__(self, n_iter, state, objective):
        """Note the iteration."""
        self.objective.append(float(objective))
        if self.keep_states:
            self.states.append(state)


class TimeLimit:
    """Stops the loop when this many seconds have passed since its first iteration."""

    def __init__(self, seconds, clock: Callable[[], float] = time.monotonic):
        self.seconds = seconds
        self.clock = clock
        self._end: float | None = None

    def __call__(self, n_iter, state, objective):
        """Whether the time is over."""
        if n_iter == 1 or self._end is None:
            self._end = self.clock() + self.seconds
        return self.clock() >= self._end


class Progress:
    """Writes a line every so many iterations; `print` or any other writer of a line."""

    def __init__(self, every=10, write: Callable[[str], object] = print):
        self.every = every
        self.write = write

    def __call__(self, n_iter, state, objective):
        """Write the line if it is time."""
        if n_iter == 1 or n_iter % self.every == 0:
            self.write(f"iteration {n_iter}: objective {objective:.6f}")
