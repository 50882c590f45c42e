"""What is scored, on which rows and by what: the problem, its splits, measures and predictors.

Splits hold out labelled rows only; unlabelled rows stay in training. A score is made of sums
over the held-out rows of all splits together, so that rows can be drawn again for an interval
and a split of six rows has no R2 of its own.
"""

import time
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
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
    read_classes,
)
from gnomon.estimators.links import Links
from gnomon.estimators.selection import SemiSupervisedSplit

MEASURES = {"classes": "accuracy", "numeric": "R2", "multilabel": "macro F1"}
EVALUATORS = ("auto", "nearest", "linear", "own")
# What a figure is the score of; the same words in every command and in the report.
OWN, SAVED = "the model's prediction", "the saved model's prediction"
NEAREST = "nearest labelled rows on the map"
LINEAR = "a linear model on the map"
# Each fit sees four fifths of the rows; more folds cost more than they tell.
FOLDS = 5
# The apparent score of a training embedding is looked at on at most this many rows.
MOST_APPARENT = 1000
# Distances that are in memory at a time: 32 MB.
BLOCK_ENTRIES = 2**22
# Pairs of rows from which a tree finds the nearest sooner, in so many dimensions at most.
MANY_PAIRS, MOST_OF_TREE = 2**24, 12
# Enough for the two digits of a 95 % interval that are shown; fewer where rows are many, whose
# interval is narrow anyway.
RESAMPLES, FEWEST_RESAMPLES = 500, 100
# A share of the variance that is rounding: numbers that differ no more do not vary.
ROUNDING = 1e-12


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

    @property
    def centre(self) -> np.ndarray:
        """Mean of each output over the labelled rows."""
        return as_columns(self.y[self.labelled]).mean(axis=0)


class Deadline:
    """When to end: so many seconds from now, or never; as a callback it stops a fit then."""

    def __init__(self, seconds=None, clock=time.monotonic):
        self.seconds, self.clock = seconds, clock
        self._end = np.inf if seconds is None else clock() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._end - self.clock()

    def __call__(self, n_iter=0, state=None, objective=None) -> bool:
        """Whether the time is over."""
        return self.left <= 0

    def bound(self, model):
        """The model, stopped at the deadline where it can be."""
        if self.seconds is not None and "callback" in model.get_params():
            model.set_params(callback=self)
        return model


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


def as_columns(values):
    """Values (..., n) of one output as (..., n, 1) would be of many."""
    values = np.asarray(values, dtype=float)
    return values[:, None] if values.ndim == 1 else values


def row_sums(problem: Problem, truth, predicted) -> np.ndarray:
    """What each row adds to the sums that a score is made of, of shape (n, outputs, sums)."""
    if problem.kind == "classes":
        return (truth == predicted).astype(float)[:, None, None]
    truth, predicted = as_columns(truth), as_columns(predicted)
    if problem.kind == "multilabel":
        truth, predicted = truth > 0.5, predicted > 0.5
        return np.stack([truth & predicted, truth.astype(float) + predicted], axis=-1)
    truth, error = truth - problem.centre, (truth - predicted) ** 2
    return np.stack([error, truth, truth**2], axis=-1)


def score_of_sums(kind, sums, n) -> np.ndarray:
    """Score of each output from sums (..., outputs, sums) over n rows; NaN where undefined."""
    parts = np.moveaxis(np.asarray(sums), -1, 0)
    if kind == "classes":
        return parts[0] / n
    if kind == "multilabel":
        return np.divide(2 * parts[0], parts[1], out=np.zeros(parts[0].shape), where=parts[1] > 0)
    total = parts[2] - parts[1] ** 2 / n
    varied = total > ROUNDING * parts[2]
    return 1 - np.divide(parts[0], total, out=np.full(total.shape, np.nan), where=varied)


def mean_score(kind, sums) -> float:
    """Mean over outputs of the score of rows that add these sums."""
    return float(score_of_sums(kind, sums.sum(axis=0), len(sums)).mean())


def measure(problem: Problem, truth, predicted) -> float:
    """Score of predictions, the mean over outputs."""
    return mean_score(problem.kind, row_sums(problem, truth, predicted))


