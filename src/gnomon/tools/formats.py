"""Formats beside text: parquet and feather, sheets of workbooks, and files that hold a matrix.

A file may come from a stranger: what it says of its size is compared with what it is before memory
is asked for, and indices of sparse matrices are checked before SciPy's loops trust them.
"""

import datetime
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from gnomon.exceptions import TableError, how_to_install
from gnomon.tools import hdf5, tables
from gnomon.tools.growth import check_growth, most_bytes, size_of_zip
from gnomon.tools.tables import (
    WORKBOOKS,
    explained,
    from_arrow,
    one_batch,
    size_of_text,
    stream,
)

# A matrix has so many rows and columns at least without being suspected; a file with more of them
# than it has bytes names most of them without a value.
HARMLESS_SIDE = 10**6
# Bytes of a number in memory.
NUMBER_BYTES = 8
# A feather file of the first version, which knows no compression, begins so.
UNPACKED = b"FEA1"
# HDF5 is given so many seconds of work, and one more for so many bytes: what it reads there takes
# milliseconds and megabytes a second, and some damaged files keep it for ever. Where the system
# counts no work, so many times as long by the clock, for a busy machine.
LEAST_WORK = 10
SLOW_READING = 2**20
PATIENCE = 20
ENDLESS, FATAL = "HDF5 comes to no end with it", "HDF5 dies of it; the file is damaged"
# The end of a process with no seconds left, where there is such a signal.
OUT_OF_WORK = -getattr(signal, "SIGXCPU", 0)
INPUTS = ("X", "x", "data", "x_train", "X_train", "arr_0")
TARGETS = ("y", "target", "labels", "y_train", "arr_1")


def read_format(path, suffix, asked: tables.Reading, note) -> tables.Table:
    """The table of a file by the reader of its suffix."""
    if suffix in (".parquet", ".pq"):
        return _parquet(path, asked.max_growth)
    if suffix in (".feather", ".arrow"):
        return _feather(path, asked.max_growth)
    if suffix in WORKBOOKS:
        return from_arrow(path, _sheet(path, asked, note))
    matrix, columns, features = _matrix(path, suffix, asked.max_growth)
    return one_batch(path, columns, matrix, features)


def _check_sides(path, shape, n_bytes):
    """Refuse a matrix that has more rows or columns than its file could fill."""
    for side, what in zip(shape, ("rows", "columns"), strict=True):
        if side > max(HARMLESS_SIDE, n_bytes):
            raise TableError(
                f"{path} says that it has {side:,} {what}, and has {n_bytes:,} bytes; a matrix "
                "without so many empty ones is wanted"
            )


def _parquet(path, max_growth):
    from pyarrow import parquet

    file = explained(path, lambda: parquet.ParquetFile(path))
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    # Values that repeat take no room in the file, and the bytes that it states do not count them.
    cells = sum(group.num_rows for group in groups) * len(file.schema_arrow)
    size = max(sum(group.total_byte_size for group in groups), NUMBER_BYTES * cells)
    check_growth(path, size, max_growth)
    texts = [f.name for f in file.schema_arrow if tables.column_kind(f) == "text"]
    size = max(size, explained(path, lambda: _bytes_of_texts(path, texts, max_growth)))
    check_growth(path, size, max_growth)
    if size <= tables.STREAM_ABOVE:
        return from_arrow(path, explained(path, file.read))
    return stream(path, file.schema_arrow, lambda: file.iter_batches(batch_size=tables.BATCH_ROWS))


def _bytes_of_texts(path, names, max_growth):
    """Bytes of the texts of a parquet file, equal ones read once, or more than are allowed."""
    from pyarrow import parquet

    if not names:
        return 0
    most, size = most_bytes(path, max_growth), 0
    batches = parquet.ParquetFile(path, read_dictionary=names).iter_batches(columns=names)
    while size <= most and (batch := next(batches, None)) is not None:
        size += sum(map(_length_of_texts, batch.columns))
    return size


