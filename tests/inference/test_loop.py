from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.datasets import make_subspace, remove_entries
from gnomon.exceptions import NumericalError
from gnomon.inference.callbacks import History, Progress, TimeLimit, both
from gnomon.inference.loop import (
    Method,
    Run,
    anderson,
    best_of,
    cautious,
    iterate,
    keep_best,
    squarem,
)
from gnomon.models.gaussian import gaps, patterns


def halve(x):
    return x / 2, -x


def test_it_stops_where_the_objective_settles():
    run = iterate(Method(1.0, halve), max_iter=100, tol=1e-3)
    assert run.converged
    assert abs(run.objective[-1] - run.objective[-2]) <= 1e-3
    assert abs(run.objective[-2] - run.objective[-3]) > 1e-3


def test_reaching_max_iter_is_not_convergence():
    run = iterate(Method(1.0, halve), max_iter=3, tol=0)
    assert not run.converged
    assert len(run.objective) == 3
    assert run.state == 0.125


def test_a_value_that_is_not_finite_is_an_error_with_its_iteration():
    with pytest.raises(NumericalError, match="nan at iteration 1"):
        iterate(Method(0.0, lambda x: (x, np.nan)), max_iter=3, tol=0)


def test_a_callback_sees_every_iteration_and_may_stop():
    history = History(keep_states=True)
    run = iterate(
        Method(1.0, halve), max_iter=9, tol=0, callback=both(history, lambda n, s, o: n == 4)
    )
    assert len(run.objective) == 4
    assert history.objective == run.objective
    assert history.states == [0.5, 0.25, 0.125, 0.0625]
    assert not run.converged


@pytest.mark.parametrize("when", [0, 3])
def test_an_interrupt_leaves_the_loop(when):
    def step(x):
        if x >= when:
            raise KeyboardInterrupt
        return x + 1, float(x)

    with pytest.raises(KeyboardInterrupt):
        iterate(Method(0, step), max_iter=10, tol=0)


def test_best_of_takes_the_highest_end():
    low, high = Run("a", [5.0, 1.0], True), Run("b", [0.0, 2.0], True)
    assert best_of([low, high]) is high


def test_a_time_limit_stops():
    clock = iter([0.0, 0.0, 1.0, 2.0]).__next__
    run = iterate(Method(1.0, halve), max_iter=9, tol=0, callback=TimeLimit(1.5, clock=clock))
    assert len(run.objective) == 3


def test_progress_writes_lines():
    lines = []
    iterate(Method(1.0, halve), max_iter=4, tol=0, callback=Progress(every=2, write=lines.append))
    assert [line.split(":")[0] for line in lines] == ["iteration 1", "iteration 2", "iteration 4"]


def test_patience_waits_for_the_best_to_rise():
    values = iter([0.0, 1.0, 0.5, 0.6, 2.0, 1.9, 1.8, 1.7, 9.0])
    run = iterate(Method(0, lambda s: (s + 1, next(values))), max_iter=9, tol=0.1, patience=3)
    assert run.converged
    assert run.objective == [0.0, 1.0, 0.5, 0.6, 2.0, 1.9, 1.8, 1.7]


def test_the_best_state_is_kept():
    values = [1.0, 3.0, 2.0]
    run = iterate(keep_best(Method(0, lambda s: (s + 1, values[s]))), max_iter=3, tol=0)
    assert run.state == 1


def test_a_run_can_be_gone_on_with():
    whole = iterate(Method(1.0, halve), max_iter=9, tol=0)
    part = iterate(Method(1.0, halve), max_iter=4, tol=0)
    rest = iterate(part.rest, max_iter=9, tol=0, objective=part.objective)
    assert rest[:3] == whole[:3]


def test_a_method_may_know_itself_that_it_has_settled():
    method = Method(1.0, halve, settled=lambda x: x < 0.2)
    run = iterate(method, max_iter=9, tol=0)
    assert run.converged
    assert run.objective == [-1.0, -0.5, -0.25]


@pytest.mark.parametrize("wrap", [keep_best, lambda m: anderson(m, np.atleast_1d, lambda x: x[0])])
def test_callbacks_see_the_state_of_the_model_and_checkpoints_that_of_the_method(wrap):
    seen, kept = History(keep_states=True), History(keep_states=True)
    method = wrap(Method(1.0, halve))
    iterate(method, max_iter=4, tol=0, callback=seen, checkpoint=kept)
    assert all(isinstance(state, float) for state in seen.states)
    assert all(isinstance(state, type(method.start)) for state in kept.states)


