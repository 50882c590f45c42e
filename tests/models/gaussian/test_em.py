from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import multivariate_normal

from gnomon.inference.loop import Method, iterate
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Matrix
from gnomon.linalg.eigen import from_moments
from gnomon.models.gaussian.em import accelerated, em_step, past_saddles
from gnomon.models.gaussian.ppca import closed_form
from gnomon.stats.gaussian import View

n, d, c, q = 40, 5, 2, 2


@pytest.fixture
def sample(rng):
    Z = rng.normal(size=(n, q))
    X = Z @ rng.normal(size=(q, d)) + 0.5 * rng.normal(size=(n, d))
    Y = Z @ rng.normal(size=(q, c)) + 0.3 * rng.normal(size=(n, c))
    views = View(rng.normal(size=(d, q)), 0.8), View(rng.normal(size=(c, q)), 0.6)
    return X, Y, views


def half_labelled(X, Y):
    return [(Matrix(X[:20]), Matrix(Y[:20])), (Matrix(X[20:]), None)]


def test_objective_is_the_gaussian_log_density(sample):
    X, Y, (x, y) = sample
    W = np.vstack([x.W, y.W])
    C = W @ W.T + np.diag([x.sigma2] * d + [y.sigma2] * c)
    labelled = multivariate_normal(cov=C).logpdf(np.hstack([X, Y])[:20]).sum()
    unlabelled = multivariate_normal(cov=C[:d, :d]).logpdf(X[20:]).sum()
    assert_allclose(em_step((x, y), half_labelled(X, Y))[1], labelled + unlabelled)


@pytest.mark.parametrize("expand", [False, True])
def test_em_never_descends(sample, expand):
    X, Y, views = sample
    step = partial(em_step, blocks=half_labelled(X, Y), expand=expand)
    run = iterate(Method(views, step), max_iter=200, tol=0)
    assert np.diff(run.objective).min() > -1e-9


def test_expansion_reaches_the_same_maximum_in_fewer_steps(sample):
    X, Y, views = sample
    blocks = half_labelled(X, Y)
    plain = iterate(Method(views, partial(em_step, blocks=blocks)), max_iter=5000, tol=1e-10)
    fast = iterate(
        Method(views, partial(em_step, blocks=blocks, expand=True)), max_iter=5000, tol=1e-10
    )
    assert_allclose(fast.objective[-1], plain.objective[-1], atol=1e-6)
    assert len(fast.objective) < len(plain.objective)


def test_storage_does_not_change_the_step(sample):
    X, _, (x, _) = sample
    parts = Blocks([Matrix(X[:11]), Matrix(sparse.csr_array(X[11:]))])
    (expected,), _ = em_step((x,), [(Matrix(X),)])
    (actual,), _ = em_step((x,), [(parts,)])
    assert_allclose(actual.W, expected.W)
    assert_allclose(actual.sigma2, expected.sigma2)


def test_one_view_converges_to_principal_components(sample):
    X, _, (x, _) = sample
    X = X - X.mean(axis=0)
    run = iterate(Method((x,), partial(em_step, blocks=[(Matrix(X),)])), max_iter=20000, tol=1e-11)
    eigenvalues, U = np.linalg.eigh(X.T @ X / n)
    sigma2 = eigenvalues[:-q].mean()
    W = U[:, -q:] * np.sqrt(eigenvalues[-q:] - sigma2)
    assert_allclose(run.state[0].sigma2, sigma2, rtol=1e-4)
    assert_allclose(run.state[0].W @ run.state[0].W.T, W @ W.T, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kept", [(0, 2), (1, 2), (2, 3)])
def test_a_stationary_point_that_is_no_maximum_is_left(kept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6)) * np.sqrt([9.0, 5.0, 3.0, 2.0, 0.5, 0.4])
    X = X @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    X = Matrix(X - X.mean(axis=0))
    values, axes = np.linalg.eigh(X.X.T @ X.X / 60)
    values, axes = values[::-1], axes[:, ::-1]
    others = np.setdiff1d(np.arange(6), kept)
    sigma2 = values[others].mean()
    saddle = View(axes[:, kept] * np.sqrt(np.maximum(values[list(kept)] - sigma2, 0.1)), sigma2)
    best = closed_form(from_moments(X, 2), 2, 60)
    method = accelerated(X, (saddle,))
    assert iterate(method, max_iter=50, tol=1e-7).objective[-1] < best.log_likelihood - 1
    run = iterate(past_saddles(X, method, 1e-7), max_iter=50, tol=1e-7)
    assert run.converged and np.diff(run.objective).min() > -1e-9
    assert_allclose(run.objective[-1], best.log_likelihood, rtol=1e-9)
    (view,) = run.state
    assert_allclose(view.W @ view.W.T, best.view.W @ best.view.W.T, atol=1e-3)


def test_axes_that_fill_the_space_have_no_others():
    X = Matrix(np.random.default_rng(0).standard_normal((30, 3)))
    view = View(np.eye(3), 0.1)
    method = past_saddles(X, accelerated(X, (view,)), 1e-7)
    assert iterate(method, max_iter=500, tol=1e-7).converged
