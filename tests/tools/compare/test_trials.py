import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import ttest_1samp

from gnomon.tools.compare.scoring import read_problem
from gnomon.tools.compare.trials import holm, paired_test, smallest_good, structure_test


def test_without_shared_rows_the_test_is_students(rng):
    differences = rng.standard_normal(8) + 0.5
    assert_allclose(paired_test(differences, 0)[1], ttest_1samp(differences, 0).pvalue)


def test_shared_training_rows_make_the_test_more_cautious(rng):
    differences = rng.standard_normal(8) + 1
    assert paired_test(differences, 0.25)[1] > paired_test(differences, 0)[1]
    ratio = paired_test(differences, 0.25)[0] / paired_test(differences, 0)[0]
    assert_allclose(ratio, np.sqrt((1 / 8 + 0.25) * 8))


def test_equal_scores_are_never_told_apart():
    assert paired_test([0.0, 0.0, 0.0], 0.25)[1] == 1
    assert paired_test([0.3], 0.25)[1] == 1


def test_differences_without_spread_count_by_their_sign():
    assert paired_test([0.1] * 5, 0.25)[1] == 2.0**-4


def test_holm_on_a_worked_example():
    assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


def test_the_smallest_size_within_an_error_is_chosen():
    scores = np.array([[0.5, 0.5, 0.5, 0.5], [0.9, 0.8, 0.9, 0.8], [0.9, 0.82, 0.89, 0.81]])
    assert smallest_good([1, 2, 5], scores, 0.25) == 2


def test_a_clearly_better_large_size_is_chosen():
    scores = np.array([[0.5, 0.5, 0.5, 0.5], [0.9, 0.8, 0.9, 0.8]])
    assert smallest_good([1, 2], scores, 0.25) == 2


def problem_of(y):
    X = np.zeros((len(y), 2))
    return read_problem(X, y, target="auto", links=None, chunks=None, transductive=False)


def test_perfect_predictions_are_structure_and_constant_ones_are_not(rng):
    problem = problem_of(np.repeat([0, 1], 20))
    test = np.arange(40)
    assert structure_test(problem, [[(test, problem.y)]], rng) < 0.01
    assert structure_test(problem, [[(test, np.zeros(40, int))]], rng) == 1


def test_the_best_of_many_random_guesses_is_no_structure(rng):
    problem = problem_of(np.repeat([0, 1], 20))
    guesses = [[(np.arange(40), rng.integers(2, size=40))] for _ in range(60)]
    assert structure_test(problem, guesses, rng) > 0.05
