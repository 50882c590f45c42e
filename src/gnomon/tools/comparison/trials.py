"""One trial: a candidate fitted on a training part and scored on rows it has not seen labels of."""

import time
import tracemalloc
import warnings
from typing import Any, NamedTuple

import numpy as np

from gnomon.estimators import take_rows
from gnomon.tools.comparison.candidates import Candidate, labels_for, make_pipeline_for
from gnomon.tools.comparison.problem import Problem
from gnomon.tools.comparison.scoring import apparent, measure, predict


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


class Outcome(NamedTuple):
    """What came of a trial for one number of components; ``error`` is empty if it went well."""

    model: str
    n_components: int
    split: int
    labels: Any
    score: float = np.nan
    apparent: float = np.nan
    seconds: float = np.nan
    memory: float = np.nan
    predicted: Any = None
    error: str = ""
    warning: str = ""


def run_trial(problem: Problem, trial: Trial, evaluator) -> list[Outcome]:
    """Outcomes of a trial, one for each size; a failure is an outcome too."""
    # A large fit holds the small embeddings, but its own prediction is that of the large one.
    nested = trial.candidate.nested and evaluator != "own"
    outcomes = []
    for size in (max(trial.sizes),) if nested else trial.sizes:
        wanted = trial.sizes if nested else (size,)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                done = _run_size(problem, trial, evaluator, size, wanted)
            except Exception as error:
                done = [_failed(trial, q, error) for q in wanted]
        text = str(caught[0].message) if caught else ""
        outcomes += [outcome._replace(warning=text) for outcome in done]
    return outcomes


def _failed(trial, size, error):
    message = f"{type(error).__name__}: {error}"
    return Outcome(trial.candidate.name, size, trial.split, trial.labels, error=message)


def _run_size(problem, trial, evaluator, size, wanted):
    fold = _fold(problem, trial)
    if trial.candidate.below_classes:
        # Shuffled labels may leave a class out of training.
        size = min(size, len(np.unique(fold.shown[fold.known])) - 1)
    pipeline = make_pipeline_for(trial.candidate, problem, size, fold.known)
    X = take_rows(problem.X, fold.rows)
    target = labels_for(trial.candidate, problem, fold.shown)
    metered = trial.split == 0 and trial.labels == "real"
    extra = _fit_parameters(problem, trial, fold.rows)
    seconds, memory = _timed_fit(pipeline, X, target, extra, metered)
    Z, Z_test = _embed(pipeline, X, problem, trial, fold.rows)
    outcomes = []
    for q in wanted:
        inputs = Z[fold.known, :q], fold.shown[fold.known]
        if evaluator == "own" and hasattr(pipeline, "predict"):
            predicted = pipeline.predict(take_rows(problem.X, trial.test))
        else:
            predicted = predict(evaluator, problem.kind, *inputs, Z_test[:, :q])
        outcomes.append(
            Outcome(
                trial.candidate.name,
                q,
                trial.split,
                trial.labels,
                score=float(measure(problem.kind, fold.truth, predicted)),
                apparent=apparent(evaluator, problem.kind, *inputs),
                seconds=seconds,
                memory=memory,
                predicted=predicted if trial.labels == "real" else None,
            )
        )
    return outcomes


class _Fold(NamedTuple):
    """Rows that are fitted, their labels with those of the test hidden, and the test's truth."""

    rows: np.ndarray
    shown: np.ndarray
    known: np.ndarray
    truth: np.ndarray


def _fold(problem, trial):
    rng = np.random.default_rng(trial.seed)
    y = problem.y.copy()
    if trial.labels == "permuted":
        known = np.flatnonzero(problem.labelled)
        y[known] = y[rng.permutation(known)]
    truth, hidden = y[trial.test].copy(), _unlabelled(problem.kind)
    y[trial.test] = hidden
    if isinstance(trial.labels, int):
        y[_surplus(problem, y, trial.labels, rng)] = hidden
    rows = np.arange(len(y)) if problem.transductive else trial.train
    shown = y[rows]
    return _Fold(rows, shown, _is_known(problem.kind, shown), truth)


def _unlabelled(kind):
    return -1 if kind == "classes" else np.nan


def _is_known(kind, y):
    if kind == "classes":
        return y >= 0
    return ~np.isnan(y) if y.ndim == 1 else ~np.isnan(y).any(axis=1)


def _surplus(problem, y, keep, rng):
    """Labelled rows beyond ``keep`` in each class, or beyond ``keep`` in all for numbers."""
    known = rng.permutation(np.flatnonzero(_is_known(problem.kind, y)))
    if problem.kind != "classes":
        return known[keep:]
    parts = [known[y[known] == code][keep:] for code in range(problem.n_classes)]
    return np.concatenate(parts)


def _fit_parameters(problem, trial, rows):
    extra = {}
    if trial.candidate.needs_links:
        extra |= {"model__links": problem.links, "model__sample_index": rows}
    # Chunks know the real classes, so they would contradict shuffled labels.
    if trial.candidate.takes_chunks and problem.chunks is not None and trial.labels != "permuted":
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
