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

from gnomon.linalg.solve import Cholesky

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


def log_joint(mixture: Mixture, Z) -> np.ndarray:
    """Log of alpha beta N(z; mu, Sigma) for each Gaussian and row (m, n)."""
    n, q = Z.shape
    out = np.empty((len(mixture.owner), n))
    constants = np.log(mixture.alpha)[mixture.owner] + np.log(
        np.maximum(mixture.beta, LEAST_WEIGHT)
    )
    for s, covariance in enumerate(mixture.covariances):
        factor = Cholesky(covariance)
        members = np.flatnonzero(mixture.form == s)
        rows = factor.half_solve(Z.T)
        centres = factor.half_solve(mixture.means[members].T)
        constant = -0.5 * (q * np.log(2 * np.pi) + factor.logdet())
        for g, centre in zip(members, centres.T, strict=True):
            away = rows - centre[:, None]
            out[g] = constants[g] + constant - 0.5 * np.einsum("in,in->n", away, away)
    return out


def by_class(mixture: Mixture, joint) -> np.ndarray:
    """Log p(z, c) for each class and row (c, n), from the log joint of its Gaussians."""
    starts = first_of_class(mixture.owner)
    if len(starts) == len(mixture.owner):
        return joint
    top = np.maximum.reduceat(joint, starts, axis=0)
    return top + np.log(np.add.reduceat(np.exp(joint - top[mixture.owner]), starts, axis=0))


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


def add(first: Moments | None, second: Moments) -> Moments:
    """Sum of the moments of two sets of rows; None is the empty set."""
    return (
        second if first is None else Moments(*(a + b for a, b in zip(first, second, strict=True)))
    )


def scatters(mixture: Mixture, moments: Moments, means) -> np.ndarray:
    """Weighted scatter about the means for each covariance (s, q, q)."""
    out = moments.squares.copy()
    for g, s in enumerate(mixture.form):
        cross = np.outer(moments.sums[g], means[g])
        out[s] += moments.gaussians[g] * np.outer(means[g], means[g]) - cross - cross.T
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
    reference, total = Cholesky(prior.covariance).logdet(), 0.0
    for covariance in mixture.covariances:
        factor = Cholesky(covariance)
        total += factor.logdet() - reference + np.trace(factor.solve(prior.covariance))
    return -0.5 * prior.points * total


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
