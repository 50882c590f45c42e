import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from gnomon.linalg import eigen
from gnomon.linalg.data import Matrix, center
from gnomon.linalg.eigen import krylov_pairs, symmetric_pairs


@pytest.mark.parametrize("shape", [(60, 12), (12, 60), (20, 20)])
@pytest.mark.parametrize("route", [eigen.from_moments, eigen.from_dual])
def test_routes_agree_with_the_svd(shape, route, rng):
    X = rng.normal(size=shape)
    _, centered = center(Matrix(X))
    values, vectors, trace = route(centered, 5)
    _, s, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    assert_allclose(values, s[:5] ** 2)
    assert_allclose(trace, np.sum(s**2))
    assert_allclose(vectors @ vectors.T, Vt[:5].T @ Vt[:5], atol=1e-8)


def test_directions_without_energy_are_completed_to_a_basis(rng):
    X = np.outer(rng.normal(size=8), rng.normal(size=30))
    _, centered = center(Matrix(X))
    values, vectors, _ = eigen.from_dual(centered, 3)
    assert_allclose(values[1:], 0, atol=1e-10 * values[0])
    assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-8)


def test_the_route_follows_the_shape():
    assert eigen.route(Matrix(np.empty((5000, 100))), 5) == "moments"
    assert eigen.route(Matrix(np.empty((100, 5000))), 5) == "dual"
    assert eigen.route(Matrix(np.empty((5000, 1000))), 5) == "subspace"


@pytest.fixture
def thin(rng):
    X = sparse.random_array((200, 60), density=0.1, rng=rng)
    return center(Matrix(sparse.csr_array(X @ sparse.diags_array(np.linspace(3, 1, 60)))))[1]


def test_pairs_are_those_of_the_moments(thin, rng):
    values, vectors = eigen.from_lanczos(thin, 4, rng)
    expected = eigen.from_moments(thin, 4)
    assert_allclose(values, expected.values, rtol=1e-8)
    gap = vectors @ vectors.T - expected.vectors @ expected.vectors.T
    assert np.abs(gap).max() < 1e-5


def test_pairs_of_wide_rows_come_from_vectors_as_long_as_these_are_few(rng, monkeypatch):
    X = sparse.random_array((60, 500), density=0.05, rng=rng, format="csr")
    wide, lengths = center(Matrix(X))[1], []

    def watched(operator, *arguments, **options):
        lengths.append(operator.shape[0])
        return eigsh(operator, *arguments, **options)

    monkeypatch.setattr(eigen, "eigsh", watched)
    values, vectors = eigen.from_lanczos(wide, 4, rng, tol=1e-9)
    expected = eigen.from_dual(wide, 4)
    assert lengths == [60]
    assert_allclose(values, expected.values, rtol=1e-8)
    assert_allclose(vectors @ vectors.T, expected.vectors @ expected.vectors.T, atol=1e-6)


def test_what_does_not_converge_is_found_in_blocks(thin, rng, monkeypatch):
    def gives_up(*arguments, **options):
        raise ArpackNoConvergence("too slow", np.empty(0), np.empty((60, 0)))

    monkeypatch.setattr(eigen, "eigsh", gives_up)
    values, _ = eigen.from_lanczos(thin, 4, rng)
    assert_allclose(values, eigen.from_moments(thin, 4).values, rtol=1e-6)


@pytest.fixture
def X(rng):
    X = rng.standard_normal((300, 200)) * np.arange(1, 201) ** -0.7
    return np.where(np.abs(X) > 0.05, X, 0.0)


def exact(X):
    values, vectors = np.linalg.eigh((X - X.mean(axis=0)).T @ (X - X.mean(axis=0)))
    return values[::-1], vectors[:, ::-1]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("rows", [300, 120], ids=["long", "wide"])
