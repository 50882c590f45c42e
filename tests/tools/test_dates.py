"""Which number of a date is the day."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("pyarrow")
from gnomon.exceptions import TableError
from gnomon.tools.tables import as_numbers, column_kind


@pytest.mark.parametrize(
    ("cells", "options", "expected"),
    [
        (["25/03/2021", "01/04/2021"], {}, ["2021-03-25", "2021-04-01"]),
        (["3/25/2021", "4/1/2021"], {}, ["2021-03-25", "2021-04-01"]),
        (["01.04.2021", "", "02.04.2021"], {}, ["2021-04-01", "NaT", "2021-04-02"]),
        (["01-04-21", "31-12-99"], {}, ["2021-04-01", "1999-12-31"]),
        (["2021/04/01", "2021/4/30"], {}, ["2021-04-01", "2021-04-30"]),
        (["01/04/2021", "02/04/2021"], {"dayfirst": False}, ["2021-01-04", "2021-02-04"]),
        (["01/04/2021", "02/04/2021"], {"dayfirst": True}, ["2021-04-01", "2021-04-02"]),
        (
            ["25/03/2021 14:30", "01/04/2021 09:05:30"],
            {},
            ["2021-03-25T14:30:00", "2021-04-01T09:05:30"],
        ),
    ],
)
def test_dates_are_read_by_evidence_or_option(read, cells, options, expected):
    table, notes = read(cells, **options)
    days = np.array(expected, dtype="M8[s]").astype("M8[us]")
    found = as_numbers(table.column("a"))
    assert_array_equal(found, np.where(np.isnat(days), np.nan, days.astype(float) / 86_400e6))
    assert notes == []


def test_the_order_of_dates_is_assumed_with_a_note(read):
    table, (note,) = read(["01/04/2021", "02/04/2021"])
    assert as_numbers(table.column("a"))[0] == 18718
    assert "the day was taken; if that is wrong, say --monthfirst" in note


def test_another_column_of_dates_decides(read):
    columns = {"a": ["01/04/2021", "02/04/2021"], "b": ["1/25/2021", "2/4/2021"]}
    table, notes = read(columns)
    assert as_numbers(table.column("a"))[0] == 18631
    assert notes == []
    assert table.reading.dayfirst is False


def test_dates_against_the_option_are_refused(read):
    with pytest.raises(TableError, match="'a' do not fit --monthfirst; say --dayfirst"):
        read(["25/03/2021"], dayfirst=False)


def test_a_date_that_is_none_is_told(read):
    table, (note,) = read(["25/03/2021", "31/02/2021"])
    assert column_kind(table.column("a")) == "text"
    assert "'31/02/2021' is none" in note
    assert "--na a=31/02/2021" in note
    table, _ = read(["25/03/2021", "31/02/2021"], na=("a=31/02/2021",))
    assert column_kind(table.column("a")) == "date"
