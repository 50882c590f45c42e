"""What the texts of cells mean, by the evidence of their column and of the others."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("pyarrow")
from gnomon.exceptions import TableError
from gnomon.tools import tables
from gnomon.tools.tables import Reading, as_numbers, as_texts, column_kind, open_table


def numbers(table, name="a"):
    column = table.column(name)
    assert column_kind(column) in ("number", "empty"), column.type
    return as_numbers(column)


@pytest.mark.parametrize(
    "word", ["", ".", "-", "?", "n.d.", "nd", "NA", "N/A", "n/a", "#N/A", "missing", " . ", "null"]
)
def test_words_among_numbers_are_gaps(read, word):
    table, notes = read(["1.5", word, "2"])
    assert_array_equal(numbers(table), [1.5, np.nan, 2])
    assert notes == []


def test_words_among_dates_are_gaps(read):
    table, _ = read(["2021-03-25", "n.d.", "2021-03-26"])
    assert_array_equal(as_numbers(table.column("a")), [18711, np.nan, 18712])


def test_words_among_texts_are_levels_but_those_of_programs(read):
    cells = ["A", "none", "-", "?", "missing", "NA"]
    assert as_texts(read(cells)[0].column("a")).tolist() == [*cells[:-1], None]


def test_none_among_numbers_is_no_gap(read):
    assert column_kind(read(["1", "none", "2"])[0].column("a")) == "text"


def test_na_counts_in_all_columns_or_in_one(read):
    columns = {"a": ["1", "99", "x"], "b": ["A", "x", "99"], "c": ["99", "2.5", "3"]}
    table, _ = read(columns, na=("x", "a=99"))
    assert_array_equal(numbers(table), [1, np.nan, np.nan])
    assert as_texts(table.column("b")).tolist() == ["A", None, "99"]
    assert_array_equal(numbers(table, "c"), [99, 2.5, 3])
    table, _ = read(columns, na=("99",))
    assert_array_equal(numbers(table, "c"), [np.nan, 2.5, 3])


def test_na_for_a_column_that_is_not_there_is_told(read):
    assert "there is no column 'ae'" in read(["1", "2"], na=("ae=99",))[1][0]
    assert read(["1", "2"], na=("ae=99",), kinds={"a": "number"})[1] == []


def test_na_counts_in_formats_with_kinds(read, tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    data = pa.table({"a": [1.0, 99.0], "b": ["99", "1"], "c": [99, 1]})
    parquet.write_table(data, tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet", na=("a=99", "b=99"))
    assert_array_equal(numbers(table), [1, np.nan])
    assert as_texts(table.column("b")).tolist() == [None, "1"]
    assert_array_equal(numbers(table, "c"), [99, 1])


def test_limits_among_numbers_are_half_of_them_or_gaps(read):
    cells = ["1.5", "<0.5", "> 100", "n.d.", "2", "≤0.4", "7"]
    table, (note,) = read(cells)
    assert_array_equal(numbers(table), [1.5, 0.25, 100, np.nan, 2, 0.2, 7])
    assert "'a' has 3 cells as '<0.5'; read as half the limit" in note
    assert "--censored gap" in note
    table, (note,) = read(cells, censored="gap")
    assert_array_equal(numbers(table), [1.5, np.nan, np.nan, np.nan, 2, np.nan, 7])
    assert "read as gaps; say --censored half" in note
    assert "has 1 cell as" in read(["1", "2", "<1"])[1][0]


def test_groups_by_limits_are_texts(read):
    table, notes = read(["<30", ">=30", "<30", ">=30"])
    assert column_kind(table.column("a")) == "text"
    assert notes == []


def test_a_known_column_of_numbers_needs_no_evidence(read):
    table, _ = read(["<0.5"], kinds={"a": "number"})
    assert_array_equal(numbers(table), [0.25])


def test_a_known_column_of_texts_keeps_its_words(read):
    cells = ["-", "1", "n.d."]
    assert as_texts(read(cells, kinds={"a": "text"})[0].column("a")).tolist() == cells


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_decimal_commas_are_found_and_said(read, separator):
    table, (note,) = read({"a": ["1,5", "2", "-0,25"], "b": ["7", "8", "9"]}, separator)
    assert_array_equal(numbers(table), [1.5, 2, -0.25])
    assert table.reading.decimal == ","
    assert "decimal commas were found in 'a'" in note
    assert "--decimal ." in note


def test_a_column_without_marks_is_no_evidence(read):
    table, notes = read({"a": ["1,5", "2,5", "3"], "b": ["<7", "8", "9"]}, ";")
    assert table.reading.decimal == ","
    assert_array_equal(numbers(table, "b"), [3.5, 8, 9])
    assert len(notes) == 2
    assert "'b'" not in notes[1]


def test_a_decimal_point_that_was_named_is_kept(read):
    assert column_kind(read(["1,5", "2"], ";", decimal=".")[0].column("a")) == "text"


def test_1234_is_what_the_other_columns_say(read):
    cells = ["1,234", "12,345"]
    table, _ = read({"a": cells, "b": ["1,5", "2,5"]}, "\t")
    assert_array_equal(numbers(table), [1.234, 12.345])
    table, _ = read({"a": cells, "b": ["1.5", "2.5"]}, ";")
    assert_array_equal(numbers(table), [1234, 12345])
    table, _ = read({"a": cells, "b": ["1,234.5", "2"]}, ";")
    assert_array_equal(numbers(table), [1234, 12345])


def test_1234_without_evidence_is_by_the_separator_with_a_note_or_an_error(read):
    cells = ["1,234", "12,345"]
    table, notes = read(cells, ";")
    assert_array_equal(numbers(table), [1.234, 12.345])
    assert (
        "in 'a': a comma is read as a decimal comma; if that is wrong, say --thousands ,"
        in notes[0]
    )
    table, notes = read(cells, ",")
    assert_array_equal(numbers(table), [1234, 12345])
    assert "thousands; if that is wrong, say --decimal ," in notes[0]
    with pytest.raises(TableError, match="say --decimal , or --thousands ,"):
        read(cells, "\t")
    assert_array_equal(numbers(read(cells, "\t", thousands=",")[0]), [1234, 12345])
    assert_array_equal(numbers(read(cells, "\t", decimal=",")[0]), [1.234, 12.345])


def test_1234_with_a_point_is_no_evidence_for_1234_with_a_comma(read):
    columns = {"a": ["5,410", "1,234"], "b": ["1.997", "2.345"], "c": ["7", "8"]}
    table, notes = read(columns, ";")
    assert_array_equal(numbers(table), [5.41, 1.234])
    assert notes[0] == (
        "numbers such as 1,234 and 1.234 in 'a', 'b': a comma is read as a decimal comma; "
        "if that is wrong, say --thousands ,"
    )
    assert "found in 'b'; if they are of thousands, say --thousands ." in notes[2]
    with pytest.raises(TableError, match=r"1,234 and 1\.234 in 'a', 'b', which"):
        read(columns, "\t")
    for fraction in ("0.997", "1.9", "1.9971", "12345.678"):
        table, _ = read(columns | {"b": ["1.997", fraction]}, ";")
        assert_array_equal(numbers(table), [5410, 1234])


def test_a_leading_zero_is_of_a_fraction(read):
    assert_array_equal(numbers(read(["0,123", "1,234"], "\t")[0]), [0.123, 1.234])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1.234,5", "7"], [1234.5, 7]),
        (["1,234,567.25", "1.5"], [1234567.25, 1.5]),
        (["1'234.5", "2"], [1234.5, 2]),
        (["1 234,5", "2"], [1234.5, 2]),
        (["1\u202f234,5", "2"], [1234.5, 2]),
        (["1\u00a0234\u00a0567", "<\u00a02", "3"], [1234567, 1, 3]),
    ],
)
def test_thousands_are_found_where_they_are_plain(read, cells, expected):
    table, notes = read(cells, ";")
    assert_array_equal(numbers(table), expected)
    assert "thousands with" in " ".join(notes)


@pytest.mark.parametrize(
    "cells", [["1.5%", "20 %", ""], ["$3", "$1,250.5", "$2"], ["-3€", "4€", "5€"]]
)
def test_numbers_with_signs_are_told(read, cells):
    table, notes = read({"a": cells, "b": ["x1", "y2", "z3"]}, ";")
    assert column_kind(table.column("a")) == "text"
    assert [note for note in notes if "with signs" in note] == [
        f"numbers with signs: 'a' has {cells[0]!r}; read as texts, a level for each; take the "
        "signs out of the cells if they mean numbers"
    ]


def test_thousands_points_can_be_named(read):
    table, notes = read({"a": ["1.234", "12"], "b": ["0,5", "1.000,25"]}, ";", thousands=".")
    assert_array_equal(numbers(table), [1234, 12])
    assert_array_equal(numbers(table, "b"), [0.5, 1000.25])
    assert not any("thousands" in note for note in notes)


def test_points_beside_commas_are_told(read):
    table, notes = read({"a": ["1.234", "2.345"], "b": ["0,5", "1,25"]}, ";")
    assert_array_equal(numbers(table), [1.234, 2.345])
    assert "decimal points, beside commas elsewhere, were found in 'a'" in notes[1]
    assert "--thousands ." in notes[1]
    assert table.reading.decimal is None


def test_the_first_batch_of_a_stream_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "STREAM_ABOVE", 100)
    monkeypatch.setattr(tables, "BATCH_BYTES", 2000)
    path = tmp_path / "t.csv"
    lines = ["a;b", *(f"{i},5;<{i}" if i % 9 == 8 else f"{i},5;{i}" for i in range(1000))]
    path.write_text("\n".join(lines) + "\n")
    table = open_table(path)
    assert sum(1 for _ in table.batches()) > 2
    assert_array_equal(numbers(table), np.arange(1000) + 0.5)
    half = np.where(np.arange(1000) % 9 == 8, 0.5, 1)
    assert_array_equal(numbers(table, "b"), half * np.arange(1000))
    path.write_text("\n".join([*lines, "word;1"]) + "\n")
    with pytest.raises(TableError, match=r"column 'a' has 'word', which is no number.*--na a=word"):
        open_table(path).column("a")


def test_a_remembered_reading_reads_the_next_table_alike(read):
    table, _ = read(["1,5", "2,5"], ";")
    again, notes = read(["1,234"], "\t", reading=table.reading._replace(separator=None))
    assert_array_equal(numbers(again), [1.234])
    assert notes == []
    assert isinstance(again.reading, Reading)
