"""Discriminative components by Gaussian mixtures [PGK07], from labels, chunks and plain rows.

    z = P'x,    p(z, c) a mixture of Gaussians per class,    P such that P'SP = I

    J = sum over labelled rows of log p(c | z)
        + chunk_weight sum over chunks of log p(members share a class)
        + unlabelled_weight sum over other rows of (log p(z) + log det(P'SP) / 2)
        - ridge tr(P'P) / 2

S is the covariance of x, a little shrunk. Without the determinant J has no maximum: any
direction may shrink to nothing (errata E-PGK07-4). With it J does not depend on the
coordinates in the subspace, so P'SP = I costs nothing and leaves the ridge a meaning:
it is large for directions of little variance. The mixture follows by EM, P by conjugate
gradients; a step needs two products with X, all classes and Gaussians together.

    here      P    z      S, K = P'SP    ridge          weights of chunks, of unlabelled rows
    [PGK07]   A'   A x    -              norm penalty   lambda_1, lambda_2
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data
from gnomon.stats.discriminant import clusters
from gnomon.stats.known_rows import Labelled, Rows
from gnomon.stats.mixture import (
    Mixture,
    Moments,
    Prior,
    Whitened,
    add,
    first_of_class,
    forms,
    gather,
    log_joint,
    m_step,
    no_moments,
    of_class,
    place,
    split_classes,
    whiten,
)

# The paper's objective lets a direction vanish; its variance stops counting at this share.
COLLAPSED = 1e-8


class Settings(NamedTuple):
    """Weights of the terms, and whether the objective is the one printed in the paper."""

    chunk_weight: float
    unlabelled_weight: float
    em_weight: float
    ridge: float
    shrinkage: float
    prior_count: float
    prior_scale: float
    n_em: int = 5
    per_gaussian: bool = False
    as_printed: bool = False
    generative_weight: float = 0.0


def visit(white: Whitened, Z, blocks, kind, settings) -> Iterator[tuple]:
    """Block after block: its rows, its term of that kind, and the parts of all Gaussians."""
    mixture, log_alpha = white.mixture, np.log(white.mixture.alpha)
    for block in blocks:
        L, shares = split_classes(mixture, log_joint(white, Z[block.rows]))
        term = getattr(block, kind)(L, log_alpha, settings)
        shares *= term.parts[mixture.owner]
        yield block.rows, term, shares


def prior_of(Z, rows: Rows, settings: Settings) -> Prior:
    """Pseudo-points spread like all rows but narrower; they keep covariances from collapse.

    The spread of all rows is I in the gauge P'SP = I.
    """
    S = np.eye(Z.shape[1])
    if settings.as_printed:
        S = (Z.T * rows.weights) @ Z / rows.weights.sum()
        S += COLLAPSED * np.trace(S) * np.eye(len(S))
    return Prior(settings.prior_count, settings.prior_scale * S)


def em_step(mixture: Mixture, Z, rows: Rows, settings: Settings) -> tuple[Mixture, float]:
    """One EM step (9)-(11), and the log likelihood it started from.

    With the log prior added, that never falls.
    """
    moments, value = em_moments(mixture, Z, rows, settings)
    return m_step(mixture, moments, prior_of(Z, rows, settings)), value


def em_moments(mixture: Mixture, Z, rows: Rows, settings) -> tuple[Moments, float]:
    """Expected sums under (9)-(11), and the log likelihood."""
    white, moments, value = whiten(mixture), no_moments(mixture), 0.0
    of_one = [b for b in rows.blocks if isinstance(b, Labelled) and b.only >= 0]
    others = [b for b in rows.blocks if not (isinstance(b, Labelled) and b.only >= 0)]
    for block, term, parts in visit(white, Z, others, "generate", settings):
        moments = add(moments, gather(mixture, term.counts, parts, Z[block]))
        value += term.value
    for block in of_one:
        value += _add_class(white, block, Z[block.rows], moments)
    return moments, value


def _add_class(white, block: Labelled, Z, moments: Moments) -> float:
    """Add the sums of rows of one known class, seen by its Gaussians only."""
    part = of_class(white, block.only)
    L, shares = split_classes(part.mixture, log_joint(part, Z))
    shares *= block.weights
    counts = np.array([block.weights.sum()])
    place(white.mixture, block.only, gather(part.mixture, counts, shares, Z), moments)
    return float(block.weights @ L[0])


def row_gradient(white: Whitened, parts, Z) -> np.ndarray:
    """Derivative by z (n, q) of a term whose derivative by the log joint is ``parts``."""
    out = np.zeros_like(Z.T)
    for s, factor in enumerate(white.factors):
        own = white.mixture.form == s
        away = parts[own].sum(axis=0) * Z.T - white.mixture.means[own].T @ parts[own]
        out -= factor.T @ (factor @ away)
    return out.T


def data_terms(mixture: Mixture, Z, rows: Rows, settings) -> tuple[float, np.ndarray]:
    """Labelled, chunk and unlabelled terms of J at coordinates Z, and their derivative by Z."""
    value, gradient, white = 0.0, np.empty_like(Z), whiten(mixture)
    for block, term, parts in visit(white, Z, rows.blocks, "discriminate", settings):
        value += term.value
        gradient[block] = row_gradient(white, parts, Z[block])
    return value, gradient


class Slope(NamedTuple):
    """J at P with Z = XP and G = P'P: its value and its derivatives by Z (n, q) and G (q, q)."""

    value: float
    by_Z: np.ndarray
    by_G: np.ndarray


