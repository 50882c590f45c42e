from functools import partial

import numpy as np
from numpy.testing import assert_allclose

from gnomon.inference.loop import Method, iterate
from gnomon.models.relational import gaps, model


def test_gap_covariances_without_links_are_exact(state, rng):
    flat, d = state._replace(a=np.zeros(2), beta=np.zeros(2)), 5
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
    total, entropy = gaps.gap_covariances(flat, observed, shares)
    assert_allclose(total, expected, atol=1e-12)
    assert_allclose(entropy, expected_entropy)


def test_mean_noise_shares_are_traces_of_precisions(state, data):
    L = np.eye(len(data.S.toarray())) - data.S.toarray()
    expected = []
    for k in range(2):
        inner = np.linalg.inv(np.eye(len(L)) + state.beta[k] * L)
        v = state.a[k] * inner @ inner + (state.c[k] + state.sigma2) * np.eye(len(L))
        expected.append(state.sigma2 * np.trace(np.linalg.inv(v)) / len(L))
    expected.append(state.sigma2 / (state.c[2] + state.sigma2))
    assert_allclose(gaps.mean_noise_shares(state, data), expected)


def test_without_gaps_a_step_is_that_of_complete_rows(state, data, X):
    after, bound = gaps.step(gaps.Filled(state, X), X, data)
    expected, objective = model.step(state, data)
    assert_allclose(bound, objective)
    assert_allclose(after.state.U, expected.U, atol=1e-9)
    assert_allclose(after.rows, X)


def test_the_bound_never_falls(state, data, X, rng):
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    start = gaps.Filled(state, np.where(np.isnan(holes), 0.0, holes))
    method = Method(start, partial(gaps.step, holes=holes, data=data))
    run = iterate(method, max_iter=40, tol=0)
    assert np.diff(run.objective).min() > -1e-3
    assert_allclose(run.state.rows[~np.isnan(holes)], holes[~np.isnan(holes)])
