"""Reading tables and matrices from files, whole or piece by piece; columns as numbers or texts.

A table is a sequence of batches; what fits in memory is one batch. Named columns are Arrow
arrays; formats that hold a matrix (npz, mtx, svmlight, h5ad) keep it beside their columns.
"""

import codecs
import difflib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gnomon.exceptions import TableError, how_to_install

try:
    import pyarrow as pa
except ImportError as error:
    raise ImportError(f"tables need pyarrow: {how_to_install('cli')}") from error
import pyarrow.compute as pc

# Larger files are read in batches; the matrix then lies in a file of its own.
STREAM_ABOVE = 2**29
# Of a stream a few megabytes are in memory at a time; a whole file is read in larger blocks.
BATCH_BYTES, WHOLE_BYTES = 2**23, 2**25
# Rows that are in memory at a time where rows are counted, not bytes.
BATCH_ROWS = 2**16
SEPARATORS = {".tsv": "\t", ".tab": "\t"}
COMPRESSED = (".gz", ".bz2", ".zst")
CANDIDATES = (",", ";", "\t", "|")
# By which times of the day become days.
MICROSECONDS_OF_A_DAY = 86_400e6
DEFAULTS = {"encoding": "utf-8", "separator": None, "decimal": "."}
# A text that is a number, with its fraction behind a point or a comma.
NUMBER = re.compile(r"\s*[-+]?[0-9]+([.,][0-9]+)?(e[-+]?[0-9]+)?\s*", re.IGNORECASE)


class Batch(NamedTuple):
    """Some rows: named columns, and the matrix beside them if the format has one."""

    n_rows: int
    columns: dict[str, pa.ChunkedArray]
    matrix: Any = None


class Table(NamedTuple):
    """A file as batches of rows; ``options`` say how a text is read, where not as usual."""

    path: Path
    names: list[str]
    features: list[str]
    batches: Callable[[], Iterable[Batch]]
    streamed: bool = False
    options: Mapping[str, str] = MappingProxyType({})

    def check(self, name, role="column"):
        """The name, if it is one of a column; else an error that says which there are."""
        if name not in self.names:
            raise TableError(
                f"{self.path} has no {role} {name!r}{_nearest(name, self.names)}; "
                f"it has {_enumerate(self.names)}"
            )
        return name

    def column(self, name) -> pa.ChunkedArray:
        """A whole column."""
        self.check(name)
        parts = [batch.columns[name] for batch in self.batches()]
        chunks = [chunk for part in parts for chunk in part.chunks]
        return pa.chunked_array(chunks, parts[0].type)


def open_table(path, *, encoding="utf-8", separator=None, decimal=".") -> Table:
    """The table in a csv, tsv, parquet, feather, npz, mtx, svmlight or h5ad file."""
    path = Path(path)
    _check_file(path)
    _explained(path, lambda: codecs.lookup(encoding))
    for option, value in (("--separator", separator), ("--decimal", decimal)):
        if value is not None and len(value) != 1:
            raise TableError(f"{option} {value!r}; one character is wanted")
    suffix = _suffix(path)
    if suffix in READERS:
        return _checked(READERS[suffix](path))
    if suffix in (".csv", ".tsv", ".tab", ".txt"):
        options = {"encoding": encoding, "separator": separator, "decimal": decimal}
        table = _checked(_read_text(path, suffix, **options))
        given = {key: value for key, value in options.items() if value != DEFAULTS[key]}
        return table._replace(options=given)
    raise TableError(
        f"{path} has the unknown suffix {suffix!r}; accepted are csv, tsv, txt, parquet, feather, "
        "npz, mtx, svmlight and h5ad"
    )


def _check_file(path):
    if not path.exists():
        near = _nearest(path.name, [p.name for p in path.parent.glob("*")])
        raise TableError(f"there is no file {path}{near}")
    if not path.is_file():
        raise TableError(f"{path} is a folder; a file is wanted")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty; a header and rows are wanted")


