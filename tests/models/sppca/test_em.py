from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.inference.loop import Method, anderson, iterate
from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.models.gaussian.em import em_step as step_on_rows
from gnomon.models.sppca import em
from gnomon.models.sppca.fit import Settings
from gnomon.models.sppca.statistics import State, at_floor, from_moments, noise_rule
from gnomon.stats.gaussian import View

n, d, c, q = 40, 6, 3, 2
RULES = [
    {},
    {"per_output": True},
    {"ratio": 0.5},
    {"fixed": (0.2, 0.1)},
    {"learn_mean": False},
    {"prior_x": 3.0, "prior_y": 2.0},
]


def rule(stats, **options):
    return noise_rule(stats, Settings())._replace(**options)


def statistics(X, Y, observed, weights=None):
    data = Matrix(X) if weights is None else Weighted(Matrix(X), weights)
    return from_moments(center(data)[1], Y, observed, weights)


def climb(stats, noise, tol=1e-10):
    """EM with Anderson's mixing from PPCA, without the finish of `em.maximise`."""
    start = em.init(stats, q, noise)
    method = anderson(
        Method(start, partial(em.em_step, stats=stats, noise=noise)),
        partial(em.pack, noise=noise),
        partial(em.unpack, like=start, noise=noise),
    )
    return iterate(method, max_iter=5000, tol=tol)


def one_step(stats, noise):
    """A state that is not special in any way."""
    return em.em_step(em.init(stats, q, noise), stats, noise)[0]


def dense_log_likelihood(state, X, Y, observed):
    W = np.vstack([state.W, state.W_y])
    C = W @ W.T + np.diag([state.sigma2] * X.shape[1] + list(state.sigma2_y))
    mean = np.concatenate([np.zeros(X.shape[1]), state.mean_y])
    total = 0.0
    for x, y, seen in zip(X, Y, observed, strict=True):
        o = np.concatenate([np.ones(X.shape[1], dtype=bool), seen])
        row = np.concatenate([x, y])
        total += multivariate_normal(mean[o], C[np.ix_(o, o)]).logpdf(row[o])
    return total


