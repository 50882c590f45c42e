from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import log_ndtr, ndtr
from scipy.stats import multivariate_normal

from gnomon.inference.loop import iterate
from gnomon.linalg.data import Matrix, center
from gnomon.models.sppca import gaps, probit
from gnomon.models.sppca.fit import Problem, Settings, fit
from gnomon.models.sppca.statistics import State, counted_outputs, from_moments

n, d, q = 60, 5, 2


def codes(C):
    """Orthonormal columns that sum to zero over the classes."""
    return np.linalg.qr(np.column_stack([np.ones(C), np.eye(C)[:, :-1]]))[0][:, 1:]


def planted(rng, n=n, C=3, labelled=0.5, strength=2.0):
    """Rows, classes of which some are -1, and the latent variables."""
    Z = rng.normal(size=(n, q))
    X = Z @ rng.normal(size=(q, d)) + 0.7 * rng.normal(size=(n, d)) + 3.0
    labels = np.argmax(strength * Z @ rng.normal(size=(q, C)) + rng.normal(size=(n, C)), axis=1)
    labels[:C] = np.arange(C)
    known = rng.random(n) < labelled
    known[:C] = True
    return X, np.where(known, labels, -1), Z


def as_problem(X, labels, weights=None):
    H, known = codes(labels.max() + 1), labels >= 0
    Y = np.where(known[:, None], H[labels], 0.0)
    observed = np.repeat(known[:, None], Y.shape[1], axis=1)
    return Problem(X, Y, observed, labels, weights)


def in_moments(problem, tol=1e-7):
    """Statistics, labelled rows and the rule of a problem, in principal coordinates."""
    _, X = center(Matrix(problem.X))
    mask, weights, targets = probit.read_targets(problem)
    stats, axes = from_moments(X, problem.Y, np.zeros_like(problem.observed))
    stats = stats._replace(outputs=counted_outputs(problem.Y.shape[1], weights.sum()))
    rows = probit.Labelled(np.asarray(X.rows(mask) @ axes), weights, targets)
    return stats, rows, probit.settle(stats, Settings(tol=tol))


def random_state(rng, c):
    W, W_y = rng.normal(size=(d, q)), rng.normal(size=(c, q))
    return State(W, 0.4, W_y, np.ones(c), 0.3 * rng.normal(size=c))


def log_class_probability(state, x, label, H):
    """Log p(y | x) by a fine grid over z, its probit integral over the noise of the winner too."""
    A = np.eye(q) + state.W.T @ state.W / state.sigma2
    mean = np.linalg.solve(A, state.W.T @ x / state.sigma2)
    L = np.linalg.cholesky(np.linalg.inv(A))
    line = np.linspace(-6, 6, 61)
    u = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    scores = ((mean + u[:, :2] @ L.T) @ state.W_y.T + state.mean_y) @ H.T
    ahead = scores[:, [label]] + u[:, 2:] - np.delete(scores, label, axis=1)
    terms = np.prod(ndtr(ahead), axis=1) * np.exp(-0.5 * np.sum(u**2, axis=1))
    return np.log(terms.sum() * (line[1] - line[0]) ** 3 / (2 * np.pi) ** 1.5)


@pytest.mark.parametrize("C", [2, 3])
def test_the_objective_is_the_density_of_rows_and_the_probability_of_classes(rng, C):
    problem = as_problem(*planted(rng, n=12, C=C)[:2])
    stats, rows, _ = in_moments(problem)
    state = random_state(rng, C - 1)
    _, log_likelihood, _ = probit.e_step(state, stats, rows)
    _, X = center(Matrix(problem.X))
    T = np.asarray(X @ np.linalg.eigh(X.gram())[1][:, ::-1])
    covariance = state.W @ state.W.T + state.sigma2 * np.eye(d)
    exact = multivariate_normal(np.zeros(d), covariance).logpdf(T).sum()
    pairs = zip(rows.T, rows.targets.labels, strict=True)
    H = rows.targets.contrasts
    exact += sum(log_class_probability(state, x, label, H) for x, label in pairs)
    # Two classes leave one factor, which is exact; more err by hundredths a row.
    assert_allclose(log_likelihood, exact, atol=1e-5 if C == 2 else 0.03 * len(rows.T))


