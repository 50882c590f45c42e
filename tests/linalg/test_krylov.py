import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

<<<<<<< HEAD
from gnomon.linalg.data import Matrix, center
from gnomon.linalg.krylov import krylov_pairs


@pytest.fixture
def X(rng):
    X = rng.standard_normal((300, 200)) * np.arange(1, 201) ** -0.7
    return np.where(np.abs(X) > 0.05, X, 0.0)


def exact(X):
    values, vectors = np.linalg.eigh((X - X.mean(axis=0)).T @ (X - X.mean(axis=0)))
    return values[::-1], vectors[:, ::-1]


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_leading_pairs_are_those_of_the_gram_matrix(X, rng, store):
    values, V = krylov_pairs(center(Matrix(store(X)))[1], 5, rng, tol=1e-10)
    expected, U = exact(X)
    assert_allclose(values, expected[:5], rtol=1e-9)
    assert_allclose(V @ V.T, U[:, :5] @ U[:, :5].T, atol=1e-6)


def test_a_wide_pool_has_converged_leading_directions(X, rng):
    values, V = krylov_pairs(center(Matrix(X))[1], 60, rng, leading=4)
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


def test_no_energy_gives_zeros(rng):
    values, V = krylov_pairs(Matrix(np.zeros((8, 6))), 2, rng)
    assert not values.any()
    assert np.isfinite(V).all()
=======
from gnomon.linalg import graph, krylov


def random_graph(rng, n, p=0.2):
    upper = np.triu(rng.random((n, n)) < p, 1).astype(float)
    return sparse.csr_array(upper + upper.T)


@pytest.fixture
def S(rng):
    return graph.normalized(random_graph(rng, 20))


def test_a_full_run_gives_functions_of_the_matrix_exactly(S, rng):
    B = rng.standard_normal((20, 3))
    space = krylov.lanczos(S, B, 20)
    values, V = np.linalg.eigh(S.toarray())
    expected = V @ (np.exp(values)[:, None] * (V.T @ B))
    assert_allclose(krylov.apply(space, np.exp(space.nodes)), expected, atol=1e-10)
    forms = np.sum(space.weights * np.exp(space.nodes), axis=0)
    assert_allclose(forms, np.sum(B * expected, axis=0), rtol=1e-10)


def test_columns_that_end_early_or_are_zero_do_no_harm(S):
    values, V = np.linalg.eigh(S.toarray())
    B = np.column_stack([V[:, 3], np.zeros(20), V[:, 0] + V[:, -1]])
    space = krylov.lanczos(S, B, 8)
    expected = V @ (np.exp(values)[:, None] * (V.T @ B))
    assert_allclose(krylov.apply(space, np.exp(space.nodes)), expected, atol=1e-10)


def test_few_steps_suffice_for_a_smooth_function(rng):
    S = graph.normalized(random_graph(rng, 400, 0.02))
    B = rng.standard_normal((400, 2))
    space = krylov.lanczos(S, B, 16)
    expected = B + S @ B / 2
    assert_allclose(krylov.apply(space, 1 + space.nodes / 2), expected, atol=1e-10)


def test_the_density_of_a_small_matrix_is_its_spectrum(S, rng):
    density = krylov.density(S, None, rng)
    assert_allclose(
        np.sum(density.weights * density.nodes**3),
        np.trace(S.toarray() ** 1 @ S.toarray() @ S.toarray()),
    )


def test_the_sampled_density_agrees_with_the_exact_one(rng, monkeypatch):
    A = random_graph(rng, 600, 0.005)
    S = graph.normalized(A)
    exact = krylov.density(S, None, rng)
    monkeypatch.setattr(krylov, "EXACT_BELOW", 10)
    sampled = krylov.density(S, graph.component_basis(A), rng)
    assert_allclose(sampled.weights.sum(), 600)
    for beta in (1.0, 30.0):
        logs = [
            d.weights @ np.log(0.1 + (1 + beta * (1 - d.nodes)) ** -2) for d in (exact, sampled)
        ]
        assert_allclose(logs[1], logs[0], rtol=0.03)
>>>>>>> 981d750 (wip models)
