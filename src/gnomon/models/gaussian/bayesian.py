"""Bayesian PCA: a prior of the loadings that leaves out components without evidence [B99].

    x = mu + W z + e,    z ~ N(0, I),    e ~ N(0, sigma2 I),    w_k ~ N(0, c_k I)

The evidence is bounded by q(W) q(Z), and the bound is maximised over q, c = 1 / alpha, sigma2 and
mu. Its maximum is on the principal axes of centred rows [NSBT13]. An axis with the eigenvalue
gamma^2 of X'X has

    n d c^2 + (sigma2 (n + d) - gamma^2) c + sigma2^2 = 0,     the larger root
    gain   = (n d c / sigma2 - n log(1 + d c / sigma2) - d log(1 + n c / sigma2)) / 2
    bound  = - (n d log(2 pi sigma2) + |X|^2 / sigma2) / 2 + sum of the gains above zero

and is left out, c = 0, where the gain is not above zero. That leaves a search in sigma2 alone.

    here     W, z    c            sigma2    n, d, q
    [B99]    W, x    1 / alpha    1 / tau   N, d, q

With missing entries a third factor of q is theirs. Rows may be linked: with precision Delta the
model is that of R X, R'R = Delta, as PRPCA's is [LYZ09].
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import splu

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import Method, Run, anderson, iterate
from gnomon.linalg.data import Matrix
from gnomon.linalg.eigen import Spectrum, from_dual, from_moments
from gnomon.linalg.solve import fix_signs
from gnomon.models.gaussian import gaps, patterns
from gnomon.stats.gaussian import NOISE_FLOOR, View

# The most components that "auto" begins with, as many as `dimension` tries.
MOST = 100
# Steps of EM, and nats per entry that one must gain, for the rows to start from.
START_STEPS, START_TOLERANCE = 30, 1e-4
# Noise variances that are tried; with what the axes leave alone the highest maximum was missed in
# one of twelve samples of weak components.
GRID = 64
# Tops of that grid that are lower by less, in nats, may be higher between its points: so it was in
# 2 of 2,500 samples of 50 rows, by hundredths. The search then takes 1.3 times as long.
NEAR_TOP = 1.0


class Evidence(NamedTuple):
    """Loadings and noise at the maximum, prior variances c, and the bound.

    ``view`` has the means of the loadings; one of zeros where no component has evidence.
    ``shrinkage`` is the share of its length that a row keeps along each axis.
    """

    view: View
    variances: np.ndarray
    shrinkage: np.ndarray
    bound: float


def most(n_components: int | float | str, shape) -> int:
    """The components to begin with: as many as asked for, or as can be where that is "auto"."""
    if n_components == "auto":
        return min(MOST, most_components(*shape))
    return int(n_components)


def most_components(n: float, d: int) -> int:
    """The most that can have evidence: with more, noise would have no maximum [NTSB15]."""
    return max(1, int(np.ceil(n * d / (n + d))) - 1)


def maximise(spectrum: Spectrum, q: int, n: float) -> Evidence:
    """The maximum of the bound with at most q components, from leading eigenpairs and the trace."""
    d = len(spectrum.vectors)
    values = spectrum.values[: min(q, most_components(n, d))]
    sigma2 = _noise(values, spectrum.trace, n, d)
    c, gains = _axes(values, sigma2, n, d)
    kept = max(1, int(np.sum(gains > 0)))
    c = c[:kept]
    lengths = c * np.sqrt(n * d / (n * c + sigma2))
    view = View(fix_signs(spectrum.vectors[:, :kept]) * lengths, sigma2)
    shrinkage = n * d * c / np.maximum(values[:kept], np.finfo(float).tiny)
    bound = float(_bound(sigma2, values, spectrum.trace, n, d))
    return Evidence(view, c, shrinkage, bound)


def _noise(values, trace, n, d):
    """The noise variance at the maximum: near what the k leading axes leave, for the best k.

    The bound has a maximum of its own for many a k, so that a grid looks between them too.
    """
    left = np.maximum(trace - np.append(0.0, np.cumsum(values)), NOISE_FLOOR * trace) / (n * d)
    grid = np.geomspace(left[-1] / 2, left[0], GRID)
    starts = np.unique(np.concatenate([left, np.sqrt(left[1:] * left[:-1]), grid]))
    bounds = _bound(starts, values, trace, n, d)
    around = np.pad(bounds, 1, constant_values=-np.inf)
    is_top = (bounds >= around[:-2]) & (bounds >= around[2:]) & (bounds > bounds.max() - NEAR_TOP)
    ends = np.pad(starts, 1, mode="edge")
    found = [
        _highest(
            ends[k], starts[k], ends[k + 2], partial(_bound, values=values, trace=trace, n=n, d=d)
        )
        for k in np.flatnonzero(is_top)
    ]
    return max(found)[1]


def _highest(low, middle, high, bound):
    """The highest bound between two noise variances, and where it is; no lower than in between."""
    found = minimize_scalar(
        lambda x: -bound(np.exp(x)),
        bounds=(float(np.log(low)), float(np.log(high))),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return max((float(-found.fun), float(np.exp(found.x))), (float(bound(middle)), float(middle)))


def _bound(sigma2, values, trace, n, d):
    """The bound with the best factors, for each noise variance."""
    _, gains = _axes(values, np.asarray(sigma2)[..., None], n, d)
    return gains.sum(axis=-1) - 0.5 * (n * d * np.log(2 * np.pi * sigma2) + trace / sigma2)


def _axes(values, sigma2, n, d):
    """Prior variances c and gains of the axes, zero for those that are left out."""
    half = (values - sigma2 * (n + d)) / 2
    roots = np.sqrt(np.maximum(half**2 - n * d * sigma2**2, 0.0))
    ratio = np.where(half > np.sqrt(n * d) * sigma2, (half + roots) / (n * d * sigma2), 0.0)
    gains = (n * d * ratio - n * np.log1p(d * ratio) - d * np.log1p(n * ratio)) / 2
    kept = gains > 0
    return np.where(kept, sigma2 * ratio, 0.0), np.where(kept, gains, 0.0)


class Rows(NamedTuple):
    """Rows (n, d) with NaN for gaps, R with R'R their precision Delta, and Delta itself.

    ``columns`` has for each column with gaps its number, the rows of its gaps, and a factor of
    the precision among these; ``log_det`` adds up the logarithms of their determinants. Gaps are
    counted by the weights of their rows.
    """

    X: np.ndarray
    R: Any
    Delta: Any
    columns: list
    log_det: float
    weights: np.ndarray
    n_gaps: float


class State(NamedTuple):
    """Rows with their gaps at their means, the variance of these, the mean, and the maximum."""

    filled: np.ndarray
    variance: float
    mean: np.ndarray
    evidence: Evidence | None = None


def weighted_rows(X, weights=None) -> Rows:
    """Independent rows with gaps; one of weight two is a row that occurs twice."""
    weights = np.ones(len(X)) if weights is None else weights
    X, weights = X[weights > 0], weights[weights > 0]
    rows = linked_rows(X, sparse.csr_array(sparse.diags_array(np.sqrt(weights))))
    # Each of several rows has gaps of its own, of precision one.
    n_gaps = float(weights @ np.isnan(X).sum(axis=1))
    return rows._replace(log_det=0.0, weights=weights, n_gaps=n_gaps)


def linked_rows(X, R) -> Rows:
    """Rows with gaps, and R a sparse root of their precision."""
    Delta, missing = sparse.csr_array(R.T @ R), np.isnan(X)
    columns, log_det = [], 0.0
    for j in np.flatnonzero(missing.any(axis=0)):
        rows = np.flatnonzero(missing[:, j])
        try:
            factor = splu(sparse.csc_array(Delta[rows][:, rows]))
        except RuntimeError as error:
            raise NumericalError(
                "X has gaps that the links leave without a finite variance; accepted are gamma > 0 "
                "and rows without gaps"
            ) from error
        columns.append((j, rows, factor))
        log_det += float(np.sum(np.log(np.abs(factor.U.diagonal()))))
    return Rows(X, R, Delta, columns, log_det, np.ones(len(X)), float(missing.sum()))


def maximise_with_gaps(rows: Rows, q: int, loop, *, max_iter, tol) -> Run:
    """The maximum of the bound with q(W) q(Z) q(missing entries), from rows filled by PPCA.

    Given two factors the third is at its maximum, so that the bound never falls. From gaps at the
    means of columns it would end at a lower maximum, with components lost among them.
    """
    data = patterns.inputs(rows.X, rows.weights)
    half = max(1, min(q, most_components(*rows.X.shape) // 2))
    found = gaps.maximise(data, half, iterate, max_iter=START_STEPS, tol=START_TOLERANCE).state
    start = State(gaps.fill(found, data)[0], float(found.noise[0]), found.mean)
    method = Method(start, partial(step, rows=rows, q=q))
    unit = float(np.sqrt(patterns.variances(data)[0])) or 1.0
    like = partial(_unpack, rows=rows, like=start, unit=unit)
    method = anderson(method, partial(_pack, unit=unit), like)
    return loop(method, max_iter=max_iter, tol=tol * np.sum(~np.isnan(rows.X)))


def step(state: State, rows: Rows, q: int) -> tuple[State, float]:
    """Loadings, noise and mean, then the gaps; and the bound after the first of these."""
    shares = np.asarray(rows.Delta.sum(axis=1)).ravel()
    mean = shares @ state.filled / shares.sum()
    E = state.filled - mean
    mixed = Matrix(rows.R @ E)
    spectrum_of = from_moments if mixed.n_features <= len(E) else from_dual
    spectrum = spectrum_of(mixed, q)
    # What is not known of the gaps adds to the noise: Delta times its inverse is the identity.
    spectrum = spectrum._replace(trace=spectrum.trace + rows.n_gaps * state.variance)
    evidence = maximise(spectrum, q, rows.weights.sum())
    entropy = 0.5 * (rows.n_gaps * (1 + np.log(2 * np.pi * state.variance)) - rows.log_det)
    filled = _fill(_fitted(evidence, E), E, rows) + mean
    return State(filled, evidence.view.sigma2, mean, evidence), evidence.bound + entropy


def _fitted(evidence, E):
    """What the means of loadings and latent variables say of centred rows."""
    lengths = np.linalg.norm(evidence.view.W, axis=0)
    U = evidence.view.W / np.where(lengths > 0, lengths, 1.0)
    return (E @ U * evidence.shrinkage) @ U.T


def _fill(fitted, E, rows):
    """Centred rows with their gaps at their means, given what is fitted and the other rows."""
    rest = np.where(np.isnan(rows.X), 0.0, E - fitted)
    pull, filled = rows.Delta @ rest, E.copy()
    for j, missing, factor in rows.columns:
        filled[missing, j] = fitted[missing, j] - factor.solve(pull[missing, j])
    return filled


def _pack(state, unit):
    return np.append(state.filled.ravel() / unit, np.log(state.variance))


def _unpack(x, rows, like, unit):
    filled = np.where(np.isnan(rows.X), x[:-1].reshape(rows.X.shape) * unit, rows.X)
    return like._replace(filled=filled, variance=float(np.exp(x[-1])))
