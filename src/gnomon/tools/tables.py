"""Reading tables and matrices from files, whole or piece by piece; columns as numbers or texts.

A table is a sequence of batches; what fits in memory is one batch. Named columns are Arrow
arrays; formats that hold a matrix (npz, mtx, svmlight, h5ad) keep it beside their columns.
"""

import codecs
import difflib
import io
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
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

from gnomon.tools.growth import COMPRESSED, size_of_packed

# Larger files are read in batches; the matrix then lies in a file of its own.
STREAM_ABOVE = 2**29
# So are texts that were packed to less than a hundredth, as a table of counts that are nearly all
# zero is, if that is much; what is shorter takes half a gigabyte at most.
PACKED_ABOVE, WELL_PACKED = 2**26, 100
# Of a stream a few megabytes are in memory at a time; a whole file is read in larger blocks.
BATCH_BYTES, WHOLE_BYTES = 2**23, 2**25
# Texts of a stream become numbers in blocks that stay in the cache: half the time of 8 MB.
CACHED_BYTES = 2**20
# Rows that are in memory at a time where rows are counted, not bytes.
BATCH_ROWS = 2**16
SEPARATORS = {".tsv": "\t", ".tab": "\t"}
CANDIDATES = (",", ";", "\t", "|")
# By which times of the day become days.
MICROSECONDS_OF_A_DAY = 86_400e6
TEXTS = (".csv", ".tsv", ".tab", ".txt")
WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
MATRICES = (".npz", ".mtx", ".svmlight", ".svm", ".libsvm", ".h5ad")
FORMATS = (*WORKBOOKS, ".parquet", ".pq", ".feather", ".arrow", *MATRICES)
# Cells without a value, in every column: what programs write.
NO_VALUE = ["", *"NA N/A n/a NaN nan -NaN -nan NULL Null null #N/A #NA #NV <NA>".split()]
# Cells without a value where the others are numbers or dates, what people write: in a column of
# texts it may be a level. "none" is not among them, for it can mean zero.
NO_NUMBER = """. .. ... - -- ? ?? * / na Na n.a. N.A. nd ND n.d. N.D. n/d N/D k.A. missing Missing
MISSING unknown Unknown UNKNOWN #DIV/0! #VALUE! #REF! #NAME? #NUM!""".split()
CENSORED = ("half", "gap")
# How many times its size a file may take in memory, if that is much; a bomb of a few kilobytes
# would otherwise fill it. Tables of few different numbers shrink to a hundredth.
MAX_GROWTH = 200.0
MARKS = (".", ",", "'", " ")
# A text that is a number, with its fraction behind a point or a comma.
NUMBER = re.compile(r"\s*[-+]?[0-9]+([.,][0-9]+)?(e[-+]?[0-9]+)?\s*", re.IGNORECASE)

# Types for which Arrow lacks functions, as polars writes them, and those that take their place.
PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary(), pa.float16(): pa.float32()}

# A first line that tells Excel the separator.
NAMED_SEPARATOR = re.compile(r'\A"?sep=(.)"?\r?\n', re.IGNORECASE)
# What pyarrow says of a cell that has another kind than those before it in its column.
CONVERSION = re.compile(r"In CSV column #([0-9]+): .*conversion error")
# Of one with another number of cells than the header.
OTHER_LENGTH = re.compile(r"Expected ([0-9]+) columns, got ([0-9]+): (.*)")
# And of a row that is longer than the blocks in which it reads.
LONG_ROW = "straddling object"


class Reading(NamedTuple):
    """How a table is read; what is None is found. A table carries the one that was used."""

    encoding: str = "utf-8"
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    na: tuple[str, ...] = ()
    censored: str = "half"
    dayfirst: bool | None = None
    sheet: str | int | None = None
    transpose: bool = False
    max_growth: float = MAX_GROWTH

    def changed(self) -> dict:
        """What is not as usual."""
        return {k: v for k, v in self._asdict().items() if v != Reading._field_defaults[k]}

    def lasting(self) -> dict:
        """What is not as usual and holds for other files too; trust in a large one does not."""
        return {k: v for k, v in self.changed().items() if k != "max_growth"}


