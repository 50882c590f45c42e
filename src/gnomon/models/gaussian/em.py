"""EM for linear Gaussian models with one set of latent variables and several views.

    z ~ N(0, I),    x_v = W_v z + e_v,    e_v ~ N(0, sigma2_v I),    v = 1, 2, ...

A view is one kind of observation, a block a set of rows that observe the same views.
PPCA has one view; SPPCA has two; S2PPCA adds a block without outputs [YYTKW06].

    here        W, sigma2 of a view              A      Z, ZZ        n, d, q
    [YYTKW06]   W_x, sigma_x^2; W_y, sigma_y^2   (3)    Z, C_1+C_2   N, M or L, K
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gnomon.inference.loop import Method, anderson
from gnomon.linalg.data import Data
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.solve import Cholesky
from gnomon.models.gaussian.ppca import scales_and_noise
from gnomon.stats.gaussian import NOISE_FLOOR, View

# Products with the rows by which a direction outside of a span turns to the longest axis there.
LOOKS = 10


class Moments(NamedTuple):
    """Expected complete-data statistics of one view; they add over blocks."""

    size: float
    ZZ: np.ndarray
    XZ: np.ndarray
    xx: float


# The data of each view in turn, None where the block does not observe it.
Block = Sequence[Any]


def e_step(views, block):
    """Posterior means and covariance of z, eqs. (5)-(6) and (11)-(12), and log p(block).

    Erratum: (12) lacks the factor sigma_x^2 that (4) has; see docs/errata.md.
    """
    q = views[0].W.shape[1]
    A = Cholesky(np.eye(q) + sum(W.T @ W / sigma2 for W, sigma2 in views))
    XW = sum((X @ W).astype(float) / sigma2 for X, (W, sigma2) in zip(block, views, strict=True))
    Z = A.solve(XW.T).T
    log_likelihood = -0.5 * (block[0].n_samples * A.logdet() - np.sum(Z * XW))
    for X, (_, sigma2) in zip(block, views, strict=True):
        size = X.n_samples * X.n_features
        log_likelihood -= 0.5 * (size * np.log(2 * np.pi * sigma2) + X.squared_norm / sigma2)
    return Z, A.solve(np.eye(q)), log_likelihood


def em_step(views, blocks: Sequence[Block], *, expand=False):
    """One EM step, Algorithm 2 of [YYTKW06], and the log likelihood it started from.

    With ``expand`` the prior covariance of z is freed for one M-step and absorbed in the
    loadings (parameter expansion): the same fixed points, reached in far fewer steps.
    """
    moments: list[list[Moments]] = [[] for _ in views]
    second, total, objective = 0.0, 0.0, 0.0
    for block in blocks:
        seen = [v for v, X in enumerate(block) if X is not None]
        data = [block[v] for v in seen]
        Z, covariance, log_likelihood = e_step([views[v] for v in seen], data)
        objective += log_likelihood
        ZZ = Z.T @ Z + data[0].n_samples * covariance
        second, total = second + ZZ, total + data[0].n_samples
        for v, X in zip(seen, data, strict=True):
            size = X.n_samples * X.n_features
            XZ = np.asarray(X.T @ Z, dtype=float)
            moments[v].append(Moments(size, ZZ, XZ, X.squared_norm))
    views = tuple(m_step(_add(m)) for m in moments)
    return (absorb(views, second / total) if expand else views), objective


def m_step(moments: Moments) -> View:
    """Regress a view on its latent variables, eqs. (13)-(16)."""
    size, ZZ, XZ, xx = moments
    W = Cholesky(ZZ).solve(XZ.T).T
    return View(W, max(xx - np.sum(W * XZ), NOISE_FLOOR * xx) / size)


def _add(moments: Sequence[Moments]) -> Moments:
    sizes, ZZ, XZ, xx = zip(*moments, strict=True)
    return Moments(sum(sizes), sum(ZZ), sum(XZ), sum(xx))  # type: ignore[arg-type]


def absorb(views, prior_covariance):
    """Loadings for z ~ N(0, I) that equal these for z ~ N(0, C)."""
    L = Cholesky(prior_covariance).L
    return tuple(View(W @ L, sigma2) for W, sigma2 in views)


def init(X: Data, q: int, rng: np.random.Generator) -> tuple[View]:
    """The maximum within the span of X'X times a random matrix.

    Every axis starts with its own scale: from a common one EM stays long near stationary
    points where small axes look like noise.
    """
    V, _ = np.linalg.qr(np.asarray(X.T @ (X @ rng.standard_normal((X.n_features, q)))))
    return _within(X, V, q)


def _within(X, V, q):
    """The maximum within the span of orthonormal columns (d, q or more)."""
    T = np.asarray(X @ V, dtype=float)
    values, rotation = np.linalg.eigh(T.T @ T)
    values, axes = values[::-1][:q], (V @ rotation)[:, ::-1][:, :q]
    spectrum = Spectrum(values, axes, X.squared_norm)
    _, sigma2, _ = scales_and_noise(spectrum.values, spectrum.trace, X.n_samples, X.n_features)
    variances = spectrum.values / X.n_samples
    # An axis that starts at zero would stay there.
    scales = np.sqrt(np.maximum(variances - sigma2, 0.1 * variances))
    return (View(spectrum.vectors * scales, sigma2),)


def step(state, X: Data):
    """One EM step with parameter expansion, and the log likelihood it started from."""
    return em_step(state, [(X,)], expand=True)


def accelerated(X: Data, start) -> Method:
    """EM on the rows of X from a start, with Anderson's mixing of numbers that have no unit."""
    unit = np.sqrt(X.squared_norm / (X.n_samples * X.n_features))
    like = partial(unpack, like=start, unit=unit)
    return anderson(Method(start, partial(step, X=X)), partial(pack, unit=unit), like)


class Settling(NamedTuple):
    """A state of the accelerated method and the objective of the one before."""

    state: Any
    objective: float


def past_saddles(X: Data, method: Method, tol) -> Method:
    """The method that looks for a longer axis outside of its span before it settles.

    Mixing ends at any stationary point, also at one where an axis is not among the leading ones.
    """

    def step(kept: Settling):
        state, objective = method.step(kept.state)
        if abs(objective - kept.objective) <= tol:
            (view,) = method.finish(kept.state)
            other, reached = method.step(accelerated(X, _with_other_axes(X, view)).start)
            if reached > objective + tol:
                state, objective = other, reached
        return Settling(state, objective), objective

    start = Settling(method.start, -np.inf)
    return Method(start, step, lambda kept: method.finish(kept.state))


def _with_other_axes(X, view):
    """The maximum within the span of the loadings and of what is long outside of it."""
    d, q = view.W.shape
    V, _ = np.linalg.qr(view.W)
    B = np.random.default_rng(0).standard_normal((d, min(1, d - q)))
    for _ in range(LOOKS):
        B, _ = np.linalg.qr(B - V @ (V.T @ B))
        B = np.asarray(X.normal_product(B), dtype=float)
    V, _ = np.linalg.qr(np.hstack([V, B]))
    return _within(X, V, q)


def pack(state, unit) -> np.ndarray:
    """The state as an unconstrained vector, in deviations of the data."""
    (view,) = state
    return np.append(view.W.ravel() / unit, np.log(view.sigma2 / unit**2))


def unpack(x, like, unit) -> tuple[View]:
    """The inverse of `pack` for a state of the same sizes."""
    return (View(x[:-1].reshape(like[0].W.shape) * unit, float(np.exp(x[-1])) * unit**2),)
