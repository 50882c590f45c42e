"""Dates in texts, and which of their numbers is the day: by the column, others, or an option."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gnomon.exceptions import TableError

# Day, month and year in either order or from the year on, perhaps with a time of the day.
DATE = (
    r"^(?P<a>[0-9]{1,4})(?P<mark>[./-])(?P<b>[0-9]{1,2})[./-](?P<c>[0-9]{2}|[0-9]{4})"
    r"(?:[ T]+(?P<h>[0-9]{1,2}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2}))?)?$"
)
# Years of two digits from here on are of the last century, as POSIX has it.
CENTURY_TURNS = 69


def orders_of(texts) -> set:
    """Which orders of day and month all texts of a column are dates in."""
    if (_parts(texts)["a"] > 31).all():
        return {None} if dates_in(texts, None)[1] is None else set()
    orders = {order for order in (True, False) if dates_in(texts, order)[1] is None}
    # Nobody writes the month first with points.
    points = texts.drop_null()[0].as_py().count(".") == 2
    return {True} if points and True in orders else orders


def decided_orders(asked, dates, note) -> dict:
    """Whether the day comes first in each column of dates."""
    known = {next(iter(orders)) for orders in dates.values() if len(orders) == 1} - {None}
    chosen, assumed = {}, []
    for name, orders in dates.items():
        if len(orders) == 1:
            chosen[name] = next(iter(orders))
        elif asked.dayfirst is not None:
            chosen[name] = asked.dayfirst
        else:
            chosen[name] = next(iter(known)) if len(known) == 1 else True
            assumed += [name] if len(known) != 1 else []
    if assumed:
        note(
            f"the dates of {', '.join(map(repr, assumed))} can have the day or the month first; "
            "the day was taken; if that is wrong, say --monthfirst"
        )
    against = [n for n, order in chosen.items() if {order, asked.dayfirst} == {True, False}]
    if against:
        options = ("--dayfirst", "--monthfirst")
        wrong, right = options if asked.dayfirst else options[::-1]
        raise TableError(f"the dates of {against[0]!r} do not fit {wrong}; say {right}")
    return chosen


def tell_no_dates(columns, note):
    """Say which columns would be dates but for a cell."""
    for name, texts in columns.items():
        odd = dates_in(texts, True)[1]
        note(
            f"column {name!r} would be dates, but {odd!r} is none in an order that fits others, "
            f"so it is texts; if that cell has no value, say --na {name}={odd}"
        )


def dates_in(texts, dayfirst):
    """Dates of texts, NaT in the gaps, and the first text that is no date (None: all are).

    The order is day, month, year, or with ``dayfirst`` False month first, or None year first.
    """
    there = texts.is_valid().to_numpy(zero_copy_only=False)
    parts = _parts(texts)
    order = {True: "abc", False: "bac", None: "cba"}[dayfirst]
    day, month, year = (parts[key].astype(int) for key in order)
    year = year + np.where(year >= 100, 0, np.where(year < CENTURY_TURNS, 2000, 1900))
    months = (year - 1970).astype("M8[Y]").astype("M8[M]") + np.clip(month, 1, 12) - 1
    days = months.astype("M8[D]") + day - 1
    right = (days.astype("M8[M]") == months) & (month >= 1) & (month <= 12)
    right &= (parts["h"] < 24) & (parts["m"] < 60) & (parts["s"] < 61)
    seconds = (3600 * parts["h"] + 60 * parts["m"] + parts["s"]).astype("m8[s]")
    dates = np.full(len(texts), np.datetime64("NaT"), dtype="M8[s]")
    dates[there] = days.astype("M8[s]") + seconds
    wrong = None if right.all() else texts.drop_null()[int(np.argmin(right))].as_py()
    return dates, wrong


def _parts(texts):
    """Numbers of the parts of dates; zero where there is no time, NaN in the gaps."""
    found = pc.extract_regex(texts, DATE)
    parts = {}
    for key in "abchms":
        part = pc.struct_field(found, key)
        number = pc.if_else(pc.equal(part, ""), "0", part).cast(pa.float64())
        parts[key] = np.array(number.drop_null().to_numpy(zero_copy_only=False))
    return parts