class Batch(NamedTuple):
    """Some rows: named columns, and the matrix beside them if the format has one."""

    n_rows: int
    columns: dict[str, pa.ChunkedArray]
    matrix: Any = None


class Table(NamedTuple):
    """A file as batches of rows; ``options`` say how it was to be read, ``reading`` how it was.

    ``written(names)`` are columns as the file has them, before anything is made of their texts.
    """

    path: Path
    names: list[str]
    features: list[str]
    batches: Callable[[], Iterable[Batch]]
    streamed: bool = False
    options: Mapping[str, Any] = MappingProxyType({})
    reading: Reading = Reading()
    written: Callable[[list[str]], Iterable[Mapping[str, pa.ChunkedArray]]] | None = None

    def check(self, name, role="column"):
        """The name, if it is one of a column; else an error that says which there are."""
        if name not in self.names:
            raise TableError(
                f"{self.path} has no {role} {name!r}{_nearest(name, self.names)}; "
                f"it has {_enumerate(self.names)}{self._hint(name)}"
            )
        return name

    def _hint(self, name):
        """What to say where a row has the name that a column should have."""
        if self.streamed or not self.names or self.features:
            return ""
        first = self.column(self.names[0])
        is_row = column_kind(first) != "other" and name in as_texts(first).tolist()
        return "; a row has that name: if rows are the features, say --transpose" if is_row else ""

    def column(self, name) -> pa.ChunkedArray:
        """A whole column."""
        try:
            parts = [batch.columns[name] for batch in self.batches()]
        except KeyError:
            self.check(name)
            raise
        return _joined(parts)

    def cells(self, name) -> pa.ChunkedArray:
        """A whole column, if its cells have texts that stand for them."""
        column = self.column(name)
        try:
            return column.cast(pa.string()) if column_kind(column) == "other" else column
        except pa.ArrowException:
            raise TableError(
                f"column {name!r} of {self.path} holds {column.type}; texts, numbers or dates are "
                "wanted"
            ) from None

    def as_written(self, names) -> dict[str, pa.ChunkedArray]:
        """Whole columns as the file has them: of a text file the texts, to the letter."""
        if self.written is None:
            return {name: self.column(name) for name in names}
        parts = list(self.written(list(names)))
        return {name: _joined([part[name] for part in parts]) for name in names}

    def labels(self, name) -> np.ndarray:
        """A column of names or classes as strings, None where its cell is empty or blank.

        "01" is not "1", and a number of 20 digits keeps all of them. In a column of texts NA is a
        name like any other.
        """
        column, written = self.cells(name), self.as_written([name])[name]
        texts = as_texts(column)
        if column_kind(written) != "text":
            return texts
        pairs = list(zip(texts, as_texts(written), strict=True))
        # Programs write whole numbers with gaps as 1.0: the names are without the fraction.
        if all(text is None or written in (text, f"{text}.0") for text, written in pairs):
            pairs = [(text, text or written) for text, written in pairs]
        names = set(NO_VALUE[1:]) - set(self._words(name)) if column_kind(column) == "text" else ()
        return np.array([None if t is None and w not in names else w for t, w in pairs], object)

    def _words(self, name):
        """The words of --na that count in a column."""
        own, of_all = f"{name}=", self.reading.na
        return (*of_all, *(word.removeprefix(own) for word in of_all if word.startswith(own)))


