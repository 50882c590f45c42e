"""What is known of each row, a class, a chunk or nothing, and what that says of a mixture.

Rows are sorted by what is known of them and cut in blocks, each small enough for the cache.
Every block gives two terms: one of the objective J, which asks how well the mixture tells the
classes, and one of the log likelihood that EM climbs.

A term is a function of L = log p(z, c), classes by rows (c, n). It is given by its value and its
derivatives by L, ``parts`` (c, n), and by log alpha, ``counts`` (c,), where L has log alpha in it;
for a log likelihood these are the expected counts of EM. A chunk is a run of rows that share
one unknown class; ``starts`` says where each begins. Weights repeat a row: in a chunk as one
more member, elsewhere as one more row. Pairs of rows known to be of different classes, whatever
else is known of them, have a term of J alone: they do not part into groups as chunks do, and EM
would have to sum over all classes of every set that they join.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.linalg.data import Data
from gnomon.models.dcagm.mixture import TINY, Moments, log_sum

# Rows worked on at a time: the log densities of a block stay in the cache.
BLOCK_ROWS = 4096
# Share of the members of a chunk that are taken to be none, as for the chunks of SPPCA.
WRONG_MEMBERS = 0.1


class Sample(NamedTuple):
    """Data in standard units, what is known of its rows, and the class of each Gaussian.

    ``labels`` are class numbers and ``chunks`` chunk numbers, -1 where there is none;
    ``class_of`` (m,) is ascending; ``total_variance`` is the sum over the columns; ``apart``
    (n, n) is not zero between rows of different classes, None where no such pair is known.
    """

    X: Data
    labels: np.ndarray
    chunks: np.ndarray
    weights: np.ndarray
    class_of: np.ndarray
    total_variance: float
    apart: sparse.csr_array | None = None

    @property
    def units(self) -> np.ndarray:
        """A number for each chunk and for each row in none: what must stay together (n,)."""
        alone = self.chunks.max() + 1 + np.arange(len(self.chunks))
        return np.where(self.chunks >= 0, self.chunks, alone)

    @property
    def in_chunks(self) -> np.ndarray:
        """Mask of the unlabelled rows that share a chunk with another one."""
        inside = (self.labels < 0) & (self.chunks >= 0)
        if inside.any():
            sizes = np.bincount(self.chunks[inside])
            inside[inside] = sizes[self.chunks[inside]] > 1
        return inside

    def take(self, index) -> "Sample":
        """The sample of some rows."""
        return self._replace(
            X=self.X.rows(index),
            labels=self.labels[index],
            chunks=self.chunks[index],
            weights=self.weights[index],
            apart=None if self.apart is None else self.apart[index][:, index],
        )


class Term(NamedTuple):
    """A value with its derivatives by log p(z, c) and by log alpha."""

    value: float
    parts: np.ndarray
    counts: np.ndarray


def combine(*weighted) -> Term:
    """Sum of (weight, term) pairs."""
    value = sum(weight * term.value for weight, term in weighted)
    parts = sum(weight * term.parts for weight, term in weighted)
    return Term(value, parts, sum(weight * term.counts for weight, term in weighted))


def label_given_row(L, labels, weights) -> Term:
    """Log p(c | z), the first sum of eq. (2) of [PGK07]; its derivative gives eq. (4)."""
    marginal = log_sum(L)
    parts = -weights * np.exp(L - marginal)
    rows = np.arange(L.shape[1])
    parts[labels, rows] += weights
    return Term(float(weights @ (L[labels, rows] - marginal)), parts, parts.sum(axis=1))


def label_and_row(L, labels, weights) -> Term:
    """Log p(z, c): the log likelihood of labelled rows, with the E-step (9) of [PGK07]."""
    rows = np.arange(L.shape[1])
    parts = np.zeros_like(L)
    parts[labels, rows] = weights
    return Term(float(weights @ L[labels, rows]), parts, parts.sum(axis=1))


def row_density(L, weights) -> Term:
    """Log p(z), the third sum of eq. (2) of [PGK07]; gives eq. (8) corrected (E-PGK07-2)."""
    marginal = log_sum(L)
    parts = weights * np.exp(L - marginal)
    return Term(float(weights @ marginal), parts, parts.sum(axis=1))


def chunk_given_rows(L, starts, weights, wrong=0.0) -> Term:
    """Log of the probability sum_c prod p(c | z) that the members of a chunk share a class.

    A share ``wrong`` of the members is taken to be of any class, so that no row can rule out what
    all others say: (1 - wrong) p(c | z) + wrong / C in the place of p(c | z).
    """
    posterior = np.exp(L - log_sum(L))
    reported = (1 - wrong) * posterior + wrong / len(L)
    shared = np.add.reduceat(weights * _log(reported), starts, axis=1)
    total = log_sum(shared)
    of_class = _for_members(np.exp(shared - total), starts, L)
    own = of_class * (1 - wrong) * posterior / np.maximum(reported, TINY)
    parts = weights * (own - posterior * own.sum(axis=0))
    return Term(float(total.sum()), parts, parts.sum(axis=1))


def chunk_density(L, starts, weights, log_alpha, wrong=0.0) -> Term:
    """Log sum_c alpha_c prod p(z | c): the log likelihood of a chunk, E-step (10), (11) of [PGK07].

    The class of a chunk is drawn once, so alpha counts the chunk and not its rows. A share
    ``wrong`` of the members comes from anywhere: (1 - wrong) p(z | c) + wrong p(z) for p(z | c).
    """
    prior, marginal = log_alpha[:, None], log_sum(L)
    # p(z | c) over p(z), which a chunk of any class has as a factor.
    relative = (1 - wrong) * np.exp(L - prior - marginal) + wrong
    shared = np.add.reduceat(weights * _log(relative), starts, axis=1) + prior
    total = log_sum(shared)
    posterior = np.exp(shared - total)
    astray = wrong / np.maximum(relative, TINY) * _for_members(posterior, starts, L)
    astray = weights * astray.sum(axis=0) * np.exp(L - marginal)
    own = weights * _for_members(posterior, starts, L) * (1 - wrong / np.maximum(relative, TINY))
    value = float(total.sum() + weights @ marginal)
    return Term(value, own + astray, posterior.sum(axis=1) + astray.sum(axis=1))


def pairs_apart(L, labels, weights, wrong=0.0) -> Term:
    """Log of the probability 1 - sum_c p(c | z) p(c | z') that two rows are of different classes.

    L has the first rows of all pairs and then the second ones; a label, >= 0, is taken for sure.
    A share ``wrong`` of the pairs is taken to say nothing.
    """
    posterior = np.exp(L - log_sum(L))
    known = np.flatnonzero(labels >= 0)
    posterior[:, known] = labels[known] == np.arange(len(L))[:, None]
    others = np.roll(posterior, len(weights), axis=1)
    shared = np.sum(posterior * others, axis=0)
    left = 1 - (1 - wrong) * shared
    parts = np.tile(weights, 2) * (wrong - 1) / left * posterior * (others - shared)
    parts[:, known] = 0.0
    return Term(float(weights @ np.log(left[: len(weights)])), parts, parts.sum(axis=1))


def _log(values):
    return np.log(np.maximum(values, TINY))


def chunk_ratio(L, starts, weights, log_alpha) -> Term:
    """Log of eq. (3) of [PGK07] as printed: a ratio of densities, no probability (E-PGK07-1)."""
    together, apart = chunk_density(L, starts, weights, log_alpha), row_density(L, weights)
    return combine((1.0, together), (-1.0, apart))


def _for_members(values, starts, L):
    """Values per chunk repeated for each of its members."""
    return np.repeat(values, np.diff(np.r_[starts, L.shape[1]]), axis=1)


class Labelled(NamedTuple):
    """Rows whose class is known; ``only`` is that class where all have the same, else -1."""

    rows: slice
    weights: np.ndarray
    labels: np.ndarray
    only: int

    def objective_term(self, L, log_alpha, model) -> Term:
        """What these rows add to J: the log probabilities of their labels."""
        return label_given_row(L, self.labels, self.weights)

    def em_term(self, L, log_alpha, model) -> Term:
        """What these rows add to the log likelihood that EM climbs."""
        return label_and_row(L, self.labels, self.weights)


class Alone(NamedTuple):
    """Rows of which nothing is known: they add their log densities to both terms."""

    rows: slice
    weights: np.ndarray


class Chunked(NamedTuple):
    """Rows in chunks, chunk after chunk, each of one unknown class."""

    rows: slice
    weights: np.ndarray
    starts: np.ndarray

    def objective_term(self, L, log_alpha, model) -> Term:
        """What these rows add to J: that chunks share a class, and the log densities of rows."""
        if model.as_printed:
            chunks = chunk_ratio(L, self.starts, self.weights, log_alpha)
        else:
            chunks = chunk_given_rows(L, self.starts, self.weights, WRONG_MEMBERS)
        rows = row_density(L, self.weights)
        return combine((model.chunk_weight, chunks), (model.unlabelled_weight, rows))

    def em_term(self, L, log_alpha, model) -> Term:
        """What these rows add to the log likelihood that EM climbs."""
        wrong = 0.0 if model.as_printed else WRONG_MEMBERS
        chunks = chunk_density(L, self.starts, self.weights, log_alpha, wrong)
        return combine((model.em_weight, chunks))


Block = Labelled | Alone | Chunked


class Apart(NamedTuple):
    """Pairs of rows of different classes: all first ones, then all second ones.

    ``rows`` (2p,) are their places, ``weights`` (p,) those of the pairs.
    """

    rows: np.ndarray
    labels: np.ndarray
    weights: np.ndarray

    def objective_term(self, L, log_alpha, model) -> Term:
        """What these pairs add to J."""
        return combine(
            (model.chunk_weight, pairs_apart(L, self.labels, self.weights, WRONG_MEMBERS))
        )


class Others(NamedTuple):
    """What rows that are not here add to J, about a projection, and to the sums of EM; `sampled`.

    J has ``constant`` and the product of ``gradient`` (d, q) with P in addition; the covariance
    is that of all rows.
    """

    covariance: np.ndarray
    constant: float
    gradient: np.ndarray
    moments: Moments

    def value(self, P) -> float:
        """What J has in addition at P."""
        return self.constant + float(np.sum(self.gradient * P))


class Rows(NamedTuple):
    """The rows of X in the order labelled, alone, in chunks, and cut in blocks; pairs apart.

    ``others`` are rows that are not here, None where there are none.
    """

    X: Data
    order: np.ndarray
    weights: np.ndarray
    blocks: tuple[Block, ...]
    apart: Apart | None = None
    others: Others | None = None

    @property
    def labels(self) -> np.ndarray:
        """Class numbers of the labelled rows, which come first."""
        return np.concatenate([b.labels for b in self.blocks if isinstance(b, Labelled)])

    def project(self, P) -> np.ndarray:
        """Coordinates X P of the rows (n, q), in this order."""
        return np.asarray(self.X @ P, dtype=float)[self.order]

    def restore(self, Z) -> np.ndarray:
        """Rows of Z back in the order of X."""
        out = np.empty_like(Z)
        out[self.order] = Z
        return out

    def by_columns(self, by_Z) -> np.ndarray:
        """The derivative by P (d, q) that one by the coordinates in this order gives."""
        return self.X.T @ self.restore(by_Z)

    def covariance(self, Z) -> np.ndarray:
        """Mean square of coordinates in this order (q, q), which are centred."""
        return (Z.T * self.weights) @ Z / self.weights.sum()


def arrange(sample: Sample, block_rows: int | None = None) -> Rows:
    """The rows sorted by what is known of them; a chunk of one row says nothing: it is alone."""
    size = BLOCK_ROWS if block_rows is None else block_rows
    labels, in_chunks = sample.labels, sample.in_chunks
    known = np.flatnonzero(labels >= 0)
    known = known[np.argsort(labels[known], kind="stable")]
    alone = np.flatnonzero((labels < 0) & ~in_chunks)
    members = np.flatnonzero(in_chunks)
    members = members[np.argsort(sample.chunks[members], kind="stable")]
    order = np.concatenate([known, alone, members])
    weights = sample.weights[order]
    blocks: list[Block] = _label_blocks(labels[known], weights, size)
    blocks += [Alone(rows, weights[rows]) for rows in _cuts(len(known), len(alone), size)]
    blocks += _chunk_blocks(len(known) + len(alone), sample.chunks[members], weights, size)
    return Rows(sample.X, order, weights, tuple(blocks), _pairs(sample, order))


def _pairs(sample, order):
    """The pairs of rows of different classes by their places, but for those with two labels."""
    if sample.apart is None:
        return None
    pairs = sparse.coo_array(sparse.triu(sample.apart, 1))
    i, j = pairs.coords
    open_ones = (sample.labels[i] < 0) | (sample.labels[j] < 0)
    i, j = i[open_ones], j[open_ones]
    both, places = np.concatenate([i, j]), np.argsort(order)
    return Apart(places[both], sample.labels[both], sample.weights[i] * sample.weights[j])


def _label_blocks(labels, weights, size):
    """Blocks of sorted classes; a class with many rows has its own, since EM needs only one."""
    sizes = np.bincount(labels)
    ends = np.cumsum(sizes)
    large = np.flatnonzero(sizes >= size // 4)
    edges = np.unique(np.r_[0, ends[large] - sizes[large], ends[large], len(labels)])
    out = []
    for a, b in pairwise(edges):
        for rows in _cuts(a, b - a, size):
            only = labels[a] if labels[a] == labels[b - 1] else -1
            out.append(Labelled(rows, weights[rows], labels[rows], int(only)))
    return out


def _cuts(first, count, size):
    """Slices of at most ``size`` rows."""
    for start in range(first, first + count, size):
        yield slice(start, min(start + size, first + count))


def _chunk_blocks(first, chunks, weights, size):
    """Blocks that end where a chunk ends."""
    if not len(chunks):
        return []
    starts = np.flatnonzero(np.r_[True, np.diff(chunks) != 0])
    edges = np.r_[starts, len(chunks)]
    cuts = np.unique(np.searchsorted(edges, np.arange(0, len(chunks), size)))
    out = []
    for a, b in pairwise(np.r_[cuts, len(starts)]):
        if a < b:
            rows = slice(first + edges[a], first + edges[b])
            out.append(Chunked(rows, weights[rows], edges[a:b] - edges[a]))
    return out
