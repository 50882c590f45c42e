import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import multivariate_normal

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import iterate
from gnomon.linalg import eigen, graph
from gnomon.linalg.data import Centered, Matrix
from gnomon.linalg.mixed import Mixed
from gnomon.models.gaussian import ppca
from gnomon.models.gaussian.em import e_step, em_step
from gnomon.models.relational import paper
from gnomon.models.relational.fit import Problem, Settings, fit
from gnomon.stats.gaussian import View, latent_posterior

n, d, q = 12, 5, 2
ALPHA, GAMMA = 1.3, 0.01


@pytest.fixture
def A(rng):
    upper = np.triu(rng.random((n, n)) < 0.2, 1).astype(float)
    return sparse.csr_array(upper + upper.T)


@pytest.fixture
def X(rng):
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 3


@pytest.fixture
def view(rng):
    return View(rng.standard_normal((d, q)), 0.4)


def precision(A, alpha=ALPHA, gamma=GAMMA):
    """Delta, dense."""
    inner = alpha * np.eye(A.shape[0]) + A.toarray()
    return gamma * np.eye(A.shape[0]) + inner @ inner


def mixed(A, X, alpha=ALPHA, gamma=GAMMA):
    R = paper.mixing(A, alpha, gamma)
    mean = paper.relational_mean(Matrix(X), R)
    return Mixed(R, Centered(Matrix(X), mean)), mean


def second_moments(A, X):
    """H of eq. (15)."""
    Delta = precision(A)
    mean = X.T @ Delta.sum(axis=1) / Delta.sum()
    return (X - mean).T @ Delta @ (X - mean) / n


@pytest.mark.parametrize("gamma", [0.0, GAMMA])
def test_mixing_is_a_root_of_the_precision(A, gamma):
    R = paper.mixing(A, ALPHA, gamma)
    assert sparse.issparse(R)
    assert_allclose((R.T @ R).toarray(), precision(A, gamma=gamma))


def test_mean_is_the_relational_one(A, X):
    Delta = precision(A)
    _, mean = mixed(A, X)
    assert_allclose(mean, X.T @ Delta @ np.ones(n) / (np.ones(n) @ Delta @ np.ones(n)))
    assert np.abs(mean - X.mean(axis=0)).max() > 0.01


def test_closed_form_is_theorem_4(A, X, rng):
    values, U = np.linalg.eigh(second_moments(A, X))
    sigma2 = values[: d - q].mean()
    W = U[:, -q:] * np.sqrt(values[-q:] - sigma2)
    Y, _ = mixed(A, X)
    fitted = paper.closed_form(Y, Y.X.squared_norm, q, rng).view
    assert_allclose(fitted.sigma2, sigma2)
    assert_allclose(fitted.W @ fitted.W.T, W @ W.T, atol=1e-12)


def test_em_step_is_equations_21_and_22(A, X, view):
    H = second_moments(A, X)
    W, sigma2 = view
    M = W.T @ W + sigma2 * np.eye(q)
    new = H @ W @ np.linalg.inv(sigma2 * np.eye(q) + np.linalg.solve(M, W.T @ H @ W))
    noise = np.trace(H - H @ W @ np.linalg.solve(M, new.T)) / d
    Y, _ = mixed(A, X)
    (actual,), _ = em_step((view,), [(Y,)])
    assert_allclose(actual.W, new)
    assert_allclose(actual.sigma2, noise)


def test_em_ends_at_the_closed_form(A, X, rng):
    Y, _ = mixed(A, X)
    expected = paper.closed_form(Y, Y.X.squared_norm, q, rng).view
    run = iterate(paper.em_method(Y, Y.X.squared_norm, q, rng), max_iter=3000, tol=0)
    (fitted,) = run.state
    assert np.diff(run.objective).min() > -1e-9
    # The objective no longer tells where plain EM would still creep.
    assert_allclose(fitted.W @ fitted.W.T, expected.W @ expected.W.T, rtol=1e-5, atol=1e-5)
    assert_allclose(fitted.sigma2, expected.sigma2, rtol=1e-8)


def test_em_starts_at_principal_axes_and_small_noise(A, X, rng):
    Y, _ = mixed(A, X)
    (start,) = paper.em_method(Y, Y.X.squared_norm, q, rng).start
    _, _, axes = np.linalg.svd(Y.X @ np.eye(d), full_matrices=False)
    assert_allclose(start.W @ start.W.T, axes[:q].T @ axes[:q], atol=1e-8)
    assert start.sigma2 == 1e-6


