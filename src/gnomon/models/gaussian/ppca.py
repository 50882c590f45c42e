"""Probabilistic PCA [TB99]: x = mu + W z + e, z ~ N(0, I), e ~ N(0, sigma2 I).

    here     X      W, sigma2     n, d, q
    [TB99]   t_n    W, sigma^2    N, d, q

The likelihood depends on the data through the leading eigenvalues of the covariance and
its trace, so that every q up to the number of eigenvalues known has its maximum for free.
"""

from typing import NamedTuple

import numpy as np

from gnomon.inference import subspace
from gnomon.inference.subspace import EXTRA, SINGLE_ABOVE, starting_block
from gnomon.linalg import eigen
from gnomon.linalg.data import Data
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.solve import fix_signs
from gnomon.stats.gaussian import NOISE_FLOOR, View

# Blocks of directions kept before the basis is cut: here rather time than memory.
MOST_BLOCKS = 5


class Maximum(NamedTuple):
    """A view at the maximum, whether its noise is at the floor, and the log likelihood."""

    view: View
    at_floor: bool
    log_likelihood: float


def closed_form(spectrum: Spectrum, q: int, n: float) -> Maximum:
    """The maximum likelihood for given q, eqs. (7)-(8) of [TB99], axes in principal order."""
    d = spectrum.vectors.shape[0]
    scales, sigma2, at_floor = scales_and_noise(spectrum.values[:q], spectrum.trace, n, d)
    view = View(fix_signs(spectrum.vectors[:, :q]) * scales, sigma2)
    return Maximum(view, at_floor, log_likelihood(spectrum, view, n))


def scales_and_noise(values, trace, n: float, d: int) -> tuple[np.ndarray, float, bool]:
    """Lengths of the loadings and noise variance at the maximum; whether it is at the floor."""
    q, variances = len(values), values / n
    rest = (trace / n - variances.sum()) / max(d - q, 1)
    floor = NOISE_FLOOR * trace / (n * d)
    # Rounding in the trace can exceed a true rest of zero.
    sigma2 = max(rest, floor) if d > q else floor
    scales = np.sqrt(np.maximum(variances - sigma2, 0.0))
    return scales, float(sigma2), bool(d > q and rest <= floor)


def log_likelihood(spectrum: Spectrum, view: View, n: float) -> float:
    """Total log likelihood of a view whose axes are the leading eigenvectors."""
    d, q = view.W.shape
    scales = np.sqrt(np.sum(view.W**2, axis=0))
    return profile(spectrum.values[:q], spectrum.trace, scales, view.sigma2, n, d)


def profile(values, trace, scales, sigma2, n: float, d: int) -> float:
    """The same from the lengths of the loadings alone."""
    variances, model = values / n, scales**2 + sigma2
    terms = np.sum(np.log(model) + variances / model) + (trace / n - variances.sum()) / sigma2
    return float(-0.5 * n * (d * np.log(2 * np.pi) + terms + (d - len(values)) * np.log(sigma2)))


def canonical(W) -> np.ndarray:
    """W rotated to principal axes with fixed signs: W W' is kept, W'W becomes diagonal."""
    U, scales, _ = np.linalg.svd(W, full_matrices=False)
    return fix_signs(U) * scales


def leading_spectrum(X: Data, k, rng, *, solver="auto", tol=1e-7, max_rounds=100) -> Spectrum:
    """The k leading eigenpairs of X'X for centred X; ``tol`` is in nats per entry of X.

    "subspace" stops when an EM step of PPCA would gain less than ``tol``; the others are exact.
    """
    if solver == "auto":
        solver = eigen.route(X, k)
    if solver == "moments":
        return eigen.from_moments(X, k)
    # A basis that would fill the space in four rounds is cheaper formed at once.
    if solver == "dual" or 4 * (k + EXTRA) >= min(X.shape):
        return eigen.from_dual(X, k) if X.shape[0] < X.shape[1] else eigen.from_moments(X, k)
    return _from_products(X, k, rng, tol, max_rounds)


def leading_axes(X: Data, k: int, rng) -> np.ndarray:
    """The k principal axes of centred rows (d, k)."""
    if eigen.suits_lanczos(X, k):
        return eigen.from_lanczos(X, k, rng)[1]
    return leading_spectrum(X, k, rng).vectors


def _from_products(X, k, rng, tol, max_rounds):
    fast = X.as_float32() if tol > SINGLE_ABOVE else X
    n, (_, d), trace = X.n_samples, X.shape, X.squared_norm

    def solve_small(reduced):
        values = reduced.energies[:k]
        scales, sigma2, _ = scales_and_noise(values, trace, n, d)
        log_likelihood = profile(values, trace, scales, sigma2, n, d)
        H = np.zeros((len(reduced.energies), k))
        np.fill_diagonal(H, scales / np.maximum(values / n, np.finfo(float).tiny))
        return subspace.SmallSolution(H, None, n * np.eye(k), sigma2, log_likelihood, None)

    solution = subspace.maximise(
        fast,
        solve_small,
        starting_block(fast, k + EXTRA, rng),
        tol=tol * n * d,
        max_rounds=max_rounds,
        exact=X,
        most_blocks=MOST_BLOCKS,
    )
    return Spectrum(solution.reduced.energies[:k], np.asarray(solution.basis[:, :k], float), trace)
