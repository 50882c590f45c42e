import re
import warnings
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from gnomon.estimators._fit import IterativeFit
from gnomon.inference.callbacks import Checkpoint, History
from gnomon.inference.loop import Method, keep_best, momentum


class State(NamedTuple):
    """A point on its way to a target, and how often it has moved."""

    x: np.ndarray
    n_steps: int


class Model(IterativeFit, BaseEstimator):
    """Walks to its data; ``faster`` wraps the steps so that the loop carries a memory."""

    def __init__(self, shrink=0.9, faster=False, max_iter=20, tol=0.0, callback=None):
        self.shrink = shrink
        self.faster = faster
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback

    def fit(self, X):
        X = np.asarray(X, dtype=float)

        def step(state):
            new = State(X + self.shrink * (state.x - X), state.n_steps + 1)
            return new, -float(np.sum((state.x - X) ** 2))

        method = Method(State(0.1 * X, 0), step)
        if self.faster:
            method = keep_best(momentum(method, extrapolate))
        run = self._iterate(method, max_iter=self.max_iter, tol=self.tol)
        self.state_ = run.state
        self._keep_run(run, max_iter=self.max_iter)
        return self


def extrapolate(after, before, factor):
    return State(after.x + factor * (after.x - before.x), after.n_steps)


X = np.array([1.0, -2.0, 0.7])


def fitted(**settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Model(**settings).fit(X)


# What a fit keeps


def test_a_fit_keeps_its_trace():
    model = fitted(tol=1e-8, max_iter=200)
    assert model.converged_
    assert model.n_iter_ == len(model.objective_) == model.state_.n_steps
    assert np.all(np.diff(model.objective_) > 0)
    np.testing.assert_allclose(model.state_.x, X, atol=1e-3)


def test_a_fit_that_stops_early_says_so_once_with_its_numbers():
    with pytest.warns(ConvergenceWarning) as seen:
        model = Model(max_iter=3).fit(X)
    (warning,) = seen
    expected = (
        "Model stopped after 3 iterations without having converged; raise max_iter == 3 or tol"
    )
    assert str(warning.message) == expected
    assert warning.filename == __file__
    assert not model.converged_ and model.n_iter_ == 3


def test_a_fit_that_converged_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Model(tol=1e-3, max_iter=100).fit(X)


# Callbacks


@pytest.mark.parametrize("faster", [False, True])
def test_callbacks_see_the_state_of_the_model(faster):
    history = History(keep_states=True)
    model = fitted(faster=faster, max_iter=6, callback=history)
    assert all(type(state) is State for state in history.states)
    assert_array_equal(history.states[-1].x, model.state_.x)
    assert history.objective == model.objective_
    assert len(history.objective) == model.n_iter_ == 6


def test_a_callback_that_returns_true_stops_the_fit():
    with pytest.warns(ConvergenceWarning, match="after 4 iterations"):
        model = Model(callback=lambda n_iter, state, objective: n_iter == 4).fit(X)
    assert model.n_iter_ == 4 and not model.converged_


def test_a_callback_does_not_change_the_fit():
    assert_array_equal(fitted(callback=History()).state_.x, fitted().state_.x)


def test_what_cannot_be_called_is_refused():
    message = "callback == 'print'; accepted are None and a function of (n_iter, state, objective)"
    with pytest.raises(TypeError, match=re.escape(message)):
        Model(callback="print").fit(X)


def test_callbacks_of_scikit_learn_see_every_iteration(iteration_count):
    model = Model(max_iter=5).set_callbacks(iteration_count)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert iteration_count.seen == model.n_iter_ == 5


# Checkpoints


class KilledError(Exception):
    """The end of a process, in a test."""


class KilledAt(Checkpoint):
    """A checkpoint of a fit that does not live on after an iteration."""

    def __init__(self, path, last):
        super().__init__(path, every=2)
        self.last = last

    def __call__(self, n_iter, state, objective):
        super().__call__(n_iter, state, objective)
        if n_iter == self.last:
            raise KilledError


class Watched(Checkpoint):
    """A checkpoint that tells another callback of the iterations that are computed."""

    def __init__(self, path, watcher):
        super().__init__(path, every=2)
        self.watcher = watcher

    def __call__(self, n_iter, state, objective):
        super().__call__(n_iter, state, objective)
        self.watcher(n_iter, state, objective)


@pytest.mark.parametrize("faster", [False, True])
@pytest.mark.parametrize("last", [1, 2, 5])
def test_a_killed_fit_goes_on_to_the_same_bits(tmp_path, faster, last):
    path = tmp_path / "fit.npz"
    whole = fitted(faster=faster)
    with pytest.raises(KilledError):
        fitted(faster=faster, callback=KilledAt(path, last))
    assert path.exists() == (last >= 2)
    rest = History()
    model = fitted(faster=faster, callback=Watched(path, rest))
    assert_array_equal(model.state_.x, whole.state_.x)
    assert model.state_.n_steps == whole.state_.n_steps
    assert model.objective_ == whole.objective_
    assert model.n_iter_ == whole.n_iter_
    assert len(rest.objective) == whole.n_iter_ - (last - last % 2)


def test_a_checkpoint_that_is_complete_leaves_nothing_to_compute(tmp_path):
    path, rest = tmp_path / "fit.npz", History()
    first = fitted(max_iter=6, callback=Checkpoint(path, every=2))
    again = fitted(max_iter=6, callback=Watched(path, rest))
    assert rest.objective == []
    assert_array_equal(again.state_.x, first.state_.x)
    assert again.n_iter_ == 6


@pytest.mark.parametrize("settings", [{"shrink": 0.4}, {"max_iter": 50}, {"tol": 1e-3}])
def test_a_checkpoint_of_other_parameters_is_refused(tmp_path, settings):
    path = tmp_path / "fit.npz"
    fitted(callback=Checkpoint(path))
    with pytest.raises(ValueError, match="belongs to other data, parameters"):
        fitted(**settings, callback=Checkpoint(path))


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    path = tmp_path / "fit.npz"
    fitted(callback=Checkpoint(path))
    with pytest.raises(ValueError, match="belongs to other data, parameters"):
        Model(callback=Checkpoint(path)).fit(X + 1e-9)


def test_the_fingerprint_knows_the_class_the_parameters_and_the_start():
    start = State(X, 0)
    plain = Model()._fingerprint(start)
    assert Model(callback=print)._fingerprint(start) == plain
    others = [
        Model(shrink=0.4)._fingerprint(start),
        Model(faster=True)._fingerprint(start),
        Model()._fingerprint(State(X + 1e-12, 0)),
        type("Other", (Model,), {})()._fingerprint(start),
    ]
    assert len({plain, *others}) == 5
