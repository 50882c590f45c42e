"""Logistic regressions of classes without some of the rows, all folds at once.

Cross-validation asks for a regression without each of the folds. They differ little from that of
all rows and from each other, so that one ascent brings them all to their tops from there. With
rows z, classes y, weights v that are zero in the fold, and the mean squared length l^2 of the rows
that are left, each is the top of

    sum_i v_i log softmax(a + z_i B)_(y_i) / sum_i v_i  -  l^2 |B|^2 / (2 C sum_i v_i)

which is scikit-learn's `LogisticRegression` on rows whose mean squared length is one. Of two
classes the first has no log odds of its own.
"""

from typing import NamedTuple

import numpy as np

from gnomon.inference.lbfgs import ascend

# Numbers of all regressions on all rows that are held at a time: of more, folds take turns.
MOST_ODDS = 2**22
# Gain of a step, in nats a row, after which none is taken. On 16 planted tables the factor that
# rows left out ask for was that of scikit-learn's regressions, one by one, with 1e-5 on 15.
TOLERANCE = 1e-6
MOST_STEPS = 1000


class Rows(NamedTuple):
    """Rows less their mean, in units of their length, with a column of ones; their classes."""

    Z: np.ndarray
    labels: np.ndarray
    mean: np.ndarray
    length: float


class Folds(NamedTuple):
    """Weights (k, n) that add up to one in each fold, penalties (k,), classes (k, C) to be told."""

    weights: np.ndarray
    penalties: np.ndarray
    told: np.ndarray


def left_out_odds(Z, labels, weights, folds, start, C) -> np.ndarray:
    """Log odds (n, C) of the rows of every fold, by a regression on the other rows.

    ``start`` are coefficients and intercept of the regression on all rows. Of rows in no fold,
    and of a class that only the fold has, log odds are -inf.
    """
    weights = np.ones(len(Z)) if weights is None else weights
    rows, n_classes = _rows(Z, labels, weights), len(start[1])
    start = np.vstack([start[0] * rows.length, start[1] + rows.mean @ start[0]]).T
    odds = np.full((len(Z), n_classes), -np.inf)
    at_once = max(1, MOST_ODDS // (len(Z) * n_classes))
    for k in range(0, len(folds), at_once):
        some = folds[k : k + at_once]
        without = _without(rows, weights, some, n_classes, C)
        for fold, told, B in zip(some, without.told, _fitted(rows, without, start), strict=True):
            odds[np.ix_(fold, told)] = rows.Z[fold] @ B[told].T
    return odds


def _rows(Z, labels, weights):
    mean = np.average(Z, axis=0, weights=weights)
    length = np.sqrt(np.average(np.sum((Z - mean) ** 2, axis=1), weights=weights)) or 1.0
    return Rows(np.column_stack([(Z - mean) / length, np.ones(len(Z))]), labels, mean, length)


def _without(rows, weights, folds, n_classes, C):
    kept = np.tile(weights, (len(folds), 1))
    for own, fold in zip(kept, folds, strict=True):
        own[fold] = 0
    totals = kept.sum(axis=1, keepdims=True)
    shares, Z = kept / totals, rows.Z[:, :-1]
    squares = shares @ np.sum(Z**2, axis=1) - np.sum((shares @ Z) ** 2, axis=1)
    squares[squares <= 0] = 1.0
    told = kept @ (rows.labels[:, None] == np.arange(n_classes)) > 0
    return Folds(shares, squares / (C * totals[:, 0]), told)


def _fitted(rows, folds, start):
    """Coefficients and intercepts (k, C, q + 1) of the regressions."""
    shape = *folds.told.shape, rows.Z.shape[1]
    moves = np.broadcast_to(folds.told[:, :, None], shape).astype(float)
    if shape[1] == 2:
        moves[:, 0] = 0

    def value_and_gradient(flat):
        value, slopes = _objective(rows, folds, flat.reshape(shape))
        return value, (moves * slopes).ravel()

    start = (moves * start).ravel()
    return ascend(value_and_gradient, start, max_iter=MOST_STEPS, tol=TOLERANCE).state.reshape(
        shape
    )


def _objective(rows, folds, B):
    """The sum of what all regressions bring to their tops, and its slopes."""
    (k, n_classes, width), n = B.shape, len(rows.Z)
    odds = (B.reshape(-1, width) @ rows.Z.T).reshape(k, n_classes, n)
    odds[~folds.told] = -np.inf
    odds -= odds.max(axis=1, keepdims=True)
    place = np.arange(n)
    seen = folds.weights > 0
    own = np.where(seen, odds[:, rows.labels, place], 0.0)
    np.exp(odds, out=odds)
    totals = odds.sum(axis=1)
    penalised = folds.penalties[:, None, None] * B[..., :-1]
    value = np.sum(folds.weights * (own - np.log(totals))) - np.sum(penalised * B[..., :-1]) / 2
    odds *= (-folds.weights / totals)[:, None]
    odds[:, rows.labels, place] += folds.weights
    slopes = (odds.reshape(-1, n) @ rows.Z).reshape(B.shape)
    slopes[..., :-1] -= penalised
    return value, slopes
