"""One trial, a candidate fitted and scored on a split; many of them; and the table they make.

A row of the table is scored on the held-out rows of all splits together. Models are compared on
the splits that all of them have ended, whole splits after each other, so that an early end
leaves them paired.
"""

import sys
import time
import tracemalloc
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from gnomon.estimators import (
    NEIGHBOURS,
    check_integer,
    permuted_labels,
    smallest_good,
    take_rows,
)
from gnomon.tools.compare import scoring
from gnomon.tools.compare.candidates import Candidate, choose, make_pipeline_for, sizes_for
from gnomon.tools.compare.scoring import Deadline, Problem, row_sums

# With fewer labelled rows than this the folds are drawn several times.
FEW_LABELS, REPEATS = 100, 3
# Fits of fewer rows end within about a second, so their cost is not asked for before.
PILOT_ROWS = 400
# A pilot has this share of the rows.
PILOT_SHARE = 4
# What a fit costs grows at most by this power of the rows; where rows are bounded, by the second.
POWER, BOUNDED_POWER = 1.5, 3.0
LATE, INTERRUPTED = "stopped by the time limit", "interrupted"
NEVER = Deadline()


class Trial(NamedTuple):
    """What is to be run: sizes of one candidate on one split, with one version of the labels.

    ``labels`` is "real", "permuted", or the number of labels per class that training keeps.
    """

    candidate: Candidate
    sizes: tuple[int, ...]
    split: int
    train: np.ndarray
    test: np.ndarray
    labels: Any = "real"
    seed: int = 0
    metered: bool = False


class Outcome(NamedTuple):
    """What came of a trial for one number of components; ``error`` is empty if it went well.

    ``sums`` has what the test rows add to the score, ``own`` the same of the model's own
    prediction; ``seconds`` are those of the fit, ``elapsed`` those of the whole trial.
    """

    model: str
    n_components: int
    split: int
    labels: Any
    score: float = np.nan
    apparent: float = np.nan
    seconds: float = np.nan
    memory: float = np.nan
    predicted: Any = None
    sums: Any = None
    own: Any = None
    error: str = ""
    warning: str = ""
    elapsed: float = 0.0


class Settings(NamedTuple):
    """How candidates are scored, on which splits, and how the trials are run; as in `compare`."""

    evaluate: Any = "auto"
    cv: Any = None
    seed: int = 0
    n_jobs: int | None = None
    until: Deadline = NEVER
    progress: Any = "auto"
    # Whether an interruption ends the trials with what is done; else it ends the whole call.
    keeps_interrupted: bool = False


def run_trial(problem: Problem, trial: Trial, evaluator, until=NEVER) -> list[Outcome]:
    """Outcomes of a trial, one for each size; a failure is an outcome too."""
    # A large fit holds the small embeddings, but its own prediction is that of the large one.
    nested = trial.candidate.nested and evaluator != "own"
    outcomes, start = [], time.perf_counter()
    for size in (max(trial.sizes),) if nested else trial.sizes:
        wanted = trial.sizes if nested else (size,)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                done = _run_size(problem, trial, evaluator, size, wanted, until)
            except Exception as error:
                done = [_failed(trial, q, f"{type(error).__name__}: {error}") for q in wanted]
        text = str(caught[0].message) if caught else ""
        outcomes += [outcome._replace(warning=text) for outcome in done]
    elapsed = time.perf_counter() - start
    return [outcome._replace(elapsed=elapsed) for outcome in outcomes]


def _failed(trial, size, message):
    return Outcome(trial.candidate.name, size, trial.split, trial.labels, error=message)


