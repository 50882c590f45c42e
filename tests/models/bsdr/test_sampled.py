from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.inference.loop import iterate
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import gibbs, sampled, sweeps
from gnomon.models.bsdr.factors import Gamma, Priors, bound, make_model
from gnomon.models.bsdr.fit import Problem, Settings, fit, regression_start
from gnomon.models.bsdr.inputs import read_inputs, standard_rows
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs, SignOutputs

N, D, SAMPLE = 1500, 8, 600
CUTS = [1, 8, 8, 700]


@pytest.fixture
def data(rng):
    """Three classes that overlap, of unequal size, in two of eight directions."""
    y = np.searchsorted([0.2, 0.5], rng.random(N))
    X = rng.standard_normal((N, D)) + 5
    X[:, :2] += np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])[y]
    X[:, 3] *= 4
    return X, y


def outputs_of(kind, X, y, rng):
    Y = (X[:, :3] - X[:, :3].mean(axis=0)) @ rng.standard_normal((3, 2))
    Y = Y + rng.standard_normal(Y.shape)
    return {
        "classes": ClassOutputs(y, 3),
        "two classes": SignOutputs(np.where(y == 2, 1.0, -1.0)[:, None]),
        "labels": SignOutputs(np.sign(Y)),
        "numbers": NumberOutputs(Y),
    }[kind]


def settings_of(q=2, prior="entry", **changes):
    settings = Settings(
        q, prior, None, Gamma(1.0, 1.0), 1.0, True, 1, 100, 1e-7, np.random.default_rng(0)
    )
    return settings._replace(**changes)


def in_blocks(X):
    return Blocks([Matrix(part) for part in np.split(X, CUTS)])


def few_are_kept(monkeypatch, rows=SAMPLE):
    monkeypatch.setattr(sampled, "KEPT_ENTRIES", rows * D)


@pytest.fixture(params=["entry", "column", "row"])
def halfway(request, data):
    """All rows, a sample of them, and factors after some sweeps on the sample alone."""
    X, y = data
    X = Matrix(X)
    inputs, ridge = read_inputs(X, request.param, 1.0, True)
    model = make_model(ridge, ClassOutputs(y, 3), Priors(request.param))
    whole = sampled.Whole(standard_rows(in_blocks(X.X), inputs), model, inputs)
    return whole, request.param


def swept(whole, monkeypatch, rows=SAMPLE):
    few_are_kept(monkeypatch, rows)
    sample = sampled.draw(whole)
    alone = sampled.alone(sample)
    first = sweeps.start(alone, regression_start(alone, 2, np.random.default_rng(0)))
    run = iterate(sweeps.accelerated(alone, first), max_iter=3, tol=0)
    return sample, sweeps.update_spreads(sampled.without_rows(run.state), sample.model), run


def test_the_sample_held_to_all_rows_has_their_bound_and_their_sweep(halfway, monkeypatch):
    whole, _ = halfway
    sample, factors, _ = swept(whole, monkeypatch)
    held, begin = sampled.held(factors, sampled.sums_of_all(factors, whole), sample)
    projected = np.asarray(whole.model.ridge.X @ factors.P)
    everything = factors._replace(projected=projected, Z=projected)
    everything = sweeps.settle(everything, whole.model)
    assert_allclose(bound(begin, held), bound(everything, whole.model), rtol=1e-9)
    ours, value = sweeps.step(begin, held)
    theirs, expected = sweeps.step(everything, whole.model)
    assert_allclose(value, expected, rtol=1e-9)
    for name in ("P", "B", "C", "S"):
        found = getattr(theirs, name)
        assert_allclose(getattr(ours, name), found, atol=1e-6 * np.abs(found).max())


def test_a_sample_of_all_rows_lacks_nothing(halfway, monkeypatch):
    whole, _ = halfway
    sample, factors, _ = swept(whole, monkeypatch, N)
    assert np.abs(sample.gram).max() < 1e-9 * N
    sums = sampled.sums_of_all(factors, whole)
    held, _ = sampled.held(factors, sums, sample)
    assert np.abs(held.standing.constant) < 1e-7 * N
    assert np.abs(held.standing.slopes).max(initial=0.0) < 1e-4


def test_sweeps_on_the_sample_alone_never_lower_its_bound(halfway, monkeypatch):
    _, _, run = swept(halfway[0], monkeypatch)
    assert np.all(np.diff(run.objective) > 0)


