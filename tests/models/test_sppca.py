from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

from gnomon.inference.loop import Method, anderson, iterate
from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.models import sppca, sppca_closed_form, sppca_statistics, sppca_vector
from gnomon.models.gaussian import em

n, d, c, q = 40, 6, 3, 2
RULES = [
    {},
    {"per_output": True},
    {"ratio": 0.5},
    {"fixed": (0.2, 0.1)},
    {"learn_mean": False},
    {"prior_x": 3.0, "prior_y": 2.0},
]


def planted(rng, n=n, noise_y=0.3):
    Z = rng.normal(size=(n, q))
    X = Z @ rng.normal(size=(q, d)) + 0.5 * rng.normal(size=(n, d))
    Y = Z @ rng.normal(size=(q, c)) + noise_y * rng.normal(size=(n, c)) + 0.4
    return X - X.mean(axis=0), Y


@pytest.fixture
def gappy(rng):
    """Rows 0-14 have some of their outputs, the others none."""
    X, Y = planted(rng)
    observed = rng.random((n, c)) < 0.6
    observed[15:] = False
    return X, Y, observed


def rule(stats, **options):
    return sppca.Noise(*sppca.floors(stats), **options)


def statistics(X, Y, observed, weights=None, route=sppca_statistics.from_moments):
    data = Matrix(X) if weights is None else Weighted(Matrix(X), weights)
    return route(center(data)[1], Y, observed, weights)


