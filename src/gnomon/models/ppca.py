"""Probabilistic PCA [TB99]: x = mu + W z + e, z ~ N(0, I), e ~ N(0, sigma2 I).

    here     X      W, sigma2     n, d, q
    [TB99]   t_n    W, sigma^2    N, d, q

The likelihood depends on the data through the leading eigenvalues of the covariance and
its trace, so that every q up to the number of eigenvalues known has its maximum for free.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.solve import fix_signs
from gnomon.models.linear_gaussian import View, em_step

# Share of the mean variance below which the noise may not fall: data of rank q or less
# would otherwise have an unbounded likelihood.
NOISE_FLOOR = 1e-12


class Fit(NamedTuple):
    """A view at the maximum, whether its noise is at the floor, and the log likelihood."""

    view: View
    floored: bool
    log_likelihood: float


def closed_form(spectrum: Spectrum, q: int, n: float) -> Fit:
    """The maximum likelihood for given q, eqs. (7)-(8) of [TB99], axes in principal order."""
    d = spectrum.vectors.shape[0]
    scales, sigma2, floored = scales_and_noise(spectrum.values[:q], spectrum.trace, n, d)
    view = View(fix_signs(spectrum.vectors[:, :q]) * scales, sigma2)
    return Fit(view, floored, log_likelihood(spectrum, view, n))


def scales_and_noise(values, trace, n: float, d: int) -> tuple[np.ndarray, float, bool]:
    """Lengths of the loadings and noise variance at the maximum; whether the noise is floored."""
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


def init(X: Data, q: int, rng: np.random.Generator) -> tuple[View]:
    """The maximum within the span of X'X times a random matrix.

    Every axis starts with its own scale: from a common one EM stays long near stationary
    points where small axes look like noise.
    """
    V, _ = np.linalg.qr(np.asarray(X.T @ (X @ rng.standard_normal((X.n_features, q)))))
    T = np.asarray(X @ V, dtype=float)
    values, rotation = np.linalg.eigh(T.T @ T)
    spectrum = Spectrum(values[::-1], (V @ rotation)[:, ::-1], X.squared_norm)
    _, sigma2, _ = scales_and_noise(spectrum.values, spectrum.trace, X.n_samples, X.n_features)
    variances = spectrum.values / X.n_samples
    # An axis that starts at zero would stay there.
    scales = np.sqrt(np.maximum(variances - sigma2, 0.1 * variances))
    return (View(spectrum.vectors * scales, sigma2),)


def step(state, X: Data):
    """One EM step with parameter expansion, and the log likelihood it started from."""
    return em_step(state, [(X,)], expand=True)


def pack(state) -> np.ndarray:
    """The state as an unconstrained vector."""
    (view,) = state
    return np.append(view.W.ravel(), np.log(view.sigma2))


def unpack(x, like) -> tuple[View]:
    """The inverse of `pack` for a state of the same sizes."""
    return (View(x[:-1].reshape(like[0].W.shape), float(np.exp(x[-1]))),)
