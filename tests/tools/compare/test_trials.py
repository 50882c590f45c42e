"""Trials: which are begun, which count."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris

import gnomon
from gnomon.tools.compare import trials
from gnomon.tools.compare.scoring import Deadline, read_problem
from gnomon.tools.compare.trials import LATE, Outcome, Settings, ended, pooled, score_candidates


def outcome(model="a", size=2, split=0, **more):
    return Outcome(model, size, split, "real", sums=np.ones((2, 1, 1)), **more)


def splits_of(outcomes):
    return {key: [o.split for o in own] for key, own in ended(outcomes).items()}


def test_models_are_compared_on_the_splits_that_all_have():
    found = [outcome(split=s) for s in range(3)] + [outcome("b", split=s) for s in range(2)]
    assert splits_of(found) == {("a", 2): [0, 1], ("b", 2): [0, 1]}


def test_a_model_with_one_split_does_not_take_those_of_the_others():
    found = [outcome(split=s) for s in range(3)] + [outcome("b")]
    assert splits_of(found) == {("a", 2): [0, 1, 2]}
    assert splits_of([outcome(), outcome("b")]) == {("a", 2): [0], ("b", 2): [0]}


def test_what_failed_is_left_out_and_what_was_late_is_not_failed():
    found = [outcome(split=s) for s in range(3)]
    found += [outcome("b", split=0), outcome("b", split=1, error="ValueError: no")]
    found += [outcome("c", split=0), outcome("c", split=1), outcome("c", split=2, error=LATE)]
    assert splits_of(found) == {("a", 2): [0, 1], ("c", 2): [0, 1]}


def test_rows_of_repeated_folds_are_pooled():
    splits = [(None, np.array([0, 1])), (None, np.array([2, 3])), (None, np.array([1, 0]))]
    found = [outcome(split=s)._replace(sums=np.full((2, 1, 1), s)) for s in range(3)]
    assert pooled(found, splits).ravel().tolist() == [1, 1, 1, 1]


CLOCK, FITS = [0.0], []


class Slow(TransformerMixin, BaseEstimator):
    """Takes so many seconds of a clock for each row; counts its fits."""

    def __init__(self, n_components=1, seconds=1.0):
        self.n_components = n_components
        self.seconds = seconds

    def fit(self, X, y=None):
        CLOCK[0] += self.seconds * len(X)
        FITS.append(len(X))
        self.fitted_ = True
        return self

    def transform(self, X):
        return X[:, : self.n_components]


@pytest.fixture
def slow(monkeypatch):
    CLOCK[0] = 0.0
    FITS.clear()
    monkeypatch.setattr(trials.time, "perf_counter", lambda: CLOCK[0])
    return Slow


def scored(models, seconds):
    X, y = load_iris(return_X_y=True)
    until = Deadline(seconds, clock=lambda: CLOCK[0])
    return score_candidates(read_problem(X, y), models, 2, Settings(until=until, progress=False))


def test_no_trial_is_begun_that_would_not_end_in_time(slow):
    """A fit of 120 rows takes 12 s; after two of them 6 of 30 s are left."""
    done = scored([("slow", slow(seconds=0.1))], 30)
    assert FITS == [120, 120]
    assert CLOCK[0] <= 30
    assert done.stopped == "the time limit of 30 s was reached"


def test_others_go_on_where_one_is_too_slow(slow):
    models = [("quick", slow(seconds=0.01)), ("slow", slow(seconds=0.1))]
    done = scored(models, 20)
    assert done.skipped == {"slow": "too slow for the time limit"}
    assert list(ended(done.outcomes)) == [("quick", 2)]
    assert CLOCK[0] <= 20 * 1.2


def test_the_cost_of_a_large_fit_is_asked_of_a_pilot(slow, monkeypatch):
    monkeypatch.setattr(trials, "PILOT_ROWS", 100)
    done = scored([("slow", slow(seconds=0.1))], 10)
    assert FITS == [30]
    assert done.outcomes == []
    assert done.skipped == {"slow": "too slow for the time limit"}


def test_an_iterative_fit_is_stopped_at_the_deadline_and_does_not_count():
    X, y = load_iris(return_X_y=True)
    ticks = iter(range(10**6))
    until = Deadline(5, clock=lambda: float(next(ticks)))
    settings = Settings(until=until, progress=False)
    done = score_candidates(read_problem(X, y), ["DCAGM"], 2, settings)
    assert {o.error for o in done.outcomes} <= {LATE}
    assert not ended(done.outcomes)
    assert done.stopped


def test_one_split_is_no_test(slow):
    X, y = load_iris(return_X_y=True)
    result = gnomon.compare(
        X, y, models=["PCA", "LDA"], n_components=2, cv=[(None, np.arange(0, 150, 5))]
    )
    assert result.structure is None
    assert "One split: no test" in result.recommendation
    assert "nan" not in str(result)
    assert "p =" not in str(result)
    assert result.snippet()
