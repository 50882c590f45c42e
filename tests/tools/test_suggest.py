"""Rows to label next: what each rule takes, and what is said of it."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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


def test_representative_rows_are_those_of_the_formula_taken_one_by_one():
    F = RNG.normal(size=(40, 3))
    P = RNG.dirichlet(np.ones(3), size=40)
    labelled = np.arange(40) < 4
    D = np.linalg.norm(F[:, None] - F[None], axis=2)
    h = np.median(np.sort(D[4:, 4:], axis=1)[:, 10])
    K, top = np.exp(-(D**2) / (2 * h**2)), np.sort(P, axis=1)
    doubt, taken = 1 - top[:, 2] + top[:, 1], list(range(4))
    for _ in range(6):
        gains = [
            -1.0
            if j in taken
            else sum(doubt[i] * max(0.0, K[i, j] - K[i, taken].max()) for i in range(4, 40))
            for j in range(40)
        ]
        taken.append(int(np.argmax(gains)))
    found = choose(View(F, F, P, labelled, (0, 1, 2)), n=6, rule="representative", rng=RNG)
    assert [s.row for s in found] == taken[4:]


def test_a_representative_row_says_for_how_many_it_stands():
    F = np.repeat([[0.0, 0], [50, 0]], [30, 12], axis=0) + RNG.normal(size=(42, 2)) * 1e-3
    view = View(F, F, None, np.zeros(42, dtype=bool))
    first, second = choose(view, n=2, rule="representative", rng=RNG)
    assert first.row < 30 <= second.row
    assert 10 < int(first.reason.split()[3]) <= 30


@pytest.mark.parametrize("rule", RULES)
def test_equal_rows_and_certain_classes_are_still_put_in_an_order(rule):
    P = np.repeat([[1.0, 0.0]], 20, axis=0)
    view = View(np.zeros((20, 2)), np.zeros((20, 2)), P, np.arange(20) == 0, ("a", "b"))
    assert len({s.row for s in choose(view, n=5, rule=rule, rng=RNG)}) == 5


def test_rows_passed_over_are_not_suggested(rows):
    X, y = rows
    view = View(X[:, :2], X, None, y >= 0, passed=np.arange(90) > 20)
    assert max(s.row for s in choose(view, n=50, rule="representative", rng=RNG)) <= 20


def test_rows_without_any_value_are_not_suggested(rows):
    X, y = rows
    X = np.where(np.arange(90)[:, None] > 80, np.nan, X)
    X[0, 1:] = np.nan
    for rule in RULES:
        found = {s.row for s in suggest(SPPCA().fit(X, y), X, y, n=90, rule=rule)}
        assert found == {row for row in range(81) if y[row] == -1}


def test_of_many_rows_some_are_looked_at(monkeypatch, rows):
    X, y = rows
    monkeypatch.setattr("gnomon.tools.suggest.MOST_CANDIDATES", 12)
    assert len(suggest(SPPCA().fit(X, y), X, y, n=50)) == 12


def test_a_pipeline_is_looked_at_through_its_first_steps(rows):
    X, y = rows
    X = X * [1e6, 1, 1, 1, 1]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    piped = make_pipeline(StandardScaler(), SPPCA()).fit(X, y)
    expected = [s.row for s in suggest(SPPCA().fit(scaled, y), scaled, y)]
    assert [s.row for s in suggest(piped, X, y)] == expected


def test_coverage_takes_the_row_farthest_from_labelled_and_taken_rows():
    Z = np.array([[0.0, 0], [1, 0], [9, 0], [10, 0], [4, 0]])
    view = View(Z, Z, None, np.array([True, False, False, False, False]))
    found = choose(view, n=3, rule="coverage", rng=RNG)
    assert [s.row for s in found] == [3, 4, 1]


def test_margin_takes_the_row_with_the_closest_two_classes_and_names_them():
    P = np.array([[0.5, 0.3, 0.2], [0.4, 0.2, 0.4], [0.34, 0.33, 0.33]])
    view = View(np.eye(3), np.eye(3), P[[0, 1, 0]], np.zeros(3, dtype=bool), ("a", "b", "c"))
    found = choose(view, n=1, rule="margin", rng=RNG)[0]
    assert found.row == 1
    assert found.reason == "between a (0.40) and c (0.40)"


def test_entropy_takes_the_most_even_row():
    P = np.array([[0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    view = View(np.eye(2), np.eye(2), P, np.zeros(2, dtype=bool), ("a", "b", "c"))
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


def test_where_one_is_the_only_class_so_far_minus_one_is_none(rows):
    X, _ = rows
    labels = np.where(np.arange(90) == 4, 1, -1)
    assert 4 not in [s.row for s in suggest(SPPCA().fit(X), X, labels, n=89)]


def test_minus_one_is_a_class_where_the_model_has_it(rows):
    X, _ = rows
    signs = np.where(np.arange(90) < 45, -1, 1)
    assert suggest(SPPCA().fit(X, signs), X, signs) == []


def test_a_y_of_another_length_is_refused(rows):
    X, y = rows
    with pytest.raises(ValueError, match="y has 80 rows, X has 90"):
        suggest(SPPCA().fit(X, y), X, y[:80])


@pytest.mark.parametrize("unit", [1e-23, 1e20])
def test_rows_of_any_unit_are_suggested_alike(unit):
    X = load_iris().data
    y = np.full(150, -1)
    y[[0, 1, 50, 51, 100, 101]] = [0, 0, 1, 1, 2, 2]
    plain, other = (suggest(SPPCA().fit(Z, y), Z, y, n=3) for Z in (X, unit * X))
    assert [found.row for found in other] == [found.row for found in plain]
