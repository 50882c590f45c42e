"""Mixtures of Gaussians, several to a class, on coordinates Z: eq. (1) of [PGK07].

    p(z, c) = sum over the Gaussians g of class c of  alpha_c beta_g N(z; mu_g, Sigma_s(g))

All Gaussians stand in one list, class after class, so that classes may have different numbers
of them. A Gaussian has the covariance of its class or, as section 2.2 of the paper allows, one
of its own; ``covariance_of`` says which. Arrays over Gaussians or classes and rows have the
rows last, (m, n) and (c, n).

    here      alpha         beta      mu, Sigma        c    m
    [PGK07]   alpha_c       beta_ck   mu_ck, Sigma_c   C    sum of K over the classes
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.linalg.solve import stacked_half_inverses

# The floor of what a logarithm is taken of or a number divided by: a Gaussian without rows keeps
# its place, and its weight must not become log 0.
TINY = np.finfo(float).tiny
# Entries of A z that are worked on at a time: few enough for the cache.
ENTRIES_AT_ONCE = 2**19
# Products z_a z_b of a row up to which squared lengths and sums of squares are products with these.
MOST_PRODUCTS = 300


class Mixture(NamedTuple):
    """Gaussians (m) of classes (c) with covariances (s) in q dimensions.

    ``class_of`` (m,) is the class of each Gaussian, ascending, and ``covariance_of`` (m,) its
    place among the covariances (s, q, q).
    """

    class_of: np.ndarray
    covariance_of: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class Prior(NamedTuple):
    """Pseudo-points that are added to every covariance, and their covariance (q, q)."""

    points: float
    covariance: np.ndarray


class Moments(NamedTuple):
    """Weighted sums over rows; those of several sets of rows add up.

    ``classes`` (c,) counts what alpha counts; then per Gaussian the weight of its rows (m,) and
    their sum (m, q), and per covariance the sum of their squares (s, q, q).
    """

    classes: np.ndarray
    gaussians: np.ndarray
    sums: np.ndarray
    squares: np.ndarray


class Whitened(NamedTuple):
    """A mixture made ready for many rows: A (s, q, q) with A Sigma A' = I, and what goes with it.

    The log density of a Gaussian, its weights included, is constant + slope'z - |A z|^2 / 2; the
    last is ``halves`` (s, q (q + 1) / 2) times the products z_a z_b of a row.
    """

    mixture: Mixture
    factors: np.ndarray
    slopes: np.ndarray
    constants: np.ndarray
    halves: np.ndarray

    def astype(self, dtype) -> "Whitened":
        """The same for rows of another precision."""
        return Whitened(self.mixture, *(part.astype(dtype) for part in self[1:]))

    @property
    def precisions(self) -> np.ndarray:
        """A'A (s, q, q)."""
        return self.factors.swapaxes(1, 2) @ self.factors


def whiten(mixture: Mixture) -> Whitened:
    """Factors, slopes and constants of the log densities, computed once for all blocks of rows."""
    q = mixture.means.shape[1]
    factors, logdets = stacked_half_inverses(mixture.covariances)
    of_gaussian = factors[mixture.covariance_of]
    centres = np.einsum("gab,gb->ga", of_gaussian, mixture.means)
    slopes = np.einsum("gab,ga->gb", of_gaussian, centres)
    constants = np.log(mixture.alpha)[mixture.class_of]
    constants += np.log(np.maximum(mixture.beta, TINY))
    constants -= 0.5 * (q * np.log(2 * np.pi) + logdets[mixture.covariance_of])
    constants -= 0.5 * np.sum(centres**2, axis=1)
    a, b = np.triu_indices(q)
    halves = (factors.swapaxes(1, 2) @ factors)[:, a, b] * np.where(a == b, 0.5, 1.0)
    return Whitened(mixture, factors, slopes, constants, halves)


def log_joint(white: Whitened, Z) -> np.ndarray:
    """Log of alpha beta N(z; mu, Sigma) for each Gaussian and row (m, n)."""
    columns = np.ascontiguousarray(Z.T)
    out = white.slopes @ columns
    out += white.constants[:, None]
    out -= _lengths(white, columns)[white.mixture.covariance_of]
    return out


