"""Splits, measures and their intervals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.model_selection import KFold

from gnomon.estimators import smallest_good, why_size
from gnomon.tools.compare import scoring
from gnomon.tools.compare.scoring import (
    Deadline,
    interval,
    labelled_splits,
    measure,
    nearest_rows,
    pool,
    predict,
    read_problem,
    root_mean_square,
    row_splits,
    row_sums,
    wilson,
)


def of(y, kind="auto"):
    return read_problem(np.zeros((len(y), 2)), y, target=kind)


def test_measures_are_those_of_scikit_learn(rng):
    y, guess = rng.integers(3, size=30), rng.integers(3, size=30)
    assert_allclose(measure(of(y), y, guess), accuracy_score(y, guess))
    labels, marks = rng.integers(2, size=(30, 4)), rng.integers(2, size=(30, 4))
    expected = f1_score(labels, marks, average="macro")
    assert_allclose(measure(of(labels), labels, marks), expected)
    values, guesses = 1e6 + rng.standard_normal((30, 2)), 1e6 + rng.standard_normal((30, 2))
    assert_allclose(measure(of(values), values, guesses), r2_score(values, guesses))
    first, guessed = values[:, 0], guesses[:, 0]
    assert_allclose(measure(of(first), first, guessed), r2_score(first, guessed))


def test_numbers_have_an_error_in_their_units_with_an_interval(rng):
    y = rng.standard_normal(200)
    guess = y + 0.1 * rng.standard_normal(200)
    sums = row_sums(of(y), y, guess)
    value, low, high = root_mean_square(sums)
    assert_allclose(value, np.sqrt(np.mean((y - guess) ** 2)))
    assert 0.08 < low < value < high < 0.12
    assert 0.97 < interval("numeric", sums)[0] < measure(of(y), y, guess)


def test_a_row_that_is_predicted_three_times_is_one_row():
    y = np.repeat([0, 1], 10)
    rows = np.tile(np.arange(20), 3)
    guess = np.where(np.arange(60) < 30, y[rows], 1 - y[rows])
    distinct, sums = pool(rows, row_sums(of(y), y[rows], guess))
    assert distinct.tolist() == list(range(20))
    assert sums.ravel().tolist() == [2 / 3] * 10 + [1 / 3] * 10
    assert_allclose(interval("classes", sums), wilson(10, 20))


def test_fifteen_right_answers_do_not_make_certainty():
    y = np.repeat([0, 1, 2], 5)
    low, high = interval("classes", row_sums(of(y), y, y))
    assert 0.75 < low < 0.85
    assert high == 1


def test_the_smallest_size_that_is_as_good_is_chosen_and_said():
    scores = {2: 0.93, 5: 0.95, 10: 0.955}
    assert smallest_good(scores, scores.values()) == 5
    assert why_size(scores, 5) == (
        "5 is the smallest of 2, 5, 10 that scores within 0.02 of the best (10: +0.005)."
    )
    assert why_size(scores, 10) == "10 scores best of 2, 5, 10."
    assert why_size({2: 0.9}, 2) == "2 alone was tried."


def test_a_deadline_is_over_when_its_seconds_are():
    now = [0.0]
    until = Deadline(5, clock=lambda: now[0])
    assert not until()
    now[0] = 4.0
    assert until.left == 1
    now[0] = 5.0
    assert until(1, None, 0.0)
    assert not Deadline()()


@pytest.mark.parametrize("many", [0, 2**24])
def test_nearest_rows_are_the_nearest(many, rng, monkeypatch):
    monkeypatch.setattr(scoring, "MANY_PAIRS", many)
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


def iris():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"], dtype=object)[y]
    return X, np.where(np.arange(150) % 3 < 2, names, None)


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
