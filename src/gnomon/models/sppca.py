"""SPPCA and S2PPCA by maximum likelihood, from second moments [YYTKW06].

    z ~ N(0, I),   x = W z + e_x,   y = mean_y + W_y z + e_y,   noise sigma2 and sigma2_y

All rows have x, some have y, and of those some lack a few outputs. EM needs of the rows
without y only the second moments of x; of those with y only the moments of [x, y, 1]. So a
step costs the same for any number of rows. Coordinates diagonalise the moments of x.

    here        W, sigma2     W_y, sigma2_y    A    q, d, c    n, n_1
    [YYTKW06]   W_x, s_x^2    W_y, s_y^2       A    K, M, L    N, N_1

Without outputs this is PPCA; with all rows labelled it is SPPCA, Theorem 2.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.linalg.solve import Cholesky, fix_signs
from gnomon.models.sppca_statistics import Outputs, Statistics, output_means

# Shares of the mean variance below which noise is not let: where the latent variables can
# explain a view wholly its noise would run to zero and the likelihood to infinity.
INPUT_FLOOR = 1e-6
OUTPUT_FLOOR = 1e-3
# Outer products of latent means are added up for this many numbers at a time.
CHUNK = 2**22


class State(NamedTuple):
    """Loadings W (m, q) and W_y (c, q), noise sigma2 and sigma2_y (c,), mean of y (c,)."""

    W: np.ndarray
    sigma2: float
    W_y: np.ndarray
    sigma2_y: np.ndarray
    mean_y: np.ndarray


class Noise(NamedTuple):
    """What is learnt about noise: nothing where fixed, one number where a ratio ties both.

    ``per_output`` learns a level for each output; floors bind what is learnt.
    ``learn_mean`` False keeps the mean of y; ``prior_x``, ``prior_y`` are the precisions of a
    Gaussian prior on the loadings.
    """

    floor_x: float
    floor_y: np.ndarray
    fixed: tuple[float, float] | None = None
    ratio: float | None = None
    per_output: bool = False
    learn_mean: bool = True
    prior_x: float = 0.0
    prior_y: float = 0.0


class Expected(NamedTuple):
    """Expected moments: x with z, z with z, y with [z, 1], and [z, 1] where an output is seen."""

    XZ: np.ndarray
    ZZ: np.ndarray
    YZ: np.ndarray
    ZZ_y: np.ndarray


def floors(stats: Statistics) -> tuple[float, np.ndarray]:
    """Least noise of x and of every output; outputs that do not vary take the mean's floor."""
    _, variance = output_means(stats.outputs)
    typical = variance.mean() if variance.size else 0.0
    least = OUTPUT_FLOOR * np.maximum(variance, 1e-3 * typical)
    return INPUT_FLOOR * stats.energy / (stats.n * stats.d), np.where(least > 0, least, 1e-12)


def init(stats: Statistics, q, noise: Noise) -> State:
    """PPCA of x in closed form; outputs not yet explained. Coordinates in falling order."""
    variances = stats.g[:q] / stats.n
    rest = max(stats.energy / stats.n - variances.sum(), 0.0) / max(stats.d - q, 1)
    sigma2 = max(rest, noise.floor_x)
    W = np.zeros((len(stats.g), q))
    # A direction no stronger than noise keeps a small loading, since zero is a saddle of EM.
    k = np.arange(min(q, len(stats.g)))
    W[k, k] = np.sqrt(np.maximum(variances - sigma2, 1e-2 * variances))
    mean_y, variance_y = output_means(stats.outputs)
    sigma2_y = np.maximum(variance_y, noise.floor_y)
    if not noise.per_output and sigma2_y.size:
        sigma2_y = np.full_like(sigma2_y, sigma2_y.mean())
    if noise.fixed is not None:
        sigma2, sigma2_y = noise.fixed[0], np.full_like(sigma2_y, noise.fixed[1])
    elif noise.ratio is not None:
        sigma2_y = np.full_like(sigma2_y, noise.ratio * sigma2)
    return State(W, sigma2, np.zeros((len(mean_y), q)), sigma2_y, mean_y)


