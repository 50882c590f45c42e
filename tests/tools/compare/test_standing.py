"""Who leads, who is as good, what to expect, and whether anything is there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.tools.compare.scoring import read_problem, row_sums
from gnomon.tools.compare.standing import Row, choose_leader, judge, structure_test
from gnomon.tools.compare.trials import Outcome


def problem_of(y):
    return read_problem(np.zeros((len(y), 2)), y, transductive=False)


def outcomes(problem, guesses, folds=5):
    """Outcomes of models that guess so, on folds of all rows, and the folds."""
    tests = np.array_split(np.arange(len(problem.y)), folds)
    found = [
        Outcome(model, size, split, "real", seconds=seconds, predicted=guess[test])._replace(
            sums=row_sums(problem, problem.y[test], guess[test])
        )
        for (model, size, seconds), guess in guesses.items()
        for split, test in enumerate(tests)
    ]
    return found, [(None, test) for test in tests]


def wrong(y, rows):
    guess = y.copy()
    guess[rows] = (guess[rows] + 1) % 3
    return guess


def test_perfect_predictions_are_structure_and_constant_ones_are_not(rng):
    problem = problem_of(np.repeat([0, 1], 20))
    test = np.arange(40)
    assert structure_test(problem, (test, [problem.y]), rng) < 0.01
    assert structure_test(problem, (test, [np.zeros(40, int)]), rng) == 1


def test_the_best_of_many_random_guesses_is_no_structure(rng):
    problem = problem_of(np.repeat([0, 1], 20))
    guesses = [rng.integers(2, size=40) for _ in range(60)]
    assert structure_test(problem, (np.arange(40), guesses), rng) > 0.05


@pytest.mark.parametrize(
    "n, rows, mark",
    [(300, 1, "as good"), (300, 60, "worse"), (30, 0, "open"), (30, 3, "open")],
)
def test_marks_know_how_few_rows_they_rest_on(n, rows, mark):
    """Thirty rows without a difference do not show that there is none; 300 do."""
    y = np.arange(n) % 3
    guesses = {("a", 2, 1.0): y, ("b", 2, 1.0): wrong(y, np.arange(rows))}
    found = judge(problem_of(y), *outcomes(problem_of(y), guesses))
    assert [row.mark for row in found.rows] == ["best" if mark == "worse" else "leads", mark]
    low, high = found.rows[1].difference_low, found.rows[1].difference_high
    assert low < found.rows[1].difference < high


def row(model, size, score, width=0.1):
    return Row(model, size, score, score - width / 2, score + width / 2, 50, 5)


def test_models_that_hold_up_with_few_labels_get_an_error():
    error = row("PCA", 2, 0.9).error
    rows = [row("PCA", 2, 0.9), row("SPPCA", 2, 0.9 - 0.9 * error)]
    assert choose_leader(rows, [r.score for r in rows]) == (1, [0, 1])
    rows = [row("PCA", 2, 0.9), row("SPPCA", 2, 0.9 - 1.1 * error)]
    assert choose_leader(rows, [r.score for r in rows]) == (0, [0, 1])


def test_the_kernel_leads_among_equals():
    rows = [row(name, 2, 0.9) for name in ("PCA", "SPPCA", "KernelSPPCA", "UMAP")]
    assert choose_leader(rows, [r.score for r in rows])[0] == 2
    assert choose_leader(rows, [0.9, 0.91, 0.9, 0.9])[0] == 1


def test_each_model_stands_by_its_smallest_good_size():
    rows = [row("PCA", 10, 0.95), row("PCA", 5, 0.94), row("PCA", 2, 0.9)]
    assert choose_leader(rows, [r.score for r in rows]) == (1, [1])


def test_the_best_of_many_guesses_is_not_expected_to_stay_the_best(rng):
    """The best of forty random guesses is luck, and much of it is taken off."""
    y = np.arange(60) % 2
    guesses = {(f"m{i}", 2, 1.0): rng.integers(2, size=60) for i in range(40)}
    found = judge(problem_of(y), *outcomes(problem_of(y), guesses))
    value, low, high = found.expected
    assert found.rows[0].score > 0.55
    assert value < found.rows[0].score - 0.03
    assert low < value < high
    assert found.structure is False


def test_a_single_candidate_loses_nothing():
    y = np.arange(60) % 3
    found = judge(problem_of(y), *outcomes(problem_of(y), {("a", 2, 1.0): wrong(y, [0, 1])}))
    assert_allclose(found.expected[0], found.rows[0].score, atol=0.003)
    assert_allclose(found.rows[0].score, 58 / 60)


def test_one_split_marks_nothing():
    y = np.arange(60) % 3
    guesses = {("a", 2, 1.0): y, ("b", 2, 1.0): wrong(y, np.arange(30))}
    done, splits = outcomes(problem_of(y), guesses, folds=2)
    found = judge(problem_of(y), [outcome for outcome in done if outcome.split == 0], splits)
    assert [r.mark for r in found.rows] == ["", ""]
    assert found.structure is None


def test_numbers_are_pooled_over_folds_that_are_too_small_for_them(rng):
    """R2 of folds of two rows would be about anything; pooled it is that of all rows."""
    y = rng.standard_normal(40) + 0.5
    guess = y + 0.5 * rng.standard_normal(40)
    problem = problem_of(y)
    found = judge(problem, *outcomes(problem, {("a", 2, 1.0): guess}, folds=20))
    expected = 1 - np.sum((y - guess) ** 2) / np.sum((y - y.mean()) ** 2)
    assert_allclose(found.rows[0].score, expected)
    assert_allclose(found.rows[0].rmse, np.sqrt(np.mean((y - guess) ** 2)))


def test_each_of_several_outputs_has_its_score(rng):
    y = rng.standard_normal((50, 2))
    guess = np.c_[y[:, 0] + 0.1, np.zeros(50)]
    problem = problem_of(y)
    (only,) = judge(problem, *outcomes(problem, {("a", 2, 1.0): guess})).rows
    assert len(only.outputs) == 2
    assert only.outputs[0] > 0.9 > only.outputs[1]
    assert_allclose(only.score, np.mean(only.outputs))
    assert np.isnan(only.rmse)


def test_speed_is_named_only_among_the_equally_good():
    from gnomon.tools.compare.result import recommend

    y = np.arange(300) % 3
    guesses = {
        ("slow", 2, 9.0): y,
        ("as good", 2, 1.0): wrong(y, [0]),
        ("fast", 2, 0.1): wrong(y, np.arange(100)),
    }
    text = recommend(judge(problem_of(y), *outcomes(problem_of(y), guesses)), "accuracy")
    assert text.startswith("Use slow with 2 components: accuracy")
    assert "As good within 0.02: as good (2), of which as good is the fastest" in text
    assert "It is better than: fast (2)" in text


def test_a_constant_guess_stands_beside_the_leader():
    """Nine of ten rows are of one class, and the leader gets as many right."""
    from gnomon.tools.compare.result import recommend

    y = (np.arange(100) % 10 == 0).astype(int)
    found = judge(problem_of(y), *outcomes(problem_of(y), {("a", 2, 1.0): np.zeros(100, int)}))
    assert_allclose(found.baseline, 0.9)
    assert "not better than guessing" in recommend(found, "accuracy")