def resample(sums) -> np.ndarray:
    """Sums over rows drawn again, some hundred times, of shape (draws, *sums.shape[1:])."""
    n, rng = len(sums), np.random.default_rng(0)
    draws = int(np.clip(BLOCK_ENTRIES // n, FEWEST_RESAMPLES, RESAMPLES))
    counts = rng.multinomial(n, np.full(n, 1 / n), size=draws)
    return (counts @ sums.reshape(n, -1)).reshape(draws, *sums.shape[1:])


def interval(kind, sums) -> tuple[float, float]:
    """95 % interval of the mean score, from what distinct rows add: Wilson's, or by resampling."""
    if kind == "classes":
        return wilson(float(sums.sum()), len(sums))
    return _quantiles(score_of_sums(kind, resample(sums), len(sums)).mean(axis=-1))


def wilson(hits, n, z=1.96):
    """Wilson's interval of a share of ``hits`` among ``n``."""
    centre = (hits + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(hits * (n - hits) / n + z**2 / 4)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _quantiles(values):
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


def root_mean_square(sums) -> tuple[float, float, float]:
    """Root mean squared error of one numeric output and its 95 % interval, in units of y."""
    drawn = np.sqrt(resample(sums)[:, 0, 0] / len(sums))
    return (float(np.sqrt(sums[:, 0, 0].mean())), *_quantiles(drawn))


def pool(rows, sums) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows, and for each the mean of what it adds each time that it is predicted."""
    distinct, place, counts = np.unique(rows, return_inverse=True, return_counts=True)
    total = np.zeros((len(distinct), *sums.shape[1:]))
    np.add.at(total, place, sums)
    return distinct, total / counts[:, None, None]


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


def constant_guess(kind, y, n) -> np.ndarray:
    """The best that can be said of n rows of which nothing is known, from labels that are.

    The most frequent class; the mean of numbers; that every label applies, since the F1 of none
    is 0.
    """
    if kind == "classes":
        return np.full(n, np.bincount(y).argmax())
    guess = y.mean(axis=0) if kind == "numeric" else np.ones(y.shape[1:])
    return np.broadcast_to(guess, (n, *y.shape[1:]))


def apparent(evaluator, problem, Z, y):
    """Score on the rows the map was learnt from: how separate the picture looks.

    Nearest neighbours are looked for among the other rows; anything else is fitted to the very
    rows it is scored on.
    """
    Z, y, kind = Z[:MOST_APPARENT], y[:MOST_APPARENT], problem.kind
    if evaluator == "nearest":
        return measure(problem, y, by_other_rows(kind, Z, y))
    return measure(problem, y, predict(evaluator, kind, Z, y, Z))


def by_other_rows(kind, Z, y):
    """Predictions for every row of Z from the known y of the nearest others."""
    return _vote(kind, y, nearest_rows(Z, Z, _neighbours(kind, len(Z) - 1), skip_self=True))


def nearest_rows(Z, Z_test, k, *, skip_self=False):
    """Indices (m, k) of the rows of Z nearest to each row of Z_test, in blocks of rows."""
    many = len(Z) * len(Z_test) > MANY_PAIRS and Z.shape[1] <= MOST_OF_TREE
    if many and not skip_self:
        return KDTree(Z).query(Z_test, np.arange(1, k + 1))[1]
    # Less the squared lengths of Z_test, which are the same for all rows of Z.
    squares = np.einsum("ij,ij->i", Z, Z)
    table, ones = np.vstack([-2 * Z.T, squares]), np.ones((len(Z_test), 1))
    found = np.empty((len(Z_test), k), dtype=int)
    step = max(1, BLOCK_ENTRIES // len(Z))
    for start in range(0, len(Z_test), step):
        block = slice(start, start + step)
        distances = np.hstack([Z_test[block], ones[block]]) @ table
        if skip_self:
            own = np.arange(len(distances))
            distances[own, start + own] = np.inf
        if k == 1:
            found[block] = distances.argmin(axis=1)[:, None]
        else:
            found[block] = np.argpartition(distances, k - 1, axis=1)[:, :k]
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
