"""Intervals hold what they promise, ranks are uniform, and planted faults are noticed by both."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from gnomon import PPCA, PRPCA, SPPCA, BSDRRegressor
from gnomon.estimators import bsdr_regressor
from gnomon.estimators._base import LinearGaussianModel
from gnomon.models.bsdr import gibbs
from gnomon.models.bsdr.factors import Gamma
from gnomon.stats import gaussian

import calibration_posteriors as coverage
import sbc_bsdr as sbc

many = coverage.MANY
CASES = {
    "PPCA": partial(coverage.latents_of_ppca, many),
    "PPCA with gaps": partial(coverage.latents_of_ppca, many, gaps=0.3),
    "SPPCA given x": partial(coverage.latents_of_sppca, many),
    "SPPCA given y": partial(coverage.latents_of_sppca, many, given_y=True),
    "PRPCA": partial(coverage.latents_of_prpca, 300),
    "filled values": partial(coverage.imputed_by_chance, PPCA(2), 400),
    "numbers of SPPCA": partial(
        coverage.predicted, partial(SPPCA, 2), coverage.planted_numbers, 300
    ),
    "numbers of BSDRRegressor": partial(
        coverage.predicted, partial(BSDRRegressor, 2), coverage.planted_numbers, 300
    ),
}


def is_exact(name, repeats=4):
    return coverage.run(CASES[name], repeats)["exact"]


@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_what_they_say(name):
    assert is_exact(name)


def test_high_values_missing_are_not_covered():
    """Where chance does not decide what is missing, no interval here can be right."""
    found = coverage.run(partial(coverage.imputed_high, PPCA(2), 300), 4)
    assert found["shares"][0] < 0.4 and not found["exact"]


def noise_squared(monkeypatch):
    """Noise of the posterior covariance once too often."""
    right = gaussian.latent_posterior

    def wrong(W, sigma2):
        weights, covariance = right(W, sigma2)
        return gaussian.Posterior(weights, sigma2 * covariance)

    monkeypatch.setattr(gaussian, "latent_posterior", wrong)


def complete_covariance(monkeypatch):
    """Rows with gaps as sure as complete ones."""
    right = LinearGaussianModel.posterior

    def wrong(self, X):
        covariance = gaussian.latent_posterior(*self._view()).covariance
        mean = right(self, X).mean
        return mean, np.broadcast_to(covariance, (len(mean), *covariance.shape))

    monkeypatch.setattr(PPCA, "posterior", wrong)


def covariance_without_y(monkeypatch):
    """The mean given x and y, the covariance of x alone."""
    right = SPPCA.posterior

    def wrong(self, X, y=None):
        return right(self, X, y).mean, right(self, X).covariance

    monkeypatch.setattr(SPPCA, "posterior", wrong)


def rows_alike(monkeypatch):
    """Links change nothing in how much a row varies."""
    monkeypatch.setattr(PRPCA, "_row_variance", lambda self: 1.0)


def filled_without_noise(monkeypatch):
    """Deviations of filled values are those of their means."""
    right = PPCA.impute

    def wrong(self, X, return_std):
        filled, std = right(self, X, return_std=True)
        return filled, np.sqrt(np.maximum(std**2 - self.noise_variance_, 1e-6))

    monkeypatch.setattr(PPCA, "impute", wrong)


def numbers_without_noise(monkeypatch):
    """Deviations of predicted numbers without the noise of y."""
    right = SPPCA.predict

    def wrong(self, X, return_std):
        mean, std = right(self, X, return_std=True)
        return mean, np.sqrt(np.maximum(std**2 - coverage.NOISE**2, 1e-6))

    monkeypatch.setattr(SPPCA, "predict", wrong)


def numbers_without_latent_noise(monkeypatch):
    """Deviations of predicted numbers as if z were known."""
    right = bsdr_regressor.number_variances

    def wrong(Z, covariances, B, C, noise):
        return right(Z, 0.0 * covariances, B, C, noise)

    monkeypatch.setattr(bsdr_regressor, "number_variances", wrong)


FAULTS = {
    noise_squared: "PPCA",
    complete_covariance: "PPCA with gaps",
    covariance_without_y: "SPPCA given y",
    rows_alike: "PRPCA",
    filled_without_noise: "filled values",
    numbers_without_noise: "numbers of SPPCA",
    numbers_without_latent_noise: "numbers of BSDRRegressor",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_coverage_notices_a_planted_fault(fault, monkeypatch):
    fault(monkeypatch)
    assert not is_exact(FAULTS[fault])


def prior_draws(X, outputs, kind, rng):
    """A sampler that does not look at the outputs."""
    each = [sbc.simulate("labels", kind, rng)[2] for _ in range(sbc.N_DRAWS)]
    return sbc.Truth(*(np.stack(values) for values in list(zip(*each, strict=True))[:4]))


def test_only_the_log_likelihood_notices_a_sampler_that_ignores_the_outputs():
    found = sbc.verdict(sbc.ranks_of("labels", "entry", range(60), prior_draws))
    failed = {name for name, verdict in found.items() if not verdict["passes"]}
    assert failed == {"log likelihood"}


def test_uniform_ranks_pass_and_others_do_not(rng):
    uniform = rng.integers(0, 100, 500)
    narrow = np.clip(rng.normal(50, 18, 500), 0, 99).astype(int)
    shifted = np.minimum(uniform + 6, 99)
    found = sbc.verdict({"uniform": uniform, "narrow": narrow, "shifted": shifted})
    assert [verdict["passes"] for verdict in found.values()] == [True, False, False]


def test_the_band_holds_nineteen_of_twenty_uniform_samples(rng):
    least = sbc.ecdf_p_values(rng.integers(0, 100, (4000, 60)))
    threshold = np.quantile(least, 0.05)
    fresh = sbc.ecdf_p_values(rng.integers(0, 100, (4000, 60)))
    assert abs(np.mean(fresh < threshold) - 0.05) < 0.015


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classes", "labels", "numbers"])
def test_ranks_of_the_truth_are_uniform(name):
    found = sbc.verdict(sbc.ranks_of(name, "entry", range(80)))
    assert all(verdict["passes"] for verdict in found.values()), found


def rate_for_scale(monkeypatch):
    """Precisions drawn with the scale as a rate."""
    right = gibbs._draw_gamma
    wrong = lambda law, rng: right(Gamma(law.shape, 1.0 / law.scale), rng)  # noqa: E731
    monkeypatch.setattr(gibbs, "_draw_gamma", wrong)


def bias_dropped(monkeypatch):
    """The bias is left at nothing."""
    right = gibbs.draw_weights

    def wrong(*given):
        draw = right(*given)
        B = draw.B.copy()
        B[..., 0, :] = 0.0
        return draw._replace(B=B)

    monkeypatch.setattr(gibbs, "draw_weights", wrong)


class Silent(np.random.Generator):
    """A generator whose normal draws are zero."""

    def standard_normal(self, size=None):
        return np.zeros(size)


def latent_without_noise(monkeypatch):
    """Z at its conditional mean."""
    right = gibbs.draw_latent

    def wrong(*given):
        silent = [
            Silent(one.bit_generator) if isinstance(one, np.random.Generator) else one
            for one in given
        ]
        return right(*silent)

    monkeypatch.setattr(gibbs, "draw_latent", wrong)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [rate_for_scale, bias_dropped, latent_without_noise])
def test_ranks_notice_a_planted_fault(fault, monkeypatch):
    fault(monkeypatch)
    found = sbc.verdict(sbc.ranks_of("numbers", "entry", range(150)))
    assert not all(verdict["passes"] for verdict in found.values())


@pytest.mark.slow
def test_the_variational_posterior_of_loadings_is_too_narrow():
    """Known and published: a mean field cuts what projection and weights have together."""
    found = coverage.run(partial(coverage.many, partial(coverage.bayesian_loadings, None), 50), 2)
    assert found["shares"][2] < 0.85


@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
@pytest.mark.slow
def test_filled_values_of_linked_rows_are_covered(relation):
    found = coverage.run(partial(coverage.imputed_linked, relation, 300), 5)["shares"]
    assert_allclose(found, coverage.LEVELS, atol=0.04)