def test_likelihood_is_the_matrix_normal_density(A, X, view):
    C = view.W @ view.W.T + view.sigma2 * np.eye(d)
    Y, mean = mixed(A, X)
    dense = multivariate_normal(np.tile(mean, n), np.kron(np.linalg.inv(precision(A)), C))
    alone = paper.of_row(view, ALPHA**2 + GAMMA)
    log_likelihood = paper.log_density(alone, Y.X, A, ALPHA, GAMMA)
    assert_allclose(log_likelihood, dense.logpdf(X.ravel()), rtol=1e-12)


def test_the_view_of_a_row_without_links_has_its_covariance(X, view):
    scale = precision(sparse.csr_array((1, 1)))[0, 0]
    W, sigma2 = paper.of_row(view, ALPHA**2 + GAMMA)
    C = view.W @ view.W.T + view.sigma2 * np.eye(d)
    assert_allclose(W @ W.T + sigma2 * np.eye(d), C / scale)


def test_mean_is_that_of_highest_likelihood(A, X, view, rng):
    R = paper.mixing(A, ALPHA, GAMMA)
    _, mean = mixed(A, X)
    best = e_step((view,), (Mixed(R, Centered(Matrix(X), mean)),))[2]
    for _ in range(10):
        other = mean + 0.01 * rng.standard_normal(d)
        assert e_step((view,), (Mixed(R, Centered(Matrix(X), other)),))[2] < best


def test_links_of_a_row_with_content_drop_out_of_its_posterior(A, X, view):
    """Latent variables given all content: eq. (19), row by row, whatever the links."""
    W, sigma2 = view
    Phi = np.linalg.inv(precision(A))
    C = np.kron(Phi, W @ W.T + sigma2 * np.eye(d))
    cross = np.kron(Phi, W.T)
    centered = (X - 3).ravel()
    expected = (cross @ np.linalg.solve(C, centered)).reshape(n, q)
    assert_allclose((X - 3) @ latent_posterior(W, sigma2).weights, expected, atol=1e-10)


def test_no_links_scale_ppca_by_alpha_and_gamma(X):
    Y, mean = mixed(sparse.csr_array((n, n)), X)
    plain = Centered(Matrix(X), X.mean(axis=0))
    expected = ppca.closed_form(eigen.from_moments(plain, q), q, n).view
    actual = ppca.closed_form(eigen.from_moments(Y, q), q, n).view
    assert_allclose(mean, X.mean(axis=0))
    assert_allclose(actual.W @ actual.W.T, (ALPHA**2 + GAMMA) * expected.W @ expected.W.T)


def test_renaming_nodes_changes_nothing(A, X, rng):
    order = rng.permutation(n)
    one = eigen.from_moments(mixed(A, X)[0], q)
    two = eigen.from_moments(mixed(A[order][:, order], X[order])[0], q)
    assert_allclose(one.values, two.values)
    assert_allclose(one.vectors @ one.vectors.T, two.vectors @ two.vectors.T, atol=1e-12)


def test_a_large_offset_does_not_matter(A, X):
    one = eigen.from_moments(mixed(A, X)[0], q)
    two = eigen.from_moments(mixed(A, X + 1e8)[0], q)
    gap = one.vectors @ one.vectors.T - two.vectors @ two.vectors.T
    assert np.linalg.norm(gap, 2) < 1e-6


def test_filter_is_a_power_of_the_normalised_adjacency(A, X):
    S = graph.normalized(A).toarray()
    Y = paper.filtered(A, Matrix(X), 2)
    assert_allclose(Y @ np.eye(d), S @ S @ X)
    assert_allclose(paper.smooth(A, X, 2), S @ S @ X)
    assert_allclose(Y.gram(), (S @ S @ X).T @ (S @ S @ X))


def test_density_of_the_filter_is_that_of_smoothed_rows(A, X, view):
    S = graph.normalized(A).toarray()
    C = view.W @ view.W.T + view.sigma2 * np.eye(d)
    expected = multivariate_normal(cov=C).logpdf(S @ S @ X).sum()
    assert_allclose(paper.filtered_log_density(view, Matrix(X), A, 2), expected)


def test_neighbour_sums_are_the_first_rows_of_the_mixture(A, X):
    R = paper.mixing(A, ALPHA, GAMMA)
    assert_allclose(paper.neighbour_sums(A, X, ALPHA), (R @ X)[:n] / ALPHA)


def test_the_noise_of_large_mixed_rows_is_measured_on_some(rng, monkeypatch):
    rows = sparse.random_array((300, 40), density=0.1, rng=rng)
    ring = sparse.csr_array(np.roll(np.eye(300), 1, axis=0))
    Y = Mixed(paper.mixing(ring + ring.T, 1.0, 0.0), Matrix(rows.tocsr()))
    exact = paper.closed_form(Y, 1.0, 2, rng).view
    monkeypatch.setattr(paper, "SAMPLED_ROWS", 200)
    monkeypatch.setattr(paper, "MANY_PRODUCTS", 0)
    sampled = paper.closed_form(Y, 1.0, 2, rng).view
    assert abs(sampled.sigma2 / exact.sigma2 - 1) > 1e-6
    assert_allclose(sampled.sigma2, exact.sigma2, rtol=0.1)


