"""Leading eigenpairs of X'X by the cheapest route, with the subspace solver for large X."""

import numpy as np

from gnomon.inference import subspace
from gnomon.linalg import eigen
from gnomon.linalg.data import Data
from gnomon.linalg.eigen import Spectrum
from gnomon.models import ppca

# Directions beyond those asked for with which the subspace starts.
EXTRA = 10
SAMPLED_ROWS = 4000
# Blocks of directions kept before the basis is cut: here rather time than memory.
MOST_BLOCKS = 5
# Below this tolerance per entry, products in single precision are not exact enough.
SINGLE_ABOVE = 1e-9


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


def starting_block(X: Data, k, rng) -> np.ndarray:
    """Random mixtures (d, k) of sampled rows: a start that leans towards the leading axes."""
    n = X.shape[0]
    size = min(n, max(SAMPLED_ROWS, 20 * k))
    try:
        rows = X.rows(np.sort(rng.choice(n, size, replace=False)))
    except TypeError:
        rows, size = X, n
    return rows.T @ rng.standard_normal((size, k)).astype(X.dtype)


def _from_products(X, k, rng, tol, max_rounds):
    fast = X.single() if tol > SINGLE_ABOVE else X
    n, (_, d), trace = X.n_samples, X.shape, X.squared_norm

    def solve_small(reduced):
        values = reduced.energies[:k]
        scales, sigma2, _ = ppca.scales_and_noise(values, trace, n, d)
        log_likelihood = ppca.profile(values, trace, scales, sigma2, n, d)
        H = np.zeros((len(reduced.energies), k))
        np.fill_diagonal(H, scales / np.maximum(values / n, np.finfo(float).tiny))
        return subspace.Small(H, None, n * np.eye(k), sigma2, log_likelihood, None)

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
