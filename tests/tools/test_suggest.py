"""Rows to label next: what each rule takes, and what is said of it."""

import numpy as np
import pytest

from gnomon import PPCA, SPPCA, suggest
from gnomon.tools.suggest import RULES, View, choose

RNG = np.random.default_rng(0)


@pytest.fixture
def rows():
    y = np.repeat([0, 1, 2], 30)
    X = RNG.normal(size=(90, 5)) + 4 * np.eye(3, 5)[y]
    labels = np.where(np.arange(90) % 10 == 0, y, -1)
    return X, labels


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gives_distinct_unlabelled_rows_with_reasons(rows, rule):
    X, y = rows
    found = suggest(SPPCA().fit(X, y), X, y, n=7, rule=rule)
    assert len({s.row for s in found}) == 7
    assert all(y[s.row] == -1 and s.reason for s in found)


def test_no_more_rows_are_suggested_than_are_left(rows):
    X, y = rows
    y = np.where(np.arange(90) < 87, np.maximum(y, 0), -1)
    assert {s.row for s in suggest(SPPCA().fit(X, y), X, y, n=10)} == {87, 88, 89}


def test_coverage_takes_the_row_farthest_from_labelled_and_taken_rows():
    Z = np.array([[0.0, 0], [1, 0], [9, 0], [10, 0], [4, 0]])
    view = View(Z, None, np.array([True, False, False, False, False]))
    found = choose(view, n=3, rule="coverage", rng=RNG)
    assert [s.row for s in found] == [3, 4, 1]


def test_margin_takes_the_row_with_the_closest_two_classes_and_names_them():
    P = np.array([[0.5, 0.3, 0.2], [0.4, 0.2, 0.4], [0.34, 0.33, 0.33]])
    view = View(np.eye(3), P[[0, 1, 0]], np.zeros(3, dtype=bool), ("a", "b", "c"))
    found = choose(view, n=1, rule="margin", rng=RNG)[0]
    assert found.row == 1
    assert found.reason == "between a (0.40) and c (0.40)"


def test_entropy_takes_the_most_even_row():
    P = np.array([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    view = View(np.eye(2), P, np.zeros(2, dtype=bool), ("a", "b", "c"))
    assert choose(view, n=1, rule="entropy", rng=RNG)[0].row == 1


def test_a_model_without_classes_covers_the_map(rows):
    X, _ = rows
    assert len(suggest(PPCA().fit(X), X, n=4)) == 4


def test_a_rule_that_is_unknown_is_named(rows):
    X, y = rows
    with pytest.raises(ValueError, match="rule == 'best'"):
        suggest(SPPCA().fit(X, y), X, y, rule="best")


def test_a_rule_that_needs_classes_says_so_of_a_model_without(rows):
    X, _ = rows
    with pytest.raises(ValueError, match="rule == 'margin' needs predict_proba, which PPCA"):
        suggest(PPCA().fit(X), X, rule="margin")
