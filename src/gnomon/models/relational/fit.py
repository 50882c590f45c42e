"""The fits of PRPCA: without links, as in the paper, by a filter, beside neighbours, learnt.

    no links    PPCA
    "paper"     PPCA of rows mixed by R with R'R = Delta, in closed form or by EM      `paper`,
                EM with missing entries by `missing`; with a prior Bayesian PCA of these rows
    "filter"    PPCA of rows smoothed by a power of the normalised adjacency           `paper`
    "beside"    PPCA of rows side by side with neighbours and with smoothed rows       `beside`
    "auto"      "filter", or "beside" where smoothing blurs content; PPCA where neighbours
                tell no more than those of permuted links
    "learnt"    a shared part and a part of each row's own: `model`, fitted by `rounds`,
                with missing entries by `gaps`; PPCA where permuted links explain as much

Rows with gaps are filled first by PPCA, each from its own content. "learnt", and "paper" by EM, go
on from there to the likelihood of what is observed; the others take them as they are. With a prior
gaps are part of the bound.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gnomon.inference.loop import Run, iterate
from gnomon.linalg import graph
from gnomon.linalg.blocks import Made
from gnomon.linalg.data import Data, as_data, center, check_spread, has_gaps, larger
from gnomon.linalg.mixed import Mixed
from gnomon.linalg.solve import fix_signs, one_thread, threads_for
from gnomon.models.gaussian import bayesian, patterns, ppca
from gnomon.models.gaussian import fit as gaussian_fit
from gnomon.models.gaussian import gaps as gaussian_gaps
from gnomon.models.relational import beside, gaps, missing, model, paper, posterior, rounds
from gnomon.models.relational.model import State
from gnomon.stats.gaussian import View

# Nats per entry of X that an iteration must gain: of EM, of rounds of the learnt model, and of
# rounds that are costly. At these the embedding no longer changes visibly.
TOL, TOL_ROUNDS, TOL_COSTLY = 1e-8, 1e-7, 1e-5


class Problem(NamedTuple):
    """Rows, as an array with NaN for gaps, a sparse array or `Data`; links, None for none.

    ``Delta`` is a precision of the rows in the place of the one that the paper makes of links.
    """

    X: Any
    A: sparse.csr_array | None = None
    Delta: sparse.csr_array | None = None


class Settings(NamedTuple):
    """How links enter, with the parameters of each way, and when to stop; see `PRPCA`."""

    n_components: int | str
    relation: str
    alpha: float
    gamma: float
    solver: str
    power: int
    own_components: int
    max_iter: int
    tol: float | None
    rng: np.random.Generator
    prior: str | None = None


class PrpcaFit(NamedTuple):
    """Mean, loadings and noise of a row without links, the run, and what relations add.

    ``coordinates`` are what new rows need of the rows of the fit: their latent variables by
    content alone, or, where a part is shared, their content on the axes of the state.
    ``content`` says how rows themselves, neither mixed nor smoothed, spread along the axes of
    the view and around them; None where the view does. ``prior_variances`` are those of the
    loadings of a row without links, None without a prior. ``parts`` has loadings of content, of
    neighbours and of smoothed content, ``told`` what "auto" saw.
    """

    mean: np.ndarray
    view: View
    run: Run
    coordinates: np.ndarray
    links_used: bool = False
    state: State | None = None
    gain: float = 0.0
    permuted_gain: float = 0.0
    content: View | None = None
    prior_variances: np.ndarray | None = None
    relation: str = "filter"
    parts: beside.Parts | None = None
    told: beside.Told | None = None


def fit(problem: Problem, settings: Settings, loop) -> PrpcaFit:
    """The fit of the relation asked for, or PPCA without links."""
    with threads_for(as_data(problem.X)):
        if problem.A is None and problem.Delta is None:
            return _fit_alone(problem.X, settings, loop)
        return FITS[settings.relation](problem, settings, loop)


def _fit_auto(problem, settings, loop):
    """By the filter, beside neighbours, or without links, as content itself tells.

    Neighbours by links that are noise tell no more than those of permuted links. Smoothed content
    that tells columns which were not seen worse than content does is blurred.
    """
    rows = _centered_rows(problem.X, settings)
    told = beside.tell_content(problem.A, rows.centered, settings.power, settings.rng)
    if told.links_are_noise:
        return _fit_alone(problem.X, settings, loop)._replace(told=told, relation="none")
    by = _by_neighbours if told.smoothing_blurs else _by_filter
    return by(problem, rows, settings, loop)._replace(told=told)


class _Rows(NamedTuple):
    """Rows with their gaps filled, their mean, what is left, and its squared norm."""

    filled: "_Filled"
    mean: np.ndarray
    centered: Any
    total: float


def _centered_rows(X, settings):
    filled = _without_gaps(X, settings.n_components, settings)
    mean, centered = center(as_data(filled.X))
    return _Rows(filled, mean, centered, check_spread(centered.squared_norm, centered.dtype))


def _fit_alone(X, settings, loop):
    """PPCA."""
    q, max_iter, tol = settings.n_components, settings.max_iter, _tolerance(settings, TOL)
    options = gaussian_fit.Settings(q, "auto", max_iter, tol, settings.rng, settings.prior)
    found = gaussian_fit.fit(gaussian_fit.Problem(X), options, loop)
    coordinates = _latent_means(X, found.mean, found.view)
    variances = None if found.evidence is None else found.evidence.variances
    return PrpcaFit(found.mean, found.view, found.run, coordinates, prior_variances=variances)


def _fit_paper(problem, settings, loop):
    """PPCA of rows mixed by R with R'R = Delta, eqs. (16)-(22) of [LYZ09]."""
    R, scale = _precision_root(problem, settings)
    if settings.prior is not None:
        return _fit_evidence(problem.X, R, scale, settings, loop)
    filled = _without_gaps(problem.X, settings.n_components, settings)
    rows = as_data(filled.X)
    mean = paper.relational_mean(rows, R)
    centered = rows.less_mean(mean)
    total = check_spread(centered.squared_norm, rows.dtype)
    if has_gaps(problem.X) and settings.solver == "em":
        mean, view, run = _observed_maximum(problem.X, R, rows, settings, loop)
        centered = rows.less_mean(mean)
    else:
        by = _by_em if settings.solver == "em" else _in_closed_form
        view, run = by(Mixed(R.astype(rows.dtype), centered), total, settings, loop)
    view = paper.of_row(view, scale)
    return _mixed_fit(problem.X, mean, view, run, _content(view, centered, total, filled))


