from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.datasets import make_subspace, remove_entries
from gnomon.exceptions import NumericalError
from gnomon.inference.acceleration import anderson, remember, squarem
from gnomon.inference.fixed_point import iterate
from gnomon.models import incomplete


@pytest.fixture
def problem():
    X = remove_entries(make_subspace(60, 8, 2, noise_variance=2.0).X, 0.3)
    data = incomplete.group_rows(X, np.zeros(8, dtype=int))
    start = incomplete.init(data, 3)
    return partial(incomplete.step, data=data), start, partial(incomplete.unpack, like=start)


def test_both_reach_the_plain_maximum_in_fewer_steps_without_descending(problem):
    step, start, unpack = problem
    plain = iterate(step, start, max_iter=5000, tol=1e-10)
    leaping = iterate(squarem(step, incomplete.pack, unpack), start, max_iter=500, tol=1e-10)
    mixing = iterate(
        anderson(step, incomplete.pack, unpack), remember(start), max_iter=500, tol=1e-10
    )
    for run, cost in ((leaping, 3), (mixing, 1)):
        assert run.converged
        assert_allclose(run.objective[-1], plain.objective[-1], atol=1e-6)
        assert np.diff(run.objective).min() >= -1e-10 * abs(run.objective[-1])
        assert cost * len(run.objective) < len(plain.objective) / 2


def contraction(A, b):
    """A linear fixed point whose objective is minus the squared distance from it."""
    solution = np.linalg.solve(np.eye(len(b)) - A, b)
    return lambda x: (A @ x + b, -float(np.sum((x - solution) ** 2))), solution


def test_anderson_solves_a_linear_fixed_point_in_its_dimension(rng):
    A = rng.normal(size=(4, 4))
    A = 0.99 * A @ A.T / np.linalg.norm(A @ A.T, 2)
    step, solution = contraction(A, rng.normal(size=4))
    run = iterate(
        anderson(step, lambda x: x, lambda x: x), remember(np.zeros(4)), max_iter=12, tol=0
    )
    assert_allclose(run.state.plain, solution, rtol=1e-6)


@pytest.mark.parametrize("name", ["squarem", "anderson"])
def test_a_leap_that_leaves_the_domain_is_dropped(name):
    def step(x):
        if x[0] > 1:
            raise NumericalError("outside")
        return x + 0.1 * (1 - x), float(x[0])

    identity = lambda x: x  # noqa: E731
    if name == "squarem":
        run = iterate(squarem(step, identity, identity), np.zeros(1), max_iter=60, tol=1e-12)
        end = run.state
    else:
        wrapped = anderson(step, identity, lambda x: 3 * x)
        run = iterate(wrapped, remember(np.zeros(1)), max_iter=300, tol=1e-12)
        end = run.state.plain
    assert np.diff(run.objective).min() >= 0
    assert 0.9 < end[0] <= 1


@pytest.mark.parametrize("name", ["squarem", "anderson"])
def test_a_leap_out_of_the_range_of_numbers_is_silent(name):
    def step(x):
        return x + 0.1 * (1 - x), float(x[0])

    def overflowing(x):
        return x * np.exp(1e4 * x) / np.exp(1e4 * x)

    if name == "squarem":
        iterate(squarem(step, np.copy, overflowing), np.zeros(1), max_iter=9, tol=0)
    else:
        iterate(anderson(step, np.copy, overflowing), remember(np.zeros(1)), max_iter=9, tol=0)
