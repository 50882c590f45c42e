"""The alternation of [PGK07]: EM for the mixture, conjugate gradients on J for the projection.

    z = P'x,    p(z, c) a mixture of Gaussians per class,    P such that P'SP = I

    J = sum over labelled rows of log p(c | z)
        + chunk_weight sum over chunks of log p(members share a class)
        + chunk_weight sum over pairs of log p(they are of different classes)
        + unlabelled_weight sum over other rows of (log p(z) + log det(P'SP) / 2)
        - ridge tr(P'P) / 2

S is the covariance of x, a little shrunk. Without the determinant J has no maximum: any
direction may shrink to nothing (errata E-PGK07-4). With it J does not depend on the
coordinates in the subspace, so P'SP = I costs nothing and leaves the ridge a meaning:
it is large for directions of little variance. A step needs two products with X, whatever the
number of classes and Gaussians.

    here      P    z      S, K = P'SP    ridge          weights of chunks, of unlabelled rows
    [PGK07]   A'   A x    -              norm penalty   lambda_1, lambda_2
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gnomon.models.dcagm.mixture import (
    TINY,
    Mixture,
    Moments,
    Prior,
    Whitened,
    add,
    add_class,
    class_densities,
    first_of_class,
    m_step,
    moments_of,
    no_moments,
    of_class,
    row_densities,
    row_gradient,
    whiten,
)
from gnomon.models.dcagm.rows import Alone, Block, Labelled, Rows

# Added to S as a share of the mean variance of a column, so that P'SP has an inverse where the
# rows vary in fewer directions than P has.
SHRINKAGE = 1e-3
# Pseudo-points of a covariance beyond its q dimensions, so that they alone would determine it, and
# their variance as a share of that of all rows. With 2 or 5 labels a class 0.2 has a log loss of
# .62, 0.05 of .68 and 0.5 of .61 (benchmarks/defaults.py); with a tenth of rows labelled 0.05 is
# as good (benchmarks/dcagm_defaults.py), and the tables of [PGK07] are made with that.
PRIOR_POINTS, PRIOR_SCALE = 2, 0.2
# Steps of EM after each step of the projection; the paper says a few.
N_EM = 5
# Iterations in which the best J must rise by more than tol, else the alternation has settled: EM
# lowers J now and then.
PATIENCE = 5
# The objective as printed lets a direction vanish; its variance stops counting at this share.
COLLAPSED = 1e-8
# The EM as printed has no prior. So few pseudo-points are felt only where the rows of a class leave
# a covariance without inverse.
PRINTED_POINTS = 1e-3


class Model(NamedTuple):
    """Components of the model, weights of the terms of J and of unlabelled rows in EM.

    ``per_gaussian`` gives every Gaussian a covariance of its own; ``as_printed`` makes J the
    objective of eq. (2) of [PGK07] to the letter.
    """

    n_components: int
    chunk_weight: float
    unlabelled_weight: float
    em_weight: float
    ridge: float
    per_gaussian: bool = False
    as_printed: bool = False


class State(NamedTuple):
    """Projection P (d, q), coordinates of the sorted rows Z (n, q), mixture; the last step.

    Of that step the gradient, the direction and the rise of J that its slope promised.
    """

    P: np.ndarray
    Z: np.ndarray
    mixture: Mixture
    gradient: np.ndarray
    direction: np.ndarray
    rise: float


def step(state: State, rows: Rows, model: Model, n_em: int | None = None) -> tuple[State, float]:
    """One step of conjugate gradients on P, then EM; and J of the state it was given."""
    moved, value = ascend(state, rows, model)
    return moved._replace(mixture=run_em(moved.mixture, moved.Z, rows, model, n_em)), value


def state_at(P, Z, mixture: Mixture, rows: Rows, model: Model) -> State:
    """The state at P scaled to P'SP = I, after EM there; nothing is known of a step before."""
    P, Z = scaled(P, Z, rows, model)
    nothing = np.zeros((0, 0))
    return State(P, Z, run_em(mixture, Z, rows, model), nothing, nothing, 0.0)


