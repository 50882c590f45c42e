"""SPPCA at a stated strength where x has gaps, by the likelihood of what is observed.

Stage 1 sees a row at its mean given what it observes, E[x | x_o] under PPCA, and completes the
labels c on all rows. Stage 2 then has no closed form; it is EM on the observed entries,

    x_o = mean_o + W_o z + e,    c = mean_c + W_y z + e_y,    noise sigma2 and r(s) sigma2

with r(s) = (1-s)/s tc/tx as without gaps; tx counts the variance that is left in the gaps.
Without gaps the maximum is the closed form of `gnomon.models.supervision`, at s = 0 it is PPCA.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.completion import TINY
from gnomon.models.gaussian import gaps
from gnomon.models.sppca import em as sppca
from gnomon.models.sppca import gaps as sppca_gaps
from gnomon.models.supervision import Supervised, padded

# At s = 1 the completed labels would have no noise at all.
LARGEST_SHARE = 1 - 1e-5


class Filled(NamedTuple):
    """Rows with their gaps at their means, PPCA that filled them, expected total variance."""

    X: np.ndarray
    state: gaps.State
    total: float


class Problem(NamedTuple):
    """What the EM of stage 2 climbs, from where; the share s and the variance tc of the labels."""

    data: gaps.Patterns
    start: gaps.State
    noise: sppca.Noise
    s: float
    energy: float


def fill(state: gaps.State, data: gaps.Patterns) -> Filled:
    """The rows as stage 1 sees them."""
    X, deviations = gaps.fill(state, data)
    squares = np.sum((X - state.mean) ** 2 + deviations**2, axis=1)
    return Filled(X, state, float(np.average(squares[data.order], weights=data.weights)))


def problem(X, filled: Filled, found: Supervised, s, weights) -> Problem:
    """Stage 2 for rows with gaps; ``found`` is the closed form on the filled rows."""
    C = (filled.X - filled.state.mean) @ (found.coef @ found.whitener)
    share = np.full(len(C), 1 / len(C)) if weights is None else weights / weights.sum()
    mean_c = share @ C
    energy = float(np.sum(share @ (C - mean_c) ** 2))
    s = min(s, LARGEST_SHARE) if energy > 0 else 0.0
    C = C if s > 0 else C[:, :0]
    data = sppca_gaps.table(X, C, np.ones(C.shape, dtype=bool), weights)
    noise = sppca.Noise(data.floors[0], data.floors[1:])
    if s == 0:
        return Problem(data, filled.state, noise, s, energy)
    ratio = (1 - s) / s * energy / filled.total
    sigma2 = max(found.sigma2, data.floors[0])
    W = np.vstack([found.W, found.W_y])
    start = gaps.State(
        # A direction without energy, at s = 1 all but those of the labels, stays out.
        W[:, W.any(axis=0)],
        np.concatenate([filled.state.mean, mean_c]),
        np.array([sigma2, ratio * sigma2]),
    )
    return Problem(data, start, noise._replace(ratio=ratio), s, energy)


def inputs(state: gaps.State, X, weights) -> tuple[gaps.State, gaps.Patterns]:
    """The part of the maximum that rules x alone, and its data: its noise is to be found anew."""
    d = X.shape[1]
    data = sppca_gaps.table(X, *sppca_gaps.no_outputs(len(X)), weights)
    return gaps.State(state.W[:d], state.mean[:d], state.noise[:1]), data


def assemble(state: gaps.State, noise, problem: Problem, filled: Filled, found: Supervised):
    """Mean of x and SPPCA at the maximum, in the form of the closed one.

    ``noise`` is the variance of the noise of x for these loadings, the labels left aside.
    """
    d, q = found.W.shape
    block = found.coef @ found.whitener
    mean, joint = sppca_gaps.split(state, d, len(state.W) - d)
    W, sigma2, W_y, levels, _ = sppca.canonical(joint)
    if problem.s == 0:
        W_y, levels = block.T @ W, np.full(block.shape[1], np.inf)
    strength = np.sum(W**2, axis=0) / sigma2 + np.sum(W_y**2 / levels[:, None], axis=0)
    strength = np.maximum(strength, TINY)
    latent = np.sqrt(strength / (sigma2 * (1 - problem.s))) / (1 + strength)
    through = (W / sigma2 + block @ (W_y / levels[:, None])) / (1 + strength)
    whole = 1 + 1 / strength
    x_share = whole * np.sum(W**2, axis=0) / filled.total
    y_share = whole * np.sum(W_y**2, axis=0) / max(problem.energy, TINY)
    return mean, found._replace(
        W=padded(W, q),
        sigma2=float(noise),
        projection=padded(through / latent, q),
        latent=padded(latent, q),
        covariance=np.diag(1 - padded(strength / (1 + strength), q)),
        W_y=padded(W_y, q),
        sigma2_y=float(levels.max(initial=0.0)) if problem.s > 0 else np.inf,
        offset=found.offset + (mean - filled.state.mean) @ found.coef,
        x_share=padded(x_share, q),
        y_share=padded(y_share, q),
    )
