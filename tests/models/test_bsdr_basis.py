"""Changes of basis: what they leave, what they gain, against the bound itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from sklearn.datasets import load_wine

from gnomon.linalg.data import Matrix
from gnomon.models import bsdr, bsdr_basis
from gnomon.models import bsdr_variational as variational
from gnomon.models.bsdr_bound import bound, score_means
from gnomon.models.bsdr_inputs import read_inputs

R = np.array([[1.2, -0.3], [0.4, 0.8]])


@pytest.fixture(params=["entry", "column", "row"])
def fitted(request, rng):
    """A problem and its factors after a few sweeps, precisions at their best."""
    X, y = load_wine(return_X_y=True)
    _, ridge = read_inputs(Matrix(X), request.param, 0.1, True)
    problem = bsdr.pose(ridge, bsdr.ClassOutputs(y, 3), bsdr.Priors(request.param))
    factors = variational.init(problem, bsdr.random_start(problem, 2, rng))
    for _ in range(3):
        factors, _ = variational.step(factors, problem)
    return problem, bsdr_basis._turned(factors, np.eye(2), problem)


def test_scores_stay_as_they_are(fitted):
    problem, factors = fitted
    turned = bsdr_basis._turned(factors, R, problem)
    assert_allclose(score_means(turned), score_means(factors), atol=1e-10)


def test_loss_is_that_of_the_bound(fitted):
    problem, factors = fitted
    moments = bsdr_basis._moments(factors, problem)
    turned = bsdr_basis._turned(factors, R, problem)
    before, after = (bsdr_basis._loss(x, moments, problem)[0] for x in (np.eye(2).ravel(), R))
    gain = bound(turned, problem) - bound(factors, problem)
    assert_allclose(gain, problem.n_samples * (before - after), rtol=1e-9)


def test_gradient_agrees_with_differences(fitted):
    problem, factors = fitted
    moments = bsdr_basis._moments(factors, problem)
    numeric = approx_fprime(R.ravel(), lambda x: bsdr_basis._loss(x, moments, problem)[0], 1e-7)
    assert_allclose(bsdr_basis._loss(R.ravel(), moments, problem)[1], numeric, atol=1e-5)


def test_a_poor_basis_is_mended(fitted):
    """A basis that sweeps would leave slowly is left at once."""
    problem, factors = fitted
    poor = bsdr_basis._turned(factors, 3 * R, problem)
    swept = variational.update_latent(variational.update_projection(poor, problem), problem)
    mended = bsdr_basis.update_basis(poor, problem)
    assert bound(mended, problem) > bound(swept, problem)
    assert bound(mended, problem) > bound(factors, problem) - 1.0
