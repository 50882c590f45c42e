"""Rows in files, read a block at a time by the libraries that know the files.

from_rows       what has a shape and slices: HDF5 (h5py), Zarr, memory maps
from_npz        what NumPy and SciPy save as .npz
from_parquet    row groups of Parquet files (pyarrow)
from_csv        a csv, by pyarrow's streaming reader
from_chunks     what gives chunks of rows anew each time it is iterated over

Whatever the source, other rows than at first are an error, see `gnomon.linalg.blocks`.
"""

import weakref
import zipfile
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from gnomon.exceptions import how_to_install
from gnomon.linalg.blocks import Blocks, from_loaders
from gnomon.linalg.data import slices

# Entries of a block: 32 MiB in double precision, so that two are well below any machine's memory.
SOURCE_ENTRIES = 2**22
# Bytes of text in a block of a csv: some 2 million numbers.
CSV_BYTES = 2**24


def from_rows(array: Any, *, block_rows: int | None = None) -> Blocks:
    """Rows of anything that has a shape and can be sliced, read a block at a time.

    Parameters
    ----------
    array : array-like of shape (n_samples, n_features)
        A data set of h5py, an array of zarr, a memory map: what gives an array for
        ``array[start:stop]``. It must stay open, and the same, while the rows are in use.
    block_rows : int, default=None
        Rows of a block. None takes as many as make some 32 MB, whole chunks of the array where
        it has chunks.

    Returns
    -------
    X : Blocks
        To be given to an estimator in the place of an array; one block is in memory at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PPCA, from_rows
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = PPCA().fit(from_rows(X, block_rows=30))
    >>> bool(np.allclose(model.mean_, X.mean(axis=0)))
    True
    """
    shape = getattr(array, "shape", None)
    if shape is None or len(shape) != 2:
        what = type(array).__name__ if shape is None else f"shape {shape}"
        raise ValueError(f"array has {what}; accepted is what has a shape of 2 dimensions")
    size = _block_rows(array) if block_rows is None else block_rows
    if size < 1:
        raise ValueError(f"block_rows == {block_rows!r}; accepted are integers >= 1")
    return from_loaders([partial(_slice, array, rows) for rows in slices(shape[0], size)])