def fit(stats, noise, start=None, tol=1e-10, q=q):
    start = sppca.init(stats, q, noise) if start is None else start
    method = anderson(
        Method(start, partial(sppca.em_step, stats=stats, noise=noise)),
        partial(sppca_vector.pack, noise=noise),
        partial(sppca_vector.unpack, like=start, noise=noise),
    )
    return iterate(method, max_iter=5000, tol=tol)


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
def test_objective_is_the_gaussian_log_density(gappy, options):
    stats, axes = statistics(*gappy)
    noise = rule(stats, **options)
    state, _ = sppca.em_step(sppca.init(stats, q, noise), stats, noise)
    _, actual = sppca.e_step(state, stats)
    expected = dense_log_likelihood(state._replace(W=axes @ state.W), *gappy)
    assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("options", RULES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_step_descends(gappy, options, weighted, rng):
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else None
    stats, _ = statistics(*gappy, weights)
    noise = rule(stats, **options)
    start = sppca.init(stats, q, noise)
    plain = iterate(
        Method(start, partial(sppca.em_step, stats=stats, noise=noise)), max_iter=200, tol=1e-11
    )
    for run in (plain, fit(stats, noise)):
        assert np.all(np.diff(run.objective) >= -1e-10 * np.abs(run.objective[:-1]))


@pytest.mark.parametrize("options", RULES, ids=str)
def test_gradient_equals_differences(gappy, options):
    stats, _ = statistics(*gappy)
    noise = rule(stats, **options)
    state, _ = sppca.em_step(sppca.init(stats, q, noise), stats, noise)
    x = sppca_vector.pack(state, noise)
    value = partial(sppca_vector.value_and_gradient, like=state, stats=stats, noise=noise)
    differences = [(value(x + h)[0] - value(x - h)[0]) / 2e-5 for h in 1e-5 * np.eye(len(x))]
    assert_allclose(value(x)[1], differences, atol=1e-7 * np.abs(differences).max())


@pytest.mark.parametrize("options", RULES, ids=str)
def test_a_vector_gives_its_state_back(gappy, options):
    stats, _ = statistics(*gappy)
    noise = rule(stats, **options)
    state, _ = sppca.em_step(sppca.init(stats, q, noise), stats, noise)
    again = sppca_vector.unpack(sppca_vector.pack(state, noise), state, noise)
    for expected, actual in zip(state, again, strict=True):
        assert_allclose(actual, expected, rtol=1e-14)
    assert len(sppca_vector.bounds(state, noise)) == len(sppca_vector.pack(state, noise))


def test_moments_and_dual_have_one_maximum(gappy):
    primal, axes = statistics(*gappy)
    dual, axes_dual = statistics(*gappy, route=sppca_statistics.from_dual)
    a = fit(primal, rule(primal), tol=1e-12).state
    b = fit(dual, rule(dual), tol=1e-12).state
    W, V = axes @ a.W, axes_dual @ b.W
    assert_allclose(V @ V.T, W @ W.T, atol=1e-8 * np.abs(W @ W.T).max())
    assert_allclose(b.sigma2_y, a.sigma2_y, rtol=1e-7)


def test_a_step_of_the_dual_is_a_step_of_the_primal(gappy):
    primal, axes = statistics(*gappy)
    dual, axes_dual = statistics(*gappy, route=sppca_statistics.from_dual)
    noise = rule(primal)
    a, b = (
        sppca.em_step(sppca.em_step(sppca.init(s, q, noise), s, noise)[0], s, noise)
        for s in (primal, dual)
    )
    assert_allclose(b[1], a[1], rtol=1e-13)
    W, V = axes @ a[0].W, axes_dual @ b[0].W
    assert_allclose(V @ V.T, W @ W.T, atol=1e-12 * np.abs(W @ W.T).max())


def test_many_labelled_rows_shrink_to_their_moments(rng):
    X, Y = planted(rng, n=200)
    observed = np.zeros((200, c), dtype=bool)
    observed[:150] = True
    stats, axes = statistics(X, Y, observed)
    assert len(stats.outputs.T) == d + c + 1
    rows = sppca_statistics.outputs((X @ axes)[:150], Y[:150], observed[:150])
    noise = rule(stats)
    state, _ = sppca.em_step(sppca.init(stats, q, noise), stats, noise)
    actual, expected = (
        sppca.em_step(state, stats._replace(outputs=kept), noise) for kept in (stats.outputs, rows)
    )
    assert_allclose(actual[1], expected[1], rtol=1e-12)
    for a, b in zip(actual[0], expected[0], strict=True):
        assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_the_maximum_is_that_of_em_on_the_rows(rng):
    X, Y = planted(rng)
    observed = np.repeat(np.arange(n) < 15, c).reshape(n, c)
    stats, axes = statistics(X, Y, observed)
    run = fit(stats, rule(stats, learn_mean=False), tol=1e-12)
    centred = Y - Y[:15].mean(axis=0)
    blocks = [(Matrix(X[:15]), Matrix(centred[:15])), (Matrix(X[15:]), None)]
    views = tuple(em.View(rng.normal(size=(size, q)), 1.0) for size in (d, c))
    step = partial(em.em_step, blocks=blocks, expand=True)
    reference = iterate(Method(views, step), max_iter=5000, tol=1e-12)
    assert_allclose(run.objective[-1], reference.objective[-1], rtol=1e-10)
    W, V = axes @ run.state.W, reference.state[0].W
    assert_allclose(W @ W.T, V @ V.T, atol=1e-5)


def test_without_outputs_it_is_ppca(rng):
    X, _ = planted(rng)
    stats, axes = statistics(X, np.zeros((n, 0)), np.zeros((n, 0), dtype=bool))
    state = fit(stats, rule(stats), tol=1e-13).state
    values, U = np.linalg.eigh(X.T @ X / n)
    sigma2 = values[:-q].mean()
    W = U[:, -q:] * np.sqrt(values[-q:] - sigma2)
    assert_allclose(axes @ state.W @ (axes @ state.W).T, W @ W.T, atol=1e-8)
    assert_allclose(state.sigma2, sigma2, rtol=1e-8)


def test_weights_count_as_repetition(gappy, rng):
    X, Y, observed = gappy
    weights = rng.integers(1, 4, size=n)
    X = X - np.average(X, axis=0, weights=weights)
    repeated = [part.repeat(weights, axis=0) for part in (X, Y, observed)]
    a, axes = statistics(X, Y, observed, weights.astype(float))
    b, axes_b = statistics(*repeated)
    state, state_b = fit(a, rule(a)).state, fit(b, rule(b)).state
    W, V = axes @ state.W, axes_b @ state_b.W
    assert_allclose(W @ W.T, V @ V.T, atol=1e-6)
    assert_allclose(state.mean_y, state_b.mean_y, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"ratio": 0.3}, {"fixed": (0.3, 0.2)}], ids=str)
def test_em_ends_at_theorem_2(rng, options):
    X, Y = planted(rng)
    stats, _ = statistics(X, Y, np.ones((n, c), dtype=bool))
    noise = rule(stats, **options)
    assert sppca_closed_form.applies(stats, noise)
    exact = sppca_closed_form.closed_form(stats, q, noise)
    state = fit(stats, noise, tol=1e-12).state
    assert_allclose(state.W @ state.W.T, exact.W @ exact.W.T, atol=1e-6)
    assert_allclose(state.W_y @ state.W.T, exact.W_y @ exact.W.T, atol=1e-6)
    assert_allclose(state.sigma2_y, exact.sigma2_y, rtol=1e-6)


