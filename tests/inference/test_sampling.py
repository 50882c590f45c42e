from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gnomon.inference.sampling import Schedule, bulk_ess, draw_chains, split_rhat, tail_ess


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


def count(state, rng):
    return state + 1


def test_warm_up_is_dropped(rng):
    assert_array_equal(draw_chains(count, np.zeros(1), rng, Schedule(3, 4)), [[5, 6, 7]])


def test_what_is_kept_can_be_a_named_tuple(rng):
    def keep(state):
        return Pair(state, np.tile(state[:, None], 3))

    kept = draw_chains(count, np.array([0, 10]), rng, Schedule(2), keep=keep)
    assert kept.b.shape == (2, 2, 3)
    assert_array_equal(kept.a, [[1, 2], [11, 12]])


def test_draws_are_repeatable():
    def walk(state, rng):
        return state + rng.standard_normal(2)

    x = draw_chains(walk, np.zeros(2), np.random.default_rng(1), Schedule(5))
    assert x.shape == (2, 5)
    again = draw_chains(walk, np.zeros(2), np.random.default_rng(1), Schedule(5))
    assert_array_equal(again, x)


def test_callback_stops_all_chains_alike(rng):
    def stop(n_iter, state):
        return n_iter >= 7

    chains = np.array([0, 5])
    assert draw_chains(count, chains, rng, Schedule(50), callback=stop).shape == (2, 7)


def test_a_stop_waits_for_the_least_draws(rng):
    schedule = Schedule(50, 10, least=4)
    x = draw_chains(count, np.array([0, 5]), rng, schedule, callback=lambda n_iter, state: True)
    assert_array_equal(x, [[11, 12, 13, 14], [16, 17, 18, 19]])


def autoregression(rng, rho, chains=4, n=4000):
    x = np.zeros((chains, n))
    noise = rng.standard_normal((chains, n)) * np.sqrt(1 - rho**2)
    x[:, 0] = rng.standard_normal(chains)
    for i in range(1, n):
        x[:, i] = rho * x[:, i - 1] + noise[:, i]
    return x


def test_independent_draws_count_in_full(rng):
    x = rng.standard_normal((4, 1000, 2))
    assert np.all(split_rhat(x) < 1.01)
    assert_allclose(bulk_ess(x), 4000, rtol=0.25)
    assert_allclose(tail_ess(x), 4000, rtol=0.3)


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_correlated_draws_count_less(rho, rng):
    x = autoregression(rng, rho, n=16_000)
    assert_allclose(bulk_ess(x), 64_000 * (1 - rho) / (1 + rho), rtol=0.2)


def test_chains_apart_are_seen(rng):
    x = rng.standard_normal((4, 500)) + 2 * np.arange(4)[:, None]
    assert split_rhat(x) > 1.5


def test_chains_of_other_width_are_seen(rng):
    x = rng.standard_normal((4, 500)) * np.array([1, 1, 1, 5])[:, None]
    assert split_rhat(x) > 1.05


def test_drift_within_a_chain_is_seen(rng):
    x = rng.standard_normal((2, 500)) + np.linspace(0, 3, 500)
    assert split_rhat(x) > 1.2


def test_constant_draws_are_finite():
    x = np.ones((2, 50))
    assert split_rhat(x) == 1.0
    assert bulk_ess(x) == 100


@pytest.mark.slow
def test_agrees_with_arviz(rng):
    arviz = pytest.importorskip("arviz")
    x = autoregression(rng, 0.7, n=501)
    assert_allclose(split_rhat(x), float(arviz.rhat(x)), rtol=1e-6)
    assert_allclose(bulk_ess(x), float(arviz.ess(x)), rtol=0.02)
    assert_allclose(tail_ess(x), float(arviz.ess(x, method="tail")), rtol=0.1)


def test_a_tail_that_is_visited_once_has_hardly_any_draws(rng):
    """All values of one tail in a row, those between as independent as before."""
    x = rng.standard_normal((4, 1000))
    x = np.array([np.r_[chain[chain < 1.5], chain[chain >= 1.5]] for chain in x])
    assert tail_ess(x) < 100
    assert_allclose(tail_ess(-x), tail_ess(x), rtol=0.05)
