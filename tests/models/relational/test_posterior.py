import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.models.relational import posterior
from gnomon.models.relational.posterior import Nodes


def last_rows(A, coordinates, m):
    """The last m nodes as new rows, all others known."""
    return Nodes(A, coordinates[: A.shape[0] - m])


def test_shared_part_and_signal_are_the_conditional_means(state, data, X, parts):
    shared, own, noise = parts
    K = np.linalg.inv(shared + own + noise)
    f = posterior.shared_part(state, data.S, X @ state.U)
    expected = (shared @ K @ X.ravel()).reshape(X.shape)
    assert_allclose(f @ state.U[:, :2].T, expected, atol=1e-12)
    fg = posterior.signal(state, data.S, X @ state.U)
    expected = ((shared + own) @ K @ X.ravel()).reshape(X.shape)
    assert_allclose(fg @ state.U.T, expected, atol=1e-12)


def test_new_rows_are_embedded_by_their_content_and_all_links(state, data, X, A):
    nodes = last_rows(A, X @ state.U, 4)
    expected = posterior.shared_part(state, data.S, X @ state.U)[-4:]
    assert_allclose(posterior.embed(state, data.X.rows(np.arange(10, 14)), nodes), expected)
    holes = X[-4:].copy()
    holes[1, 2] = np.nan
    filled, _ = posterior.fill_new(state, holes, nodes)
    expected = posterior.shared_part(state, data.S, np.vstack([X[:-4], filled]) @ state.U)[-4:]
    assert_allclose(posterior.embed(state, holes, nodes), expected)


def test_shared_variances_are_those_of_the_conditional_distribution(state, X, A, parts):
    shared, own, noise = parts
    C = shared - shared @ np.linalg.inv(shared + own + noise) @ shared
    axes = np.kron(np.eye(len(X)), state.U[:, :2])
    expected = np.diag(axes.T @ C @ axes).reshape(len(X), 2)
    actual = posterior.shared_variances(state, last_rows(A, X @ state.U, 5))
    assert_allclose(actual, expected[-5:], rtol=1e-10)


def test_the_factor_multiplies_the_noise_of_content(state, data, X):
    noisier = state._replace(c=3 * state.c, sigma2=3 * state.sigma2)
    actual = posterior.shared_part(state, data.S, X @ state.U, noise_factor=3.0)
    assert_allclose(actual, posterior.shared_part(noisier, data.S, X @ state.U))


def test_missing_entries_are_filled_by_their_conditional_means(state, data, X, rng, covariance_of):
    gaps = rng.random(X.shape) < 0.3
    gaps[4] = True
    C = covariance_of(state)
    miss, seen = np.flatnonzero(gaps), np.flatnonzero(~gaps)
    expected = C[np.ix_(miss, seen)] @ np.linalg.solve(C[np.ix_(seen, seen)], X.ravel()[seen])
    where = np.flatnonzero(gaps.any(axis=1))
    holes = np.where(gaps, np.nan, X)[where]
    filled, coordinates = posterior.fill(state, data.S, X @ state.U, where, holes, tol=1e-12)
    assert_allclose(filled[gaps[where]], expected, atol=1e-9)
    assert_allclose(coordinates[where], filled @ state.U)


def test_a_row_without_content_follows_its_neighbours(state, data):
    linked = data.S.toarray() > 0
    node = int(np.argmax(linked.sum(axis=1)))
    coordinates = np.zeros((len(linked), 3))
    coordinates[linked[node]] = [1.0, 0.0, 0.0]
    nothing = np.full((1, 5), np.nan)
    _, coordinates = posterior.fill(state, data.S, coordinates, np.array([node]), nothing)
    assert 0.1 < coordinates[node, 0] < 1
    assert_allclose(coordinates[node, 1:], 0, atol=1e-12)


def test_deviations_of_gaps_are_those_given_all_other_rows(state, X, A, covariance_of):
    C, (n, d) = covariance_of(state), X.shape
    gaps = np.zeros((4, d), dtype=bool)
    gaps[0, [1, 4]] = gaps[1, 2] = gaps[3] = True
    expected = np.zeros((4, d))
    for i, node in enumerate(range(n - 4, n)):
        miss = node * d + np.flatnonzero(gaps[i])
        seen = np.delete(np.arange(n * d), miss)
        cross = C[np.ix_(miss, seen)]
        K = C[np.ix_(miss, miss)] - cross @ np.linalg.solve(C[np.ix_(seen, seen)], cross.T)
        expected[i, gaps[i]] = np.sqrt(np.diag(K))
    actual = posterior.gap_deviations(state, gaps, last_rows(A, X @ state.U, 4))
    assert_allclose(actual, expected, rtol=1e-9)


def test_density_is_the_dense_gaussian(state, data, X, A, rng, covariance_of):
    expected = multivariate_normal(cov=covariance_of(state)).logpdf(X.ravel())
    assert_allclose(posterior.log_density(state, data.X, A, rng), expected)