def test_theorem_2_at_the_noise_of_em_gives_its_loadings(rng):
    X, Y = planted(rng)
    stats, _ = statistics(X, Y, np.ones((n, c), dtype=bool))
    noise = rule(stats)
    state = iterate(
        Method(sppca.init(stats, q, noise), partial(sppca.em_step, stats=stats, noise=noise)),
        max_iter=3000,
        tol=0,
    ).state
    fixed = rule(stats, fixed=(state.sigma2, state.sigma2_y[0]))
    exact = sppca_closed_form.closed_form(stats, q, fixed)
    assert_allclose(state.W @ state.W.T, exact.W @ exact.W.T, rtol=1e-8, atol=1e-8)


def test_the_profile_is_the_likelihood_at_the_closed_form(rng):
    X, Y = planted(rng)
    stats, _ = statistics(X, Y, np.ones((n, c), dtype=bool))
    state = sppca_closed_form.closed_form(stats, q, rule(stats, ratio=0.7))
    _, expected = sppca.e_step(state, stats)
    assert_allclose(sppca_closed_form.profile(stats, q, 0.7), expected, rtol=1e-12)


def test_planted_loadings_are_recovered():
    rng = np.random.default_rng(1)
    W, W_y = rng.normal(size=(d, q)), rng.normal(size=(c, q))
    size = 20_000
    Z = rng.normal(size=(size, q))
    X = Z @ W.T + 0.5 * rng.normal(size=(size, d))
    Y = 1 + Z @ W_y.T + 0.3 * rng.normal(size=(size, c))
    observed = (rng.random((size, c)) < 0.8) & (np.arange(size) < 2000)[:, None]
    stats, axes = statistics(X, Y, observed)
    state = sppca.canonical(fit(stats, rule(stats), tol=1e-6).state, axes)
    assert_allclose(state.W @ state.W.T, W @ W.T, atol=0.1)
    assert_allclose(state.W_y @ state.W.T, W_y @ W.T, atol=0.1)
    assert_allclose([state.sigma2, state.sigma2_y[0]], [0.25, 0.09], rtol=0.05)
    assert_allclose(state.mean_y, 1, atol=0.1)


def test_canonical_axes_carry_falling_energy(gappy):
    stats, axes = statistics(*gappy)
    state = sppca.canonical(fit(stats, rule(stats)).state, axes)
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
    state = fit(stats, rule(stats)).state
    assert_allclose(state.W_y[1], 0)


def labelled_em(X, Y, labelled, factor, steps):
    """EM of Algorithm 2 on rows, with eq. (12) multiplied by ``factor(sigma2)``."""
    rng = np.random.default_rng(3)
    W, W_y, sigma2, sigma2_y = rng.normal(size=(d, q)), rng.normal(size=(c, q)), 1.0, 1.0
    Y = Y - Y[labelled].mean(axis=0)
    trace = []
    for _ in range(steps):
        state = sppca.State(W, sigma2, W_y, np.full(c, sigma2_y), np.zeros(c))
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


def test_erratum_covariance_without_its_noise_lowers_the_likelihood(rng):
    """E-YYTKW06-1."""
    X, Y = planted(rng)
    labelled = np.arange(n) < 15
    right = labelled_em(X, Y, labelled, lambda sigma2: sigma2, 30)
    printed = labelled_em(X, Y, labelled, lambda sigma2: 1.0, 30)
    assert np.diff(right).min() > -1e-9
    assert np.diff(printed).min() < -0.01
    assert printed[-1] < right[-1] - 1


def test_erratum_mean_of_the_labelled_rows_is_not_the_maximum(rng):
    """E-YYTKW06-2."""
    X, Y = planted(rng)
    labelled = np.argsort(X[:, 0])[:15]
    observed = np.zeros((n, c), dtype=bool)
    observed[labelled] = True
    stats, axes = statistics(X, Y, observed)
    run = fit(stats, rule(stats), tol=1e-12)
    printed = fit(stats, rule(stats, learn_mean=False), tol=1e-12)
    assert run.objective[-1] > printed.objective[-1] + 0.1
    W, sigma2, W_y, _, mean_y = run.state
    W = axes @ W
    B = W_y @ np.linalg.solve(W.T @ W + sigma2 * np.eye(q), W.T)
    expected = Y[labelled].mean(axis=0) - B @ X[labelled].mean(axis=0)
    assert_allclose(mean_y, expected, atol=1e-5)


