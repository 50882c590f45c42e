import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import ndtr
from sklearn.datasets import load_wine

from gnomon import MultinomialProbit
from gnomon.inference.loop import iterate
from gnomon.linalg.data import Matrix, as_data
from gnomon.models.bsdr import multinomial
from gnomon.models.bsdr.factors import Gamma, Priors, kl, make_model
from gnomon.models.bsdr.inputs import gram_or_dual_ridge, spectral_ridge
from gnomon.models.bsdr.outputs import ClassOutputs

UPDATES = [
    multinomial.update_covariances,
    multinomial.update_scores,
    multinomial.update_weights,
    multinomial.update_bias,
    multinomial.update_precisions,
]


def small_model(kind, rng, shape=(15, 4)):
    X = rng.standard_normal(shape)
    X -= X.mean(axis=0)
    route = spectral_ridge if kind == "column" else gram_or_dual_ridge
    return X, make_model(
        route(Matrix(X), 1.0), ClassOutputs(rng.integers(0, 3, shape[0]), 3), Priors(kind)
    )


@pytest.mark.parametrize("kind", ["entry", "column"])
@pytest.mark.parametrize("shape", [(15, 4), (15, 40)])
def test_no_single_update_lowers_the_bound(kind, shape, rng):
    _, model = small_model(kind, rng, shape)
    factors = multinomial.update_scores(multinomial.start(model), model)
    value = multinomial.bound(factors, model)
    for _ in range(15):
        for update in UPDATES:
            factors = update(factors, model)
            after = multinomial.bound(factors, model)
            assert after - value >= -1e-10 * abs(value), update.__name__
            value = after


def test_bound_agrees_with_dense_covariances(rng):
    """E log p - E log q with q(V) as dense normal factors."""
    X, model = small_model("entry", rng)
    factors = multinomial.start(model)
    for _ in range(5):
        factors, _ = multinomial.step(factors, model)
    factors = multinomial.update_scores(multinomial.update_covariances(factors, model), model)
    total = model.outputs.scores(factors.projected + factors.b)[1]
    for k in range(3):
        S = np.linalg.inv(np.diag(factors.psi.mean[:, k]) + X.T @ X)
        second = S + np.outer(factors.V[:, k], factors.V[:, k])
        total += 0.5 * np.sum(factors.psi.log_mean[:, k])
        total -= 0.5 * np.sum(factors.psi.mean[:, k] * np.diag(second))
        total += 0.5 * (np.linalg.slogdet(S)[1] + len(S))
        total -= 0.5 * (np.trace(X.T @ X @ S) + len(X) * factors.b_variance[k])
        b2 = factors.b[k] ** 2 + factors.b_variance[k]
        total += 0.5 * (factors.lam.log_mean[k] - factors.lam.mean[k] * b2)
        total += 0.5 * (np.log(factors.b_variance[k]) + 1)
    total -= kl(factors.psi, model.priors.weights) + kl(factors.lam, model.priors.bias)
    assert_allclose(multinomial.bound(factors, model), total, atol=1e-6)


def test_packing_keeps_what_a_step_needs(rng):
    _, model = small_model("entry", rng)
    start = multinomial.start(model)
    state, _ = multinomial.step(start, model)
    again = multinomial.unpack(multinomial.pack(state), start)
    assert_allclose(multinomial.step(again, model)[1], multinomial.step(state, model)[1])


def settings(**other):
    plain = multinomial.Settings("entry", Gamma(1.0, 1.0), True, max_iter=100, tol=1e-4)
    return plain._replace(**other)


@pytest.mark.parametrize("prior", ["entry", "column"])
def test_the_fit_is_that_of_the_estimator(prior):
    X, y = load_wine(return_X_y=True)
    problem = multinomial.Problem(Matrix(X), ClassOutputs(y, 3))
    found = multinomial.fit(problem, settings(prior=prior), iterate)
    model = MultinomialProbit(prior=prior).fit(X, y)
    assert found.run.converged
    assert np.diff(found.run.objective).min() > -1e-9
    assert found.run.objective == model.objective_
    assert_allclose(found.loadings.T, model.coef_, rtol=1e-12)
    assert_allclose(found.loadings_sd.T, model.coef_sd_, rtol=1e-12)


def test_weight_priors_hold_weights_and_biases(rng):
    """A prior that is sure of large precisions leaves nothing of either."""
    X, y = rng.standard_normal((60, 3)), (np.arange(60) < 50).astype(int)
    problem = multinomial.Problem(Matrix(X), ClassOutputs(y, 2))
    strict = multinomial.fit(problem, settings(weight_prior=Gamma(1e8, 1.0)), iterate)
    assert np.abs(strict.loadings).max() < 1e-3
    assert np.abs(strict.bias).max() < 1e-3
    free = multinomial.fit(problem, settings(), iterate)
    assert_allclose(ndtr((free.bias[1] - free.bias[0]) / np.sqrt(2)), 5 / 6, atol=0.02)


def test_only_wide_sparse_rows_share_precisions():
    shapes = {(5, 9): "column", (9, 5): "entry", (9, 9): "entry"}
    for shape, kind in shapes.items():
        assert multinomial.choose_prior(as_data(sparse.csr_array(np.eye(*shape))), "auto") == kind
        assert multinomial.choose_prior(Matrix(np.ones(shape)), "auto") == "entry"
