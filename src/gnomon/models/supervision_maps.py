"""The maps of many candidate strengths of supervision at once, for trials and votes.

A candidate is a strength s on a pool of leading directions. Label blocks may be stacked: one
for each split of a trial.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.completion import TINY
from gnomon.models.supervision import NO_ENERGY, Pool

# Directions beyond the wanted ones in which the maps of a trial are sought.
MARGIN = 10


class Candidate(NamedTuple):
    """A strength on a pool of leading directions."""

    pool: int
    s: float


class Maps(NamedTuple):
    """The maps R (..., strengths, p, q) of one pool and the numbers of their candidates."""

    candidates: list[int]
    R: np.ndarray


def maps(pool: Pool, candidates, blocks, q) -> list[Maps]:
    """Maps of the candidates with s > 0, given the label block (..., p, c) of each pool."""
    found = []
    for p, G in blocks.items():
        of_pool = [i for i, c in enumerate(candidates) if c.pool == p and c.s > 0]
        if of_pool:
            strengths = np.array([candidates[i].s for i in of_pool])
            R = strength_maps(pool.variances[:p], pool.total, G, q, strengths)
            found.append(Maps(of_pool, R))
    return found


def at(stacked: list[Maps], k) -> list[Maps]:
    """The maps of entry k of a stack of label blocks."""
    return [Maps(part.candidates, part.R[k]) for part in stacked]


def embed(F, found: list[Maps], n_candidates, q) -> np.ndarray:
    """Rows F of the pool in the maps (candidates, n, q); without a map they stay as they are."""
    T = np.empty((n_candidates, len(F), min(q, F.shape[1])))
    T[sorted(set(range(n_candidates)) - {i for part in found for i in part.candidates})] = F[:, :q]
    for part in found:
        m, p, width = part.R.shape
        # One product for all strengths: narrow ones are slow.
        side_by_side = F[:, :p] @ np.swapaxes(part.R, 0, 1).reshape(p, m * width)
        T[part.candidates] = np.swapaxes(side_by_side.reshape(len(F), m, width), 0, 1)
    return T


def strength_maps(variances, total, G, q, strengths) -> np.ndarray:
    """The maps R (..., strengths, p, q) of `directions`, in a space that nearly holds them all.

    Eigenvectors come from the leading directions of x and of the label block, and one further
    step of the power method; distances are then right to about a hundredth.
    """
    energy = np.maximum(np.sum(G**2, axis=(-2, -1)), TINY)[..., None, None, None]
    Q = _leading_space(G, q + MARGIN)
    Qt = np.swapaxes(Q, -1, -2)
    g = Qt @ G
    s = strengths[:, None, None]
    inputs, labels = (Qt * variances) @ Q, g @ np.swapaxes(g, -1, -2)
    A = (1 - s) / total * inputs[..., None, :, :] + s / energy * labels[..., None, :, :]
    values, U = np.linalg.eigh(A)
    values = np.maximum(values[..., None, : -q - 1 : -1], NO_ENERGY)
    U = Q[..., None, :, :] @ U[..., : -q - 1 : -1]
    G = G[..., None, :, :]
    GU = G @ (np.swapaxes(G, -1, -2) @ U)
    AU = (1 - s) / total * variances[:, None] * U + s / energy * GU
    return np.sqrt(total / variances)[:, None] * AU / np.sqrt(values)


def _leading_space(G, m):
    """Orthonormal (..., p, at most 2m): the first m coordinates and the leading ones of G."""
    p = G.shape[-2]
    if 2 * m >= p:
        return np.eye(p)
    _, E = np.linalg.eigh(np.swapaxes(G, -1, -2) @ G)
    tail, _ = np.linalg.qr(G[..., m:, :] @ E[..., : -m - 1 : -1])
    Q = np.zeros((*G.shape[:-1], m + tail.shape[-1]))
    Q[..., :m, :m] = np.eye(m)
    Q[..., m:, m:] = tail
    return Q