def e_step(state: State, stats: Statistics) -> tuple[Expected, float]:
    """Expected moments, eqs. (5), (6), (11), (12), and the log likelihood of all rows.

    Every row counts first as if it had no outputs; those that have some are then corrected.
    Erratum E-YYTKW06-1: (12) lacks the factor sigma_x^2 that (4) has.
    """
    n, q = stats.n, state.W.shape[1]
    B = state.W / state.sigma2
    A = Cholesky(np.eye(q) + state.W.T @ B)
    covariance = A.solve(np.eye(q))
    h = B @ covariance
    XZ = stats.g[:, None] * h
    ZZ = h.T @ XZ + n * covariance
    log_likelihood = -0.5 * (
        n * stats.d * np.log(2 * np.pi * state.sigma2)
        + stats.energy / state.sigma2
        + n * A.logdet()
        - np.sum(B * XZ)
    )
    if not len(stats.outputs.T):
        c = len(state.mean_y)
        expected = Expected(XZ, ZZ, np.zeros((c, q + 1)), np.zeros((c, q + 1, q + 1)))
        return expected, float(log_likelihood)
    change, gain = _label_corrections(state, stats.outputs, B, A, covariance)
    return Expected(XZ + change.XZ, ZZ + change.ZZ, *change[2:]), float(log_likelihood + gain)


class _Posteriors(NamedTuple):
    """Rows with outputs: covariances (P, q, q), their log determinants, means, residuals."""

    covariances: np.ndarray
    logdets: np.ndarray
    residual: np.ndarray
    b: np.ndarray
    Z: np.ndarray


def _posteriors(state, outputs):
    q = state.W.shape[1]
    T, Y, ones, pattern, seen, _ = outputs
    precision = seen / state.sigma2_y
    products = (state.W_y[:, :, None] * state.W_y[:, None, :]).reshape(-1, q * q)
    A = np.eye(q) + state.W.T @ state.W / state.sigma2
    factors = np.linalg.cholesky(A + (precision @ products).reshape(-1, q, q))
    halves = np.linalg.solve(factors, np.broadcast_to(np.eye(q), factors.shape))
    covariances = np.swapaxes(halves, 1, 2) @ halves
    logdets = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    residual = (Y - ones[:, None] * state.mean_y) * seen[pattern]
    b = T @ (state.W / state.sigma2) + (residual * precision[pattern]) @ state.W_y
    return _Posteriors(covariances, logdets, residual, b, _by_pattern(b, covariances, pattern))


def labelled_means(state: State, outputs: Outputs) -> np.ndarray:
    """Posterior means (p, q) of the rows with outputs, given x and y."""
    return _posteriors(state, outputs).Z


def _label_corrections(state, outputs, B, A, covariance):
    """What outputs change in the moments of z and in the log likelihood."""
    T, Y, ones, pattern, seen, counts = outputs
    q = covariance.shape[0]
    covariances, logdets, residual, b, Z = _posteriors(state, outputs)
    b_x = T @ B
    Z_x = b_x @ covariance
    extended = _pattern_moments(np.column_stack([Z, ones]), pattern, len(seen))
    extended[:, :q, :q] += counts[:, None, None] * covariances
    ZZ = extended[:, :q, :q].sum(axis=0) - Z_x.T @ Z_x - counts.sum() * covariance
    if len(seen) == 1 and seen.all():
        # One table for all outputs; the zero stride tells the M-step that one solve is enough.
        ZZ_y = np.broadcast_to(extended, (seen.shape[1], q + 1, q + 1))
    else:
        ZZ_y = np.tensordot(seen.T.astype(float), extended, axes=1)
    gain = -0.5 * (
        counts @ (logdets - A.logdet())
        + (counts @ seen) @ np.log(2 * np.pi * state.sigma2_y)
        + np.sum(residual**2 / state.sigma2_y)
        - np.sum(b * Z)
        + np.sum(b_x * Z_x)
    )
    YZ = np.column_stack([Y.T @ Z, Y.T @ ones])
    return Expected(T.T @ (Z - Z_x), ZZ, YZ, ZZ_y), gain


def _by_pattern(b, covariances, pattern):
    if len(covariances) == 1:
        return b @ covariances[0]
    return np.einsum("pj,pjk->pk", b, covariances[pattern])