def _suffix(path):
    """The suffix that tells the format, in lower case, without that of a compression."""
    compressed = path.suffix.lower() in COMPRESSED
    return (Path(path.stem) if compressed else path).suffix.lower()


def _checked(table):
    twice = {name for name in table.names if table.names.count(name) > 1}
    if twice:
        raise TableError(
            f"{table.path} has the column {min(twice)!r} more than once; rename one of them"
        )
    return table


def _one_batch(path, columns, matrix=None, features=()):
    n_rows = len(next(iter(columns.values()))) if matrix is None else matrix.shape[0]
    if n_rows == 0:
        raise TableError(f"{path} has no rows")
    batch = Batch(n_rows, columns, matrix)
    return Table(path, list(columns), list(features), lambda: iter([batch]))


def _from_arrow(path, data: pa.Table):
    if data.num_rows == 0:
        raise TableError(f"{path} has a header but no rows")
    names = data.column_names
    table = _checked(Table(path, names, [], tuple))
    columns = dict(zip(names, data.columns, strict=True))
    return table._replace(batches=lambda: iter([Batch(data.num_rows, columns)]))


def _read_text(path, suffix, encoding, separator, decimal):
    from pyarrow import csv

    large = path.stat().st_size > STREAM_ABOVE
    # A whole file is read in large blocks: kinds are guessed from the first one. Threads would
    # read ahead of a stream, and hold what they have read.
    block = BATCH_BYTES if large else WHOLE_BYTES
    options = {
        "read_options": csv.ReadOptions(encoding=encoding, block_size=block, use_threads=not large),
        "parse_options": csv.ParseOptions(
            delimiter=separator
            or SEPARATORS.get(suffix)
            or _explained(path, lambda: _sniff(path, encoding)),
            newlines_in_values=True,
        ),
        "convert_options": csv.ConvertOptions(strings_can_be_null=True, decimal_point=decimal),
    }
    if large:
        schema = _explained(path, lambda: csv.open_csv(_source(path), **options).schema)
        return _stream(path, schema, lambda: csv.open_csv(_source(path), **options))
    data = _explained(path, lambda: csv.read_csv(path, **options))
    data = data.rename_columns(_named(_explained(path, lambda: data.column_names)))
    _check_encoding(path, data.schema)
    return _from_arrow(path, data)


def _source(path):
    """The file mapped into memory: what is read ahead of a stream is then no memory of ours."""
    compressed = path.suffix.lower() in COMPRESSED
    return path if compressed else pa.memory_map(str(path))


def _sniff(path, encoding):
    """The separator that the first line has most of."""
    with pa.input_stream(str(path), compression="detect") as stream:
        start = stream.read(2**16)
    line = io.StringIO(start.decode(encoding, errors="replace")).readline()
    return max(CANDIDATES, key=line.count)


def _named(names):
    """Names without blanks around them; a column without a name is called by its place."""
    return [name.strip() or f"column {i + 1}" for i, name in enumerate(names)]


def _check_encoding(path, schema):
    for field in schema:
        if pa.types.is_binary(field.type):
            raise TableError(
                f"{path} is not UTF-8 in column {field.name!r}; "
                "say --encoding latin-1 (or what it is)"
            )


def _explained(path, read):
    """The result of reading, or the reader's complaint as one sentence."""
    try:
        return read()
    except (pa.ArrowException, UnicodeError, LookupError, OSError) as error:
        text = " ".join(str(error).split())[:200]
        if "utf8" in text.lower() or isinstance(error, UnicodeError):
            text = "it is not UTF-8; say --encoding latin-1 (or what it is)"
        raise TableError(f"{path} cannot be read: {text}") from error


def _stream(path, schema, pieces):
    """A table whose batches are read when they are asked for."""
    names = _named(_explained(path, lambda: schema.names))
    _check_encoding(path, schema)

    def batches() -> Iterator[Batch]:
        reader = _explained(path, pieces)
        while (piece := _explained(path, lambda: next(reader, None))) is not None:
            columns = [pa.chunked_array([column]) for column in piece.columns]
            yield Batch(piece.num_rows, dict(zip(names, columns, strict=True)))

    return Table(path, names, [], batches, streamed=True)


