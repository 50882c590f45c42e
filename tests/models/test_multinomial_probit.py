import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.linalg.data import Matrix
from gnomon.models import bsdr, multinomial_probit
from gnomon.models.bsdr import ClassOutputs, Priors
from gnomon.stats.gamma import kl
from gnomon.stats.ridge import gram_or_dual, spectral

UPDATES = [
    multinomial_probit.update_spread,
    multinomial_probit.update_scores,
    multinomial_probit.update_weights,
    multinomial_probit.update_bias,
    multinomial_probit.update_precisions,
]


def make_problem(kind, rng, shape=(15, 4)):
    X = rng.standard_normal(shape)
    X -= X.mean(axis=0)
    ridge = spectral(Matrix(X), 1.0)[0] if kind == "column" else gram_or_dual(Matrix(X), 1.0)
    return X, bsdr.pose(ridge, ClassOutputs(rng.integers(0, 3, shape[0]), 3), Priors(kind))


@pytest.mark.parametrize("kind", ["entry", "column"])
@pytest.mark.parametrize("shape", [(15, 4), (15, 40)])
def test_no_single_update_lowers_the_bound(kind, shape, rng):
    _, problem = make_problem(kind, rng, shape)
    factors = multinomial_probit.update_scores(multinomial_probit.init(problem), problem)
    value = multinomial_probit.bound(factors, problem)
    for _ in range(15):
        for update in UPDATES:
            factors = update(factors, problem)
            after = multinomial_probit.bound(factors, problem)
            assert after - value >= -1e-10 * abs(value), update.__name__
            value = after


def test_bound_agrees_with_dense_covariances(rng):
    """E log p - E log q with q(V) as dense normal factors."""
    X, problem = make_problem("entry", rng)
    factors = multinomial_probit.init(problem)
    for _ in range(5):
        factors, _ = multinomial_probit.step(factors, problem)
    factors = multinomial_probit.update_scores(
        multinomial_probit.update_spread(factors, problem), problem
    )
    total = problem.outputs.scores(factors.projected + factors.b)[1]
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
    total -= kl(factors.psi, problem.priors.weights) + kl(factors.lam, problem.priors.bias)
    assert_allclose(multinomial_probit.bound(factors, problem), total, atol=1e-6)


def test_packing_keeps_what_a_step_needs(rng):
    _, problem = make_problem("entry", rng)
    start = multinomial_probit.init(problem)
    state, _ = multinomial_probit.step(start, problem)
    again = multinomial_probit.unpack(multinomial_probit.pack(state), start)
    assert_allclose(
        multinomial_probit.step(again, problem)[1], multinomial_probit.step(state, problem)[1]
    )
