import operator

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from gnomon import PPCA, SPPCA
from gnomon.datasets import make_subspace
from gnomon.linalg import blocks, distributed
from gnomon.linalg.data import Matrix, center
from gnomon.linalg.distributed import Distributed, from_dask
from gnomon.linalg.standardize import column_statistics, standardize

da = pytest.importorskip("dask.array", reason="needs dask")


@pytest.fixture
def X():
    return make_subspace(200, 10, 3).X


@pytest.fixture
def results(monkeypatch):
    """What travels to the client: the results of every pass."""
    passes, run = [], distributed._run

    def recorded(*tasks):
        passes.append(run(*tasks))
        return passes[-1]

    monkeypatch.setattr(distributed, "_run", recorded)
    return passes


def entries(parts):
    return sum(entries(part) if isinstance(part, tuple) else np.size(part) for part in parts)


def sparse_chunks(X, chunks=64):
    return da.from_array(X, chunks=(chunks, X.shape[1])).map_blocks(sparse.csr_array)


def frame_of(X, npartitions=3):
    dd, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    names = [f"c{k}" for k in range(X.shape[1])]
    return dd.from_pandas(pandas.DataFrame(X, columns=names), npartitions=npartitions)


KINDS = {
    "array": lambda X: da.from_array(X, chunks=(64, 4)),
    "frame": frame_of,
    "sparse chunks": sparse_chunks,
    "empty chunks": lambda X: da.from_array(X, chunks=((0, 7, 0, 193, 0), (10,))),
    "unknown sizes": lambda X: da.from_array(X, chunks=(30, 10))[da.ones(200, chunks=30) > 0],
    "many chunks": lambda X: da.from_array(X, chunks=(2, 10)),
}


