from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal

from gnomon.inference.loop import Method, iterate, momentum
from gnomon.linalg import graph, lanczos
from gnomon.linalg.data import Matrix, center
from gnomon.models import relational
from gnomon.models import relational_heldout as heldout
from gnomon.models import relational_posterior as posterior

n, d, q, r = 14, 5, 2, 1


@pytest.fixture
def A(rng):
    upper = np.triu(rng.random((n, n)) < 0.2, 1).astype(float)
    upper[0, :] = 0  # an isolated node
    return sparse.csr_array(upper + upper.T)


@pytest.fixture
def data(A, rng):
    S = graph.normalized(A)
    _, X = center(Matrix(rng.standard_normal((n, d)) @ rng.standard_normal((d, d))))
    return relational.link(X, S, lanczos.density(S, None, rng), steps=n)


@pytest.fixture
def state(rng):
    U = np.linalg.qr(rng.standard_normal((d, q + r)))[0]
    return relational.Relational(
        U, np.array([2.0, 0.7]), np.array([0.4, 0.1, 0.9]), np.array([3.0, 0.5]), 0.3
    )


def rows(data):
    return np.concatenate(list(data.X.dense_blocks()))


def parts(state, S):
    """Covariances (n d, n d) of the shared part, the own part and the noise, rows first."""
    L = np.eye(len(S)) - S
    shared = np.zeros((len(S) * d, len(S) * d))
    own = np.zeros_like(shared)
    for k in range(q + r):
        u = np.outer(state.U[:, k], state.U[:, k])
        if k < q:
            inner = np.linalg.inv(np.eye(len(S)) + state.beta[k] * L)
            shared += np.kron(state.a[k] * inner @ inner, u)
        own += np.kron(state.c[k] * np.eye(len(S)), u)
    return shared, own, state.sigma2 * np.eye(len(S) * d)


def test_likelihood_is_the_dense_gaussian(state, data):
    C = sum(parts(state, data.S.toarray()))
    expected = multivariate_normal(cov=C).logpdf(rows(data).ravel())
    stats = relational.measure(state.U, q, data)
    assert_allclose(relational.log_likelihood(state, stats), expected, rtol=1e-12)
    assert_allclose(relational.step(state, data)[1], expected, rtol=1e-12)


def test_shared_part_and_signal_are_the_conditional_means(state, data):
    shared, own, noise = parts(state, data.S.toarray())
    X = rows(data)
    K = np.linalg.inv(shared + own + noise)
    scores = X @ state.U
    f = posterior.shared_part(state, data.S, scores, steps=n)
    expected = (shared @ K @ X.ravel()).reshape(n, d)
    assert_allclose(f @ state.U[:, :q].T, expected, atol=1e-12)
    fg = posterior.signal(state, data.S, scores, steps=n)
    expected = ((shared + own) @ K @ X.ravel()).reshape(n, d)
    assert_allclose(fg @ state.U.T, expected, atol=1e-12)


def test_shared_variances_are_those_of_the_conditional_distribution(state, data):
    shared, own, noise = parts(state, data.S.toarray())
    C = shared - shared @ np.linalg.inv(shared + own + noise) @ shared
    axes = np.kron(np.eye(n), state.U[:, :q])
    expected = np.diag(axes.T @ C @ axes).reshape(n, q)
    nodes = np.array([3, 0, 7])
    actual = posterior.shared_variances(state, data.S, nodes, steps=n)
    assert_allclose(actual, expected[nodes], rtol=1e-10)


def test_temper_multiplies_the_noise_of_content(state, data):
    warm = state._replace(c=3 * state.c, sigma2=3 * state.sigma2)
    scores = rows(data) @ state.U
    actual = posterior.shared_part(state, data.S, scores, temper=3.0, steps=n)
    assert_allclose(actual, posterior.shared_part(warm, data.S, scores, steps=n))


def test_missing_entries_are_filled_by_their_conditional_means(state, data, rng):
    X = rows(data)
    gaps = rng.random((n, d)) < 0.3
    gaps[4] = True
    C = sum(parts(state, data.S.toarray()))
    miss, seen = np.flatnonzero(gaps), np.flatnonzero(~gaps)
    expected = C[np.ix_(miss, seen)] @ np.linalg.solve(C[np.ix_(seen, seen)], X.ravel()[seen])
    where = np.flatnonzero(gaps.any(axis=1))
    holes = np.where(gaps, np.nan, X)[where]
    filled, scores = posterior.fill(state, data.S, X @ state.U, where, holes, tol=1e-12)
    assert_allclose(filled[gaps[where]], expected, atol=1e-9)
    assert_allclose(scores[where], filled @ state.U)


