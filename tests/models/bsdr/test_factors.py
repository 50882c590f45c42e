import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import sweeps
from gnomon.models.bsdr.factors import (
    Gamma,
    Priors,
    bound,
    join,
    kl,
    log_densities,
    make_model,
    of_entries,
    precision_posterior,
    reorder,
    score_means,
    separate,
    sum_shared,
)
from gnomon.models.bsdr.fit import random_start
from gnomon.models.bsdr.inputs import gram_or_dual_ridge, spectral_ridge
from gnomon.models.bsdr.outputs import NumberOutputs, SignOutputs

q, p = Gamma(2.5, 0.7), Gamma(1.5, 2.0)


def test_moments_are_those_of_scipy():
    law = stats.gamma(q.shape, scale=q.scale)
    assert_allclose(q.mean, law.mean())
    assert_allclose(q.log_mean, law.expect(np.log), rtol=1e-6)


def test_kl_equals_the_integral():
    f, g = stats.gamma(q.shape, scale=q.scale), stats.gamma(p.shape, scale=p.scale)
    expected, _ = quad(lambda x: f.pdf(x) * (f.logpdf(x) - g.logpdf(x)), 0, np.inf)
    assert_allclose(kl(q, p), expected, rtol=1e-6)


def test_kl_sums_over_entries():
    many = Gamma(2.5, np.full((3, 2), 0.7))
    assert_allclose(kl(many, p), 6 * kl(q, p))


def test_precision_posterior_is_conjugate():
    x = np.array([0.5, -1.0, 2.0])
    posterior = precision_posterior(p, 3, np.sum(x**2))
    grid = np.array([0.3, 1.0, 2.0])

    def log_joint(precision):
        return log_densities(precision, p) + stats.norm(0, precision**-0.5).logpdf(x).sum()

    ratio = [log_joint(g) - log_densities(g, posterior) for g in grid]
    assert_allclose(np.ptp(ratio), 0, atol=1e-10)


def test_vectors_come_apart_as_they_were_joined(rng):
    parts = [rng.standard_normal(shape) for shape in [(2, 3), (4,), (1, 2, 2)]]
    again = separate(join(parts), [part.shape for part in parts])
    for part, back in zip(parts, again, strict=True):
        assert_array_equal(back, part)


def test_rows_with_the_same_gaps_are_one_pattern(rng):
    signs = np.array([[1.0, 0.0], [1.0, -1.0], [-1.0, 0.0], [1.0, 1.0]])
    ridge = gram_or_dual_ridge(Matrix(rng.standard_normal((4, 3))), 1.0)
    patterns = make_model(ridge, SignOutputs(signs), Priors()).patterns
    assert_array_equal(patterns.masks[patterns.of_row], signs != 0)
    assert_array_equal(patterns.counts, [2, 2])


@pytest.mark.parametrize(("kind", "shape"), [("entry", (3, 2)), ("column", (2,)), ("row", (3,))])
def test_shared_squares_have_the_shape_of_the_precisions(kind, shape, rng):
    values = rng.uniform(size=(3, 2))
    shared = sum_shared(values, kind)
    assert shared.shape == shape
    assert_allclose(shared.sum(), values.sum())
    assert of_entries(shared, kind, (3, 2)).shape == (3, 2)


@pytest.mark.parametrize("kind", ["entry", "column", "row"])
def test_order_and_signs_of_components_change_nothing(kind, rng):
    X = rng.standard_normal((20, 5))
    known = rng.random((20, 4)) < 0.8
    outputs = NumberOutputs(rng.standard_normal((20, 4)) * known, known.astype(float))
    route = spectral_ridge if kind == "column" else gram_or_dual_ridge
    model = make_model(route(Matrix(X), 1.0), outputs, Priors(kind))
    factors, _ = sweeps.step(sweeps.start(model, random_start(model, 3, rng)), model)
    other = reorder(factors, [2, 0, 1], np.array([1.0, -1.0, -1.0]), kind)
    assert_allclose(bound(other, model), bound(factors, model), rtol=1e-12)
    assert_allclose(score_means(other), score_means(factors), atol=1e-12)
    assert_allclose(sweeps.step(other, model)[1], sweeps.step(factors, model)[1], rtol=1e-12)
    R = rng.standard_normal(factors.P.shape)
    solved, turned = (
        model.ridge.solve(f.phi.mean, f.P_covariances, r)
        for f, r in ((factors, R), (other, R[:, [2, 0, 1]]))
    )
    assert_allclose(turned, solved[:, [2, 0, 1]], rtol=1e-10)


def test_log_densities_of_draws_are_those_of_the_gamma_distribution():
    x, p = np.array([0.3, 1.7, 4.0]), Gamma(2.5, 0.6)
    assert_allclose(log_densities(x, p), stats.gamma(p.shape, scale=p.scale).logpdf(x))
