import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from gnomon import BSDR, DCAGM, PPCA
from gnomon.datasets import make_subspace
from gnomon.linalg import blocks
from gnomon.linalg.blocks import Blocks, from_loaders
from gnomon.linalg.data import Matrix, center


@pytest.fixture
def X():
    return make_subspace(200, 10, 3).X


def agree(model, expected, X):
    assert_allclose(model.get_covariance(), expected.get_covariance(), rtol=1e-9, atol=1e-9)
    assert_allclose(model.transform(X), expected.transform(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "stored",
    {
        "loaders": lambda X: from_loaders([lambda: X[:60], lambda: X[60:61], lambda: X[61:]]),
        "sparse loaders": lambda X: from_loaders([lambda: sparse.csr_array(X)] * 2).rows(
            np.arange(2 * len(X)) < len(X)
        ),
        "both": lambda X: Blocks([Matrix(X[:9]), Matrix(sparse.csr_array(X[9:]))]),
        "some of them": lambda X: from_loaders([lambda: X, lambda: X]).rows(
            np.arange(2 * len(X)) >= len(X)
        ),
    }.values(),
)
def test_few_rows_in_blocks_are_kept(X, stored, monkeypatch):
    X = np.where(X > 0, X, 0.0)
    kept = stored(X).kept_in_memory()
    assert isinstance(kept, Matrix) and kept.dtype == X.dtype
    assert_array_equal(kept @ np.eye(X.shape[1]), X)
    monkeypatch.setattr(blocks, "KEPT_ENTRIES", X.size - 1)
    assert isinstance(stored(X).kept_in_memory(), Blocks)


@pytest.mark.parametrize("model", [BSDR(1, max_iter=2, random_state=0), DCAGM(1, max_iter=2)])
def test_models_of_many_sweeps_read_rows_once(X, model, monkeypatch):
    calls, y = [], np.where(np.arange(len(X)) % 3, X[:, 0] > np.median(X[:, 0]), -1)

    def load(rows):
        calls.append(rows)
        return X[rows]

    halves = from_loaders([lambda: load(slice(0, 70)), lambda: load(slice(70, None))])
    calls.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(halves, y)
        assert len(calls) == 2
        monkeypatch.setattr(blocks, "KEPT_ENTRIES", 0)
        model.fit(halves, y)
    assert len(calls) > 12


def test_loaders_are_read_one_at_a_time(X):
    calls = []

    def loader(part):
        def load():
            calls.append(part.start)
            return X[part]

        return load

    data = from_loaders([loader(slice(0, 90)), loader(slice(90, 200))])
    agree(PPCA(3).fit(data), PPCA(3).fit(X), X)
    assert set(calls) == {0, 90}


def test_a_memory_map_is_an_array(X, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    model = PPCA(3).fit(np.load(path, mmap_mode="r"))
    assert_array_equal(model.components_, PPCA(3).fit(X).components_)


def test_sparse_blocks_stay_sparse_and_know_their_sums(rng):
    X = rng.poisson(0.1, (60, 30)) * rng.standard_normal((60, 30))
    reads = []

    def load(a, b):
        reads.append(a)
        return sparse.csr_array(X[a:b])

    data = from_loaders([partial(load, 0, 40), partial(load, 40, 60)])
    reads.clear()
    assert data.is_sparse
    mean, centered = center(data)
    assert_allclose(mean, X.mean(axis=0))
    assert_allclose(centered.squared_norm, np.sum((X - mean) ** 2))
    assert not reads
    B = rng.standard_normal((30, 2))
    assert_allclose(centered @ B, (X - mean) @ B, atol=1e-12)
    assert_allclose(centered.row_squared_norms(), np.sum((X - mean) ** 2, axis=1))
    assert centered.as_float32().dtype == np.float32
    away = centered.parts[0].X.stored_deviations(np.full(30, 1e9))
    assert_allclose(away, np.sum((X[:40] - 1e9) ** 2))


def test_what_goes_over_the_rows_several_times_reads_them_once(rng):
    X, reads = rng.standard_normal((60, 5)), []

    def load(a, b):
        reads.append(a)
        return X[a:b]

    _, data = center(from_loaders([partial(load, 0, 40), partial(load, 40, 60)]))
    B, own = rng.standard_normal((5, 2)), np.arange(60)
    reads.clear()
    expected = (X - X.mean(axis=0)).T @ ((X - X.mean(axis=0)) @ B)
    assert_allclose(data.normal_product(B), expected, atol=1e-12)
    assert reads == [0, 40]
    assert data.reduced(lambda rows, own: (rows @ B)[own % 2 == 0].size, own) == 60
    assert data.reduced(lambda rows, own: own is None, None)


def test_rows_are_chosen_once_and_in_order():
    blocks = Blocks([Matrix(np.arange(4.0)[:, None]), Matrix(np.arange(4.0, 6.0)[:, None])])
    assert_array_equal(blocks.rows(np.array([1, 3, 4])) @ np.eye(1), [[1], [3], [4]])
    for index in ([3, 1], [1, 1]):
        with pytest.raises(ValueError, match="must be sorted, each row once"):
            blocks.rows(np.array(index))
