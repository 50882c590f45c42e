"""Which projection suits this data: models and numbers of components on honest splits."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from gnomon.estimators import check_integer, check_real
from gnomon.tools.compare import scoring, trials
from gnomon.tools.compare.candidates import Candidate, choose, make_pipeline_for, sizes_for
from gnomon.tools.compare.result import Comparison, CurvePoint, recommend, refit_code
from gnomon.tools.compare.scoring import Problem
from gnomon.tools.compare.trials import Outcome, Row, Trial, run_trial

# With fewer labelled rows than this the folds are drawn several times.
FEW_LABELS, REPEATS = 100, 3
# Shuffled labels are tried on as many splits as it takes to score this many rows.
CONTROL_ROWS = 200


def compare(
    X,
    y,
    *,
    models=None,
    n_components=(2, 5, 10),
    links=None,
    chunks=None,
    evaluate="auto",
    cv=None,
    target="auto",
    transductive="auto",
    control=True,
    learning_curve=None,
    time_limit=None,
    n_jobs=None,
    progress="auto",
    random_state=0,
):
    """Compare projections on your data, and say which one to use.

    Every model that applies is fitted, with its preparation, on training parts of the data, for
    each number of components. A predictor on top of the embedding is scored on rows whose labels
    were hidden. The same is done with shuffled labels: what a method makes of those is what it
    can make of nothing.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features)
        Inputs; NaN is a missing value.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Classes, numbers, or a matrix of 0 and 1 for several labels. -1 or None mark unlabelled
        rows of classes, NaN those of the others; all models that can use such rows do.
    models : sequence or dict, default=None
        Names of known models, estimators with ``transform``, or (name, estimator) pairs;
        all known models by default.
    n_components : int or sequence of int, default=(2, 5, 10)
        Numbers of components to try.
    links : Links or adjacency of shape (n_samples, n_samples), default=None
        Links among the rows.
    chunks : array-like of shape (n_samples,), default=None
        Ids of groups that share a class, -1 for none.
    evaluate : {"auto", "nearest", "linear", "own"} or estimator, default="auto"
        The predictor on top of the embedding: nearest neighbour (1 for classes, 5 for numbers),
        a linear model, or the model's own ``predict`` (linear where it has none). "auto" is
        "linear" for numbers, else "nearest".
    cv : int, cross-validator or None, default=None
        Splits of the labelled rows, as in `SemiSupervisedSplit`. None is 5 folds, drawn 3 times
        where fewer than 100 rows are labelled.
    target : {"auto", "classes", "numeric", "multilabel"}, default="auto"
        What y holds.
    transductive : bool or "auto", default="auto"
        Whether test rows take part in the fit without their labels; "auto" does so with links.
    control : bool, default=True
        Whether to fit every model to shuffled labels too, on as many splits as it takes to
        score 200 rows.
    learning_curve : sequence of int, default=None
        Numbers of labels per class (in all, for numbers) at which the models are scored too,
        each with its chosen number of components.
    time_limit : float, default=None
        Seconds after which no further trial is started; what is done is reported.
    n_jobs : int, default=None
        Processes, as in joblib; each then uses one thread.
    progress : bool or "auto", default="auto"
        Whether to show a progress bar; "auto" does so on a terminal.
    random_state : int, default=0
        Makes folds and shuffles.

    Returns
    -------
    comparison : Comparison
        Table, tests, recommendation, figures and code. Ctrl-C gives what is done so far.

    See Also
    --------
    choose_dimension : Criteria against the number of components, also without y.

    Notes
    -----
    Two models are told apart by a paired t test over splits with the variance corrected for
    shared training rows [NB03], p values by Holm's rule. "Structure" means that the best of all
    candidates predicts better than the best of them does on shuffled labels, at level 0.05.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import gnomon
    >>> X, y = load_iris(return_X_y=True)
    >>> result = gnomon.compare(X, y, models=["PCA", "LDA"], n_components=(1, 2))
    >>> result.structure
    True
    >>> result.leader.model
    'LDA'
    """
    problem = scoring.read_problem(
        X, y, target=target, links=links, chunks=chunks, transductive=transductive
    )
    if time_limit is not None:
        time_limit = check_real("time_limit", time_limit, low=0, open_low=True)
    settings = Settings(evaluate, cv, control, random_state, n_jobs, time_limit, progress)
    done = score_candidates(problem, models, n_components, settings)
    if learning_curve is not None and not done.stopped:
        planned = _curve_trials(done, learning_curve, random_state)
        more = run_trials(problem, planned, done.evaluator, settings)
        done = done._replace(outcomes=done.outcomes + more.outcomes, stopped=more.stopped)
    return _conclude(problem, done, random_state)


class Settings(NamedTuple):
    """How candidates are scored, on which splits, and how the trials are run; as in `compare`."""

    evaluate: Any = "auto"
    cv: Any = None
    control: bool = True
    seed: int = 0
    n_jobs: int | None = None
    time_limit: float | None = None
    progress: Any = "auto"


class Scored(NamedTuple):
    """Candidates that were scored, how, on which splits, and the table of what came of it."""

    candidates: list[Candidate]
    skipped: dict[str, str]
    evaluator: Any
    splits: list[tuple]
    outcomes: list[Outcome]
    stopped: str
    rows: list[Row]


def score_candidates(problem: Problem, models, n_components, settings: Settings) -> Scored:
    """Every candidate that applies, with every number of components, on every split."""
    evaluator = scoring.resolve_evaluator(settings.evaluate, problem.kind)
    check_integer("random_state", settings.seed, low=0)
    candidates, skipped = choose(problem, models)
    splits = _splits(problem, settings.cv, settings.seed)
    sizes = np.atleast_1d(n_components).tolist()
    sizes = [check_integer("n_components", size, low=1) for size in sizes]
    planned = _trials(problem, candidates, sizes, splits, settings)
    runs = run_trials(problem, planned, evaluator, settings)
    rows = trials.table(runs.outcomes, _test_share(problem, splits))
    return Scored(candidates, skipped, evaluator, splits, *runs, rows)


def _splits(problem, cv, seed):
    few = cv is None and problem.labelled.sum() < FEW_LABELS
    cv, splits = scoring.FOLDS if cv is None else cv, []
    for repeat in range(REPEATS if few else 1):
        splits += scoring.labelled_splits(problem, cv, seed + repeat)
    return splits


def _test_share(problem, splits):
    """Test rows for each labelled training row, on average."""
    known = problem.labelled
    return float(np.mean([len(test) / max(known[train].sum(), 1) for train, test in splits]))


def _trials(problem, candidates, sizes, splits, settings):
    """All trials, a whole split after the other, so that an early end leaves models paired."""
    planned, controlled = [], 0
    for index, (train, test) in enumerate(splits):
        shuffled, seed = settings.control and controlled < CONTROL_ROWS, settings.seed + index
        controlled += len(test)
        for labels in ("real", "permuted") if shuffled else ("real",):
            for candidate in candidates:
                own = sizes_for(candidate, problem, sizes, len(train))
                for part in [tuple(own)] if candidate.nested else [(size,) for size in own]:
                    planned.append(Trial(candidate, part, index, train, test, labels, seed))
    return planned


def _curve_trials(done, learning_curve, seed):
    counts = [check_integer("learning_curve", int(count), low=1) for count in learning_curve]
    sizes = {row.model: row.n_components for row in done.rows if row.chosen}
    return [
        Trial(candidate, (sizes[candidate.name],), index, train, test, count, seed + index)
        for index, (train, test) in enumerate(done.splits)
        for count in counts
        for candidate in done.candidates
        if candidate.name in sizes
    ]


def _conclude(problem, done, seed):
    measure, structure_p = scoring.MEASURES[problem.kind], 1.0
    if done.rows:
        predicted = trials.predictions(done.outcomes, done.splits)
        structure_p = trials.structure_test(problem, predicted, np.random.default_rng(seed))
    leader = next((row for row in done.rows if row.chosen), None)
    structure = structure_p < trials.LEVEL
    pipeline, code = (None, "") if leader is None else _refit(problem, done, leader)
    evaluator = done.evaluator
    return Comparison(
        rows=done.rows,
        measure=measure,
        evaluator=evaluator if isinstance(evaluator, str) else type(evaluator).__name__,
        structure=structure,
        structure_p=structure_p,
        leader=leader,
        recommendation=recommend(done.rows, leader, measure, structure_p, structure),
        skipped=done.skipped,
        failed=_first_of(done.outcomes, "error"),
        warnings=_first_of(done.outcomes, "warning"),
        stopped=done.stopped,
        learning_curve=_curve(done.outcomes),
        outcomes=done.outcomes,
        pipeline=pipeline,
        code=code if structure else "",
    )


def _refit(problem, done, leader):
    """The leader with its preparation, and the code that fits it."""
    candidate = next(c for c in done.candidates if c.name == leader.model)
    pipeline = make_pipeline_for(candidate, problem, leader.n_components, problem.labelled)
    return pipeline, refit_code(
        pipeline,
        learns=problem.kind[0] in candidate.learns,
        uses_links=candidate.needs_links,
        uses_chunks=candidate.takes_chunks and problem.chunks is not None,
    )


def _curve(outcomes: Sequence[Outcome]) -> list[CurvePoint]:
    """Means and standard deviations by model and number of labels."""
    scores = defaultdict(list)
    for outcome in outcomes:
        if isinstance(outcome.labels, int) and not outcome.error:
            scores[outcome.model, outcome.labels].append(outcome.score)
    return [
        CurvePoint(*key, float(np.mean(own)), trials.deviation(own))
        for key, own in sorted(scores.items())
    ]


def _first_of(outcomes: Sequence[Outcome], field) -> dict[str, str]:
    """The first non-empty ``error`` or ``warning`` of each model."""
    found: dict[str, str] = {}
    for outcome in outcomes:
        if getattr(outcome, field):
            found.setdefault(outcome.model, getattr(outcome, field))
    return found


class Runs(NamedTuple):
    """Outcomes so far, and why there are no more ("" if all trials were run)."""

    outcomes: list[Outcome]
    stopped: str


def run_trials(problem, planned, evaluator, settings) -> Runs:
    """Run trials until they end, the time is up, or the user interrupts."""
    limit = settings.time_limit
    deadline = None if limit is None else time.monotonic() + limit
    started: list[int] = []
    outcomes: list[Outcome] = []
    stopped = ""

    def due():
        for index, trial in enumerate(planned):
            if deadline is not None and time.monotonic() > deadline:
                return
            started.append(index)
            yield trial

    with _bar(len(planned), settings.progress) as advance:
        try:
            for done in _execute(problem, due(), evaluator, settings.n_jobs):
                outcomes += done
                advance(f"{done[0].model}, split {done[0].split + 1}")
        except KeyboardInterrupt:
            stopped = "interrupted"
    if not stopped and len(started) < len(planned):
        stopped = f"the time limit of {limit:g} s was reached"
    return Runs(outcomes, stopped)


def _execute(problem, planned, evaluator, n_jobs) -> Iterator[list[Outcome]]:
    if effective_n_jobs(n_jobs) == 1:
        for trial in planned:
            yield run_trial(problem, trial, evaluator)
        return
    # One thread of BLAS for each process, or the processes would fight for the cores.
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
        yield from pool(delayed(run_trial)(problem, trial, evaluator) for trial in planned)


@contextmanager
def _bar(total, progress) -> Iterator[Callable[[str], None]]:
    """A progress bar on stderr: rich where installed, else a line that is written over."""
    if progress == "auto":
        progress = sys.stderr.isatty()
    if not progress:
        yield lambda text: None
    elif find_spec("rich") is not None:
        yield from _rich_bar(total)
    else:
        yield from _plain_bar(total)


def _rich_bar(total):
    from rich import progress
    from rich.console import Console

    counts = progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn()
    name, step = (progress.TextColumn(text) for text in ("comparing", "{task.description}"))
    with progress.Progress(name, *counts, step, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda text: bar.update(task, advance=1, description=text)


def _plain_bar(total):
    number = count(1)
    yield lambda text: print(
        f"\rcomparing {next(number)}/{total}  {text:<40}", end="", file=sys.stderr, flush=True
    )
    print(file=sys.stderr)
