from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.datasets import make_subspace
from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix, center
from gnomon.linalg.eigen import from_moments
from gnomon.models.gaussian import dimension, em, ppca
from gnomon.stats.gaussian import View, covariance

q = 2


@pytest.fixture
def X():
    return center(Matrix(make_subspace(60, 7, q).X))[1]


def test_closed_form_reports_its_likelihood(X):
    view, floored, log_likelihood = ppca.closed_form(from_moments(X, q), q, X.n_samples)
    rows = X @ np.eye(7)
    assert_allclose(log_likelihood, multivariate_normal(cov=covariance(*view)).logpdf(rows).sum())
    assert not floored


def test_closed_form_is_a_maximum(X, rng):
    view, _, best = ppca.closed_form(from_moments(X, q), q, X.n_samples)
    for _ in range(20):
        W = view.W + 0.01 * rng.normal(size=view.W.shape)
        sigma2 = view.sigma2 * np.exp(0.01 * rng.normal())
        assert em.step((View(W, sigma2),), X)[1] <= best


def test_em_ends_at_the_closed_form(X, rng):
    start = em.init(X, q, rng)
    method = em.accelerated(X, start)
    run = iterate(method, max_iter=200, tol=0)
    (view,) = run.state
    expected = ppca.closed_form(from_moments(X, q), q, X.n_samples).view
    assert_allclose(view.W @ view.W.T, expected.W @ expected.W.T, rtol=1e-8, atol=1e-8)
    assert_allclose(view.sigma2, expected.sigma2, rtol=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_em_does_not_rest_where_an_axis_is_zero(seed):
    X = center(Matrix(make_subspace(150, 12, 3).X))[1]
    start = em.init(X, 4, np.random.default_rng(seed))
    method = em.accelerated(X, start)
    run = iterate(method, max_iter=500, tol=1e-7 * 150 * 12)
    best = ppca.closed_form(from_moments(X, 4), 4, X.n_samples).log_likelihood
    assert run.objective[-1] > best - 0.5


def test_em_takes_the_same_path_in_any_unit():
    """Mixing of numbers with a unit took other paths, one of which ended where an axis is zero."""
    rows = make_subspace(60, 7, q).X

    def path(unit):
        X = center(Matrix(unit * rows))[1]
        method = em.accelerated(X, em.init(X, q, np.random.default_rng(0)))
        return iterate(method, max_iter=6, tol=0).state[0]

    one, other = path(1.0), path(2.0**14)
    assert_allclose(other.W, 2.0**14 * one.W, rtol=1e-9)
    assert_allclose(other.sigma2, 2.0**28 * one.sigma2, rtol=1e-9)


def test_em_never_descends(X, rng):
    start = (View(rng.normal(size=(7, q)), 3.0),)
    run = iterate(Method(start, partial(em.step, X=X)), max_iter=200, tol=0)
    assert np.all(np.diff(run.objective) >= -1e-10 * np.abs(run.objective[:-1]))


def test_canonical_axes_keep_the_covariance_and_forget_the_rotation(rng):
    W = rng.normal(size=(7, 3))
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    C = ppca.canonical(W)
    assert_allclose(C @ C.T, W @ W.T)
    assert_allclose(ppca.canonical(W @ R), C)
    assert_allclose(C.T @ C, np.diag(np.diag(C.T @ C)), atol=1e-12)


def test_planted_parameters_are_recovered_as_n_grows():
    errors = []
    for n in (100, 10_000):
        truth = make_subspace(n, 8, 2, random_state=3)
        _, X = center(Matrix(truth.X))
        view = ppca.closed_form(from_moments(X, 2), 2, n).view
        errors.append(np.abs(view.W @ view.W.T - truth.loadings @ truth.loadings.T).max())
    assert errors[1] < errors[0] / 3  # a tenth in the mean


@pytest.mark.parametrize("shape", [(200, 15), (60, 150)])
def test_the_held_out_curve_peaks_at_the_planted_dimension(shape):
    """In nearly all draws: the next one may have a score that is a little higher."""
    found = []
    for seed in range(5):
        X = Matrix(make_subspace(*shape, 3, noise_variance=0.2, random_state=seed).X)
        rng = np.random.default_rng(seed)
        curve = dimension.held_out_curve(X, center(X)[1], from_moments, rng)
        assert len(curve.mean) == len(curve.std) == len(curve.n_components)
        found.append(curve.best)
    assert found.count(3) >= 4 and set(found) <= {3, 4}


def test_held_out_scores_are_average_log_densities():
    X = make_subspace(40, 6, 2).X
    mean, train = center(Matrix(X[:30]))
    spectrum = from_moments(train, 5)
    test = Matrix(X[30:] - mean)
    scores = dimension._scores(spectrum, 30, test)
    for size in (1, 3, 5):
        view = ppca.closed_form(spectrum, size, 30).view
        expected = multivariate_normal(mean, covariance(*view)).logpdf(X[30:]).mean()
        assert_allclose(scores[size - 1], expected)
