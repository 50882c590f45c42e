import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.datasets import remove_entries
from gnomon.inference.loop import Method, iterate
from gnomon.models.gaussian import gaps as table_model
from gnomon.models.gaussian import patterns
from gnomon.models.sppca import fit, gaps
from gnomon.models.sppca.statistics import INPUT_FLOOR, OUTPUT_FLOOR, State

n, d, c, q = 40, 6, 3, 2
RULES = ["learn", "per_output", 0.5, (0.3, 0.2)]


@pytest.fixture
def problem(gappy):
    X, Y, observed = gappy
    return fit.Problem(remove_entries(X, 0.2), Y, observed)


def maximise(problem, loop=iterate, **settings):
    return gaps.maximise(
        problem, fit.Settings(**{"max_iter": 3000, "tol": 1e-10, **settings}), loop
    )


@pytest.mark.parametrize("noise", RULES, ids=str)
def test_the_objective_is_the_density_of_what_is_observed(problem, noise):
    run, _ = maximise(problem, noise=noise, max_iter=2, tol=0)
    before, _ = maximise(problem, noise=noise, max_iter=1, tol=0)
    mean, state = before.state
    W = np.vstack([state.W, state.W_y])
    C = W @ W.T + np.diag(np.append(np.full(d, state.sigma2), state.sigma2_y))
    total = 0.0
    for row in np.hstack([problem.X, np.where(problem.observed, problem.Y, np.nan)]):
        o = np.isfinite(row)
        center = np.append(mean, state.mean_y)[o]
        total += multivariate_normal(center, C[np.ix_(o, o)]).logpdf(row[o]) if o.any() else 0
    # There is nothing to mix yet: the second step starts where the first ended.
    assert_allclose(run.objective[1], total)


@pytest.mark.parametrize("noise", RULES, ids=str)
@pytest.mark.parametrize("prior", [0.0, 2.0])
def test_the_objective_never_falls_and_the_rule_is_kept(problem, noise, prior):
    run, rule = maximise(problem, noise=noise, prior=prior)
    assert run.converged
    assert np.all(np.diff(run.objective) >= -1e-10 * np.abs(run.objective[:-1]))
    _, state = run.state
    assert rule.per_output == (len(np.unique(state.sigma2_y)) > 1)
    if noise == 0.5:
        assert_allclose(state.sigma2_y, 0.5 * state.sigma2)
    if noise == (0.3, 0.2):
        assert_allclose([state.sigma2, *state.sigma2_y], [0.3, 0.2, 0.2, 0.2])


@pytest.mark.parametrize("noise", RULES, ids=str)
def test_without_gaps_it_is_the_maximum_from_moments(sample, rng, noise):
    """With so many outputs that the likelihood has one maximum."""
    X, Y = sample
    problem = fit.Problem(X, Y, rng.random(Y.shape) < 0.8)
    exact = fit.fit(problem, fit.Settings(noise=noise, tol=1e-12, max_iter=3000), iterate)
    run, _ = maximise(problem, noise=noise, tol=1e-13)
    assert_allclose(run.objective[-1], exact.log_likelihood, rtol=1e-7)
    mean, state = run.state
    assert_allclose(mean, X.mean(axis=0), atol=1e-6)
    assert_allclose(state.W @ state.W.T, exact.state.W @ exact.state.W.T, atol=1e-3)


def test_the_mean_of_the_labelled_is_kept_where_asked(problem):
    seen = np.where(problem.observed, problem.Y, np.nan)
    kept, _ = maximise(problem, target_mean="labelled")
    assert_allclose(kept.state.state.mean_y, np.nanmean(seen, axis=0))
    learnt, _ = maximise(problem)
    assert learnt.objective[-1] > kept.objective[-1] + 0.01


def test_floors_are_shares_of_the_variances(problem):
    data = gaps.table(problem.X, problem.Y, problem.observed, per_output=True)
    variances = np.array([np.nanvar(problem.X, axis=0), np.isfinite(problem.X).sum(axis=0)])
    assert_allclose(data.floors[0], INPUT_FLOOR * np.average(variances[0], weights=variances[1]))
    seen = np.where(problem.observed, problem.Y, np.nan)
    assert_allclose(data.floors[1:], OUTPUT_FLOOR * np.nanvar(seen, axis=0))


def test_callbacks_see_the_mean_and_the_state(problem):
    seen = []

    def loop(method, **limits):
        return iterate(method, callback=lambda n_iter, state, _: seen.append(state), **limits)

    run, _ = maximise(problem, loop)
    assert all(isinstance(parts, gaps.Parts) for parts in [*seen, run.state])
    assert isinstance(seen[0].state, State) and seen[0].mean.shape == (d,)


def test_a_state_is_split_and_joined(problem):
    run, _ = maximise(problem, noise="per_output", max_iter=3, tol=0)
    table = gaps.join(*run.state)
    mean, state = gaps.split(table, d, c)
    for again, before in zip((mean, *state), (run.state.mean, *run.state.state), strict=True):
        assert_allclose(again, before)


def test_climbing_a_table_ends_with_its_own_state(problem):
    data = gaps.table(problem.X, *gaps.no_outputs(n))
    start = table_model.init(data, q)
    noise = gaps.Noise(data.floors[0], data.floors[1:])
    run = gaps.climb(data, start, noise, max_iter=500, tol=1e-9, loop=iterate)
    plain = iterate(
        Method(start, lambda state: table_model.step(state, data)), max_iter=5000, tol=1e-9
    )
    assert isinstance(run.state, table_model.State)
    assert_allclose(run.objective[-1], plain.objective[-1], rtol=1e-8)


def test_floors_do_not_bind_noise_that_is_tied(problem):
    """One output can be explained wholly, which a small ratio asks for."""
    data = gaps.table(problem.X, problem.Y[:, :1], problem.observed[:, :1])
    ratio = 0.05 * data.floors[1] / patterns.variances(data)[0]
    noise = gaps.Noise(data.floors[0], data.floors[1:], ratio=ratio)
    inputs = patterns.group_rows(problem.X, np.zeros(d, dtype=int))
    start = gaps.init(data, table_model.init(inputs, q), noise)
    run = iterate(
        Method(start, lambda state: gaps.step(state, data, noise)), max_iter=200, tol=1e-9
    )
    assert np.all(np.diff(run.objective) >= -1e-10 * np.abs(run.objective[:-1]))
    assert run.state.noise[1] < 0.1 * data.floors[1]
    assert_allclose(run.state.noise[1], ratio * run.state.noise[0])
