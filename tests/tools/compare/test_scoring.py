"""Splits, measures, and the score of a model's own predictions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.model_selection import KFold

import gnomon
from gnomon.tools.compare import scoring
from gnomon.tools.compare.scoring import (
    held_out,
    labelled_splits,
    measure,
    nearest_rows,
    predict,
    read_problem,
    row_splits,
    wilson,
)


def test_measures_are_those_of_scikit_learn(rng):
    y, guess = rng.integers(3, size=30), rng.integers(3, size=30)
    assert_allclose(measure("classes", y, guess), accuracy_score(y, guess))
    labels, marks = rng.integers(2, size=(30, 4)), rng.integers(2, size=(30, 4))
    expected = f1_score(labels, marks, average="macro")
    assert_allclose(measure("multilabel", labels, marks), expected)
    values, guesses = rng.standard_normal((30, 2)), rng.standard_normal((30, 2))
    assert_allclose(measure("numeric", values, guesses), r2_score(values, guesses))
    assert_allclose(
        measure("numeric", values[:, 0], guesses[:, 0]), r2_score(values[:, 0], guesses[:, 0])
    )


@pytest.mark.parametrize("kind", ["classes", "numeric", "multilabel"])
def test_measures_take_many_truths_at_once(rng, kind):
    shape = (20, 3) if kind == "multilabel" else (20,)
    truths = rng.integers(2, size=(5, *shape)).astype(float)
    guess = rng.integers(2, size=shape).astype(float)
    expected = [measure(kind, truth, guess) for truth in truths]
    assert_allclose(measure(kind, truths, guess), expected)


def test_nearest_rows_are_the_nearest(rng):
    Z, Z_test = rng.standard_normal((40, 3)), rng.standard_normal((10, 3))
    distances = ((Z_test[:, None] - Z) ** 2).sum(axis=2)
    order = np.argsort(distances, axis=1)
    assert (nearest_rows(Z, Z_test, 1)[:, 0] == order[:, 0]).all()
    found = np.sort(nearest_rows(Z, Z_test, 5), axis=1)
    assert (found == np.sort(order[:, :5], axis=1)).all()


def test_a_row_is_not_its_own_neighbour(rng):
    Z = rng.standard_normal((30, 2))
    assert not (nearest_rows(Z, Z, 1, skip_self=True)[:, 0] == np.arange(30)).any()


def test_five_neighbours_vote_for_numbers(rng):
    Z, y = np.arange(10.0)[:, None], np.arange(10.0)
    assert_allclose(predict("nearest", "numeric", Z, y, np.array([[2.0]])), [2.0])


def iris(some=True):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"], dtype=object)[y]
    return X, np.where(np.arange(150) % 3 < 2, names, None) if some else names


def test_whole_numbers_that_are_told_to_be_numbers_are_split_as_such():
    """And -1 is one of them."""
    X, y = np.zeros((20, 1)), np.arange(-1.0, 19.0)
    problem = read_problem(X, y, target="numeric")
    assert problem.labelled.all()
    assert problem.told
    tests = [test for _, test in labelled_splits(problem)]
    assert [len(test) for test in tests] == [4] * 5
    assert sorted(np.concatenate(tests)) == list(range(20))


def test_a_problem_numbers_the_classes_by_their_names():
    X, y = iris()
    problem = read_problem(X, y)
    assert problem.names.tolist() == ["a", "b", "c"]
    assert problem.y[:3].tolist() == [0, 0, -1]
    assert not problem.told


def test_rows_are_split_as_scikit_learn_does():
    expected = list(KFold(4, shuffle=True, random_state=3).split(np.zeros(21)))
    for (a, b), (c, d) in zip(row_splits(21, 4, 3), expected, strict=True):
        assert a.tolist() == c.tolist()
        assert b.tolist() == d.tolist()


def test_the_interval_of_a_share_is_wilsons():
    expected = binomtest(37, 50).proportion_ci(method="wilson")
    assert_allclose(wilson(37, 50), [expected.low, expected.high], atol=1e-4)


def test_the_held_out_score_is_that_of_a_loop_by_hand():
    X, y = iris()
    model = gnomon.SPPCA(2, supervision=0.5)
    score = held_out(model, X, y, "classes")
    hits, rows = 0, 0
    for train, test in gnomon.SemiSupervisedSplit(5).split(X, y):
        hits += np.sum(clone(model).fit(X[train], y[train]).predict(X[test]) == y[test])
        rows += len(test)
    assert (score.name, score.n_rows) == ("accuracy", rows)
    assert_allclose(score.value, hits / rows)
    assert score.low < score.value < score.high
    assert_allclose(score.baseline, 1 / 3, atol=0.01)
    assert score.control < 0.5


def test_the_control_is_the_score_of_permuted_labels():
    X, y = iris()
    shuffled, known = y.copy(), np.flatnonzero([label is not None for label in y])
    shuffled[known] = y[np.random.default_rng(0).permutation(known)]
    model = gnomon.SPPCA(2, supervision=0.5)
    by_hand = held_out(model, X, shuffled, "classes")
    assert_allclose(held_out(model, X, y, "classes").control, by_hand.value)


def test_numbers_are_scored_with_an_interval_by_resampling():
    X, y = load_diabetes(return_X_y=True)
    model = gnomon.SPPCA(2, supervision=0.5, target="numeric")
    score = held_out(model, X, np.where(np.arange(len(y)) % 2, y, np.nan), "numeric")
    truth, guess = [], []
    halved = np.where(np.arange(len(y)) % 2, y, np.nan)
    for train, test in gnomon.SemiSupervisedSplit(5).split(X, halved):
        truth.append(y[test])
        guess.append(clone(model).fit(X[train], halved[train]).predict(X[test]))
    assert score.name == "R²"
    assert_allclose(score.value, r2_score(np.concatenate(truth), np.concatenate(guess)))
    assert 0.25 < score.low < score.value < score.high < 0.6
    assert score.control < 0.05


def test_without_a_target_the_score_is_the_held_out_likelihood():
    X, _ = iris()
    model = gnomon.PPCA(2)
    score = held_out(model, X, None, None)
    values = [clone(model).fit(X[a]).score_samples(X[b]) for a, b in row_splits(150)]
    assert score.name == "log likelihood per row"
    assert_allclose(score.value, np.mean(np.concatenate(values)))
    assert held_out(model, X[:9], None, None) is None


def test_chunks_do_not_contradict_the_permuted_labels():
    """They know the real classes; with permuted labels they would be refused."""
    X, y = load_iris(return_X_y=True)
    chunks = np.where(np.arange(150) % 10 < 4, np.arange(150) // 10, -1)
    labels = np.where(np.arange(150) % 2, y, -1)
    score = held_out(gnomon.DCAGM(1, random_state=0), X, labels, "classes", chunks=chunks)
    assert score.value > 0.9
    assert score.control < 0.6


@pytest.mark.parametrize("labels", [["a", None, None], ["a", "b", None], ["a", "a", None]])
def test_too_few_labels_give_no_score(labels, rng):
    y = np.array(labels * 3, dtype=object)
    y[3:] = None
    X = rng.normal(size=(9, 2))
    assert held_out(gnomon.SPPCA(1, supervision=0.5), X, y, "classes") is None


def test_of_a_large_table_a_sample_is_scored_with_its_labels(monkeypatch):
    X, y = iris(some=False)
    y[np.arange(150) % 3 > 0] = None
    monkeypatch.setattr(scoring, "LARGE", 400)
    model = gnomon.SPPCA(1, supervision=0.5)
    assert held_out(model, X, y, "classes").n_rows == 50
    y[np.arange(150) % 30 > 0] = None
    sample, labels, _ = scoring._sample(X, y, "classes", None)
    assert len(sample) == 100
    assert np.sum(labels != np.array(None)) == 5


def test_a_score_keeps_what_was_predicted_of_rows_that_no_fit_had_seen(rng):
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + 2 * np.eye(4)[y]
    names = np.array(["a", "b", "c"])[y]
    found = scoring.held_out(gnomon.SPPCA(2, supervision=0.5), X, names, "classes")
    rows = found.rows
    assert rows.names.tolist() == ["a", "b", "c"]
    assert np.mean(rows.truth == rows.predicted) == found.value
    assert rows.proba.shape == (60, 3)
    assert np.array_equal(rows.proba.argmax(axis=1), rows.predicted)
    assert sorted(rows.truth.tolist()) == sorted(y.tolist())


def test_a_score_of_numbers_keeps_their_standard_deviations(rng):
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    rows = scoring.held_out(gnomon.BSDRRegressor(2), X, y, "numeric").rows
    assert rows.std.shape == rows.truth.shape
    assert np.mean(np.abs(rows.truth - rows.predicted) < 1.96 * rows.std) > 0.8