def _fit_evidence(X, R, scale, settings, loop):
    """Bayesian PRPCA: the bound of `bayesian` for mixed rows, gaps a part of it."""
    q = bayesian.most(settings.n_components, X.shape)
    if has_gaps(X):
        linked = bayesian.linked_rows(X.astype(float), R)
        limits = {"max_iter": settings.max_iter, "tol": _tolerance(settings, TOL)}
        run = bayesian.maximise_with_gaps(linked, q, loop, **limits)
        mean, found = run.state.mean, run.state.evidence
        rows = as_data(run.state.filled)
    else:
        rows = as_data(X)
        mean = paper.relational_mean(rows, R)
        mixed = Mixed(R.astype(rows.dtype), rows.less_mean(mean))
        spectrum = paper.checked_spectrum(mixed, _spread(rows, mean), q, settings.rng)
        found = bayesian.maximise(spectrum, q, mixed.n_samples)
        run = Run(found, [found.bound], converged=True)
    view, centered = paper.of_row(found.view, scale), rows.less_mean(mean)
    content = _content(view, centered, _spread(rows, mean), _Filled(rows))
    kept = _mixed_fit(X, mean, view, run, content)
    return kept._replace(prior_variances=found.variances / scale)


def _spread(rows, mean):
    """Squared norm of the rows less the mean, refused where they do not vary."""
    return check_spread(rows.less_mean(mean).squared_norm, rows.dtype)


def _precision_root(problem, settings):
    """R with R'R = Delta, and the entry of Delta for a row without links, or for a typical one."""
    if problem.Delta is None:
        alpha, gamma = settings.alpha, settings.gamma
        return paper.mixing(problem.A, alpha, gamma), alpha**2 + gamma
    return paper.root_of(problem.Delta), float(problem.Delta.diagonal().mean())


def _observed_maximum(X, R, filled, settings, loop):
    """Mean, view and run at the maximum of the likelihood of the observed entries."""
    filled = np.concatenate(list(filled.dense_blocks()), dtype=float)
    limits = {"max_iter": settings.max_iter, "tol": _tolerance(settings, TOL)}
    q = settings.n_components
    run = missing.maximise(X.astype(float), R.T @ R, filled, q, loop, **limits)
    view = run.state.view
    return run.state.mean, View(ppca.canonical(view.W), view.sigma2), run


def _fit_filter(problem, settings, loop):
    return _by_filter(problem, _centered_rows(problem.X, settings), settings, loop)