@pytest.mark.parametrize("several", [False, True])
def test_expected_moments_are_the_gradient_of_the_objective(rng, several):
    problem = as_problem(*planted(rng, C=4)[:2])
    if several:
        signs = np.sign(rng.normal(size=problem.Y.shape))
        seen = problem.observed & (rng.random(signs.shape) < 0.7)
        problem = problem._replace(Y=signs, observed=seen, labels=None)
    stats, rows, _ = in_moments(problem)
    state = random_state(rng, problem.Y.shape[1])
    expected, _, _ = probit.e_step(state, stats, rows)
    V = np.column_stack([state.W_y, state.mean_y])
    dW = (expected.XZ - state.W @ expected.ZZ) / state.sigma2
    dV = expected.YZ - np.squeeze(V[:, None] @ expected.ZZ_y, axis=1)

    def rise(name, i):
        ends = []
        for step in (1e-4, -1e-4):
            changed = getattr(state, name).copy()
            changed.flat[i] += step
            moved = state._replace(**{name: changed})
            ends.append(probit.e_step(moved, stats, rows)[1])
        return (ends[0] - ends[1]) / 2e-4

    for i in range(5):
        assert_allclose(dW.flat[i], rise("W", i), atol=2e-4)
        assert_allclose(dV[:, :q].flat[i], rise("W_y", i), atol=2e-4)
    assert_allclose(dV[:, q], [rise("mean_y", i) for i in range(len(dV))], atol=2e-4)


@pytest.mark.parametrize("seed", range(20))
def test_no_step_descends(seed):
    rng = np.random.default_rng(seed)
    problem = as_problem(*planted(rng, C=2 + seed % 4, strength=0.5 + seed)[:2])
    stats, rows, rule = in_moments(problem)
    state, objective = probit.first_state(stats, q, rule.noise), []
    for _ in range(15):
        state, value = probit.step(state, stats, rows, rule.noise)
        objective.append(value)
    assert np.min(np.diff(objective)) > -1e-6
    assert_allclose(state.sigma2_y, 1)


def test_the_maximum_has_no_slope(rng):
    problem = as_problem(*planted(rng)[:2])
    stats, rows, rule = in_moments(problem, tol=1e-13)
    run = probit.maximise(stats, rows, rule, max_iter=2000)
    best = probit.step(run.state, stats, rows, rule.noise)[1]
    for name in ("W", "W_y", "mean_y"):
        for step in (1e-3, -1e-3):
            moved = run.state._replace(**{name: getattr(run.state, name) + step})
            assert probit.step(moved, stats, rows, rule.noise)[1] < best


def test_without_labels_it_is_ppca(rng):
    X, labels, _ = planted(rng)
    nothing = as_problem(X, labels)._replace(observed=np.zeros((n, 2), dtype=bool))
    found = [fit(nothing, Settings(likelihood=word), iterate) for word in ("probit", "gaussian")]
    assert_allclose(found[0].state.W, found[1].state.W)


def test_renaming_classes_changes_nothing(rng):
    X, labels, _ = planted(rng, C=4)
    renamed = np.where(labels < 0, -1, np.array([2, 0, 3, 1])[labels])
    one, other = (
        fit(as_problem(X, y), Settings(likelihood="probit", tol=1e-11), iterate)
        for y in (labels, renamed)
    )
    assert_allclose(one.log_likelihood, other.log_likelihood, rtol=1e-8)
    assert_allclose(one.state.W @ one.state.W.T, other.state.W @ other.state.W.T, atol=1e-3)


def test_a_weight_is_a_repetition(rng):
    X, labels, _ = planted(rng)
    weights = rng.integers(1, 4, size=n)
    again = np.repeat(np.arange(n), weights)
    settings = Settings(likelihood="probit", tol=1e-10)
    one = fit(as_problem(X, labels, weights.astype(float)), settings, iterate)
    other = fit(as_problem(X[again], labels[again]), settings, iterate)
    assert_allclose(one.log_likelihood, other.log_likelihood, rtol=1e-8)
    assert_allclose(one.state.W_y @ one.state.W_y.T, other.state.W_y @ other.state.W_y.T, rtol=1e-3)


