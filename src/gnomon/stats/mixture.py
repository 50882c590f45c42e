"""Mixtures of Gaussians, several to a class, on coordinates Z.

    p(z, c) = sum over the Gaussians g of class c of  alpha_c beta_g N(z; mu_g, Sigma_s(g))

All Gaussians stand in one list, class after class, so that classes may have different numbers
of them; ``form`` says which covariance a Gaussian has: that of its class, or one of its own.
Arrays over Gaussians or classes and rows have the rows last, (m, n) and (c, n).

    here      alpha         beta      mu, Sigma     c    m
    [PGK07]   alpha_c       beta_ck   mu_ck, Sigma_c   C    sum of K over the classes
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.solve import Cholesky, stacked_half_inverses

# A Gaussian nobody belongs to keeps its place; its weight must not become log 0.
LEAST_WEIGHT = 1e-300


class Mixture(NamedTuple):
    """Gaussians (m) of classes (c) with covariances (s) in q dimensions."""

    owner: np.ndarray
    form: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class Prior(NamedTuple):
    """Pseudo-points that every covariance is given, and their covariance (q, q)."""

    points: float
    covariance: np.ndarray


class Moments(NamedTuple):
    """Weighted sums over rows; they add over blocks of rows.

    classes (c,) counts what alpha counts; Gaussians (m,), sums (m, q), squares (s, q, q).
    """

    classes: np.ndarray
    gaussians: np.ndarray
    sums: np.ndarray
    squares: np.ndarray


def forms(owner, per_gaussian) -> np.ndarray:
    """Which covariance each Gaussian has: the one of its class, or its own."""
    return np.arange(len(owner)) if per_gaussian else np.asarray(owner)


class Whitened(NamedTuple):
    """A mixture made ready for many rows: A (s, q, q) with A Sigma A' = I, and constants (m,).

    The constants are the log densities at the means, the weights included.
    """

    mixture: Mixture
    factors: np.ndarray
    constants: np.ndarray


def whiten(mixture: Mixture) -> Whitened:
    """Factors and constants of the log densities, computed once for all blocks of rows."""
    q = mixture.means.shape[1]
    factors, logdets = stacked_half_inverses(mixture.covariances)
    weights = np.log(mixture.alpha)[mixture.owner] + np.log(np.maximum(mixture.beta, LEAST_WEIGHT))
    constants = weights - 0.5 * (q * np.log(2 * np.pi) + logdets[mixture.form])
    return Whitened(mixture, factors, constants)


def log_joint(mixture: Mixture | Whitened, Z) -> np.ndarray:
    """Log of alpha beta N(z; mu, Sigma) for each Gaussian and row (m, n)."""
    white = mixture if isinstance(mixture, Whitened) else whiten(mixture)
    owned = white.mixture.form
    out = np.empty((len(owned), len(Z)))
    for s, factor in enumerate(white.factors):
        rows = factor @ Z.T
        for g in np.flatnonzero(owned == s):
            away = rows - (factor @ white.mixture.means[g])[:, None]
            np.sum(np.square(away, out=away), axis=0, out=out[g])
    out *= -0.5
    out += white.constants[:, None]
    return out


def by_class(mixture: Mixture, joint) -> np.ndarray:
    """Log p(z, c) for each class and row (c, n), from the log joint of its Gaussians."""
    return split_classes(mixture, joint)[0]


def split_classes(mixture: Mixture, joint) -> tuple[np.ndarray, np.ndarray]:
    """Log p(z, c), classes by rows, and p(g | z, c), Gaussians by rows (6)."""
    starts = first_of_class(mixture.owner)
    ends = np.append(starts[1:], len(mixture.owner))
    L, shares = np.empty((len(starts), joint.shape[1])), np.empty_like(joint)
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


def first_of_class(owner) -> np.ndarray:
    """Where each class begins in the list of Gaussians."""
    return np.flatnonzero(np.r_[True, np.diff(owner) > 0])


def gather(mixture: Mixture, counts, parts, Z) -> Moments:
    """Sums of rows Z (n, q) under the parts (m, n) that Gaussians have in them."""
    squares = np.zeros_like(mixture.covariances)
    for s in range(len(squares)):
        weights = parts[mixture.form == s].sum(axis=0)
        squares[s] = (Z * weights[:, None]).T @ Z
    return Moments(counts, parts.sum(axis=1), parts @ Z, squares)


def add(first: Moments, second: Moments) -> Moments:
    """Sum of the moments of two sets of rows."""
    return Moments(*(a + b for a, b in zip(first, second, strict=True)))


def scatters(mixture: Mixture, moments: Moments, means) -> np.ndarray:
    """Weighted scatter about the means for each covariance (s, q, q)."""
    away = moments.gaussians[:, None] * means - 2 * moments.sums
    out = moments.squares.copy()
    np.add.at(out, mixture.form, away[:, :, None] * means[:, None, :])
    return (out + out.swapaxes(1, 2)) / 2


def m_step(mixture: Mixture, moments: Moments, prior: Prior) -> Mixture:
    """Weights, means and covariances that maximise the expected log joint and the prior.

    alpha counts ``moments.classes``, where a chunk counts once whatever its size;
    counting its rows instead is no ascent step (errata E-PGK07-3).
    """
    counts = moments.gaussians
    seen = counts > LEAST_WEIGHT
    means = mixture.means.copy()
    means[seen] = moments.sums[seen] / counts[seen, None]
    per_form = np.bincount(mixture.form, counts, minlength=len(mixture.covariances))
    scatter = scatters(mixture, moments, means) + prior.points * prior.covariance
    totals = np.bincount(mixture.owner, counts)[mixture.owner]
    return mixture._replace(
        alpha=moments.classes / moments.classes.sum(),
        beta=np.where(totals > 0, counts / np.maximum(totals, LEAST_WEIGHT), mixture.beta),
        means=means,
        covariances=scatter / (per_form + prior.points)[:, None, None],
    )


def log_prior(mixture: Mixture, prior: Prior) -> float:
    """Log density of the covariances under the pseudo-points, less a constant.

    Zero where a covariance equals that of the pseudo-points in determinant; the determinants
    are taken relative to it, so that the value does not change with the coordinates.
    """
    if prior.points == 0:
        return 0.0
    reference = Cholesky(prior.covariance).logdet()
    factors, logdets = stacked_half_inverses(mixture.covariances)
    traces = np.einsum("sij,jk,sik->s", factors, prior.covariance, factors)
    return -0.5 * prior.points * float(np.sum(logdets - reference + traces))


def of_class(white: Whitened, c: int) -> Whitened:
    """The Gaussians of one class alone, as a mixture of one class."""
    mixture = white.mixture
    own = mixture.owner == c
    kept = np.unique(mixture.form[own])
    part = Mixture(
        np.zeros(own.sum(), dtype=int),
        np.searchsorted(kept, mixture.form[own]),
        mixture.alpha[c : c + 1],
        mixture.beta[own],
        mixture.means[own],
        mixture.covariances[kept],
    )
    return Whitened(part, white.factors[kept], white.constants[own])


def place(mixture: Mixture, c: int, part: Moments, total: Moments):
    """Add the moments of one class to those of all, in place."""
    own = mixture.owner == c
    total.classes[c] += part.classes[0]
    total.gaussians[own] += part.gaussians
    total.sums[own] += part.sums
    total.squares[np.unique(mixture.form[own])] += part.squares


def no_moments(mixture: Mixture) -> Moments:
    """Zeros to add to."""
    return Moments(
        np.zeros_like(mixture.alpha),
        np.zeros_like(mixture.beta),
        np.zeros_like(mixture.means),
        np.zeros_like(mixture.covariances),
    )


def moved(mixture: Mixture, M) -> Mixture:
    """The mixture of Z M when this one is that of Z."""
    return mixture._replace(means=mixture.means @ M, covariances=M.T @ mixture.covariances @ M)


def class_covariances(mixture: Mixture) -> np.ndarray:
    """Covariance of each class, its Gaussians and their spread together (c, q, q)."""
    q = mixture.means.shape[1]
    out = np.zeros((len(mixture.alpha), q, q))
    for c in range(len(out)):
        own = np.flatnonzero(mixture.owner == c)
        away = mixture.means[own] - mixture.beta[own] @ mixture.means[own]
        out[c] = (mixture.beta[own] * away.T) @ away
        for g in own:
            out[c] += mixture.beta[g] * mixture.covariances[mixture.form[g]]
    return out
