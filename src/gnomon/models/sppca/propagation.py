"""Expectation propagation of a standard normal vector with probit factors.

    Z = E_w[prod_j Phi(f_j)],    f_j = a_j'w + c_j,    w ~ N(0, I_k)

Each factor is replaced by a Gaussian exp(nu f - tau f^2 / 2), scaled, that has its moments where
the Gaussians of all other factors, the *cavity*, stand. One factor is exact. Probit factors are
log-concave, so that tau is never below zero and no step needs damping.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr

from gnomon.linalg.data import slices
from gnomon.linalg.solve import stacked_covariances

# Sweeps over the factors end when none of them moves by more than the tolerance: log Z, which is
# stationary there, then errs by the square of it. Most rows need fewer than ten.
MOST_SWEEPS, TOLERANCE = 200, 1e-5
# Phi is one or zero far before: a row that lies farther out would leave the range of squares.
FAR = 1e6
# Rows whose covariances are worked on at a time: few enough for the cache.
BLOCK_ENTRIES = 2**17


class Factors(NamedTuple):
    """Factors Phi(f_j) of every row: f = A w + c, with A (n, J, k) and c (n, J).

    ``seen`` (n, J) are ones and zeros: a factor that is not seen is one.
    """

    A: np.ndarray
    c: np.ndarray
    seen: np.ndarray


class Tilted(NamedTuple):
    """EP's Gaussian of w: means (n, k), covariances (n, k, k); its factors (n, J); log Z (n,)."""

    mean: np.ndarray
    covariance: np.ndarray
    tau: np.ndarray
    nu: np.ndarray
    log_Z: np.ndarray


def propagate(factors: Factors) -> Tilted:
    """Moments of w with the factors of each row, rows in blocks."""
    n, J, k = factors.A.shape
    factors = factors._replace(c=np.clip(factors.c, -FAR, FAR))
    size = max(1, BLOCK_ENTRIES // (k * max(J, k)))
    parts = [_tilted(*_sweep(*(part[rows] for part in factors))) for rows in slices(n, size)]
    return Tilted(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _sweep(A, c, seen):
    """The factors as they came, and their Gaussians tau and nu (n, J)."""
    n, J, k = A.shape
    mean, covariance = np.zeros((n, k)), np.tile(np.eye(k), (n, 1, 1))
    tau, nu = np.zeros((n, J)), np.zeros((n, J))
    for _ in range(MOST_SWEEPS):
        before = tau.copy(), nu.copy()
        for j in range(J):
            a = A[:, j]
            Va = (covariance @ a[:, :, None])[:, :, 0]
            s, f = np.einsum("ni,ni->n", a, Va), np.einsum("ni,ni->n", a, mean) + c[:, j]
            m, v = _cavity(s, f, tau[:, j], nu[:, j])
            new = _gaussian_factor(m, v, seen[:, j])
            more, shift = new[0] - tau[:, j], new[1] - nu[:, j]
            gain = 1.0 / (1.0 + more * s)
            mean += Va * (gain * (shift - more * f))[:, None]
            covariance -= (Va * (more * gain)[:, None])[:, :, None] * Va[:, None, :]
            tau[:, j], nu[:, j] = new
        moved = [np.max(np.abs(a - b), initial=0.0) for a, b in zip((tau, nu), before, strict=True)]
        if J <= 1 or max(moved) < TOLERANCE:
            break
    return A, c, seen, tau, nu


def _cavity(s, f, tau, nu):
    """Mean and variance of f without its own factor, of its mean f and variance s with it."""
    left = 1.0 / (1.0 - tau * s)
    return left * (f - s * nu), left * s


def _gaussian_factor(mean, variance, seen):
    """The Gaussian factor of f that has the moments of Phi(f) under its cavity."""
    wide = 1.0 + variance
    slope = _hazard(mean / np.sqrt(wide)) / np.sqrt(wide)
    curvature = slope * (slope + mean / wide)
    left = seen / (1.0 - variance * curvature)
    return left * curvature, left * (slope + curvature * mean)


def _hazard(a):
    """phi(a) / Phi(a) at any a."""
    return np.sqrt(2 / np.pi) / erfcx(-a / np.sqrt(2))


def _tilted(A, c, seen, tau, nu):
    """Moments of the product of the Gaussian factors, and log Z."""
    precision = np.eye(A.shape[2]) + np.swapaxes(A * tau[:, :, None], 1, 2) @ A
    covariance, logdet = stacked_covariances(precision)
    linear = np.einsum("nj,nja->na", nu - tau * c, A)
    mean = (covariance @ linear[:, :, None])[:, :, 0]
    f = (A @ mean[:, :, None])[:, :, 0] + c
    m, v = _cavity(np.sum((A @ covariance) * A, axis=2), f, tau, nu)
    wide = 1.0 + tau * v
    scales = log_ndtr(m / np.sqrt(1.0 + v)) + 0.5 * np.log(wide)
    scales -= 0.5 * (nu**2 * v + 2 * nu * m - tau * m**2) / wide
    scales += nu * c - 0.5 * tau * c**2
    log_Z = np.sum(seen * scales, axis=1) + 0.5 * (logdet + np.sum(mean * linear, axis=1))
    return mean, covariance, tau, nu, log_Z