def _by_filter(problem, rows, settings, loop):
    """PPCA of rows smoothed by a power of the normalised adjacency."""
    smoothed = paper.filtered(problem.A, rows.centered, settings.power)
    view, run = _in_closed_form(smoothed, rows.total, settings, loop)
    content = _content(view, rows.centered, rows.total, rows.filled)
    return _mixed_fit(problem.X, rows.mean, view, run, content)


def _fit_beside(problem, settings, loop):
    return _by_neighbours(problem, _centered_rows(problem.X, settings), settings, loop)


def _by_neighbours(problem, rows, settings, loop):
    """PPCA of rows side by side with the means of their neighbours, and with smoothed rows."""
    mean, centered, (q, power) = rows.mean, rows.centered, (settings.n_components, settings.power)
    parts, objective = beside.fit_parts(problem.A, centered, rows.total, q, power, settings.rng)
    view, run = View(parts.W, parts.sigma2), Run(parts, [objective], converged=True)
    axes = View(ppca.canonical(parts.W), parts.sigma2)
    content = _content(axes, centered, rows.total, rows.filled)
    coordinates = beside.known_of(parts, centered)
    return PrpcaFit(
        mean, view, run, coordinates, True, content=content, relation="beside", parts=parts
    )


def _mixed_fit(X, mean, view, run, content):
    """What is kept where rows were mixed or smoothed over their links."""
    coordinates = _latent_means(X, mean, view)
    return PrpcaFit(mean, view, run, coordinates, links_used=True, content=content)


def _content(view, centered, total, filled):
    """Loadings along the axes of the view and noise around them, of the rows as they are.

    Links take away most of what is a row's own, or add to it, so that neither the noise nor
    the loadings of mixed rows say how far an entry is from what others of its row tell.
    """
    lengths = np.linalg.norm(view.W, axis=0)
    U, (n, d) = view.W / np.where(lengths > 0, lengths, 1.0), centered.shape
    if filled.state is None:
        energies = np.sum(np.asarray(centered @ U, dtype=float) ** 2, axis=0)
    else:
        W, _, noise = filled.state
        energies = n * (np.sum((W.T @ U) ** 2, axis=0) + noise)
        total = n * float(np.sum(W**2) + d * noise[0])
    scales, sigma2, _ = ppca.scales_and_noise(energies, total, n, d)
    return View(U * scales, sigma2)


def _in_closed_form(mixed, total, settings, loop):
    found = paper.closed_form(mixed, total, settings.n_components, settings.rng)
    return found.view, Run(found, [found.log_likelihood], converged=True)


def _by_em(mixed, total, settings, loop):
    method = paper.em_method(mixed, total, settings.n_components, settings.rng)
    tol = _tolerance(settings, TOL) * mixed.n_samples * mixed.n_features
    run = loop(method, max_iter=settings.max_iter, tol=tol)
    (view,) = run.state
    return View(ppca.canonical(view.W), view.sigma2), run


@one_thread
def _fit_learnt(problem, settings, loop):
    """The learnt model, or PPCA where a permuted graph explains the rows as well."""
    X, A = _in_near_order(problem)
    task = _task(X, A, settings)
    without, reference = model.independent(task.axes, task.q, task.data)
    task = task._replace(data=rounds.coarse(task.data))
    verdict = rounds.judge(task, reference)
    if verdict.gain <= verdict.needed:
        run = Run(without, [reference], converged=True)
        return _found(problem.X, task, without, run, verdict, links_used=False)
    state, run, log_likelihood = _fit_rounds(X, task, verdict, settings, loop)
    verdict = verdict._replace(gain=log_likelihood - reference)
    return _found(problem.X, task, state, run, verdict, links_used=True)


def _in_near_order(problem):
    """Many rows such that linked ones are close; the model does not depend on their order."""
    X, A, _ = problem
    if X.shape[0] <= rounds.MANY or not sparse.issparse(X):
        return X, A
    order = graph.near_order(A)
    return X[order], A[order][:, order]  # type: ignore[index]


