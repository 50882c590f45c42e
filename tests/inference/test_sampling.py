from typing import NamedTuple

import numpy as np
from numpy.testing import assert_array_equal

from gnomon.inference.sampling import Schedule, draw, draw_chains


class Pair(NamedTuple):
    a: float
    b: np.ndarray


def count(state, rng):
    return state + 1


def test_warm_up_is_dropped_and_the_rest_thinned(rng):
    assert_array_equal(draw(count, 0, rng, Schedule(3, 4, 2)), [6, 8, 10])


def test_what_is_kept_can_be_a_named_tuple(rng):
    kept = draw(count, 0, rng, Schedule(2), keep=lambda s: Pair(s, np.full(3, s)))
    assert kept.b.shape == (2, 3)
    assert_array_equal(kept.a, [1, 2])


def test_chains_have_streams_of_their_own():
    def walk(state, rng):
        return state + rng.standard_normal()

    x = draw_chains(walk, [0.0, 0.0], np.random.default_rng(1), Schedule(5))
    assert x.shape == (2, 5)
    assert not np.any(x[0] == x[1])
    again = draw_chains(walk, [0.0, 0.0], np.random.default_rng(1), Schedule(5))
    assert_array_equal(again, x)


def test_callback_stops_all_chains_alike(rng):
    def stop(n_iter, states):
        return n_iter >= 7

    assert draw(count, 0, rng, Schedule(50), callback=stop).shape == (7,)
    assert draw_chains(count, [0, 5], rng, Schedule(50), callback=stop).shape == (2, 7)


def test_a_stop_waits_for_the_least_draws(rng):
    x = draw_chains(
        count, [0, 5], rng, Schedule(50, 10), callback=lambda n_iter, states: True, least=4
    )
    assert_array_equal(x, [[11, 12, 13, 14], [16, 17, 18, 19]])