@pytest.mark.parametrize("options", RULES, ids=str)
@pytest.mark.parametrize("complete", [False, True])
def test_objective_is_the_gaussian_log_density(gappy, options, complete):
    X, Y, observed = gappy
    observed = np.repeat(observed.any(axis=1)[:, None], c, axis=1) if complete else observed
    stats, axes = statistics(X, Y, observed)
    state = one_step(stats, rule(stats, **options))
    _, actual = em.e_step(state, stats)
    expected = dense_log_likelihood(state._replace(W=axes @ state.W), X, Y, observed)
    assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("options", RULES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_step_descends(gappy, options, weighted, rng):
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else None
    stats, _ = statistics(*gappy, weights)
    noise = rule(stats, **options)
    start = em.init(stats, q, noise)
    step = partial(em.em_step, stats=stats, noise=noise)
    plain = iterate(Method(start, step), max_iter=200, tol=1e-11)
    whole = em.maximise(stats, q, noise, max_iter=500, tol=1e-10)
    for run in (plain, climb(stats, noise), whole):
        assert np.all(np.diff(run.objective) >= -1e-10 * np.abs(run.objective[:-1]))


@pytest.mark.parametrize("options", RULES, ids=str)
def test_gradient_equals_differences(gappy, options):
    stats, _ = statistics(*gappy)
    noise = rule(stats, **options)
    state = one_step(stats, noise)
    x = em.pack(state, noise)
    value = partial(em.value_and_gradient, like=state, stats=stats, noise=noise)
    differences = [(value(x + h)[0] - value(x - h)[0]) / 2e-5 for h in 1e-5 * np.eye(len(x))]
    assert_allclose(value(x)[1], differences, atol=1e-7 * np.abs(differences).max())


@pytest.mark.parametrize("options", RULES, ids=str)
def test_a_vector_gives_its_state_back(gappy, options):
    stats, _ = statistics(*gappy)
    noise = rule(stats, **options)
    state = one_step(stats, noise)
    again = em.unpack(em.pack(state, noise), state, noise)
    for expected, actual in zip(state, again, strict=True):
        assert_allclose(actual, expected, rtol=1e-14)
    assert len(em.bounds(state, noise)) == len(em.pack(state, noise))


def test_one_table_of_moments_stands_for_all_where_all_outputs_are_seen_alike(sample):
    X, Y = sample
    observed = np.repeat(np.arange(n) < 15, c).reshape(n, c)
    stats, _ = statistics(X, Y, observed)
    # A row of no weight that lacks an output makes a second pattern, and a table for each.
    outputs = stats.outputs
    apart = outputs._replace(
        pattern=np.append(outputs.pattern, 1),
        seen=np.vstack([outputs.seen, [True, False, True]]),
        counts=np.append(outputs.counts, 0.0),
        **{
            name: np.vstack([getattr(outputs, name), 0 * getattr(outputs, name)[0]])
            for name in "TY"
        },
        ones=np.append(outputs.ones, 0.0),
    )
    noise = rule(stats)
    state = one_step(stats, noise)
    shared, _ = em.e_step(state, stats)
    assert len(shared.ZZ_y) == 1
    tables, _ = em.e_step(state, stats._replace(outputs=apart))
    assert_allclose(tables.ZZ_y, np.repeat(shared.ZZ_y, c, axis=0))
    for a, b in zip(
        em.m_step(state, shared, stats, noise), em.m_step(state, tables, stats, noise), strict=True
    ):
        assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_the_maximum_is_that_of_em_on_the_rows(sample, rng):
    X, Y = sample
    observed = np.repeat(np.arange(n) < 15, c).reshape(n, c)
    stats, axes = statistics(X, Y, observed)
    run = climb(stats, rule(stats, learn_mean=False), tol=1e-12)
    centred = Y - Y[:15].mean(axis=0)
    blocks = [(Matrix(X[:15]), Matrix(centred[:15])), (Matrix(X[15:]), None)]
    views = tuple(View(rng.normal(size=(size, q)), 1.0) for size in (d, c))
    step = partial(step_on_rows, blocks=blocks, expand=True)
    reference = iterate(Method(views, step), max_iter=5000, tol=1e-12)
    assert_allclose(run.objective[-1], reference.objective[-1], rtol=1e-10)
    W, V = axes @ run.state.W, reference.state[0].W
    assert_allclose(W @ W.T, V @ V.T, atol=1e-5)


def test_without_outputs_it_is_ppca(sample):
    X, _ = sample
    stats, axes = statistics(X, np.zeros((n, 0)), np.zeros((n, 0), dtype=bool))
    state = climb(stats, rule(stats), tol=1e-13).state
    values, U = np.linalg.eigh(X.T @ X / n)
    sigma2 = values[:-q].mean()
    W = U[:, -q:] * np.sqrt(values[-q:] - sigma2)
    assert_allclose(axes @ state.W @ (axes @ state.W).T, W @ W.T, atol=1e-8)
    assert_allclose(state.sigma2, sigma2, rtol=1e-8)


def test_planted_loadings_are_recovered():
    rng = np.random.default_rng(1)
    W, W_y = rng.normal(size=(d, q)), rng.normal(size=(c, q))
    size = 20_000
    Z = rng.normal(size=(size, q))
    X = Z @ W.T + 0.5 * rng.normal(size=(size, d))
    Y = 1 + Z @ W_y.T + 0.3 * rng.normal(size=(size, c))
    observed = (rng.random((size, c)) < 0.8) & (np.arange(size) < 2000)[:, None]
    stats, axes = statistics(X, Y, observed)
    state = em.canonical(climb(stats, rule(stats), tol=1e-6).state, axes)
    # Five standard errors: of a covariance of all rows, and of a mean of 1,600 labelled ones.
    C, C_y = W @ W.T + 0.25 * np.eye(d), W_y @ W_y.T
    error = 5 * np.sqrt((np.outer(np.diag(C), np.diag(C)) + C**2) / size)
    assert np.all(np.abs(state.W @ state.W.T - W @ W.T) < error)
    across = W_y @ W.T
    error = 5 * np.sqrt((np.outer(np.diag(C_y), np.diag(C)) + across**2) / size) + 0.1
    assert np.all(np.abs(state.W_y @ state.W.T - across) < error)
    assert_allclose([state.sigma2, state.sigma2_y[0]], [0.25, 0.09], rtol=0.1)
    assert_allclose(state.mean_y, 1, atol=5 * np.sqrt(np.diag(C_y).max() / size + 0.09 / 1600))


def test_canonical_axes_carry_falling_energy(gappy):
    stats, axes = statistics(*gappy)
    state = em.canonical(climb(stats, rule(stats)).state, axes)
    energy = state.W.T @ state.W / state.sigma2
    energy += state.W_y.T @ (state.W_y / state.sigma2_y[:, None])
    assert_allclose(energy, np.diag(np.diagonal(energy)), atol=1e-8 * energy.max())
    assert energy[0, 0] > energy[1, 1]
    largest = np.argmax(np.abs(state.W), axis=0)
    assert np.all(state.W[largest, np.arange(q)] > 0)


def test_an_output_nobody_has_keeps_zero_loadings(gappy):
    X, Y, observed = gappy
    observed = observed.copy()
    observed[:, 1] = False
    stats, _ = statistics(X, Y, observed)
    state = climb(stats, rule(stats)).state
    assert_allclose(state.W_y[1], 0)


def test_where_noise_is_tied_the_finish_goes_on_from_em(gappy):
    stats, _ = statistics(*gappy)
    noise = rule(stats, ratio=0.05)
    by_em = climb(stats, noise, tol=1e-4)
    run = em.maximise(stats, q, noise, max_iter=2000, tol=1e-4)
    assert run.objective[: len(by_em.objective)] == by_em.objective
    assert run.converged and run.objective[-1] > by_em.objective[-1]
    assert_allclose(run.state.sigma2_y, 0.05 * run.state.sigma2)
    end = em.maximise(stats, q, noise, max_iter=2000, tol=1e-12).state
    _, gradient = em.value_and_gradient(em.pack(end, noise), end, stats, noise)
    assert_allclose(gradient, 0, atol=2e-3)


def test_the_finish_stays_above_the_floors(sample):
    X, Y = sample
    observed = np.repeat(np.arange(n) < 3, c).reshape(n, c)
    stats, _ = statistics(X, Y, observed)
    noise = rule(stats)
    run = em.maximise(stats, q, noise, max_iter=2000, tol=1e-9)
    assert at_floor(run.state, noise) == (False, True)
    assert_allclose(run.state.sigma2_y, noise.floor_y.mean(), rtol=1e-3)
    assert np.all(run.state.sigma2_y >= noise.floor_y.mean() * (1 - 1e-12))


def labelled_em(X, Y, labelled, factor, steps, start=3):
    """EM of Algorithm 2 on rows, with eq. (12) multiplied by ``factor(sigma2)``."""
    rng = np.random.default_rng(start)
    W, W_y, sigma2, sigma2_y = rng.normal(size=(d, q)), rng.normal(size=(c, q)), 1.0, 1.0
    Y = Y - Y[labelled].mean(axis=0)
    trace = []
    for _ in range(steps):
        state = State(W, sigma2, W_y, np.full(c, sigma2_y), np.zeros(c))
        observed = np.repeat(labelled[:, None], c, axis=1)
        trace.append(dense_log_likelihood(state, X, Y, observed))
        A = W.T @ W / sigma2 + W_y.T @ W_y / sigma2_y + np.eye(q)
        M = np.linalg.inv(W.T @ W + sigma2 * np.eye(q))
        Z = X @ W @ M
        Z[labelled] = (X[labelled] @ W / sigma2 + Y[labelled] @ W_y / sigma2_y) @ np.linalg.inv(A)
        C1 = Z[labelled].T @ Z[labelled] + labelled.sum() * np.linalg.inv(A)
        C2 = Z[~labelled].T @ Z[~labelled] + (~labelled).sum() * factor(sigma2) * M
        W = X.T @ Z @ np.linalg.inv(C1 + C2)
        W_y = Y[labelled].T @ Z[labelled] @ np.linalg.inv(C1)
        sigma2 = (np.sum(X**2) - np.sum(W * (X.T @ Z))) / X.size
        rest = np.sum(Y[labelled] ** 2) - np.sum(W_y * (Y[labelled].T @ Z[labelled]))
        sigma2_y = rest / (c * labelled.sum())
    return np.array(trace)


def test_erratum_covariance_without_its_noise_lowers_the_likelihood(sample):
    """E-YYTKW06-1: the library steps as eq. (12) does with its factor."""
    X, Y = sample
    labelled = np.arange(n) < 15
    right = labelled_em(X, Y, labelled, lambda sigma2: sigma2, 30)
    assert np.diff(right).min() > -1e-9
    # The best of some starts, each of which may end where an axis has hardly any length.
    ends = [
        max(labelled_em(X, Y, labelled, factor, 100, start)[-1] for start in range(3, 6))
        for factor in (lambda sigma2: sigma2, lambda sigma2: 1.0)
    ]
    assert ends[1] < ends[0] - 1
    rng = np.random.default_rng(3)
    views = tuple(View(rng.normal(size=(size, q)), 1.0) for size in (d, c))
    centred = Y[labelled] - Y[labelled].mean(axis=0)
    blocks = [(Matrix(X[labelled]), Matrix(centred)), (Matrix(X[~labelled]), None)]
    run = iterate(Method(views, partial(step_on_rows, blocks=blocks)), max_iter=30, tol=0)
    assert_allclose(run.objective, right, rtol=1e-10)
    # The E-step from moments has the factor too.
    stats, axes = statistics(X, Y, np.repeat(labelled[:, None], c, axis=1))
    (x, y), mean_y = views, Y[labelled].mean(axis=0)
    state = State(axes.T @ x.W, x.sigma2, y.W, np.full(c, y.sigma2), mean_y)
    assert_allclose(em.e_step(state, stats)[1], right[0], rtol=1e-12)


def test_erratum_mean_of_the_labelled_rows_is_not_the_maximum(sample):
    """E-YYTKW06-2."""
    X, Y = sample
    labelled = np.argsort(X[:, 0])[:15]
    observed = np.zeros((n, c), dtype=bool)
    observed[labelled] = True
    stats, axes = statistics(X, Y, observed)
    run = climb(stats, rule(stats), tol=1e-12)
    printed = climb(stats, rule(stats, learn_mean=False), tol=1e-12)
    assert run.objective[-1] > printed.objective[-1] + 0.1
    W, sigma2, W_y, _, mean_y = run.state
    W = axes @ W
    B = W_y @ np.linalg.solve(W.T @ W + sigma2 * np.eye(q), W.T)
    expected = Y[labelled].mean(axis=0) - B @ X[labelled].mean(axis=0)
    assert_allclose(mean_y, expected, atol=1e-5)


def test_erratum_rotation_needs_the_noise_levels(gappy):
    """E-YYTKW06-3: without them the axes are not those in which A is diagonal."""
    stats, axes = statistics(*gappy)
    state = em.canonical(climb(stats, rule(stats)).state, axes)
    printed = state.W.T @ state.W + state.W_y.T @ state.W_y
    right = state.W.T @ state.W / state.sigma2 + state.W_y.T @ state.W_y / state.sigma2_y[0]
    assert abs(right[0, 1]) < 1e-8 * right[0, 0]
    assert abs(printed[0, 1]) > 1e-4 * printed[0, 0]


def test_one_axis_that_is_left_is_the_noise_of_the_start(rng):
    X, Y = rng.normal(size=(40, 4)) * np.arange(1, 5), rng.normal(size=(40, 2))
    stats, _ = statistics(X, Y, np.ones(Y.shape, dtype=bool))
    least = np.linalg.eigvalsh(np.cov(X.T, bias=True))[0]
    assert_allclose(em.init(stats, 3, rule(stats)).sigma2, least)