def run_em(mixture: Mixture, Z, rows: Rows, model: Model, n_em: int | None = None) -> Mixture:
    """The mixture after some steps of EM at coordinates Z."""
    for _ in range(N_EM if n_em is None else n_em):
        mixture, _ = em_step(mixture, Z, rows, model)
    return mixture


def em_step(mixture: Mixture, Z, rows: Rows, model: Model) -> tuple[Mixture, float]:
    """One EM step (9)-(11) of [PGK07], and the log likelihood before it.

    With the log density of the prior added, that never falls.
    """
    moments, value = em_moments(mixture, Z, rows, model)
    if rows.others is not None:
        add(moments, rows.others.moments)
    return m_step(mixture, moments, prior_of(Z, rows, model)), value


def em_moments(mixture: Mixture, Z, rows: Rows, model: Model) -> tuple[Moments, float]:
    """Expected sums under (9)-(11) of [PGK07], and the log likelihood."""
    white, moments, value = whiten(mixture).astype(rows.X.dtype), no_moments(mixture), 0.0
    log_alpha = np.log(mixture.alpha)
    for block in rows.blocks:
        here = Z[block.rows].astype(rows.X.dtype, copy=False)
        if isinstance(block, Labelled) and block.only >= 0:
            value += _add_labelled(white, block, here, moments)
            continue
        found, parts, counts = em_parts(white, block, here, log_alpha, model)
        add(moments, moments_of(mixture, counts, parts, here))
        value += found
    return moments, value


def em_parts(white: Whitened, block: Block, Z, log_alpha, model: Model):
    """What rows add to the log likelihood, their parts (m, n) of Gaussians, counts of classes."""
    if isinstance(block, Alone):
        return alone_parts(white, Z, model.em_weight * block.weights)
    L, parts = class_densities(white, Z)
    term = block.em_term(L, log_alpha, model)
    parts *= term.parts[white.mixture.class_of]
    return term.value, parts, term.counts


def objective_parts(white: Whitened, block: Block, Z, log_alpha, model: Model):
    """What rows add to J, and its derivative by the log joint (m, n)."""
    if isinstance(block, Alone):
        return alone_parts(white, Z, model.unlabelled_weight * block.weights)[:2]
    L, parts = class_densities(white, Z)
    term = block.objective_term(L, log_alpha, model)
    parts *= term.parts[white.mixture.class_of]
    return term.value, parts


def alone_parts(white: Whitened, Z, weights):
    """The same of rows of which nothing is known, whatever the classes of Gaussians are.

    Log p(z) is the third sum of eq. (2) of [PGK07]; it gives eq. (8) corrected (E-PGK07-2).
    """
    marginal, parts = row_densities(white, Z)
    parts *= weights
    counts = np.add.reduceat(parts.sum(axis=1), first_of_class(white.mixture.class_of))
    return float(weights @ marginal), parts, counts


def _add_labelled(white: Whitened, block: Labelled, Z, moments: Moments) -> float:
    """Add the sums of rows of one class, which need its Gaussians only; their log likelihood."""
    part = of_class(white, block.only)
    L, parts = class_densities(part, Z)
    parts *= block.weights
    counts = np.array([block.weights.sum()])
    sums = moments_of(part.mixture, counts, parts, Z)
    add_class(moments, sums, white.mixture, block.only)
    return float(block.weights @ L[0])


def prior_of(Z, rows: Rows, model: Model) -> Prior:
    """Pseudo-points with the shape of all rows but narrower; they keep covariances from collapse.

    The covariance of all rows is I where P'SP = I.
    """
    q = Z.shape[1]
    if not model.as_printed:
        return Prior(q + PRIOR_POINTS, PRIOR_SCALE * np.eye(q))
    S = rows.covariance(Z)
    return Prior(PRINTED_POINTS, S + COLLAPSED * np.trace(S) * np.eye(q))


