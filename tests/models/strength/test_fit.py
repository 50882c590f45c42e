import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon import SPPCA
from gnomon.datasets import remove_entries
from gnomon.inference.callbacks import History
from gnomon.inference.loop import iterate
from gnomon.linalg.data import Matrix, center
from gnomon.models.gaussian import fit as gaussian
from gnomon.models.gaussian import gaps
from gnomon.models.strength import gaps as strength_gaps
from gnomon.models.strength.closed_form import principal_space, supervise
from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.fit import Problem, Settings, fit, fit_in

N, CLASSES = 160, 4


@pytest.fixture
def problem(rng):
    """Classes that differ where x varies little, a fifth of the rows labelled."""
    truth = np.arange(N) % CLASSES
    X = rng.standard_normal((N, 12)) * np.r_[np.full(6, 4.0), np.ones(6)] + 3
    X[:, 6:] += 3 * rng.standard_normal((CLASSES, 6))[truth]
    labels = np.where(np.arange(N) < 32, truth, -1)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(CLASSES), np.eye(CLASSES)[:, :-1]]))
    observed = np.repeat((labels >= 0)[:, None], CLASSES - 1, axis=1)
    return Problem(X, np.where(observed, Q[:, 1:][labels], 0.0), observed, labels)


def settings(strength=0.5, q=2, *, latent_scale=False, max_iter=500, tol=1e-9):
    return Settings(q, strength, latent_scale, max_iter, tol, np.random.default_rng(0))


def coordinates(found, X):
    return (X - found.fitted.mean) @ found.fitted.projection


@pytest.mark.parametrize("strength", [0.0, 0.5, "auto"])
def test_it_is_the_fit_of_the_estimator(problem, strength):
    found = fit(problem, settings(strength), iterate)
    model = SPPCA(2, supervision=strength, random_state=0).fit(problem.X, problem.labels)
    assert found.strength == model.supervision_
    assert_allclose(coordinates(found, problem.X), model.transform(problem.X), atol=1e-10)
    assert found.run.objective == model.objective_
    assert (found.curve is not None) == hasattr(model, "supervision_curve_")


def test_a_strength_is_chosen_where_labels_can_be_found(problem):
    found = fit(problem, settings("auto"), iterate)
    assert found.strength > 0
    assert found.strength in found.curve.s
    assert found.fitted.target_share.sum() > 0.5
    assert fit(problem, settings(0.3), iterate).curve is None


def test_the_objective_is_the_share_of_the_energy(problem):
    found = fit(problem, settings(0.3), iterate)
    shares = 0.7 * found.fitted.input_share + 0.3 * found.fitted.target_share
    assert_allclose(found.run.objective, [shares.sum()])
    assert found.run.converged
    assert found.passes == 2


def test_a_space_that_is_known_gives_the_same(problem):
    space = principal_space(*center(Matrix(problem.X)), 150, np.random.default_rng(0))
    outputs = Outputs(problem.Y, problem.observed, problem.labels)
    known = fit_in(space, outputs, settings(0.5))
    found = fit(problem, settings(0.5), iterate)
    assert_allclose(known.fitted.projection, found.fitted.projection, atol=1e-12)


def test_the_latent_scale_gives_posterior_means(problem):
    energy = fit(problem, settings(0.5), iterate)
    latent = fit(problem, settings(0.5, latent_scale=True), iterate)
    expected = coordinates(energy, problem.X) * energy.fitted.latent_scale
    assert_allclose(coordinates(latent, problem.X), expected, atol=1e-12)


def test_sparse_rows_and_weights_give_what_repeated_rows_give(problem):
    weights = np.arange(N) % 3 + 1.0
    heavy = problem._replace(X=sparse.csr_array(problem.X), weights=weights)
    again = np.repeat(np.arange(N), weights.astype(int))
    often = Problem(*(part[again] for part in problem[:4]))
    pair = [fit(rows, settings(0.5), iterate).fitted.projection for rows in (heavy, often)]
    assert_allclose(*pair, atol=1e-8)


@pytest.mark.parametrize("strength", [0.0, 0.6, 1.0])
def test_the_objective_of_rows_with_gaps_never_falls(problem, strength):
    gappy = problem._replace(X=remove_entries(problem.X, 0.2))
    found = fit(gappy, settings(strength), iterate)
    objective = np.array(found.run.objective)
    assert found.run.converged
    assert np.diff(objective).min(initial=0) >= -1e-9 * abs(objective[-1])
    assert found.passes >= 2 * len(objective) + 4


def test_the_start_with_gaps_counts_the_variance_that_they_hide(problem):
    """The likelihood before the first step is that of the closed form with this total."""
    X, options = remove_entries(problem.X, 0.2), settings(0.6)
    outputs = Outputs(problem.Y, problem.observed, problem.labels)
    filled = strength_gaps.fill(X, None, options)
    space = principal_space(*center(filled.X), 150, np.random.default_rng(0))
    found = supervise(space._replace(total=filled.total), outputs, 2, 0.6)
    joint = strength_gaps.joint_rows(X, None, filled, found, 0.6)
    _, expected = strength_gaps.step(strength_gaps.start(joint, filled, found), joint)
    run = fit(problem._replace(X=X), options, iterate).run
    assert_allclose(run.objective[0], expected, rtol=1e-10)


def test_few_gaps_change_little(problem):
    """Where axes are told apart by their variance, as one entry may turn equal ones."""
    problem = problem._replace(X=problem.X * np.append([4.0, 3.0], np.ones(10)))
    X = problem.X.copy()
    X[5, 3] = np.nan
    whole = coordinates(fit(problem, settings(0.6), iterate), problem.X)
    found = coordinates(fit(problem._replace(X=X), settings(0.6), iterate), problem.X)
    assert np.abs(found - whole).max() < 0.05 * np.ptp(whole)


def test_no_supervision_with_gaps_is_ppca(problem):
    X = remove_entries(problem.X, 0.2)
    found = fit(problem._replace(X=X), settings(0.0, tol=1e-11), iterate).fitted
    options = gaussian.Settings(2, "auto", 500, 1e-11, np.random.default_rng(0))
    ppca = gaussian.fit(gaussian.Problem(X), options, iterate)
    covariances = [W @ W.T for W in (found.state.W, ppca.view.W)]
    assert_allclose(*covariances, atol=1e-3)
    assert_allclose(found.state.sigma2, ppca.view.sigma2, rtol=1e-4)
    assert_allclose(found.mean, ppca.mean, atol=1e-4)


def test_callbacks_see_loadings_means_and_both_noises(problem):
    seen = History(keep_states=True)

    def loop(method, **limits):
        return iterate(method, callback=seen, **limits)

    fit(problem._replace(X=remove_entries(problem.X, 0.2)), settings(0.6), loop)
    assert all(isinstance(state, gaps.State) for state in seen.states)
    assert {len(state.W) for state in seen.states} == {12 + CLASSES - 1}
    assert {len(state.noise) for state in seen.states} == {2}


def test_too_few_iterations_are_told(problem):
    gappy = problem._replace(X=remove_entries(problem.X, 0.2))
    found = fit(gappy, settings(0.6, max_iter=2, tol=1e-14), iterate)
    assert not found.run.converged
    assert len(found.run.objective) == 2


def test_rows_that_are_all_equal_are_refused(problem):
    with pytest.raises(ValueError, match="no variation"):
        fit(problem._replace(X=np.ones((N, 3))), settings(), iterate)
