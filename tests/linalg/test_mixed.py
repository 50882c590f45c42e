import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg import mixed
from gnomon.linalg.data import Centered, Matrix
from gnomon.linalg.mixed import Mixed, SideBySide

n, d, m = 40, 7, 15


@pytest.fixture
def X(rng):
    return np.where(rng.random((n, d)) < 0.2, rng.standard_normal((n, d)) + 3, 0.0)


@pytest.fixture
def R(rng):
    return sparse.random_array((m, n), density=0.2, rng=rng, format="csr")


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_products_are_those_of_the_mixed_rows(X, R, store):
    rows, expected = Mixed(R, Matrix(store(X))), R @ X
    assert rows.n_samples == n
    assert_allclose(rows @ np.eye(d), expected, atol=1e-12)
    assert_allclose(rows.T @ np.eye(m), expected.T, atol=1e-12)
    assert_allclose(rows.gram(), expected.T @ expected, atol=1e-11)
    assert_allclose(rows.squared_norm, np.sum(expected**2))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("cost", [0, 20, 1e9], ids=["by rows", "as it is", "by columns"])
def test_norms_of_centred_rows_agree_however_they_are_stored(X, R, store, cost, monkeypatch):
    monkeypatch.setattr(mixed, "SPARSE_PRODUCT", cost)
    mean = X.mean(axis=0) + 1
    rows, expected = Mixed(R, Centered(Matrix(store(X)), mean)), R @ (X - mean)
    assert_allclose(rows.row_squared_norms(), np.sum(expected**2, axis=1), atol=1e-10)
    assert_allclose(rows.rows([0, 3]) @ np.eye(d), expected[[0, 3]], atol=1e-10)
    few = Mixed(R[:3], rows.X)
    assert_allclose(few.row_squared_norms(), np.sum(expected[:3] ** 2, axis=1), atol=1e-10)


def test_norms_of_rows_mixed_twice_need_no_wide_identity(X, rng, monkeypatch):
    S = sparse.random_array((n, n), density=0.1, rng=rng, format="csr")
    mean = X.mean(axis=0) + 1
    rows = Mixed(S, Mixed(S, Centered(Matrix(sparse.csr_array(X)), mean)))
    monkeypatch.setattr(Mixed, "_columns", None)
    expected = np.sum((S @ S @ (X - mean)) ** 2, axis=1)
    assert_allclose(rows.row_squared_norms(), expected, rtol=1e-10)


def test_large_norms_in_single_precision_are_near(X, R, monkeypatch):
    rows = Mixed(R, Matrix(sparse.csr_array(X)))
    exact = rows.squared_norm
    monkeypatch.setattr(mixed, "MANY_PRODUCTS", 0)
    monkeypatch.setattr(mixed, "SPARSE_PRODUCT", 1e9)
    assert rows.squared_norm != exact
    assert_allclose(rows.squared_norm, exact, rtol=1e-6)


def test_rows_mixed_twice_are_selected_at_once(X, rng):
    S = sparse.random_array((n, n), density=0.1, rng=rng, format="csr")
    rows = Mixed(S, Mixed(S, Matrix(X)))
    chosen = rows.rows([2, 30])
    assert isinstance(chosen.X, Matrix)
    assert_allclose(chosen @ np.eye(d), (S @ S @ X)[[2, 30]], atol=1e-12)
    assert_allclose(np.concatenate(list(rows.dense_blocks())), S @ S @ X, atol=1e-12)


def test_single_precision_stays(X, R):
    rows = Mixed(R, Matrix(sparse.csr_array(X))).as_float32()
    assert (rows @ np.ones((d, 1))).dtype == np.float32
    assert_allclose(rows @ np.eye(d), R @ X, rtol=1e-5)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("times", [2, 3, 4])
def test_moments_of_rows_mixed_often_are_those_of_the_mixture(X, rng, times, store):
    S = sparse.random_array((n, n), density=0.3, rng=rng, format="csr")
    rows, expected = Centered(Matrix(store(X)), X.mean(axis=0)), X - X.mean(axis=0)
    for _ in range(times):
        rows, expected = Mixed(S, rows), S @ expected
    assert_allclose(rows.gram(), expected.T @ expected, rtol=1e-10, atol=1e-9)
    assert_allclose(rows.squared_norm, np.sum(expected**2))
    some = np.arange(0, n, 3)
    assert_allclose(rows.rows(some) @ np.eye(d), expected[some], atol=1e-9)


def test_rows_mixed_often_by_way_of_a_hub_never_meet_all_others(rng):
    """The square of a star's adjacency has an entry for every pair: here 200 MB."""
    size = 4000
    hub, leaves = np.zeros(size - 1, dtype=int), np.arange(1, size)
    star = sparse.csr_array((np.ones(size - 1), (hub, leaves)), shape=(size, size))
    star = star + star.T + sparse.eye_array(size)
    rows = Mixed(star, Mixed(star, Mixed(star, Matrix(rng.standard_normal((size, 4))))))
    tracemalloc.start()
    rows.gram()
    rows.rows(np.arange(0, size, 2)) @ np.eye(4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_two_sets_side_by_side_are_their_columns_together(rng):
    X, Y = rng.standard_normal((6, 3)), rng.standard_normal((6, 2))
    both = SideBySide(Matrix(X), Centered(Matrix(Y), Y.mean(axis=0)))
    dense = np.hstack([X, Y - Y.mean(axis=0)])
    B, Z = rng.standard_normal((5, 2)), rng.standard_normal((6, 2))
    assert_allclose(both @ B, dense @ B)
    assert_allclose(both.T @ Z, dense.T @ Z)
    assert_allclose(np.concatenate(list(both.dense_blocks())), dense)
    assert_allclose(both.row_squared_norms(), np.sum(dense**2, axis=1))
    assert_allclose(both.rows([4, 1]) @ B, dense[[4, 1]] @ B)
    assert_allclose(both.gram(), dense.T @ dense)
    assert not both.is_sparse
