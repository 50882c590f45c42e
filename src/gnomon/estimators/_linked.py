"""The fits behind PRPCA: without links, as in the paper, by a filter, and learnt.

Each takes the estimator for its parameters and its loop, and returns a `Fitted`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.estimators._base import has_gaps
from gnomon.estimators._spectrum import leading_spectrum
from gnomon.estimators._validation import check_columns, check_spread
from gnomon.inference.acceleration import anderson, at_rest, momentum, remember
from gnomon.inference.fixed_point import Run, iterate
from gnomon.linalg import eigen, graph, lanczos
from gnomon.linalg.data import Centered, Matrix, as_data
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.mixed import Mixed
from gnomon.linalg.stacked import center
from gnomon.models import incomplete, ppca, prpca, relational, relational_gaps
from gnomon.models.linear_gaussian import View
from gnomon.models.relational import Relational

# Rounds from each start, on the graph and on its permutation, before the links are judged; many
# rows tell after fewer.
EARLY_ROUNDS, EARLY_ROUNDS_MANY = 4, 2
# Nats per entry of X. The axes of "learnt" have many more parameters than the rows can settle:
# further rounds raise the likelihood of the rows, but not that of rows held out.
TOL, TOL_LEARNT = 1e-8, 1e-4
# The noise of large mixed data is that of as many rows as this; exact below as many products.
SAMPLED_ROWS, EXACT_BELOW = 4000, 1e8
# Rows beyond which rounds are run in single precision.
SINGLE_ABOVE = 5000


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
        state, run = _fit_gaps(model, X, q, model._iterate)
        return Fitted(state.mean, View(ppca.canonical(state.W), float(state.noise[0])), run)
    mean, centered = center(as_data(X))
    check_spread(centered.squared_norm)
    return Fitted(mean, *_closed_form(centered, q, rng))


def paper(model, X, A, q, rng) -> Fitted:
    """PPCA of rows mixed by R with R'R = Delta, eqs. (16)-(22) of [LYZ09]."""
    data = as_data(_without_gaps(model, X, q))
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
    mean, centered = center(as_data(_without_gaps(model, X, q)))
    check_spread(centered.squared_norm)
    return Fitted(mean, *_closed_form(prpca.filtered(A, centered, model.power), q, rng), True)


