"""Values that were not written here: stored ones of R and ppca-py, live ones of scikit-learn.

tests/references/make.py stores the former, so that neither program is needed to compare.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import BayesianRidge
from sklearn.mixture import GaussianMixture

from gnomon import DCAGM, PPCA, BSDRRegressor

VALUES = json.loads((Path(__file__).parent / "references" / "values.json").read_text())


@pytest.fixture
def complete():
    return np.array(VALUES["complete"])


@pytest.fixture
def gaps(complete):
    missing = np.zeros(complete.shape, dtype=bool)
    missing[tuple(np.transpose(VALUES["missing"]))] = True
    return np.where(missing, np.nan, complete)


def span(rows):
    """Projector onto the span of some rows."""
    Q = np.linalg.qr(np.transpose(rows))[0]
    return Q @ Q.T


def test_complete_rows_have_the_map_of_pca_methods(complete):
    model, theirs = PPCA(2).fit(complete), VALUES["pcaMethods"]
    loadings = np.array(theirs["complete_loadings"])
    assert_allclose(span(model.components_), span(loadings.T), atol=1e-10)
    projected = (complete - complete.mean(axis=0)) @ span(model.components_)
    assert_allclose(np.array(theirs["complete_scores"]) @ loadings.T, projected, atol=1e-10)


def test_complete_rows_have_the_covariance_of_ppca_py(complete):
    model, theirs = PPCA(2).fit(complete), VALUES["ppca-py"]
    assert_allclose(model.get_covariance(), theirs["complete_covariance"], atol=1e-4)
    assert_allclose(model.noise_variance_, theirs["complete_noise"], rtol=1e-6)
    assert_allclose(model.mean_, theirs["complete_mean"])


def test_filled_values_are_near_those_of_both(gaps, complete):
    """Both hold the mean at that of what is observed, which is not the maximum."""
    filled, missing = PPCA(2, tol=1e-12).fit(gaps).impute(gaps), np.isnan(gaps)
    error = np.sqrt(np.mean((filled - complete)[missing] ** 2))
    for who in ("pcaMethods", "ppca-py"):
        theirs = np.array(VALUES[who]["gaps_filled"])
        apart = np.sqrt(np.mean((filled - theirs)[missing] ** 2))
        assert apart < 0.2 * error
        assert error < 1.01 * np.sqrt(np.mean((theirs - complete)[missing] ** 2))


def test_with_gaps_the_likelihood_is_above_that_of_ppca_py(gaps):
    theirs = VALUES["ppca-py"]
    mean, covariance = np.array(theirs["gaps_mean"]), np.array(theirs["gaps_covariance"])
    dense = 0.0
    for row in gaps:
        seen = ~np.isnan(row)
        if seen.any():
            part = covariance[np.ix_(seen, seen)]
            dense += multivariate_normal(mean[seen], part).logpdf(row[seen])
    assert_allclose(dense, theirs["gaps_score"], rtol=1e-8)
    assert PPCA(2, tol=1e-12).fit(gaps).score_samples(gaps).sum() > dense + 0.5


def test_covariance_is_that_of_scikit_learns_pca_over_n(complete):
    n = len(complete)
    ours, theirs = PPCA(2).fit(complete), PCA(2, svd_solver="full").fit(complete)
    assert_allclose(ours.get_covariance(), (n - 1) / n * theirs.get_covariance(), atol=1e-12)
    assert_allclose(ours.get_precision(), n / (n - 1) * theirs.get_precision(), atol=1e-10)


def test_densities_are_those_of_factor_analysis_with_equal_noise(complete):
    """The same formulas at the same parameters, written elsewhere."""
    ours = PPCA(2).fit(complete)
    theirs = FactorAnalysis(2).fit(complete)
    theirs.components_, theirs.mean_ = ours.components_, ours.mean_
    theirs.noise_variance_ = np.full(complete.shape[1], ours.noise_variance_)
    assert_allclose(ours.score_samples(complete), theirs.score_samples(complete))
    assert_allclose(ours.transform(complete), theirs.transform(complete))


def test_one_component_less_than_features_is_one_gaussian(complete):
    """With one direction of noise the covariance is that of the rows."""
    ours = PPCA(complete.shape[1] - 1).fit(complete)
    theirs = GaussianMixture(1, reg_covar=0.0).fit(complete)
    assert_allclose(ours.score_samples(complete), theirs.score_samples(complete))


def test_many_rows_have_the_coefficients_of_bayesian_ridge(rng):
    """One output of one component: a product of two factors, whose prior many rows outweigh."""
    X = rng.standard_normal((800, 4))
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.5 * rng.standard_normal(800) + 3
    ours = BSDRRegressor(1, latent_noise=0.01, random_state=0, max_iter=500).fit(X, y)
    theirs = BayesianRidge().fit(X, y)
    new = rng.standard_normal((50, 4))
    mean, std = ours.predict(new, return_std=True)
    their_mean, their_std = theirs.predict(new, return_std=True)
    assert_allclose(mean, their_mean, atol=0.02)
    assert_allclose(std, their_std, rtol=0.03)


def test_gaussian_classes_of_one_covariance_are_told_apart_as_by_lda(rng):
    y = np.arange(600) % 3
    X = 3 * rng.standard_normal((3, 5))[y] + rng.standard_normal((600, 5))
    ours, theirs = DCAGM(2, random_state=0).fit(X, y), LinearDiscriminantAnalysis().fit(X, y)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
