"""Every format is read alike; every bad file is one clear sentence."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pa = pytest.importorskip("pyarrow")
from pyarrow import csv, feather, parquet

from gnomon.exceptions import TableError
from gnomon.tools import tables
from gnomon.tools.tables import Reading, as_numbers, as_texts, as_values, column_kind, open_table

TEXT = "name,size,when,kind\na,1.5,2020-01-01,x\nb,,2020-01-03,y\nc,3,,x\n"


@pytest.fixture
def text(tmp_path):
    def write(content, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def check(table):
    assert table.names == ["name", "size", "when", "kind"]
    assert_array_equal(as_numbers(table.column("size")), [1.5, np.nan, 3])
    assert_array_equal(as_numbers(table.column("when")), [18262, 18264, np.nan])
    assert as_texts(table.column("kind")).tolist() == ["x", "y", "x"]
    assert [column_kind(table.column(n)) for n in table.names] == ["text", "number", "date", "text"]


def test_times_with_nanoseconds_are_read(text):
    table = open_table(text("when\n2020-01-01 12:00:00.123456789\n2020-01-02 00:00:00\n"))
    assert_allclose(as_numbers(table.column("when")), [18262.5 + 0.123456 / 86400, 18263])


def test_text_is_read_with_kinds_and_gaps(text):
    check(open_table(text(TEXT)))


@pytest.mark.parametrize(("separator", "name"), [(";", "t.csv"), ("\t", "t.tsv"), ("|", "t.txt")])
def test_the_separator_is_found(text, separator, name):
    check(open_table(text(TEXT.replace(",", separator), name)))


@pytest.mark.parametrize(("suffix", "codec"), [("gz", "gzip"), ("bz2", "bz2"), ("zst", "zstd")])
def test_compressed_text_is_read(tmp_path, suffix, codec):
    path = tmp_path / f"t.csv.{suffix}"
    with pa.CompressedOutputStream(str(path), codec) as stream:
        stream.write(TEXT.encode())
    check(open_table(path))


def test_a_byte_order_mark_is_no_part_of_a_name(text):
    check(open_table(text("\ufeff" + TEXT)))


def test_arrow_formats_are_read_as_text_is(text, tmp_path):
    data = pa.table(dict(open_table(text(TEXT)).batches().__next__().columns))
    parquet.write_table(data, tmp_path / "t.parquet")
    feather.write_feather(data, tmp_path / "t.feather")
    check(open_table(tmp_path / "t.parquet"))
    check(open_table(tmp_path / "t.feather"))


VIEWS = {"text": pa.string_view(), "bytes": pa.binary_view(), "half": pa.float16()}


@pytest.mark.parametrize("large", [False, True])
def test_columns_of_polars_and_half_numbers_are_read_as_plain_ones(tmp_path, monkeypatch, large):
    monkeypatch.setattr(tables, "STREAM_ABOVE", 100 if large else 2**29)
    cells = {"text": ["x", "y", None], "bytes": [b"1", b"2", b"3"]}
    cells["half"] = [np.float16(1.5), np.float16(2), None]
    data = pa.table({name: pa.array(cells[name], kind) for name, kind in VIEWS.items()})
    codes = pa.array([0, 1, None], pa.uint32())
    levels = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y"], pa.string_view()))
    feather.write_feather(data.append_column("levels", levels), tmp_path / "t.arrow")
    table = open_table(tmp_path / "t.arrow", na=("y",))
    assert as_texts(table.column("text")).tolist() == ["x", None, None]
    assert as_texts(table.column("levels")).tolist() == ["x", None, None]
    assert as_values(table.column("text")).tolist() == ["x"]
    assert as_values(table.column("half").filter(pa.array([True, False, True]))).tolist() == [1.5]
    assert not {field.type for field in data.schema} & {c.type for c in columns_of(table)}


def columns_of(table):
    return next(iter(table.batches())).columns.values()


@pytest.mark.parametrize(
    "cells",
    [[[1, 2]], [{"u": 1}], pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())), [b"\xff"]],
)
def test_columns_without_texts_are_no_names_and_no_classes(tmp_path, cells):
    parquet.write_table(pa.table({"a": cells, "b": [1.5]}), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"column 'a' of .* holds .*; texts, numbers or dates"):
        table.labels("a")
    with pytest.raises(TableError, match="no target 'c'"):
        table.check("c", "target")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather"])
def test_a_large_file_is_read_in_batches(name, tmp_path, monkeypatch):
    n = 5000
    data = pa.table({"a": np.arange(n) / 7, "b": ["x", "y"] * (n // 2)})
    writers = {
        "t.csv": lambda path: csv.write_csv(data, path),
        "t.parquet": lambda path: parquet.write_table(data, path),
        "t.feather": lambda path: feather.write_feather(data, path, chunksize=1000),
    }
    writers[name](tmp_path / name)
    monkeypatch.setattr(tables, "STREAM_ABOVE", 100)
    monkeypatch.setattr(tables, "BATCH_BYTES", 20_000)
    monkeypatch.setattr(tables, "BATCH_ROWS", 1000)
    table = open_table(tmp_path / name)
    assert table.streamed
    assert sum(1 for _ in table.batches()) > 2
    assert_allclose(as_numbers(table.column("a")), np.arange(n) / 7)


@pytest.mark.parametrize("cells, packed", [("1,2,x\n", True), (None, False)])
def test_a_text_that_was_packed_very_well_is_read_in_batches(cells, packed, tmp_path, rng):
    """Its cells take eight bytes each in memory, and a hundredth of one in the file."""
    rows = cells or "".join(f"{a},{b},x\n" for a, b in rng.normal(size=(200, 2)))
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("a,b,c\n" + rows * (5000 if packed else 1))
    before = open_table(tmp_path / "t.csv.gz")
    assert not before.streamed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "PACKED_ABOVE", 1000)
        table = open_table(tmp_path / "t.csv.gz")
    assert table.streamed == packed
    assert_array_equal(as_numbers(table.column("b")), as_numbers(before.column("b")))
    assert as_texts(table.column("c")).tolist() == as_texts(before.column("c")).tolist()


LATE = "a,b,c,d,e\n" + "1,2020-01-01,,true,5\n" * 2000


def test_a_large_file_may_go_on_with_another_kind(text, monkeypatch):
    monkeypatch.setattr(tables, "STREAM_ABOVE", 100)
    monkeypatch.setattr(tables, "BATCH_BYTES", 10_000)
    table = open_table(text(LATE + "1.5,2020-01-02,3,maybe,6\n" * 9))
    kinds = {name: column_kind(table.column(name)) for name in table.names}
    assert kinds == {"a": "number", "b": "date", "c": "number", "d": "text", "e": "number"}
    assert as_numbers(table.column("a"))[-1] == 1.5
    assert as_numbers(table.column("c"))[-1] == 3


def test_a_large_file_has_its_cells_read_once(text, monkeypatch):
    """Its batches lie elsewhere by then, so that it may change or go."""
    monkeypatch.setattr(tables, "STREAM_ABOVE", 100)
    monkeypatch.setattr(tables, "BATCH_BYTES", 10_000)
    path = text(LATE)
    table = open_table(path)
    path.unlink()
    assert len(table.column("a")) == len(table.column("b")) == 2000


def test_a_large_file_may_have_rows_longer_than_the_blocks_it_is_read_in(text, monkeypatch):
    monkeypatch.setattr(tables, "STREAM_ABOVE", 100)
    monkeypatch.setattr(tables, "BATCH_BYTES", 10_000)
    monkeypatch.setattr(tables, "CACHED_BYTES", 1000)
    table = open_table(text("a,b\n" + "1,x\n" * 500 + f"2,{'y' * 3000}\n" + "3,z\n" * 500))
    assert as_numbers(table.column("a")).sum() == 500 + 2 + 1500
    assert max(map(len, as_texts(table.column("b")))) == 3000


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "x,2020-01-01,,true,5",
            "column 'a' has 'x', which is no number as those before.*--na a=x",
        ),
        ("1,soon,,true,5", "column 'b' has 'soon', which is no date as those before.*--na b=soon"),
        ("1,2,3", "Expected 5 columns, got 3"),
    ],
)
def test_a_large_file_that_goes_on_wrongly_is_one_sentence(text, monkeypatch, line, sentence):
    monkeypatch.setattr(tables, "STREAM_ABOVE", 100)
    monkeypatch.setattr(tables, "BATCH_BYTES", 10_000)
    with pytest.raises(TableError, match=sentence):
        list(open_table(text(LATE + f"{line}\n" * 9)).batches())


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        ("", "t.csv", "is empty"),
        ("a,b\n", "t.csv", "has a header but no rows"),
        ("a,b,a\n1,2,3\n", "t.csv", "has the column 'a' more than once"),
        ("a,b\n1,2\n1,2,3\n", "t.csv", "Expected 2 columns, got 3"),
        (
            "a,b\nr1,1,2\nr2,1,3\n",
            "t.csv",
            "one name less than the first row.*put a name for these",
        ),
        (
            "# by X\na,b\n1,2\n",
            "t.csv",
            "first line begins with #: if it is a comment, begin the file",
        ),
        ("a,b\n1,2\n1,2,3\n", "t.csv", r"got 3: 1,2,3$"),
        (b"a,b\n1,caf\xe9\n", "t.csv", "is not UTF-8.*--encoding latin-1"),
        (b"a,caf\xe9\n1,2\n", "t.csv", "is not UTF-8"),
        (TEXT, "t.docx", "unknown suffix '.docx'"),
        (b"a,b\n1,2\n", "t.csv.gz", "cannot be read"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv", "is UTF-16; say --encoding utf-16"),
        ('a,b\n1,"x\n2,y\n3,z\n', "t.csv", "a quote before 'x' that is not closed"),
        (b"PAR1 not really", "t.parquet", "cannot be read"),
        (b"not arrow", "t.feather", "cannot be read"),
        (b"not a zip", "t.npz", "cannot be read"),
        (b"%%Nothing\n", "t.mtx", "cannot be read"),
        (b"1 nonsense\n", "t.svmlight", "cannot be read"),
        (b"not hdf5", "t.h5ad", "cannot be read|needs anndata"),
    ],
)
def test_bad_files_are_one_sentence(text, content, name, sentence):
    path = text(content, name)
    with pytest.raises(TableError, match=sentence) as error:
        open_table(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("end", ['2,"x\ny"\n', '2,"x\ny"', '"x\ny",3\n', '2,5" long\n'])
def test_quotes_that_are_closed_or_within_a_text_are_read(text, end):
    (batch,) = open_table(text("a,b\n1,x\n" + end)).batches()
    assert batch.n_rows == 2


def test_a_device_is_no_folder():
    with pytest.raises(TableError, match="is a device; a file is wanted"):
        open_table(Path("/dev/null"))


def test_another_encoding_can_be_named(text):
    table = open_table(text(b"a,b\n1,caf\xe9\n"), encoding="latin-1")
    assert as_texts(table.column("b")).tolist() == ["café"]


def test_an_unknown_encoding_is_named(text):
    with pytest.raises(TableError, match="nonsense"):
        open_table(text("a,b\n1,2\n"), encoding="nonsense")


def test_a_decimal_comma_can_be_named(text):
    table = open_table(text("a;b\n1,5;2\n"), decimal=",")
    assert_array_equal(as_numbers(table.column("a")), [1.5])


def test_a_wrong_name_suggests_the_right_one(text):
    table = open_table(text(TEXT))
    with pytest.raises(TableError, match=r"no target 'sizes'.*did you mean 'size'"):
        table.check("sizes", "target")


def test_a_missing_file_suggests_a_neighbour(text):
    path = text(TEXT)
    with pytest.raises(TableError, match=r"no file .*did you mean 't\.csv'"):
        open_table(path.with_name("t.cvs"))


def test_columns_without_a_name_are_called_by_their_place(text):
    assert open_table(text(",a\n1,2\n")).names == ["column 1", "a"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 2.0, None], ["1", "2", None]), ([1.5, 2.0], ["1.5", "2"]), ([True], ["true"])],
)
def test_numbers_as_texts_have_no_needless_fraction(values, expected):
    assert as_texts(pa.chunked_array([values])).tolist() == expected


def test_whole_numbers_beyond_all_integers_stay_apart_as_texts():
    numbers = [1.0, 2.0**53 + 2, 1e19, 3.5e20, -1e300, np.inf, None]
    texts = as_texts(pa.chunked_array([numbers]))
    assert [None if text is None else float(text) for text in texts] == numbers
    assert as_texts(pa.chunked_array([[2.0**53 + 2, 2.0**62]])).tolist() == [
        "9007199254740994",
        "4611686018427387904",
    ]


def test_a_comma_in_quotes_is_no_separator(text):
    assert open_table(text('"a, b, c";"d"\n1;2\n')).names == ["a, b, c", "d"]


@pytest.mark.parametrize("first", ["sep=;\n", "\ufeffsep=;\r\n", '"sep=;"\n', "SEP=;\n"])
@pytest.mark.parametrize("large", [False, True])
def test_a_line_that_names_the_separator_is_no_header(text, monkeypatch, first, large):
    monkeypatch.setattr(tables, "STREAM_ABOVE", 10 if large else 2**29)
    table = open_table(text(first + TEXT.replace(",", ";")))
    check(table)
    assert table.labels("name").tolist() == ["a", "b", "c"]
    assert open_table(text("sep=,\n" + TEXT), Reading(separator=";")).reading.separator == ","
    assert open_table(text("sep=ab,b\n1,2\n")).names == ["sep=ab", "b"]


def test_names_in_quotes_may_have_several_lines_and_separators(text):
    header = '"age\n(years, whole)";"a ""b"", c\n\nd"\n'
    table = open_table(text(header + "1,5;2\n"))
    assert table.names == ["age\n(years, whole)", 'a "b", c\n\nd']
    assert_array_equal(as_numbers(table.column(table.names[0])), [1.5])


def test_a_remembered_separator_gives_way_to_another_file(text):
    table = open_table(text(TEXT), Reading(separator=";"))
    check(table)
    assert table.reading.separator == ","


def test_the_table_carries_how_it_was_read(text):
    table = open_table(text("a;b\n1,5;25/03/2020\n2,5;01/04/2020\n"), na=("?",))
    assert table.options == {"na": ("?",)}
    assert table.reading == Reading(separator=";", decimal=",", na=("?",), dayfirst=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"separator": ";;"}, "--separator ';;'; one character is wanted"),
        ({"thousands": "_"}, "--thousands '_'; accepted are"),
        ({"thousands": ",", "decimal": ","}, "--thousands and --decimal are both ','"),
        ({"censored": "double"}, "--censored 'double'; accepted are 'half', 'gap'"),
    ],
)
def test_wrong_options_of_reading_are_named(text, options, sentence):
    with pytest.raises(TableError, match=sentence):
        open_table(text(TEXT), **options)


def test_a_row_with_the_name_of_a_target_suggests_to_transpose(text):
    table = open_table(text("gene,s1,s2\ntissue,x,y\ng1,1,2\n"))
    with pytest.raises(TableError, match=r"a row has that name.*--transpose"):
        table.check("tissue", "target")
