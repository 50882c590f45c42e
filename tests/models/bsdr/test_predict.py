import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from gnomon.models.bsdr import predict


@pytest.fixture
def case(rng):
    """Positions z and their covariances, B and C for three outputs."""
    root = 0.3 * rng.standard_normal((3, 3, 3))
    C = root @ np.swapaxes(root, 1, 2)
    Z, away = rng.standard_normal((5, 2)), 0.5 * rng.standard_normal((5, 2, 2))
    covariances = away @ np.swapaxes(away, 1, 2) + 0.1 * np.eye(2)
    return Z, covariances, rng.standard_normal((3, 3)), C


def test_variances_of_numbers_are_those_of_draws(case, rng):
    Z, covariances, B, C = case
    noise = np.array([0.1, 0.2, 0.3])
    size = 200_000
    weights = [rng.multivariate_normal(B[:, k], C[k], size) for k in range(3)]
    z = rng.multivariate_normal(Z[0], covariances[0], size)
    scores = np.stack([w[:, 0] + np.sum(w[:, 1:] * z, axis=1) for w in weights], axis=1)
    Y = scores + np.sqrt(noise) * rng.standard_normal((size, 3))
    expected = predict.number_variances(Z, covariances, B, C, noise)[0]
    assert_allclose(Y.var(axis=0), expected, rtol=0.02)


@pytest.mark.parametrize("are_classes", [True, False])
def test_the_integral_is_the_average_over_many_positions(case, rng, are_classes, monkeypatch):
    Z, covariances, B, C = case
    found = predict.integrated(Z, covariances, B, C, are_classes)
    monkeypatch.setattr(predict, "INTEGRATION_POINTS", 2000)
    exact = predict.integrated(Z, covariances, B, C, are_classes)
    drawn = [rng.multivariate_normal(z, S, 2000) for z, S in zip(Z, covariances, strict=True)]
    means = [predict.plug_in(z, B, C, are_classes).mean(axis=0) for z in drawn]
    assert_allclose(exact, means, atol=0.03)
    assert np.abs(found - exact).max() < 0.04
    plain = predict.plug_in(Z, B, C, are_classes)
    assert np.abs(found - exact).mean() < 0.5 * np.abs(plain - exact).mean()


def test_probabilities_of_signs_have_the_root_of_the_variance(case):
    Z, _, B, C = case
    sd = np.sqrt(predict.score_variances(Z, C))
    expected = ndtr((Z @ B[1:] + B[0]) / sd)
    assert_allclose(predict.plug_in(Z, B, C, False), expected)


@pytest.mark.parametrize("are_classes", [True, False])
def test_draws_are_averaged_whatever_the_size_of_the_batches(case, rng, are_classes, monkeypatch):
    Z, *_ = case
    projected = Z + 0.1 * rng.standard_normal((12, 5, 2))
    weights, bias = rng.standard_normal((12, 2, 3)), rng.standard_normal((12, 3))
    nothing = np.zeros((3, 3, 3))
    points = 0.5 * predict.normal_points(2, 12)
    each = [
        predict.plug_in(z + u, np.vstack([b, V]), nothing, are_classes)
        for z, V, b, u in zip(projected, weights, bias, points, strict=True)
    ]
    for size in (1, 12, 10_000):
        monkeypatch.setattr(predict, "ROWS_AT_ONCE", size)
        P = predict.from_draws(projected, weights, bias, 0.25, are_classes)
        assert_allclose(P, np.mean(each, axis=0), atol=1e-12)


def test_covariance_of_draws_has_the_latent_noise(rng):
    projected = rng.standard_normal((50, 4, 2))
    found = predict.covariance_of_draws(projected, projected.mean(axis=0), 0.3)
    expected = np.cov(projected[:, 1].T, ddof=0) + 0.3 * np.eye(2)
    assert_allclose(found[1], expected)


def test_points_are_spread_like_the_normal_law():
    points = predict.normal_points(3, 2000)
    assert_allclose(points.mean(axis=0), 0.0, atol=0.02)
    assert_allclose(np.cov(points.T), np.eye(3), atol=0.03)


def test_scores_without_surety_are_integrated_too(rng):
    M, root = rng.standard_normal((5, 3)), rng.standard_normal((5, 3, 1))
    variance, covariances = np.full((5, 3), 1.2), root @ np.swapaxes(root, 1, 2)
    found = predict.integrated_scores(M, variance, covariances)
    drawn = M[:, None] + rng.standard_normal((5, 4000, 1)) @ np.swapaxes(root, 1, 2)
    means = [predict.probabilities(m, np.full_like(m, 1.2), True).mean(axis=0) for m in drawn]
    assert_allclose(found, means, atol=0.03)
    nothing = np.zeros((5, 3, 3))
    plain = predict.probabilities(M, variance, True)
    assert_allclose(predict.integrated_scores(M, variance, nothing), plain, atol=1e-9)
