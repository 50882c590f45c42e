import numpy as np

from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.widths import MOST_JUDGING, POWERS, best_power, judging_rows


def kernel(X):
    """As wide as the rows are apart."""
    D = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    return np.exp(-D / D.mean())


def outputs(labels):
    Y = (1.0 - 2 * labels)[:, None]
    return Outputs(Y, np.ones(Y.shape, dtype=bool), labels)


def test_classes_that_differ_in_little_variance_have_a_wide_kernel(rng):
    labels = np.arange(60) % 2
    X = np.column_stack([5 * rng.standard_normal((60, 8)), 0.2 * rng.standard_normal((60, 20))])
    X[:, 8:] += 0.3 * labels[:, None]
    assert best_power(kernel(X), outputs(labels), np.ones(60)) < 0.2


def test_the_usual_width_stays_where_no_other_is_clearly_better(rng):
    labels = np.arange(60) % 2
    X = rng.standard_normal((60, 2)) + 3.0 * labels[:, None]
    assert best_power(kernel(X), outputs(labels), np.ones(60)) == POWERS[0] == 1
    for seed in range(20):
        random = np.random.default_rng(seed).permutation(labels)
        assert best_power(kernel(X), outputs(random), np.ones(60)) == 1


def test_rows_judge_where_two_classes_have_two():
    assert judging_rows(np.array([-1, 0, 0, 1, 1])).tolist() == [1, 2, 3, 4]
    assert not len(judging_rows(np.array([-1, 0, 0, 1])))
    assert not len(judging_rows(np.array([-1, -1])))
    many = judging_rows(np.arange(5 * MOST_JUDGING) % 2)
    assert MOST_JUDGING // 2 <= len(many) <= MOST_JUDGING
