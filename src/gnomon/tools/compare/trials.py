"""One trial, a candidate fitted and scored on a split; and the table that many trials make.

Splits share training rows, so the differences of two models over splits are not independent:
their variance is corrected as in Nadeau and Bengio (2003) [NB03]. The words "best" and
"structure" rest on these tests.
"""

import time
import tracemalloc
import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from gnomon.estimators import permuted_labels, take_rows
from gnomon.tools.compare.candidates import Candidate, make_pipeline_for
from gnomon.tools.compare.scoring import Problem, apparent, measure, predict

# The usual level of a test: one false alarm in twenty.
LEVEL = 0.05
# A row and its nearest neighbour vouch for each other in different folds, so correct answers come
# in pairs: under no structure the variance of a mean over folds is up to twice that of free rows.
PAIRING = 2.0
# Scores are shares and means of them: differences below this are rounding.
ROUNDING = 1e-12


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
    kind, fold = problem.kind, _fold(problem, trial)
    X = take_rows(problem.X, fold.rows)
    pipeline, seconds, memory = _fit(problem, trial, fold, X, size)
    Z, Z_test = _embed(pipeline, X, problem, trial, fold.rows)
    by_itself = evaluator == "own" and hasattr(pipeline, "predict")
    name, outcomes = trial.candidate.name, []
    for q in wanted:
        seen = Z[fold.known, :q], fold.shown[fold.known]
        if by_itself:
            predicted = pipeline.predict(take_rows(problem.X, trial.test))
        else:
            predicted = predict(evaluator, kind, *seen, Z_test[:, :q])
        score = float(measure(kind, fold.truth, predicted))
        kept = predicted if trial.labels == "real" else None
        figures = score, apparent(evaluator, kind, *seen), seconds, memory, kept
        outcomes.append(Outcome(name, q, trial.split, trial.labels, *figures))
    return outcomes


def _fit(problem, trial, fold, X, size):
    """The fitted pipeline, its seconds, and the memory of the first fit of each candidate."""
    candidate = trial.candidate
    if candidate.below_classes:
        # Shuffled labels may leave a class out of training.
        size = min(size, len(np.unique(fold.shown[fold.known])) - 1)
    pipeline = make_pipeline_for(candidate, problem, size, fold.known)
    target = fold.shown if problem.kind[0] in candidate.learns else None
    metered = trial.split == 0 and trial.labels == "real"
    extra = _fit_parameters(problem, trial, fold.rows)
    return pipeline, *_timed_fit(pipeline, X, target, extra, metered)


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


class Row(NamedTuple):
    """A model with a number of components, and how it did.

    ``score`` and ``sd`` are over splits; ``difference`` and ``p_value`` are against the leader,
    the latter corrected for the number of models; ``apparent`` is the score on the rows the map
    was learnt from; ``control`` and ``control_apparent`` are the two scores where labels were
    shuffled. ``mark`` is "best", "tied" with the leader, or empty; ``chosen`` rows stand for
    their model.
    """

    model: str
    n_components: int
    score: float
    sd: float
    n_splits: int
    chosen: bool
    mark: str
    difference: float
    p_value: float
    apparent: float
    control: float
    control_apparent: float
    seconds: float
    memory_mb: float


def table(outcomes: Sequence[Outcome], test_share) -> list[Row]:
    """A row for each model and size, the leader first, then by score."""
    real, control = _by_model_and_size(outcomes, "real"), _by_model_and_size(outcomes, "permuted")
    rows = [_row(key, done, control.get(key, [])) for key, done in real.items()]
    if not rows:
        return []
    chosen = _chosen_sizes(real, test_share)
    rows = [row._replace(chosen=chosen[row.model] == row.n_components) for row in rows]
    leader = max((row for row in rows if row.chosen), key=lambda row: row.score)
    rows = _against(leader, rows, real, test_share)
    return sorted(rows, key=lambda row: (row.model != leader.model or not row.chosen, -row.score))


def predictions(outcomes: Sequence[Outcome], splits) -> list[list]:
    """For each model and size its (test rows, predicted), where all splits were run."""
    groups = _by_model_and_size(outcomes, "real").values()
    full = max((len(group) for group in groups), default=0)
    return [[(splits[o.split][1], o.predicted) for o in g] for g in groups if len(g) == full]


def _by_model_and_size(outcomes, labels) -> dict[tuple[str, int], list[Outcome]]:
    groups: dict[tuple[str, int], list[Outcome]] = defaultdict(list)
    for outcome in sorted(outcomes, key=lambda o: o.split):
        if outcome.labels == labels and not outcome.error:
            groups[outcome.model, outcome.n_components].append(outcome)
    return groups


