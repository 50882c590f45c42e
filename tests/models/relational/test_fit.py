import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon import PRPCA
from gnomon.datasets import remove_entries
from gnomon.inference.loop import iterate
from gnomon.linalg import graph
from gnomon.models.gaussian import fit as gaussian_fit
from gnomon.models.relational import paper, rounds
from gnomon.models.relational.fit import Problem, Settings, fit
from gnomon.stats.gaussian import covariance


def settings(relation="paper", **changes):
    rng = np.random.default_rng(0)
    default = Settings(2, relation, 1.3, 0.01, "svd", 2, 2, 100, None, rng)
    return default._replace(**changes)


def theorem_4(rows, q, n):
    """Covariance of mixed rows with q axes, from a dense eigendecomposition."""
    values, U = np.linalg.eigh(rows.T @ rows / n)
    sigma2 = values[:-q].mean()
    W = U[:, -q:] * np.sqrt(values[-q:] - sigma2)
    return W @ W.T + sigma2 * np.eye(len(values))


@pytest.mark.parametrize("solver", ["svd", "em"])
def test_paper_ends_at_theorem_4(linked, solver):
    X, A = linked
    inner = 1.3 * np.eye(len(X)) + A.toarray()
    Delta = 0.01 * np.eye(len(X)) + inner @ inner
    mean = X.T @ Delta.sum(axis=1) / Delta.sum()
    root = np.linalg.cholesky(Delta).T
    found = fit(Problem(X, A), settings(solver=solver, tol=0, max_iter=3000), iterate)
    expected = theorem_4(root @ (X - mean), 2, len(X)) / (1.3**2 + 0.01)
    assert_allclose(found.mean, mean)
    # EM gets there the slower the nearer two eigenvalues are.
    assert_allclose(
        covariance(*found.view), expected, rtol=1e-6, atol=1e-6 if solver == "svd" else 1e-3
    )
    assert np.diff(found.run.objective).min(initial=0) > -1e-9 * abs(found.run.objective[0])
    assert found.links_used and found.state is None
    assert (len(found.run.objective) > 1) == (solver == "em")


def test_filter_is_ppca_of_smoothed_rows(linked):
    X, A = linked
    S = graph.normalized(A).toarray()
    found = fit(Problem(X, A), settings("filter", power=3), iterate)
    smoothed = np.linalg.matrix_power(S, 3) @ (X - X.mean(axis=0))
    assert_allclose(covariance(*found.view), theorem_4(smoothed, 2, len(X)))
    weights = found.view.W @ np.linalg.inv(
        found.view.W.T @ found.view.W + found.view.sigma2 * np.eye(2)
    )
    assert_allclose(found.coordinates, (X - X.mean(axis=0)) @ weights, atol=1e-12)


@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_without_links_it_is_ppca(linked, relation, share):
    X = remove_entries(linked[0], share) if share else linked[0]
    found = fit(Problem(X), settings(relation), iterate)
    options = gaussian_fit.Settings(2, "auto", 100, 1e-8, np.random.default_rng(0))
    expected = gaussian_fit.fit(gaussian_fit.Problem(X), options, iterate)
    assert_allclose(covariance(*found.view), covariance(*expected.view))
    assert_allclose(found.run.objective, expected.run.objective)
    assert not found.links_used and found.state is None


def test_the_maximum_of_the_learnt_model_is_climbed_without_a_fall(linked):
    X, A = linked
    found = fit(Problem(X, A), settings("learnt", tol=1e-8, max_iter=2000), iterate)
    assert found.links_used and found.run.converged
    assert np.diff(found.run.objective).min() > -1e-7 * abs(found.run.objective[-1])
    assert found.gain > found.permuted_gain + 20
    centered = X - X.mean(axis=0)
    assert_allclose(found.coordinates, centered @ found.state.U, atol=1e-10)
    lam = 1 - np.linalg.eigvalsh(graph.normalized(A).toarray())
    h = (1 + found.state.beta * np.maximum(lam, 0)[:, None]) ** -2
    lengths = np.sum(found.view.W**2, axis=0)
    assert_allclose(lengths, found.state.a * h.mean(axis=0))


def test_the_gain_is_the_likelihood_over_that_of_ppca(linked):
    X, A = linked
    found = fit(Problem(X, A), settings("learnt", tol=1e-8), iterate)
    options = gaussian_fit.Settings(4, "auto", 100, 1e-8, np.random.default_rng(0))
    without = gaussian_fit.fit(gaussian_fit.Problem(X), options, iterate)
    gain = found.run.objective[-1] - without.run.objective[-1]
    assert_allclose(found.gain, gain, rtol=1e-3)


def test_the_estimator_keeps_what_is_fitted(linked):
    X, A = linked
    chosen = fit(Problem(X, A), settings("learnt"), iterate)
    model = PRPCA(2, relation="learnt", own_components=2, random_state=0).fit(X, links=A)
    assert chosen.run.converged
    assert len(chosen.run.objective) <= rounds.ROUNDS
    assert_allclose(model.shared_variances_, chosen.state.a)
    assert_allclose(model.axes_, chosen.state.U.T)
    assert_allclose(model.training_scores_, chosen.coordinates)


