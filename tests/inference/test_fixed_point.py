import numpy as np
import pytest

from gnomon.exceptions import NumericalError
from gnomon.inference.callbacks import History, Progress, TimeLimit, both
from gnomon.inference.fixed_point import Best, Run, best_of, iterate, keep_best


def halve(x):
    return x / 2, -x


def test_it_stops_where_the_objective_settles():
    run = iterate(halve, 1.0, max_iter=100, tol=1e-3)
    assert run.converged
    assert abs(run.objective[-1] - run.objective[-2]) <= 1e-3
    assert abs(run.objective[-2] - run.objective[-3]) > 1e-3


def test_reaching_max_iter_is_not_convergence():
    run = iterate(halve, 1.0, max_iter=3, tol=0)
    assert not run.converged
    assert len(run.objective) == 3
    assert run.state == 0.125


def test_a_value_that_is_not_finite_is_an_error_with_its_iteration():
    with pytest.raises(NumericalError, match="nan at iteration 1"):
        iterate(lambda x: (x, np.nan), 0.0, max_iter=3, tol=0)


def test_a_callback_sees_every_iteration_and_may_stop():
    history = History(keep_states=True)
    run = iterate(halve, 1.0, max_iter=9, tol=0, callback=both(history, lambda n, s, o: n == 4))
    assert len(run.objective) == 4
    assert history.objective == run.objective
    assert history.states == [0.5, 0.25, 0.125, 0.0625]
    assert not run.converged


def test_an_interrupt_keeps_the_last_whole_state():
    def step(x):
        if x >= 3:
            raise KeyboardInterrupt
        return x + 1, float(x)

    run = iterate(step, 0, max_iter=10, tol=0)
    assert run == Run(3, [0.0, 1.0, 2.0], converged=False)


def test_an_interrupt_before_the_first_step_is_raised():
    def step(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        iterate(step, 0, max_iter=10, tol=0)


def test_best_of_takes_the_highest_end():
    low, high = Run("a", [5.0, 1.0], True), Run("b", [0.0, 2.0], True)
    assert best_of([low, high]) is high


def test_a_time_limit_stops():
    clock = iter([0.0, 0.0, 1.0, 2.0]).__next__
    run = iterate(halve, 1.0, max_iter=9, tol=0, callback=TimeLimit(1.5, clock=clock))
    assert len(run.objective) == 3


def test_progress_writes_lines():
    lines = []
    iterate(halve, 1.0, max_iter=4, tol=0, callback=Progress(every=2, write=lines.append))
    assert [line.split(":")[0] for line in lines] == ["iteration 1", "iteration 2", "iteration 4"]


def test_patience_waits_for_the_best_to_rise():
    values = iter([0.0, 1.0, 0.5, 0.6, 2.0, 1.9, 1.8, 1.7, 9.0])
    run = iterate(lambda s: (s + 1, next(values)), 0, max_iter=9, tol=0.1, patience=3)
    assert run.converged
    assert run.objective == [0.0, 1.0, 0.5, 0.6, 2.0, 1.9, 1.8, 1.7]


def test_the_best_state_is_kept():
    values = [1.0, 3.0, 2.0]
    step = keep_best(lambda s: (s + 1, values[s]))
    run = iterate(step, Best(0, 0, -np.inf), max_iter=3, tol=0)
    assert run.state.best == 1
    assert run.state.objective == 3.0
