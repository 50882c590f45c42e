import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.models.dcagm import gaps
from gnomon.models.dcagm.mixture import Mixture, log_joint, whiten
from gnomon.models.gaussian import filling
from gnomon.models.gaussian.filling import Filling

D, Q = 5, 2


@pytest.fixture
def known(rng):
    """PPCA of five columns in units of their own."""
    return Filling(rng.normal(size=D), rng.normal(size=(D, 2)), 0.3, rng.uniform(0.5, 2, D))


@pytest.fixture
def mixture(rng):
    root = rng.normal(size=(2, Q, Q))
    covariances = 0.3 * root @ np.swapaxes(root, 1, 2) + 0.2 * np.eye(Q)
    weights = np.array([0.4, 0.6]), np.array([0.3, 0.7, 1.0])
    means = rng.normal(size=(3, Q))
    return Mixture(np.array([0, 0, 1]), np.array([0, 0, 1]), *weights, means, covariances)


def dense(known):
    """Mean and covariance of x under PPCA."""
    W = known.W * known.scale[:, None]
    return known.mean, W @ W.T + known.noise * np.diag(known.scale**2)


def whole_model(known, mixture, P, mean, g):
    """Mean and covariance of [z, x] for a Gaussian: z by the mixture, x given z by PPCA."""
    m, S = dense(known)
    V = P.T @ S @ P
    A = S @ P @ np.linalg.inv(V)
    m_0, left = (m - mean) @ P, S - A @ V @ A.T
    mu, Sigma = mixture.means[g], mixture.covariances[mixture.covariance_of[g]]
    center = np.concatenate([mu, m + A @ (mu - m_0)])
    both = np.vstack([np.eye(Q), A])
    C = both @ Sigma @ both.T
    C[Q:, Q:] += left
    return center, C


def brute_force(known, mixture, P, mean, x):
    """Log p(x_o, g), and mean and covariance of z given x_o, by dense Gaussians."""
    o, values, means, spreads = np.flatnonzero(~np.isnan(x)), [], [], []
    for g in range(len(mixture.means)):
        center, C = whole_model(known, mixture, P, mean, g)
        m_o, C_oo, C_zo = center[Q + o], C[np.ix_(Q + o, Q + o)], C[:Q][:, Q + o]
        away = np.linalg.solve(C_oo, x[o] - m_o)
        weight = mixture.alpha[mixture.class_of[g]] * mixture.beta[g]
        value = -0.5 * ((x[o] - m_o) @ away + np.linalg.slogdet(2 * np.pi * C_oo)[1])
        values.append(np.log(weight) + value)
        means.append(center[:Q] + C_zo @ away)
        spreads.append(C[:Q, :Q] - C_zo @ np.linalg.solve(C_oo, C_zo.T))
    shares = np.exp(np.array(values) - np.logaddexp.reduce(values))
    z = shares @ np.array(means)
    gaps_between = np.array(means) - z
    C = np.einsum("g,gij->ij", shares, spreads) + (shares * gaps_between.T) @ gaps_between
    return np.array(values), z, C


def test_a_row_with_gaps_is_where_the_dense_model_of_all_says(known, mixture, rng):
    P, mean = rng.normal(size=(D, Q)), rng.normal(size=D)
    X = rng.normal(size=(40, D))
    X[rng.random(X.shape) < 0.4] = np.nan
    X = X[np.isnan(X).any(axis=1)]
    Z = (filling.fill(known, X) - mean) @ P
    found = gaps.locate(mixture, gaps.measure(known, X, P.T, mean, Z))
    for i, x in enumerate(X):
        values, z, C = brute_force(known, mixture, P, mean, x)
        odds = found.log_joint[:, i] - values
        assert_allclose(odds - odds[0], 0, atol=1e-4)
        assert_allclose(found.mean[i], z, atol=1e-4)
        assert_allclose(found.covariance[i], C, atol=1e-4)


def test_a_complete_row_is_where_it_is(known, mixture, rng):
    P, mean, X = rng.normal(size=(D, Q)), rng.normal(size=D), rng.normal(size=(9, D))
    Z = (X - mean) @ P
    found = gaps.locate(mixture, gaps.measure(known, X, P.T, mean, Z))
    assert_allclose(found.mean, Z, atol=1e-9)
    assert_allclose(found.covariance, 0, atol=1e-9)
    assert_allclose(found.log_joint, log_joint(whiten(mixture), Z), atol=1e-9)


def test_a_row_that_observes_nothing_is_anywhere_in_the_mixture(known, mixture, rng):
    P, mean = rng.normal(size=(D, Q)), rng.normal(size=D)
    X = np.full((1, D), np.nan)
    Z = (filling.fill(known, X) - mean) @ P
    found = gaps.locate(mixture, gaps.measure(known, X, P.T, mean, Z))
    shares = np.exp(found.log_joint[:, 0] - np.logaddexp.reduce(found.log_joint[:, 0]))
    assert_allclose(shares, mixture.alpha[mixture.class_of] * mixture.beta, atol=1e-3)
    assert_allclose(found.mean[0], shares @ mixture.means, atol=1e-2)
