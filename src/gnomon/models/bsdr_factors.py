"""The mean-field factors of BSDR as one value: what they hold, their vector, their order."""

from typing import NamedTuple

import numpy as np

from gnomon.stats.gamma import Gamma
from gnomon.stats.ridge import Spread


class Factors(NamedTuple):
    """Parameters of all factors of q."""

    phi: Gamma
    P: np.ndarray
    projected: np.ndarray
    """X P (n, q)."""
    spread: Spread
    Z: np.ndarray
    S: np.ndarray
    """Covariance of z for every pattern of observed outputs (m, q, q)."""
    S_log_det: np.ndarray
    T: np.ndarray
    T_normaliser: float
    """Sum of log Z(m) + m^2 / 2 - E[t] m at the means m that q(T) was made with."""
    psi: Gamma
    lam: Gamma
    B: np.ndarray
    """Means of [b; V] (q + 1, c)."""
    C: np.ndarray
    """Covariances of the columns of [b; V] (c, q + 1, q + 1)."""
    C_log_det: np.ndarray
    eps: Gamma | None
    """Noise precisions of numbers (c,)."""


def pack(factors: Factors):
    """Means and log scales as one vector; what `step` recomputes first is left out."""
    L = np.linalg.cholesky(factors.C)
    diagonal = np.diagonal(L, axis1=1, axis2=2)
    lower = np.tril_indices(L.shape[1], -1)
    parts = [
        np.log(factors.phi.scale),
        factors.P,
        factors.projected,
        factors.Z,
        factors.B,
        np.log(diagonal),
        L[:, lower[0], lower[1]],
    ]
    if factors.eps is not None:
        parts.append(np.log(factors.eps.scale))
    return np.concatenate([np.ravel(part) for part in parts])


def unpack(x, like: Factors) -> Factors:
    """Factors of the same shapes as ``like`` from a vector of `pack`."""
    size = like.B.shape[0]
    lower = np.tril_indices(size, -1)
    c = like.B.shape[1]
    shapes = [
        np.shape(like.phi.scale),
        like.P.shape,
        like.projected.shape,
        like.Z.shape,
        like.B.shape,
        (c, size),
        (c, len(lower[0])),
        (c,),
    ]
    log_phi, P, projected, Z, B, diagonal, below, log_eps = _cut(x, shapes)
    L = np.zeros((c, size, size))
    L[:, np.arange(size), np.arange(size)] = np.exp(diagonal)
    L[:, lower[0], lower[1]] = below
    return like._replace(
        phi=like.phi._replace(scale=np.exp(log_phi)),
        P=P,
        projected=projected,
        Z=Z,
        B=B,
        C=L @ np.swapaxes(L, 1, 2),
        C_log_det=2 * diagonal.sum(axis=1),
        eps=None if like.eps is None else like.eps._replace(scale=np.exp(log_eps)),
    )


def reorder(factors: Factors, order, signs, kind) -> Factors:
    """The same fit with its components in another order and with other signs."""
    rows = np.concatenate([[0], 1 + np.asarray(order)])
    turn = np.concatenate([[1.0], signs])
    spread = factors.spread
    phi = factors.phi if kind == "row" else _take(factors.phi, order)
    shared_factor = len(spread.factor) == 1 and spread.factor.ndim == 3
    return factors._replace(
        phi=phi,
        P=factors.P[:, order] * signs,
        projected=factors.projected[:, order] * signs,
        spread=Spread(
            spread.variance[:, order],
            spread.rest[order],
            spread.log_det[order],
            spread.gram_trace[order],
            spread.factor if shared_factor else _reorder_factor(spread.factor, order),
        ),
        Z=factors.Z[:, order] * signs,
        S=factors.S[:, order][:, :, order] * np.outer(signs, signs),
        psi=Gamma(factors.psi.shape, np.asarray(factors.psi.scale)[order]),
        B=factors.B[rows] * turn[:, None],
        C=factors.C[:, rows][:, :, rows] * np.outer(turn, turn),
    )


def _take(gamma, order):
    return Gamma(gamma.shape, np.asarray(gamma.scale)[..., order])


def _reorder_factor(factor, order):
    return factor[order] if factor.ndim == 3 else factor[:, order]


def _cut(x, shapes):
    start = 0
    for shape in shapes:
        stop = start + int(np.prod(shape))
        part = x[start:stop]
        yield part.reshape(shape) if part.size == stop - start else None
        start = stop