@pytest.mark.parametrize("method", [paper.closed_form, paper.em_method])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_cancel_over_their_links_are_refused(rng, method, dtype):
    """Two linked rows with gamma = 0: their sum is twice the mean, and rounding is left."""
    pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    for _ in range(10):
        X = Matrix(rng.standard_normal((2, 3)).astype(dtype))
        R = paper.mixing(pair, 1.0, 0.0).astype(dtype)
        rows = Centered(X, paper.relational_mean(X, R))
        with pytest.raises(ValueError, match="no variation left once its rows are mixed"):
            method(Mixed(R, rows), rows.squared_norm, 1, rng)


# The printed text against its model, docs/errata.md.


def test_erratum_1_the_expansion_with_alpha_lacks_the_degrees(A):
    """Footnote 3 prints gamma I + alpha^2 I + 2 alpha A + B, with B = A A off the diagonal."""
    squared = (A @ A).toarray()
    degrees = np.diag(A.sum(axis=1))
    B = squared - np.diag(np.diag(squared))
    printed = (GAMMA + ALPHA**2) * np.eye(n) + 2 * ALPHA * A.toarray() + B
    R = paper.mixing(A, ALPHA, GAMMA)
    Delta = (R.T @ R).toarray()
    assert_allclose(printed + degrees, Delta)
    assert np.abs(printed - Delta).max() >= 1


def test_erratum_2_without_gamma_the_density_need_not_exist():
    """Remark 1 allows gamma = 0; two linked rows then have a precision of rank one."""
    pair = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert np.linalg.matrix_rank(precision(pair, alpha=1.0, gamma=0.0)) == 1
    assert paper.log_determinant(pair, 1.0, 0.0) == -np.inf
    assert_allclose(
        paper.log_determinant(pair, 1.0, 0.1),
        np.linalg.slogdet(precision(pair, alpha=1.0, gamma=0.1))[1],
    )


def test_erratum_3_the_principal_components_are_not_the_projection(A, X):
    """Section 2.1 has x = W'(t - mu), the model's mean of x given t is (19)."""
    settings = Settings(q, "paper", ALPHA, GAMMA, "svd", 2, 0, 100, None, None)
    found = fit(Problem(X, A), settings, iterate)
    W, sigma2 = found.view
    printed = (X - found.mean) @ W
    mean = printed @ np.linalg.inv(W.T @ W + sigma2 * np.eye(q))
    assert_allclose(found.coordinates, mean)
    assert np.abs(printed - mean).max() > 0.1 * np.abs(mean).max()


def test_erratum_4_the_prior_makes_linked_rows_negatively_correlated(A, view):
    R = paper.mixing(A, 1.0, 1e-3)
    Delta, linked = (R.T @ R).toarray(), A.toarray() > 0
    partial_correlation = -Delta[linked]
    assert partial_correlation.max() < 0
    Phi = np.linalg.inv(Delta)
    scale = np.sqrt(np.diag(Phi))
    assert (Phi / np.outer(scale, scale))[linked].mean() < -0.1
    # The model has linked rows that are opposite for far likelier than rows that are equal.
    pair, x = sparse.csr_array(np.array([[0.0, 1.0], [1.0, 0.0]])), view.W[:, 0]
    equal, opposite = (
        paper.log_density(view, Matrix(np.array(rows)), pair, 1.0, 1e-3)
        for rows in ([x, x], [x, -x])
    )
    assert opposite > equal + 1


def test_erratum_5_the_precision_is_not_sparse_with_a_hub():
    star = sparse.csr_array((np.ones(99), (np.zeros(99, dtype=int), np.arange(1, 100))), (100, 100))
    star = star + star.T
    R = paper.mixing(star, 1.0, 0.0)
    assert R.nnz < 3 * 100
    assert (R.T @ R).nnz == 100**2


def test_the_root_of_a_sparse_precision_squares_to_it(A):
    Delta = sparse.csr_array(precision(A))
    R = paper.root_of(Delta)
    assert_allclose((R.T @ R).toarray(), Delta.toarray(), atol=1e-12)


@pytest.mark.parametrize("last", [0.0, -1.0])
def test_a_precision_that_is_not_positive_definite_is_refused(last):
    with pytest.raises(NumericalError, match="precision of the rows is"):
        paper.root_of(sparse.diags_array([1.0, 2.0, last]))
