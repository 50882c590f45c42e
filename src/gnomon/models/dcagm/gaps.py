"""Rows that miss entries, seen by a mixture in the subspace: exact, given how x varies about z.

    p(z, c)     the mixture of the classes
    p(x | z)    that of PPCA of all rows, whatever the class

Under PPCA alone z = P'x is N(m_0, V) before a row is seen, and N(m, S) given what it observes. The
ratio of the two is what the row says of z: a measurement

    r = z + e,    e ~ N(0, R),    R = (S^-1 - V^-1)^-1,    r = R (S^-1 m - V^-1 m_0)

so that a Gaussian of the mixture has the density N(r; mu, Sigma + R), and z given it is Gaussian
too. A complete row has R = 0 and r = z; a row that observes nothing has R without bound.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.solve import Cholesky, stacked_half_inverses
from gnomon.models.dcagm.mixture import TINY, Mixture, log_sum
from gnomon.models.dcagm.rows import BLOCK_ROWS
from gnomon.models.gaussian.filling import Filling, covariances, covariances_of_gaps

# So small a share of the variance of z is known even where nothing is observed: R stays finite.
LEAST_KNOWN = 1e-6


class Measured(NamedTuple):
    """What rows say of z: r (n, q) and the covariances R (n, q, q) of its error."""

    r: np.ndarray
    R: np.ndarray


class Located(NamedTuple):
    """Mean (n, q) and covariance (n, q, q) of z, and log p(r, g) of each Gaussian (m, n)."""

    mean: np.ndarray
    covariance: np.ndarray
    log_joint: np.ndarray


class Marginal(NamedTuple):
    """A mixture for measured rows: log alpha beta N(r; mu, Sigma + R) (m, n), and z given each.

    ``mean`` (m, n, q) and ``covariance`` (m, n, q, q) are those of z if a Gaussian is its own.
    """

    log_joint: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


def measure(filling: Filling, X, components, mean, Z) -> Measured:
    """What rows X say of z = components (x - mean), of which Z (n, q) is E[z | x_o] by PPCA."""
    P, q = np.asarray(components, dtype=float).T, len(components)
    center = (filling.mean - mean) @ P
    scaled = P * np.reshape(filling.scale, (-1, 1))
    V = covariances_of_gaps(scaled, filling.W, filling.noise, np.ones((1, len(P))))[0]
    root = Cholesky(V + np.finfo(float).eps * np.trace(V) * np.eye(q))
    half = root.half_solve(np.eye(q))
    S, pattern = covariances(filling, X, P)
    values, U = np.linalg.eigh(half @ S @ half.T)
    left = np.clip(values, 0.0, 1.0 - LEAST_KNOWN)
    back = root.L @ U
    R = (back * (left / (1 - left))[:, None, :]) @ np.swapaxes(back, 1, 2)
    along = np.einsum("nij,ni->nj", U[pattern], (Z - center) @ half.T) / (1 - left[pattern])
    return Measured(center + np.einsum("nij,nj->ni", back[pattern], along), R[pattern])


def marginalise(mixture: Mixture, rows: Measured) -> Marginal:
    """The mixture with what rows do not observe integrated out."""
    (n, q), m = rows.r.shape, len(mixture.means)
    Sigma = mixture.covariances[mixture.covariance_of][:, None]
    both = (Sigma + rows.R).reshape(-1, q, q)
    half, log_det = stacked_half_inverses(both)
    half = half.reshape(m, n, q, q)
    away = np.einsum("mnij,mnj->mni", half, rows.r - mixture.means[:, None])
    gain = Sigma @ np.swapaxes(half, 2, 3)
    weights = np.log(mixture.alpha)[mixture.class_of] + np.log(np.maximum(mixture.beta, TINY))
    constant = q * np.log(2 * np.pi) + log_det.reshape(m, n) + np.sum(away**2, axis=2)
    return Marginal(
        weights[:, None] - 0.5 * constant,
        mixture.means[:, None] + np.einsum("mnij,mnj->mni", gain, away),
        Sigma - gain @ np.swapaxes(gain, 2, 3),
    )


def locate(mixture: Mixture, rows: Measured) -> Located:
    """Where z of measured rows lies, over all Gaussians."""
    found = [_located(marginalise(mixture, part)) for part in _blocks(rows)]
    axes = (0, 0, 1)
    return Located(
        *(np.concatenate(p, axis) for p, axis in zip(zip(*found, strict=True), axes, strict=True))
    )


def _located(seen):
    shares = np.exp(seen.log_joint - log_sum(seen.log_joint))
    mean = np.einsum("mn,mnq->nq", shares, seen.mean)
    away = seen.mean - mean
    between = np.einsum("mn,mni,mnj->nij", shares, away, away)
    within = np.einsum("mn,mnij->nij", shares, seen.covariance)
    return Located(mean, between + within, seen.log_joint)


def _blocks(rows):
    for start in range(0, len(rows.r), BLOCK_ROWS):
        yield Measured(*(part[start : start + BLOCK_ROWS] for part in rows))