class Slope(NamedTuple):
    """J at P with Z = XP: its value, and its derivatives by Z (n, q) and, Z fixed, by P (d, q)."""

    value: float
    by_Z: np.ndarray
    by_P: np.ndarray


def objective(P, Z, mixture: Mixture, rows: Rows, model: Model) -> Slope:
    """J of P T for the mixture as it is, where T = K^(-1/2), in terms of P and Z = XP."""
    values, U = spectrum(P, Z, rows, model)
    T = (U / np.sqrt(values)) @ U.T
    value, by_ZT = data_terms(mixture, Z @ T, rows, model)
    penalty, by_P, by_K = through_scale(P, Z.T @ by_ZT, values, U, model)
    slope = Slope(value - penalty, by_ZT @ T, by_P)
    if rows.others is not None:
        return _with_others(slope, P, by_K, rows.others)
    slope.by_Z[:] += (2 / rows.weights.sum()) * (rows.weights[:, None] * Z) @ by_K
    return slope


def _with_others(slope, P, by_K, others):
    """The same with what rows elsewhere add; K is theirs as well."""
    by_P = slope.by_P + 2 * others.covariance @ P @ by_K + others.gradient
    return Slope(slope.value + others.value(P), slope.by_Z, by_P)


def through_scale(P, by_T, values, U, model: Model) -> tuple[float, np.ndarray, np.ndarray]:
    """The ridge of P T, its derivative by P, that of J by K = U diag(values) U', T = K^(-1/2).

    ``by_T`` (q, q) is the derivative by T of the terms of the rows; what is shrunk in K is P's.
    """
    G, T = P.T @ P, (U / np.sqrt(values)) @ U.T
    penalty = 0.5 * model.ridge * float(np.sum(T * (G @ T)))
    by_G = -0.5 * model.ridge * T @ T
    if model.as_printed:
        return penalty, 2 * P @ by_G, np.zeros_like(G)
    by_K = through_root(by_T - model.ridge * G @ T, values, U)
    return penalty, 2 * P @ (by_G + SHRINKAGE * by_K), by_K


def data_terms(mixture: Mixture, Z, rows: Rows, model: Model) -> tuple[float, np.ndarray]:
    """The sums over rows and chunks in J at coordinates Z, and their derivative by Z."""
    value, gradient, white = 0.0, np.empty_like(Z), whiten(mixture).astype(rows.X.dtype)
    log_alpha = np.log(mixture.alpha)
    for block in rows.blocks:
        here = Z[block.rows].astype(rows.X.dtype, copy=False)
        found, parts = objective_parts(white, block, here, log_alpha, model)
        gradient[block.rows] = row_gradient(white, parts, here)
        value += found
    if rows.apart is not None:
        here = Z[rows.apart.rows]
        L, parts = class_densities(white, here)
        term = rows.apart.objective_term(L, log_alpha, model)
        parts *= term.parts[mixture.class_of]
        # A row may be in several pairs.
        np.add.at(gradient, rows.apart.rows, row_gradient(white, parts, here))
        value += term.value
    return value, gradient


