"""What is scored, on which rows and by what: the problem, its splits, measures and predictors.

Splits hold out labelled rows only; unlabelled rows stay in training. Labels in another order
among the labelled rows, which mean nothing, are the control: what a method makes of those, it
makes of nothing.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from gnomon.estimators import (
    KINDS,
    as_floats,
    check_integer,
    check_option,
    count,
    kind_of,
    labelled_rows,
    permuted_labels,
    read_classes,
)
from gnomon.estimators.links import Links
from gnomon.estimators.selection import SemiSupervisedSplit

MEASURES = {"classes": "accuracy", "numeric": "R2", "multilabel": "macro F1"}
EVALUATORS = ("auto", "nearest", "linear", "own")
# Each fit sees four fifths of the rows; more folds cost more than they tell.
FOLDS = 5
# The apparent score of a training embedding is looked at on at most this many rows.
MOST_APPARENT = 1000
# Distances that are in memory at a time: 32 MB.
BLOCK_ENTRIES = 2**22
# Entries of a table; cross-validation of a larger one takes minutes, so a sample is scored.
LARGE = 5e6
# Enough for the two digits of a 95 % interval that are shown.
RESAMPLES = 500


class Problem(NamedTuple):
    """Inputs, outputs in one coding, and what else is known of the rows.

    Classes are 0, 1, ... with -1 for unlabelled rows; other outputs have NaN there. ``told``
    says that y alone would be taken for another kind than the one asked for.
    """

    X: Any
    y: np.ndarray
    kind: str
    labelled: np.ndarray
    names: np.ndarray
    links: Any = None
    chunks: np.ndarray | None = None
    transductive: bool = False
    told: bool = False

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for numbers."""
        return len(self.names)


def code_problem(X, y, target="auto", **known) -> Problem:
    """Outputs in the coding of the kind that is asked for, or of the kind that they are."""
    check_option("target", target, ("auto", *KINDS))
    kind = kind_of(y) if target == "auto" else target
    if kind == "classes":
        classes = read_classes(y, len(y))
        return Problem(X, classes.labels, kind, classes.labelled, classes.names, **known)
    return Problem(X, as_floats(y), kind, labelled_rows(y, kind), np.array([]), **known)


def read_problem(X, y, *, target="auto", links=None, chunks=None, transductive="auto") -> Problem:
    """The arguments of `compare`, checked and coded."""
    if y is None:
        raise ValueError(
            "y is None; compare scores embeddings by the y they predict. "
            "Without y use gnomon.choose_dimension, which scores held-out likelihood"
        )
    X = check_array(
        X,
        accept_sparse=("csr", "csc"),
        dtype=(np.float64, np.float32),
        ensure_all_finite="allow-nan",
        input_name="X",
    )
    y = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if len(y) != X.shape[0]:
        raise ValueError(f"y has {count(len(y), 'row')}, X has {X.shape[0]}; both must be equal")
    chunks = None if chunks is None else np.asarray(chunks)
    if links is not None and not isinstance(links, Links):
        links = Links(links)
    transductive = links is not None if transductive == "auto" else bool(transductive)
    problem = code_problem(X, y, target, links=links, chunks=chunks, transductive=transductive)
    _check_enough(problem)
    return problem._replace(told={kind_of(y), kind_of(problem.y)} != {problem.kind})


def _check_enough(problem):
    known = problem.labelled.sum()
    if known < 4:
        raise ValueError(
            f"y has {count(known, 'labelled row')}; at least 4 are needed to compare on"
        )
    if problem.kind == "classes" and problem.n_classes < 2:
        raise ValueError("y has one class with labelled rows; at least 2 classes are needed")


def labelled_splits(problem: Problem, cv=FOLDS, seed=0) -> list[tuple]:
    """Pairs of training and test rows; the test rows are labelled, classes in equal shares."""
    # Any fraction stands for all numbers: whole ones would be split like classes.
    fractions = np.where(problem.labelled, 0.5, np.nan)
    y = fractions if problem.kind == "numeric" else problem.y
    return list(SemiSupervisedSplit(cv, random_state=seed).split(problem.X, y))


