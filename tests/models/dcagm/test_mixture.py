import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.models.dcagm import mixture as gm

q = 2
CLASS_OF = np.array([0, 0, 1])


@pytest.fixture
def some(rng):
    roots = rng.standard_normal((2, q, q))
    return gm.Mixture(
        CLASS_OF,
        CLASS_OF,
        np.array([0.4, 0.6]),
        np.array([0.3, 0.7, 1.0]),
        rng.standard_normal((3, q)),
        roots @ roots.swapaxes(1, 2) + np.eye(q),
    )


def test_log_joint_is_the_gaussian_log_density(some, rng):
    Z = rng.standard_normal((5, q))
    for g in range(3):
        density = multivariate_normal(some.means[g], some.covariances[CLASS_OF[g]])
        weight = some.alpha[CLASS_OF[g]] * some.beta[g]
        assert_allclose(gm.log_joint(gm.whiten(some), Z)[g], np.log(weight) + density.logpdf(Z))


def test_classes_sum_their_gaussians_far_from_all_of_them(some):
    Z = np.array([[0.0, 0.0], [1e4, -1e4]])
    joint = gm.log_joint(gm.whiten(some), Z)
    L, shares = gm.class_densities(gm.whiten(some), Z)
    assert_allclose(L, [np.logaddexp(joint[0], joint[1]), joint[2]])
    assert_allclose(shares, np.exp(joint - L[CLASS_OF]), rtol=1e-6)


def test_m_step_with_certain_rows_gives_sample_moments(some, rng):
    Z = rng.standard_normal((30, q))
    members = np.arange(30) % 3
    parts = (members == np.arange(3)[:, None]).astype(float)
    counts = np.array([20.0, 10.0])
    fitted = gm.m_step(some, gm.moments_of(some, counts, parts, Z), gm.Prior(0.0, np.eye(q)))
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
    moments = gm.moments_of(some, np.array([5.0, 5.0]), parts, Z)
    fitted = gm.m_step(some, moments, gm.Prior(1.0, np.eye(q)))
    assert_allclose(fitted.means[1], some.means[1])
    assert_allclose(fitted.beta, [1, 0, 1])
    # Its density is nothing but a number, and the others are not touched by it.
    joint = gm.log_joint(gm.whiten(fitted), Z)
    assert np.all((joint[1] > -2000) & (joint[1] < -600))


def test_moved_mixture_has_the_same_classes(some, rng):
    Z, M = rng.standard_normal((6, q)), rng.standard_normal((q, q))
    here = gm.log_joint(gm.whiten(some), Z)
    there = gm.log_joint(gm.whiten(gm.moved(some, M)), Z @ M)
    shift = np.log(np.abs(np.linalg.det(M)))
    assert_allclose(there, here - shift)


@pytest.mark.parametrize("per_gaussian", [False, True])
def test_rows_of_one_class_need_its_gaussians_only(make_mixture, rng, per_gaussian):
    mixture, Z, w = make_mixture(per_gaussian), rng.standard_normal((9, q)), rng.random(9)
    white, total, expected = gm.whiten(mixture), gm.no_moments(mixture), gm.no_moments(mixture)
    L, shares = gm.class_densities(white, Z)
    counts, own = np.array([0, 0, w.sum()]), (mixture.class_of == 2)[:, None]
    gm.add(expected, gm.moments_of(mixture, counts, own * shares * w, Z))
    part = gm.of_class(white, 2)
    L_own, shares = gm.class_densities(part, Z)
    sums = gm.moments_of(part.mixture, np.array([w.sum()]), shares * w, Z)
    gm.add_class(total, sums, mixture, 2)
    assert_allclose(L_own[0], L[2])
    for ours, wanted in zip(total, expected, strict=True):
        assert_allclose(ours, wanted, atol=1e-12)


@pytest.mark.parametrize("per_gaussian", [False, True])
def test_class_covariances_are_those_of_draws(some, rng, per_gaussian):
    if per_gaussian:
        covariances = np.concatenate([some.covariances, 2 * some.covariances[:1]])
        some = some._replace(covariance_of=np.arange(3), covariances=covariances)
    which = rng.choice(2, p=some.beta[:2], size=200_000)
    roots = np.linalg.cholesky(some.covariances[some.covariance_of[:2]])
    noise = rng.standard_normal((len(which), q))
    draws = some.means[which] + np.einsum("nij,nj->ni", roots[which], noise)
    assert_allclose(gm.class_covariances(some)[0], np.cov(draws.T), rtol=0.03, atol=0.03)
    assert_allclose(gm.class_covariances(some)[1], some.covariances[some.covariance_of[2]])


@pytest.mark.parametrize("per_gaussian", [False, True])
def test_covariances_may_be_worked_on_in_runs(make_mixture, rng, monkeypatch, per_gaussian):
    mixture, Z = make_mixture(per_gaussian), rng.standard_normal((9, q))
    parts, white = rng.random((len(mixture.means), 9)), gm.whiten(mixture)

    def found():
        moments = gm.moments_of(mixture, mixture.alpha, parts, Z)
        return gm.log_joint(white, Z), gm.row_gradient(white, parts, Z), moments.squares

    expected = found()
    monkeypatch.setattr(gm, "ENTRIES_AT_ONCE", 1)
    monkeypatch.setattr(gm, "MOST_PRODUCTS", 0)
    for ours, theirs in zip(found(), expected, strict=True):
        assert_allclose(ours, theirs, atol=1e-12)
    weights = (
        parts if per_gaussian else np.stack([parts[mixture.class_of == c].sum(0) for c in range(3)])
    )
    assert_allclose(expected[2], np.einsum("sn,na,nb->sab", weights, Z, Z))


def test_densities_of_rows_are_those_of_all_classes(make_mixture, rng):
    mixture, Z = make_mixture(False), rng.standard_normal((9, q))
    L, shares = gm.class_densities(gm.whiten(mixture), Z)
    marginal, found = gm.row_densities(gm.whiten(mixture), Z)
    assert_allclose(marginal, np.logaddexp.reduce(L, axis=0))
    assert_allclose(found, shares * np.exp(L - marginal)[mixture.class_of])


def test_gaussians_that_share_a_covariance_are_added_up(make_mixture, rng):
    mixture = make_mixture(per_gaussian=False)
    parts = rng.random((len(mixture.means), 5)).astype(np.float32)
    found = gm.by_covariance(mixture, parts)
    for s, own in enumerate(found):
        assert_allclose(own, parts[mixture.covariance_of == s].sum(axis=0), rtol=1e-6)
    assert found.dtype == np.float32
