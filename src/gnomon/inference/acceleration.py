"""Faster steps from a step; what loses objective is dropped, so they ascend where it does.

Both wrap ``step(state) -> (state, objective of the state given)`` and need the state as an
unconstrained vector: ``pack(state) -> x`` and ``unpack(x) -> state``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gnomon.exceptions import NumericalError
from gnomon.inference.fixed_point import Step

Pack = Callable[[Any], np.ndarray]
Unpack = Callable[[np.ndarray], Any]


def squarem(step: Step, pack: Pack, unpack: Unpack) -> Step:
    """A step that leaps along the path of two plain steps, scheme S3 of [VR08].

    One step of it costs three of the plain ones. It ends with a plain step from the
    point of the leap, or from the second plain point where the leap loses objective.
    """

    def accelerated(state):
        first, objective = step(state)
        second, _ = step(first)
        x, x1, x2 = pack(state), pack(first), pack(second)
        r, v = x1 - x, x2 - 2 * x1 + x
        curvature = np.linalg.norm(v)
        if curvature <= np.finfo(float).eps * np.linalg.norm(x1):
            return second, objective
        length = -max(1.0, np.linalg.norm(r) / curvature)
        leapt = x - 2 * length * r + length**2 * v
        image, reached = _try(step, unpack, leapt)
        if reached < objective or not np.isfinite(reached):
            image = second
        return image, objective

    return accelerated


class Memory(NamedTuple):
    """State of an Anderson iteration: where to step next, where to fall back, what was seen."""

    state: Any
    plain: Any
    objective: float
    images: np.ndarray
    residuals: np.ndarray


def remember(state) -> Memory:
    """The state an Anderson iteration starts from; read its end from ``plain``."""
    nothing = np.empty((0, 0))
    return Memory(state, state, -np.inf, nothing, nothing)


def anderson(step: Step, pack: Pack, unpack: Unpack, *, depth: int = 8) -> Step:
    """A step on `Memory` that mixes the last images so as to cancel their residuals.

    A mixture that lost objective is thrown away with the memory, and the plain image
    of the point before it is taken instead.
    """

    def accelerated(memory: Memory):
        image, objective = _try_state(step, memory.state)
        images, residuals = memory.images, memory.residuals
        state = memory.state
        if not objective >= memory.objective:
            state, images, residuals = memory.plain, np.empty((0, 0)), np.empty((0, 0))
            image, objective = step(state)
        x, g = pack(state), pack(image)
        images = _append(images, g, depth)
        residuals = _append(residuals, g - x, depth)
        mixed = _mix(images, residuals)
        candidate = image if mixed is None else _landed(unpack, mixed)
        return Memory(candidate, image, objective, images, residuals), objective

    return accelerated


class Leap(NamedTuple):
    """State of an iteration with momentum: where to step next, the last plain image, how far."""

    state: Any
    plain: Any
    objective: float
    factor: float


def at_rest(state) -> Leap:
    """The state an iteration with momentum starts from; read its end from ``plain``."""
    return Leap(state, state, -np.inf, 1.0)


def momentum(step: Step, leap: Callable[[Any, Any, float], Any], *, growth=1.3, most=8.0) -> Step:
    """A step on `Leap` that goes on in the direction of the last one, further each time.

    ``leap(after, before, factor)`` is the state ``factor`` times the way from one plain image to
    the next, beyond the next. A leap that lost objective is taken back, and the pace with it.
    For steps that creep along a flat ridge, where mixing many of them does not help.
    """

    def accelerated(memory: Leap):
        image, objective = _try_state(step, memory.state)
        factor, before = min(memory.factor * growth, most), memory.plain
        if not objective >= memory.objective:
            image, objective = step(before)
            factor = 1.0
        return Leap(leap(image, before, factor), image, objective, factor), objective

    return accelerated


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


def _try(step, unpack, x):
    if not np.all(np.isfinite(x)):
        return None, -np.inf
    return _try_state(step, _landed(unpack, x))


def _landed(unpack, x):
    """The state where a leap ends; if numbers do not reach there, the objective will tell."""
    with np.errstate(all="ignore"):
        return unpack(x)


def _try_state(step, state):
    """The step, or a value below all others where the state lies outside of its domain."""
    try:
        with np.errstate(all="ignore"):
            return step(state)
    except NumericalError:
        return state, -np.inf