def row_splits(n_rows, cv=FOLDS, seed=0) -> list[tuple]:
    """Pairs of training and test rows where no label counts."""
    folds = KFold(check_integer("cv", cv, low=2), shuffle=True, random_state=seed)
    return list(folds.split(np.arange(n_rows)))


def measure(kind, truth, predicted):
    """Score of predictions (n, ...) against truth (..., n, ...): one for each leading index."""
    if kind == "classes":
        return (truth == predicted).mean(axis=-1)
    truth, predicted = _columns(truth, predicted)
    if kind == "multilabel":
        return _macro_f1(truth > 0.5, predicted > 0.5)
    residual = ((truth - predicted) ** 2).sum(axis=-2)
    total = ((truth - truth.mean(axis=-2, keepdims=True)) ** 2).sum(axis=-2)
    return (1 - residual / np.maximum(total, np.finfo(float).tiny)).mean(axis=-1)


def _columns(truth, predicted):
    if np.ndim(predicted) == 1:
        return truth.reshape(*truth.shape[: np.ndim(truth)], 1), predicted[:, None]
    return truth, predicted


def _macro_f1(truth, predicted):
    hits = (truth & predicted).sum(axis=-2)
    marked = truth.sum(axis=-2) + predicted.sum(axis=-2)
    return np.where(marked > 0, 2 * hits / np.maximum(marked, 1), 0.0).mean(axis=-1)


def resolve_evaluator(evaluate, kind):
    """The name of the evaluator, or the estimator the user passed."""
    if isinstance(evaluate, str):
        if evaluate not in EVALUATORS:
            raise ValueError(f"evaluate == {evaluate!r}; accepted are {', '.join(EVALUATORS)}")
        if evaluate == "auto":
            return "linear" if kind == "numeric" else "nearest"
    elif not hasattr(evaluate, "predict"):
        raise TypeError(f"evaluate must be one of {EVALUATORS} or have predict, got {evaluate!r}")
    return evaluate


def predict(evaluator, kind, Z, y, Z_test):
    """Predictions for Z_test from the rows Z with known y."""
    if evaluator == "nearest":
        return _vote(kind, y, nearest_rows(Z, Z_test, _neighbours(kind, len(Z))))
    return _predictor(evaluator, kind).fit(Z, y).predict(Z_test)


def apparent(evaluator, kind, Z, y):
    """Score on the rows the map was learnt from: how separate the picture looks.

    Nearest neighbours are looked for among the other rows; anything else is fitted to the very
    rows it is scored on.
    """
    Z, y = Z[:MOST_APPARENT], y[:MOST_APPARENT]
    if evaluator == "nearest":
        neighbours = nearest_rows(Z, Z, _neighbours(kind, len(Z) - 1), skip_self=True)
        return float(measure(kind, y, _vote(kind, y, neighbours)))
    return float(measure(kind, y, predict(evaluator, kind, Z, y, Z)))