def _run_size(problem, trial, evaluator, size, wanted, until):
    kind, fold = problem.kind, _fold(problem, trial)
    X = take_rows(problem.X, fold.rows)
    pipeline, seconds, memory = _fit(problem, trial, fold, X, size, until)
    if until():
        return [_failed(trial, q, LATE) for q in wanted]
    Z, Z_test = _embed(pipeline, X, problem, trial, fold.rows)
    own = _own_prediction(pipeline, problem, trial)
    name, outcomes = trial.candidate.name, []
    for q in wanted:
        seen = Z[fold.known, :q], fold.shown[fold.known]
        itself = own if q == size else None
        predicted = itself
        if evaluator != "own" or own is None:
            by = "linear" if evaluator == "own" else evaluator
            predicted = scoring.predict(by, kind, *seen, Z_test[:, :q])
        sums = row_sums(problem, fold.truth, predicted)
        seems = scoring.apparent(evaluator, problem, *seen)
        figures = scoring.mean_score(kind, sums), seems, seconds, memory
        kept = predicted, sums, None if itself is None else row_sums(problem, fold.truth, itself)
        outcomes.append(Outcome(name, q, trial.split, trial.labels, *figures, *kept))
    return outcomes


def _own_prediction(pipeline, problem, trial):
    """What the model itself says of the test rows, or None."""
    if trial.candidate.needs_links or not hasattr(pipeline, "predict"):
        return None
    return np.asarray(pipeline.predict(take_rows(problem.X, trial.test)))


def _fit(problem, trial, fold, X, size, until):
    """The fitted pipeline, its seconds, and its memory where that is metered."""
    candidate = trial.candidate
    if candidate.below_classes:
        # Shuffled labels may leave a class out of training.
        size = min(size, len(np.unique(fold.shown[fold.known])) - 1)
    pipeline = make_pipeline_for(candidate, problem, size, fold.known)
    until.bound(getattr(pipeline[-1], "estimator", pipeline[-1]))
    target = fold.shown if problem.kind[0] in candidate.learns else None
    extra = _fit_parameters(problem, trial, fold.rows)
    return pipeline, *_timed_fit(pipeline, X, target, extra, trial.metered)


class _Fold(NamedTuple):
    """Rows that are fitted, their labels with those of the test hidden, and the test's truth."""

    rows: np.ndarray
    shown: np.ndarray
    known: np.ndarray
    truth: np.ndarray


def _fold(problem, trial):
    rng, y = np.random.default_rng(trial.seed), problem.y.copy()
    if trial.labels == "permuted":
        y = permuted_labels(y, rng, problem.labelled)
    truth, known = y[trial.test], problem.labelled.copy()
    known[trial.test] = False
    if isinstance(trial.labels, int):
        known[_surplus(problem, y, known, trial.labels, rng)] = False
    y[problem.labelled & ~known] = -1 if problem.kind == "classes" else np.nan
    rows = np.arange(len(y)) if problem.transductive else trial.train
    return _Fold(rows, y[rows], known[rows], truth)


def _surplus(problem, y, known, keep, rng):
    """Known rows beyond ``keep`` in each class, or beyond ``keep`` in all for numbers."""
    rows = rng.permutation(np.flatnonzero(known))
    if problem.kind != "classes":
        return rows[keep:]
    return np.concatenate([rows[y[rows] == label][keep:] for label in range(problem.n_classes)])


def _fit_parameters(problem, trial, rows):
    extra: dict = {}
    if trial.candidate.needs_links:
        extra |= {"model__links": problem.links, "model__sample_index": rows}
    if trial.candidate.by_neighbours:
        extra["model__links"] = NEIGHBOURS
    # Chunks know the real classes, so they would contradict shuffled labels.
    has_chunks = problem.chunks is not None and problem.kind == "classes"
    if trial.candidate.takes_chunks and has_chunks and trial.labels != "permuted":
        extra["model__chunks"] = problem.chunks[rows]
    return extra


def _timed_fit(pipeline, X, target, extra, metered):
    """Seconds and, if metered, the peak of what Python and NumPy allocated, in MB."""
    if metered:
        tracemalloc.start()
    start = time.perf_counter()
    try:
        pipeline.fit(X, target, **extra)
    finally:
        seconds = time.perf_counter() - start
        peak = tracemalloc.get_traced_memory()[1] / 1e6 if metered else np.nan
        if metered:
            tracemalloc.stop()
    return seconds, peak


