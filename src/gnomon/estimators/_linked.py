"""The fits behind PRPCA: without links, as in the paper and by a filter; and what they share.

Each takes the estimator for its parameters and its loop, and returns a `Fitted`.
"""

from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Run, iterate
from gnomon.linalg import eigen
from gnomon.linalg.data import (
    Centered,
    Matrix,
    as_data,
    center,
    check_spread,
    has_gaps,
)
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.mixed import Mixed
from gnomon.models import prpca
from gnomon.models.gaussian import em, gaps, ppca
from gnomon.models.gaussian.ppca import leading_spectrum
from gnomon.models.relational import Relational
from gnomon.stats.gaussian import View

# Nats per entry of X.
TOL = 1e-8
# The noise of large mixed data is that of as many rows as this; exact below as many products.
SAMPLED_ROWS, EXACT_BELOW = 4000, 1e8


class Fitted(NamedTuple):
    """Mean, loadings and noise of a row without links, the run, and what "learnt" adds."""

    mean: np.ndarray
    view: View
    run: Run
    links_used: bool = False
    state: Relational | None = None
    gain: float = 0.0
    permuted_gain: float = 0.0


def without_links(model, X, q, rng) -> Fitted:
    """PPCA."""
    if has_gaps(X):
        run = _fit_gaps(model, X, q, model._iterate)
        W, mean, (sigma2,) = run.state
        return Fitted(mean, View(ppca.canonical(W), float(sigma2)), run)
    mean, centered = center(as_data(X))
    check_spread(centered.squared_norm)
    return Fitted(mean, *_closed_form(centered, q, rng))


def paper(model, X, A, q, rng) -> Fitted:
    """PPCA of rows mixed by R with R'R = Delta, eqs. (16)-(22) of [LYZ09]."""
    data = as_data(without_gaps(model, X, q))
    R = prpca.mixing(A, model.alpha, model.gamma)
    mean = prpca.relational_mean(data, R)
    centered = Centered(data, mean)
    check_spread(centered.squared_norm)
    mixed = Mixed(R.astype(data.dtype), centered)
    if model.solver == "em":
        view, run = _em(model, centered, mixed, q, rng)
    else:
        view, run = _closed_form(mixed, q, rng)
    # A row without links has the covariance (W W' + sigma2 I) / scale.
    scale = model.alpha**2 + model.gamma
    return Fitted(mean, View(view.W / np.sqrt(scale), view.sigma2 / scale), run, links_used=True)


def filter(model, X, A, q, rng) -> Fitted:
    """PPCA of rows smoothed by a power of the normalised adjacency."""
    mean, centered = center(as_data(without_gaps(model, X, q)))
    check_spread(centered.squared_norm)
    return Fitted(mean, *_closed_form(prpca.filtered(A, centered, model.power), q, rng), True)


def link_axes(A, k, rng) -> Fitted:
    """PPCA of the rows of the adjacency."""
    mean, centered = center(Matrix(A))
    check_spread(centered.squared_norm)
    return Fitted(mean, *_closed_form(centered, k, rng))


def tolerance(model, default) -> float:
    return default if model.tol is None else model.tol


def _closed_form(data, q, rng) -> tuple[View, Run]:
    fit = ppca.closed_form(spectrum_of(data, q, rng), q, data.n_samples)
    return fit.view, Run(fit, [fit.log_likelihood], converged=True)


def spectrum_of(data, q, rng) -> Spectrum:
    """Leading eigenpairs, and the energy of all of them."""
    if not data.is_sparse or 8 * q > min(data.shape):
        return leading_spectrum(data, q, rng)
    values, vectors = eigen.from_lanczos(data, q, rng)
    return Spectrum(values, vectors, _trace(data, values, vectors, rng))


def _trace(data, values, vectors, rng) -> float:
    """The squared norm of rows mixed over links, of large ones from some of the rows.

    Mixed rows are far less sparse than they were, and their norm would cost more than all else.
    Only what lies outside of the leading axes is sampled.
    """
    n = data.shape[0]
    if not isinstance(data, Mixed) or n <= SAMPLED_ROWS or data.R.nnz * data.shape[1] < EXACT_BELOW:
        return data.squared_norm
    rows = data.rows(np.sort(rng.choice(n, SAMPLED_ROWS, replace=False)))
    inside = np.asarray(rows @ vectors.astype(rows.dtype), dtype=float)
    rest = (rows.squared_norm - np.sum(inside**2)) * n / SAMPLED_ROWS
    return float(values.sum() + max(rest, 0.0))


def axes_of(data, q, rng):
    """Leading axes alone, without the energy of the rest."""
    if not data.is_sparse or 8 * q > min(data.shape):
        return leading_spectrum(data, q, rng).vectors
    return eigen.from_lanczos(data, q, rng)[1]


def _em(model, centered, mixed, q, rng) -> tuple[View, Run]:
    """EM from the principal axes of the content, as in [LYZ09]."""
    start = (ppca.closed_form(leading_spectrum(centered, q, rng), q, centered.n_samples).view,)
    method = em.accelerated(mixed, start)
    tol = tolerance(model, TOL) * centered.shape[0] * centered.shape[1]
    run = model._iterate(method, max_iter=model.max_iter, tol=tol)
    (view,) = run.state
    return View(ppca.canonical(view.W), view.sigma2), run


def _fit_gaps(model, X, q, loop) -> Run:
    """PPCA by the likelihood of what is observed."""
    limits = {"max_iter": model.max_iter, "tol": tolerance(model, TOL)}
    return gaps.maximise(gaps.inputs(X), q, loop, **limits)


def without_gaps(model, X, q):
    """X with its gaps filled by PPCA, each row from its own content."""
    if not has_gaps(X):
        return X
    state = _fit_gaps(model, X, q, iterate).state
    return gaps.fill(state, gaps.inputs(X))[0].astype(X.dtype)


def state_of(axes, shared, own, smoothness, sigma2) -> Relational:
    """The relational state from what an estimator keeps of it."""
    U = np.asarray(axes.T, dtype=float)
    return Relational(U, shared, own, smoothness, float(sigma2))
