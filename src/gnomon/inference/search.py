"""A step length along a direction of ascent."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Point(NamedTuple):
    """A step length with the value and the slope there."""

    t: float
    value: float
    slope: float


def line_search(
    along: Callable, value: float, slope: float, guess: float, *, n_evaluations: int = 12
) -> float:
    """A length that raises ``along(t) -> (value, slope)`` and flattens it, or 0 if none is found.

    Wolfe's conditions, by doubling and then by cubic interpolation between the ends of a
    bracket; the better end is returned when the evaluations are used up.
    """
    if not slope > 0:
        return 0.0
    start = low = Point(0.0, value, slope)
    high, t = None, guess
    for _ in range(n_evaluations):
        point = Point(t, *along(t))
        if not _rises_enough(point, start) or point.value < low.value:
            high = point
        elif abs(point.slope) <= 0.4 * start.slope:
            return t
        else:
            ahead = 1.0 if high is None else high.t - low.t
            high = low if point.slope * ahead < 0 else high
            low = point
        t = 4 * low.t if high is None else _between(low, high)
    return low.t


def _rises_enough(point, start):
    return np.isfinite(point.value) and point.value >= start.value + 1e-4 * point.t * start.slope


def _between(low: Point, high: Point) -> float:
    """Maximum of the cubic through both ends, kept away from them."""
    width = high.t - low.t
    share = 0.5
    if np.isfinite(high.value) and np.isfinite(high.slope):
        d1 = low.slope + high.slope - 3 * (low.value - high.value) / (low.t - high.t)
        root = d1**2 - low.slope * high.slope
        if root >= 0:
            d2 = np.copysign(np.sqrt(root), width)
            bottom = high.slope - low.slope - 2 * d2
            share = 1 - (high.slope - d2 - d1) / bottom if bottom != 0 else 0.5
    return low.t + width * min(max(share, 0.1), 0.9)