@pytest.fixture
def problem():
    X = remove_entries(make_subspace(60, 8, 2, noise_variance=2.0).X, 0.3)
    data = patterns.group_rows(X, np.zeros(8, dtype=int))
    start = gaps.init(data, 3)
    step = partial(gaps.step, data=data)
    unit = np.ones(8)
    pack = partial(gaps.pack, unit=unit)
    return Method(start, step), pack, partial(gaps.unpack, like=start, unit=unit)


def test_both_reach_the_plain_maximum_in_fewer_steps_without_descending(problem):
    method, pack, unpack = problem
    plain = iterate(method, max_iter=5000, tol=1e-10)
    leaping = iterate(squarem(method, pack, unpack), max_iter=500, tol=1e-10)
    mixing = iterate(anderson(method, pack, unpack), max_iter=500, tol=1e-10)
    for run, cost in ((leaping, 3), (mixing, 1)):
        assert run.converged
        assert_allclose(run.objective[-1], plain.objective[-1], atol=1e-6)
        assert np.diff(run.objective).min() >= -1e-10 * abs(run.objective[-1])
        # Half as many or fewer in most samples; where plain steps are few, little is to be won.
        assert cost * len(run.objective) < len(plain.objective)


def contraction(A, b):
    """A linear fixed point whose objective is minus the squared distance from it."""
    solution = np.linalg.solve(np.eye(len(b)) - A, b)
    return lambda x: (A @ x + b, -float(np.sum((x - solution) ** 2))), solution


def test_anderson_solves_a_linear_fixed_point_in_its_dimension(rng):
    A = rng.normal(size=(4, 4))
    A = 0.99 * A @ A.T / np.linalg.norm(A @ A.T, 2)
    step, solution = contraction(A, rng.normal(size=4))
    method = anderson(Method(np.zeros(4), step), lambda x: x, lambda x: x)
    run = iterate(method, max_iter=12, tol=0)
    assert_allclose(run.state, solution, rtol=1e-6)


@pytest.mark.parametrize("name", ["squarem", "anderson"])
@pytest.mark.parametrize("error", [NumericalError, np.linalg.LinAlgError])
def test_a_leap_that_leaves_the_domain_is_dropped(name, error):
    def step(x):
        if x[0] > 1:
            raise error("outside")
        return x + 0.1 * (1 - x), float(x[0])

    plain = Method(np.zeros(1), step)
    if name == "squarem":
        method = squarem(plain, lambda x: x, lambda x: x)
    else:
        method = anderson(plain, lambda x: x, lambda x: 3 * x)
    run = iterate(method, max_iter=300, tol=1e-12)
    assert np.diff(run.objective).min() >= 0
    assert 0.9 < run.state[0] <= 1


@pytest.mark.parametrize("name", ["squarem", "anderson"])
def test_a_leap_out_of_the_range_of_numbers_is_silent(name):
    def step(x):
        return x + 0.1 * (1 - x), float(x[0])

    def overflowing(x):
        return x * np.exp(1e4 * x) / np.exp(1e4 * x)

    accelerate = squarem if name == "squarem" else anderson
    method = accelerate(Method(np.zeros(1), step), np.copy, overflowing)
    run = iterate(method, max_iter=9, tol=0)
    assert 0 < run.state[0] < 1


def test_a_path_without_curvature_is_not_extrapolated():
    """A curvature of 1e-8 beside a state of 1e8 is rounding, and a leap would be millions long."""

    def step(x):
        return np.array([x[0] + 1 / 3, x[1] * (1 + 1e-4)]), float(x[0])

    method = squarem(Method(np.array([1e8, 1.0]), step), np.copy, np.copy)
    after, _ = method.step(method.start)
    assert_allclose(after[0], 1e8 + 2 / 3, rtol=1e-12)


def test_a_bold_step_that_lost_is_taken_again_with_caution():
    """Newton's steps of -sqrt(1 + x^2) overshoot from afar; with a caution of one they do not."""
    seen = []

    def bold(x, caution):
        seen.append(caution)
        curvature = (1 - caution) / (1 + x * x) ** 1.5 + caution
        return x - x / np.sqrt(1 + x * x) / curvature, -np.sqrt(1 + x * x)

    run = iterate(cautious(3.0, bold), max_iter=30, tol=1e-14)
    assert_allclose(run.state, 0.0, atol=1e-6)
    assert np.all(np.diff(run.objective) >= 0)
    assert max(seen) > seen[0]
    assert min(seen) < seen[0]
