"""Which projection suits this data: models x dimensions, honest splits."""

import numpy as np

from gnomon.estimators import check_integer, check_real
from gnomon.estimators.selection import SemiSupervisedSplit
from gnomon.tools.comparison.candidates import choose, make_pipeline_for, sizes_for
from gnomon.tools.comparison.problem import read_problem
from gnomon.tools.comparison.result import Comparison
from gnomon.tools.comparison.running import run_trials
from gnomon.tools.comparison.scoring import MEASURES, resolve_evaluator
from gnomon.tools.comparison.statistics import LEVEL, structure_test
from gnomon.tools.comparison.summary import curve, first_of, predictions, table
from gnomon.tools.comparison.text import recommend, refit_code
from gnomon.tools.comparison.trials import Trial

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
    problem = read_problem(
        X, y, target=target, links=links, chunks=chunks, transductive=transductive
    )
    evaluator = resolve_evaluator(evaluate, problem.kind)
    seed = check_integer("random_state", random_state, low=0)
    if time_limit is not None:
        time_limit = check_real("time_limit", time_limit, low=0, open_low=True)
    candidates, skipped = choose(problem, models)
    splits = _splits(problem, cv, seed)
    sizes = _read_sizes(n_components)
    running = {"n_jobs": n_jobs, "time_limit": time_limit, "progress": progress}
    trials = _trials(problem, candidates, sizes, splits, control, seed)
    runs = run_trials(problem, trials, evaluator, **running)
    rows = table(runs.outcomes, _test_share(problem, splits))
    outcomes, stopped = runs
    if learning_curve is not None and not stopped:
        more = _curve_trials(candidates, rows, splits, learning_curve, seed)
        extra = run_trials(problem, more, evaluator, **running)
        outcomes, stopped = outcomes + extra.outcomes, extra.stopped
    name = evaluator if isinstance(evaluator, str) else type(evaluator).__name__
    return _conclude(problem, candidates, rows, outcomes, splits, seed, skipped, stopped, name)


def _conclude(problem, candidates, rows, outcomes, splits, seed, skipped, stopped, evaluator):
    measure, structure_p = MEASURES[problem.kind], 1.0
    if rows:
        rng = np.random.default_rng(seed)
        structure_p = structure_test(problem, predictions(outcomes, splits), rng)
    leader = next((row for row in rows if row.chosen), None)
    structure = structure_p < LEVEL
    pipeline, code = None, ""
    if leader is not None:
        candidate = next(c for c in candidates if c.name == leader.model)
        pipeline = make_pipeline_for(candidate, problem, leader.n_components, problem.labelled)
        code = refit_code(
            pipeline,
            learns=problem.kind[0] in candidate.learns,
            uses_links=candidate.needs_links,
            uses_chunks=candidate.takes_chunks and problem.chunks is not None,
        )
    return Comparison(
        rows=rows,
        measure=measure,
        evaluator=evaluator,
        structure=structure,
        structure_p=structure_p,
        leader=leader,
        recommendation=recommend(rows, leader, measure, structure_p, structure),
        skipped=skipped,
        failed=first_of(outcomes, "error"),
        warnings=first_of(outcomes, "warning"),
        stopped=stopped,
        learning_curve=curve(outcomes),
        outcomes=outcomes,
        pipeline=pipeline,
        code=code if structure else "",
    )


def _read_sizes(n_components):
    sizes = np.atleast_1d(n_components).tolist()
    return [check_integer("n_components", size, low=1) for size in sizes]


def _splits(problem, cv, seed):
    repeats = REPEATS if cv is None and problem.labelled.sum() < FEW_LABELS else 1
    splits = []
    for repeat in range(repeats):
        splitter = SemiSupervisedSplit(5 if cv is None else cv, random_state=seed + repeat)
        target = problem.y if problem.kind != "numeric" else np.where(problem.labelled, 0.5, np.nan)
        splits += list(splitter.split(problem.X, target))
    return splits


def _test_share(problem, splits):
    """Test rows for each labelled training row, on average."""
    known = problem.labelled
    return float(np.mean([len(test) / max(known[train].sum(), 1) for train, test in splits]))


def _trials(problem, candidates, sizes, splits, control, seed):
    """All trials, a whole split after the other, so that an early end leaves models paired."""
    trials, controlled = [], 0
    for index, (train, test) in enumerate(splits):
        shuffled = control and controlled < CONTROL_ROWS
        controlled += len(test)
        for labels in ("real", "permuted") if shuffled else ("real",):
            for candidate in candidates:
                own = sizes_for(candidate, problem, sizes, len(train))
                for part in [tuple(own)] if candidate.nested else [(size,) for size in own]:
                    trials.append(Trial(candidate, part, index, train, test, labels, seed + index))
    return trials


def _curve_trials(candidates, rows, splits, learning_curve, seed):
    counts = [check_integer("learning_curve", int(count), low=1) for count in learning_curve]
    sizes = {row.model: row.n_components for row in rows if row.chosen}
    return [
        Trial(candidate, (sizes[candidate.name],), index, train, test, count, seed + index)
        for index, (train, test) in enumerate(splits)
        for count in counts
        for candidate in candidates
        if candidate.name in sizes
    ]
