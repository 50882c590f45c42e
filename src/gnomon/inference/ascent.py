"""Ascent on a smooth function of a vector, as a step: limited-memory BFGS."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Step
from gnomon.inference.search import line_search


class Path(NamedTuple):
    """Where an ascent stands, and the last moves with the changes of the gradient they made."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    moves: np.ndarray
    changes: np.ndarray


def begin(function: Callable, x) -> Path:
    """The path that starts at x; ``function(x) -> (value, gradient)``."""
    value, gradient = function(x)
    nothing = np.empty((0, len(x)))
    return Path(x, value, gradient, nothing, nothing)


def lbfgs(function: Callable, *, depth: int = 10) -> Step:
    """A step on `Path`: one line search along the limited-memory BFGS direction."""

    def step(path: Path):
        direction = ascent_direction(path)
        slope = float(direction @ path.gradient)
        if slope <= 0:
            path = path._replace(moves=path.moves[:0], changes=path.changes[:0])
            direction, slope = path.gradient, float(path.gradient @ path.gradient)
        guess = 1.0 if len(path.moves) else 0.1 / np.sqrt(max(slope, np.finfo(float).tiny))
        seen = {}

        def along(t):
            seen[t] = function(path.x + t * direction)
            return seen[t][0], float(seen[t][1] @ direction)

        t = line_search(along, path.value, slope, guess)
        if t == 0:
            return path._replace(moves=path.moves[:0], changes=path.changes[:0]), path.value
        value, gradient = seen[t]
        return _moved(path, t * direction, value, gradient, depth), path.value

    return step


def ascent_direction(path: Path) -> np.ndarray:
    """The inverse curvature the moves have met, times the gradient: the two-loop recursion."""
    direction, shares = path.gradient.copy(), []
    pairs = list(zip(path.moves, path.changes, strict=True))
    for move, change in reversed(pairs):
        share = (move @ direction) / (move @ change)
        direction -= share * change
        shares.append(share)
    if pairs:
        move, change = pairs[-1]
        direction *= -(move @ change) / (change @ change)
    for (move, change), share in zip(pairs, reversed(shares), strict=True):
        back = (change @ direction) / (move @ change)
        direction -= (share + back) * move
    return direction


def _moved(path, move, value, gradient, depth):
    moves, changes = path.moves, path.changes
    change = gradient - path.gradient
    # Only a move along which the function curves down tells of a maximum.
    if move @ change < -1e-12 * np.linalg.norm(move) * np.linalg.norm(change):
        moves = np.concatenate([moves, move[None]])[-depth:]
        changes = np.concatenate([changes, change[None]])[-depth:]
    return Path(path.x + move, value, gradient, moves, changes)
