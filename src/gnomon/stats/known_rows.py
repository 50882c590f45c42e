"""What is known of each row, a class, a chunk or nothing, and what that says of a mixture.

Rows are sorted by kind and cut in blocks, each small enough for the cache. A block gives two
terms: what a discriminative objective has of its rows, and what EM has of them, the
log likelihood. ``weights`` are those of the objective's terms, see `gnomon.models.dca_gm`.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gnomon.stats import class_terms as terms

# Rows worked on at a time: the log joint of a block stays in the cache.
BLOCK_ROWS = 4096


class Labelled(NamedTuple):
    """Rows whose class is known; ``only`` is that class where all have the same, else -1."""

    rows: slice
    weights: np.ndarray
    codes: np.ndarray
    only: int

    def discriminate(self, L, log_alpha, settings):
        """What J has of these rows."""
        return terms.label_given_row(L, self.codes, self.weights)

    def generate(self, L, log_alpha, settings):
        """What EM has of these rows."""
        return terms.label_and_row(L, self.codes, self.weights)


class Alone(NamedTuple):
    """Rows of which nothing is known."""

    rows: slice
    weights: np.ndarray

    def discriminate(self, L, log_alpha, settings):
        """What J has of these rows."""
        return terms.row(L, settings.unlabelled_weight * self.weights)

    def generate(self, L, log_alpha, settings):
        """What EM has of these rows."""
        return terms.row(L, settings.em_weight * self.weights)


class Chunked(NamedTuple):
    """Rows in chunks, chunk after chunk, each of one unknown class."""

    rows: slice
    weights: np.ndarray
    starts: np.ndarray

    def discriminate(self, L, log_alpha, settings):
        """What J has of these rows, as chunks and as unlabelled rows."""
        if settings.as_printed:
            chunks = terms.chunk_ratio(L, self.starts, self.weights, log_alpha)
        else:
            chunks = terms.chunk_given_rows(L, self.starts, self.weights)
        rows = terms.row(L, self.weights)
        return terms.combine((settings.chunk_weight, chunks), (settings.unlabelled_weight, rows))

    def generate(self, L, log_alpha, settings):
        """What EM has of these rows."""
        chunks = terms.chunk_of_rows(L, self.starts, self.weights, log_alpha)
        return terms.combine((settings.em_weight, chunks))


class Rows(NamedTuple):
    """What is known of the rows: sorted to labelled, alone, in chunks, and cut in blocks."""

    order: np.ndarray
    weights: np.ndarray
    blocks: tuple

    def sort(self, Z):
        """Rows of Z in this order."""
        return Z[self.order]

    def restore(self, Z):
        """Rows of Z back in the order of X."""
        out = np.empty_like(Z)
        out[self.order] = Z
        return out


def arrange(codes, chunks, weights) -> Rows:
    """Rows sorted by what is known of them: class codes or -1, chunk ids or -1, weights.

    A chunk of one row says nothing and is a row alone.
    """
    unlabelled = codes < 0
    chunked = in_chunks(codes, chunks)
    members = np.flatnonzero(chunked)
    members = members[np.argsort(chunks[members], kind="stable")]
    known, alone = np.flatnonzero(~unlabelled), np.flatnonzero(unlabelled & ~chunked)
    known = known[np.argsort(codes[known], kind="stable")]
    order = np.concatenate([known, alone, members])
    w = weights[order]
    first = np.cumsum([0, len(known), len(alone)])
    blocks: list = _label_blocks(codes[known], w)
    blocks += [Alone(r, w[r]) for r in _cuts(first[1], len(alone))]
    blocks += _chunk_blocks(first[2], chunks[members], w)
    return Rows(order, w, tuple(blocks))


def in_chunks(codes, chunks) -> np.ndarray:
    """Mask of the unlabelled rows that share a chunk with another one."""
    candidates = (codes < 0) & (chunks >= 0)
    if not candidates.any():
        return candidates
    sizes = np.bincount(chunks[candidates])
    candidates[candidates] = sizes[chunks[candidates]] > 1
    return candidates


def _label_blocks(codes, weights):
    """Blocks of sorted classes; a class with many rows has its own, for EM sees only one."""
    sizes = np.bincount(codes)
    ends = np.cumsum(sizes)
    large = np.flatnonzero(sizes >= BLOCK_ROWS // 4)
    edges = np.unique(np.r_[0, ends[large] - sizes[large], ends[large], len(codes)])
    out = []
    for a, b in pairwise(edges):
        for r in _cuts(a, b - a):
            only = codes[a] if codes[a] == codes[b - 1] else -1
            out.append(Labelled(r, weights[r], codes[r], int(only)))
    return out


def _cuts(first, count):
    for start in range(first, first + count, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, first + count))


def _chunk_blocks(first, ids, weights):
    """Blocks that end where a chunk ends."""
    if not len(ids):
        return []
    starts = np.flatnonzero(np.r_[True, np.diff(ids) != 0])
    edges = np.r_[starts, len(ids)]
    cuts = np.unique(np.searchsorted(edges, np.arange(0, len(ids), BLOCK_ROWS)))
    cuts = np.r_[cuts, len(starts)]
    out = []
    for a, b in pairwise(cuts):
        if a < b:
            rows = slice(first + edges[a], first + edges[b])
            out.append(Chunked(rows, weights[rows], edges[a:b] - edges[a]))
    return out
