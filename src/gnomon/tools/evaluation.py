"""How good a model is on rows it has not seen, and on labels that mean nothing."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold

from gnomon.estimators.selection import SemiSupervisedSplit

FOLDS = 5
RESAMPLES = 500
# Of a table with more entries a sample of rows is scored.
LARGE = 5e6


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
    """Score by cross-validation over the labelled rows; None where there are too few.

    Without a target, the log likelihood per held-out row.
    """
    X, y, chunks = _sample(X, y, chunks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind is None or not hasattr(model, "predict"):
            return _likelihood(model, X) if hasattr(model, "score_samples") else None
        return _prediction(model, X, y, kind, chunks, tell)


def _sample(X, y, chunks):
    """All rows, or of a large table so many that they fit; labelled ones first."""
    n, most = X.shape[0], int(LARGE // X.shape[1])
    if n <= most:
        return X, y, chunks
    rng = np.random.default_rng(0)
    rows = rng.permutation(n)
    if y is not None:
        rows = rows[np.argsort(~is_labelled(y)[rows], kind="stable")]
        labelled = int(is_labelled(y).sum())
        half = rows[: min(labelled, most // 2)]
        rest = rows[labelled:] if labelled < n else rows[len(half) :]
        rows = np.concatenate([half, rest[: most - len(half)]])
    rows = np.sort(rows[:most])
    return X[rows], *(None if part is None else part[rows] for part in (y, chunks))


def wilson(hits, n, z=1.96):
    """Interval of a share of ``hits`` among ``n``."""
    centre = (hits + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(hits * (n - hits) / n + z**2 / 4)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def _prediction(model, X, y, kind, chunks, tell):
    if not _can_hold_out(y, kind):
        return None
    rows, predicted = _out_of_fold(model, X, y, chunks, tell)
    if len(rows) < 2:
        return None
    truth = y[rows]
    shuffled = permuted(y)
    again, guessed = _out_of_fold(model, X, shuffled, chunks, tell)
    control = float(_measure(kind)(shuffled[again], guessed))
    if kind == "classes":
        hits = int((truth == predicted).sum())
        _, counts = np.unique(truth.astype(str), return_counts=True)
        low, high = wilson(hits, len(rows))
        share = float(counts.max() / len(rows))
        return Score("accuracy", hits / len(rows), low, high, len(rows), control, share)
    truth, predicted = truth.astype(float), predicted.astype(float)
    low, high = _bootstrap(truth, predicted)
    return Score("R²", float(r2_score(truth, predicted)), low, high, len(rows), control, 0.0)


def permuted(y, seed=0):
    """The labels in another order among the labelled rows."""
    labelled = np.flatnonzero(is_labelled(y))
    shuffled = y.copy()
    shuffled[labelled] = y[np.random.default_rng(seed).permutation(labelled)]
    return shuffled


def is_labelled(y):
    """Mask of the rows with a label."""
    if y.dtype == object:
        return np.array([value is not None for value in y])
    return ~np.isnan(y)


def _can_hold_out(y, kind):
    """Whether a labelled row can be spared: of classes, two are left and one has another row."""
    values = y[is_labelled(y)]
    if kind == "numeric":
        return len(values) > 1
    _, counts = np.unique(values.astype(str), return_counts=True)
    return len(counts) > 1 and counts.max() > 1


def _measure(kind):
    if kind == "classes":
        return lambda truth, guess: accuracy_score(truth.astype(str), guess.astype(str))
    return r2_score


def _out_of_fold(model, X, y, chunks, tell):
    folds = list(SemiSupervisedSplit(_n_folds(y)).split(X, y))
    rows, predicted = [], []
    for i, (train, test) in enumerate(folds):
        tell(f"fold {i + 1} of {len(folds)}")
        more = {} if chunks is None else {"chunks": chunks[train]}
        fitted = clone(model).fit(X[train], y[train], **more)
        rows.append(test)
        predicted.append(np.asarray(fitted.predict(X[test])))
    if not rows:
        return np.array([], dtype=int), np.array([])
    return np.concatenate(rows), np.concatenate(predicted)


def _n_folds(y):
    return max(2, min(FOLDS, int(is_labelled(y).sum())))


def _bootstrap(truth, predicted):
    rng = np.random.default_rng(0)
    draws = rng.integers(len(truth), size=(RESAMPLES, len(truth)))
    scores = [r2_score(truth[d], predicted[d]) for d in draws if np.ptp(truth[d]) > 0]
    low, high = np.quantile(scores, [0.025, 0.975])
    return float(low), float(high)


def _likelihood(model, X):
    if X.shape[0] < 2 * FOLDS:
        return None
    folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(np.arange(X.shape[0])))
    parts = [clone(model).fit(X[train]).score_samples(X[test]) for train, test in folds]
    values = np.concatenate(parts)
    half = 1.96 * values.std() / np.sqrt(len(values))
    mean = float(values.mean())
    return Score("log likelihood per row", mean, mean - half, mean + half, len(values))
