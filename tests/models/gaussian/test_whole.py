from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.datasets import make_subspace, remove_entries
from gnomon.inference.loop import Method, iterate
from gnomon.models.gaussian import gaps, patterns, whole

q = 3


@pytest.fixture
def data():
    X = make_subspace(150, 8, q).X
    return patterns.inputs(remove_entries(X, 0.3))


def test_plain_steps_never_lose(data):
    method = Method(whole.gaps_at_means(data), partial(whole.step, data=data, q=q))
    run = iterate(method, max_iter=60, tol=0)
    assert np.all(np.diff(run.objective) > -1e-9)


def test_the_maximum_is_that_of_the_observed_entries(data):
    limits = {"max_iter": 2000, "tol": 1e-12}
    state, _ = whole.fit_state(data, q, **limits)
    expected = gaps.maximise(data, q, iterate, **limits).state
    assert_allclose(gaps.log_density(state, data).sum(), gaps.log_density(expected, data).sum())
    assert_allclose(state.W @ state.W.T, expected.W @ expected.W.T, atol=1e-4)
    assert_allclose(state.noise, expected.noise, rtol=1e-4)


def test_of_complete_rows_the_first_step_is_the_end(rng):
    data = patterns.inputs(rng.normal(size=(60, 5)) * np.arange(1, 6))
    start = whole.gaps_at_means(data)
    rows, objective = whole.step(start, data, 2)
    assert_allclose(rows.covariance, start.covariance)
    best = gaps.log_density(whole.closed_form(rows, data, 2), data).sum()
    assert_allclose(objective, best)


def test_many_columns_go_the_other_way(data, monkeypatch):
    monkeypatch.setattr(whole, "MOST_COLUMNS", 3)
    limits = {"max_iter": 50, "tol": 1e-6}
    expected = gaps.maximise(data, q, iterate, **limits).state
    state, rows = whole.fit_state(data, q, **limits)
    assert rows is None
    for a, b in zip(state, expected, strict=True):
        assert_allclose(a, b)


def test_rows_completed_for_another_size_start_near_the_same_end(data, monkeypatch):
    limits = {"max_iter": 500, "tol": 1e-10}
    state, _ = whole.fit_state(data, q, **limits)
    _, rows = whole.fit_state(data, q + 1, **limits)
    steps, step = [], whole.step
    monkeypatch.setattr(whole, "step", lambda *args, **kw: steps.append(0) or step(*args, **kw))
    again, _ = whole.fit_state(data, q, rows, **limits)
    n_warm = len(steps)
    whole.fit_state(data, q, **limits)
    assert n_warm < len(steps) - n_warm
    assert_allclose(again.W @ again.W.T, state.W @ state.W.T, atol=1e-3)
    assert_allclose(again.noise, state.noise, rtol=1e-3)
