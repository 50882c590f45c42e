"""The fit of PPCA: in closed form where X is complete, by what is observed where it has gaps.

    complete    leading eigenpairs of X'X by moments, dual or subspace, then eqs. (7)-(8) of
                [TB99]; or EM for study
    gaps        EM of the observed entries, rows with the same gaps together
    prior       Bayesian PCA, `bayesian`: components without evidence are left out

Where the number of components is not given, `dimension` finds it first.
"""

from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from gnomon.inference.loop import Run, iterate
from gnomon.linalg.data import as_data, center, check_spread, has_gaps, weighted
from gnomon.linalg.solve import threads_for
from gnomon.models.gaussian import bayesian, dimension, em, gaps, patterns, ppca
from gnomon.stats import strata
from gnomon.stats.gaussian import View

# Rows with gaps by which a size is chosen where all are too many to keep: of 50 columns 12 CPU
# seconds, and held-out likelihood errs less than from one size to the next.
SIZE_ROWS = 10_000


class Problem(NamedTuple):
    """Rows, as an array with NaN for gaps, a sparse array or `Data`; weights that count rows."""

    X: Any
    weights: np.ndarray | None = None


class Settings(NamedTuple):
    """A number of components, a share of variance or "auto"; the solver; when to stop."""

    n_components: int | float | str
    solver: str
    max_iter: int
    tol: float
    rng: np.random.Generator
    prior: str | None = None


class PpcaFit(NamedTuple):
    """Mean, loadings in principal order and noise; the run, and how the size was chosen.

    ``total`` is the variance of all columns together, ``evidence`` what a prior leads to.
    """

    mean: np.ndarray
    view: View
    total: float
    run: Run
    curve: dimension.Curve | None = None
    at_floor: bool = False
    evidence: bayesian.Evidence | None = None


def fit(problem: Problem, settings: Settings, loop) -> PpcaFit:
    """The maximum of the likelihood, or of a bound on the evidence, of all that is observed."""
    # Numbers out of range are found by what they lead to, and named.
    rows = as_data(problem.X)
    with np.errstate(over="ignore", invalid="ignore"), threads_for(rows):
        if settings.prior is not None:
            return _fit_evidence(problem, settings, loop)
        if rows.has_gaps:
            return _fit_gaps(problem, settings, loop)
        return _fit_complete(problem._replace(X=rows), settings, loop)


def _fit_complete(problem, settings, loop):
    data = weighted(*problem)
    mean, centered = center(data)
    spectrum_of = partial(_spectrum, settings=settings)
    curve, n_components = None, settings.n_components
    if not isinstance(n_components, Integral):
        check_spread(centered.squared_norm, data.dtype)
    if n_components == "auto":
        curve = dimension.held_out_curve(data, centered, spectrum_of, settings.rng)
    q = _size(n_components, curve, partial(dimension.explained, centered, spectrum_of), data.shape)
    if settings.solver == "em":
        return _fit_em(mean, centered, q, settings, loop)._replace(curve=curve)
    spectrum = spectrum_of(centered, q)
    total = check_spread(spectrum.trace, data.dtype) / centered.n_samples
    found = ppca.closed_form(spectrum, q, centered.n_samples)
    run = Run(found, [found.log_likelihood], converged=True)
    return PpcaFit(mean, found.view, total, run, curve, found.at_floor)


def _fit_em(mean, X, q, settings, loop):
    total = check_spread(X.squared_norm, X.dtype) / X.n_samples
    tol = settings.tol * X.n_samples * X.n_features
    method = em.past_saddles(X, em.accelerated(X, em.init(X, q, settings.rng)), tol)
    run = loop(method, max_iter=settings.max_iter, tol=tol)
    (view,) = run.state
    return PpcaFit(mean, view._replace(W=ppca.canonical(view.W)), total, run)


def _fit_gaps(problem, settings, loop):
    q, curve = settings.n_components, None
    if not isinstance(q, Integral):
        q, curve = _size_with_gaps(problem, settings)
    data = patterns.inputs_of_any_number(*problem)
    run = gaps.maximise(data, q, loop, max_iter=settings.max_iter, tol=settings.tol)
    W, mean, (sigma2,) = run.state
    total = float(np.sum(W**2) + len(mean) * sigma2)
    return PpcaFit(mean, View(ppca.canonical(W), float(sigma2)), total, run, curve)


def _size_with_gaps(problem, settings):
    """The number of components that is asked for by a share or by "auto", and the curve if any."""
    limits = {"max_iter": settings.max_iter, "tol": settings.tol}
    data, curve = patterns.inputs(*_some_rows(problem)), None
    if settings.n_components == "auto":
        curve = dimension.search_curve(data, settings.rng, **limits)

    def fit_rows(rows, q):
        return gaps.maximise(rows, q, iterate, **limits).state

    explained = partial(dimension.explained_with_gaps, data, fit_rows)
    return _size(settings.n_components, curve, explained, problem.X.shape), curve


def _some_rows(problem):
    """All rows, or evenly drawn ones of more than are kept: a size costs many fits."""
    X, weights = problem
    if not patterns.too_many(X):
        return problem
    index, _ = strata.drawn(np.zeros(X.shape[0]), SIZE_ROWS)
    rows = as_data(X).rows(index).as_array()
    return Problem(rows, None if weights is None else weights[index])


def _fit_evidence(problem, settings, loop):
    """The maximum of a bound on the evidence, with the prior of `bayesian`."""
    if has_gaps(problem.X):
        rows = bayesian.weighted_rows(problem.X.astype(float), problem.weights)
        q = bayesian.most(settings.n_components, rows.X.shape)
        limits = {"max_iter": settings.max_iter, "tol": settings.tol}
        run = bayesian.maximise_with_gaps(rows, q, loop, **limits)
        mean, found = run.state.mean, run.state.evidence
        total = float(np.sum(found.view.W**2) + len(mean) * found.view.sigma2)
        return PpcaFit(mean, found.view, total, run, evidence=found)
    data = weighted(*problem)
    mean, centered = center(data)
    q, n = bayesian.most(settings.n_components, data.shape), centered.n_samples
    spectrum = _spectrum(centered, q, settings)
    total = check_spread(spectrum.trace, data.dtype) / n
    found = bayesian.maximise(spectrum, q, n)
    run = Run(found, [found.bound], converged=True)
    return PpcaFit(mean, found.view, total, run, evidence=found)


def _size(n_components, curve, explained, shape):
    """The number of components: of the best criterion, as asked for, or for the share asked."""
    if curve is not None:
        return curve.best
    if isinstance(n_components, Integral):
        return n_components
    return dimension.size_for_share(n_components, explained, min(shape))


def _spectrum(X, k, settings):
    solver = "auto" if settings.solver == "em" else settings.solver
    limits = {"tol": settings.tol, "max_rounds": settings.max_iter}
    return ppca.leading_spectrum(X, k, settings.rng, solver=solver, **limits)
