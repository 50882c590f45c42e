"""The solvers of DCAGM: its steps in the loop, restarts, weights by cross-validation."""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.ascent import begin, lbfgs
from gnomon.inference.loop import Method, Run, iterate, keep_best
from gnomon.inference.search import line_search
from gnomon.models import dca_gm, dca_gm_batch, dca_gm_choice, dca_gm_joint, dca_gm_problem
from gnomon.stats.known_rows import in_chunks

# Iterations over which the best objective must rise, else the fit has settled.
PATIENCE = {"alternating": 5, "batches": 2, "joint": 1}
# Folds of the labelled rows by which weights are chosen.
N_FOLDS = 5


class Options(NamedTuple):
    """How to solve: the solver, rows in a batch or None, starts, and when to stop."""

    solver: str
    batch_size: int | None
    n_init: int
    max_iter: int
    tol: float


def solve(problem, settings, options: Options, rng, loop) -> Run:
    """The run with the best objective of all starts, its state the best it met."""
    rows = problem.rows
    if options.batch_size is not None:
        return _stream(problem, rows, settings, options, rng, loop)
    run_from = _ascend if options.solver == "joint" else _alternate
    runs = []
    for i in range(options.n_init):
        start = dca_gm_problem.start(problem, rows, settings, rng if i else None)
        runs.append(run_from(start, problem, rows, settings, options, loop))
    return max(runs, key=lambda run: max(run.objective))


def choose_weights(problem, settings, wanted, options: Options, rng):
    """The settings with the weights that are wanted chosen on the labelled rows, and how."""
    possible = {
        "chunk_weight": in_chunks(problem.codes, problem.chunks).any(),
        "unlabelled_weight": np.any(problem.codes < 0),
    }
    choices: dict = {}
    for name in [name for name in possible if name in wanted and possible[name]]:
        fold_of = dca_gm_choice.folds(problem, N_FOLDS, rng)
        if np.any(fold_of >= 0):
            fit = partial(_fit_fold, options=options, rng=rng)
            choice = dca_gm_choice.choose(name, problem, settings, fold_of, fit)
            settings = settings._replace(**{name: choice.best})
            choices[name] = {"values": choice.values, "scores": choice.scores}
    return settings, choices


def _fit_fold(problem, settings, options, rng):
    return solve(problem, settings, options, rng, iterate).state, problem.rows.order


def _limits(problem, options, kind):
    """When the loop stops."""
    return {
        "max_iter": options.max_iter,
        "tol": options.tol * problem.labelled,
        "patience": PATIENCE[kind],
    }


def _alternate(start, problem, rows, settings, options, loop):
    step = partial(dca_gm.step, X=problem.X, rows=rows, settings=settings, search=line_search)
    limits = _limits(problem, options, "alternating")
    return loop(keep_best(Method(start, step)), **limits)


def _ascend(start, problem, rows, settings, options, loop):
    like = start.mixture
    function = partial(dca_gm_joint.objective, X=problem.X, rows=rows, settings=settings, like=like)
    path = begin(function, dca_gm_joint.pack(start.P, like))
    run = loop(Method(path, lbfgs(function)), **_limits(problem, options, "joint"))
    state = dca_gm_joint.state_of(run.state.x, problem.X, rows, settings, like)
    return run._replace(state=state)


def _stream(problem, rows, settings, options, rng, loop):
    batches = dca_gm_batch.cut(problem, options.batch_size, rng)
    step = partial(
        dca_gm_batch.epoch, problem=problem, batches=batches, settings=settings, search=line_search
    )
    start = dca_gm_batch.begin(problem, batches[0], settings)
    run = loop(Method(start, step), **_limits(problem, options, "batches"))
    return run._replace(state=dca_gm_batch.finish(run.state, problem, rows, settings))
