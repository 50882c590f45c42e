from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.datasets import make_subspace, remove_entries
from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix, center
from gnomon.linalg.eigen import from_moments
from gnomon.models.gaussian import gaps, patterns, ppca
from gnomon.models.gaussian.gaps import State

n, d, q = 25, 6, 2
GROUPS = np.array([0, 0, 0, 0, 1, 1])


@pytest.fixture
def state(rng):
    return State(rng.normal(size=(d, q)), rng.normal(size=d), np.array([0.5, 2.0]))


@pytest.fixture
def X(rng):
    X = remove_entries(rng.normal(size=(n, d)) * 2 + 3, 0.35)
    X[4] = np.nan
    return X


def dense_terms(state, x):
    """One row by brute force: density, latent mean and covariance, filled values, deviations."""
    C = state.W @ state.W.T + np.diag(state.noise[GROUPS])
    o, m = ~np.isnan(x), np.isnan(x)
    density = multivariate_normal(state.mean[o], C[np.ix_(o, o)]).logpdf(x[o]) if o.any() else 0.0
    gain = np.linalg.inv(C[np.ix_(o, o)]) if o.any() else np.zeros((0, 0))
    r = x[o] - state.mean[o]
    z = state.W[o].T @ gain @ r
    cov = np.eye(q) - state.W[o].T @ gain @ state.W[o]
    filled = x.copy()
    filled[m] = state.mean[m] + C[np.ix_(m, o)] @ gain @ r
    deviations = np.zeros(d)
    deviations[m] = np.sqrt(np.diag(C[np.ix_(m, m)] - C[np.ix_(m, o)] @ gain @ C[np.ix_(o, m)]))
    return density, z, cov, filled, deviations


def test_everything_equals_brute_force(state, X):
    data = patterns.group_rows(X, GROUPS)
    expected = [dense_terms(state, x) for x in X]
    densities, z, covs, filled, deviations = map(np.array, zip(*expected, strict=True))
    assert_allclose(gaps.log_density(state, data), densities)
    assert_allclose(gaps.step(state, data)[1], densities.sum())
    means, covariances = gaps.posterior(state, data)
    assert_allclose(means, z, atol=1e-12)
    assert_allclose(covariances, covs, atol=1e-12)
    assert_allclose(gaps.latent_means(state, data), z, atol=1e-12)
    for actual, wanted in zip(gaps.fill(state, data), (filled, deviations), strict=True):
        assert_allclose(actual, wanted, atol=1e-12)


def test_batches_do_not_change_the_step(state, X, monkeypatch):
    data = patterns.group_rows(np.vstack([X, X, X]), GROUPS)
    whole, objective = gaps.step(state, data)
    monkeypatch.setattr(gaps, "BATCH_ENTRIES", 40)
    cut, same = gaps.step(state, data)
    assert_allclose(cut.W, whole.W)
    assert_allclose(same, objective)


def test_the_objective_never_falls(state, X):
    data = patterns.group_rows(X, GROUPS)
    run = iterate(Method(state, partial(gaps.step, data=data)), max_iter=300, tol=0)
    steps = np.diff(run.objective)
    assert np.all(steps >= -1e-10 * np.abs(run.objective[:-1]))


def test_the_gradient_vanishes_at_the_fixed_point(X):
    data = patterns.group_rows(X, GROUPS)
    start = State(np.eye(d, q), np.zeros(d), np.ones(2))
    end = iterate(Method(start, partial(gaps.step, data=data)), max_iter=20000, tol=1e-13).state
    unit, h = np.ones(d), 1e-5
    x = gaps.pack(end, unit)

    def total(v):
        return gaps.log_density(gaps.unpack(v, end, unit), data).sum()

    gradient = [(total(x + h * e) - total(x - h * e)) / (2 * h) for e in np.eye(len(x))]
    assert_allclose(gradient, 0, atol=2e-3)


def test_without_gaps_it_is_the_closed_form():
    X = make_subspace(80, d, q).X
    data = patterns.group_rows(X, np.zeros(d, dtype=int))
    state = gaps.init(data, q)
    # A step leaves a quarter of the error, and the objective no longer sees one of 1e-8.
    for _ in range(60):
        state, value = gaps.step(state, data)
    _, centered = center(Matrix(X))
    fit = ppca.closed_form(from_moments(centered, q), q, len(X))
    W, mean, noise = state
    assert_allclose(W @ W.T, fit.view.W @ fit.view.W.T, rtol=1e-6, atol=1e-8)
    assert_allclose(noise[0], fit.view.sigma2, rtol=1e-8)
    assert_allclose(mean, X.mean(axis=0))
    assert_allclose(value, fit.log_likelihood, rtol=1e-10)


def test_weights_equal_repetition(state, X, rng):
    weights = rng.integers(0, 3, size=n).astype(float)
    shift = np.nanmean(X, axis=0)
    one = patterns.group_rows(X, GROUPS, weights, shift)
    two = patterns.group_rows(np.repeat(X, weights.astype(int), axis=0), GROUPS, shift=shift)
    (first, a), (second, b) = gaps.step(state, one), gaps.step(state, two)
    assert_allclose(a, b)
    for x, y in zip(first, second, strict=True):
        assert_allclose(x, y, atol=1e-10)


def test_selected_rows_are_as_if_grouped_alone(state, X, rng):
    mask = rng.random(n) < 0.5
    data = patterns.group_rows(X, GROUPS)
    part = patterns.select(data, mask)
    expected = gaps.log_density(state, data)[mask]
    assert_allclose(gaps.log_density(state, part), expected)
    assert patterns.n_observed(part) == (~np.isnan(X[mask])).sum()


def test_planted_parameters_are_recovered():
    truth = make_subspace(6000, 8, 2, random_state=1)
    data = patterns.group_rows(remove_entries(truth.X, 0.3), np.zeros(8, dtype=int))
    run = iterate(
        Method(gaps.init(data, 2), partial(gaps.step, data=data)),
        max_iter=500,
        tol=1e-4,
    )
    assert_allclose(run.state.W @ run.state.W.T, truth.loadings @ truth.loadings.T, atol=0.6)
    assert_allclose(run.state.mean, truth.mean, atol=0.2)
    assert_allclose(run.state.noise[0], truth.noise_variance, rtol=0.05)


@pytest.mark.parametrize("centred", [1.0, 0.0])
def test_loadings_for_standard_latent_variables_have_the_covariance_of_those_seen(rng, centred):
    theta, root = rng.normal(size=(d, q + 1)), rng.normal(size=(q, q))
    mean = rng.normal(size=q)
    second = np.block([[root @ root.T + np.outer(mean, mean), mean[:, None]], [mean, 1.0]])
    found = gaps._absorb(theta, second, np.zeros(d), np.ones(1), centred)
    spread = second[:q, :q] - centred * np.outer(mean, mean)
    assert_allclose(found.W @ found.W.T, theta[:, :q] @ spread @ theta[:, :q].T)
    assert_allclose(found.mean, theta[:, q] + centred * theta[:, :q] @ mean)
