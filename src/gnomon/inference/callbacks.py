"""Callables that watch a loop: ``callback(n_iter, state, objective)``, True stops it."""

import time
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

from gnomon.inference import checkpoint
from gnomon.inference.loop import Callback


def both(*callbacks: Callback | None) -> Callback | None:
    """One callback that calls those given in turn, all of them, and stops if any says so."""
    present = [callback for callback in callbacks if callback is not None]
    if len(present) < 2:
        return present[0] if present else None

    def call_all(n_iter, state, objective):
        return any([callback(n_iter, state, objective) for callback in present])

    return call_all


def _check_every(every):
    """A number of iterations as an int of at least one."""
    if isinstance(every, bool) or not isinstance(every, Integral) or every < 1:
        raise ValueError(f"every == {every!r}; accepted are integers >= 1, in iterations")
    return int(every)


class History:
    """Keeps the objective of every iteration, and the state if asked.

    Examples
    --------
    >>> from gnomon.inference.callbacks import History
    >>> from gnomon.inference.loop import Method, iterate
    >>> history = History()
    >>> run = iterate(Method(1.0, lambda x: (x / 2, -x)), max_iter=3, tol=0, callback=history)
    >>> history.objective
    [-1.0, -0.5, -0.25]
    """

    def __init__(self, keep_states: Any = False) -> None:
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

    def __init__(self, seconds: Any, clock: Callable[[], float] = time.monotonic) -> None:
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

    def __init__(self, every: Any = 10, write: Callable[[str], object] = print) -> None:
        self.every = _check_every(every)
        self.write = write

    def __call__(self, n_iter, state, objective):
        """Write the line if it is time."""
        if n_iter == 1 or n_iter % self.every == 0:
            self.write(f"iteration {n_iter}: objective {objective:.6f}")


class Checkpoint:
    """Writes the state to a file every so many iterations, and starts from it where it is there.

    Give it to an estimator as ``callback``: a fit that was killed goes on from the file when it
    is called again with the same data and parameters, and ends with the same bits. The few rounds
    of ``solver="subspace"`` are not kept: such a fit starts again.

    Parameters
    ----------
    path : str or path-like
        The file. It is replaced as a whole, so that there is always one that can be read.
    every : int, default=10
        Iterations between two writes.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from gnomon import PPCA
    >>> from gnomon.inference.callbacks import Checkpoint
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> X[0, 0] = np.nan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.npz")
    ...     model = PPCA(callback=Checkpoint(path, every=1)).fit(X)
    ...     os.path.exists(path)
    True
    """

    def __init__(self, path: str | Path, every: Any = 10) -> None:
        self.path = Path(path)
        self.every = _check_every(every)
        self._objective: list[float] = []
        self._fingerprint = ""

    def resume(self, state: Any, fingerprint: Any) -> checkpoint.Saved:
        """The state and objective to start from: those of the file, if there is one."""
        self._fingerprint = fingerprint
        saved = checkpoint.Saved(state, [])
        if self.path.exists():
            saved = checkpoint.load(self.path, state, fingerprint)
        self._objective = list(saved.objective)
        return saved

    def __call__(self, n_iter, state, objective):
        """Write the file if it is time."""
        self._objective.append(float(objective))
        if n_iter % self.every == 0:
            checkpoint.save(self.path, state, self._objective, self._fingerprint)