def test_erratum_rotation_needs_the_noise_levels(gappy):
    """E-YYTKW06-3: without them the axes are not those in which A is diagonal."""
    stats, axes = statistics(*gappy)
    state = sppca.canonical(fit(stats, rule(stats)).state, axes)
    printed = state.W.T @ state.W + state.W_y.T @ state.W_y
    right = state.W.T @ state.W / state.sigma2 + state.W_y.T @ state.W_y / state.sigma2_y[0]
    assert abs(right[0, 1]) < 1e-8 * right[0, 0]
    assert abs(printed[0, 1]) > 1e-4 * printed[0, 0]


def test_erratum_weak_directions_have_no_loading(rng):
    """E-YYTKW06-6: where an eigenvalue is below one the printed root is not real."""
    X, Y = planted(rng)
    stats, _ = statistics(X, Y, np.ones((n, c), dtype=bool))
    noise = rule(stats, fixed=(5.0, 5.0))
    exact = sppca_closed_form.closed_form(stats, d, noise)
    joint = np.hstack([X, Y - Y.mean(axis=0)])
    eigenvalues = np.linalg.eigvalsh(joint.T @ joint / n / 5.0)[::-1]
    weak = eigenvalues[:d] < 1
    assert weak.any()
    lengths = np.sum(exact.W**2, axis=0) + np.sum(exact.W_y**2, axis=0)
    assert_allclose(lengths[weak], 0)
    assert_allclose(lengths[~weak], 5.0 * (eigenvalues[:d][~weak] - 1))


def test_theorem_2_projects_to_the_posterior_mean(rng):
    """E-YYTKW06-7: its formula is right where no eigenvalue is one."""
    X, Y = planted(rng)
    s_x, s_y = 0.3, 0.2
    scaled = np.hstack([X / np.sqrt(s_x), (Y - Y.mean(axis=0)) / np.sqrt(s_y)])
    values, U = np.linalg.eigh(scaled.T @ scaled / n)
    values, U = values[::-1][:q], U[:, ::-1][:, :q]
    inner = U[:d].T @ U[:d] + np.diag(1 / (values - 1))
    printed = (X / np.sqrt(s_x)) @ U[:d] @ np.linalg.inv(inner) / np.sqrt(values - 1)
    W = np.sqrt(s_x) * U[:d] * np.sqrt(values - 1)
    posterior = X @ W @ np.linalg.inv(W.T @ W + s_x * np.eye(q))
    assert_allclose(printed, posterior, rtol=1e-8, atol=1e-10)
    stats, axes = statistics(X, Y, np.ones((n, c), dtype=bool))
    exact = sppca_closed_form.closed_form(stats, q, rule(stats, fixed=(s_x, s_y)))
    assert_allclose(axes @ exact.W @ (axes @ exact.W).T, W @ W.T, atol=1e-8)


def iris(coding):
    X, y = load_iris(return_X_y=True)
    Y = coding[y]
    return statistics(X - X.mean(axis=0), Y, np.ones(Y.shape, dtype=bool))[0]


def helmert():
    Q, _ = np.linalg.qr(np.column_stack([np.ones(3), np.eye(3)[:, :2]]))
    return Q[:, 1:]


def test_erratum_learnt_noise_has_two_maxima_and_the_search_takes_the_better():
    """E-YYTKW06-4: the paper says that there are no local optima."""
    stats = iris(helmert())
    noise = rule(stats)
    from_ppca = fit(stats, noise, tol=1e-11)
    best = fit(stats, noise, sppca_closed_form.closed_form(stats, 2, noise), tol=1e-11)
    assert best.objective[-1] > from_ppca.objective[-1] + 10
    for run in (from_ppca, best):
        assert run.converged
        gradient = sppca_vector.value_and_gradient(
            sppca_vector.pack(run.state, noise), run.state, stats, noise
        )[1]
        assert_allclose(gradient, 0, atol=1e-2)


def test_erratum_one_hot_outputs_have_no_maximum():
    """E-YYTKW06-5: the profile grows by n/2 for every unit of log r, without end."""
    stats = iris(np.eye(3))
    curve = [sppca_closed_form.profile(stats, 2, np.exp(log_r)) for log_r in (-12, -11, -10)]
    assert_allclose(np.diff(curve), -75, rtol=0.02)
    stats = iris(helmert())
    curve = [sppca_closed_form.profile(stats, 2, np.exp(log_r)) for log_r in (-12, -11, -10)]
    assert np.abs(np.diff(curve)).max() < 1
