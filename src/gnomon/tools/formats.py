"""Formats beside text: parquet and feather, sheets of workbooks, and files that hold a matrix."""

import datetime
import zipfile

import numpy as np
import pyarrow as pa
from scipy import sparse

from gnomon.exceptions import TableError, how_to_install
from gnomon.tools import tables
from gnomon.tools.tables import WORKBOOKS, explained, from_arrow, one_batch, stream

# What a zip may grow to; a bomb of a few kilobytes would otherwise fill the memory.
MAX_RATIO = 200
INPUTS = ("X", "x", "data", "x_train", "X_train", "arr_0")
TARGETS = ("y", "target", "labels", "y_train", "arr_1")


def read_format(path, suffix, sheet, note) -> tables.Table:
    """The table of a file by the reader of its suffix."""
    if suffix in (".parquet", ".pq"):
        return _parquet(path)
    if suffix in (".feather", ".arrow"):
        return _feather(path)
    if suffix in WORKBOOKS:
        return from_arrow(path, _sheet(path, sheet, note))
    matrix, columns, features = _matrix(path, suffix)
    return one_batch(path, columns, matrix, features)


def _parquet(path):
    from pyarrow import parquet

    file = explained(path, lambda: parquet.ParquetFile(path))
    size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
    if size <= tables.STREAM_ABOVE:
        return from_arrow(path, explained(path, file.read))
    return stream(path, file.schema_arrow, lambda: file.iter_batches(batch_size=tables.BATCH_ROWS))


def _feather(path):
    from pyarrow import feather, ipc

    if path.stat().st_size <= tables.STREAM_ABOVE:
        return from_arrow(path, explained(path, lambda: feather.read_table(path)))
    file = explained(path, lambda: ipc.open_file(pa.memory_map(str(path))))
    numbers = range(file.num_record_batches)
    return stream(path, file.schema, lambda: (file.get_batch(i) for i in numbers))


def _sheet(path, sheet, note):
    """A sheet of a workbook: the first, or the one of that name or number."""
    try:
        import python_calamine
    except ImportError as error:
        raise TableError(f"{path} needs python-calamine: {how_to_install('excel')}") from error
    try:
        if path.suffix.lower() != ".xls":
            _check_ratio(path)
        with python_calamine.CalamineWorkbook.from_path(path) as book:
            name = _sheet_name(path, book.sheet_names, sheet, note)
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


def _matrix(path, suffix):
    """Matrix, named columns and names of the features."""
    readers = {".npz": _npz, ".mtx": _mtx, ".h5ad": _h5ad}
    try:
        matrix, columns, features = readers.get(suffix, _svmlight)(path)
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
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(float)
    return matrix, columns, features or [f"x{i + 1}" for i in range(matrix.shape[1])]


def _npz(path):
    _check_ratio(path)
    with np.load(path, allow_pickle=False) as file:
        if "indptr" in file:
            return sparse.csr_array(sparse.load_npz(path)), {}, None
        matrix = file[_pick(path, file.files, INPUTS)]
        names = [name for name in TARGETS if name in file.files]
        if not names:
            return matrix, {}, None
        target = file[names[0]]
    if target.shape != matrix.shape[:1]:
        raise TableError(
            f"{path} has {names[0]!r} of shape {target.shape}; "
            f"one value a row is wanted, {matrix.shape[0]:,} in all"
        )
    return matrix, {"target": pa.chunked_array([pa.array(target)])}, None


def _check_ratio(path):
    with zipfile.ZipFile(path) as archive:
        grown = sum(member.file_size for member in archive.infolist())
    if grown > MAX_RATIO * path.stat().st_size:
        raise TableError(f"{path} would grow to {grown} bytes, more than {MAX_RATIO} times its own")


def _pick(path, names, wanted):
    for name in wanted:
        if name in names:
            return name
    raise TableError(f"{path} holds {', '.join(map(repr, names))}; an array 'X' is wanted")


def _mtx(path):
    from scipy.io import mmread

    matrix = mmread(path)
    return (sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix), {}, None


def _svmlight(path):
    from sklearn.datasets import load_svmlight_file

    matrix, target = load_svmlight_file(str(path))
    return sparse.csr_array(matrix), {"target": pa.chunked_array([pa.array(target)])}, None


def _h5ad(path):
    try:
        import anndata
    except ImportError as error:
        raise TableError(f"{path} needs anndata: {how_to_install('anndata')}") from error
    data = anndata.read_h5ad(path)
    obs = pa.Table.from_pandas(data.obs.reset_index(names="cell"), preserve_index=False)
    matrix = sparse.csr_array(data.X) if sparse.issparse(data.X) else np.asarray(data.X)
    columns = dict(zip(obs.column_names, obs.columns, strict=True))
    return matrix, columns, [str(name) for name in data.var_names]
