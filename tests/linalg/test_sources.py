import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gnomon
from gnomon.linalg.sources import from_parquet, from_rows

NAMES = ["a", "b", "c"]


def rows_of(X):
    return np.concatenate(list(X.dense_blocks()))


def parquet(path, X, names=NAMES, **options):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    files.write_table(pa.table(dict(zip(names, X.T, strict=True))), path, **options)
    return path


@pytest.mark.parametrize("block_rows", [1, 7, 1000, None])
def test_slices_are_the_rows(rng, block_rows):
    X = rng.normal(size=(20, 3))
    assert_array_equal(rows_of(from_rows(X, block_rows=block_rows)), X)


@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_a_fit_to_a_file_is_the_fit_to_its_rows(rng, tmp_path, kind):
    X = rng.normal(size=(50, 4)).astype(np.float32)
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "rows.h5", "w") as file:
            file.create_dataset("X", data=X, chunks=(8, 4))
        array = h5py.File(tmp_path / "rows.h5", "r")["X"]
    else:
        zarr = pytest.importorskip("zarr")
        array = zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(8, 4))
    model = gnomon.PPCA(2).fit(from_rows(array))
    assert model.components_.dtype == np.float32
    assert_allclose(model.get_covariance(), gnomon.PPCA(2).fit(X).get_covariance(), rtol=1e-5)


def test_blocks_are_whole_chunks(monkeypatch):
    class Chunked:
        shape, chunks = (100, 2), (8, 2)

        def __getitem__(self, rows):
            return np.ones((len(range(*rows.indices(100))), 2))

    monkeypatch.setattr("gnomon.linalg.sources.SOURCE_ENTRIES", 50)
    assert [part.shape[0] for part in from_rows(Chunked()).parts] == [24, 24, 24, 24, 4]


def test_what_is_no_table_of_rows_is_refused(rng):
    with pytest.raises(ValueError, match="2 dimensions"):
        from_rows(np.ones(3))
    with pytest.raises(ValueError, match="list"):
        from_rows([[1.0, 2.0]])
    with pytest.raises(ValueError, match="block_rows == 0"):
        from_rows(np.ones((3, 2)), block_rows=0)


def test_row_groups_are_blocks_in_the_order_of_the_columns(rng, tmp_path):
    X = rng.normal(size=(30, 3))
    path = parquet(tmp_path / "t.parquet", X, row_group_size=8)
    found = from_parquet(path, columns=["c", "a"])
    assert [part.shape[0] for part in found.parts] == [8, 8, 8, 6]
    assert_array_equal(rows_of(found), X[:, [2, 0]])
    assert_array_equal(rows_of(from_parquet(path)), X)


def test_files_of_a_folder_are_stacked(rng, tmp_path):
    X = rng.normal(size=(30, 3))
    paths = [parquet(tmp_path / f"{k}.parquet", X[10 * k : 10 * k + 10]) for k in range(3)]
    assert_array_equal(rows_of(from_parquet(tmp_path)), X)
    backwards = X.reshape(3, 10, 3)[::-1].reshape(30, 3)
    assert_array_equal(rows_of(from_parquet(paths[::-1])), backwards)


def test_a_model_with_labels_is_the_same(rng, tmp_path):
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    source = from_parquet(parquet(tmp_path / "t.parquet", X, row_group_size=7))
    parts, whole = (gnomon.SPPCA(2).fit(rows, y).projection_ for rows in (source, X))
    assert_allclose(parts @ parts.T, whole @ whole.T, atol=1e-9)


def test_single_precision_stays_and_integers_are_numbers(rng, tmp_path):
    X = rng.integers(0, 9, size=(12, 3))
    assert from_parquet(parquet(tmp_path / "i.parquet", X)).dtype == np.float64
    single = parquet(tmp_path / "f.parquet", X.astype(np.float32))
    assert from_parquet(single).dtype == np.float32


def test_a_file_that_changes_is_noticed(rng, tmp_path):
    path = parquet(tmp_path / "t.parquet", rng.normal(size=(10, 3)))
    X = from_parquet(path)
    parquet(path, rng.normal(size=(11, 3)))
    with pytest.raises(ValueError, match="was changed since"):
        gnomon.PPCA(1).fit(X)


def test_columns_without_numbers_and_gaps_are_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    table = pa.table({"x": [1.0, None, 3.0], "name": ["u", "v", "w"], "n": [1, 2, 3]})
    files.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TypeError, match="'name' holds string"):
        from_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="gaps in 'x'"):
        from_parquet(tmp_path / "t.parquet", columns=["x", "n"])
    with pytest.raises(ValueError, match="'y'; accepted are x, name, n"):
        from_parquet(tmp_path / "t.parquet", columns=["y"])
