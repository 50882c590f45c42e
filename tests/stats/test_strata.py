import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from gnomon.stats.strata import drawn


def test_every_kind_has_the_same_number_and_stands_for_all_of_it(rng):
    kinds = np.repeat([0, 1, 2], [5, 300, 4000])
    own = rng.uniform(0.5, 2.0, len(kinds))
    index, weights = drawn(kinds, 205, own)
    assert_array_equal(np.bincount(kinds[index]), [5, 100, 100])
    assert np.all(np.diff(index) > 0)
    for kind in range(3):
        assert_allclose(weights[kinds[index] == kind].sum(), own[kinds == kind].sum())


def test_rows_that_are_few_are_all_drawn_and_count_once():
    index, weights = drawn(np.array([1, 0, 1]), 10)
    assert_array_equal(index, [0, 1, 2])
    assert_array_equal(weights, 1.0)


def test_a_kind_always_has_a_row():
    index, _ = drawn(np.arange(20), 5)
    assert len(index) == 20