def spectrum(P, Z, rows: Rows, model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of K = P'SP; of I for the objective as printed, which leaves P."""
    if model.as_printed:
        return np.ones(P.shape[1]), np.eye(P.shape[1])
    K = rows.covariance(Z) if rows.others is None else P.T @ rows.others.covariance @ P
    values, U = np.linalg.eigh(K + SHRINKAGE * P.T @ P)
    return np.maximum(values, TINY), U


def scaled(P, Z, rows: Rows, model: Model) -> tuple[np.ndarray, np.ndarray]:
    """P and Z = XP times T = K^(-1/2), so that P'SP = I."""
    values, U = spectrum(P, Z, rows, model)
    T = (U / np.sqrt(values)) @ U.T
    return P @ T, Z @ T


def through_root(by_T, values, U) -> np.ndarray:
    """Derivative by K of a function of T = K^(-1/2), from that by T; K = U diag(values) U'."""
    roots = np.sqrt(values)
    factor = np.outer(roots, roots) * (roots[:, None] + roots)
    return -U @ ((U.T @ ((by_T + by_T.T) / 2) @ U) / factor) @ U.T


def ascend(state: State, rows: Rows, model: Model, shorten=1.0) -> tuple[State, float]:
    """One step of conjugate gradients on P, ``shorten`` times as long; and J before it.

    Along a direction D the coordinates are Z + t XD, so that the search needs no product with X.
    """
    P, Z, mixture = state.P, state.Z, state.mixture
    slope = objective(P, Z, mixture, rows, model)
    gradient = rows.by_columns(slope.by_Z) + slope.by_P
    direction = conjugate(gradient, state.gradient, state.direction)
    XD = rows.project(direction)
    steepness = float(np.sum(gradient * direction))
    # The rise of the last step is a guess for this one; at first a step of length 0.1 is.
    rise = state.rise if state.rise > 0 else 0.1 * np.sqrt(steepness)

    def along(t):
        at = objective(P + t * direction, Z + t * XD, mixture, rows, model)
        return at.value, float(np.sum(at.by_Z * XD) + np.sum(at.by_P * direction))

    t = shorten * line_search(along, slope.value, steepness, rise / max(steepness, TINY))
    moved = scaled(P + t * direction, Z + t * XD, rows, model)
    return State(*moved, mixture, gradient, direction, t * steepness), slope.value


def conjugate(gradient, last_gradient, last_direction) -> np.ndarray:
    """Polak and Ribiere's direction, or the gradient where that would not ascend."""
    if not last_gradient.size:
        return gradient
    last = max(np.sum(last_gradient**2), TINY)
    share = np.sum(gradient * (gradient - last_gradient)) / last
    direction = gradient + max(share, 0.0) * last_direction
    return direction if np.sum(direction * gradient) > 0 else gradient


class Point(NamedTuple):
    """A step length with the value and the slope there."""

    t: float
    value: float
    slope: float


def line_search(along: Callable, value, slope, guess, *, n_evaluations=12) -> float:
    """A length that raises ``along(t) -> (value, slope)`` and flattens it, or 0 if none is found.

    Wolfe's conditions, by steps four times as long and then by cubic interpolation between the
    ends of a bracket; the better end is returned when the evaluations are used up.
    """
    if not slope > 0:
        return 0.0
    start = low = Point(0.0, value, slope)
    high, t = None, guess
    for _ in range(n_evaluations):
        point = Point(t, *along(t))
        if not _rises_enough(point, start) or point.value < low.value:
            high = point
        elif abs(point.slope) <= 0.4 * start.slope:
            return t
        else:
            ahead = 1.0 if high is None else high.t - low.t
            high = low if point.slope * ahead < 0 else high
            low = point
        t = 4 * low.t if high is None else _between(low, high)
    return low.t


def _rises_enough(point, start):
    return np.isfinite(point.value) and point.value >= start.value + 1e-4 * point.t * start.slope


def _between(low: Point, high: Point) -> float:
    """Maximum of the cubic through both ends, kept away from them."""
    width = high.t - low.t
    share = 0.5
    if np.isfinite(high.value) and np.isfinite(high.slope):
        d1 = low.slope + high.slope - 3 * (low.value - high.value) / (low.t - high.t)
        root = d1**2 - low.slope * high.slope
        if root >= 0:
            d2 = np.copysign(np.sqrt(root), width)
            bottom = high.slope - low.slope - 2 * d2
            share = 1 - (high.slope - d2 - d1) / bottom if bottom != 0 else 0.5
    return low.t + width * min(max(share, 0.1), 0.9)