def _pattern_moments(Z, pattern, n_patterns):
    """Sum of the outer products of rows of Z, for each pattern (P, q, q)."""
    q = Z.shape[1]
    if n_patterns == 1:
        return (Z.T @ Z)[None]
    total = np.zeros((n_patterns, q * q))
    size = max(1, CHUNK // (q * q))
    for start in range(0, len(Z), size):
        part = Z[start : start + size]
        outer = (part[:, :, None] * part[:, None, :]).reshape(-1, q * q)
        index = (pattern[start : start + size], np.arange(len(part)))
        total += sparse.csr_array((np.ones(len(part)), index), (n_patterns, len(part))) @ outer
    return total.reshape(n_patterns, q, q)


def m_step(state: State, expected: Expected, stats: Statistics, noise: Noise) -> State:
    """Regressions of x and y on z, eqs. (13)-(16), with parameter expansion.

    The mean of y is learnt with its loadings, as the regression on [z, 1]: with unlabelled
    rows the mean of the labelled ones, eq. (7), is not the maximum (E-YYTKW06-2).
    """
    XZ, ZZ, _, _ = expected
    q = ZZ.shape[0]
    ridge = noise.prior_x * state.sigma2
    W = Cholesky(ZZ + ridge * np.eye(q)).solve(XZ.T).T
    square_x = stats.energy - 2 * np.sum(W * XZ) + np.sum((W @ ZZ) * W)
    W_y, mean_y = _output_regression(state, expected, noise)
    square_y = output_squares(np.column_stack([W_y, mean_y]), expected, stats.outputs)
    sigma2, sigma2_y = _noise_levels(square_x, square_y, state, stats, noise)
    if noise.prior_x == 0 and noise.prior_y == 0:
        # z ~ N(0, ZZ/n) fits better than N(0, I); its root goes into the loadings.
        L = Cholesky(ZZ / stats.n).L
        W, W_y = W @ L, W_y @ L
    return State(W, sigma2, W_y, sigma2_y, mean_y)


def _output_regression(state, expected, noise):
    c, q = state.W_y.shape
    if not c:
        return state.W_y, state.mean_y
    ZZ, YZ = expected.ZZ_y, expected.YZ
    if ZZ.strides[0] == 0 and noise.prior_y == 0 and noise.learn_mean:
        solved = np.linalg.solve(ZZ[0], YZ.T).T
        return solved[:, :q], solved[:, q]
    penalty = np.zeros((c, q + 1, q + 1))
    k = np.arange(q)
    penalty[:, k, k] = noise.prior_y * state.sigma2_y[:, None]
    # An output nobody has keeps loadings of zero.
    absent = ZZ[:, q, q] == 0
    penalty[absent] += np.eye(q + 1)
    ZZ = ZZ + penalty
    if noise.learn_mean:
        solved = np.linalg.solve(ZZ, YZ[:, :, None])[:, :, 0]
        return solved[:, :q], solved[:, q]
    rest = YZ[:, :q] - state.mean_y[:, None] * ZZ[:, :q, q]
    return np.linalg.solve(ZZ[:, :q, :q], rest[:, :, None])[:, :, 0], state.mean_y


def output_squares(V, expected: Expected, outputs: Outputs) -> np.ndarray:
    """Expected squared residuals (c,) of every output, for V = [W_y, mean_y]."""
    fitted = np.einsum("cj,cjk,ck->c", V, expected.ZZ_y, V)
    return np.sum(outputs.Y**2, axis=0) - 2 * np.sum(V * expected.YZ, axis=1) + fitted


def _noise_levels(square_x, square_y, state, stats, noise):
    if noise.fixed is not None:
        return state.sigma2, state.sigma2_y
    size_x, size_y = stats.n * stats.d, stats.outputs.counts @ stats.outputs.seen
    if noise.ratio is not None:
        total = square_x + square_y.sum() / noise.ratio
        sigma2 = max(total / (size_x + size_y.sum()), noise.floor_x)
        return sigma2, np.full_like(square_y, noise.ratio * sigma2)
    sigma2 = max(square_x / size_x, noise.floor_x)
    if noise.per_output or not square_y.size:
        return sigma2, np.maximum(square_y / np.maximum(size_y, 1e-300), noise.floor_y)
    level = square_y.sum() / max(size_y.sum(), 1e-300)
    return sigma2, np.full_like(square_y, max(level, noise.floor_y.mean()))


def em_step(state: State, stats: Statistics, noise: Noise) -> tuple[State, float]:
    """One step of Algorithm 2, and the objective it started from."""
    expected, log_likelihood = e_step(state, stats)
    return m_step(state, expected, stats, noise), log_likelihood - penalty(state, noise)


def canonical(state: State, basis=None) -> State:
    """Axes in falling order of the noise-weighted energy A - I, signs fixed, in full space.

    Erratum E-YYTKW06-3: section 5.1 prints W_x'W_x + W_y'W_y, without the noise levels.
    """
    W = state.W if basis is None else basis @ state.W
    energy = W.T @ W / state.sigma2 + state.W_y.T @ (state.W_y / state.sigma2_y[:, None])
    _, R = np.linalg.eigh(energy)
    turned = W @ R[:, ::-1]
    W = fix_signs(turned)
    signs = np.where(np.einsum("ij,ij->j", W, turned) < 0, -1.0, 1.0)
    return state._replace(W=W, W_y=state.W_y @ R[:, ::-1] * signs)


def penalty(state: State, noise: Noise) -> float:
    """Minus the log prior of the loadings, less its constant."""
    return 0.5 * float(noise.prior_x * np.sum(state.W**2) + noise.prior_y * np.sum(state.W_y**2))
