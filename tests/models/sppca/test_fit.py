import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from gnomon.datasets import remove_entries
from gnomon.inference.loop import iterate
from gnomon.models.gaussian import fit as ppca
from gnomon.models.sppca.fit import Problem, Settings, fit
from gnomon.models.sppca.statistics import State

n, d, c, q = 200, 60, 2, 3


@pytest.fixture
def problem(rng):
    """Rows off the origin, 30 of which have both outputs and ten one of them."""
    Z = rng.normal(size=(n, q)) * [3, 2, 1]
    X = Z @ rng.normal(size=(q, d)) + 0.5 * rng.normal(size=(n, d)) + 4
    Y = Z @ rng.normal(size=(q, c)) + 0.3 * rng.normal(size=(n, c))
    observed = np.repeat(np.arange(n) < 40, c).reshape(n, c)
    observed[:10, 0] = False
    return Problem(X, np.where(observed, Y, 0.0), observed)


def settings(**options):
    defaults = {"n_components": q, "tol": 1e-11, "rng": np.random.default_rng(0)}
    return Settings(**{**defaults, **options})


def gram(found):
    return found.state.W @ found.state.W.T


@pytest.mark.parametrize("solver", ["auto", "dual", "subspace"])
def test_every_route_ends_at_the_same_maximum(problem, solver):
    exact = fit(problem, settings(solver="moments"), iterate)
    found = fit(problem, settings(solver=solver), iterate)
    assert_allclose(found.log_likelihood, exact.log_likelihood, rtol=1e-10)
    assert_allclose(gram(found), gram(exact), atol=1e-4 * np.abs(gram(exact)).max())
    assert_allclose(found.outputs.coef, exact.outputs.coef, atol=1e-5)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
def test_sparse_rows_are_dense_rows(problem, form):
    exact = fit(problem, settings(), iterate)
    found = fit(problem._replace(X=form(problem.X)), settings(), iterate)
    assert_allclose(gram(found), gram(exact), atol=1e-8)


def test_the_em_of_the_paper_ends_at_the_maximum_with_the_mean_of_the_labelled(problem):
    complete = problem._replace(observed=np.repeat(problem.observed.all(axis=1)[:, None], c, 1))
    exact = fit(complete, settings(target_mean="labelled"), iterate)
    found = fit(complete, settings(solver="em", max_iter=4000, tol=1e-9), iterate)
    # Plain EM creeps: after 4,000 steps tens of nats of 10,000 may be left, and never too many.
    assert exact.log_likelihood - 1e-2 * abs(exact.log_likelihood) < found.log_likelihood
    assert found.log_likelihood < exact.log_likelihood + 1e-6
    assert_allclose(found.state.mean_y, complete.Y[10:40].mean(axis=0))
    # A row that lacks an output counts as unlabelled.
    assert_allclose(
        fit(problem, settings(solver="em", max_iter=5), iterate).state.mean_y,
        complete.Y[10:40].mean(axis=0),
    )


def test_the_em_of_the_paper_starts_at_standard_normal_loadings_and_small_noise(problem):
    starts = []

    def loop(method, **limits):
        starts.append(method.start)
        return iterate(method, **limits)

    fit(problem, settings(solver="em", max_iter=1), loop)
    drawn = np.random.default_rng(0)
    for view in starts[0]:
        assert_array_equal(view.W, drawn.standard_normal(view.W.shape))
        assert view.sigma2 == 1e-5


@pytest.mark.parametrize("options", [{"noise": 0.5}, {"prior": 1.0}], ids=str)
def test_the_em_of_the_paper_learns_all_noise_without_prior(problem, options):
    with pytest.raises(ValueError, match="solver == 'em'"):
        fit(problem, settings(solver="em", **options), iterate)


@pytest.mark.parametrize("solver", ["moments", "dual", "subspace"])
@pytest.mark.parametrize("noise", ["learn", "per_output", 0.5, (0.3, 0.2)], ids=str)
def test_the_objective_never_falls(problem, solver, noise):
    found = fit(problem, settings(solver=solver, noise=noise, tol=1e-8), iterate)
    assert found.run.converged
    objective = np.array(found.run.objective)
    assert np.diff(objective).min(initial=0) >= -1e-9 * abs(objective[-1])


def test_the_em_of_the_paper_never_loses_objective(problem):
    found = fit(problem, settings(solver="em", max_iter=200), iterate)
    assert np.diff(found.run.objective).min() > 0 and not found.run.converged


@pytest.mark.parametrize("solver", ["moments", "subspace", "em"])
def test_callbacks_see_the_state_of_the_model(problem, solver):
    seen = []

    def loop(method, **limits):
        return iterate(method, callback=lambda n_iter, state, _: seen.append(state), **limits)

    found = fit(problem, settings(solver=solver, tol=1e-6), loop)
    assert len(seen) in (len(found.run.objective), len(found.run.objective) - 1)
    assert all(isinstance(state, State) for state in seen)
    assert seen[-1].W_y.shape == (c, q)