def test_two_classes_are_one_label(rng):
    X, labels, _ = planted(rng, C=2)
    classes = as_problem(X, labels)
    sign = np.sign(classes.Y * classes.Y[np.flatnonzero(labels == 1)[0]])
    one_label = classes._replace(Y=sign, labels=None)
    settings = Settings(likelihood="probit", tol=1e-11)
    one, other = (fit(problem, settings, iterate) for problem in (classes, one_label))
    assert_allclose(one.log_likelihood, other.log_likelihood, rtol=1e-9)
    assert_allclose(np.abs(one.state.W_y), np.abs(other.state.W_y), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("weights", [None, "some"])
def test_all_routes_find_one_maximum(rng, weights):
    n, d = 150, 80
    Z = rng.normal(size=(n, q))
    X = sparse.csr_array(np.round(Z @ rng.normal(size=(q, d)) + 0.5 * rng.normal(size=(n, d)), 1))
    labels = np.argmax(2 * Z @ rng.normal(size=(q, 3)) + rng.normal(size=(n, 3)), axis=1)
    labels[60:] = -1
    weights = None if weights is None else rng.uniform(0.5, 2, size=n)
    problem = as_problem(X, labels, weights)
    found = [
        fit(
            problem,
            Settings(solver=solver, likelihood="probit", tol=1e-11, rng=np.random.default_rng(0)),
            iterate,
        )
        for solver in ("moments", "dual", "subspace")
    ]
    for other in found[1:]:
        assert_allclose(other.log_likelihood, found[0].log_likelihood, rtol=1e-7)
        # Near a maximum parameters are off by the root of what the likelihood of a row is off.
        grams = [state.W @ state.W.T for state in (other.state, found[0].state)]
        assert_allclose(*grams, atol=1e-2 * np.abs(grams[1]).max())


def test_many_labelled_rows_of_wide_data_are_never_coordinates_on_all_axes(rng, monkeypatch):
    X = rng.normal(size=(400, 70)) * np.where(np.arange(70) < 5, 3.0, 1.0)
    monkeypatch.setattr("gnomon.models.sppca.fit.from_moments", None)
    settings = Settings(likelihood="probit", rng=rng)
    found = fit(as_problem(X, (X[:, 0] > 0).astype(int)), settings, iterate)
    assert found.run.converged


def test_separable_classes_have_a_maximum(rng):
    X = np.vstack([rng.normal(size=(20, d)), rng.normal(size=(20, d)) + 20.0])
    problem = as_problem(X, np.repeat([0, 1], 20))
    found = fit(problem, Settings(1, likelihood="probit", max_iter=2000), iterate)
    assert found.run.converged
    assert 1.0 < np.abs(found.state.W_y).max() < 10.0


def test_planted_loadings_are_found_again():
    rng = np.random.default_rng(3)
    n, C = 3000, 3
    Z, W, V = (rng.normal(size=size) for size in ((n, q), (d, q), (C, q)))
    V -= V.mean(axis=0)
    X = Z @ W.T + 0.5 * rng.normal(size=(n, d))
    labels = np.argmax(Z @ V.T + rng.normal(size=(n, C)), axis=1)
    found = fit(as_problem(X, labels), Settings(likelihood="probit"), iterate)
    ours = np.vstack([found.state.W, codes(C) @ found.state.W_y])
    truth = np.vstack([W, V])
    error = np.linalg.norm(ours @ ours.T - truth @ truth.T) / np.linalg.norm(truth @ truth.T)
    # Of 3,000 rows: .04 to .09 in eight samples.
    assert error < 0.15


def test_a_callback_sees_the_states_of_the_model(rng):
    seen = []
    loop = partial(iterate, callback=lambda n_iter, state, objective: seen.append(state))
    fit(as_problem(*planted(rng)[:2]), Settings(likelihood="probit"), loop)
    assert seen and all(isinstance(state, State) for state in seen)


def test_the_log_probability_of_one_label_is_that_of_a_normal_score(rng):
    state = random_state(rng, 1)
    Z, covariance = rng.normal(size=(7, q)), 0.3 * np.eye(q)
    found = probit.scored(state, Z, covariance, probit.Signs(np.ones((7, 1))))
    deviation = np.sqrt(1 + 0.3 * np.sum(state.W_y**2))
    score = Z @ state.W_y[0] + state.mean_y
    assert_allclose(found.log_probabilities, log_ndtr(score / deviation))


def test_one_gap_takes_the_route_of_gaps_and_none_the_same_maximum(rng):
    X, labels, _ = planted(rng)
    problem = as_problem(X, labels, rng.uniform(0.5, 2.0, size=n))
    settings = Settings(likelihood="probit", tol=1e-11, max_iter=3000)
    whole = fit(problem, settings, iterate)
    run, _ = gaps.maximise_probit(problem, settings, iterate)
    mean, state = run.state
    assert_allclose(run.objective[-1], whole.log_likelihood, rtol=1e-7)
    assert_allclose(mean, whole.mean, atol=1e-3)
    assert_allclose(state.W @ state.W.T, whole.state.W @ whole.state.W.T, atol=5e-3)
    assert_allclose(state.W_y @ state.W_y.T, whole.state.W_y @ whole.state.W_y.T, rtol=2e-2)


@pytest.mark.parametrize("seed", range(5))
def test_no_step_with_gaps_descends(seed):
    rng = np.random.default_rng(seed)
    X, labels, _ = planted(rng, C=2 + seed % 3, labelled=(1.0, 0.4)[seed % 2])
    X[rng.random(X.shape) < 0.3] = np.nan
    X[0] = 1.0
    objective = []
    loop = partial(iterate, callback=lambda *seen: objective.append(seen[2]))
    fit(as_problem(X, labels), Settings(likelihood="probit", max_iter=40), loop)
    assert np.min(np.diff(objective)) > -1e-6
