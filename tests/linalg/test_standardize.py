import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg.data import Centered, Matrix, Scaled, as_data
from gnomon.linalg.standardize import (
    RARE,
    column_spread,
    column_statistics,
    row_space,
    standardize,
)


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
    assert_allclose(column_spread(data, np.ones(50)).sd, scale * X.std(axis=0), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_spread_of_single_precision_is_the_standard_deviation_at_any_scale(rng, scale):
    X = (scale * rng.standard_normal((50, 3))).astype(np.float32)
    found = column_spread(Centered(Matrix(X), X.mean(axis=0)), np.ones(50))
    assert_allclose(found.about, X.astype(float).std(axis=0), rtol=1e-5)


def test_spread_of_sparse_data_counts_the_zeros(rng):
    X = rng.standard_normal((50, 8)) * (rng.random((50, 8)) < 0.1)
    w = rng.uniform(1, 2, 50)
    mean = w @ X / w.sum()
    expected = np.sqrt(w @ (X - mean) ** 2 / w.sum())
    data = Centered(Matrix(sparse.csr_array(X)), mean)
    assert data.is_sparse
    assert_allclose(column_spread(data, w).sd, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_have_means_deviations_and_may_vary_or_not(rng, weighted):
    X = np.column_stack([rng.standard_normal((50, 3)) + 5, np.full(50, 0.1), np.zeros(50)])
    w = rng.uniform(1, 2, 50) if weighted else np.ones(50)
    columns = column_statistics(Matrix(X), w if weighted else None)
    mean = w @ X / w.sum()
    assert_allclose(columns.mean, mean)
    assert_allclose(columns.sd, np.sqrt(w @ (X - mean) ** 2 / w.sum()), atol=1e-15)
    assert columns.varying.tolist() == [True, True, True, False, False]
    assert_allclose(columns.centered @ np.eye(5), X - mean, atol=1e-15)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_kurtosis_is_the_mean_fourth_power(rng, store):
    X = rng.standard_normal((60, 8)) * (rng.random((60, 8)) < 0.3)
    w = rng.uniform(1, 2, 60)
    mean = w @ X / w.sum()
    spread = np.sqrt(w @ (X - mean) ** 2 / w.sum())
    data = Centered(Matrix(store(X)), mean)
    expected = w @ ((X - mean) / spread) ** 4 / w.sum()
    assert_allclose(column_spread(data, w).kurtosis, expected)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rare_columns_have_unit_size_and_the_others_unit_variance(rng, store):
    n = 2000
    words = np.zeros((n, 3))
    for column, count in enumerate((2, 5, 20)):
        words[rng.choice(n, count, replace=False), column] = 10.0**column
    X = np.column_stack([rng.standard_normal((n, 2)) * [1.0, 50.0], words])
    factors = standardize(Matrix(store(X)), np.ones(n), by_column=True).factors
    assert_allclose(factors[:2] * X[:, :2].std(axis=0), factors[0] * X[:, 0].std())
    sizes = factors[2:] * 10.0 ** np.arange(3)
    assert_allclose(sizes, sizes[0], rtol=0.03)
    assert_allclose(sizes[0] / (factors[0] * X[:, 0].std()), np.sqrt(RARE), rtol=0.01)
    assert_allclose(np.mean((factors * X.std(axis=0)) ** 2), 1.0)


def test_row_space_keeps_all_products_between_rows(rng):
    X = rng.standard_normal((6, 20))
    X[5] = X[0] + X[1]
    space = row_space(Matrix(X))
    V = X.T @ space.combinations
    assert space.T.shape == (6, 5)
    assert_allclose(V.T @ V, np.eye(5), atol=1e-10)
    assert_allclose(space.T @ V.T, X, atol=1e-10)


@pytest.mark.parametrize("n", [20, 1001, 20011])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("value", [0.1, 1e8 / 3, -7.0])
def test_a_constant_column_does_not_vary_however_its_mean_rounds(n, dtype, store, value):
    X = np.zeros((n, 8), dtype=dtype)
    X[:, 0], X[::9, 1] = value, np.arange(len(X[::9])) % 3
    found = column_statistics(as_data(store(X)))
    assert found.varying.tolist() == [False, True, *[False] * 6]


def test_a_column_far_from_zero_varies(rng):
    X = 1e8 + rng.normal(size=(5000, 1))
    found = column_statistics(as_data(X))
    assert found.varying.all()
    assert_allclose(found.sd, X.std(axis=0), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_principal_components_are_left_as_they_are_and_other_columns_are_not(rng, dtype, store):
    table = rng.standard_normal((60, 6)) @ rng.standard_normal((6, 6)) * [1, 1, 3, 1, 9, 1]
    weights = rng.integers(1, 4, 60).astype(float)
    table -= weights @ table / weights.sum()
    _, axes = np.linalg.eigh(table.T @ (weights[:, None] * table))
    parts = (table @ axes[:, ::-1]).astype(dtype)
    sorted_table = table[:, np.argsort(-np.sqrt(weights @ table**2))]

    def factors(X):
        return standardize(as_data(store(X)), weights, by_column="auto").factors

    assert_allclose(factors(parts), factors(parts)[0])
    for measured in (table, sorted_table, parts[:, ::-1]):
        variances = weights @ measured**2 / weights.sum()
        assert_allclose(factors(measured.astype(dtype)) ** 2 * variances, 1, rtol=1e-4)


def test_a_constant_column_of_sparse_rows_with_weights_does_not_vary():
    """Weights that are summed in two ways differ by a rounding, whose root is far above it."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((300, 40)) < 0.03, 1.0, 0.0)
        X[:, 1] = 0.1
        stored = as_data(sparse.csr_array(X))
        assert stored.is_sparse
        found = column_statistics(stored, rng.random(300))
        assert not found.varying[1]
        assert_allclose(found.sd[1], 0, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-39, 1e-41])
def test_units_below_the_range_of_the_numbers_are_refused(rng, scale):
    X = (rng.standard_normal((20, 3)) * scale).astype(np.float32)
    with pytest.raises(ValueError, match="too little for numbers of float32; rescale X"):
        column_statistics(Matrix(X))
