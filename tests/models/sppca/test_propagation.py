import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_ndtr, ndtr

from gnomon.models.sppca.propagation import Factors, propagate


def make(rng, n=12, J=3, k=2, scale=1.0):
    A, c = scale * rng.normal(size=(n, J, k)), scale * (rng.normal(size=(n, J)) + 0.5)
    return Factors(A, c, np.ones((n, J)))


def on_a_grid(factors, i, k=2):
    """Log Z, mean and covariance of one row by a fine grid over w."""
    line = np.linspace(-7, 7, 141)
    w = np.stack(np.meshgrid(*[line] * k, indexing="ij"), axis=-1).reshape(-1, k)
    terms = ndtr(w @ factors.A[i].T + factors.c[i]) ** factors.seen[i]
    density = np.prod(terms, axis=1) * np.exp(-0.5 * np.sum(w**2, axis=1))
    Z = density.sum() * (line[1] - line[0]) ** k / (2 * np.pi) ** (k / 2)
    mean = density @ w / density.sum()
    return np.log(Z), mean, (density[:, None] * (w - mean)).T @ (w - mean) / density.sum()


def test_one_factor_is_exact(rng):
    factors = make(rng, J=1)
    found = propagate(factors)
    a, c = factors.A[:, 0], factors.c[:, 0]
    assert_allclose(found.log_Z, log_ndtr(c / np.sqrt(1 + np.sum(a**2, axis=1))), rtol=1e-12)
    for i in range(len(c)):
        log_Z, mean, covariance = on_a_grid(factors, i)
        assert_allclose(found.log_Z[i], log_Z, atol=1e-8)
        assert_allclose(found.mean[i], mean, atol=1e-8)
        assert_allclose(found.covariance[i], covariance, atol=1e-8)


# Steep factors are further from normal ones. Of 120 draws the largest errors of any row were .002,
# .029 and .064, and the largest medians over rows a third of that.
@pytest.mark.parametrize(
    ("scale", "typical", "worst"), [(0.3, 0.001, 0.005), (1.0, 0.015, 0.06), (3.0, 0.04, 0.12)]
)
def test_several_factors_are_near_the_integral(rng, scale, typical, worst):
    factors = make(rng, scale=scale)
    found = propagate(factors)
    exact = zip(*[on_a_grid(factors, i) for i in range(len(factors.c))], strict=True)
    for ours, theirs in zip((found.log_Z, found.mean, found.covariance), exact, strict=True):
        off = np.abs(ours - np.array(theirs)).reshape(len(ours), -1).max(axis=1)
        assert np.median(off) < typical
        assert off.max() < worst


def test_log_z_has_the_derivatives_that_the_gaussian_factors_say(rng):
    factors = make(rng, J=4)
    found = propagate(factors)
    f = np.einsum("nja,na->nj", factors.A, found.mean) + factors.c
    step = 1e-4
    for j in range(4):
        ends = [
            propagate(factors._replace(c=factors.c + sign * step * (np.arange(4) == j))).log_Z
            for sign in (1, -1)
        ]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert_allclose(found.nu[:, j] - found.tau[:, j] * f[:, j], slope, atol=1e-6)


def test_a_factor_that_is_not_seen_changes_nothing(rng):
    factors = make(rng, J=3)
    seen = factors._replace(seen=factors.seen * [1.0, 0.0, 1.0])
    without = Factors(*(np.delete(part, 1, axis=1) for part in factors))
    for ours, theirs in zip(propagate(seen)[:2], propagate(without)[:2], strict=True):
        assert_allclose(ours, theirs, atol=1e-7)
    assert_allclose(propagate(seen).log_Z, propagate(without).log_Z, atol=1e-10)


def test_factors_far_away_stay_numbers(rng):
    factors = make(rng, scale=30.0)
    far = factors._replace(c=factors.c + 100.0 * np.sign(factors.c))
    found = propagate(far)
    assert all(np.isfinite(part).all() for part in found)
    assert np.all(found.tau >= 0)


def test_rows_do_not_depend_on_their_block(rng, monkeypatch):
    factors = make(rng, n=30)
    whole = propagate(factors)
    monkeypatch.setattr("gnomon.models.sppca.propagation.BLOCK_ENTRIES", 20)
    assert_allclose(propagate(factors).log_Z, whole.log_Z, atol=1e-10)