def test_leading_pairs_are_those_of_the_gram_matrix(X, rng, store, rows):
    X = X[:rows]
    values, V = krylov_pairs(center(Matrix(store(X)))[1], 5, rng, tol=1e-10)
    expected, U = exact(X)
    assert_allclose(values, expected[:5], rtol=1e-9)
    assert_allclose(V @ V.T, U[:, :5] @ U[:, :5].T, atol=1e-6)


def test_a_wide_pool_has_converged_leading_directions(X, rng):
    values, V = krylov_pairs(center(Matrix(X))[1], 60, rng, leading=4, tol=1e-6)
    expected, _ = exact(X)
    assert V.shape == (200, 60)
    assert_allclose(V.T @ V, np.eye(60), atol=1e-9)
    assert_allclose(values[:4], expected[:4], rtol=1e-7)
    assert np.sum(values) > 0.97 * np.sum(expected[:60])


def test_values_are_the_variances_along_the_vectors(X, rng):
    values, V = krylov_pairs(center(Matrix(X))[1], 40, rng, leading=4)
    T = (X - X.mean(axis=0)) @ V
    assert_allclose(T.T @ T, np.diag(values), atol=1e-7 * values[0])


def test_all_pairs_of_a_matrix_of_low_rank(rng):
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 40))
    values, V = krylov_pairs(Matrix(X), 10, rng)
    assert np.sum(values > 1e-9 * values[0]) == 3
    assert_allclose(X @ V[:, :3] @ V[:, :3].T, X, atol=1e-8)


def test_no_energy_has_no_directions(rng):
    values, V = krylov_pairs(Matrix(np.zeros((8, 6))), 2, rng)
    assert values.shape == (0,)
    assert V.shape == (6, 0)


@pytest.mark.parametrize("decay", [0.9, 1.0])
def test_pairs_of_a_symmetric_matrix_are_its_largest(rng, decay):
    """With energies that fall by products; with flat ones, of both signs, as a whole."""
    Q, _ = np.linalg.qr(rng.standard_normal((150, 150)))
    exact = decay ** np.arange(150) * np.where(np.arange(150) % 3, 1.0, -0.5)
    exact += 0.01 * np.arange(150)[::-1] / 150
    values, U = symmetric_pairs((Q * exact) @ Q.T, 6)
    expected = np.sort(exact)[::-1][:6]
    assert_allclose(values, expected, rtol=1e-8)
    assert_allclose(U.T @ U, np.eye(6), atol=1e-8)
    assert_allclose((Q * exact) @ (Q.T @ U), U * values, atol=1e-5)


def test_pairs_have_converged_where_the_matrix_leaves_their_span(rng):
    H = np.diag([5.0, 3.0, 1.0, 0.5])
    exact, tilted = eigen._Space(lambda B: H @ B, 4, 4), eigen._Space(lambda B: H @ B, 4, 4)
    exact.add(np.eye(4)[:, :2])
    assert eigen._converged(exact, 2, 1e-12)
    tilted.add(np.array([[1.0, 0.01, 0, 0]]).T / np.sqrt(1.0001))
    # The residual of a vector tilted by t is (5 - 3) t, in units of the first value.
    assert not eigen._converged(tilted, 1, 0.0039)
    assert eigen._converged(tilted, 1, 0.0041)


def test_a_leaning_block_spans_the_leading_axes_the_better_the_more_rounds():
    rng = np.random.default_rng(3)
    X = Matrix(rng.standard_normal((300, 60)) * 0.85 ** np.arange(60))
    start, axes = rng.standard_normal((300, 8)), np.linalg.svd(X.X)[2][:4]

    def outside(rounds):
        Q = np.linalg.qr(eigen.leaning_block(X, start, rounds))[0]
        return np.linalg.norm(axes - axes @ Q @ Q.T)

    np.testing.assert_array_equal(eigen.leaning_block(X, start, 1), X.X.T @ start)
    assert outside(2) < 0.7 * outside(1)
    assert outside(6) < 0.1 * outside(2)
