"""How good a fitted map is on rows that it had not seen: its predictions and its neighbours.

Every figure has a name, an interval that knows how few rows it rests on, and two to compare it
with, all from the same folds: a constant guess, and what the same fit makes of labels in another
order, which mean nothing.
"""

import time
import warnings
from collections import defaultdict
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gnomon.estimators import LARGE, count, labelled_rows, permuted_labels
from gnomon.tools.compare.scoring import (
    FOLDS,
    NEAREST,
    OWN,
    Deadline,
    code_problem,
    constant_guess,
    interval,
    labelled_splits,
    mean_score,
    predict,
    root_mean_square,
    row_splits,
    row_sums,
)

NAMES = {"classes": "accuracy", "numeric": "R²", "multilabel": "F1"}
GUESS = "a constant guess"
# The rows of a score: those that fits were made without, or those of a table after the fit.
NOT_SEEN, THIS_TABLE = "rows not seen", "this table"
# Rows, half of them labelled: an accuracy is then known to a hundredth, and more cost minutes.
MOST_ROWS = 40_000


class OutOfFold(NamedTuple):
    """Labelled rows, each predicted by a fit that did not see it, or by a ``saved`` model.

    ``proba`` (n, n_classes) are the probabilities of classes, ``std`` the standard deviations of
    numbers; None where the model gives none. Classes are numbers in ``names``.
    """

    truth: np.ndarray
    predicted: np.ndarray
    proba: np.ndarray | None
    std: np.ndarray | None
    names: np.ndarray
    saved: bool = False


class Score(NamedTuple):
    """A held-out score with its 95 % interval, and what permuted labels and a guess reach.

    ``of`` says what was scored, ``on`` which rows. ``rmse`` is the error of one numeric output in
    its units, with its interval; ``parts`` has a score for each of several outputs, called by
    their names, of which this one is the mean; ``more`` has other figures from the same folds, and
    ``rows`` what the model predicted there.
    """

    name: str
    value: float
    low: float
    high: float
    n_rows: int
    control: float | None = None
    baseline: float | None = None
    of: str = OWN
    rmse: tuple[float, float, float] | None = None
    parts: tuple = ()
    more: tuple = ()
    rows: OutOfFold | None = None
    on: str = NOT_SEEN

    @property
    def is_better_than_guessing(self) -> bool:
        """Whether the interval leaves the constant guess below it."""
        return self.baseline is None or self.low > self.baseline

    def plain(self) -> dict:
        """The fields, as plain values, without the other figures."""
        fields = {n: value for n, value in self._asdict().items() if n not in ("more", "rows")}
        return fields | {"parts": {part.of: part.plain() for part in self.parts}}


