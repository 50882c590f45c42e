from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal

from gnomon.inference.loop import Method, iterate, momentum
from gnomon.linalg import graph
from gnomon.linalg.data import Matrix, center
from gnomon.models.relational import model, rounds


def test_likelihood_is_the_dense_gaussian(state, data, X, covariance_of):
    expected = multivariate_normal(cov=covariance_of(state)).logpdf(X.ravel())
    stats = model.measure(state.U, 2, data)
    assert_allclose(model.log_likelihood(state, stats), expected, rtol=1e-12)
    assert_allclose(model.step(state, data)[1], expected, rtol=1e-12)


@pytest.mark.parametrize("smallest", [1.0, 1e-3, 1e-6, 0.0])
def test_the_nearest_orthonormal_matrix_is_the_polar_factor(rng, smallest):
    """By squares where they have the digits, else by QR: both the factor of an SVD."""
    left, turn = (np.linalg.qr(rng.normal(size=(size, 6)))[0] for size in (40, 6))
    U = model.orthonormal(left * np.geomspace(1, smallest or 1, 6) @ turn.T)
    assert_allclose(U, left @ turn.T, atol=1e-8)
    if smallest == 0:
        U = model.orthonormal(left * np.array([1, 1, 1, 1, 1, 0.0]) @ turn.T)
    assert_allclose(U.T @ U, np.eye(6), atol=1e-14)


def test_gradient_of_the_profile_equals_differences(state, data, rng):
    stats = model.measure(state.U, 2, data)
    for _ in range(5):
        error = check_grad(
            lambda x: model._profile(x, stats, 5)[0],
            lambda x: model._profile(x, stats, 5)[1],
            rng.normal(size=1 + 3 * 2),
        )
        assert error < 1e-5
    # Noise so high that own axes are below it, which gives their terms a slope.
    high = np.append(np.log(stats.own.max()), np.zeros(6))
    assert model._own_terms(stats.own, len(stats.coordinates), np.exp(high[0]))[1] != 0
    parts = (lambda x, i=i: model._profile(x, stats, 5)[i] for i in (0, 1))
    assert check_grad(*parts, high) < 1e-5


def test_variances_are_a_maximum(state, data, rng):
    stats = model.measure(state.U, 2, data)
    best = model.fit_variances(state, stats, max_iter=500)
    top = model.log_likelihood(best, stats)
    for _ in range(20):
        a, c, b, s = (np.exp(0.05 * rng.standard_normal(size)) for size in (2, 3, 2, None))
        near = model.State(best.U, best.a * a, best.c * c, best.beta * b, best.sigma2 * s)
        assert model.log_likelihood(near, stats) <= top + 1e-7


def test_likelihood_never_falls(state, data):
    run = iterate(Method(state, partial(model.step, data=data)), max_iter=60, tol=0)
    assert np.diff(run.objective).min() > -1e-9 * abs(run.objective[0])


def test_acceleration_is_three_times_as_fast_along_a_ridge_and_never_falls(linked, rng):
    """The axes span the leading subspace, turned within it: plain steps creep back."""
    X, A = linked
    data = model.link(center(Matrix(X))[1], A, rng)
    turn, leading = (np.linalg.qr(rng.standard_normal((4, 4)))[0], np.linalg.eigh(np.cov(X.T))[1])
    start = model.State(leading[:, -4:] @ turn, np.ones(2), np.ones(4), np.ones(2), 0.3)
    plain = Method(start, partial(model.step, data=data))
    slow = iterate(plain, max_iter=48, tol=0)
    fast = iterate(momentum(plain, model.extrapolate), max_iter=16, tol=0)
    assert fast.objective[-1] > slow.objective[-1]
    assert np.diff(fast.objective).min() > -1e-9 * abs(fast.objective[0])


def test_without_shared_variance_the_model_is_ppca(data, X):
    values, U = np.linalg.eigh(X.T @ X / len(X))
    U = U[:, ::-1][:, :3]
    state, log_likelihood = model.independent(U, 2, data)
    C = U @ np.diag(state.c) @ U.T + state.sigma2 * np.eye(5)
    assert_allclose(log_likelihood, multivariate_normal(cov=C).logpdf(X).sum())
    stats = model.measure(U, 2, data)
    assert_allclose(model.log_likelihood(state, stats), log_likelihood)
    assert_allclose(state.sigma2, values[:2].mean())