def agree(model, expected, X):
    assert_allclose(model.get_covariance(), expected.get_covariance(), rtol=1e-9, atol=1e-9)
    assert_allclose(model.transform(X), expected.transform(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("chunks", [(200, 10), (33, 10), (50, 4)])
@pytest.mark.parametrize("solver", ["moments", "dual", "subspace"])
def test_a_dask_array_gives_the_same_fit(X, chunks, solver):
    parameters = {"solver": solver, "tol": 1e-13, "random_state": 0}
    model = PPCA(3, **parameters).fit(da.from_array(X, chunks=chunks))
    agree(model, PPCA(3, **parameters).fit(X), X)


def test_a_dask_array_goes_through_every_method(X):
    stored = da.from_array(X, chunks=(70, 10))
    model = PPCA("auto", random_state=0).fit(stored)
    assert model.n_components_ == PPCA("auto", random_state=0).fit(X).n_components_
    assert_allclose(model.transform(stored), model.transform(X), atol=1e-10)
    assert_allclose(model.score_samples(stored), model.score_samples(X), rtol=1e-10)
    assert_allclose(model.score(stored), model.score(X), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_rows(X, rng, kind):
    X = np.where(X > 0, X, 0.0)
    data, weights, mask = from_dask(KINDS[kind](X)), rng.random(200), rng.random(200) < 0.3
    assert data.shape == X.shape and data.dtype == X.dtype
    mean, centered = center(data)
    assert_allclose(mean, X.mean(axis=0))
    dense = X - X.mean(axis=0)
    assert_allclose(centered @ np.eye(10), dense, atol=1e-12)
    assert_allclose(centered.T @ np.eye(200), dense.T, atol=1e-12)
    assert_allclose(centered.normal_product(np.eye(10)), dense.T @ dense, rtol=1e-9, atol=1e-9)
    assert_allclose(centered.dual_gram(), dense @ dense.T, rtol=1e-9, atol=1e-9)
    assert_allclose(centered.squared_norm, np.sum(dense**2))
    assert_allclose(centered.row_squared_norms(), np.sum(dense**2, axis=1))
    assert_allclose(centered.column_sums(), 0, atol=1e-9)
    assert_allclose(np.concatenate(list(centered.dense_blocks())), dense, atol=1e-12)
    some = centered.rows(mask).rows(np.array([0, 5, 9]))
    assert_allclose(some @ np.eye(10), dense[mask][[0, 5, 9]])
    nobody = centered.rows(np.zeros(200, dtype=bool))
    assert_array_equal(nobody.T @ np.empty((0, 2)), np.zeros((10, 2)))
    mean, weighted = center(data.weighted(weights))
    assert_allclose(mean, weights @ X / weights.sum())
    assert_allclose(weighted.gram(), ((X - mean).T * weights) @ (X - mean), atol=1e-9)
    assert_allclose(weighted.rows(mask).n_samples, weights[mask].sum())
    assert_allclose(weighted.unweighted @ np.eye(10), X - mean, atol=1e-12)


def test_rows_chosen_out_of_order_are_refused(X):
    with pytest.raises(ValueError, match="must be sorted"):
        from_dask(da.from_array(X)).rows(np.array([3, 1]))


@pytest.mark.parametrize("kind", ["array", "sparse chunks"])
def test_columns_are_put_in_units_where_they_are(X, rng, kind, results):
    X = np.where(np.arange(10) % 3, np.where(X > 1, X, 0.0), 1e200 * (X > 3))
    X[:, 4] = 0.1
    weights, stored, size = rng.random(200), from_dask(KINDS[kind](X)), np.abs(X).max(axis=0) + 1
    for found, expected in zip(
        column_statistics(stored, weights)[:3],
        column_statistics(Matrix(X), weights)[:3],
        strict=True,
    ):
        assert_allclose(found / size, expected / size, rtol=1e-9, atol=1e-15)
    found = standardize(stored, weights, by_column=True)
    expected = standardize(Matrix(X), weights, by_column=True)
    assert_allclose(found.factors, expected.factors, rtol=1e-9)
    assert_allclose(found.data.gram(), expected.data.gram(), rtol=1e-7, atol=1e-7)
    assert max(map(entries, results[1:])) <= 100


def test_what_travels_is_small_whatever_the_number_of_chunks(X, results):
    PPCA(3).fit(da.from_array(X, chunks=(2, 10)), sample_weight=np.ones(200))
    assert [len(found) for found in results] == [1, 1, 1]  # a first look, the mean, the moments
    assert np.shape(results[2][0]) == (10, 10)
    results.clear()
    PPCA(3).fit(da.from_array(X, chunks=(2, 10)))
    assert len(results) == 2


def test_supervision_by_likelihood_fetches_labelled_rows_alone(X, results):
    y = np.where(np.arange(200) < 9, np.arange(200) % 3, -1)
    SPPCA(2, supervision="likelihood").fit(da.from_array(X, chunks=(20, 10)), y)
    assert max(sum(map(np.size, found)) for found in results[1:]) <= 100


def test_a_growing_subspace_leaves_coordinates_where_rows_are(results, rng):
    X = rng.normal(size=(900, 4)) @ rng.normal(size=(4, 300)) + rng.normal(size=(900, 300))
    y = np.where(np.arange(900) < 9, np.arange(900) % 3, -1)
    model = SPPCA(2, supervision="likelihood", solver="subspace", tol=1e-12)
    found = model.fit(da.from_array(X, chunks=(100, 300)), y).transform(X)
    assert_allclose(found, model.fit(X, y).transform(X), rtol=1e-9, atol=1e-9)
    # Twelve columns of the first block, for all features and the labelled rows.
    assert max(entries(parts) for parts in results[1:]) <= 12 * (300 + 9)


@pytest.mark.parametrize("m", [1, 7, 8, 9, 17, 65])
def test_every_chunk_is_in_the_tree(m):
    data = from_dask(da.from_array(2.0 ** np.arange(m)[:, None], chunks=1))
    assert data.reduced(operator.methodcaller("column_sums")) == 2.0**m - 1


def test_parts_are_joined_as_they_are_asked_to_be(X):
    data = from_dask(da.from_array(X, chunks=(3, 10)))
    top = data.reduced(operator.methodcaller("row_squared_norms"), join=np.union1d)
    assert_allclose(top, np.sort(np.sum(X**2, axis=1)))


def test_sparse_chunks_stay_sparse(X):
    data = from_dask(sparse_chunks(np.where(np.arange(10) % 5, 0.0, X)))
    assert data.is_sparse and data.less_mean(np.ones(10)).is_sparse
    assert data.as_float32().dtype == np.float32
    assert sparse.issparse(data.kept_in_memory().X)
    assert not from_dask(sparse_chunks(X)).is_sparse
    dense = from_dask(da.from_array(X))
    assert not dense.is_sparse and dense.as_float32() is dense


def test_few_rows_are_kept(X, monkeypatch):
    stored = from_dask(da.from_array(X, chunks=(64, 10)))
    assert_array_equal(stored.kept_in_memory().X, X)
    monkeypatch.setattr(blocks, "KEPT_ENTRIES", X.size - 1)
    assert isinstance(stored.kept_in_memory(), Distributed)


def test_single_precision_stays(X):
    stored = from_dask(da.from_array(X.astype(np.float32), chunks=(64, 10)))
    assert stored.dtype == np.float32 and (stored @ np.eye(10)).dtype == np.float32
    assert stored.column_means().dtype == np.float64


def test_bad_dask_arrays_are_named(X):
    with pytest.raises(ValueError, match="X is a dask array with infinity"):
        PPCA().fit(da.from_array(np.where(X == X.max(), np.inf, X)))
    holed = sparse.csr_array(np.where(X == X.max(), np.nan, X))
    with pytest.raises(ValueError, match="NaN in sparse chunks"):
        PPCA().fit(da.from_array(holed, chunks=holed.shape, asarray=False))
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        PPCA().fit(da.from_array(X[:, 0]))
    with pytest.raises(ValueError, match="X is a dask array without rows"):
        PPCA().fit(da.from_array(X)[:0])
    with pytest.raises(TypeError, match="X has dtype complex128; accepted in a dask X are numbers"):
        PPCA().fit(da.from_array(X * 1j))
    with pytest.raises(TypeError, match="X is a dask Bag; accepted are dask arrays"):
        PPCA().fit(pytest.importorskip("dask.bag").from_sequence([1, 2]))
    model = PPCA().fit(X)
    with pytest.raises(ValueError, match="X has 4 features"):
        model.transform(da.from_array(X[:, :4]))


def test_huge_numbers_are_finite(X):
    data = from_dask(da.from_array(np.full((4, 2), 1e308), chunks=(4, 2)))
    assert data.shape == (4, 2) and not data.has_gaps


def test_gaps_in_any_chunk_are_seen(X):
    assert not from_dask(da.from_array(X, chunks=(64, 10))).has_gaps
    X = X.copy()
    X[-1, 3] = np.nan
    assert from_dask(da.from_array(X, chunks=(64, 10))).has_gaps


def test_frames_of_other_things_than_numbers_are_named(X):
    frame = frame_of(X).assign(text="a")
    with pytest.raises(TypeError, match="text has dtype"):
        PPCA().fit(frame)
    with pytest.raises(TypeError, match="X is a dask Series; accepted are dask arrays and data"):
        PPCA().fit(frame["c0"])