def _embed(pipeline, X, problem, trial, rows):
    Z = _transform(pipeline, X, problem, trial.candidate, rows)
    if problem.transductive:
        return Z, Z[trial.test]
    X_test = take_rows(problem.X, trial.test)
    return Z, _transform(pipeline, X_test, problem, trial.candidate, trial.test)


def _transform(pipeline, X, problem, candidate, rows):
    if not candidate.needs_links:
        return np.asarray(pipeline.transform(X))
    prepared = pipeline[:-1].transform(X) if len(pipeline) > 1 else X
    return pipeline[-1].transform(prepared, links=problem.links, sample_index=rows)


class Scored(NamedTuple):
    """Candidates that were scored, how, on which splits, and what came of it."""

    candidates: list[Candidate]
    skipped: dict[str, str]
    evaluator: Any
    splits: list[tuple]
    outcomes: list[Outcome]
    stopped: str


def score_candidates(problem: Problem, models, n_components, settings: Settings) -> Scored:
    """Every candidate that applies, with every number of components, on every split."""
    evaluator = scoring.resolve_evaluator(settings.evaluate, problem.kind)
    check_integer("random_state", settings.seed, low=0)
    candidates, skipped = choose(problem, models)
    splits = _splits(problem, settings.cv, settings.seed)
    sizes = np.atleast_1d(n_components).tolist()
    sizes = [check_integer("n_components", size, low=1) for size in sizes]
    planned = _trials(problem, candidates, sizes, splits, settings.seed)
    outcomes, stopped = run_trials(problem, planned, evaluator, settings)
    skipped |= _without_outcome(candidates, outcomes, skipped, stopped)
    return Scored(candidates, skipped, evaluator, splits, outcomes, stopped)


def _splits(problem, cv, seed):
    few = cv is None and problem.labelled.sum() < FEW_LABELS
    cv, splits = scoring.FOLDS if cv is None else cv, []
    for repeat in range(REPEATS if few else 1):
        splits += scoring.labelled_splits(problem, cv, seed + repeat)
    return splits


def _trials(problem, candidates, sizes, splits, seed):
    """Those with the real labels, a whole split after the other."""
    planned = []
    for index, (train, test) in enumerate(splits):
        for candidate in candidates:
            own = sizes_for(candidate, problem, sizes, len(train))
            for part in [tuple(own)] if candidate.nested else [(size,) for size in own]:
                metered = index == 0 and part[-1] == own[-1]
                where = index, train, test, "real", seed + index, metered
                planned.append(Trial(candidate, part, *where))
    return planned


def _without_outcome(candidates, outcomes, skipped, stopped):
    """Why candidates have no outcome, or but one where the others have more."""
    splits_of = defaultdict(set)
    for outcome in outcomes:
        if outcome.labels == "real" and outcome.error != LATE:
            splits_of[outcome.model].add(outcome.split)
    most = max(map(len, splits_of.values()), default=0)
    late = [c.name for c in candidates if len(splits_of[c.name]) < max(1, min(most, 2))]
    reason = "not tried before the end" if stopped == INTERRUPTED else "too slow for the time limit"
    return {name: reason for name in late if name not in skipped}


class Runs(NamedTuple):
    """Outcomes so far, and why there are no more ("" if all trials were run)."""

    outcomes: list[Outcome]
    stopped: str


def run_trials(problem, planned, evaluator, settings: Settings, known=()) -> Runs:
    """Run trials until they end, the time is up, or the user interrupts and keeps what is done.

    No trial is begun that would not end in time: what it costs is known from the same in
    another split, among the ``known`` outcomes too, or from a pilot with fewer rows.
    """
    outcomes, late, until = [], [], settings.until
    costs = {(o.model, o.n_components): o.elapsed for o in known}

    def due():
        for trial in planned:
            if until.seconds is not None:
                key = trial.candidate.name, trial.sizes[-1]
                costs[key] = costs.get(key) or _pilot(problem, trial, evaluator, until)
                if until.left < costs[key]:
                    late.append(trial)
                    continue
            yield trial

    stopped = ""
    with _bar(len(planned), settings.progress) as advance:
        try:
            for done in _execute(problem, due(), evaluator, settings):
                outcomes += done
                costs[done[-1].model, done[-1].n_components] = done[-1].elapsed
                advance(f"{done[0].model}, split {done[0].split + 1}")
        except KeyboardInterrupt:
            _check_kept(settings, outcomes or known)
            stopped = INTERRUPTED
    if not stopped and (late or any(o.error == LATE for o in outcomes)):
        stopped = f"the time limit of {until.seconds:g} s was reached"
    return Runs(outcomes, stopped)