@pytest.mark.parametrize(
    ("kind", "prior"),
    [
        ("classes", "entry"),
        ("classes", "column"),
        ("two classes", "row"),
        ("labels", "column"),
        ("numbers", "entry"),
        ("numbers", "column"),
    ],
)
def test_rounds_reach_the_bound_of_sweeps_over_all_rows(data, kind, prior, rng, monkeypatch):
    X, y = data
    outputs, settings = outputs_of(kind, X, y, rng), settings_of(prior=prior, max_iter=1000)
    expected = fit(Problem(Matrix(X), outputs), settings, iterate)
    few_are_kept(monkeypatch)
    found = fit(Problem(in_blocks(X), outputs), settings_of(prior=prior, max_iter=1000), iterate)
    best, history = expected.run.objective[-1], found.run.objective
    assert found.run.converged
    assert history[-1] > best - 1e-6 * abs(best)
    assert kind == "numbers" or len(history) <= sampled.MOST_ROUNDS
    ours, theirs = (each.loadings @ each.B[1:] for each in (found, expected))
    assert_allclose(ours, theirs, rtol=3e-3, atol=2e-3)
    if prior != "row":  # which leaves a rotation free
        assert_allclose(found.relevance, expected.relevance, rtol=5e-2, atol=1e-3)
        assert_allclose(found.loadings_sd, expected.loadings_sd, rtol=1e-1)


def test_numbers_need_no_sample(data, rng, monkeypatch):
    X, y = data
    problem = partial(Problem, outputs=outputs_of("numbers", X, y, rng))
    expected = fit(problem(Matrix(X)), settings_of(), iterate)
    few_are_kept(monkeypatch, 10)
    found = fit(problem(in_blocks(X)), settings_of(), iterate)
    # Sums in another order, and every sweep may magnify what they differ by.
    assert_allclose(found.run.objective, expected.run.objective, rtol=1e-7)
    assert_allclose(found.loadings, expected.loadings, atol=1e-5)
    assert_allclose(found.noise_variance, expected.noise_variance, rtol=1e-5)


def test_the_bound_never_falls_where_the_sample_is_too_small(data, monkeypatch):
    """Rounds that lose are taken back, and a plain sweep over all rows is what is left."""
    X, y = data
    few_are_kept(monkeypatch, 30)
    seen, step = [], sampled._round

    def watched(state, **known):
        after, value = step(state, **known)
        seen.append(after)
        return after, value

    monkeypatch.setattr(sampled, "_round", watched)
    problem = Problem(in_blocks(X), ClassOutputs(y, 3))
    run = fit(problem, settings_of(max_iter=30), iterate).run
    assert min(after.gain for after in seen) < 0
    assert np.all(np.diff(run.objective) >= 0)
    assert run.objective[-1] > run.objective[0]
    lost = [k for k, after in enumerate(seen[:-1]) if after.gain < 0 and after.steps == 0]
    assert lost
    assert min(seen[k + 1].gain for k in lost) > -1e-6


def test_components_are_found_from_few_reads(data, monkeypatch):
    X, y = data
    settings = partial(settings_of, q=None, latent_noise=0.1, tol=1e-6, prior="auto")
    expected = fit(Problem(Matrix(X), ClassOutputs(y, 3)), settings(), iterate)
    few_are_kept(monkeypatch)
    found = fit(Problem(in_blocks(X), ClassOutputs(y, 3)), settings(), iterate)
    assert found.loadings.shape == expected.loadings.shape
    best = expected.run.objective[-1]
    assert found.run.objective[-1] > best - 1e-6 * abs(best)


def test_what_the_route_is_not_for_sweeps_over_all_rows(data, rng, monkeypatch):
    X, y = data
    few_are_kept(monkeypatch)
    monkeypatch.setattr(sampled, "draw", None)
    monkeypatch.setattr(sampled, "compressed", None)
    holed = outputs_of("numbers", X, y, rng)._replace(observed=(rng.random((N, 2)) < 0.9) * 1.0)
    fit(Problem(in_blocks(X), holed), settings_of(max_iter=2), iterate)
    classes = Problem(in_blocks(X), ClassOutputs(y, 3))
    fit(classes, settings_of(max_iter=2, solver="paper"), iterate)
    sampling = gibbs.Sampling(n_chains=1, n_draws=4, n_warmup=0, watch=None)
    fit(classes, settings_of(max_iter=2, sampling=sampling), iterate)
    with pytest.raises(TypeError):
        fit(classes, settings_of(max_iter=2), iterate)


def test_rounds_end_unsettled_with_their_best(data, monkeypatch):
    X, y = data
    few_are_kept(monkeypatch)
    run = fit(Problem(in_blocks(X), ClassOutputs(y, 3)), settings_of(max_iter=2), iterate).run
    assert not run.converged
    assert len(run.objective) == 2
