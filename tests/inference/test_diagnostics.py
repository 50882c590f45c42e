import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.inference.diagnostics import bulk_ess, split_rhat, tail_ess


def autoregression(rng, rho, chains=4, n=4000):
    x = np.zeros((chains, n))
    noise = rng.standard_normal((chains, n)) * np.sqrt(1 - rho**2)
    x[:, 0] = rng.standard_normal(chains)
    for i in range(1, n):
        x[:, i] = rho * x[:, i - 1] + noise[:, i]
    return x


def test_independent_draws_count_in_full(rng):
    x = rng.standard_normal((4, 1000, 2))
    assert np.all(split_rhat(x) < 1.01)
    assert_allclose(bulk_ess(x), 4000, rtol=0.25)
    assert_allclose(tail_ess(x), 4000, rtol=0.3)


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_correlated_draws_count_less(rho, rng):
    x = autoregression(rng, rho)
    assert_allclose(bulk_ess(x), 16000 * (1 - rho) / (1 + rho), rtol=0.2)


def test_chains_apart_are_seen(rng):
    x = rng.standard_normal((4, 500)) + np.arange(4)[:, None]
    assert split_rhat(x) > 1.5


def test_chains_of_other_width_are_seen(rng):
    x = rng.standard_normal((4, 500)) * np.array([1, 1, 1, 5])[:, None]
    assert split_rhat(x) > 1.05


def test_drift_within_a_chain_is_seen(rng):
    x = rng.standard_normal((2, 500)) + np.linspace(0, 3, 500)
    assert split_rhat(x) > 1.2


def test_constant_draws_are_finite():
    x = np.ones((2, 50))
    assert split_rhat(x) == 1.0
    assert bulk_ess(x) == 100


@pytest.mark.slow
def test_agrees_with_arviz(rng):
    arviz = pytest.importorskip("arviz")
    x = autoregression(rng, 0.7, n=501)
    assert_allclose(split_rhat(x), float(arviz.rhat(x)), rtol=1e-6)
    assert_allclose(bulk_ess(x), float(arviz.ess(x)), rtol=0.02)
    assert_allclose(tail_ess(x), float(arviz.ess(x, method="tail")), rtol=0.1)
