import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.stats import mixture as gm

q = 2
OWNER = np.array([0, 0, 1])


@pytest.fixture
def some(rng):
    roots = rng.standard_normal((2, q, q))
    return gm.Mixture(
        OWNER,
        gm.forms(OWNER, per_gaussian=False),
        np.array([0.4, 0.6]),
        np.array([0.3, 0.7, 1.0]),
        rng.standard_normal((3, q)),
        roots @ roots.swapaxes(1, 2) + np.eye(q),
    )


def test_log_joint_is_the_gaussian_log_density(some, rng):
    Z = rng.standard_normal((5, q))
    for g in range(3):
        density = multivariate_normal(some.means[g], some.covariances[OWNER[g]])
        weight = some.alpha[OWNER[g]] * some.beta[g]
        assert_allclose(gm.log_joint(some, Z)[g], np.log(weight) + density.logpdf(Z))


def test_classes_sum_their_gaussians_far_from_all_of_them(some):
    Z = np.array([[0.0, 0.0], [1e4, -1e4]])
    joint = gm.log_joint(some, Z)
    assert_allclose(gm.by_class(some, joint)[0], np.logaddexp(joint[0], joint[1]))
    assert np.all(np.isfinite(gm.by_class(some, joint)))


def test_m_step_with_certain_rows_gives_sample_moments(some, rng):
    Z = rng.standard_normal((30, q))
    members = np.arange(30) % 3
    parts = (members == np.arange(3)[:, None]).astype(float)
    counts = np.array([20.0, 10.0])
    fitted = gm.m_step(some, gm.gather(some, counts, parts, Z), gm.Prior(0.0, np.eye(q)))
    assert_allclose(fitted.means[2], Z[members == 2].mean(axis=0))
    assert_allclose(fitted.covariances[1], np.cov(Z[members == 2].T, bias=True))
    pooled = sum(10 * np.cov(Z[members == g].T, bias=True) for g in (0, 1)) / 20
    assert_allclose(fitted.covariances[0], pooled)
    assert_allclose(fitted.alpha, [2 / 3, 1 / 3])
    assert_allclose(fitted.beta, [0.5, 0.5, 1.0])


def test_a_gaussian_without_rows_keeps_its_place(some, rng):
    Z = rng.standard_normal((10, q))
    parts = np.zeros((3, 10))
    parts[0, :5] = parts[2, 5:] = 1
    moments = gm.gather(some, np.array([5.0, 5.0]), parts, Z)
    fitted = gm.m_step(some, moments, gm.Prior(1.0, np.eye(q)))
    assert_allclose(fitted.means[1], some.means[1])
    assert np.all(np.isfinite(gm.log_joint(fitted, Z)))


def test_moved_mixture_has_the_same_classes(some, rng):
    Z, M = rng.standard_normal((6, q)), rng.standard_normal((q, q))
    here = gm.log_joint(some, Z)
    there = gm.log_joint(gm.moved(some, M), Z @ M)
    shift = np.log(np.abs(np.linalg.det(M)))
    assert_allclose(there, here - shift)


def test_prior_does_not_depend_on_the_coordinates(some, rng):
    M, S = rng.standard_normal((q, q)), np.array([[2.0, 0.3], [0.3, 1.0]])
    there = gm.log_prior(gm.moved(some, M), gm.Prior(4.0, M.T @ S @ M))
    assert_allclose(there, gm.log_prior(some, gm.Prior(4.0, S)))
    assert gm.log_prior(some, gm.Prior(0.0, S)) == 0


@pytest.mark.parametrize("per_gaussian", [False, True])
def test_class_covariances_are_those_of_draws(some, rng, per_gaussian):
    if per_gaussian:
        covariances = np.concatenate([some.covariances, 2 * some.covariances[:1]])
        some = some._replace(form=gm.forms(OWNER, per_gaussian=True), covariances=covariances)
    which = rng.choice(2, p=some.beta[:2], size=200_000)
    roots = np.linalg.cholesky(some.covariances[some.form[:2]])
    noise = rng.standard_normal((len(which), q))
    draws = some.means[which] + np.einsum("nij,nj->ni", roots[which], noise)
    assert_allclose(gm.class_covariances(some)[0], np.cov(draws.T), rtol=0.03, atol=0.03)
    assert_allclose(gm.class_covariances(some)[1], some.covariances[some.form[2]])