def _task(X, A, settings):
    """Rows with their gaps filled, centred and linked, and their principal axes."""
    q, rng = settings.n_components, settings.rng
    # Own axes beyond half of the rows or features would explain all of the content.
    k = q + min(settings.own_components, max(0, min(X.shape) // 2 - q))
    rows = as_data(_without_gaps(X, k, settings).X)
    mean, centered = center(rows)
    check_spread(centered.squared_norm, rows.dtype)
    data = model.link(centered, A, rng)
    return rounds.Task(rows, A, mean, data, ppca.leading_axes(centered, k, rng), q, rng)


def _fit_rounds(X, task, verdict, settings, loop):
    """State with the shared variances shrunk, the run, and the log likelihood before that."""
    costly = X.shape[0] > rounds.MANY or has_gaps(X)
    tol = _tolerance(settings, TOL_COSTLY if costly else TOL_ROUNDS) * X.shape[0] * X.shape[1]
    run, (number, factor) = _continuation(task, verdict, settings, tol)
    limits = {"number": number, "max_iter": settings.max_iter, "tol": tol}
    follow = partial(rounds.follow, loop=loop, **limits)
    if has_gaps(X):
        filled = np.concatenate(list(task.X.dense_blocks()), dtype=float) - task.mean
        start = gaps.Filled(run.state, filled)
        state, run, value = gaps.fit_with_gaps(start, X - task.mean, task.data, follow)
    else:
        state, run, value = rounds.finish(run, task.data, follow)
    return state._replace(a=factor * state.a), run, value


def _continuation(task, verdict, settings, tol):
    """The likelier trial until it converges, or for as many rounds as serve held-out rows best."""
    n, k = task.X.shape[0], task.axes.shape[1]
    trial = rounds.likeliest_later(verdict.trials, n, max_iter=settings.max_iter, tol=tol)
    if settings.tol is None and rounds.can_hold_out(n, k):
        least = rounds.rounds_above(verdict.reference + verdict.needed, trial.run)
        anew = Run(trial.method.finish(trial.method.start), [], False, trial.method)
        return anew, rounds.choose(task, trial.start_axes, least)
    return trial.run, rounds.Rounds()


def _found(X, task, state, run, verdict, links_used):
    """What is kept of a state, with or without a shared part."""
    q, mean, state = task.q, task.mean, state._replace(U=fix_signs(state.U))
    if links_used:
        variances = model.shared_variance(state, task.data.spectrum)
        coordinates = _on_axes(X, mean, state)
    else:
        variances, every = state.c[:q], View(state.U * np.sqrt(state.c), state.sigma2)
        coordinates = _latent_means(X, mean, every)[:, :q]
    view = View(state.U[:, :q] * np.sqrt(variances), state.sigma2)
    gains = float(verdict.gain), float(verdict.permuted_gain)
    return PrpcaFit(mean, view, run, coordinates, links_used, state, *gains)


def _on_axes(X, mean, state):
    """Rows less the mean on all axes (n, q + r), gaps filled from the content of the row alone."""
    if not has_gaps(X):
        return np.asarray(as_data(X).less_mean(mean) @ state.U, dtype=float)
    n, k = X.shape[0], state.U.shape[1]
    alone = posterior.Nodes(sparse.csr_array((n, n)), np.zeros((0, k)))
    return posterior.coordinates(state, X - mean, alone)


def _latent_means(X, mean, view):
    """E[z | x] of every row by its content, eq. (19) of [LYZ09], for orthogonal loadings."""
    if has_gaps(X):
        place = partial(_means_of_rows, gaussian_gaps.State(view.W, mean, np.array([view.sigma2])))
        return np.concatenate([place(rows) for rows in _runs(X)])
    weights = view.W / (np.sum(view.W**2, axis=0) + view.sigma2)
    return as_data(X).less_mean(mean) @ weights


def _runs(X):
    """All rows of an array, or those of blocks a part at a time."""
    return larger(X.dense_blocks(), patterns.PART_ROWS) if isinstance(X, Data) else [X]


def _means_of_rows(state, rows):
    return gaussian_gaps.latent_means(state, patterns.alike(rows))


class _Filled(NamedTuple):
    """Rows without gaps, and the PPCA that filled them, None where there were none."""

    X: Any
    state: gaussian_gaps.State | None = None


def _without_gaps(X, q, settings):
    """X with its gaps filled by PPCA, each row from its own content.

    Rows in blocks that are too many to keep are filled each time they are needed.
    """
    if not has_gaps(X):
        return _Filled(X)
    data, tol = patterns.inputs_of_any_number(X), _tolerance(settings, TOL)
    run = gaussian_gaps.maximise(data, q, iterate, max_iter=settings.max_iter, tol=tol)
    filled = partial(_fill_rows, run.state)
    at_once = patterns.PART_ROWS
    return _Filled(Made(X, filled, at_once) if isinstance(X, Data) else filled(X), run.state)


def _fill_rows(state, rows):
    return gaussian_gaps.fill(state, patterns.alike(rows))[0].astype(rows.dtype)


def _tolerance(settings, default) -> float:
    return default if settings.tol is None else settings.tol


FITS = {
    "auto": _fit_auto,
    "paper": _fit_paper,
    "filter": _fit_filter,
    "beside": _fit_beside,
    "learnt": _fit_learnt,
}
