"""One iteration: a method, what makes it faster, and the loop that runs it.

A *method* is a start, a step and a finish. Its step takes a state and returns the next one with
the objective of the state it was given, which EM has for free. An accelerator takes a method
and returns one whose state carries a memory; ``finish`` takes the model's own state out of it,
so that whoever calls the loop, or watches it, meets that one only.

    Method(start, step), cautious  ->  keep_best, squarem, anderson, momentum  ->  iterate  ->  Run
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gnomon.exceptions import NumericalError

Step = Callable[[Any], tuple[Any, float]]
Callback = Callable[[int, Any, float], bool | None]
Pack = Callable[[Any], np.ndarray]
Unpack = Callable[[np.ndarray], Any]


class Method(NamedTuple):
    """Where to start, how to step, and the model's own state in a state of the method.

    ``settled(state)`` says whether the method itself knows that it is at its end; without it
    the objective tells. ``resumes`` is False where a state is not all that a step needs.
    """

    start: Any
    step: Step
    finish: Callable[[Any], Any] = lambda state: state
    settled: Callable[[Any], bool] | None = None
    resumes: bool = True


class Run(NamedTuple):
    """The model's own state where an iteration ended, and the objective on the way.

    ``rest`` is the method from there on, for a run that may be gone on with.
    """

    state: Any
    objective: list[float]
    converged: bool
    rest: Method | None = None


def iterate(
    method: Method,
    *,
    max_iter: int,
    tol: float,
    patience: int = 1,
    callback: Callback | None = None,
    checkpoint: Callback | None = None,
    objective: Sequence[float] = (),
) -> Run:
    """Repeat the step until the objective changes by less than tol.

    The state returned is one step better than the last objective. ``callback(n_iter, state,
    objective)`` sees the model's own state at every iteration and stops it with True;
    ``checkpoint`` is called alike with the state of the method, from which it can go on to the
    bit. ``objective`` is the history of a run that goes on from here. *Converged* means settled
    and nothing else. A step that may lose objective is given patience: it has settled when its
    best value has risen by at most tol in that many iterations. KeyboardInterrupt leaves the
    loop: a cut fit would be taken for a whole one by whoever compares several.
    """
    state, history = method.start, list(objective)
    converged = False
    for n_iter in range(len(history) + 1, max_iter + 1):
        state, value = method.step(state)
        if not np.isfinite(value):
            raise NumericalError(
                f"the objective is {value} at iteration {n_iter}: numbers left their range; "
                "rescale X or y where they are huge or tiny"
            )
        history.append(float(value))
        converged = _is_settled(method, state, history, tol, patience)
        if converged:
            break
        if checkpoint is not None:
            checkpoint(n_iter, state, value)
        if callback is not None and callback(n_iter, method.finish(state), value):
            break
    return Run(method.finish(state), history, converged, method._replace(start=state))


def _is_settled(method, state, history, tol, patience):
    if method.settled is not None:
        return method.settled(state)
    return settled(history, tol, patience)


def settled(history: list[float], tol: float, patience: int = 1) -> bool:
    """Whether the last iterations changed little: the last one, or the best of several."""
    if len(history) <= patience:
        return False
    if patience == 1:
        return abs(history[-1] - history[-2]) <= tol
    return max(history[-patience:]) - max(history[:-patience]) <= tol


def best_of(runs: Iterable[Run]) -> Run:
    """The run that ended highest."""
    return max(runs, key=lambda run: run.objective[-1])


class Best(NamedTuple):
    """A state, the best one before it, and the objective of that."""

    state: Any
    best: Any
    objective: float


def keep_best(method: Method) -> Method:
    """The method that ends with the best state it met, for steps that may lose objective."""

    def step(kept: Best):
        new, objective = method.step(kept.state)
        if objective > kept.objective:
            return Best(new, kept.state, objective), objective
        return Best(new, kept.best, kept.objective), objective

    start = Best(method.start, method.start, -np.inf)
    return Method(start, step, lambda kept: method.finish(kept.best))


class Dared(NamedTuple):
    """A state, the best one before it, the objective of that, and the caution of the step."""

    state: Any
    best: Any
    objective: float
    caution: float


def cautious(start, bold: Callable[[Any, float], tuple[Any, float]], least=0.01) -> Method:
    """The method of a step that is as bold as it may be, and ends with the best state it met.

    ``bold(state, caution)`` must not lose objective at a caution of one. Where it lost, the step
    is taken again with nine times the caution; where it gained, the next has a third of it.
    """

    def tried(state, caution):
        return _try_state(lambda at: bold(at, caution), state)

    def step(kept: Dared):
        state, caution = kept.state, kept.caution
        new, objective = tried(state, caution)
        while not objective >= kept.objective and caution < 1.0:
            caution = min(9 * caution, 1.0)
            state, _ = bold(kept.best, caution)
            new, objective = tried(state, caution)
        return Dared(new, state, objective, max(caution / 3, least)), objective

    return Method(Dared(start, start, -np.inf, 9 * least), step, lambda kept: kept.best)


def squarem(method: Method, pack: Pack, unpack: Unpack) -> Method:
    """A method that extrapolates the path of two plain steps, scheme S3 of [VR08].

    One step of it costs three of the plain ones. It ends with a plain step from the point that
    it reaches, or from the second plain point where that loses objective. States are seen as
    unconstrained vectors: ``pack(state) -> x`` and ``unpack(x) -> state``.
    """

    def step(state):
        first, objective = method.step(state)
        second, _ = method.step(first)
        x, x1, x2 = pack(state), pack(first), pack(second)
        r, v = x1 - x, x2 - 2 * x1 + x
        curvature = np.linalg.norm(v)
        if curvature <= np.finfo(float).eps * np.linalg.norm(x1):
            return second, objective
        length = -max(1.0, np.linalg.norm(r) / curvature)  # type: ignore[operator]
        image, reached = _try_vector(method.step, unpack, x - 2 * length * r + length**2 * v)
        if reached < objective or not np.isfinite(reached):
            image = second
        return image, objective

    return method._replace(step=step)


class Memory(NamedTuple):
    """State of an Anderson iteration: where to step next, where to fall back, what was seen."""

    state: Any
    plain: Any
    objective: float
    images: np.ndarray
    residuals: np.ndarray


def anderson(method: Method, pack: Pack, unpack: Unpack, *, depth: int = 8) -> Method:
    """A method that mixes the last images so as to cancel their residuals.

    A mixture that lost objective is thrown away with the memory, and the plain image
    of the point before it is taken instead.
    """

    def step(memory: Memory):
        image, objective = _try_state(method.step, memory.state)
        images, residuals = memory.images, memory.residuals
        state = memory.state
        if not objective >= memory.objective:
            state, images, residuals = memory.plain, np.empty((0, 0)), np.empty((0, 0))
            image, objective = method.step(state)
        x, g = pack(state), pack(image)
        images = _append(images, g, depth)
        residuals = _append(residuals, g - x, depth)
        mixed = _mix(images, residuals)
        candidate = image if mixed is None else _unpacked(unpack, mixed)
        return Memory(candidate, image, objective, images, residuals), objective

    nothing = np.empty((0, 0))
    start = Memory(method.start, method.start, -np.inf, nothing, nothing)
    return Method(start, step, lambda memory: method.finish(memory.plain))


class Pace(NamedTuple):
    """State of an iteration with momentum: where to step next, the last plain image, how far."""

    state: Any
    plain: Any
    objective: float
    factor: float


def momentum(
    method: Method, extrapolate: Callable[[Any, Any, float], Any], *, growth=1.3, most=8.0
) -> Method:
    """A method that goes on in the direction of the last step, further each time.

    ``extrapolate(after, before, factor)`` is the state ``factor`` times the way from one plain
    image to the next, beyond the next. What lost objective is taken back, and the pace with it.
    For steps that creep along a flat ridge, where mixing many of them does not help.
    """

    def step(memory: Pace):
        image, objective = _try_state(method.step, memory.state)
        factor, before = min(memory.factor * growth, most), memory.plain
        if not objective >= memory.objective:
            image, objective = method.step(before)
            factor = 1.0
        return Pace(extrapolate(image, before, factor), image, objective, factor), objective

    start = Pace(method.start, method.start, -np.inf, 1.0)
    return Method(start, step, lambda memory: method.finish(memory.plain))


def _mix(images, residuals):
    """Least squares over mixtures that sum to one; None while there is nothing to mix."""
    if len(residuals) < 2:
        return None
    last, differences = residuals[-1], np.diff(residuals, axis=0).T
    scale = np.linalg.norm(differences, axis=0)
    if not np.all(scale > 0):
        return None
    weights, *_ = np.linalg.lstsq(differences / scale, last, rcond=1e-10)
    return images[-1] - np.diff(images, axis=0).T @ (weights / scale)


def _append(rows, row, depth):
    return row[None] if rows.size == 0 else np.concatenate([rows, row[None]])[-depth:]


def _try_vector(step, unpack, x):
    if not np.all(np.isfinite(x)):
        return None, -np.inf
    return _try_state(step, _unpacked(unpack, x))


def _unpacked(unpack, x):
    """The state of a vector; if numbers do not reach there, the objective will tell."""
    with np.errstate(all="ignore"):
        return unpack(x)


def _try_state(step, state):
    """The step, or a value below all others where the state lies outside of its domain."""
    try:
        with np.errstate(all="ignore"):
            return step(state)
    except (NumericalError, np.linalg.LinAlgError):
        return state, -np.inf
