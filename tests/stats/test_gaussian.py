import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, t

from gnomon.linalg.data import Matrix
from gnomon.stats import gaussian

d, q = 6, 2


@pytest.fixture
def model(rng):
    return rng.normal(size=(d, q)), 0.7


def test_log_density_is_the_dense_gaussian(model, rng):
    X = rng.normal(size=(9, d))
    expected = multivariate_normal(cov=gaussian.covariance(*model)).logpdf(X)
    assert_allclose(gaussian.log_density(Matrix(X), *model), expected)


def test_posterior_is_the_conditional_of_the_joint_gaussian(model, rng):
    W, sigma2 = model
    weights, covariance = gaussian.latent_posterior(W, sigma2)
    C = np.linalg.inv(gaussian.covariance(W, sigma2))
    assert_allclose(weights, C @ W)
    assert_allclose(covariance, np.eye(q) - W.T @ C @ W, atol=1e-12)


def test_precision_is_the_inverse(model):
    assert_allclose(gaussian.precision(*model) @ gaussian.covariance(*model), np.eye(d), atol=1e-12)


def test_draws_have_the_moments_of_the_model(model, rng):
    mean = rng.normal(size=d)
    X = gaussian.sample(rng, 200_000, mean, *model)
    assert_allclose(X.mean(axis=0), mean, atol=0.03)
    assert_allclose(np.cov(X.T), gaussian.covariance(*model), atol=0.08)


def test_the_variance_of_t_is_scipys_and_ends_where_there_is_none():
    freedom = np.array([3.0, 5.0, 29.0])
    assert_allclose(gaussian.variance_of_t(freedom), t(freedom).var())
    assert_allclose(gaussian.variance_of_t(np.array([-4, 0, 2])), 3)
