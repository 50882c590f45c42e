import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import gnomon
from gnomon.linalg import sources
from gnomon.linalg.sources import from_chunks, from_csv, from_npz, from_parquet, from_rows

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


def test_columns_without_numbers_are_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    table = pa.table({"x": [1.0, None, 3.0], "name": ["u", "v", "w"], "n": [1, 2, 3]})
    files.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TypeError, match="'name' holds string"):
        from_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="'y'; accepted are x, name, n"):
        from_parquet(tmp_path / "t.parquet", columns=["y"])


def test_rows_of_an_npz_file(rng, tmp_path):
    X = rng.normal(size=(50, 3))
    thin = sparse.random_array((50, 40), density=0.02, rng=rng).tocsr()
    np.savez(tmp_path / "plain.npz", X=X)
    np.savez_compressed(tmp_path / "two.npz", X=X, y=X[:, 0])
    sparse.save_npz(tmp_path / "thin.npz", thin)
    for block_rows in (1, 7, 1000, None):
        assert_array_equal(rows_of(from_npz(tmp_path / "plain.npz", block_rows=block_rows)), X)
        assert_array_equal(rows_of(from_npz(tmp_path / "two.npz", "X", block_rows=block_rows)), X)
        found = from_npz(tmp_path / "thin.npz", block_rows=block_rows)
        assert found.is_sparse
        assert_array_equal(rows_of(found), thin.toarray())


def test_what_an_npz_file_cannot_be_is_said(rng, tmp_path):
    np.savez(tmp_path / "two.npz", X=np.ones((3, 2)), F=np.ones((3, 2), order="F"))
    sparse.save_npz(tmp_path / "columns.npz", sparse.csc_array(np.eye(3)))
    with pytest.raises(ValueError, match=r"name == None and .* has X, F"):
        from_npz(tmp_path / "two.npz")
    with pytest.raises(ValueError, match="name == 'Z'"):
        from_npz(tmp_path / "two.npz", "Z")
    with pytest.raises(ValueError, match="stored by columns"):
        from_npz(tmp_path / "two.npz", "F")
    with pytest.raises(ValueError, match="accepted is csr"):
        from_npz(tmp_path / "columns.npz")


def write_csv(path, X, names=NAMES):
    lines = [",".join("" if v != v else repr(float(v)) for v in row) for row in X]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")
    return path


def test_a_csv_is_read_in_runs_of_text_and_empty_cells_are_gaps(rng, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("gnomon.linalg.sources.CSV_BYTES", 1000)
    X = rng.normal(size=(200, 3))
    X[3, 1] = X[150, 2] = np.nan
    path = write_csv(tmp_path / "t.csv", X)
    found = from_csv(path)
    assert len(found.parts) > 3
    assert found.has_gaps
    assert_array_equal(rows_of(found), X)
    assert_array_equal(rows_of(from_csv(path, columns=["c", "a"])), X[:, [2, 0]])
    with pytest.raises(ValueError, match="columns has 'z'; accepted are a, b, c"):
        from_csv(path, columns=["z"])
    path.write_text("a,b\n1,2\nx,3\n")
    with pytest.raises(ValueError, match=r"cannot be read as numbers.*'x'"):
        from_csv(path)


def test_nulls_of_parquet_are_gaps(rng, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    table = pa.table({"a": [1, None, 3], "b": [0.5, 1.5, None], "c": [True, None, False]})
    files.write_table(table, tmp_path / "t.parquet")
    expected = [[1, 0.5, 1], [np.nan, 1.5, np.nan], [3, np.nan, 0]]
    assert_array_equal(rows_of(from_parquet(tmp_path / "t.parquet")), expected)


@pytest.mark.parametrize(
    "broken",
    [{"indices": [10**9, 0, 1]}, {"indices": [7, 0, 1]}, {"indices": [0, -5, 1]}]
    + [{"indptr": [0, 2, 1, 3]}, {"indptr": [0, 1, 2]}, {"indptr": [0, 1, 2, 10**9]}],
    ids=str,
)
def test_a_sparse_file_whose_entries_lie_elsewhere_is_refused(tmp_path, broken):
    parts = {"data": np.ones(3), "indices": [0, 1, 2], "indptr": [0, 1, 2, 3]} | broken
    path = tmp_path / "hostile.npz"
    np.savez(path, format=b"csr", shape=[3, 5], **parts)
    with pytest.raises(ValueError, match=r"hostile\.npz (is no sparse array|has 3 starts)"):
        from_npz(path)


@pytest.mark.parametrize("kind", ["npz", "csv"])
def test_a_changed_file_of_any_kind_is_noticed(rng, tmp_path, kind):
    X = rng.normal(size=(20, 3))
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        pytest.importorskip("pyarrow")
        found = from_csv(write_csv(path, X))
        write_csv(path, np.vstack([X, X]))
    else:
        np.savez(path, X=X)
        found = from_npz(path)
        np.savez(path, X=np.vstack([X, X]))
    with pytest.raises(ValueError, match="was changed since its rows were declared"):
        gnomon.PPCA(2).fit(found)


class Chunks:
    def __init__(self, chunks):
        self.chunks = chunks

    def __iter__(self):
        return (chunk.copy() for chunk in self.chunks)


def test_chunks_are_asked_for_anew(rng):
    X = rng.normal(size=(40, 3))
    chunks = Chunks(np.split(X, [1, 8, 8, 30]))
    found = from_chunks(chunks)
    assert [part.shape[0] for part in found.parts] == [1, 7, 22, 10]
    for _ in range(2):
        assert_array_equal(rows_of(found), X)
    assert_array_equal(found.parts[2].leaf.X, X[8:30])
    chunks.chunks = chunks.chunks[:2]
    with pytest.raises(ValueError, match="chunks ended before its chunk 3"):
        rows_of(found)
    with pytest.raises(TypeError, match="iterated over once"):
        from_chunks(chunk for chunk in [X])
    with pytest.raises(TypeError, match="chunks is int"):
        from_chunks(3)


@pytest.mark.parametrize(("columns", "rows"), [(1, 2**22), (4, 2**20), (2**23, 1)])
def test_blocks_have_so_many_entries(columns, rows):
    array = np.broadcast_to(0.0, (3, columns))
    assert sources._block_rows(array) == rows
