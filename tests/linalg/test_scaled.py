import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg.data import Centered, Matrix
from gnomon.linalg.scaled import Scaled, column_spread, row_space


@pytest.fixture
def X(rng):
    return rng.standard_normal((9, 4)) * (rng.random((9, 4)) < 0.4) + 0.0


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_products_are_those_of_the_scaled_matrix(X, rng, store):
    factors = np.array([2.0, 0.0, 0.5, 1.0])
    data, expected = Scaled(Matrix(store(X)), factors), X * factors
    assert_allclose(data @ np.eye(4), expected)
    assert_allclose(data.T @ np.eye(9), expected.T)
    assert_allclose(np.concatenate(list(data.dense_blocks())), expected)
    assert_allclose(data.rows([1, 3]) @ np.eye(4), expected[[1, 3]])
    assert_allclose(data.gram(), expected.T @ expected)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_spread_is_the_standard_deviation_at_any_scale(rng, scale):
    X = rng.standard_normal((50, 3))
    data = Centered(Matrix(scale * X), scale * X.mean(axis=0))
    assert_allclose(column_spread(data, np.ones(50)), scale * X.std(axis=0), rtol=1e-12)


def test_spread_of_sparse_data_counts_the_zeros(rng):
    X = rng.standard_normal((50, 8)) * (rng.random((50, 8)) < 0.1)
    w = rng.uniform(1, 2, 50)
    mean = w @ X / w.sum()
    expected = np.sqrt(w @ (X - mean) ** 2 / w.sum())
    data = Centered(Matrix(sparse.csr_array(X)), mean)
    assert data.is_sparse
    assert_allclose(column_spread(data, w), expected)


def test_row_space_keeps_all_products_between_rows(rng):
    X = rng.standard_normal((6, 20))
    X[5] = X[0] + X[1]
    space = row_space(Matrix(X))
    V = X.T @ space.lift
    assert space.T.shape == (6, 5)
    assert_allclose(V.T @ V, np.eye(5), atol=1e-10)
    assert_allclose(space.T @ V.T, X, atol=1e-10)