def _length_of_texts(column):
    if not pa.types.is_dictionary(column.type):
        return column.nbytes
    return pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0


def _feather(path, max_growth):
    from pyarrow import dataset, feather, ipc

    with path.open("rb") as start:
        packs = start.read(len(UNPACKED)) != UNPACKED
    if packs:
        file = explained(path, lambda: dataset.dataset(path, format="feather"))
        cells = explained(path, file.count_rows) * len(file.schema)
        check_growth(path, NUMBER_BYTES * cells, max_growth)
    if path.stat().st_size <= tables.STREAM_ABOVE:
        return from_arrow(path, explained(path, lambda: feather.read_table(path)))
    file = explained(path, lambda: ipc.open_file(pa.memory_map(str(path))))
    numbers = range(file.num_record_batches)
    return stream(path, file.schema, lambda: (file.get_batch(i) for i in numbers))


def _sheet(path, asked, note):
    """A sheet of a workbook: the first, or the one of that name or number."""
    try:
        import python_calamine
    except ImportError as error:
        raise TableError(f"{path} needs python-calamine: {how_to_install('excel')}") from error
    try:
        if path.suffix.lower() != ".xls":
            size_of_zip(path, asked.max_growth)
        with python_calamine.CalamineWorkbook.from_path(path) as book:
            name = _sheet_name(path, book.sheet_names, asked.sheet, note)
            rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
    except (python_calamine.CalamineError, zipfile.BadZipFile, OSError) as error:
        raise TableError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from error
    rows = [row for row in rows if any(cell != "" for cell in row)]
    if not rows:
        raise TableError(f"{path}: sheet {name!r} is empty; a header and rows are wanted")
    header, *rows = rows
    names = [_text(cell).strip() or f"column {i + 1}" for i, cell in enumerate(header)]
    columns = [_column([row[i] for row in rows]) for i in range(len(names))]
    return pa.Table.from_arrays(columns, names=names)


def _sheet_name(path, names, sheet, note):
    shown = ", ".join(map(repr, names))
    if sheet is None:
        if len(names) > 1:
            note(f"of the sheets {shown} the first was read; say --sheet for another")
        return names[0]
    if sheet in names:
        return sheet
    if str(sheet).isdecimal() and 0 < int(sheet) <= len(names):
        return names[int(sheet) - 1]
    raise TableError(f"{path} has no sheet {sheet!r}; it has {shown}")


def _column(cells):
    """A column in the kind that all its cells have, else as texts."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        whole = all(value is None or float(value).is_integer() for value in values)
        return pa.array(values, pa.int64() if whole and kinds else pa.float64(), safe=False)
    if kinds <= {datetime.date, datetime.datetime}:
        return pa.array(values, pa.timestamp("us"))
    if len(kinds) == 1 and kinds <= {bool, datetime.time, datetime.timedelta}:
        return pa.array(values)
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(cell):
    whole = isinstance(cell, float) and cell.is_integer()
    return str(int(cell) if whole else cell)


def _matrix(path, suffix, max_growth):
    """Matrix, named columns and names of the features."""
    readers = {".npz": _npz, ".mtx": _mtx, ".h5ad": _h5ad}
    try:
        matrix, columns, features = readers.get(suffix, _svmlight)(path, max_growth)
    except TableError:
        raise
    except (ValueError, TypeError, LookupError, OSError, MemoryError, zipfile.BadZipFile) as error:
        text = " ".join(str(error).split())[:200]
        raise TableError(f"{path} cannot be read: {text}") from error
    if isinstance(matrix, bytes):
        raise TableError(f"{path} holds something else than arrays; a matrix of numbers is wanted")
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "biuf":
        raise TableError(
            f"{path} holds an array of shape {matrix.shape} and dtype {matrix.dtype}; "
            "a matrix of numbers is wanted"
        )
    matrix = _native(matrix) if matrix.dtype.kind == "f" else matrix.astype(float)
    return matrix, columns, features or [f"x{i + 1}" for i in range(matrix.shape[1])]


def _checked_rows(path, matrix, n_bytes):
    """A sparse matrix of a file as rows.

    SciPy's loops trust the indices: a wrong one would read and write memory that is not ours.
    """
    _check_sides(path, matrix.shape, n_bytes)
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    rows = sparse.csr_array(matrix)
    rows.check_format(full_check=True)
    return rows


def _npz(path, max_growth):
    grown = size_of_zip(path, max_growth)
    with np.load(path, allow_pickle=False) as file:
        if "indptr" in file:
            return _checked_rows(path, sparse.load_npz(path), grown), {}, None
        matrix = file[_pick(path, file.files, INPUTS)]
        names = [name for name in TARGETS if name in file.files]
        if not names:
            return matrix, {}, None
        target = np.asarray(file[names[0]])
    if target.shape != matrix.shape[:1]:
        raise TableError(
            f"{path} has {names[0]!r} of shape {target.shape}; "
            f"one value a row is wanted, {matrix.shape[0]:,} in all"
        )
    return matrix, {"target": pa.chunked_array([pa.array(_native(target))])}, None


def _native(array):
    """An array in the byte order of this machine."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _pick(path, names, wanted):
    for name in wanted:
        if name in names:
            return name
    raise TableError(f"{path} holds {', '.join(map(repr, names))}; an array 'X' is wanted")