def open_table(
    path, reading=None, *, kinds=MappingProxyType({}), note=lambda text: None, **options
) -> Table:
    """The table in a csv, tsv, xlsx, ods, parquet, feather, npz, mtx, svmlight or h5ad file.

    ``options`` are fields of a `Reading` and come before those of ``reading``; ``kinds`` says of
    columns that are known, as from a fit, whether they hold number, date or text.
    """
    path = Path(path)
    _check_file(path)
    asked = (reading or Reading())._replace(**options)
    _check_reading(path, asked)
    read = _read_whole(path, suffix_of(path), asked, kinds, note)
    table = _checked(read)._replace(options=asked.changed())
    if asked.transpose:
        from gnomon.tools.transpose import turned

        table = _checked(turned(table))
    if not table.features:
        table = _understood(table, kinds, note)
    return table


def _read_whole(path, suffix, asked, kinds, note):
    """The table by the reader of its format, and how it was read."""
    if suffix in TEXTS:
        return _read_text(path, suffix, asked, kinds)
    if suffix in FORMATS:
        from gnomon.tools.formats import read_format

        return read_format(path, suffix, asked, note)._replace(reading=asked)
    raise TableError(
        f"{path} has the unknown suffix {suffix!r}; accepted are csv, tsv, txt, xlsx, xls, ods, "
        "parquet, feather, npz, mtx, svmlight and h5ad"
    )


def _check_reading(path, asked):
    explained(path, lambda: codecs.lookup(asked.encoding))
    accepted = {"thousands": (None, *MARKS), "censored": CENSORED}
    for option in ("separator", "decimal", "thousands", "censored"):
        value, values = getattr(asked, option), accepted.get(option)
        if values is None and value is not None and len(value) != 1:
            raise TableError(f"--{option} {value!r}; one character is wanted")
        if values is not None and value not in values:
            shown = ", ".join(repr(v) for v in values if v is not None)
            raise TableError(f"--{option} {value!r}; accepted are {shown}")
    if not asked.max_growth > 0:
        raise TableError(f"--max-growth {asked.max_growth:g}; a number above 0 is wanted")
    if asked.thousands is not None and asked.thousands == asked.decimal:
        raise TableError(f"--thousands and --decimal are both {asked.decimal!r}; one is not")


def _understood(table, kinds, note):
    """The table with gaps where --na says so, and with numbers and dates that came as texts."""
    asked, typed = table.reading, suffix_of(table.path) not in TEXTS + WORKBOOKS
    first = next(iter(table.batches()))
    if not asked.na and (typed or not any(map(may_be_number, first.columns.values()))):
        return table
    from gnomon.tools.cells import mended

    return mended(table, first, kinds, note, texts_stay=typed)


def may_be_number(column) -> bool:
    """Whether a column is texts with a digit somewhere; without one there is no number or date."""
    return column_kind(column) == "text" and bool(
        pc.any(pc.match_substring_regex(_decoded(column), "[0-9]")).as_py()
    )


def _check_file(path):
    if not path.exists():
        near = _nearest(path.name, [p.name for p in path.parent.glob("*")])
        raise TableError(f"there is no file {path}{near}")
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "a device"
        raise TableError(f"{path} is {kind}; a file is wanted")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty; a header and rows are wanted")


def suffix_of(path) -> str:
    """The suffix that tells the format, in lower case, without that of a compression."""
    compressed = path.suffix.lower() in COMPRESSED
    return (Path(path.stem) if compressed else path).suffix.lower()


def _checked(table):
    twice = [name for name, count in Counter(table.names).items() if count > 1]
    if twice:
        raise TableError(
            f"{table.path} has the column {min(twice)!r} more than once; rename one of them"
        )
    return table


def one_batch(path, columns, matrix=None, features=()) -> Table:
    """A table that is in memory, from its columns."""
    n_rows = len(next(iter(columns.values()))) if matrix is None else matrix.shape[0]
    if n_rows == 0:
        raise TableError(f"{path} has no rows")
    batch = Batch(n_rows, {name: plain(c) for name, c in columns.items()}, matrix)
    return Table(path, list(columns), list(features), lambda: iter([batch]))