def test_a_row_without_content_follows_its_neighbours(state, data):
    X = rows(data)
    A = data.S.toarray() > 0
    node = int(np.argmax(A.sum(axis=1)))
    scores = np.zeros((n, q + r))
    scores[A[node]] = [1.0, 0.0, 0.0]
    _, scores = posterior.fill(state, data.S, scores, np.array([node]), np.full((1, d), np.nan))
    assert scores[node, 0] > 0.1
    assert X.shape == (n, d)


def test_conditional_density_is_the_dense_gaussian(state, data):
    X = rows(data)
    new = np.zeros(n, dtype=bool)
    new[[2, 5, 6]] = True
    C = sum(parts(state, data.S.toarray()))
    old = np.repeat(~new, d)
    joint = multivariate_normal(cov=C).logpdf(X.ravel())
    marginal = multivariate_normal(cov=C[np.ix_(old, old)]).logpdf(X.ravel()[old])
    actual = posterior.conditional_log_density(
        state, data.S, X @ state.U, np.sum(X**2, axis=1), new
    )
    assert_allclose(actual, joint - marginal)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_foresight_is_the_density_of_each_row_given_all_others(state, data, factor):
    X, new = rows(data), np.array([2, 5, 6])
    held = heldout.hold_out(data.X, data.S, new)
    C = sum(parts(state._replace(a=factor * state.a), data.S.toarray()))
    expected = 0.0
    for node in new:
        old = np.repeat(np.arange(n) != node, d)
        expected += multivariate_normal(cov=C).logpdf(X.ravel())
        expected -= multivariate_normal(cov=C[np.ix_(old, old)]).logpdf(X.ravel()[old])
    assert_allclose(heldout.foresight(state, held, [1.0, factor])[1], expected)


def test_gradient_of_the_profile_equals_differences(state, data, rng):
    stats = relational.measure(state.U, q, data)
    for _ in range(5):
        x = rng.normal(size=1 + 3 * q)
        error = check_grad(
            lambda x: relational._profile(x, stats, d)[0],
            lambda x: relational._profile(x, stats, d)[1],
            x,
        )
        assert error < 1e-5


def test_variances_are_a_maximum(state, data, rng):
    stats = relational.measure(state.U, q, data)
    best = relational.fit_variances(state, stats, max_iter=500)
    top = relational.log_likelihood(best, stats)
    for _ in range(20):
        a, c, b, s = (np.exp(0.05 * rng.standard_normal(size)) for size in (q, q + r, q, None))
        near = relational.Relational(best.U, best.a * a, best.c * c, best.beta * b, best.sigma2 * s)
        assert relational.log_likelihood(near, stats) <= top + 1e-7


def test_likelihood_never_falls(state, data):
    run = iterate(Method(state, partial(relational.step, data=data)), max_iter=60, tol=0)
    assert np.diff(run.objective).min() > -1e-9 * abs(run.objective[0])


def test_acceleration_ends_no_lower(state, data):
    step = partial(relational.step, data=data)
    plain = iterate(Method(state, step), max_iter=60, tol=0)
    fast = iterate(momentum(Method(state, step), relational.leap), max_iter=60, tol=0)
    assert fast.objective[-1] >= plain.objective[-1] - 1e-6


def test_without_shared_variance_the_model_is_ppca(data):
    X = rows(data)
    values, U = np.linalg.eigh(X.T @ X / n)
    U = U[:, ::-1][:, : q + r]
    state, log_likelihood = relational.independent(U, q, data)
    C = U @ np.diag(state.c) @ U.T + state.sigma2 * np.eye(d)
    assert_allclose(log_likelihood, multivariate_normal(cov=C).logpdf(X).sum())
    stats = relational.measure(U, q, data)
    assert_allclose(relational.log_likelihood(state, stats), log_likelihood)
    assert_allclose(state.sigma2, values[: d - q - r].mean())


def test_renaming_nodes_changes_nothing(state, data, A, rng):
    order = rng.permutation(n)
    S = graph.normalized(A[order][:, order])
    _, X = center(Matrix(rows(data)[order]))
    moved = relational.link(X, S, lanczos.density(S, None, rng), steps=n)
    after, objective = relational.step(state, moved)
    expected, before = relational.step(state, data)
    assert_allclose(objective, before)
    assert_allclose(after.U @ after.U.T, expected.U @ expected.U.T, atol=1e-6)


