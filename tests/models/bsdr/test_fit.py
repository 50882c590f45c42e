"""The fit as a function: without the estimators, but for where it must agree with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.datasets import load_wine
from sklearn.neighbors import NearestCentroid

from gnomon import BSDR, BSDRRegressor
from gnomon.inference.loop import iterate
from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import fit as module
from gnomon.models.bsdr import gibbs
from gnomon.models.bsdr.factors import Factors, Gamma, Priors, make_model
from gnomon.models.bsdr.fit import Problem, Settings, choose_priors, fit
from gnomon.models.bsdr.inputs import read_inputs
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs, SignOutputs


def make_settings(**other):
    plain = Settings(
        n_components=2,
        prior="auto",
        projection_prior=None,
        weight_prior=Gamma(1.0, 1.0),
        latent_noise=1.0,
        standardize=True,
        n_init=None,
        max_iter=100,
        tol=1e-4,
        rng=np.random.default_rng(0),
    )
    return plain._replace(**other)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture
def problem(wine):
    X, y = wine
    return Problem(Matrix(X), ClassOutputs(y, 3))


@pytest.mark.parametrize("prior", ["entry", "column", "row"])
def test_the_objective_ascends_and_is_that_of_the_estimator(wine, problem, prior):
    found = fit(problem, make_settings(prior=prior), iterate)
    model = BSDR(prior=prior, random_state=0).fit(*wine)
    assert found.run.converged
    assert np.diff(found.run.objective).min() > -1e-8
    assert found.run.objective == model.objective_
    assert_array_equal(found.loadings.T, model.components_)
    assert_array_equal(found.loadings_sd.T, model.loadings_sd_)
    assert_array_equal(found.B, np.vstack([model.bias_, model.weights_]))
    assert isinstance(found.run.state, Factors)


def test_numbers_have_noise_in_their_own_units(rng):
    X = rng.standard_normal((150, 4))
    Y = X[:, :1] + 0.5 * rng.standard_normal((150, 2))
    scaled = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    settings = make_settings(latent_noise=1.0, n_components=1)
    found = fit(Problem(Matrix(X), NumberOutputs(scaled)), settings, iterate)
    model = BSDRRegressor(1, random_state=0).fit(X, Y)
    assert_allclose(found.noise_variance * Y.var(axis=0), model.noise_variance_)
    eps = found.run.state.eps
    assert_allclose(found.noise_variance, stats.invgamma(eps.shape, scale=1 / eps.scale).mean())
    assert_allclose(model.noise_variance_[0], 0.25, rtol=0.3)


def test_one_output_of_much_data_is_least_squares(rng):
    """With priors drowned by the rows the regression is that of ordinary least squares."""
    X = rng.standard_normal((1000, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(1000)
    outputs = NumberOutputs(y[:, None])
    settings = make_settings(n_components=1, tol=1e-7, max_iter=300)
    found = fit(Problem(Matrix(X), outputs), settings, iterate)
    expected = np.linalg.lstsq(X - X.mean(axis=0), y, rcond=None)[0]
    assert_allclose(found.loadings @ found.B[1:, 0], expected, atol=0.01)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_components_fall_in_relevance_with_the_largest_loading_positive(wine, sign):
    X, y = wine
    outputs = SignOutputs(sign * np.column_stack([2.0 * (y > 0) - 1, 2.0 * (y > 1) - 1]))
    found = fit(Problem(Matrix(X), outputs), make_settings(prior="entry"), iterate)
    assert found.relevance[0] >= found.relevance[1]
    standard = found.loadings / found.inputs.factors[:, None]
    assert np.all(standard[np.abs(standard).argmax(axis=0), np.arange(2)] > 0)
    assert_allclose(found.feature_relevance, np.linalg.norm(standard, axis=1))


def test_what_carries_nothing_is_left_out_where_components_are_found(rng):
    Z = rng.standard_normal((300, 2))
    labels = np.floor((np.arctan2(*Z.T) + np.pi) / (2 * np.pi) * 6).astype(int) % 6
    X = np.hstack([Z, rng.standard_normal((300, 6))])
    problem = Problem(Matrix(X), ClassOutputs(labels, 6))
    found = fit(problem, make_settings(n_components=None), iterate)
    assert found.loadings.shape == (8, 2)
    assert_array_equal(found.kept, [True, True, False, False, False])
    kept = fit(problem, make_settings(n_components=5, prior="column"), iterate)
    assert kept.loadings.shape == (8, 5)


def test_the_null_solution_is_flagged(rng):
    problem = Problem(Matrix(rng.standard_normal((40, 30))), ClassOutputs(np.arange(40) % 4, 4))
    found = fit(problem, make_settings(n_components=None), iterate)
    assert not found.kept.any()
    assert found.loadings.shape[1] == 1


def test_rows_that_are_equal_are_refused():
    problem = Problem(Matrix(np.full((6, 2), 0.1)), ClassOutputs(np.arange(6) % 2, 2))
    with pytest.raises(ValueError, match="no variation"):
        fit(problem, make_settings(), iterate)


SPARSE = sparse.csr_array(sparse.random_array((30, 40), density=0.1, rng=0))


@pytest.mark.parametrize(
    ("X", "other", "kind", "projection"),
    [
        (np.zeros((9, 5)), {}, "entry", (1.0, 1.0)),
        (np.zeros((9, 1001)), {}, "column", (1.0, 1.0)),
        (SPARSE, {}, "column", (1.0, 1.0)),
        (np.zeros((9, 5)), {"n_components": None}, "column", (0.01, 100.0)),
        (np.zeros((9, 5)), {"prior": "row"}, "row", (0.001, 1000.0)),
        (np.zeros((9, 5)), {"prior": "column"}, "column", (1.0, 1.0)),
        (
            np.zeros((9, 5)),
            {"prior": "row", "projection_prior": Gamma(2.0, 3.0)},
            "row",
            (2.0, 3.0),
        ),
    ],
)
def test_priors_follow_the_data(X, other, kind, projection):
    settings = make_settings(weight_prior=Gamma(3.0, 0.5), **other)
    priors = choose_priors(Problem(Matrix(X), None), settings)
    assert priors == Priors(kind, Gamma(*projection), Gamma(3.0, 0.5), Gamma(3.0, 0.5))


def test_several_starts_are_tried_where_classes_lie_on_a_line(problem, monkeypatch):
    seen = []
    real = module.random_start
    monkeypatch.setattr(module, "random_start", lambda *a: seen.append(1) or real(*a))
    for q, n_init, n_random in ((1, None, 5), (2, None, 1), (2, 3, 3)):
        seen.clear()
        fit(problem, make_settings(n_components=q, n_init=n_init, max_iter=1), iterate)
        assert len(seen) == n_random


def test_the_first_start_separates_the_classes_and_is_random_beyond(wine, problem):
    _, y = wine
    _, ridge = read_inputs(problem.X, "entry", 0.01, True)
    model = make_model(ridge, problem.outputs, Priors())
    P = module.regression_start(model, 4, np.random.default_rng(3))
    Z = np.asarray(ridge.X @ P)
    assert_allclose(Z.std(axis=0), 1.0)
    assert NearestCentroid().fit(Z[:, :2], y).score(Z[:, :2], y) > 0.98
    X, columns = np.asarray(ridge.X @ np.eye(13)), problem.outputs.start_columns()
    weights = np.linalg.solve(0.01 * np.eye(13) + X.T @ X, X.T @ (columns - columns.mean(axis=0)))
    basis = np.linalg.qr(weights[:, :2])[0]
    assert_allclose(basis @ (basis.T @ P[:, :2]), P[:, :2], atol=1e-8)
    random = module.random_start(model, 4, np.random.default_rng(3))
    assert_array_equal(P[:, 2:], random[:, 2:])


def test_the_loop_that_is_given_runs_the_sweeps(problem):
    calls = []

    def loop(method, *, max_iter, tol):
        calls.append((max_iter, tol))
        return iterate(method, max_iter=max_iter, tol=tol)

    fit(problem, make_settings(n_components=1, max_iter=7, tol=0.5), loop)
    assert calls == [(7, 0.5 * 178)]


def test_draws_take_the_place_of_the_mean_field(wine, problem):
    watched = []
    sampling = gibbs.Sampling(2, 30, 5, lambda *round_: watched.append(round_))
    settings = make_settings(n_components=1, sampling=sampling)
    found = fit(problem, settings, iterate)
    values = {name: gibbs.merge_chains(value) for name, value in found.draws.values.items()}
    assert_allclose(found.loadings, values["projection"].mean(axis=0).T)
    assert_allclose(found.loadings_sd, values["projection"].std(axis=0).T)
    assert_allclose(found.B[1:], values["weights"].mean(axis=0))
    B = np.concatenate([values["bias"][:, None], values["weights"]], axis=1)
    assert_allclose(found.C[2], np.cov(B[:, :, 2].T, ddof=0))
    assert found.noise_variance is None
    n_before = len(found.run.objective)
    assert [n_iter for n_iter, *_ in watched] == list(range(n_before + 1, n_before + 36))
    assert_allclose(watched[-1][2], found.draws.values["log_joint"][0, -1])
    assert not found.draws.have_mixed
    assert found.draws.least_ess <= min(found.draws.ess["score_spread"])


@pytest.mark.parametrize("outputs", ["classes", "numbers"])
def test_the_sweeps_of_the_paper_ascend_and_are_sent_to_the_loop_as_they_are(wine, outputs, rng):
    X, y = wine
    named = ClassOutputs(y, 3) if outputs == "classes" else NumberOutputs(y[:, None] - y.mean())
    methods = []

    def loop(method, **options):
        methods.append(method)
        return iterate(method, **options)

    settings = make_settings(solver="paper", latent_noise=1.0, max_iter=40, tol=0)
    found = fit(Problem(Matrix(X), named), settings, loop)
    assert len(methods) == 1
    assert isinstance(methods[0].start, Factors)
    assert np.diff(found.run.objective).min() > -1e-8


def test_the_sweeps_of_the_paper_come_near_the_bound_of_the_accelerated_ones(problem):
    """With as many components as scores there is one maximum worth the name."""
    settings = make_settings(latent_noise=1.0, max_iter=500, tol=1e-6)
    fast = fit(problem, settings, iterate).run.objective
    slow = fit(problem, settings._replace(solver="paper"), iterate).run.objective
    assert len(slow) > 5 * len(fast)
    assert abs(slow[-1] - fast[-1]) < 0.01 * (slow[-1] - slow[0])