def _row(key, real, control):
    scores = [outcome.score for outcome in real]
    # The first split is fitted under the memory meter, which slows it.
    timed = [outcome.seconds for outcome in real if np.isnan(outcome.memory)]
    return Row(
        *key,
        score=float(np.mean(scores)),
        sd=deviation(scores),
        n_splits=len(scores),
        chosen=False,
        mark="",
        difference=np.nan,
        p_value=np.nan,
        apparent=_mean(real, "apparent"),
        control=_mean(control, "score"),
        control_apparent=_mean(control, "apparent"),
        seconds=float(np.median(timed or [outcome.seconds for outcome in real])),
        memory_mb=_mean([o for o in real if not np.isnan(o.memory)], "memory"),
    )


def _mean(outcomes, field):
    return float(np.mean([getattr(o, field) for o in outcomes])) if outcomes else np.nan


def deviation(scores):
    """Standard deviation over splits; NaN for a single one."""
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else np.nan


def _chosen_sizes(real, test_share):
    sizes = defaultdict(list)
    for model, size in sorted(real, key=lambda key: key[1]):
        sizes[model].append(size)
    chosen = {}
    for model, own in sizes.items():
        shared = set.intersection(*({o.split for o in real[model, q]} for q in own))
        scores = [[o.score for o in real[model, q] if o.split in shared] for q in own]
        chosen[model] = smallest_good(own, np.array(scores), test_share)
    return chosen


def _against(leader, rows, real, test_share):
    own = {o.split: o.score for o in real[leader.model, leader.n_components]}
    compared = []
    for row in rows:
        done = [o for o in real[row.model, row.n_components] if o.split in own]
        differences = [o.score - own[o.split] for o in done]
        p_value = paired_test(differences, test_share)[1]
        mean = float(np.mean(differences)) if differences else np.nan
        compared.append(row._replace(difference=mean, p_value=p_value))
    return _marked(leader, compared)


def _marked(leader, rows):
    rivals = [row for row in rows if row.chosen and row.model != leader.model]
    corrected = {
        row.model: p for row, p in zip(rivals, holm([r.p_value for r in rivals]), strict=True)
    }
    won = all(p < LEVEL for p in corrected.values())
    marked = []
    for row in rows:
        p_value = corrected.get(row.model, np.nan) if row.chosen else np.nan
        mark = "tied" if p_value >= LEVEL else ""
        if row.chosen and row.model == leader.model:
            mark = "best" if won else "tied"
        marked.append(row._replace(p_value=p_value, mark=mark))
    return marked


def paired_test(differences, test_share) -> tuple[float, float]:
    """Corrected standard error of the mean difference over splits, and its two-sided p value.

    ``test_share`` is the number of test rows over that of training rows.
    """
    differences = np.asarray(differences, dtype=float)
    count = len(differences)
    if count < 2:
        return np.nan, 1.0
    mean, error = differences.mean(), np.sqrt(differences.var(ddof=1) * (1 / count + test_share))
    if error < ROUNDING:
        # Without deviation only the common sign of the differences counts.
        return 0.0, 1.0 if abs(mean) < ROUNDING else 2.0 ** (1 - count)
    return float(error), float(2 * student.sf(abs(mean) / error, count - 1))


def holm(p_values) -> np.ndarray:
    """P values corrected for their number, by Holm's step-down rule."""
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values)
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty_like(scaled)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected


def smallest_good(sizes, scores, test_share) -> int:
    """Smallest size whose mean score is within a standard error of the best size's.

    ``scores`` has a row for each size and a column for each split.
    """
    means = np.mean(scores, axis=1)
    best = int(np.argmax(means))
    for index in range(best):
        error, _ = paired_test(scores[best] - scores[index], test_share)
        if means[best] - means[index] <= (0 if np.isnan(error) else error):
            return sizes[index]
    return sizes[best]


def structure_test(problem, predictions, rng, n_permutations=499) -> float:
    """P value of "no candidate predicts y", for the best of all candidates at once.

    ``predictions`` has for each candidate a list of (test rows, predicted). The labels of the
    scored rows are shuffled against the predictions; the largest gain over what shuffled labels
    give on average is compared with the largest such gain among shuffles.
    """
    rows = np.unique(np.concatenate([test for splits in predictions for test, _ in splits]))
    shuffles = np.stack([rng.permutation(rows) for _ in range(n_permutations)])
    place = np.full(len(problem.y), -1)
    place[rows] = np.arange(len(rows))
    real, shuffled = [], []
    for splits in predictions:
        truth = _mean_score(problem, splits, lambda test: problem.y[test])
        null = _mean_score(problem, splits, lambda test: problem.y[shuffles[:, place[test]]])
        real.append(truth - null.mean())
        shuffled.append(np.sqrt(PAIRING) * (null - null.mean()))
    exceeded = np.max(shuffled, axis=0) >= max(real) - ROUNDING
    return float((1 + exceeded.sum()) / (1 + n_permutations))


def _mean_score(problem, splits, truth_of):
    scores = [measure(problem.kind, truth_of(test), predicted) for test, predicted in splits]
    return np.mean(scores, axis=0)