def whitening(Z, G, rows: Rows, settings: Settings):
    """T = K^(-1/2) for K = P'SP, with which P T has P'SP = I; the eigenpairs of K."""
    if settings.as_printed:
        return np.eye(len(G)), None
    K = (Z.T * rows.weights) @ Z / rows.weights.sum() + settings.shrinkage * G
    values, U = np.linalg.eigh(K)
    values = np.maximum(values, np.finfo(float).tiny)
    return (U / np.sqrt(values)) @ U.T, (values, U)


def objective(Z, G, mixture: Mixture, rows: Rows, settings: Settings) -> Slope:
    """J of P T for the mixture as it is, in terms of Z = XP and G = P'P."""
    T, spectrum = whitening(Z, G, rows, settings)
    value, by_ZT = data_terms(mixture, Z @ T, rows, settings)
    return through_gauge((value, by_ZT), Z, G, (T, spectrum), rows, settings)


def through_gauge(at_ZT, Z, G, gauge, rows: Rows, settings: Settings) -> Slope:
    """A function of ZT and its derivative by it, less the ridge, as a function of Z and G."""
    (value, by_ZT), (T, spectrum) = at_ZT, gauge
    value -= 0.5 * settings.ridge * np.sum(T * (G @ T))
    by_G = -0.5 * settings.ridge * T @ T
    if spectrum is None:
        return Slope(value, by_ZT, by_G)
    by_K = through_root(Z.T @ by_ZT - settings.ridge * G @ T, *spectrum)
    by_Z = by_ZT @ T + (2 / rows.weights.sum()) * (rows.weights[:, None] * Z) @ by_K
    return Slope(value, by_Z, by_G + settings.shrinkage * by_K)


def through_root(by_T, values, U) -> np.ndarray:
    """Derivative by K of a function of T = K^(-1/2), from that by T; K = U diag(values) U'."""
    roots = np.sqrt(values)
    factor = np.outer(roots, roots) * (roots[:, None] + roots)
    return -U @ ((U.T @ ((by_T + by_T.T) / 2) @ U) / factor) @ U.T


class State(NamedTuple):
    """Projection, coordinates of the rows in sorted order, mixture; the last ascent."""

    P: np.ndarray
    Z: np.ndarray
    mixture: Mixture
    gradient: np.ndarray
    direction: np.ndarray
    length: float


Search = Callable[[Callable, float, float, float], float]