def _block_rows(array):
    """Rows that make a block of the right size, in whole chunks of the array."""
    rows = max(SOURCE_ENTRIES // max(array.shape[1], 1), 1)
    chunk = (getattr(array, "chunks", None) or (1,))[0]
    return max(rows // chunk, 1) * chunk


def _slice(array, rows):
    return np.asarray(array[rows])


def from_parquet(path: Any, *, columns: Sequence[str] | None = None) -> Blocks:
    """Rows of Parquet files, a row group at a time.

    Parameters
    ----------
    path : str, Path or list of these
        A file, a folder of files, or several files, whose rows are stacked in the order of
        their names, or in that of the list.
    columns : list of str, default=None
        The features, in this order; None for all columns. They hold numbers; a null is a
        missing value.

    Returns
    -------
    X : Blocks
        To be given to an estimator in the place of an array; one row group is in memory at a
        time. A file that is changed while its rows are in use is an error.
    """
    try:
        import pyarrow.dataset as dataset
    except ImportError as missing:
        raise ImportError(f"from_parquet reads by pyarrow: {how_to_install('cli')}") from missing
    paths = [str(part) for part in path] if isinstance(path, list | tuple) else str(path)
    files = dataset.dataset(paths, format="parquet")
    columns = list(files.schema.names) if columns is None else list(columns)
    _check_columns(files.schema, columns)
    groups = [group for file in files.get_fragments() for group in file.split_by_row_group()]
    return from_loaders([_Group(group, columns) for group in groups if group.count_rows()])


def _check_columns(schema, columns):
    """Raise where a column is not there or holds no numbers."""
    import pyarrow.types as types

    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise ValueError(f"columns has {missing[0]!r}; accepted are {', '.join(schema.names)}")
    for name in columns:
        kind = schema.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise TypeError(
                f"column {name!r} holds {kind}; accepted are numbers, name those by columns="
            )


class _Unchanged:
    """A file that must stay as it was."""

    def __init__(self, path):
        self.path = str(path)
        self._stamp = self._facts()

    def _facts(self):
        facts = Path(self.path).stat()
        return facts.st_size, facts.st_mtime_ns

    def check(self):
        """Raise where the file is another one."""
        if self._facts() != self._stamp:
            raise ValueError(f"{self.path} was changed since its rows were declared")


class _Group:
    """Reads a row group; its file must stay as it was."""

    def __init__(self, group, columns):
        self.group, self.columns, self.file = group, columns, _Unchanged(group.path)

    def __call__(self):
        self.file.check()
        table = self.group.to_table(columns=self.columns)
        dtype = np.float32 if all(f.type == "float" for f in table.schema) else np.float64
        return _numbers(table, self.columns, dtype)


def _numbers(table, columns, dtype):
    """Columns of a table of pyarrow as an array, nulls as NaN."""
    floats = [table.column(name).cast("double") for name in columns]
    return np.column_stack([column.to_numpy(zero_copy_only=False) for column in floats]).astype(
        dtype, copy=False
    )


def from_csv(path: Any, *, columns: Sequence[str] | None = None, delimiter: str = ",") -> Blocks:
    """Rows of a csv, some ten megabytes of text at a time, by pyarrow's streaming reader.

    The text is read anew in every pass; a table that is used often is faster as Parquet.

    Parameters
    ----------
    path : str or Path
        A file whose first line names its columns.
    columns : list of str, default=None
        The features, in this order; None for all columns. They hold numbers; an empty cell is a
        missing value.
    delimiter : str, default=","
        What is between cells.

    Returns
    -------
    X : Blocks
        To be given to an estimator in the place of an array; a block or two are in memory at a
        time. A file that is changed while its rows are in use is an error.
    """
    return from_chunks(_Csv(path, columns, delimiter))


class _Csv:
    """Runs of rows of a csv, read anew each time."""

    def __init__(self, path, columns, delimiter):
        self.path, self.delimiter, self.file = str(path), delimiter, _Unchanged(path)
        with self._reader() as reader:
            names = list(reader.schema.names)
        self.columns = names if columns is None else list(columns)
        missing = [name for name in self.columns if name not in names]
        if missing:
            raise ValueError(f"columns has {missing[0]!r}; accepted are {', '.join(names)}")

    def _reader(self, types=None):
        try:
            from pyarrow import csv
        except ImportError as missing:
            raise ImportError(f"from_csv reads by pyarrow: {how_to_install('cli')}") from missing
        read = csv.ReadOptions(block_size=CSV_BYTES)
        parse = csv.ParseOptions(delimiter=self.delimiter)
        wanted = csv.ConvertOptions(include_columns=list(types or ()), column_types=types)
        return csv.open_csv(self.path, read, parse, wanted)

    def __iter__(self):
        import pyarrow as pa

        self.file.check()
        try:
            with self._reader(dict.fromkeys(self.columns, pa.float64())) as reader:
                for batch in reader:
                    yield _numbers(batch, self.columns, np.float64)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{self.path} cannot be read as numbers: {error}") from error


def from_chunks(chunks: Iterable[Any]) -> Blocks:
    """Rows of anything that gives chunks of rows anew each time it is iterated over.

    Parameters
    ----------
    chunks : iterable of array-like of shape (n_rows, n_features)
        Arrays or sparse arrays with the same columns, in the same order each time: a list, or
        an object with ``__iter__``. A generator ends after one time and is refused.

    Returns
    -------
    X : Blocks
        To be given to an estimator in the place of an array; one chunk is in memory at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PPCA, from_chunks
    >>> class Chunks:
    ...     def __iter__(self):
    ...         rng = np.random.default_rng(0)
    ...         return (rng.normal(size=(20, 3)) for _ in range(5))
    >>> PPCA().fit(from_chunks(Chunks())).transform(from_chunks(Chunks())).shape
    (100, 2)
    """
    if not isinstance(chunks, Iterable):
        raise TypeError(f"chunks is {type(chunks).__name__}; accepted is what can be iterated over")
    if iter(chunks) is chunks:
        raise TypeError(
            f"chunks is a {type(chunks).__name__}, which can be iterated over once; accepted is "
            "what gives its chunks anew each time, as a list or an object with __iter__"
        )
    turns = _Turns(chunks)
    return from_loaders(_until_the_end(turns))


def _until_the_end(turns):
    """Loaders of the chunks, one after another, as long as there are more."""
    for k in count():
        if not turns.has(k):
            return
        yield partial(turns.chunk, k)


class _Turns:
    """Chunks by number: the next one is the next of the iterable, an earlier one begins anew."""

    def __init__(self, chunks):
        self.chunks = chunks
        self._rest, self._place, self._ahead = iter(()), 0, None

    def has(self, k):
        """Whether there is a chunk of this number."""
        if k == 0 or k < self._place:
            self._rest, self._place, self._ahead = iter(self.chunks), 0, None
        while self._place < k or self._ahead is None:
            self._place += self._ahead is not None
            self._ahead = next(self._rest, None)
            if self._ahead is None:
                return False
        return True

    def chunk(self, k):
        """The chunk of this number."""
        if not (self._place == k and self._ahead is not None) and not self.has(k):
            raise ValueError(f"chunks ended before its chunk {k}; it had more when it was declared")
        rows = self._ahead
        return rows if sparse.issparse(rows) else np.asarray(rows)


def from_npz(path: Any, name: str | None = None, *, block_rows: int | None = None) -> Blocks:
    """Rows of an .npz file: a table of `numpy.savez`, or what `scipy.sparse.save_npz` saved.

    Parameters
    ----------
    path : str or Path
    name : str, default=None
        The array in the file; None where there is one, or a sparse array.
    block_rows : int, default=None
        Rows of a block. None takes as many as make some 32 MB.

    Returns
    -------
    X : Blocks
        To be given to an estimator in the place of an array; one block is in memory at a time.
        A compressed file is decompressed anew in every pass. A file that is changed while its
        rows are in use is an error.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from gnomon import PPCA, from_npz
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/rows.npz", X=X)
    ...     model = PPCA().fit(from_npz(f"{folder}/rows.npz"))
    >>> bool(np.allclose(model.mean_, X.mean(axis=0)))
    True
    """
    with zipfile.ZipFile(path) as file:
        names = [member.removesuffix(".npy") for member in file.namelist()]
    if name is None and {"format", "shape", "data"} <= set(names):
        return _from_sparse(path, block_rows)
    if name is None and len(names) > 1:
        raise ValueError(f"name == None and {path} has {', '.join(names)}; accepted is one of them")
    name = names[0] if name is None else name
    if name not in names:
        raise ValueError(f"name == {name!r}; accepted are {', '.join(names)}")
    return from_rows(_Member(path, name), block_rows=block_rows)


def _from_sparse(path, block_rows):
    """Rows of a compressed sparse row array: runs of its entries."""
    kind, shape = (_Member(path, part)[:] for part in ("format", "shape"))
    if bytes(kind.ravel()[0]) != b"csr":
        raise ValueError(f"{path} has format {kind.ravel()[0]!r}; accepted is csr, by X.tocsr()")
    starts, size = _Member(path, "indptr")[:], block_rows
    if size is None:
        size = max(SOURCE_ENTRIES * len(starts) // max(int(starts[-1]), 1), 1)
    parts = _Member(path, "data"), _Member(path, "indices"), starts, int(shape[1])
    if len(starts) != shape[0] + 1:
        raise ValueError(f"{path} has {len(starts)} starts of rows; its shape says {shape[0]} rows")
    return from_loaders([partial(_sparse_rows, *parts, rows) for rows in slices(shape[0], size)])


def _sparse_rows(data, indices, starts, d, rows):
    own = slice(int(starts[rows.start]), int(starts[rows.stop]))
    parts = data[own], indices[own], starts[rows.start : rows.stop + 1] - starts[rows.start]
    try:
        found = sparse.csr_array(parts, shape=(rows.stop - rows.start, d))
        found.check_format(full_check=True)  # compiled products trust every index
    except ValueError as error:
        raise ValueError(f"{data.file.path} is no sparse array: {error}") from error
    return found


class _Member:
    """An array of an .npz file, sliced along its first axis without reading the rest."""

    def __init__(self, path, name):
        self.file = _Unchanged(path)
        archive = zipfile.ZipFile(self.file.path)
        self._file = archive.open(f"{name}.npy")
        for opened in (archive, self._file):
            weakref.finalize(self, opened.close)
        version = np.lib.format.read_magic(self._file)
        read = np.lib.format.read_array_header_1_0
        read = read if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, by_columns, self.dtype = read(self._file)
        if by_columns and len(self.shape) > 1:
            raise ValueError(
                f"{name} of {path} is stored by columns; accepted are rows, by np.save"
            )
        self._start = self._file.tell()

    def __getitem__(self, rows):
        self.file.check()
        first, last, _ = rows.indices(self.shape[0] if self.shape else 1)
        width = int(np.prod(self.shape[1:]))
        self._file.seek(self._start + first * width * self.dtype.itemsize)
        found = self._file.read((last - first) * width * self.dtype.itemsize)
        return np.frombuffer(found, self.dtype).reshape(last - first, *self.shape[1:])