def _read_parquet(path):
    from pyarrow import parquet

    file = _explained(path, lambda: parquet.ParquetFile(path))
    size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
    if size <= STREAM_ABOVE:
        return _from_arrow(path, _explained(path, file.read))
    return _stream(path, file.schema_arrow, lambda: file.iter_batches(batch_size=BATCH_ROWS))


def _read_feather(path):
    from pyarrow import feather, ipc

    if path.stat().st_size <= STREAM_ABOVE:
        return _from_arrow(path, _explained(path, lambda: feather.read_table(path)))
    file = _explained(path, lambda: ipc.open_file(pa.memory_map(str(path))))
    numbers = range(file.num_record_batches)
    return _stream(path, file.schema, lambda: (file.get_batch(i) for i in numbers))


def _read_matrix(path):
    from gnomon.tools.matrices import read_matrix

    matrix, columns, features = read_matrix(path, _suffix(path))
    return _one_batch(path, columns, matrix, features)


READERS: dict[str, Callable[[Path], Table]] = {
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".feather": _read_feather,
    ".arrow": _read_feather,
} | dict.fromkeys([".npz", ".mtx", ".svmlight", ".svm", ".libsvm", ".h5ad"], _read_matrix)


def _nearest(name, names):
    near = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _enumerate(names, most=12):
    shown = ", ".join(map(repr, names[:most]))
    return shown + (f" and {len(names) - most} more" if len(names) > most else "") or "none"


def column_kind(column) -> str:
    """What a column holds: number, date, text, empty or other."""
    kinds = {
        "empty": pa.types.is_null,
        "number": _is_number,
        "date": pa.types.is_temporal,
        "text": _is_text,
    }
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return next((name for name, holds in kinds.items() if holds(kind)), "other")


def as_values(column) -> np.ndarray:
    """A column without its gaps in its own type: integers, booleans, floats, else texts."""
    column = _decoded(column).drop_null()
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return column.to_numpy(zero_copy_only=False)
    return as_numbers(column) if column_kind(column) == "number" else as_texts(column)


def as_numbers(column) -> np.ndarray:
    """A column of numbers, booleans or dates (in days) as floats, NaN in the gaps."""
    if pa.types.is_temporal(column.type):
        return _as_days(column)
    column = _decoded(column).cast(pa.float64(), safe=False)
    return np.array(column.to_numpy(zero_copy_only=False), dtype=float)


def as_texts(column) -> np.ndarray:
    """A column as strings, None in the gaps."""
    column = _decoded(column)
    if pa.types.is_floating(column.type):
        column = _without_fraction(column)
    # A text that occurs often is one object.
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    levels = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    return levels[pc.fill_null(coded.indices, len(levels) - 1).to_numpy()]


def _decoded(column):
    """A column of categories as the values that they stand for."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _without_fraction(column):
    """Whole numbers as integers, so that class 1.0 reads 1; NaN is a gap."""
    column = pc.if_else(pc.is_nan(column), None, column)
    whole = pc.all(pc.equal(column, pc.floor(column))).as_py()
    return column.cast(pa.int64(), safe=False) if whole else column


def _as_days(column):
    """Dates and durations in days, times of the day in hours."""
    kind = column.type
    if pa.types.is_duration(kind):
        column, per_unit = column.cast(pa.duration("us"), safe=False), MICROSECONDS_OF_A_DAY
    elif pa.types.is_time(kind):
        column, per_unit = column.cast(pa.time64("us"), safe=False), MICROSECONDS_OF_A_DAY / 24
    else:
        zone = getattr(kind, "tz", None)
        column, per_unit = column.cast(pa.timestamp("us", zone), safe=False), MICROSECONDS_OF_A_DAY
    micros = column.cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.array(micros.to_numpy(zero_copy_only=False), dtype=float) / per_unit


def _is_number(kind):
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return number or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)


def _is_text(kind):
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