def settle(P, Z, mixture: Mixture, rows: Rows, settings: Settings) -> State:
    """A state in the gauge P'SP = I; ``mixture`` is that of the coordinates in this gauge."""
    T, _ = whitening(Z, P.T @ P, rows, settings)
    P, Z = P @ T, Z @ T
    for _ in range(settings.n_em):
        mixture, _ = em_step(mixture, Z, rows, settings)
    nothing = np.zeros((0, 0))
    return State(P, Z, mixture, nothing, nothing, 0.0)


def start(P, X: Data, rows: Rows, owner, settings: Settings, rng=None) -> State:
    """The state at directions P: clusters in the labelled rows of each class, then EM."""
    Z = rows.sort(np.asarray(X @ P, dtype=float))
    T, _ = whitening(Z, P.T @ P, rows, settings)
    mixture = cluster_mixture(Z @ T, rows, owner, settings, rng)
    return settle(P, Z, mixture, rows, settings)


def cluster_mixture(Z, rows: Rows, owner, settings: Settings, rng=None) -> Mixture:
    """A Gaussian for each cluster of the labelled rows of each class, by k-means."""
    known = [block for block in rows.blocks if isinstance(block, Labelled)]
    codes = np.concatenate([block.codes for block in known])
    Z_known, w = Z[: len(codes)], rows.weights[: len(codes)]
    counts = np.bincount(codes, w)
    parts = np.zeros((len(owner), len(codes)))
    means = np.empty((len(owner), Z.shape[1]))
    for c, first in enumerate(first_of_class(owner)):
        own = np.flatnonzero(codes == c)
        ids = clusters(Z_known[own], w[own], np.sum(owner == c), rng)
        parts[first + ids, own] = w[own]
        means[owner == c] = w[own] @ Z_known[own] / counts[c]
    form, q = forms(owner, settings.per_gaussian), Z.shape[1]
    beta = 1.0 / np.bincount(owner)[owner]
    empty = Mixture(owner, form, counts, beta, means, np.zeros((form.max() + 1, q, q)))
    return m_step(empty, gather(empty, counts, parts, Z_known), prior_of(Z, rows, settings))


def step(state: State, X: Data, rows: Rows, settings: Settings, search: Search):
    """One step of conjugate gradients on P, then EM; and J of the state it was given."""
    P, Z, mixture = state.P, state.Z, state.mixture
    slope = objective(Z, P.T @ P, mixture, rows, settings)
    gradient = X.T @ rows.restore(slope.by_Z) + 2 * P @ slope.by_G
    direction = conjugate(gradient, state.gradient, state.direction)
    XD = rows.sort(np.asarray(X @ direction, dtype=float))
    steepness = float(np.sum(gradient * direction))
    rise = state.length if state.length > 0 else 0.1 * np.sqrt(steepness)

    def along(t):
        G, by_t = _moved_gram(P, direction, t)
        at = objective(Z + t * XD, G, mixture, rows, settings)
        return at.value, float(np.sum(at.by_Z * XD) + np.sum(at.by_G * by_t))

    t = search(along, slope.value, steepness, rise / max(steepness, np.finfo(float).tiny))
    moved = settle(P + t * direction, Z + t * XD, mixture, rows, settings)
    moved = moved._replace(gradient=gradient, direction=direction, length=t * steepness)
    return moved, slope.value


def _moved_gram(P, D, t):
    """(P + tD)'(P + tD) and its derivative by t."""
    B, BD = P + t * D, (P + t * D).T @ D
    return B.T @ B, BD + BD.T


def conjugate(gradient, last_gradient, last_direction) -> np.ndarray:
    """Polak and Ribiere's direction, or the gradient where that would not ascend."""
    if not last_gradient.size:
        return gradient
    last = max(np.sum(last_gradient**2), np.finfo(float).tiny)
    share = np.sum(gradient * (gradient - last_gradient)) / last
    direction = gradient + max(share, 0.0) * last_direction
    return direction if np.sum(direction * gradient) > 0 else gradient