def test_without_outputs_it_is_ppca(problem):
    alone = Problem(problem.X, np.zeros((n, 0)), np.zeros((n, 0), dtype=bool))
    for X in (problem.X, remove_entries(problem.X, 0.1)):
        found = fit(alone._replace(X=X), settings(max_iter=3000), iterate)
        exact = ppca.fit(
            ppca.Problem(X),
            ppca.Settings(q, "auto", 3000, 1e-11, np.random.default_rng(0)),
            iterate,
        )
        assert_allclose(gram(found), exact.view.W @ exact.view.W.T, atol=1e-3)
        assert_allclose(found.mean, exact.mean, atol=1e-6)


def test_the_result_is_the_conditional_of_the_joint_gaussian(problem):
    found = fit(problem, settings(), iterate)
    W, sigma2, W_y, sigma2_y, mean_y = found.state
    precision = np.linalg.inv(W @ W.T + sigma2 * np.eye(d))
    assert_allclose(found.projection, precision @ W, atol=1e-10)
    assert_allclose(found.latent_covariance, np.eye(q) - W.T @ precision @ W, atol=1e-10)
    assert_allclose(found.outputs.coef, precision @ W @ W_y.T, atol=1e-10)
    assert_allclose(found.outputs.offset, mean_y)
    C = W_y @ (np.eye(q) - W.T @ precision @ W) @ W_y.T + np.diag(sigma2_y)
    assert_allclose(found.outputs.covariance, C, atol=1e-10)
    assert_allclose(
        found.input_share.sum(), np.trace(W @ W.T) / np.trace(W @ W.T + sigma2 * np.eye(d))
    )


def test_scales_stretch_the_same_coordinates(problem):
    latent, energy = (fit(problem, settings(scale=scale), iterate) for scale in ("auto", "energy"))
    assert_allclose(latent.latent_scale, 1)
    assert_allclose(energy.projection * energy.latent_scale, latent.projection)
    W, sigma2, W_y, sigma2_y, _ = energy.state
    lengths = np.sum(W**2, axis=0) + sigma2 * np.sum(W_y**2 / sigma2_y[:, None], axis=0)
    assert_allclose(1 / energy.latent_scale**2, lengths)


def test_passes_over_the_rows_are_counted(problem):
    assert fit(problem, settings(solver="moments"), iterate).n_passes == 1
    assert fit(problem, settings(solver="dual"), iterate).n_passes == 2
    for found in (
        fit(problem, settings(solver="em", max_iter=7), iterate),
        fit(problem._replace(X=remove_entries(problem.X, 0.1)), settings(max_iter=7), iterate),
    ):
        assert found.n_passes == 2 * len(found.run.objective)
    found = fit(problem, settings(solver="subspace"), iterate)
    assert found.n_passes == 2 * len(found.run.objective) + 1


def test_a_basis_that_would_soon_fill_the_space_is_formed_at_once(problem):
    few = settings(solver="subspace", n_components=6)
    assert fit(problem, few, iterate).n_passes == 1
    wide = Problem(problem.X[:50], problem.Y[:50], problem.observed[:50])
    assert fit(wide, few, iterate).n_passes == 2


@pytest.mark.parametrize("solver", ["moments", "dual"])
def test_noise_of_few_outputs_at_its_floor_is_told(rng, solver):
    Z = rng.normal(size=(n, q))
    X = rng.normal(size=(n, d)) + 5 * Z @ rng.normal(size=(q, d))
    observed = np.repeat(np.arange(n) < 4, c).reshape(n, c)
    problem = Problem(X, np.where(observed, Z @ rng.normal(size=(q, c)), 0.0), observed)
    assert fit(problem, settings(solver=solver, tol=1e-8), iterate).at_floor == (False, True)
    fixed = settings(solver=solver, noise=(1.0, 1e-9), tol=1e-8)
    assert fit(problem, fixed, iterate).at_floor == (False, False)


@pytest.mark.parametrize("solver", ["moments", "dual", "subspace", "gaps"])
def test_noise_of_inputs_at_its_floor_is_told(rng, solver):
    X = rng.normal(size=(n, q)) @ rng.normal(size=(q, d))
    if solver == "gaps":
        solver, X[0, 0] = "auto", np.nan
    flat = Problem(X, rng.normal(size=(n, c)), np.ones((n, c), dtype=bool))
    assert fit(flat, settings(solver=solver, max_iter=3000), iterate).at_floor == (True, False)


def test_rows_that_cannot_be_fitted_are_refused(problem):
    flat = np.ones((n, d))
    for flat[0, 0] in (1.0, np.nan):
        with pytest.raises(ValueError, match="no variation"):
            fit(problem._replace(X=flat), settings(), iterate)
    X = problem.X.copy()
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match="column 3"):
        fit(problem._replace(X=X), settings(), iterate)
