"""A relational model: rows share a smooth part over their links, and keep a part of their own.

    X = 1 mu' + sum_{k <= q} (f_k + g_k) u_k' + sum_{q < k <= q + r} g_k u_k' + E,    U'U = I
    f_k ~ N(0, a_k h(L; beta_k)),    g_k ~ N(0, c_k I),    E_ij ~ N(0, sigma2)
    h(L; beta) = (I + beta L)^-2,    L = I - S,    S = D^(-1/2) (A + I) D^(-1/2)

f is shared: positively correlated between linked rows, the more the larger beta_k. g is a row's
own. The further r axes carry variation that links say nothing about, which leaves the first
q to the smooth part. With a = 0 this is PPCA with q + r components. In the eigenbasis of L and
U everything is independent: axis k has variance v_k(lambda) = a_k h(lambda; beta_k) + c_k +
sigma2 at eigenvalue lambda, so all is exact with functions of L, from products with S alone.

    here      X, n, d     U, q, r     a, c, beta, sigma2     coordinates (X - 1 mu') U
    [LYZ09]   T', N, d    -           -                      -
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gnomon.linalg import graph
from gnomon.linalg.data import Data
from gnomon.linalg.graph import Density, Krylov
from gnomon.stats.gaussian import NOISE_FLOOR

# Lanczos steps in a round: 1 / v is smooth, and the log likelihood of 1,400 rows is then right to a
# hundredth of a nat.
STEPS = 16
# Bounds of log a and log c over the mean variance of an entry, and of log beta. Beyond them the
# model no longer changes: a variance is zero, or all that counts is a / beta^2.
LOG_VARIANCE, LOG_BETA = (-25.0, 30.0), (-7.0, 9.0)

# Squares of singular values that differ by more leave too few digits for the nearest orthonormal
# matrix; it is then found from a QR factorisation, which takes three times as long.
LEAST_SPREAD = 1e-8


class State(NamedTuple):
    """Axes U (d, q + r), shared variances a (q,), own variances c (q + r,), beta (q,), sigma2."""

    U: np.ndarray
    a: np.ndarray
    c: np.ndarray
    beta: np.ndarray
    sigma2: float


class Linked(NamedTuple):
    """Centred rows X, their squared norm, S, the spectrum of L, and Lanczos steps to take.

    ``gap_covariance`` (d, d) is the sum of the covariances of missing entries, None where no
    entry is missing.
    """

    X: Data
    total: float
    S: Any
    spectrum: Density
    gap_covariance: np.ndarray | None = None
    steps: int = STEPS


class Statistics(NamedTuple):
    """What the likelihood needs of the rows, for given axes.

    Coordinates (n, q + r) and their Krylov spaces, eigenvalues lambda (m, q) of L with the
    numbers of them and the squared coordinates that belong to each, squared lengths along the
    own axes (r,), and the squared norm outside of all axes.
    """

    coordinates: np.ndarray
    krylov: Krylov
    eigenvalues: np.ndarray
    counts: np.ndarray
    squares: np.ndarray
    own: np.ndarray
    rest: float


def link(X: Data, A, rng, steps: int = STEPS) -> Linked:
    """Centred rows with the normalised adjacency of their links, and its spectrum."""
    S = graph.normalized(A)
    theta, counts = graph.density(S, graph.component_basis(A), rng)
    spectrum = Density(eigenvalues(theta), counts)
    return Linked(X, X.squared_norm, S.astype(X.dtype), spectrum, steps=steps)


def eigenvalues(theta) -> np.ndarray:
    """Eigenvalues of L = I - S from those of S, none below zero."""
    return np.maximum(1.0 - theta, 0.0)


def smoothness(lam, beta) -> np.ndarray:
    """h(lambda; beta) = (1 + beta lambda)^-2."""
    # A product: numpy takes a general power for -2.
    inverse = 1.0 / (1.0 + beta * lam)
    return inverse * inverse


def variances_at(state: State, lam) -> np.ndarray:
    """v_k at the eigenvalues lambda (m, 1) or (m, q), for the q smooth axes."""
    q = len(state.a)
    return state.a * smoothness(lam, state.beta) + state.c[:q] + state.sigma2


def shared_variance(state: State, spectrum: Density) -> np.ndarray:
    """Mean variance of f_k over the rows (q,)."""
    h = smoothness(spectrum.eigenvalues[:, None], state.beta)
    return state.a * (spectrum.counts @ h) / spectrum.counts.sum()


def measure(U, q: int, data: Linked) -> Statistics:
    """The statistics of the rows for axes U, of which the first q are smooth."""
    coordinates = data.X @ U.astype(data.X.dtype)
    krylov = graph.lanczos(data.S, coordinates[:, :q], data.steps)
    energy, missing = energies(coordinates), np.zeros(U.shape[1])
    if data.gap_covariance is not None:
        missing = np.einsum("dk,dk->k", U, data.gap_covariance @ U)
    # Rounding may leave less than nothing outside of the axes.
    rest = max(data.total - energy.sum() - missing.sum(), 1e-14 * data.total)
    lam, counts, squares = _quadrature(krylov, data, missing[:q])
    own = (energy + missing)[q:]
    return Statistics(coordinates, krylov, lam, counts, squares, own, rest)


def energies(coordinates) -> np.ndarray:
    """Squared lengths of the columns, in float64."""
    return np.einsum("nk,nk->k", coordinates, coordinates, dtype=float, casting="same_kind")


def _quadrature(krylov, data, missing):
    """Eigenvalues (m, q): those of the spectrum with their counts, then those of Lanczos.

    What is missing is spread evenly over the spectrum.
    """
    steps, q = krylov.theta.shape
    lam, counts = data.spectrum.eigenvalues[:, None], data.spectrum.counts[:, None]
    return (
        np.concatenate([np.tile(lam, (1, q)), eigenvalues(krylov.theta)]),
        np.concatenate([np.tile(counts, (1, q)), np.zeros((steps, q))]),
        np.concatenate([counts / counts.sum() * missing, krylov.weights]),
    )


def log_likelihood(state: State, stats: Statistics) -> float:
    """Log density of the rows given the links."""
    n, (d, k), q = len(stats.coordinates), state.U.shape, len(state.a)
    v = variances_at(state, stats.eigenvalues)
    own = state.c[q:] + state.sigma2
    terms = np.sum(stats.counts * np.log(v) + stats.squares / v)
    terms += np.sum(n * np.log(own) + stats.own / own)
    terms += n * (d - k) * np.log(state.sigma2) + stats.rest / state.sigma2
    return -0.5 * float(n * d * np.log(2 * np.pi) + terms)


def fit_variances(state: State, stats: Statistics, max_iter: int) -> State:
    """Variances and strengths of the links of highest likelihood for the axes of the state."""
    n, d, q = len(stats.coordinates), len(state.U), len(state.a)
    unit = (stats.squares.sum() + stats.own.sum() + stats.rest) / (n * d)
    scaled = stats._replace(
        squares=stats.squares / unit, own=stats.own / unit, rest=stats.rest / unit
    )
    bounds = [(np.log(NOISE_FLOOR), 2.0)] + [LOG_VARIANCE] * (2 * q) + [LOG_BETA] * q
    # Not `inference.lbfgs.ascend`, which stops by the objective alone: here a small gradient ends
    # many of the searches, of which a fit has a hundred.
    result = minimize(
        _profile,
        np.clip(_pack(state, unit), *np.transpose(bounds)),
        args=(scaled, d),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iter},
    )
    sigma2, a, c, beta = _unpack(result.x, q)
    own = np.maximum(stats.own / n - sigma2 * unit, 0.0)
    return State(state.U, a * unit, np.append(c * unit, own), beta, float(sigma2 * unit))


def _pack(state, unit):
    """Logarithms of sigma2, a, c and beta of the smooth axes, in one vector."""
    variances = np.append(state.a, state.c[: len(state.a)]) / unit
    positive = np.maximum(np.append(variances, state.beta), np.finfo(float).tiny)
    return np.log(np.append(state.sigma2 / unit, positive))


def _unpack(x, q):
    a, c, beta = np.exp(x[1:]).reshape(3, q)
    return np.exp(x[0]), a, c, beta


def _profile(x, stats: Statistics, d: int):
    """Minus the log likelihood per row with the best own axes, less a constant; its gradient.

    x holds log sigma2, log a, log c, log beta.
    """
    n, q, r = len(stats.coordinates), stats.eigenvalues.shape[1], len(stats.own)
    sigma2, a, c, beta = _unpack(x, q)
    inverse = 1.0 / (1.0 + beta * stats.eigenvalues)
    h = inverse * inverse
    v = a * h + c + sigma2
    free = n * (d - q - r)
    own, own_slope = _own_terms(stats.own, n, sigma2)
    value = np.sum(stats.counts * np.log(v) + stats.squares / v)
    value += own + free * x[0] + stats.rest / sigma2
    slope = (stats.counts - stats.squares / v) / v
    total = slope.sum(axis=0)
    gradient = np.concatenate(
        [
            [sigma2 * total.sum() + own_slope + free - stats.rest / sigma2],
            a * np.sum(slope * h, axis=0),
            c * total,
            -2 * a * beta * np.sum(slope * stats.eigenvalues * h * inverse, axis=0),
        ]
    )
    return value / (2 * n), gradient / (2 * n)


def _own_terms(energy, n, sigma2):
    """What own axes at their best add to `_profile`, and its derivative in log sigma2.

    An own axis has c = max(energy / n - sigma2, 0), so the derivative is zero unless c is.
    """
    variances = np.maximum(energy / n, sigma2)
    slopes = np.where(energy / n < sigma2, n - energy / sigma2, 0.0)
    return np.sum(n * np.log(variances) + energy / variances), np.sum(slopes)


def turn_axes(state: State, stats: Statistics, data: Linked) -> np.ndarray:
    """Axes of no lower likelihood: the polar factor of [X' G_k(L) X u_k], G = 1/sigma2 - 1/v.

    The log likelihood is convex in U, so its tangent at U is a lower bound, and
    the orthonormal U that maximises the tangent is a polar factor.
    """
    q, sigma2 = len(state.a), state.sigma2
    gains = 1.0 - sigma2 / variances_at(state, eigenvalues(stats.krylov.theta))
    own = state.c[q:] / (state.c[q:] + sigma2)
    filtered = stats.coordinates.copy()
    filtered[:, :q] = graph.apply(stats.krylov, gains)
    M = np.asarray(data.X.T @ filtered, dtype=float)
    M[:, q:] *= own
    if data.gap_covariance is not None:
        lam, counts = data.spectrum.eigenvalues[:, None], data.spectrum.counts
        mean_gain = counts @ (1.0 - sigma2 / variances_at(state, lam)) / counts.sum()
        M += (data.gap_covariance @ state.U) * np.append(mean_gain, own)
    return orthonormal(M)


def orthonormal(M) -> np.ndarray:
    """The nearest matrix with orthonormal columns: M (M'M)^(-1/2)."""
    values, turn = np.linalg.eigh(M.T @ M)
    if values[0] <= LEAST_SPREAD * values[-1]:
        Q, R = np.linalg.qr(M)
        left, _, right = np.linalg.svd(R)
        return Q @ (left @ right)
    near = M @ ((turn / np.sqrt(values)) @ turn.T)
    # A step of Newton's method for what rounding of the squares left.
    return near @ (1.5 * np.eye(len(values)) - 0.5 * (near.T @ near))


def independent(U, q: int, data: Linked) -> tuple[State, float]:
    """PPCA on the axes U, the model without links, and its log likelihood."""
    n, (d, k) = data.X.shape[0], U.shape
    values = energies(data.X @ U.astype(data.X.dtype)) / n
    floor = NOISE_FLOOR * data.total / (n * d)
    rest = (data.total / n - values.sum()) / max(d - k, 1)
    sigma2 = max(rest, floor) if d > k else floor
    c = np.maximum(values - sigma2, 0.0)
    terms = np.sum(np.log(c + sigma2) + values / (c + sigma2))
    terms += (d - k) * np.log(sigma2) + max(rest, 0.0) * (d - k) / sigma2
    log_likelihood = -0.5 * n * (d * np.log(2 * np.pi) + terms)
    return State(U, np.zeros(q), c, np.zeros(q), float(sigma2)), float(log_likelihood)


def step(state: State, data: Linked, max_iter: int = 15) -> tuple[State, float]:
    """Better variances, then better axes, and the log likelihood it started from."""
    stats = measure(state.U, len(state.a), data)
    objective = log_likelihood(state, stats)
    state = fit_variances(state, stats, max_iter)
    return state._replace(U=turn_axes(state, stats, data)), objective


def extrapolate(after: State, before: State, factor: float) -> State:
    """The state after, with its axes moved further on the way that they came."""
    return after._replace(U=orthonormal(after.U + factor * (after.U - before.U)))


def final_variances(state: State, data: Linked) -> tuple[State, float]:
    """The best variances for the axes of the state, and the log likelihood.

    Axes are put in order of their variances, the smooth ones first.
    """
    q = len(state.a)
    stats = measure(state.U, q, data)
    state = fit_variances(state, stats, max_iter=100)
    smooth = np.argsort(-shared_variance(state, data.spectrum))
    order = np.append(smooth, q + np.argsort(-state.c[q:]))
    ordered = State(
        state.U[:, order], state.a[smooth], state.c[order], state.beta[smooth], state.sigma2
    )
    return ordered, log_likelihood(state, stats)