def nearest_rows(Z, Z_test, k, *, skip_self=False):
    """Indices (m, k) of the rows of Z nearest to each row of Z_test, in blocks of rows."""
    squares = np.einsum("ij,ij->i", Z, Z)
    found = np.empty((len(Z_test), k), dtype=int)
    step = max(1, BLOCK_ENTRIES // len(Z))
    for start in range(0, len(Z_test), step):
        block = Z_test[start : start + step]
        distances = squares - 2 * block @ Z.T
        if skip_self:
            distances[np.arange(len(block)), start + np.arange(len(block))] = np.inf
        if k == 1:
            found[start : start + step] = distances.argmin(axis=1)[:, None]
        else:
            found[start : start + step] = np.argpartition(distances, k - 1, axis=1)[:, :k]
    return found


def _neighbours(kind, n_rows):
    return min(5, n_rows) if kind == "numeric" else 1


def _vote(kind, y, neighbours):
    return y[neighbours].mean(axis=1) if kind == "numeric" else y[neighbours[:, 0]]


def _predictor(evaluator, kind):
    if not isinstance(evaluator, str):
        return clone(evaluator)
    models = {
        "classes": LogisticRegression(max_iter=500),
        "numeric": RidgeCV(np.logspace(-4, 2, 7)),
        "multilabel": RidgeClassifier(),
    }
    return make_pipeline(StandardScaler(), models[kind])


class Score(NamedTuple):
    """A held-out score with its 95 % interval, and what permuted labels reach."""

    name: str
    value: float
    low: float
    high: float
    n_rows: int
    control: float | None = None
    baseline: float | None = None


def held_out(model, X, y, kind, *, chunks=None, tell=lambda text: None) -> Score | None:
    """Score of a model's own predictions by cross-validation; None where labels are too few.

    Without a target, the log likelihood per held-out row.
    """
    X, y, chunks = _sample(X, y, kind, chunks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind is None or not hasattr(model, "predict"):
            return _likelihood(model, X) if hasattr(model, "score_samples") else None
        problem = code_problem(X, y, kind, chunks=chunks)
        return _prediction(model, problem, tell) if _can_hold_out(problem) else None


def _sample(X, y, kind, chunks):
    """All rows, or of a large table so many that they fit, half of them labelled."""
    n, most = X.shape[0], int(LARGE // X.shape[1])
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


def _prediction(model, problem, tell):
    truth, predicted = _out_of_fold(model, problem, tell)
    if len(truth) < 2:
        return None
    shuffled = permuted_labels(problem.y, np.random.default_rng(0), problem.labelled)
    # Chunks know the real classes, so they would contradict shuffled labels.
    by_chance = _out_of_fold(model, problem._replace(y=shuffled, chunks=None), tell)
    pairs = (truth, predicted), by_chance
    value, control = (float(measure(problem.kind, *pair)) for pair in pairs)
    if problem.kind != "classes":
        name, guess = ("R²", 0.0) if problem.kind == "numeric" else ("macro F1", None)
        interval = _bootstrap(problem.kind, truth, predicted)
        return Score(name, value, *interval, len(truth), control, guess)
    low, high = wilson(int((truth == predicted).sum()), len(truth))
    most = float(np.bincount(truth).max() / len(truth))
    return Score("accuracy", value, low, high, len(truth), control, most)


def _out_of_fold(model, problem, tell):
    """Truth and prediction of the labelled rows, each predicted by a fit that did not see it."""
    splits, truth, predicted = labelled_splits(problem), [], []
    for i, (train, test) in enumerate(splits):
        tell(f"fold {i + 1} of {len(splits)}")
        more = {} if problem.chunks is None else {"chunks": problem.chunks[train]}
        fitted = clone(model).fit(problem.X[train], problem.y[train], **more)
        truth.append(problem.y[test])
        predicted.append(np.asarray(fitted.predict(problem.X[test])))
    return np.concatenate(truth), np.concatenate(predicted)


def wilson(hits, n, z=1.96):
    """Wilson's interval of a share of ``hits`` among ``n``."""
    centre = (hits + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(hits * (n - hits) / n + z**2 / 4)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _bootstrap(kind, truth, predicted):
    rng = np.random.default_rng(0)
    draws = rng.integers(len(truth), size=(RESAMPLES, len(truth)))
    varied = (rows for rows in draws if np.ptp(truth[rows]) > 0)
    scores = [measure(kind, truth[rows], predicted[rows]) for rows in varied]
    low, high = np.quantile(scores, [0.025, 0.975])
    return float(low), float(high)


def _likelihood(model, X):
    if X.shape[0] < 2 * FOLDS:
        return None
    splits = row_splits(X.shape[0])
    values = np.concatenate([clone(model).fit(X[a]).score_samples(X[b]) for a, b in splits])
    half = 1.96 * values.std() / np.sqrt(len(values))
    mean = float(values.mean())
    return Score("log likelihood per row", mean, mean - half, mean + half, len(values))
