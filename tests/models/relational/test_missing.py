import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from gnomon.inference.loop import iterate
from gnomon.models.gaussian import gaps, patterns
from gnomon.models.relational import missing, paper
from gnomon.stats.gaussian import View

n, d, q = 8, 4, 1


@pytest.fixture
def rows():
    """Linked rows with gaps, some of them of linked rows in one column, and their precision."""
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((n, n)) < 0.3, 1).astype(float)
    A[0, 1] = 1.0
    R = paper.mixing(sparse.csr_array(A + A.T), 1.0, 0.1)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1)) @ rng.normal(size=(1, d))
    X = np.where(rng.random(X.shape) < 0.25, np.nan, X)
    X[:2, 0] = np.nan
    return missing.Rows(X, sparse.csr_array(R.T @ R), np.nonzero(np.isnan(X)))


def filled_by_ppca(X):
    data = patterns.inputs(X)
    state = gaps.maximise(data, q, iterate, max_iter=200, tol=1e-9).state
    return gaps.fill(state, data)[0]


def log_density(rows, mean, view):
    """Log density of the observed entries, less d/2 log |Delta|, from the dense covariance."""
    Delta, C = rows.Delta.toarray(), view.W @ view.W.T + view.sigma2 * np.eye(d)
    x = (rows.X - mean).ravel()
    o = ~np.isnan(x)
    S = np.kron(np.linalg.inv(Delta), C)[np.ix_(o, o)]
    value = -0.5 * (x[o] @ np.linalg.solve(S, x[o]) + np.linalg.slogdet(2 * np.pi * S)[1])
    return value - 0.5 * d * np.linalg.slogdet(Delta)[1]


def found(rows, **limits):
    limits = {"max_iter": 2000, "tol": 1e-12} | limits
    return missing.maximise(rows.X, rows.Delta, filled_by_ppca(rows.X), q, iterate, **limits)


def test_the_objective_is_the_density_of_what_is_observed(rows):
    run = found(rows)
    state = run.state
    assert_allclose(run.objective[-1], log_density(rows, state.mean, state.view), rtol=1e-9)
    assert np.diff(run.objective).min() > -1e-9


def test_it_ends_at_the_maximum_and_above_rows_filled_by_ppca(rows):
    run, rng = found(rows), np.random.default_rng(1)
    start = missing.m_step(filled_by_ppca(rows.X), 0.0, rows, q)
    assert run.objective[-1] > log_density(rows, start.mean, start.view) + 0.3

    def loss(x):
        view = View(x[d : 2 * d, None], np.exp(x[-1]))
        return -log_density(rows, x[:d], view)

    first = np.concatenate([start.mean, start.view.W[:, 0] + 0.1 * rng.normal(size=d), [0.0]])
    assert_allclose(run.objective[-1], -minimize(loss, first).fun, rtol=1e-6)


def test_gaps_row_by_row_have_the_same_means_and_a_lower_bound(rows, monkeypatch):
    exact = found(rows)
    filled, _, log_det = missing.exactly(exact.state, rows)
    means, _, bound = missing.row_by_row(exact.state, rows)
    assert_allclose(means, filled, atol=1e-6)
    assert bound > log_det
    monkeypatch.setattr(missing, "MOST_EXACT", 0)
    run = found(rows)
    assert np.diff(run.objective).min() > -1e-9
    near = log_density(rows, run.state.mean, run.state.view)
    assert run.objective[-1] <= near
    # The maximum of the bound is no lower than the bound is at the exact maximum.
    assert run.objective[-1] > exact.objective[-1] - (bound - log_det) / 2 - 1e-6


def test_complete_rows_have_the_closed_form_at_once(rows):
    X = filled_by_ppca(rows.X)
    whole = rows._replace(X=X, places=np.nonzero(np.isnan(X)))
    start = missing.m_step(X, 0.0, whole, q)
    again, value = missing.step(start, whole)
    assert_allclose(again.view.W @ again.view.W.T, start.view.W @ start.view.W.T, atol=1e-9)
    assert_allclose(value, log_density(whole, start.mean, start.view), rtol=1e-9)


def test_the_tolerance_is_for_each_observed_entry(rng):
    X = rng.normal(size=(6, 4))
    filled = X.copy()
    X[[0, 1, 5], [2, 0, 3]] = np.nan
    limits = missing.maximise(
        X, np.eye(6), filled, 1, lambda method, **limits: limits, max_iter=5, tol=2.0
    )
    assert limits == {"max_iter": 5, "tol": 2.0 * (24 - 3)}