def test_renaming_nodes_changes_nothing(state, data, X, A, rng):
    order = rng.permutation(len(X))
    _, rows = center(Matrix(X[order]))
    moved = model.link(rows, A[order][:, order], rng, steps=len(X))
    after, objective = model.step(state, moved)
    expected, before = model.step(state, data)
    assert_allclose(objective, before)
    assert_allclose(after.U @ after.U.T, expected.U @ expected.U.T, atol=1e-6)


def test_what_gaps_add_is_counted_in_the_mean(state, data, rng):
    B = rng.standard_normal((5, 5))
    B = B @ B.T
    wider = data._replace(gap_covariance=B, total=data.total + np.trace(B))
    actual = model.log_likelihood(state, model.measure(state.U, 2, wider))
    lam, counts = data.spectrum
    v = model.variances_at(state, lam[:, None])
    flat = np.concatenate([counts @ (1 / v) / len(lam), 1 / (state.c[2:] + state.sigma2)])
    inside = np.einsum("dk,de,ek->k", state.U, B, state.U)
    loss = flat @ inside + (np.trace(B) - inside.sum()) / state.sigma2
    plain = model.log_likelihood(state, model.measure(state.U, 2, data))
    assert_allclose(actual, plain - loss / 2)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_axes_are_turned_to_the_polar_factor_of_the_tangent(state, data, X, rng, share):
    n, B = len(X), rng.standard_normal((5, 5))
    B = share * B @ B.T
    L = np.eye(n) - data.S.toarray()
    M = np.empty((5, 3))
    for k in range(3):
        v = (state.c[k] + state.sigma2) * np.eye(n)
        if k < 2:
            inner = np.linalg.inv(np.eye(n) + state.beta[k] * L)
            v += state.a[k] * inner @ inner
        G = np.eye(n) - state.sigma2 * np.linalg.inv(v)
        M[:, k] = (X.T @ G @ X + np.trace(G) / n * B) @ state.U[:, k]
    left, _, right = np.linalg.svd(M, full_matrices=False)
    wider = data._replace(gap_covariance=B if share else None)
    stats = model.measure(state.U, 2, wider)
    assert_allclose(model.turn_axes(state, stats, wider), left @ right, atol=1e-12)


def test_final_variances_are_in_order_and_no_less_likely(state, data):
    swapped = state._replace(U=state.U[:, [1, 0, 2]], a=state.a[::-1], beta=state.beta[::-1])
    stats = model.measure(swapped.U, 2, data)
    final, log_likelihood = model.final_variances(swapped, data)
    assert log_likelihood >= model.log_likelihood(swapped, stats)
    assert np.diff(model.shared_variance(final, data.spectrum)).max() <= 0
    again = model.log_likelihood(final, model.measure(final.U, 2, data))
    assert_allclose(again, log_likelihood)


def test_own_axes_are_in_order_of_their_variances(data, rng):
    axes = np.linalg.qr(rng.standard_normal((len(data.X.gram()), 5)))[0]
    final, _ = model.final_variances(rounds.init(axes, 2, data), data)
    assert len(final.c) == 5 and np.diff(final.c[2:]).max() <= 0 < np.ptp(final.c[2:])


def test_planted_smooth_axes_are_found(rng):
    size, width = 600, 12
    A = sparse.random_array((size, size), density=0.006, rng=rng)
    A = graph.without_loops(graph.undirected((A > 0).astype(float)))
    lam, V = np.linalg.eigh(np.eye(size) - graph.normalized(A).toarray())
    U = np.linalg.qr(rng.standard_normal((width, 3)))[0]
    smooth = (
        (V * (1 + 20 * np.maximum(lam, 0))[None, :] ** -1) @ rng.standard_normal((size, 2)) * 20
    )
    own = 3 * rng.standard_normal((size, 1))
    X = np.hstack([smooth, own]) @ U.T + 0.5 * rng.standard_normal((size, width))
    _, X = center(Matrix(X))
    data = model.link(X, A, rng)
    _, principal = np.linalg.eigh(X.gram())
    principal = principal[:, ::-1][:, :3]
    start = rounds.init(rounds.smoothest_first(data, principal, 2), 2, data)
    run = iterate(Method(start, partial(model.step, data=data)), max_iter=40, tol=1e-6)
    fitted, log_likelihood = model.final_variances(run.state, data)
    gap = fitted.U[:, :2] @ fitted.U[:, :2].T - U[:, :2] @ U[:, :2].T
    assert np.linalg.norm(gap, 2) < 0.15
    assert log_likelihood > model.independent(principal, 2, data)[1] + 50
    assert_allclose(fitted.sigma2, 0.25, rtol=0.1)
