"""DCA-GM and SDCA-GM [PGK07]: from rows, labels and chunks to a projection and a mixture.

    standardise  ->  choose weights  ->  start and alternate, or go by batches  ->  report

Where labels are few for the columns, the fit is shorter in both, and labels left out say how far
it may be believed (`few`).

Read this first; then `start`, where the iteration begins, `alternation`, the objective J and its
steps, `rows`, what labels and chunks say, and `mixture`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from gnomon.inference.loop import Method, Run, iterate, keep_best
from gnomon.linalg.data import Data, Matrix
from gnomon.linalg.solve import column_signs, threads_for
from gnomon.linalg.standardize import RowSpace, Standard, row_space, standardize
from gnomon.models.dcagm import batches, few, sampled
from gnomon.models.dcagm.alternation import PATIENCE, Model, State, state_at, step
from gnomon.models.dcagm.mixture import (
    Mixture,
    class_covariances,
    log_joint,
    log_sum,
    moved,
    whiten,
)
from gnomon.models.dcagm.rows import Labelled, Rows, Sample, arrange
from gnomon.models.dcagm.start import start
from gnomon.models.dcagm.weights import choose_weights

# As the patience of the alternation, where an iteration is an epoch of batches, many steps.
BATCH_PATIENCE = 2
# Quantiles of the density that are kept: steps of a thousandth.
N_QUANTILES = 1001


class Problem(NamedTuple):
    """Rows, all of positive weight, and what is known of them.

    ``labels`` are class numbers and ``chunks`` chunk numbers, -1 where there is none;
    ``n_gaussians`` is the number of Gaussians of each class; ``apart`` (n, n) is not zero between
    rows of different classes, None where no such pair is known.
    """

    X: Data
    labels: np.ndarray
    chunks: np.ndarray
    weights: np.ndarray
    n_gaussians: list[int]
    apart: sparse.csr_array | None = None


class Settings(NamedTuple):
    """The model, and how it is fitted and reported.

    ``choose`` names the weights of the model to be chosen by cross-validation. ``metric`` is
    "within" or "raw", see `reported`. ``tol`` is per labelled row.
    """

    model: Model
    choose: tuple[str, ...]
    standardize: bool | str
    metric: str
    batch_size: int | None
    n_init: int
    max_iter: int
    tol: float
    rng: np.random.Generator


class DcagmFit(NamedTuple):
    """A fit in the units of X: coordinates are (X - mean) components', their density the mixture.

    ``density_quantiles`` are those of log p(z) over the labelled rows; ``model`` has the weights
    that were used; ``weight_scores`` has, for those chosen by cross-validation, the values tried
    and their scores; ``held_out`` has fits without some of the labels, where these are few.
    """

    mean: np.ndarray
    components: np.ndarray
    mixture: Mixture
    density_quantiles: np.ndarray
    model: Model
    weight_scores: dict[str, dict]
    run: Run
    held_out: list[few.Fold]


Loop = Callable[..., Run]
Basis = RowSpace | few.Axes | None


def fit(problem: Problem, settings: Settings, loop: Loop) -> DcagmFit:
    """Fit the projection and the mixture; ``loop`` runs a method as `iterate` does."""
    with threads_for(problem.X):
        return _fit(problem, settings, loop)


def _fit(problem, settings, loop):
    standard = standardize(problem.X, problem.weights, by_column=settings.standardize)
    if not standard.factors.any():
        raise ValueError("X has no variation: all rows are equal; accepted are rows that differ")
    known = problem.labels, problem.weights, int(np.count_nonzero(standard.factors))
    are_few = not settings.model.as_printed and few.are_few(*known)
    space, folds = basis_of(problem, standard, settings, are_few)
    sample = in_standard_units(problem, standard, space)
    settings, scores, run, part = solved(sample, _as_far(settings, are_few), loop)
    rows = arrange(part)
    state = run.state._replace(P=in_columns(run.state.P, standard, space))
    state = reported(state, rows, settings.model, settings.metric)
    return DcagmFit(
        mean=standard.mean,
        components=(standard.factors[:, None] * state.P).T,
        mixture=state.mixture,
        density_quantiles=density_quantiles(state, rows),
        model=settings.model,
        weight_scores=scores,
        run=run._replace(converged=run.converged or _as_meant(run, settings, are_few)),
        held_out=folds,
    )


def _as_far(settings, are_few):
    """The settings with the most steps that few labels are worth."""
    if not are_few or settings.batch_size is not None:
        return settings
    return settings._replace(max_iter=min(settings.max_iter, few.MOST_STEPS))


def _as_meant(run, settings, are_few):
    """Whether a run ended where the steps that few labels are worth do."""
    return are_few and len(run.objective) == few.MOST_STEPS == settings.max_iter


def held_out(sample: Sample, settings: Settings) -> list[few.Fold]:
    """Short fits without some of the labels, in the coordinates that are reported."""
    short = settings._replace(max_iter=few.FOLD_STEPS, batch_size=None, n_init=1)

    def refit(part: Sample) -> State:
        state = solve(part, short, iterate).state
        return reported(state, arrange(part), settings.model, settings.metric)

    return few.held_out(sample, refit)


def solved(sample: Sample, settings: Settings, loop: Loop):
    """The settings with chosen weights, their scores, the run, and the rows that its state has."""
    whole = settings.batch_size is not None or not sampled.suits(sample, settings.model)
    if whole:
        settings, scores = with_chosen_weights(sample, settings)
        return settings, scores, solve(sample, settings, loop), sample
    nested = sampled.draw_nested(sample, settings.model)
    settings, scores = with_chosen_weights(nested.part, settings)
    first = solve(nested.first, settings, iterate, nested.least_rise).state
    run = sampled.solve(nested, first, sample, settings.model, loop, **_limits(sample, settings))
    return settings, scores, run, nested.part


def basis_of(problem: Problem, standard: Standard, settings: Settings, are_few):
    """The basis that the fit is sought in, and fits without some labels where these are few.

    Of the axes among which few labels are looked for and all columns, or the basis of short rows,
    the one in which hidden labels are found better.
    """
    spaces: list[Basis] = [short_basis(standard.data, settings.model.n_components)]
    if not are_few:
        return spaces[0], []
    if settings.batch_size is None:
        known = problem.labels, problem.weights, settings.model.n_components
        axes = few.leading_axes(standard.data, *known)
        spaces = spaces if axes is None else [axes, *spaces]
    samples = [in_standard_units(problem, standard, space) for space in spaces]
    folds = [held_out(sample, settings) for sample in samples]
    best = int(np.argmin([few.loss(found) for found in folds]))
    return spaces[best], folds[best]


def short_basis(X: Data, q: int) -> RowSpace | None:
    """A basis of the span of the rows where X is dense and wide, else None.

    Steps never leave that span, so the fit is the same in fewer columns.
    """
    if X.is_sparse or X.shape[1] <= X.shape[0]:
        return None
    space = row_space(X)
    return space if space.T.shape[1] >= q else None


def in_standard_units(problem: Problem, standard: Standard, space: Basis) -> Sample:
    """The problem with standardised columns, in the short basis if there is one."""
    columns = int(np.count_nonzero(standard.factors))
    if isinstance(space, few.Axes):
        columns = space.T.shape[1]
    return Sample(
        X=standard.data if space is None else Matrix(space.T),
        labels=problem.labels,
        chunks=problem.chunks,
        weights=problem.weights,
        class_of=np.repeat(np.arange(len(problem.n_gaussians)), problem.n_gaussians),
        total_variance=min(columns, problem.weights.sum()),
        apart=problem.apart,
    )


def in_columns(P, standard: Standard, space: Basis) -> np.ndarray:
    """A projection of rows in the short basis as one of the standardised columns."""
    return P if space is None else space.in_columns(P, standard.data)


def with_chosen_weights(sample: Sample, settings: Settings) -> tuple[Settings, dict]:
    """The settings with the weights that are to be chosen, and the scores of those tried."""
    if not settings.choose:
        return settings, {}

    def refit(part: Sample, model: Model) -> State:
        return solve(part, settings._replace(model=model), iterate).state

    model, scores = choose_weights(sample, settings.model, settings.choose, refit, settings.rng)
    return settings._replace(model=model), scores


def solve(sample: Sample, settings: Settings, loop: Loop, least_rise=0.0) -> Run:
    """The run with the best J of all starts; its state is the best that it met, or the last.

    It has settled where J rises by less than the tolerance or ``least_rise``.
    """
    limits, rows = _limits(sample, settings), arrange(sample)
    loop = partial(loop, **limits | {"tol": max(limits["tol"], least_rise)})
    if settings.batch_size is not None:
        parts = batches.cut(sample, settings.batch_size, settings.rng)
        return _by_batches(sample, rows, parts, settings.model, loop)
    runs = []
    for i in range(settings.n_init):
        first = start(sample, rows, settings.model, settings.rng if i else None)
        method = Method(first, partial(step, rows=rows, model=settings.model))
        # The paper stops where its iterations end.
        method = method if settings.model.as_printed else keep_best(method)
        runs.append(loop(method, patience=PATIENCE))
    return max(runs, key=lambda run: max(run.objective))


def _limits(sample, settings):
    """When a loop ends; the tolerance is per labelled row."""
    labelled = sample.weights[sample.labels >= 0].sum()
    return {"max_iter": settings.max_iter, "tol": settings.tol * labelled}


def _by_batches(sample: Sample, rows: Rows, parts, model: Model, loop: Loop) -> Run:
    """A run over batches, an iteration being all of them once, and EM on all rows at its end."""
    first = batches.begin(sample, parts[0], model)
    epoch = partial(batches.epoch, sample=sample, batches=parts, model=model)
    method = Method(first, epoch, finish=lambda stream: stream.state)
    run = loop(method, patience=BATCH_PATIENCE)
    P, mixture = run.state.P, run.state.mixture
    return run._replace(state=state_at(P, rows.project(P), mixture, rows, model))


def reported(state: State, rows: Rows, model: Model, metric: str) -> State:
    """The state in the coordinates to report.

    "within": the average covariance of the classes is I, section 5 of [PGK07], and axes stand
    in order of how far they part the classes. "raw": as the alternation ended.
    """
    if metric == "raw":
        return state
    # Unless as printed the covariance of all rows, a little shrunk, is I.
    K = rows.covariance(state.Z) if model.as_printed else np.eye(state.P.shape[1])
    average = np.tensordot(state.mixture.alpha, class_covariances(state.mixture), 1)
    V = eigh(K, average)[1][:, ::-1]
    P = state.P @ V
    signs = column_signs(P)
    V = V * signs
    return state._replace(P=P * signs, Z=state.Z @ V, mixture=moved(state.mixture, V))


def density_quantiles(state: State, rows: Rows) -> np.ndarray:
    """Quantiles of log p(z) over the labelled rows, at equal steps from 0 to 1."""
    white, known = whiten(state.mixture), len(rows.labels)
    blocks = [block.rows for block in rows.blocks if isinstance(block, Labelled)]
    values = np.concatenate([log_sum(log_joint(white, state.Z[block])) for block in blocks])
    steps = np.linspace(0, 1, N_QUANTILES)
    return np.quantile(values, steps, weights=rows.weights[:known], method="inverted_cdf")
