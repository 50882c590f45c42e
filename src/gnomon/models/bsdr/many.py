"""Sums over many classes by a few points.

All functions of the distance s_j = m_y - m_j of a class j from that of the row, summed over j, are
smooth, and the distances of a row lie in one interval. With the P Chebyshev points s_p of it,

    F(s_j) = sum_p l_p(s_j) F(s_p),    sum_j F(s_j) = sum_p w_p F(s_p),    w_p = sum_j l_p(s_j),

where l_p is the polynomial of degree P - 1 that is one at s_p and zero at the other points. For
log Phi and phi / Phi both err by about r^-P, where r = b + sqrt(b^2 + 1) and b is the distance of
the nearest zero of Phi in half lengths of the interval: 15 points where distances differ by up to
one, 62 where they do by up to ten.
"""

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

# Zeros of Phi nearest to real numbers are 1.92 - 2.82 i and its conjugate.
ZERO_OF_PHI = 2.8
# What is left out, of values between 1e-4 and 10: rounding.
LEFT_OUT = 1e-14
# Half an interval, at least: where all distances are equal it is one point.
SHORTEST = 1e-8
# A class costs four operations for each point, and without them twenty evaluations of Phi, each
# of some ten operations: points are at least twice as fast.
CLASSES_A_POINT = 16
# Tables of so many numbers stay in the cache.
ENTRIES = 2**17


class Points(NamedTuple):
    """Points s_p (p, n) of n rows, their weights w_p (p, n), and the places of the classes (j, n).

    Places are from -1 to 1, the ends of the interval of a row.
    """

    shift: np.ndarray
    counts: np.ndarray
    places: np.ndarray

    def at_places(self, values):
        """What has values (p, n) at the points, at the places of the classes (j, n)."""
        series = _polynomials(len(values)) @ values * (2 / len(values))
        series[0] *= 0.5
        return chebyshev.chebval(self.places, series, tensor=False)


def n_points(shift):
    """The points that distances (j, n) need."""
    half = np.max(0.5 * np.ptp(shift, axis=0), initial=SHORTEST)
    return 1 + int(np.ceil(-np.log(LEFT_OUT) / np.arcsinh(ZERO_OF_PHI / half)))


def are_many(shift):
    """Whether classes (j, n) are so many, and so close together, that points are cheaper."""
    return len(shift) >= CLASSES_A_POINT and len(shift) >= CLASSES_A_POINT * n_points(shift)


def points_of(shift):
    """Points that stand for distances (j, n)."""
    low, high = shift.min(axis=0), shift.max(axis=0)
    middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), SHORTEST)
    places = (shift - middle) / half
    p = n_points(shift)
    polynomials = _polynomials(p)
    counts = polynomials.T @ _moments(places, p) * (2 / p)
    return Points(middle + half * polynomials[1][:, None], counts, places)


def _polynomials(p):
    """T_q (q, p) at the p zeros of T_p."""
    return np.cos(np.arange(p)[:, None] * np.pi * (np.arange(p) + 0.5) / p)


def _moments(places, p):
    """Sums of T_q over the classes (q, n); that of T_0 counts half in a series."""
    found, twice = np.empty((p, places.shape[1])), 2 * places
    found[0] = 0.5 * len(places)
    before, now = np.ones_like(places), places
    for q in range(1, p):
        found[q] = now.sum(axis=0)
        before, now = now, twice * now - before
    return found
