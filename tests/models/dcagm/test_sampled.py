from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gnomon.inference.loop import Method, iterate
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Matrix
from gnomon.models.dcagm import alternation, fit, sampled
from gnomon.models.dcagm.alternation import Model, em_moments, objective, state_at
from gnomon.models.dcagm.rows import Sample, arrange
from gnomon.models.dcagm.start import start, start_at

MODEL = Model(2, chunk_weight=0.1, unlabelled_weight=0.01, em_weight=0.3, ridge=3.0)


@pytest.fixture
def sample(rng):
    """Two clusters per class in three of eight directions; a fifth labelled, rows have weights."""
    return planted(rng, 3 * rng.standard_normal((2, 3, 3)))


def hexagon(radius):
    """Centres (2, 3, 2) in a plane, those of a class opposite each other."""
    turns = np.pi * (np.arange(3) / 3 + np.arange(2)[:, None])
    return radius * np.stack([np.cos(turns), np.sin(turns)], axis=2)


def planted(rng, centres):
    """Rows around the centres (2, 3, k) of two clusters of each of three classes."""
    n = 3000
    y = rng.integers(3, size=n)
    X = rng.standard_normal((n, 8))
    X[:, : centres.shape[2]] += centres[rng.integers(2, size=n), y]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = np.where(np.arange(n) < n // 5, y, -1)
    weights = rng.uniform(0.5, 2.0, n)
    return Sample(Matrix(X), labels, np.full(n, -1), weights, np.repeat([0, 1, 2], 2), 8.0)


def test_sums_of_blocks_are_those_of_all_rows_at_once(sample, rng):
    rows = arrange(sample)
    state = start(sample, rows, MODEL)
    slope = objective(state.P, state.Z, state.mixture, rows, MODEL)
    moments, _ = em_moments(state.mixture, state.Z, rows, MODEL)
    cut = [Matrix(part) for part in np.split(sample.X.X, [1, 8, 8, 1500])]
    blocks = sample._replace(X=Blocks(cut))
    found = sampled.sums_of_all(blocks, sampled.covariance(blocks), state, MODEL)
    assert_allclose(found.value, slope.value, rtol=1e-10)
    assert_allclose(found.gradient, rows.by_columns(slope.by_Z) + slope.by_P, atol=1e-7)
    for ours, theirs in zip(found.moments, moments, strict=True):
        assert_allclose(ours, theirs, atol=1e-8)


def test_a_sample_stands_for_all_rows(sample):
    part, _ = sampled.draw(sample, MODEL, 1000)
    assert part.X.shape == (1000, 8)
    counts = np.bincount(part.labels + 1)
    assert_array_equal(counts[1:], np.bincount(sample.labels + 1)[1:])
    for c in range(-1, 3):
        theirs = sample.weights[sample.labels == c].sum()
        assert_allclose(part.weights[part.labels == c].sum(), theirs)


def test_samples_of_few_labels_are_within_each_other(sample, monkeypatch):
    for name, size in (("LARGE_ROWS", 2500), ("STEP_ROWS", 1800), ("SMALL_ROWS", 1300)):
        monkeypatch.setattr(sampled, name, size)
    nested = sampled.draw_nested(sample, MODEL)
    rows = [set(map(bytes, part.X.X)) for part in nested[:3]]
    assert [len(of) for of in rows] == [2500, 1800, 1300]
    assert rows[0] > rows[1] > rows[2]
    for part in nested[:3]:
        assert np.count_nonzero(part.labels >= 0) == np.count_nonzero(sample.labels >= 0)
        assert_allclose(part.weights.sum(), sample.weights.sum())


def test_many_labels_have_one_sample(sample, monkeypatch):
    monkeypatch.setattr(sampled, "SMALL_ROWS", 1000)
    nested = sampled.draw_nested(sample, MODEL)
    assert nested.most is nested.part is nested.first


def test_steps_on_a_sample_end_where_another_sample_would_lead_elsewhere(rng):
    """The error that is taken for granted is that of J over many samples, within a factor.

    Where the rows are those of Gaussians and these are found, as it is derived for them.
    """
    sample = planted(rng, hexagon(8))
    assert sampled.draw(sample, MODEL, 3000)[1] == 0.0
    part, least_rise = sampled.draw(sample, MODEL, 1000)
    settings, values = fit.Settings(MODEL, (), True, "within", None, 1, 50, 1e-3, rng), []
    state = fit.solve(part, settings, iterate).state
    alone = np.flatnonzero(sample.labels < 0)
    for _ in range(60):
        some = rng.choice(alone, 400, replace=False)
        weights = sample.weights[some] * sample.weights[alone].sum() / sample.weights[some].sum()
        rows = arrange(sample.take(some)._replace(weights=weights))
        here = objective(state.P, rows.project(state.P), state.mixture, rows, MODEL)
        values.append(here.value)
    assert 0.5 < least_rise / sampled.NOTICED / np.std(values) < 2


def test_rows_in_single_precision_have_the_sums_of_double(sample):
    state = start(sample, arrange(sample), MODEL)
    S = sampled.covariance(sample)
    whole = sampled.sums_of_all(sample, S, state, MODEL)
    short = sample._replace(X=Matrix(sample.X.X.astype(np.float32)))
    found = sampled.sums_of_all(short, S, state, MODEL)
    assert_allclose(found.value, whole.value, rtol=1e-6)
    assert_allclose(found.gradient, whole.gradient, atol=1e-5 * np.abs(whole.gradient).max())


def test_a_sample_of_all_rows_is_the_alternation_on_all_rows(sample):
    """Then nothing is added to what the sample says."""
    rows = arrange(sample)
    S, state = sampled.covariance(sample), start(sample, rows, MODEL)
    state = sampled._rescaled(state, S)
    whole = sampled.sums_of_all(sample, S, state, MODEL)
    others = sampled._others(whole, rows, S, state, MODEL)
    assert_allclose(others.gradient, 0, atol=1e-7)
    assert_allclose(others.constant, 0, atol=1e-6)
    for left in others.moments:
        assert_allclose(left, 0, atol=1e-7)


def test_rounds_reach_the_objective_of_the_alternation_on_all_rows(rng, monkeypatch):
    """Of clusters far apart on a hexagon in a plane: both climb to one maximum."""
    sample = planted(rng, hexagon(8))
    monkeypatch.setattr(sampled, "KEPT_ENTRIES", 8000)
    settings = fit.Settings(MODEL, (), True, "within", None, 1, 200, 1e-6, rng)
    expected = max(fit.solve(sample, settings, iterate).objective)
    _, _, run, part = fit.solved(sample, settings, iterate)
    assert len(part.labels) == 1000
    assert max(run.objective) > expected - 2e-3 * abs(expected)


def test_many_labels_begin_where_all_rows_lead_unless_the_sample_led_higher(sample):
    rows, S = arrange(sample), sampled.covariance(sample)
    best = start(sample, rows, MODEL)
    astray = start_at(np.eye(8)[:, 5:7], rows, sample.class_of, MODEL)
    found = sampled._higher(astray, rows, S, sample, MODEL)
    assert_allclose(found.P, best.P, atol=1e-8)
    method = Method(best, partial(alternation.step, rows=rows, model=MODEL))
    ahead = iterate(method, max_iter=5, tol=0.0).state
    assert sampled._higher(ahead, rows, S, sample, MODEL) is ahead


def test_the_state_that_is_kept_has_unit_covariance_over_all_rows(sample, rng, monkeypatch):
    monkeypatch.setattr(sampled, "KEPT_ENTRIES", 8000)
    settings = fit.Settings(MODEL, (), True, "within", None, 1, 3, 1e-6, rng)
    P = fit.solved(sample, settings, iterate)[2].state.P
    again = state_at(
        P,
        arrange(sample).project(P),
        start(sample, arrange(sample), MODEL).mixture,
        arrange(sample),
        MODEL,
    ).P
    assert_allclose(again, P, atol=1e-10)


def test_a_round_whose_last_step_leaves_no_inverse_is_taken_on_all_rows(sample, monkeypatch):
    S, calls = sampled.covariance(sample), []

    def step(state, rows, model, n_em):
        state, value = alternation.step(state, rows, model, n_em)
        calls.append(value)
        sign = -1.0 if len(calls) == sampled.ROUND_STEPS else 1.0
        mixture = state.mixture._replace(covariances=sign * state.mixture.covariances)
        return state._replace(mixture=mixture), value

    monkeypatch.setattr(sampled, "step", step)
    state = sampled._rescaled(start(sample, arrange(sample), MODEL), S)
    found, _ = sampled._round(state, arrange(sample), S, sample, MODEL)
    assert len(calls) == sampled.ROUND_STEPS
    assert np.linalg.eigvalsh(found.mixture.covariances).min() > 0