def test_spread_is_what_gaps_add_in_the_mean(state, data, rng):
    B = rng.standard_normal((d, d))
    B = B @ B.T
    spread = data._replace(spread=B, total=data.total + np.trace(B))
    actual = relational.log_likelihood(state, relational.measure(state.U, q, spread))
    lam, weights = data.spectrum
    v = relational.variances_at(state, lam[:, None])
    flat = np.concatenate([weights @ (1 / v) / n, 1 / (state.c[q:] + state.sigma2)])
    inside = np.einsum("dk,de,ek->k", state.U, B, state.U)
    loss = flat @ inside + (np.trace(B) - inside.sum()) / state.sigma2
    plain = relational.log_likelihood(state, relational.measure(state.U, q, data))
    assert_allclose(actual, plain - loss / 2)


def test_gap_covariances_without_links_are_exact(state, rng):
    flat = state._replace(a=np.zeros(q), beta=np.zeros(q))
    C = flat.U @ np.diag(flat.c) @ flat.U.T + flat.sigma2 * np.eye(d)
    observed = rng.random((6, d)) < 0.6
    observed[1] = observed[0]
    expected, expected_entropy = np.zeros((d, d)), 0.0
    for seen in observed:
        miss = ~seen
        K = C[np.ix_(miss, miss)]
        if seen.any() and miss.any():
            cross = C[np.ix_(miss, seen)]
            K = K - cross @ np.linalg.solve(C[np.ix_(seen, seen)], cross.T)
        expected[np.ix_(miss, miss)] += K
        expected_entropy += 0.5 * np.linalg.slogdet(2 * np.pi * np.e * K)[1]
    shares = flat.sigma2 / (flat.c + flat.sigma2)
    total, entropy = posterior.gap_covariances(flat, observed, shares)
    assert_allclose(total, expected, atol=1e-12)
    assert_allclose(entropy, expected_entropy)


def test_deviations_of_gaps_are_those_given_all_other_rows(state, data):
    C = sum(parts(state, data.S.toarray()))
    nodes, gaps = np.array([3, 0, 7]), np.zeros((3, d), dtype=bool)
    gaps[0, [1, 4]] = gaps[1, 2] = gaps[2] = True
    expected = np.zeros((3, d))
    for i, node in enumerate(nodes):
        miss = node * d + np.flatnonzero(gaps[i])
        seen = np.delete(np.arange(n * d), miss)
        cross = C[np.ix_(miss, seen)]
        K = C[np.ix_(miss, miss)] - cross @ np.linalg.solve(C[np.ix_(seen, seen)], cross.T)
        expected[i, gaps[i]] = np.sqrt(np.diag(K))
    actual = posterior.gap_deviations(state, data.S, nodes, ~gaps)
    assert_allclose(actual, expected, rtol=1e-9)


def test_planted_smooth_axes_are_found(rng):
    size, width = 600, 12
    A = sparse.random_array((size, size), density=0.006, rng=rng)
    A = graph.without_loops(graph.undirected((A > 0).astype(float)))
    S = graph.normalized(A)
    lam, V = np.linalg.eigh(np.eye(size) - S.toarray())
    U = np.linalg.qr(rng.standard_normal((width, 3)))[0]
    smooth = (
        (V * (1 + 20 * np.maximum(lam, 0))[None, :] ** -1) @ rng.standard_normal((size, 2)) * 20
    )
    own = 3 * rng.standard_normal((size, 1))
    X = np.hstack([smooth, own]) @ U.T + 0.5 * rng.standard_normal((size, width))
    _, X = center(Matrix(X))
    data = relational.link(X, S, lanczos.density(S, None, rng))
    _, principal = np.linalg.eigh(X.gram())
    principal = principal[:, ::-1][:, :3]
    start = relational.smoothest_first(principal, 2, data)
    run = iterate(
        Method(relational.init(start, 2, data), partial(relational.step, data=data)),
        max_iter=40,
        tol=1e-6,
    )
    fitted, log_likelihood = relational.settle(run.state, data)
    gap = fitted.U[:, :2] @ fitted.U[:, :2].T - U[:, :2] @ U[:, :2].T
    assert np.linalg.norm(gap, 2) < 0.15
    assert log_likelihood > relational.independent(principal, 2, data)[1] + 50
    assert_allclose(fitted.sigma2, 0.25, rtol=0.1)
