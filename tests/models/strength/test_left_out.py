import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.left_out import clearly_best, left_out_losses


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