def test_shared_variances_are_shrunk_by_the_factor_that_was_chosen(linked, monkeypatch):
    X, A = linked
    found = []
    for factor in (1.0, 0.25):
        chosen = rounds.Rounds(3, factor)
        monkeypatch.setattr(rounds, "choose", lambda *given, chosen=chosen: chosen)
        found.append(fit(Problem(X, A), settings("learnt"), iterate))
    assert [len(each.run.objective) for each in found] == [3, 3]
    assert all(each.run.converged for each in found)
    assert_allclose(found[1].state.a, 0.25 * found[0].state.a)
    assert_allclose(found[1].gain, found[0].gain)


def test_links_by_chance_leave_ppca(linked):
    X, A = linked
    order = np.random.default_rng(1).permutation(len(X))
    found = fit(Problem(X, A[order][:, order]), settings("learnt"), iterate)
    values, U = np.linalg.eigh(np.cov(X.T, bias=True))
    sigma2 = values[:-4].mean()
    assert not found.links_used
    assert_allclose(found.view.sigma2, sigma2)
    assert_allclose(np.sum(found.view.W**2, axis=0), values[::-1][:2] - sigma2)
    weights = U[:, ::-1][:, :2] * np.sqrt(values[::-1][:2] - sigma2) / values[::-1][:2]
    expected = (X - X.mean(axis=0)) @ weights
    assert_allclose(np.abs(found.coordinates), np.abs(expected), atol=1e-9)


@pytest.mark.parametrize("relation", ["paper", "filter"])
def test_gaps_are_filled_by_ppca_first(linked, relation):
    X, A = linked
    holes = remove_entries(X, 0.1)
    found = fit(Problem(holes, A), settings(relation), iterate)
    options = gaussian_fit.Settings(2, "auto", 100, 1e-8, np.random.default_rng(0))
    alone = gaussian_fit.fit(gaussian_fit.Problem(holes), options, iterate)
    C, filled = covariance(*alone.view), holes.copy()
    for row in filled:
        miss = np.isnan(row)
        known = np.linalg.solve(C[np.ix_(~miss, ~miss)], (row - alone.mean)[~miss])
        row[miss] = alone.mean[miss] + C[np.ix_(miss, ~miss)] @ known
    expected = fit(Problem(filled, A), settings(relation), iterate)
    assert_allclose(covariance(*found.view), covariance(*expected.view), rtol=1e-8)


def test_the_paper_by_em_with_gaps_is_likelier_than_with_rows_that_ppca_filled(linked):
    X, A = linked
    holes = remove_entries(X, 0.1)
    found = fit(Problem(holes, A), settings(solver="em", tol=1e-6, max_iter=500), iterate)
    assert found.run.converged
    assert found.run.objective[-1] > found.run.objective[0] + 1
    assert np.diff(found.run.objective).min() > -1e-6 * abs(found.run.objective[0])


def test_a_precision_of_ones_own_is_used_as_that_of_links(linked):
    X, A = linked
    R = paper.mixing(A, 1.3, 0.01)
    Delta = sparse.csr_array(R.T @ R)
    found = fit(Problem(X, None, Delta), settings(), iterate)
    expected = fit(Problem(X, A), settings(), iterate)
    scale = Delta.diagonal().mean() / (1.3**2 + 0.01)
    assert_allclose(found.mean, expected.mean)
    assert_allclose(covariance(*found.view) * scale, covariance(*expected.view), rtol=1e-6)


def test_learnt_rows_with_gaps_end_near_those_of_complete_rows(linked):
    X, A = linked
    # With a tolerance both end at their maxima, and not where entries left out ask to stop.
    maximum = settings("learnt", tol=1e-4)
    found = fit(Problem(remove_entries(X, 0.1), A), maximum, iterate)
    full = fit(Problem(X, A), settings("learnt", tol=1e-7), iterate)
    gap = [found.state.U[:, :2] @ found.state.U[:, :2].T for found in (found, full)]
    assert found.links_used
    assert np.linalg.norm(gap[0] - gap[1], 2) < 0.1
    assert np.diff(found.run.objective).min() > -1e-3 * len(X)
    assert found.coordinates.shape == (len(X), 4)


def test_sparse_rows_in_another_order_have_the_same_coordinates(linked, monkeypatch):
    X, A = linked
    X = sparse.csr_array(np.where(X > 5, X, 0.0))
    few = fit(Problem(X, A), settings("learnt", tol=1e-7), iterate)
    monkeypatch.setattr(rounds, "MANY", 100)
    many = fit(Problem(X, A), settings("learnt", tol=1e-7), iterate)
    assert_allclose(many.gain, few.gain, rtol=0.01)
    centered = X.toarray() - X.toarray().mean(axis=0)
    assert_allclose(many.coordinates, centered @ many.state.U, atol=1e-5)


def test_a_graph_that_averages_everything_away_is_refused(linked):
    X, _ = linked
    everyone = sparse.csr_array(1 - np.eye(len(X)))
    with pytest.raises(ValueError, match="no variation left once its rows are mixed"):
        fit(Problem(X, everyone), settings("filter"), iterate)


def test_em_ends_when_an_entry_gains_less_than_the_tolerance(linked):
    X, A = linked
    asked = []

    def loop(method, *, max_iter, tol):
        asked.append(tol)
        return iterate(method, max_iter=max_iter, tol=tol)

    fit(Problem(X, A), settings(solver="em", tol=1e-3), loop)
    assert_allclose(asked, 1e-3 * A.shape[0] * X.shape[1])
