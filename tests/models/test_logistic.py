"""Regressions without each fold, against one regression after the other by scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from gnomon.models import logistic


def folds_of(labels):
    order = np.argsort(labels, kind="stable")
    return [np.sort(order[k::5]) for k in range(5)]


@pytest.fixture(params=[2, 3, 6])
def table(rng, request):
    labels = np.repeat(np.arange(request.param), 10)
    Z = 5 + 3 * rng.standard_normal((len(labels), 4)) + rng.standard_normal((6, 4))[labels]
    return Z, labels, rng.uniform(0.5, 2, len(labels))


def by_one(Z, labels, weights, fold, C):
    """Log odds of a fold as `LogisticRegression` has them on rows of mean squared length one."""
    rest = np.setdiff1d(np.arange(len(labels)), fold)
    mean = np.average(Z[rest], axis=0, weights=weights[rest])
    length = np.sqrt(np.average(np.sum((Z[rest] - mean) ** 2, axis=1), weights=weights[rest]))
    model = LogisticRegression(C=C, tol=1e-10, max_iter=10_000)
    model.fit((Z[rest] - mean) / length, labels[rest], sample_weight=weights[rest])
    return np.log(model.predict_proba((Z[fold] - mean) / length))


@pytest.mark.parametrize("C", [0.3, 10.0])
def test_rows_left_out_have_the_odds_of_a_regression_on_the_others(table, C, monkeypatch):
    Z, labels, weights = table
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-13)
    n_classes = labels.max() + 1
    nothing = np.zeros((4, n_classes)), np.zeros(n_classes)
    odds = logistic.left_out_odds(Z, labels, weights, folds_of(labels), nothing, C)
    for fold in folds_of(labels):
        expected = by_one(Z, labels, weights, fold, C)
        assert_allclose(log_softmax(odds[fold], axis=1), expected, atol=1e-4)


def test_folds_that_take_turns_have_the_same_odds(table, monkeypatch):
    Z, labels, _ = table
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-13)
    n_classes = labels.max() + 1
    known = labels, None, folds_of(labels), (np.zeros((4, n_classes)), np.zeros(n_classes)), 1.0
    at_once = logistic.left_out_odds(Z, *known)
    monkeypatch.setattr(logistic, "MOST_ODDS", 2 * len(Z) * n_classes)
    assert_allclose(logistic.left_out_odds(Z, *known), at_once, atol=1e-4)


def test_a_start_at_the_regression_of_all_rows_ends_where_any_other_does(table, monkeypatch):
    Z, labels, weights = table
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-13)
    n_classes = labels.max() + 1
    starts = [
        (scale * np.ones((4, n_classes)).cumsum(axis=1), np.arange(n_classes) * scale)
        for scale in (0.0, 0.1)
    ]
    found = [
        log_softmax(logistic.left_out_odds(Z, labels, weights, folds_of(labels), start, 1.0), 1)
        for start in starts[: 1 if n_classes == 2 else 2]
    ]
    assert_allclose(found[-1], found[0], atol=1e-4)


def test_a_class_that_only_the_fold_has_is_not_told(rng, monkeypatch):
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-13)
    Z, labels, fold = rng.standard_normal((16, 2)), np.repeat(np.arange(4), 4), np.arange(12, 16)
    nothing = np.zeros((2, 4)), np.zeros(4)
    odds = logistic.left_out_odds(Z, labels, None, [fold], nothing, 1.0)
    assert np.isneginf(odds[fold, 3]).all() and np.isfinite(odds[fold, :3]).all()
    assert np.isneginf(odds[:12]).all()
    expected = by_one(Z, labels, np.ones(16), fold, 1.0)
    assert_allclose(log_softmax(odds[fold, :3], axis=1), expected, atol=1e-4)


def test_slopes_are_those_of_differences(table, rng):
    Z, labels, weights = table
    rows = logistic._rows(Z, labels, weights)
    folds = logistic._without(rows, weights, folds_of(labels), labels.max() + 1, 3.0)
    B = rng.standard_normal((5, labels.max() + 1, 5))
    slopes = logistic._objective(rows, folds, B)[1]

    def value(flat):
        return logistic._objective(rows, folds, flat.reshape(B.shape))[0]

    assert_allclose(slopes.ravel(), approx_fprime(B.ravel(), value, 1e-6), atol=1e-5)
