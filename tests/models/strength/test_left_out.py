import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.left_out import (
    MOST_JUDGING,
    POWERS,
    best_power,
    clearly_best,
    finds_classes,
    judging_rows,
    left_out_losses,
    second_is_better,
)


@pytest.fixture
def rows(rng):
    """Coordinates that tell two classes apart, noise, and the classes as outputs."""
    labels = np.arange(60) % 2
    Y = (1.0 - 2 * labels)[:, None]
    apart = Y + 0.3 * rng.standard_normal((60, 3))
    return apart, rng.standard_normal((60, 3)), Outputs(Y, np.ones((60, 1), dtype=bool), labels)


def test_a_view_that_finds_rows_left_out_is_taken_and_noise_is_not(rows, rng):
    apart, noise, known = rows
    ones = np.ones(60)
    assert clearly_best([noise, apart], known, ones) == 1
    assert clearly_best([apart, noise], known, ones) == 0
    others = [rng.standard_normal((60, 3)) for _ in range(3)]
    assert clearly_best([noise, *others], known, ones) == 0


def test_a_view_must_gain_a_share_of_the_loss_beyond_its_standard_errors(rows):
    apart, noise, known = rows
    ones = np.ones(60)
    losses = [left_out_losses(F, known, ones) for F in (noise, apart)]
    gains = losses[0] - losses[1]
    share = (gains.mean() - 2 * gains.std() / np.sqrt(59)) / losses[0].mean()
    assert 0.1 < share < 1
    assert clearly_best([noise, apart], known, ones, share - 1e-6) == 1
    assert clearly_best([noise, apart], known, ones, share + 1e-6) == 0


def test_a_second_view_is_asked_for_only_where_the_first_leaves_something_to_find(rows):
    apart, noise, known = rows
    ones = np.ones(60)
    assert second_is_better(iter([noise, apart]), known, ones)
    assert not second_is_better(iter([apart, noise]), known, ones)

    def views():
        yield 1e3 * known.Y + 1e-6 * noise
        raise AssertionError("nothing is left to find")

    assert not second_is_better(views(), known, ones)


def test_losses_are_those_of_chance_where_nothing_is_seen(rows):
    apart, _, known = rows
    ones = np.ones(60)
    assert left_out_losses(apart, known, ones).mean() < 0.1
    assert_allclose(left_out_losses(np.zeros((60, 1)), known, ones), np.log(2), rtol=0.1)


def test_weights_count_as_repeated_rows(rows):
    apart, noise, known = rows
    weak = noise + 0.55 * apart
    weights = np.where(np.arange(60) < 30, 3.0, 1.0)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    once = [left_out_losses(F, known, weights)[repeated] for F in (weak, apart)]
    ones = np.ones(len(repeated))
    again = [left_out_losses(F[repeated], known.rows(repeated), ones) for F in (weak, apart)]
    assert_allclose(once, again, atol=1e-8)


def test_numbers_are_judged_by_their_squared_errors(rows):
    apart, noise, known = rows
    numbers = Outputs(known.Y + 0.1 * noise[:, :1], known.observed)
    assert clearly_best([noise[:, 1:], apart], numbers, np.ones(60)) == 1
    errors = left_out_losses(apart, numbers, np.ones(60))
    assert errors.mean() < 0.3


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
    X = rng.standard_normal((60, 2)) + 8.0 * labels[:, None]
    assert best_power(kernel(X), outputs(labels), np.ones(60)) == POWERS[0] == 1
    # Of labels without meaning another one seems clearly better by chance, but seldom.
    random = [rng.permutation(labels) for _ in range(20)]
    powers = [best_power(kernel(X), outputs(one), np.ones(60)) for one in random]
    assert np.mean(np.equal(powers, 1)) >= 0.9


def test_rows_judge_where_two_classes_have_two():
    assert judging_rows(np.array([-1, 0, 0, 1, 1])).tolist() == [1, 2, 3, 4]
    assert not len(judging_rows(np.array([-1, 0, 0, 1])))
    assert not len(judging_rows(np.array([-1, -1])))
    many = judging_rows(np.arange(5 * MOST_JUDGING) % 2)
    assert MOST_JUDGING // 2 <= len(many) <= MOST_JUDGING


def test_classes_are_found_by_lines_or_by_nearness_and_random_ones_seldom(rng):
    labels, ones = np.arange(60) % 2, np.ones(60)
    X = rng.standard_normal((60, 5)) + 3.0 * labels[:, None]
    assert finds_classes(X @ X.T, outputs(labels), ones)
    angle = rng.uniform(0, 2 * np.pi, 60)
    rings = (1 + 2 * labels)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    assert finds_classes(rings @ rings.T, outputs(labels), ones)
    found = [finds_classes(X @ X.T, outputs(rng.permutation(labels)), ones) for _ in range(20)]
    assert np.mean(found) < 0.5