def _mtx(path, max_growth):
    from scipy.io import mminfo, mmread

    n_bytes = size_of_text(path, max_growth)
    *shape, entries, form, _, _ = mminfo(path)
    _check_sides(path, shape, n_bytes)
    # An entry takes a digit and what parts it from the next; half of a symmetric one is written.
    cells = int(np.prod(shape, dtype=object)) // 2 if form == "array" else entries
    if cells > n_bytes:
        raise TableError(f"{path} says that it has {cells:,} entries, and has {n_bytes:,} bytes")
    matrix = mmread(path)
    rows = _checked_rows(path, matrix, n_bytes) if sparse.issparse(matrix) else matrix
    return rows, {}, None


def _svmlight(path, max_growth):
    from sklearn.datasets import load_svmlight_file

    n_bytes = size_of_text(path, max_growth)
    matrix, target = load_svmlight_file(str(path))
    rows = _checked_rows(path, matrix, n_bytes)
    return rows, {"target": pa.chunked_array([pa.array(target)])}, None


def _h5ad(path, max_growth):
    try:
        import anndata
    except ImportError as error:
        raise TableError(f"{path} needs anndata: {how_to_install('anndata')}") from error
    grown = _hdf5_size(path, max_growth)
    try:
        data = anndata.read_h5ad(path)
        obs = pa.Table.from_pandas(data.obs.reset_index(names="cell"), preserve_index=False)
    except Exception as error:  # of any kind, as h5py, anndata and pandas come upon what is wrong
        raise ValueError(str(error)) from error
    is_sparse = sparse.issparse(data.X)
    matrix = _checked_rows(path, data.X, grown) if is_sparse else np.asarray(data.X)
    columns = dict(zip(obs.column_names, obs.columns, strict=True))
    return matrix, columns, [str(name) for name in data.var_names]


def _hdf5_size(path, max_growth):
    """The bytes of all arrays of a file, found out by a process that HDF5 may kill."""
    seconds = int(LEAST_WORK + path.stat().st_size / SLOW_READING)
    given = (path, most_bytes(path, max_growth), seconds)
    command = [sys.executable, "-P", hdf5.__file__, *map(str, given)]
    patience = PATIENCE * seconds
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        raise TableError(f"{path} cannot be read: {ENDLESS}") from None
    if done.returncode not in (0, 1):
        words = ENDLESS if done.returncode == OUT_OF_WORK else FATAL
        raise TableError(f"{path} cannot be read: {words}")
    if done.returncode == 1:
        raise TableError(f"{path} cannot be read: {done.stderr.strip()[-200:]}")
    check_growth(path, grown := int(done.stdout), max_growth)
    return grown