def learnt(model, X, A, q, rng) -> Fitted:
    """The relational model, or PPCA where a permuted graph explains the rows as well."""
    k = q + min(model.own_components, max(0, min(X.shape) // 2 - q))
    filled = _without_gaps(model, X, k)
    mean, centered = center(as_data(filled))
    check_spread(centered.squared_norm)
    S = graph.normalized(A)
    data = relational.link(centered, S, lanczos.density(S, graph.component_basis(A), rng))
    axes = _spectrum(centered, k, rng).vectors
    without, reference = relational.independent(axes, q, data)
    coarse = _coarse(data)
    early = _explore(coarse, axes, q, rng)
    order = rng.permutation(A.shape[0])
    blank = _explore(coarse._replace(S=coarse.S[order][:, order]), axes, q, rng)
    gains = early.objective[-1] - reference, blank.objective[-1] - reference
    # BIC of q strengths on top: the permuted gain is itself a draw.
    if gains[0] - max(gains[1], 0.0) <= q * np.log(A.shape[0]):
        return _rejected(mean, without, q, Run(without, [reference], True), gains)
    tol = _tol(model, TOL_LEARNT) * X.shape[0] * X.shape[1]
    loop = partial(model._iterate, max_iter=model.max_iter, tol=tol)
    if has_gaps(X):
        holes = X.astype(float) - mean
        start = relational_gaps.Gapped(early.state.plain, np.asarray(filled, float) - mean)
        run = loop(partial(relational_gaps.step, holes=holes, data=data), start)
        last, filled, _ = relational_gaps.complete(run.state, holes, data)
        state, log_likelihood = relational.settle(run.state.state, last)
    else:
        run = loop(momentum(partial(relational.step, data=coarse), relational.leap), early.state)
        run = run._replace(objective=early.objective + run.objective)
        state, log_likelihood = relational.settle(run.state.plain, coarse)
    return _accepted(mean, state, run, data, (log_likelihood - reference, gains[1]))


def link_axes(A, k, rng) -> Fitted:
    """PPCA of the rows of the adjacency."""
    mean, centered = center(Matrix(A))
    check_spread(centered.squared_norm)
    return Fitted(mean, *_closed_form(centered, k, rng))


def _tol(model, default) -> float:
    return default if model.tol is None else model.tol


def _closed_form(data, q, rng) -> tuple[View, Run]:
    fit = ppca.closed_form(_spectrum(data, q, rng), q, data.n_samples)
    return fit.view, Run(fit, [fit.log_likelihood], converged=True)


def _spectrum(data, q, rng) -> Spectrum:
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


def _axes(data, q, rng):
    """Leading axes alone, without the energy of the rest."""
    if not data.is_sparse or 8 * q > min(data.shape):
        return leading_spectrum(data, q, rng).vectors
    return eigen.from_lanczos(data, q, rng)[1]


def _em(model, centered, mixed, q, rng) -> tuple[View, Run]:
    """EM from the principal axes of the content, as in [LYZ09]."""
    start = (ppca.closed_form(leading_spectrum(centered, q, rng), q, centered.n_samples).view,)
    step = anderson(partial(ppca.step, X=mixed), ppca.pack, partial(ppca.unpack, like=start))
    tol = _tol(model, TOL) * centered.shape[0] * centered.shape[1]
    run = model._iterate(step, remember(start), max_iter=model.max_iter, tol=tol)
    (view,) = run.state.plain
    return View(ppca.canonical(view.W), view.sigma2), run


def _fit_gaps(model, X, q, loop):
    """PPCA by the likelihood of what is observed."""
    check_columns(X)
    data = incomplete.group_rows(X.astype(float), np.zeros(X.shape[1], dtype=int))
    start = incomplete.init(data, q)
    step = anderson(
        partial(incomplete.step, data=data),
        incomplete.pack,
        partial(incomplete.unpack, like=start),
    )
    tol = _tol(model, TOL) * incomplete.n_observed(data)
    run = loop(step, remember(start), max_iter=model.max_iter, tol=tol)
    return run.state.plain, run


def _without_gaps(model, X, q):
    """X with its gaps filled by PPCA, each row from its own content."""
    if not has_gaps(X):
        return X
    state, _ = _fit_gaps(model, X, q, iterate)
    data = incomplete.group_rows(X.astype(float), np.zeros(X.shape[1], dtype=int))
    return incomplete.fill(state, data)[0].astype(X.dtype)


def _coarse(data):
    """The same rows in single precision where there are many."""
    if data.X.shape[0] <= SINGLE_ABOVE:
        return data
    X = data.X.single()
    return data._replace(X=X, S=data.S.astype(X.dtype))


def _explore(data, axes, q, rng) -> Run:
    """The best of some rounds from the smoothest principal axes and from axes of smoothed rows."""
    smooth = _axes(relational.smoothed(data), q, rng)
    starts = (
        relational.smoothest_first(axes, q, data),
        relational.join_axes(smooth, axes, data),
    )
    step = momentum(partial(relational.step, data=data), relational.leap)
    rounds = EARLY_ROUNDS if data.X.shape[0] <= SINGLE_ABOVE else EARLY_ROUNDS_MANY
    runs = [
        iterate(step, at_rest(relational.init(U, q, data)), max_iter=rounds, tol=0.0)
        for U in starts
    ]
    return max(runs, key=lambda run: run.objective[-1])


def _rejected(mean, state, q, run, gains) -> Fitted:
    view = View(state.U[:, :q] * np.sqrt(state.c[:q]), state.sigma2)
    return Fitted(mean, view, run, False, state, *map(float, gains))


def _accepted(mean, state, run, data, gains) -> Fitted:
    scales = np.sqrt(relational.shared_variance(state, data.spectrum))
    view = View(state.U[:, : len(scales)] * scales, state.sigma2)
    return Fitted(mean, view, run, True, state, *map(float, gains))


def state_of(axes, shared, own, smoothness, sigma2) -> Relational:
    """The relational state from what an estimator keeps of it."""
    U = np.asarray(axes.T, dtype=float)
    return Relational(U, shared, own, smoothness, float(sigma2))
