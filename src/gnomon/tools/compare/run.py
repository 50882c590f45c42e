"""Which projection suits this data: models and numbers of components on honest splits."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from gnomon.estimators import NEIGHBOURS, check_integer, check_real
from gnomon.tools.compare import scoring, standing
from gnomon.tools.compare.candidates import make_pipeline_for
from gnomon.tools.compare.result import Comparison, CurvePoint, recommend, refit_code
from gnomon.tools.compare.scoring import Deadline
from gnomon.tools.compare.trials import (
    INTERRUPTED,
    LATE,
    Outcome,
    Settings,
    Trial,
    chosen_sizes,
    ended,
    pooled,
    run_trials,
    score_candidates,
)
from gnomon.typing import GraphLike, OutputsLike, RowsLike


def compare(
    X: RowsLike,
    y: OutputsLike,
    *,
    models: Any = None,
    n_components: Sequence[int] = (2, 5, 10),
    links: GraphLike = None,
    chunks: ArrayLike | None = None,
    evaluate: str = "auto",
    cv: Any = None,
    target: str = "auto",
    transductive: bool | str = "auto",
    control: bool = True,
    learning_curve: Sequence[int] | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: bool | str = "auto",
    random_state: int = 0,
) -> Comparison:
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
        Whether to fit every model, with its chosen number of components, to shuffled labels too,
        on as many splits as it takes to score 200 rows, or all labelled rows once.
    learning_curve : sequence of int, default=None
        Numbers of labels per class (in all, for numbers) at which the models are scored too,
        each with its chosen number of components.
    time_limit : float, default=None
        Seconds after which it ends with what it has. No trial is begun that would not end in
        time, and iterative fits are stopped then; what they would have given does not count.
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
    Scores are those of the held-out rows of all splits together. For each model the smallest
    number of components stands whose score is within 0.02 of its best. The best of these leads,
    with a standard error in favour of SPPCA and KernelSPPCA, which hold up where labels are
    few. What is printed of the leader is its score less the optimism of choosing, found by
    drawing rows again [ET93]. Another is "as good" where the 95 % interval of its difference to
    the leader on the same rows, with two rows thought to be there besides [BP12], lies above
    -0.02; "worse" where it lies below 0; and "open" where so few rows cannot tell.
    "Structure" means that the best of all candidates predicts better than the best of them does
    on shuffled labels, at level 0.05.

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
    until = Deadline(time_limit)
    settings = Settings(evaluate, cv, random_state, n_jobs, until, progress, True)
    done = score_candidates(problem, models, n_components, settings)
    if control:
        done = _also(problem, done, standing.control_trials(problem, done, random_state), settings)
    if learning_curve is not None:
        planned = _curve_trials(problem, done, learning_curve, random_state)
        done = _also(problem, done, planned, settings)
    return _conclude(problem, done, random_state)


def _also(problem, done, planned, settings):
    """What is done, and more trials, unless the user has had enough."""
    if done.stopped == INTERRUPTED:
        return done
    more = run_trials(problem, planned, done.evaluator, settings, done.outcomes)
    return done._replace(
        outcomes=done.outcomes + more.outcomes, stopped=done.stopped or more.stopped
    )


def _curve_trials(problem, done, learning_curve, seed):
    counts = [check_integer("learning_curve", int(count), low=1) for count in learning_curve]
    sizes = chosen_sizes(problem, done.outcomes, done.splits)
    return [
        Trial(candidate, (sizes[candidate.name],), index, train, test, count, seed + index)
        for index, (train, test) in enumerate(done.splits)
        for count in counts
        for candidate in done.candidates
        if candidate.name in sizes
    ]


def _conclude(problem, done, seed):
    measure = scoring.MEASURES[problem.kind]
    found = standing.judge(problem, done.outcomes, done.splits, seed)
    leader = found.rows[0] if found.rows else None
    pipeline, code = (None, "") if leader is None else _refit(problem, done, leader)
    return Comparison(
        rows=found.rows,
        measure=measure,
        evaluator=_evaluator_name(done.evaluator),
        structure=found.structure,
        structure_p=found.structure_p,
        leader=leader,
        expected=found.expected,
        recommendation=recommend(found, measure),
        skipped=done.skipped,
        failed=_first_of(done.outcomes, "error"),
        warnings=_first_of(done.outcomes, "warning"),
        stopped=done.stopped,
        learning_curve=_curve(problem, done),
        outcomes=done.outcomes,
        pipeline=pipeline,
        code="" if found.structure is False else code,
    )


def _evaluator_name(evaluator):
    names = {"nearest": scoring.NEAREST, "linear": scoring.LINEAR, "own": scoring.OWN}
    return names[evaluator] if isinstance(evaluator, str) else type(evaluator).__name__


def _refit(problem, done, leader):
    """The leader with its preparation, and the code that fits it."""
    candidate = next(c for c in done.candidates if c.name == leader.model)
    pipeline = make_pipeline_for(candidate, problem, leader.n_components, problem.labelled)
    return pipeline, refit_code(
        pipeline,
        learns=problem.kind[0] in candidate.learns,
        links=_links_in_code(candidate),
        uses_chunks=candidate.takes_chunks and problem.chunks is not None,
    )


def _links_in_code(candidate):
    """What the code that fits a candidate gives as its links, if anything."""
    return "links" if candidate.needs_links else repr(NEIGHBOURS) * candidate.by_neighbours


def _curve(problem, done) -> list[CurvePoint]:
    """Scores and their standard errors by model and number of labels."""
    points = []
    for count in sorted({o.labels for o in done.outcomes if isinstance(o.labels, int)}):
        for (model, _), own in ended(done.outcomes, count).items():
            sums = pooled(own, done.splits)
            low, high = scoring.interval(problem.kind, sums)
            error = (high - low) / (2 * standing.WIDTH)
            points.append(CurvePoint(model, count, scoring.mean_score(problem.kind, sums), error))
    return sorted(points)


def _first_of(outcomes: Sequence[Outcome], field) -> dict[str, str]:
    """The first non-empty ``error`` or ``warning`` of each model."""
    found: dict[str, str] = {}
    for outcome in outcomes:
        if getattr(outcome, field) not in ("", LATE):
            found.setdefault(outcome.model, getattr(outcome, field))
    return found
