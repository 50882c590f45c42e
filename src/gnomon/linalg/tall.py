"""Tall thin matrices, with a row for every column of X: few columns, and more as a basis grows.

BLAS has one thread for thin products, which wait for memory. Here their rows are shared between
threads: cut at the same places for any number of these, and added up in their order, so that the
digits are those of one thread.
"""

import numpy as np

from gnomon.linalg.threads import in_order

# Rows of a part: few enough for the cache, many enough for a call of BLAS.
ROWS_AT_ONCE = 4096


class Tall:
    """A matrix (n, r) that grows by columns: blocks of these, kept as they come."""

    def __init__(self, n):
        self.blocks: list[np.ndarray] = []
        self._length = n

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._length, sum(block.shape[1] for block in self.blocks)

    def append(self, block) -> None:
        """Take in columns (n, k), which nobody may change any more."""
        self.blocks.append(block)

    def mix(self, M) -> None:
        """Replace the columns by mixtures of them (r, k)."""
        self.blocks = [mixed(self, M)]


def inner(A, *others) -> np.ndarray:
    """A'[B, ...] (r, k) of a tall matrix with arrays beside each other, added up in float64."""
    blocks, k = _blocks(A), sum(B.shape[1] for B in others)

    def of_part(rows):
        B = np.hstack([B[rows] for B in others]) if len(others) > 1 else others[0][rows]
        return np.concatenate([block[rows].T @ B for block in blocks])

    total = np.zeros((A.shape[1], k))
    for part in _over_parts(of_part, A.shape[0], total.size * A.shape[0]):
        total += part
    return total


def mixed(A, M, less=None, plus=None) -> np.ndarray:
    """A M, less B C for a pair ``less`` of a tall matrix and its mixture, plus an array."""
    terms = [*_terms(A, M), *(() if less is None else _terms(less[0], -less[1]))]
    out = np.empty((A.shape[0], M.shape[1]), dtype=terms[0][0].dtype)

    def place(rows):
        part = terms[0][0][rows] @ terms[0][1]
        for block, mixture in terms[1:]:
            part += block[rows] @ mixture
        out[rows] = part if plus is None else part + plus[rows]

    work = len(out) * sum(mixture.size for _, mixture in terms)
    for _ in _over_parts(place, len(out), work):
        pass
    return out


def _terms(A, M):
    """The blocks of A, each with the rows of M that mix it."""
    blocks = _blocks(A)
    edges = np.cumsum([block.shape[1] for block in blocks])[:-1]
    mixtures = np.split(M, edges)
    return [(b, m.astype(b.dtype, copy=False)) for b, m in zip(blocks, mixtures, strict=True)]


def _blocks(A):
    return A.blocks if isinstance(A, Tall) else [A]


def _over_parts(function, n, work):
    """What a function gives for every part of n rows, by threads where there are several."""
    parts = [slice(start, start + ROWS_AT_ONCE) for start in range(0, n, ROWS_AT_ONCE)]
    return in_order(function, parts, work) if len(parts) > 1 else map(function, parts)