def _check_kept(settings, outcomes):
    """Hand an interruption on where nothing is done, or whoever asked keeps no part."""
    if not (settings.keeps_interrupted and outcomes):
        raise KeyboardInterrupt


def _pilot(problem, trial, evaluator, until):
    """Seconds that the trial is expected to take, from one with a part of the training rows."""
    if until():
        return np.inf
    if problem.transductive or len(trial.train) <= PILOT_ROWS:
        return 0.0
    known = problem.labelled[trial.train]
    parts = (trial.train[mask][::PILOT_SHARE] for mask in (known, ~known))
    small = trial._replace(train=np.sort(np.concatenate(list(parts))), metered=False)
    power = POWER if trial.candidate.most_rows is None else BOUNDED_POWER
    return run_trial(problem, small, evaluator, until)[-1].elapsed * PILOT_SHARE**power


def _execute(problem, planned, evaluator, settings) -> Iterator[list[Outcome]]:
    until = settings.until
    if effective_n_jobs(settings.n_jobs) == 1:
        for trial in planned:
            yield run_trial(problem, trial, evaluator, until)
        return
    # One thread of BLAS for each process, or the processes would fight for the cores.
    with parallel_config(backend="loky", inner_max_num_threads=1):
        options = {"return_as": "generator_unordered", "pre_dispatch": "n_jobs"}
        pool = Parallel(n_jobs=settings.n_jobs, **options)
        yield from pool(delayed(run_trial)(problem, trial, evaluator, until) for trial in planned)


def _bar(total, progress):
    """What shows progress, if it is wanted."""
    if not (sys.stderr.isatty() if progress == "auto" else progress):
        return nullcontext(lambda text: None)
    from gnomon.tools.compare.progress import bar

    return bar(total)


def ended(outcomes: Sequence[Outcome], labels="real") -> dict[tuple[str, int], list[Outcome]]:
    """Outcomes by model and size, without what failed or was late, on the splits all share.

    What has ended one split where others have more is left out, so that the others keep theirs.
    """
    groups: dict[tuple[str, int], list[Outcome]] = defaultdict(list)
    for outcome in sorted(outcomes, key=lambda o: o.split):
        if outcome.labels == labels:
            groups[outcome.model, outcome.n_components].append(outcome)
    good = {key: [o for o in own if o.error != LATE] for key, own in groups.items()}
    good = {key: own for key, own in good.items() if own and not any(o.error for o in own)}
    most = max(map(len, good.values()), default=0)
    good = {key: own for key, own in good.items() if len(own) >= min(most, 2)}
    shared = set.intersection(*({o.split for o in own} for own in good.values())) if good else ()
    return {key: [o for o in own if o.split in shared] for key, own in good.items()}


def pooled(outcomes: Sequence[Outcome], splits, field="sums") -> np.ndarray:
    """What each distinct test row of these outcomes adds to a score, in the order of the rows."""
    rows = np.concatenate([splits[outcome.split][1] for outcome in outcomes])
    return scoring.pool(rows, np.concatenate([getattr(outcome, field) for outcome in outcomes]))[1]


def chosen_sizes(problem: Problem, outcomes: Sequence[Outcome], splits) -> dict[str, int]:
    """For each model the smallest size that is as good as its best."""
    scores: dict[str, dict[int, float]] = defaultdict(dict)
    for (model, size), own in ended(outcomes).items():
        scores[model][size] = scoring.mean_score(problem.kind, pooled(own, splits))
    return {model: smallest_good(own, own.values()) for model, own in scores.items()}