def held_out(model, X, y, kind, *, tell=lambda text: None, until=None, **known) -> Score | None:
    """Scores by cross-validation of a model's predictions and of the neighbours on its map.

    Without a target, the log likelihood per held-out row. None where labels are too few, or
    where ``until``, a `Deadline`, leaves no time. ``known`` may have the ``chunks`` and ``links``
    of the rows, the ``names`` of several outputs, and ``seconds``, what a fit takes.
    """
    names, seconds, links = known.get("names", ()), known.get("seconds", 0.0), known.get("links")
    chunks = known.get("chunks")
    if links is None or isinstance(links, str):
        X, y, chunks = _sample(X, y, kind, chunks)
    watch = _Watch(tell, until or Deadline(), seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind is None:
            return _likelihood(model, X, watch) if hasattr(model, "score_samples") else None
        problem = code_problem(X, y, kind, chunks=chunks, links=links)
        return _scores(model, problem, names, watch) if _can_hold_out(problem) else None


def _sample(X, y, kind, chunks):
    """All rows, or of a large table so many that they fit, half of them labelled."""
    n, most = X.shape[0], min(MOST_ROWS, int(LARGE // X.shape[1]))
    if n <= most:
        return X, y, chunks
    rows = np.random.default_rng(0).permutation(n)
    if y is not None:
        known = labelled_rows(y, kind)
        labelled, others = rows[known[rows]], rows[~known[rows]]
        half = most // 2
        rows = np.concatenate([labelled[:half], others, labelled[half:]])
    rows = np.sort(rows[:most])
    return X[rows], *(None if part is None else part[rows] for part in (y, chunks))


def _can_hold_out(problem):
    """Whether a labelled row can be spared: of classes, two are left and one has another row."""
    if problem.kind != "classes":
        return problem.labelled.sum() > 1
    counts = np.bincount(problem.y[problem.labelled])
    return len(counts) > 1 and counts.max() > 1


def _scores(model, problem, names, watch):
    """The model's own prediction first, then the neighbours on its map, from the same folds."""
    said: list = []
    real = _out_of_fold(model, problem, watch, said)
    if len(real.get(GUESS, ())) < 2:
        return None
    shuffled = permuted_labels(problem.y, np.random.default_rng(0), problem.labelled)
    # Chunks know the real classes, so they would contradict shuffled labels.
    by_chance = _out_of_fold(model, problem._replace(y=shuffled, chunks=None), watch)
    guess = real.pop(GUESS)
    whole = len(by_chance.get(GUESS, ())) == len(guess)
    first, *more = [
        summary(problem.kind, of, names, sums, by_chance[of] if whole else None, guess)
        for of, sums in real.items()
    ]
    return first._replace(more=tuple(more), rows=_joined(said, problem) if said else None)


def summary(kind, of, names, sums, control=None, guess=None) -> Score:
    """Score of what rows add, with that of each output where there are several."""
    by_chance, baseline = (None if s is None else mean_score(kind, s) for s in (control, guess))
    value, reach = mean_score(kind, sums), interval(kind, sums)
    found = Score(NAMES[kind], value, *reach, len(sums), by_chance, baseline, of)
    if sums.shape[1] == 1:
        return found._replace(rmse=root_mean_square(sums)) if kind == "numeric" else found
    if len(names) != sums.shape[1]:
        names = [f"output {j + 1}" for j in range(sums.shape[1])]
    each = [
        summary(kind, name, (), *(s if s is None else s[:, [j]] for s in (sums, control, guess)))
        for j, name in enumerate(names)
    ]
    return found._replace(parts=tuple(each))


class _Watch(NamedTuple):
    """Who is told of the folds, when to end, and the seconds that a fold is expected to take."""

    tell: Any
    until: Deadline
    seconds: float


def _out_of_fold(model, problem, watch, said=None):
    """What the labelled rows add, by what predicts them, each by a fit that did not see it.

    What the model says of them is added to the list ``said``, where there is one.
    """
    splits, found, cost = labelled_splits(problem), defaultdict(list), watch.seconds
    for i, (train, test) in enumerate(splits):
        watch.tell(f"fold {i + 1} of {len(splits)}")
        if watch.until.left < cost:
            break
        start = time.monotonic()
        more = {} if problem.chunks is None else {"chunks": problem.chunks[train]}
        more |= _graph(problem, train)
        fitted = watch.until.bound(clone(model)).fit(problem.X[train], problem.y[train], **more)
        if watch.until():
            break
        for of, predicted in _predicted(fitted, problem, train, test):
            found[of].append(row_sums(problem, problem.y[test], predicted))
            if said is not None and of == OWN:
                said.append((problem.y[test], predicted, *_doubts(fitted, problem, test)))
        cost = max(cost, time.monotonic() - start)
    return {of: np.concatenate(parts) for of, parts in found.items()}


def _graph(problem, rows):
    """The links of these rows, if there are any."""
    return {} if problem.links is None else {"links": problem.links, "sample_index": rows}


def _doubts(fitted, problem, test):
    """Probabilities of classes and standard deviations of numbers, where a fit has them."""
    X, graph, proba = problem.X[test], _graph(problem, test), None
    if problem.kind == "classes" and hasattr(fitted, "predict_proba"):
        # A fold may lack a class, which has no probability then.
        proba = np.zeros((len(test), problem.n_classes))
        proba[:, np.asarray(fitted.classes_, dtype=int)] = fitted.predict_proba(X, **graph)
    return proba, deviations(fitted, X, problem.kind, graph)


def deviations(fitted, X, kind, links):
    """Standard deviations of predicted numbers, None where a model has none."""
    if kind != "numeric" or "return_std" not in signature(fitted.predict).parameters:
        return None
    return np.asarray(fitted.predict(X, return_std=True, **links)[1])


def _joined(said, problem) -> OutOfFold:
    truth, predicted, *doubts = zip(*said, strict=True)
    proba, std = (None if part[0] is None else np.concatenate(part) for part in doubts)
    known = np.concatenate(truth), np.concatenate(predicted)
    return OutOfFold(*known, proba, std, problem.names)


def _predicted(fitted, problem, train, test):
    """What is predicted for the test rows, by the model, from its map, and by a constant."""
    if hasattr(fitted, "predict"):
        yield OWN, np.asarray(fitted.predict(problem.X[test], **_graph(problem, test)))
    known = train[problem.labelled[train]]
    Z, Z_test = (
        np.asarray(fitted.transform(problem.X[rows], **_graph(problem, rows)))
        for rows in (known, test)
    )
    y, q = problem.y[known], Z.shape[1]
    for dimensions in dimensions_of(q):
        predicted = predict("nearest", problem.kind, Z[:, :dimensions], y, Z_test[:, :dimensions])
        yield on_the_map(dimensions, q), predicted
    yield GUESS, constant_guess(problem.kind, y, len(test))


def dimensions_of(q) -> tuple:
    """All dimensions of a map, and the two that are drawn where it has more."""
    return (q, 2) if q > 2 else (q,)


def on_the_map(dimensions, q) -> str:
    """The name of what neighbours find in the first dimensions of a map that has q."""
    if dimensions < q:
        return f"{NEAREST} (its first {dimensions} axes alone)"
    return f"{NEAREST} ({'1 dimension' if q == 1 else f'all {q} dimensions'})"


def _likelihood(model, X, watch):
    if X.shape[0] < 2 * FOLDS or watch.until.left < FOLDS * watch.seconds:
        return None
    splits = row_splits(X.shape[0])
    values = np.concatenate([clone(model).fit(X[a]).score_samples(X[b]) for a, b in splits])
    return density(values)


def density(values) -> Score:
    """The mean log likelihood of rows, with its interval."""
    half = 1.96 * values.std() / np.sqrt(len(values))
    mean = float(values.mean())
    of = "density of the rows"
    return Score("log likelihood per row", mean, mean - half, mean + half, len(values), of=of)


def by_short_name(score) -> dict:
    """The figures by short names: of the prediction, of the map, of what is drawn."""
    if score is None:
        return {}
    names = ["on the map", "on its first two axes"]
    if not score.of.startswith(NEAREST):
        names.insert(0, "held out" if score.on == NOT_SEEN else "on this table")
    return dict(zip(names, (score, *score.more), strict=False))


def describe(score) -> str:
    """A score as a sentence."""
    text = f"{score.name} {score.value:.3f} ({score.low:.3f} to {score.high:.3f}"
    of = score.of if score.on == NOT_SEEN else f"{score.of}, on {score.on}"
    text = f"{of}: {text}, {count(score.n_rows, 'row')})"
    if score.rmse is not None:
        text += "; RMSE {:.4g} ({:.4g} to {:.4g})".format(*score.rmse)
    if score.baseline is not None:
        text += f"; a constant guess {score.baseline:.3f}"
    if score.control is not None:
        text += f"; with permuted labels {score.control:.3f}"
    text += "".join(f"; {part.of} {part.value:.3f}" for part in score.parts)
    return text if score.is_better_than_guessing else f"{text}; not better than guessing"