def _lengths(white, columns):
    """Half the squared length of A z for each covariance and row (s, n)."""
    if _few_products(len(columns)):
        return white.halves @ _products(columns)
    lengths = np.empty((len(white.factors), columns.shape[1]), dtype=columns.dtype)
    for some, A in _runs(white.factors, columns.shape[1]):
        Az = A @ columns
        np.square(Az, out=Az)
        np.sum(Az.reshape(-1, *columns.shape), axis=1, out=lengths[some])
    lengths *= 0.5
    return lengths


def _few_products(q):
    return q * (q + 1) // 2 <= MOST_PRODUCTS


def _products(columns):
    """All z_a z_b with a <= b (q (q + 1) / 2, n)."""
    q, n = columns.shape
    out, start = np.empty((q * (q + 1) // 2, n), dtype=columns.dtype), 0
    for a in range(q):
        stop = start + q - a
        np.multiply(columns[a], columns[a:], out=out[start:stop])
        start = stop
    return out


def row_gradient(white: Whitened, parts, Z) -> np.ndarray:
    """Derivative by z (n, q) of a term whose derivative by the log joint is ``parts`` (m, n).

    With those of the terms of J this is eq. (4), (7) and (8) of [PGK07] before the factor x'.
    """
    columns, weights = np.ascontiguousarray(Z.T), by_covariance(white.mixture, parts)
    out = white.slopes.T @ parts
    if _few_products(len(columns)):
        summed = (white.precisions.reshape(len(weights), -1).T @ weights).reshape(
            -1, *columns.shape
        )
        summed *= columns
        return (out - summed.sum(axis=1)).T
    for some, A in _runs(white.factors, len(Z)):
        Az = A @ columns
        Az.reshape(-1, *columns.shape)[:] *= weights[some, None]
        out -= A.T @ Az
    return out.T


def _runs(factors, n):
    """Some factors at a time, stacked (k q, q), with their places."""
    s, q, _ = factors.shape
    size = max(1, ENTRIES_AT_ONCE // max(1, q * n))
    for start in range(0, s, size):
        some = slice(start, start + size)
        yield some, factors[some].reshape(-1, q)


def by_covariance(mixture: Mixture, parts) -> np.ndarray:
    """Parts of the Gaussians (m, n) added up for each covariance (s, n)."""
    s, m = len(mixture.covariances), len(parts)
    if s == m:
        return parts
    # Sparse, as each Gaussian has one: of 500 classes a dense product took nearly half of a fit.
    places = mixture.covariance_of, np.arange(m)
    return sparse.csr_array((np.ones(m, parts.dtype), places), shape=(s, m)) @ parts


def row_densities(white: Whitened, Z) -> tuple[np.ndarray, np.ndarray]:
    """Log p(z) (n,), and p(g | z) for each Gaussian (m, n)."""
    shares = log_joint(white, Z)
    top = shares.max(axis=0)
    shares -= top
    np.exp(shares, out=shares)
    total = shares.sum(axis=0)
    shares /= total
    return top + np.log(total), shares


def class_densities(white: Whitened, Z) -> tuple[np.ndarray, np.ndarray]:
    """Log p(z, c) for each class and row (c, n), and p(g | z, c) (m, n), eq. (6) of [PGK07]."""
    return by_class(log_joint(white, Z), white.mixture.class_of)


def by_class(joint, class_of) -> tuple[np.ndarray, np.ndarray]:
    """The same from log p(z, g) (m, n)."""
    starts = first_of_class(class_of)
    ends = np.append(starts[1:], len(joint))
    L, shares = np.empty((len(starts), joint.shape[1]), joint.dtype), np.empty_like(joint)
    for c, (a, b) in enumerate(zip(starts, ends, strict=True)):
        top = joint[a:b].max(axis=0)
        own = np.exp(joint[a:b] - top, out=shares[a:b])
        total = own.sum(axis=0)
        own /= total
        L[c] = top + np.log(total)
    return L, shares


def log_sum(values) -> np.ndarray:
    """Log of the sum of exponentials down the first axis, without overflow."""
    top = values.max(axis=0)
    return top + np.log(np.exp(values - top).sum(axis=0))


def first_of_class(class_of) -> np.ndarray:
    """Where each class begins in the list of Gaussians."""
    return np.flatnonzero(np.r_[True, np.diff(class_of) > 0])


def no_moments(mixture: Mixture) -> Moments:
    """Zeros to add to."""
    return Moments(
        np.zeros_like(mixture.alpha),
        np.zeros_like(mixture.beta),
        np.zeros_like(mixture.means),
        np.zeros_like(mixture.covariances),
    )


def moments_of(mixture: Mixture, counts, parts, Z) -> Moments:
    """Sums of rows Z (n, q), of which each Gaussian has its parts (m, n)."""
    squares = _squares(by_covariance(mixture, parts), Z)
    return Moments(counts, parts.sum(axis=1), parts @ Z, squares)


def _squares(weights, Z):
    """Sums of z z' (s, q, q), of which each covariance has its weights (s, n)."""
    q, columns = Z.shape[1], np.ascontiguousarray(Z.T)
    if not _few_products(q):
        return np.stack([(columns * own) @ Z for own in weights])
    a, b = np.triu_indices(q)
    squares = np.empty((len(weights), q, q))
    squares[:, a, b] = squares[:, b, a] = (_products(columns) @ weights.T).T
    return squares


def add(total: Moments, part: Moments):
    """Add the moments of more rows to the total, in place."""
    for sums, more in zip(total, part, strict=True):
        sums += more


def add_class(total: Moments, part: Moments, mixture: Mixture, c: int):
    """Add the moments of rows of class c, from the mixture of that class alone, in place."""
    own = mixture.class_of == c
    total.classes[c] += part.classes[0]
    total.gaussians[own] += part.gaussians
    total.sums[own] += part.sums
    total.squares[np.unique(mixture.covariance_of[own])] += part.squares


def of_class(white: Whitened, c: int) -> Whitened:
    """The Gaussians of class c alone, as a mixture of one class."""
    mixture = white.mixture
    own = mixture.class_of == c
    kept = np.unique(mixture.covariance_of[own])
    part = Mixture(
        np.zeros(own.sum(), dtype=int),
        np.searchsorted(kept, mixture.covariance_of[own]),
        mixture.alpha[c : c + 1],
        mixture.beta[own],
        mixture.means[own],
        mixture.covariances[kept],
    )
    of_gaussians = white.slopes[own], white.constants[own]
    return Whitened(part, white.factors[kept], *of_gaussians, white.halves[kept])


def m_step(mixture: Mixture, moments: Moments, prior: Prior) -> Mixture:
    """Weights, means and covariances that maximise the expected log joint and the prior.

    alpha counts ``moments.classes``, where a chunk counts once whatever its size;
    counting its rows instead is no ascent step (errata E-PGK07-3). A class without rows, as in
    a small batch, stays as it is.
    """
    counts, of_class = moments.gaussians, moments.classes
    of_class = np.where(of_class > TINY, of_class, mixture.alpha * of_class.sum())
    seen = counts > TINY
    means = mixture.means.copy()
    means[seen] = moments.sums[seen] / counts[seen, None]
    scatter = _scatters(mixture, moments, means) + prior.points * prior.covariance
    rows = np.bincount(mixture.covariance_of, counts, minlength=len(scatter))
    totals = np.bincount(mixture.class_of, counts)[mixture.class_of]
    return mixture._replace(
        alpha=of_class / of_class.sum(),
        beta=np.where(totals > 0, counts / np.maximum(totals, TINY), mixture.beta),
        means=means,
        covariances=scatter / (rows + prior.points)[:, None, None],
    )


def _scatters(mixture, moments, means):
    """Weighted scatter about the means for each covariance (s, q, q)."""
    away = moments.gaussians[:, None] * means - 2 * moments.sums
    out = moments.squares.copy()
    np.add.at(out, mixture.covariance_of, away[:, :, None] * means[:, None, :])
    return (out + out.swapaxes(1, 2)) / 2


def moved(mixture: Mixture, M) -> Mixture:
    """The mixture of Z M when this one is that of Z."""
    return mixture._replace(means=mixture.means @ M, covariances=M.T @ mixture.covariances @ M)


def class_covariances(mixture: Mixture) -> np.ndarray:
    """Covariance of each class (c, q, q): within its Gaussians and between their means."""
    q = mixture.means.shape[1]
    out = np.zeros((len(mixture.alpha), q, q))
    for c in range(len(out)):
        own = np.flatnonzero(mixture.class_of == c)
        away = mixture.means[own] - mixture.beta[own] @ mixture.means[own]
        out[c] = (mixture.beta[own] * away.T) @ away
        for g in own:
            out[c] += mixture.beta[g] * mixture.covariances[mixture.covariance_of[g]]
    return out
