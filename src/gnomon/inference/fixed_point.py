"""The loop: repeat a step until its objective settles."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gnomon.exceptions import NumericalError

Step = Callable[[Any], tuple[Any, float]]
Callback = Callable[[int, Any, float], bool | None]


class Run(NamedTuple):
    """Where an iteration ended, and the objective on the way."""

    state: Any
    objective: list[float]
    converged: bool


def iterate(
    step: Step,
    state,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    objective: Sequence[float] = (),
    patience: int = 1,
) -> Run:
    """Repeat ``state, objective = step(state)`` until the objective changes by less than tol.

    A step returns the objective of the state it was given, which EM has for free, so the
    state returned is one step better than the last objective. ``callback(n_iter, state,
    objective)`` sees every iteration and stops it with True. KeyboardInterrupt ends the loop
    with the last whole state; *converged* means settled and nothing else. ``objective`` is the
    history of a run that goes on from here. A step that may lose objective is given patience:
    it has settled when its best value has risen by at most tol in that many iterations.
    """
    history: list[float] = list(objective)
    try:
        for n_iter in range(len(history) + 1, max_iter + 1):
            new_state, value = step(state)
            if not np.isfinite(value):
                raise NumericalError(f"the objective is {value} at iteration {n_iter}")
            state = new_state
            history.append(float(value))
            if settled(history, tol, patience):
                return Run(state, history, converged=True)
            if callback is not None and callback(n_iter, state, value):
                break
    except KeyboardInterrupt:
        if not history:
            raise
    return Run(state, history, converged=False)


def settled(history: list[float], tol: float, patience: int = 1) -> bool:
    """Whether the last iterations changed little: the last one, or the best of several."""
    if len(history) <= patience:
        return False
    if patience == 1:
        return abs(history[-1] - history[-2]) <= tol
    return max(history[-patience:]) - max(history[:-patience]) <= tol


class Best(NamedTuple):
    """A state, the best one before it, and the objective of that."""

    state: Any
    best: Any
    objective: float


def keep_best(step: Step) -> Step:
    """A step on `Best` that remembers the best state met; start from ``Best(s, s, -inf)``."""

    def remembering(kept: Best):
        new, objective = step(kept.state)
        if objective > kept.objective:
            return Best(new, kept.state, objective), objective
        return Best(new, kept.best, kept.objective), objective

    return remembering


def best_of(runs: Iterable[Run]) -> Run:
    """The run that ended highest."""
    return max(runs, key=lambda run: run.objective[-1])
