"""Log probabilities of labels, chunks and rows under a mixture per class.

Each is a function of L = log p(z, c), classes by rows (c, n), and returns its value with the
derivatives by L, ``parts`` (c, n), and by log alpha, ``counts`` (c,), where L has log alpha in
it. A chunk is a run of rows that share one unknown class; ``starts`` says where each begins.
Weights repeat a row: in a chunk as one more member, elsewhere as one more row.
"""

from typing import NamedTuple

import numpy as np

from gnomon.stats.mixture import log_sum


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


def label_given_row(L, codes, weights) -> Term:
    """Log p(c | z), the first sum of (2) in [PGK07]."""
    marginal = log_sum(L)
    parts = -weights * np.exp(L - marginal)
    rows = np.arange(L.shape[1])
    parts[codes, rows] += weights
    return Term(float(weights @ (L[codes, rows] - marginal)), parts, parts.sum(axis=1))


def label_and_row(L, codes, weights) -> Term:
    """Log p(z, c): what EM sees of labelled rows, (9)."""
    rows = np.arange(L.shape[1])
    parts = np.zeros_like(L)
    parts[codes, rows] = weights
    return Term(float(weights @ L[codes, rows]), parts, parts.sum(axis=1))


def row(L, weights) -> Term:
    """Log p(z), the third sum of (2); its derivative is (8) corrected (errata E-PGK07-2)."""
    marginal = log_sum(L)
    parts = weights * np.exp(L - marginal)
    return Term(float(weights @ marginal), parts, parts.sum(axis=1))


def chunk_given_rows(L, starts, weights) -> Term:
    """Log of the probability sum_c prod p(c | z) that the members of a chunk share a class."""
    posterior = L - log_sum(L)
    shared = np.add.reduceat(weights * posterior, starts, axis=1)
    total = log_sum(shared)
    parts = weights * (_spread(np.exp(shared - total), starts, L) - np.exp(posterior))
    return Term(float(total.sum()), parts, parts.sum(axis=1))


def chunk_of_rows(L, starts, weights, log_alpha) -> Term:
    """Log sum_c alpha_c prod p(z | c): what EM sees of a chunk, (10) and (11).

    The class of a chunk is drawn once, so alpha counts the chunk and not its rows.
    """
    prior = log_alpha[:, None]
    shared = np.add.reduceat(weights * (L - prior), starts, axis=1) + prior
    total = log_sum(shared)
    posterior = np.exp(shared - total)
    return Term(float(total.sum()), weights * _spread(posterior, starts, L), posterior.sum(axis=1))


def chunk_ratio(L, starts, weights, log_alpha) -> Term:
    """Log of (3) as printed: a ratio of densities, no probability (errata E-PGK07-1)."""
    together, apart = chunk_of_rows(L, starts, weights, log_alpha), row(L, weights)
    return combine((1.0, together), (-1.0, apart))


def _spread(posterior, starts, L):
    """Values per chunk repeated over its members."""
    return np.repeat(posterior, np.diff(np.r_[starts, L.shape[1]]), axis=1)