def from_arrow(path, data: pa.Table) -> Table:
    """A table that is in memory, from one of Arrow."""
    if data.num_rows == 0:
        raise TableError(f"{path} has a header but no rows")
    names = data.column_names
    table = _checked(Table(path, names, [], tuple))
    columns = dict(zip(names, map(plain, data.columns), strict=True))
    return table._replace(batches=lambda: iter([Batch(data.num_rows, columns)]))


def _read_text(path, suffix, asked, kinds):
    from pyarrow import csv

    _refuse_utf_16(path, asked.encoding)
    reading = asked._replace(separator=explained(path, lambda: _separator(path, suffix, asked)))
    large = _is_large(path, explained(path, lambda: size_of_text(path, asked.max_growth)))
    options = _csv_options(csv, path, reading, kinds, large)
    if large:
        schema, pieces = explained(path, lambda: _as_arrow(csv, path, options))
        table = stream(path, schema, pieces)
        batches = table.batches
        table = table._replace(batches=lambda: map(_without_words, batches()), reading=reading)
        return table._replace(written=lambda names: _texts(table, schema.names, names))
    data = explained(path, lambda: csv.read_csv(path, **options))
    own = explained(path, lambda: data.column_names)
    data = data.rename_columns(_named(own))
    _check_encoding(path, data.schema)
    (batch,) = from_arrow(path, data).batches()
    _refuse_open_quote(path, data.columns[-1][-1].as_py(), reading.encoding)
    table = one_batch(path, _without_words(batch).columns)._replace(reading=reading)
    return table._replace(written=lambda names: _texts(table, own, names))


def _is_large(path, size):
    """Whether a text is not to be in memory: it is long, or was packed so well that cells repeat.

    A cell of two bytes takes eight as a number, and a hundredth of one in a file.
    """
    return size > STREAM_ABOVE or size > max(PACKED_ABOVE, WELL_PACKED * path.stat().st_size)


def _as_arrow(csv, path, options):
    """The schema of a text file, and a function that goes over its batches.

    Its cells are read once, which takes far longer than all that follows: batches lie in Arrow's
    own format in a temporary file that goes away with them, about as large as the text.
    """
    with tempfile.TemporaryFile(prefix="gnomon-") as file:
        schema = _converted(csv, path, options, file)
        held = pa.py_buffer(np.memmap(file, dtype=np.uint8, mode="r"))

    def pieces():
        reader = pa.ipc.open_file(held)
        return map(reader.get_batch, range(reader.num_record_batches))

    return schema, pieces


def _converted(csv, path, options, file):
    """The kinds of columns that hold to the end of a file of which the first part is guessed from.

    Whole numbers may go on with fractions, empty cells with numbers; what goes on with texts is
    texts, and the file to write to is begun again.
    """
    read, convert = options["read_options"], options["convert_options"]
    schema = csv.open_csv(_source(path), **options).schema
    kinds = {field.name: field.type for field in schema}
    if len(kinds) == len(schema):
        read.block_size, read.use_threads = min(CACHED_BYTES, BATCH_BYTES), True
        convert.column_types = kinds
    while True:
        reader = csv.open_csv(_source(path), **options)
        schema = reader.schema
        try:
            _write(reader, schema, file)
            return schema
        except pa.ArrowInvalid as error:
            if LONG_ROW in str(error) and read.block_size < BATCH_BYTES:
                read.block_size = BATCH_BYTES
                continue
            found = CONVERSION.search(str(error))
            if found is None or pa.types.is_string(schema.field(int(found[1])).type):
                raise
            field = schema.field(int(found[1]))
            numbers = pa.types.is_integer(field.type) or pa.types.is_null(field.type)
            kinds = dict(convert.column_types)
            convert.column_types = kinds | {field.name: pa.float64() if numbers else pa.string()}


