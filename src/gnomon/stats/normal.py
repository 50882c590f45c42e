"""The standard normal law at many points: its distribution function and density from a table.

Around the nearest point a of a grid, with e = a d,

    Phi(a + d) = Phi(a) + phi(a) d (1 - e / 2 + (e^2 - d^2) / 6 - ...)
    phi(a + d) = phi(a) exp(-e - d^2 / 2)

to a relative 2e-12 in [-5, 5] and 1e-10 at the ends, several times faster than a call for each.
"""

import numpy as np
from scipy.special import log_ndtr, ndtr

LOWEST, HIGHEST = -14.0, 9.0
# So fine that three terms are enough, so coarse that both tables stay in the cache.
PER_UNIT = 1024
LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)

_GRID = np.arange(int(LOWEST * PER_UNIT), int(HIGHEST * PER_UNIT) + 1) / PER_UNIT
_CDF = ndtr(_GRID)
_PDF = np.exp(-0.5 * _GRID**2 - LOG_ROOT_TWO_PI)


def cdf_and_density(A, work=None):
    """Phi(a) and phi(a) for a of any size above LOWEST; beyond HIGHEST they are 1 and 0.

    ``work`` (5, ...) is room of the shape of A to compute in, which saves asking for memory in
    a loop; the answer is a part of it, and A may be one too (the last).
    """
    cdf, density, d, e, s = np.empty((5, *np.shape(A))) if work is None else work
    np.minimum(A, HIGHEST, out=d)
    d *= PER_UNIT
    np.rint(d, out=e)
    index = (e - LOWEST * PER_UNIT).astype(np.intp)
    np.take(_PDF, index, mode="clip", out=density)
    np.take(_CDF, index, mode="clip", out=cdf)
    d -= e
    d *= 1.0 / PER_UNIT
    e *= 1.0 / PER_UNIT
    e *= d
    cdf += _integral(d, e, density, out=s)
    d *= d
    d *= 0.5
    e += d
    density *= _exp_minus(e, out=s)
    return cdf, density


def hazard(A, log_cdf=None):
    """phi(a) / Phi(a), the derivative of log Phi, at any a."""
    log_cdf = log_ndtr(A) if log_cdf is None else log_cdf
    return np.exp(-0.5 * A * A - LOG_ROOT_TWO_PI - log_cdf)


def _integral(d, e, density, out):
    """Phi(a + d) - Phi(a) for small d and e = a d."""
    np.subtract(e, 3.0, out=out)
    out *= e
    out *= 1.0 / 6.0
    out += 1.0
    out -= d * d / 6.0
    out *= d
    out *= density
    return out


def _exp_minus(e, out):
    """exp(-e) for small e."""
    np.multiply(e, -1.0 / 6.0, out=out)
    out += 0.5
    out *= e
    out -= 1.0
    out *= e
    out += 1.0
    return out
