import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg.data import Matrix
from gnomon.linalg.krylov import krylov_pairs
from gnomon.linalg.stacked import center


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


def test_no_energy_gives_zeros(rng):
    values, V = krylov_pairs(Matrix(np.zeros((8, 6))), 2, rng)
    assert not values.any()
    assert np.isfinite(V).all()