def _write(reader, schema, file):
    """All that a reader has, from the start of the file, in batches of some megabytes."""
    file.seek(0)
    file.truncate()
    with pa.ipc.new_file(file, schema) as writer:
        while pieces := list(islice(reader, BATCH_BYTES // CACHED_BYTES or 1)):
            writer.write_table(pa.Table.from_batches(pieces).combine_chunks())
    file.flush()


def _refuse_open_quote(path, last, encoding):
    """Raise where a quote that is never closed has made the last cell of all that follows it."""
    lines = last.splitlines() if isinstance(last, str) else []
    if len(lines) > 1 and not _end(path).decode(encoding, "replace").endswith('"'):
        raise TableError(
            f"{path} has a quote before {lines[0][:40]!r} that is not closed, so that "
            'all lines after it would be lost; close it, or write "" for one that is part of a text'
        )


def _end(path):
    """The last bytes of a text file that are no blanks."""
    end = b""
    with pa.input_stream(str(path), compression="detect") as stream:
        while block := stream.read(BATCH_BYTES):
            end = (end + block)[-64:].rstrip() or end
    return end


def _texts(table, own, names):
    """Columns of a text file as they are in it, batch by batch; ``own`` is its header."""
    from pyarrow import csv

    options = _csv_options(csv, table.path, table.reading, {}, large=True)
    places = {name: place for place, name in enumerate(table.names)}
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(own, pa.string()), null_values=[], strings_can_be_null=False
    )
    if len(set(own)) == len(own):
        convert.include_columns = [own[places[name]] for name in names]
        places = {name: place for place, name in enumerate(names)}
    options |= {"convert_options": convert}
    reader = explained(table.path, lambda: csv.open_csv(_source(table.path), **options))
    while (piece := explained(table.path, lambda: next(reader, None))) is not None:
        yield {name: pa.chunked_array([piece.column(places[name])]) for name in names}


def _csv_options(csv, path, reading, kinds, large):
    # A whole file is read in large blocks: kinds are guessed from the first one. Threads would
    # read ahead of a stream of large blocks, and hold what they have read.
    block = BATCH_BYTES if large else WHOLE_BYTES
    return {
        "read_options": csv.ReadOptions(
            encoding=reading.encoding,
            block_size=block,
            use_threads=not large,
            skip_rows=int(_named_separator(path, reading.encoding) is not None),
        ),
        "parse_options": csv.ParseOptions(delimiter=reading.separator, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            null_values=[*NO_VALUE, *NO_NUMBER, *reading.na],
            decimal_point=reading.decimal or ("," if reading.thousands == "." else "."),
            column_types={name: pa.string() for name in kinds if kinds[name] == "text"},
        ),
    }


def _without_words(batch):
    """The batch of a text file with gaps where a text says that there is no value."""
    words = pa.array(NO_VALUE)

    def emptied(column):
        if column_kind(column) != "text":
            return column
        return pc.if_else(pc.is_in(column, value_set=words), None, column)

    return batch._replace(columns={n: emptied(column) for n, column in batch.columns.items()})


def _separator(path, suffix, asked):
    """The one asked for, named, or of the suffix, else the one that the first line has most of."""
    line, named = _first_line(path, asked.encoding), _named_separator(path, asked.encoding)
    if asked.separator is not None and (
        asked.separator in line or asked.separator not in CANDIDATES
    ):
        return asked.separator
    return named or SEPARATORS.get(suffix) or max(CANDIDATES, key=line.count)


def _named_separator(path, encoding):
    """The separator that a line of its own names before the header, as sep=; does for Excel."""
    named = NAMED_SEPARATOR.match(_start(path, encoding))
    return named and named[1]


def size_of_text(path, max_growth) -> int:
    """The bytes of a text file without its compression."""
    packed = path.suffix.lower() in COMPRESSED
    return size_of_packed(path, max_growth) if packed else path.stat().st_size


def _source(path):
    """The file mapped into memory: what is read ahead of a stream is then no memory of ours."""
    compressed = path.suffix.lower() in COMPRESSED
    return path if compressed else pa.memory_map(str(path))


def _first_line(path, encoding):
    """The header without what stands in quotes, be it over several lines."""
    start = NAMED_SEPARATOR.sub("", _start(path, encoding))
    return io.StringIO(re.sub('"[^"]*"', "", start)).readline()


def _start(path, encoding):
    """Some thousand signs from the start of a text file, without a mark of the order of bytes."""
    with pa.input_stream(str(path), compression="detect") as stream:
        start = stream.read(2**16)
    return start.decode(encoding, errors="replace").removeprefix("\ufeff")


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


def _refuse_utf_16(path, encoding):
    """Raise where a file begins as UTF-16 does and another encoding was asked for."""
    with open(path, "rb") as file:
        is_wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if is_wide and "16" not in encoding:
        raise TableError(f"{path} cannot be read: it is UTF-16; say --encoding utf-16")


def explained(path, read):
    """The result of reading, or the reader's complaint as one sentence."""
    try:
        return read()
    except (pa.ArrowException, UnicodeError, LookupError, OSError) as error:
        text = " ".join(str(error).split())[:200]
        if "utf8" in text.lower() or isinstance(error, UnicodeError):
            text = "it is not UTF-8; say --encoding latin-1 (or what it is)"
        raise TableError(f"{path} cannot be read: {text}{_way_out(path, text)}") from error


def _way_out(path, text):
    """What to do where a header is of another length than the rows, for its common causes."""
    found = OTHER_LENGTH.search(text)
    if not found:
        return ""
    first, second = [*_start(path, "latin-1").splitlines(), "", ""][:2]
    if first.startswith("#"):
        return "; its first line begins with #: if it is a comment, begin the file with the header"
    # More cells in a later row have another cause.
    if int(found[2]) != int(found[1]) + 1 or " ".join(second.split())[:20] != found[3][:20]:
        return ""
    return (
        "; the header has one name less than the first row has cells: if those begin with names "
        "of the rows, as R writes them, put a name for these before the others"
    )


def stream(path, schema, pieces) -> Table:
    """A table whose batches are read when they are asked for."""
    names = _named(explained(path, lambda: schema.names))
    _check_encoding(path, schema)

    def batches() -> Iterator[Batch]:
        reader = explained(path, pieces)
        while (piece := explained(path, lambda: next(reader, None))) is not None:
            columns = [plain(pa.chunked_array([column])) for column in piece.columns]
            yield Batch(piece.num_rows, dict(zip(names, columns, strict=True)))

    return Table(path, names, [], batches, streamed=True)


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


def plain(column) -> pa.ChunkedArray:
    """The column in a type for which Arrow has all functions."""
    coded = pa.types.is_dictionary(column.type)
    kind = PLAIN.get(column.type.value_type if coded else column.type)
    if kind is None:
        return column
    if coded:
        parts = [_cast(part.dictionary, kind).take(part.indices) for part in column.chunks]
    else:
        parts = [_cast(part, kind) for part in column.chunks]
    return pa.chunked_array(parts, kind)


def _cast(part, kind):
    """Values in another type; early versions of pyarrow cast no views."""
    try:
        return part.cast(kind)
    except pa.ArrowNotImplementedError:
        return pa.array(part.to_pylist(), kind)


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
    """A column as strings, None in the gaps and for blanks."""
    column = _decoded(column)
    if pa.types.is_floating(column.type):
        column = _without_fraction(column)
    # A text that occurs often is one object.
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = coded.dictionary.to_pylist()
    levels = np.array([*(text if text.strip() else None for text in texts), None], dtype=object)
    return levels[pc.fill_null(coded.indices, len(levels) - 1).to_numpy()]


def _decoded(column):
    """A column of categories as the values that they stand for."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _without_fraction(column):
    """Whole numbers as integers, so that class 1.0 reads 1; NaN is a gap.

    Numbers stay as they are where one of them has a fraction or is beyond all integers.
    """
    column = pc.if_else(pc.is_nan(column), None, column)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def _joined(parts):
    """One column of the parts of several batches."""
    chunks = [chunk for part in parts for chunk in part.chunks]
    return pa.chunked_array(chunks, parts[0].type)


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
