"""How an embedding is scored: a predictor on top of it, and a measure of what it predicts."""

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier, RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

MEASURES = {"classes": "accuracy", "numbers": "R2", "multilabel": "macro F1"}
EVALUATORS = ("auto", "nearest", "linear", "own")
# The apparent score of a training embedding is looked at on at most this many rows.
MOST_APPARENT = 1000


def resolve_evaluator(evaluate, kind):
    """The name of the evaluator, or the estimator the user passed."""
    if isinstance(evaluate, str):
        if evaluate not in EVALUATORS:
            raise ValueError(f"evaluate == {evaluate!r}; accepted are {', '.join(EVALUATORS)}")
        if evaluate == "auto":
            return "linear" if kind == "numbers" else "nearest"
    elif not hasattr(evaluate, "predict"):
        raise TypeError(f"evaluate must be one of {EVALUATORS} or have predict, got {evaluate!r}")
    return evaluate


def make_predictor(evaluator, kind):
    """A fresh predictor of y from an embedding."""
    if not isinstance(evaluator, str):
        return clone(evaluator)
    if evaluator == "nearest":
        return KNeighborsRegressor(5) if kind == "numbers" else KNeighborsClassifier(1)
    models = {
        "classes": LogisticRegression(max_iter=500),
        "numbers": RidgeCV(np.logspace(-4, 2, 7)),
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
    predictor = make_predictor("linear" if evaluator == "own" else evaluator, kind).fit(Z, y)
    if evaluator != "nearest" or len(Z) <= predictor.n_neighbors:
        return float(measure(kind, y, predictor.predict(Z)))
    neighbours = predictor.kneighbors(return_distance=False)
    guess = y[neighbours].mean(axis=1) if kind == "numbers" else y[neighbours[:, 0]]
    return float(measure(kind, y, guess))


def _columns(truth, predicted):
    if np.ndim(predicted) == 1:
        return truth.reshape(*truth.shape[: np.ndim(truth)], 1), predicted[:, None]
    return truth, predicted


def _macro_f1(truth, predicted):
    hits = (truth & predicted).sum(axis=-2)
    marked = truth.sum(axis=-2) + predicted.sum(axis=-2)
    return np.where(marked > 0, 2 * hits / np.maximum(marked, 1), 0.0).mean(axis=-1)
