"""How an embedding is scored: a predictor on top of it, and a measure of what it predicts."""

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MEASURES = {"classes": "accuracy", "numeric": "R2", "multilabel": "macro F1"}
EVALUATORS = ("auto", "nearest", "linear", "own")
# The apparent score of a training embedding is looked at on at most this many rows.
MOST_APPARENT = 1000
BLOCK_ENTRIES = 2**22


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


def _columns(truth, predicted):
    if np.ndim(predicted) == 1:
        return truth.reshape(*truth.shape[: np.ndim(truth)], 1), predicted[:, None]
    return truth, predicted


def _macro_f1(truth, predicted):
    hits = (truth & predicted).sum(axis=-2)
    marked = truth.sum(axis=-2) + predicted.sum(axis=-2)
    return np.where(marked > 0, 2 * hits / np.maximum(marked, 1), 0.0).mean(axis=-1)
