"""A relational model: rows share a smooth part over their links, and keep a part of their own.

    X = 1 mu' + sum_{k <= q} (f_k + g_k) u_k' + sum_{q < k <= q + r} g_k u_k' + E,    U'U = I
    f_k ~ N(0, a_k h(L; beta_k)),    g_k ~ N(0, c_k I),    E_ij ~ N(0, sigma2)
    h(L; beta) = (I + beta L)^-2,    L = I - S,    S = D^(-1/2) (A + I) D^(-1/2)

f is shared: positively correlated between linked rows, the more the larger beta_k. g is a row's
own. The further r axes carry variation that links say nothing about, which leaves the first
q to the smooth part. With a = 0 this is PPCA with q + r components. In the eigenbasis of L and
U everything is independent: axis k has variance v_k(lambda) = a_k h(lambda; beta_k) + c_k +
sigma2 at eigenvalue lambda, so all is exact with functions of L, from products with S alone.

    here      X, n, d     U, q, r     a, c, beta, sigma2     s = (X - 1 mu') U
    [LYZ09]   T', N, d    -           -                      -
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gnomon.linalg.data import Data
from gnomon.linalg.lanczos import Density, Krylov, apply, lanczos
from gnomon.linalg.mixed import Mixed

# Lanczos steps from the scores: nodes of the likelihood and the filtered scores.
STEPS = 16
# Bounds of log a, log c and log beta; variances are relative to the mean variance of an entry.
LOG_VARIANCE, LOG_BETA = (-25.0, 30.0), (-7.0, 9.0)
# Share of the mean variance below which the noise may not fall.
NOISE_FLOOR = 1e-10


class Relational(NamedTuple):
    """Axes U (d, q + r), shared variances a (q,), own variances c (q + r,), beta (q,), sigma2."""

    U: np.ndarray
    a: np.ndarray
    c: np.ndarray
    beta: np.ndarray
    sigma2: float


class Linked(NamedTuple):
    """Centred rows X, their squared norm, S, and the spectrum of L.

    ``spread`` (d, d) is the sum of the covariances of missing entries, None where none miss.
    """

    X: Data
    total: float
    S: Any
    spectrum: Density
    spread: np.ndarray | None = None
    steps: int = STEPS


class Statistics(NamedTuple):
    """What the likelihood needs of the rows, for given axes.

    Scores s (n, q + r) and their Krylov spaces, quadrature nodes lambda (m, q) with the counts
    of eigenvalues and the squared scores that fall to each, energies of the own axes (r,),
    and the squared norm outside of all axes.
    """

    scores: np.ndarray
    krylov: Krylov
    nodes: np.ndarray
    counts: np.ndarray
    squares: np.ndarray
    own: np.ndarray
    rest: float


def link(X: Data, S, density: Density, steps: int = STEPS) -> Linked:
    """Centred rows and the normalised adjacency with its spectrum, ready to be fitted."""
    lam = np.maximum(1.0 - density.nodes, 0.0)
    return Linked(X, X.squared_norm, S.astype(X.dtype), Density(lam, density.weights), None, steps)


def smoothness(lam, beta) -> np.ndarray:
    """h(lambda; beta) = (1 + beta lambda)^-2."""
    inverse = 1.0 / (1.0 + beta * lam)
    return inverse * inverse


def variances_at(state: Relational, lam) -> np.ndarray:
    """v_k at the eigenvalues lambda (m, 1) or (m, q), for the q smooth axes."""
    q = len(state.a)
    return state.a * smoothness(lam, state.beta) + state.c[:q] + state.sigma2


def measure(U, q: int, data: Linked) -> Statistics:
    """The statistics of the rows for axes U."""
    scores = data.X @ U.astype(data.X.dtype)
    krylov = lanczos(data.S, scores[:, :q], data.steps)
    energy = np.einsum("nk,nk->k", scores, scores, dtype=float, casting="same_kind")
    extra = np.zeros(U.shape[1])
    if data.spread is not None:
        extra = np.einsum("dk,dk->k", U, data.spread @ U)
    lam, counts = data.spectrum.nodes[:, None], data.spectrum.weights[:, None]
    steps = len(krylov.nodes)
    nodes = np.concatenate([np.tile(lam, (1, q)), np.maximum(1.0 - krylov.nodes, 0.0)])
    # What is missing is spread evenly over the spectrum.
    squares = np.concatenate([counts / counts.sum() * extra[:q], krylov.weights])
    counts = np.concatenate([np.tile(counts, (1, q)), np.zeros((steps, q))])
    rest = max(data.total - energy.sum() - extra.sum(), 1e-14 * data.total)
    return Statistics(scores, krylov, nodes, counts, squares, (energy + extra)[q:], rest)


def log_likelihood(state: Relational, stats: Statistics) -> float:
    """Log density of the rows given the links."""
    n, (d, k), q = len(stats.scores), state.U.shape, len(state.a)
    v = variances_at(state, stats.nodes)
    own = state.c[q:] + state.sigma2
    terms = np.sum(stats.counts * np.log(v) + stats.squares / v)
    terms += np.sum(n * np.log(own) + stats.own / own)
    terms += n * (d - k) * np.log(state.sigma2) + stats.rest / state.sigma2
    return -0.5 * float(n * d * np.log(2 * np.pi) + terms)


def fit_variances(state: Relational, stats: Statistics, max_iter: int) -> Relational:
    """Variances and strengths of the links of highest likelihood for the axes of the state."""
    n, d, q = len(stats.scores), len(state.U), len(state.a)
    unit = (stats.squares.sum() + stats.own.sum() + stats.rest) / (n * d)
    scaled = stats._replace(
        squares=stats.squares / unit, own=stats.own / unit, rest=stats.rest / unit
    )
    bounds = [(np.log(NOISE_FLOOR), 2.0)] + [LOG_VARIANCE] * (2 * q) + [LOG_BETA] * q
    low, high = np.transpose(bounds)
    tiny = np.finfo(float).tiny
    x = np.log(
        np.concatenate(
            [
                [state.sigma2 / unit],
                np.maximum(state.a / unit, tiny),
                np.maximum(state.c[:q] / unit, tiny),
                np.maximum(state.beta, tiny),
            ]
        )
    )
    result = minimize(
        _profile,
        np.clip(x, low, high),
        args=(scaled, d),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iter},
    )
    sigma2, a, c, beta = _unfold(result.x, q)
    own = np.maximum(stats.own / n - sigma2 * unit, 0.0)
    return Relational(state.U, a * unit, np.append(c * unit, own), beta, float(sigma2 * unit))


def _unfold(x, q):
    a, c, beta = np.exp(x[1:]).reshape(3, q)
    return np.exp(x[0]), a, c, beta


def _profile(x, stats: Statistics, d: int):
    """Minus the log likelihood per row at its best own axes, and its gradient in x.

    x holds log sigma2, log a, log c, log beta. An own axis has c = max(energy / n - sigma2, 0),
    where the derivative in sigma2 is zero unless c is.
    """
    n, q, r = len(stats.scores), stats.nodes.shape[1], len(stats.own)
    sigma2, a, c, beta = _unfold(x, q)
    # A product: numpy takes a general power for -2.
    inverse = 1.0 / (1.0 + beta * stats.nodes)
    h = inverse * inverse
    v = a * h + c + sigma2
    own = np.maximum(stats.own / n, sigma2)
    free = n * (d - q - r)
    value = np.sum(stats.counts * np.log(v) + stats.squares / v)
    value += np.sum(n * np.log(own) + stats.own / own) + free * x[0] + stats.rest / sigma2
    slope = (stats.counts - stats.squares / v) / v
    total = slope.sum(axis=0)
    pressed = np.sum(np.where(stats.own / n < sigma2, n - stats.own / sigma2, 0.0))
    gradient = np.concatenate(
        [
            [sigma2 * total.sum() + pressed + free - stats.rest / sigma2],
            a * np.sum(slope * h, axis=0),
            c * total,
            -2 * a * beta * np.sum(slope * stats.nodes * h * inverse, axis=0),
        ]
    )
    return value / (2 * n), gradient / (2 * n)


def turn_axes(state: Relational, stats: Statistics, data: Linked) -> np.ndarray:
    """Axes of no lower likelihood: the polar factor of [X' G_k(L) X u_k], G = 1/sigma2 - 1/v.

    The log likelihood is convex in U, so its tangent at U is a lower bound, and
    the orthonormal U that maximises the tangent is a polar factor.
    """
    q, sigma2 = len(state.a), state.sigma2
    gains = 1.0 - sigma2 / variances_at(state, np.maximum(1.0 - stats.krylov.nodes, 0.0))
    own = state.c[q:] / (state.c[q:] + sigma2)
    pulled = stats.scores.copy()
    pulled[:, :q] = apply(stats.krylov, gains)
    M = np.asarray(data.X.T @ pulled, dtype=float)
    M[:, q:] *= own
    if data.spread is not None:
        lam, counts = data.spectrum.nodes[:, None], data.spectrum.weights
        mean_gain = counts @ (1.0 - sigma2 / variances_at(state, lam)) / counts.sum()
        M += (data.spread @ state.U) * np.append(mean_gain, own)
    return orthonormal(M)


def orthonormal(M) -> np.ndarray:
    """The nearest matrix with orthonormal columns."""
    Q, R = np.linalg.qr(M)
    left, _, right = np.linalg.svd(R)
    return Q @ (left @ right)


def independent(U, q: int, data: Linked) -> tuple[Relational, float]:
    """PPCA on the axes U, the model without links, and its log likelihood."""
    n, (d, k) = data.X.shape[0], U.shape
    scores = data.X @ U.astype(data.X.dtype)
    values = np.einsum("nk,nk->k", scores, scores, dtype=float, casting="same_kind") / n
    mean = data.total / (n * d)
    rest = (data.total / n - values.sum()) / max(d - k, 1)
    sigma2 = max(rest, NOISE_FLOOR * mean) if d > k else NOISE_FLOOR * mean
    c = np.maximum(values - sigma2, 0.0)
    terms = np.sum(np.log(c + sigma2) + values / (c + sigma2))
    terms += (d - k) * np.log(sigma2) + max(rest, 0.0) * (d - k) / sigma2
    log_likelihood = -0.5 * n * (d * np.log(2 * np.pi) + terms)
    return Relational(U, np.zeros(q), c, np.zeros(q), float(sigma2)), float(log_likelihood)


def init(U, q: int, data: Linked) -> Relational:
    """A start near given axes: half of each variance shared, half own, then a long step."""
    without, _ = independent(U, q, data)
    half = np.maximum(without.c[:q] / 2, 0.01 * without.sigma2)
    c = np.append(half, without.c[q:])
    state = Relational(U, half, c, np.ones(q), without.sigma2)
    return step(state, data, max_iter=60)[0]


def smoothed(data: Linked) -> Mixed:
    """Rows smoothed by S^2, whose leading axes are a start for smooth parts."""
    return Mixed(data.S, Mixed(data.S, data.X))


def smoothest_first(U, q: int, data: Linked) -> np.ndarray:
    """The axes with the q whose scores agree most across links, s'S s / s's, put first.

    The gain of a link is free of scale, so the smoothest axes are worth more than the longest.
    """
    scores = data.X @ U.astype(data.X.dtype)
    agreement = np.sum(scores * (data.S @ scores), axis=0) / np.maximum(
        np.sum(scores**2, axis=0), np.finfo(scores.dtype).tiny
    )
    chosen = np.sort(np.argsort(-agreement)[:q])
    return np.concatenate([U[:, chosen], np.delete(U, chosen, axis=1)], axis=1)


def join_axes(smooth, principal, data: Linked) -> np.ndarray:
    """The smooth axes, then as many principal axes of the rest as fill up the number."""
    k, q = principal.shape[1], smooth.shape[1]
    outside = principal - smooth @ (smooth.T @ principal)
    basis, _, _ = np.linalg.svd(outside, full_matrices=False)
    scores = np.asarray(data.X @ basis.astype(data.X.dtype), dtype=float)
    _, rotation = np.linalg.eigh(scores.T @ scores)
    own = basis @ rotation[:, ::-1][:, : k - q]
    return orthonormal(np.column_stack([smooth, own]))


def step(state: Relational, data: Linked, max_iter: int = 15) -> tuple[Relational, float]:
    """Better variances, then better axes, and the log likelihood it started from."""
    stats = measure(state.U, len(state.a), data)
    objective = log_likelihood(state, stats)
    state = fit_variances(state, stats, max_iter)
    return state._replace(U=turn_axes(state, stats, data)), objective


def leap(after: Relational, before: Relational, factor: float) -> Relational:
    """The state after, with its axes moved on the way that they came."""
    return after._replace(U=orthonormal(after.U + factor * (after.U - before.U)))


def settle(state: Relational, data: Linked) -> tuple[Relational, float]:
    """The best variances for the axes of the state, axes in canonical order, and the likelihood."""
    q = len(state.a)
    stats = measure(state.U, q, data)
    state = fit_variances(state, stats, max_iter=100)
    objective = log_likelihood(state, stats)
    shared = shared_variance(state, data.spectrum)
    order = np.concatenate([np.argsort(-shared), q + np.argsort(-state.c[q:])])
    smooth = order[:q]
    return (
        Relational(
            state.U[:, order], state.a[smooth], state.c[order], state.beta[smooth], state.sigma2
        ),
        objective,
    )


def shared_variance(state: Relational, spectrum: Density) -> np.ndarray:
    """Mean variance of f_k over the nodes (q,)."""
    h = smoothness(spectrum.nodes[:, None], state.beta)
    return state.a * (spectrum.weights @ h) / spectrum.weights.sum()
