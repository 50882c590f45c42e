import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.datasets import make_subspace, remove_entries
from gnomon.inference.callbacks import History
from gnomon.inference.loop import iterate
from gnomon.models.gaussian import gaps, patterns
from gnomon.models.gaussian.fit import Problem, Settings, fit
from gnomon.stats.gaussian import covariance, log_density


@pytest.fixture
def X():
    return make_subspace(150, 12, 3).X


def settings(n_components=3, solver="auto", max_iter=500, tol=1e-10):
    return Settings(n_components, solver, max_iter, tol, np.random.default_rng(0))


@pytest.mark.parametrize("solver", ["moments", "dual", "subspace", "em"])
def test_every_solver_ends_at_the_same_maximum(X, solver):
    exact = fit(Problem(X), settings(solver="moments"), iterate)
    found = fit(Problem(X), settings(solver=solver), iterate)
    assert_allclose(covariance(*found.view), covariance(*exact.view), rtol=1e-4, atol=1e-4)
    assert_allclose(found.run.objective[-1], exact.run.objective[-1], rtol=1e-9)
    assert_allclose(found.total, exact.total)


def test_the_objective_is_the_log_likelihood_of_the_rows(X):
    found = fit(Problem(X), settings(), iterate)
    centered = fit(Problem(sparse.csr_array(X)), settings(), iterate)
    from gnomon.linalg.data import Centered, Matrix

    rows = Centered(Matrix(X), found.mean)
    assert_allclose(found.run.objective[-1], log_density(rows, *found.view).sum())
    assert_allclose(centered.run.objective[-1], found.run.objective[-1])


def test_the_route_of_gaps_equals_the_closed_form_where_there_are_none(X):
    exact = fit(Problem(X), settings(), iterate)
    run = gaps.maximise(patterns.inputs(X), 3, iterate, max_iter=500, tol=1e-13)
    W, _, (sigma2,) = run.state
    assert_allclose(covariance(W, sigma2), covariance(*exact.view), rtol=1e-5, atol=1e-6)
    assert_allclose(run.objective[-1], exact.run.objective[-1], rtol=1e-10)


def test_the_objective_of_rows_with_gaps_never_falls(X):
    found = fit(Problem(remove_entries(X, 0.2)), settings(), iterate)
    assert found.run.converged
    assert np.diff(found.run.objective).min() >= -1e-9 * abs(found.run.objective[-1])


def test_callbacks_see_loadings_mean_and_noise(X):
    seen = History(keep_states=True)

    def loop(method, **limits):
        return iterate(method, callback=seen, **limits)

    fit(Problem(remove_entries(X, 0.2)), settings(), loop)
    assert all(isinstance(state, gaps.State) for state in seen.states)


def test_weights_count_as_repeated_rows(X):
    weights = np.arange(len(X)) % 3 + 1.0
    heavy = fit(Problem(X, weights), settings(), iterate)
    often = fit(Problem(np.repeat(X, weights.astype(int), axis=0)), settings(), iterate)
    assert_allclose(covariance(*heavy.view), covariance(*often.view))
    assert_allclose(heavy.run.objective[-1], often.run.objective[-1])


def test_the_size_is_chosen_and_its_curve_kept(X):
    found = fit(Problem(X), settings("auto"), iterate)
    assert found.view.W.shape[1] == found.curve.best == 3
    share = fit(Problem(X), settings(0.5), iterate)
    explained = np.sum(share.view.W**2, axis=0) + share.view.sigma2
    assert explained.sum() > 0.5 * share.total
    assert explained[:-1].sum() <= 0.5 * share.total


def test_noise_at_its_floor_is_told(rng):
    flat = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 5))
    assert fit(Problem(flat), settings(2), iterate).at_floor
    assert not fit(Problem(flat), settings(1), iterate).at_floor


def test_rows_without_variation_are_refused():
    with pytest.raises(ValueError, match="no variation"):
        fit(Problem(np.ones((5, 3))), settings(1), iterate)


@pytest.mark.parametrize("q", [1, 3])
def test_the_total_variance_is_that_of_the_model_with_gaps_too(X, q):
    found = fit(Problem(remove_entries(X, 0.2)), settings(q), iterate)
    assert_allclose(found.total, np.trace(covariance(*found.view)))


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_the_total_variance_of_a_fit_with_a_prior_is_that_of_its_covariance(share):
    X = make_subspace(80, 6, 2, noise_variance=0.5, random_state=0).X
    X = remove_entries(X, share) if share else X
    rng = np.random.default_rng(0)
    found = fit(Problem(X), Settings("auto", "auto", 200, 1e-8, rng, "ard"), iterate)
    # The prior shrinks what rows have along the axes.
    assert_allclose(found.total, np.trace(covariance(*found.view)), rtol=1e-9 if share else 0.1)
