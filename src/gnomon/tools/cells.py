"""Texts of cells as what they mean: numbers with commas, limits or words among them, and dates.

What a mark means is decided by all cells of a column, then by the other columns: 1,5 has a decimal
comma, 1,234.5 thousands, 25/03/2021 the day first. Where nothing decides, a note or an error names
the option that does. Of a stream the first batch decides.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gnomon.estimators import count
from gnomon.exceptions import TableError
from gnomon.tools.dates import DATE, dates_in, decided_orders, orders_of, tell_no_dates
from gnomon.tools.tables import (
    NO_NUMBER,
    NO_VALUE,
    Reading,
    Table,
    as_numbers,
    column_kind,
    may_be_number,
)

LIMIT = "(<=|>=|<|>|≤|≥)?"
# A number with the sign of a share or a currency on either side.
WITH_SIGN = r"^[%$€£¥]? *[-+]?[0-9][0-9.,']* *[%$€£¥]?$"
# Blanks that keep the thousands of a number on its line: of usual width, of a digit, and narrow.
BLANKS = "[\u00a0\u2007\u2009\u202f]"
# Texts that are tried before all of a column.
SOME_CELLS = 1000


class Style(NamedTuple):
    """How numbers are written."""

    decimal: str
    thousands: str | None = None

    @property
    def pattern(self) -> str:
        """What all numbers of this style, and nothing else, fit."""
        point, mark = re.escape(self.decimal), re.escape(self.thousands or "")
        whole = f"([1-9][0-9]{{0,2}}({mark}[0-9]{{3}})+|[0-9]+)" if mark else "[0-9]+"
        number = f"({whole}({point}[0-9]*)?|{point}[0-9]+)([eE][-+]?[0-9]+)?"
        return f"^{LIMIT} *[-+]?{number}$"


# From the plainest on: the first that fits is taken.
STYLES = tuple(Style(point, mark) for mark in (None, ",", ".", "'", " ") for point in ".,")
STYLES = tuple(style for style in STYLES if style.decimal != style.thousands)
PLAIN, COMMA, THOUSANDS, POINTS = Style("."), Style(","), Style(".", ","), Style(",", ".")


class Rule(NamedTuple):
    """What becomes of a column: its words empty, its texts a number or a date."""

    path: Any
    name: str
    words: tuple[str, ...]
    style: Style | None = None
    dayfirst: bool | None = None
    is_date: bool = False
    censored: str = "half"
    is_checked: bool = False

    def apply(self, column):
        """The column by this rule."""
        kind = column_kind(column)
        if kind == "number":
            return _emptied_numbers(column, self.words)
        if kind != "text":
            return column
        if self.style is None and not self.is_date:
            return _emptied(column, self.words)
        texts = bare(column, self.words)
        values = self._dates(texts) if self.is_date else self._numbers(texts)
        return pa.chunked_array([values])

    def _numbers(self, texts):
        self._check(texts, self.style.pattern, "number")  # type: ignore[union-attr]
        return pa.array(numbers_in(texts, self.style, self.censored), from_pandas=True)  # type: ignore[arg-type]

    def _dates(self, texts):
        self._check(texts, DATE, "date")
        days, wrong = dates_in(texts, self.dayfirst)
        if wrong is not None:
            raise TableError(self._complaint(wrong, "date"))
        return pa.array(days, pa.timestamp("s"))

    def _check(self, texts, pattern, kind):
        """Raise where a later batch of a stream does not fit what the first one decided."""
        if self.is_checked:
            return
        odd = texts.filter(pc.invert(pc.match_substring_regex(texts, pattern)))
        if len(odd.drop_null()):
            raise TableError(self._complaint(odd.drop_null()[0].as_py(), kind))

    def _complaint(self, text, kind):
        return (
            f"{self.path}: column {self.name!r} has {text!r}, which is no {kind} as those before; "
            f"if it means that there is none, say --na {self.name}={text}"
        )


def mended(table: Table, first, kinds: Mapping, note, *, texts_stay=False) -> Table:
    """The table with gaps, numbers and dates where its texts mean them; ``first`` is a batch."""
    rules, reading = rules_for(table, first, kinds, note, texts_stay=texts_stay)
    table, batches = table._replace(reading=reading), table.batches
    if table.written is None:
        table = table._replace(written=lambda names: (batch.columns for batch in batches()))

    def by_rules(batch):
        columns = {name: rule.apply(batch.columns[name]) for name, rule in rules.items()}
        return batch._replace(columns=batch.columns | columns)

    if table.streamed:
        return table._replace(batches=lambda: map(by_rules, batches()))
    whole = by_rules(first)
    return table._replace(batches=lambda: iter([whole]))


def rules_for(table: Table, batch, kinds: Mapping, note, *, texts_stay=False):
    """Rules for the columns of a table, decided by one batch, and the reading that was found.

    Where ``texts_stay``, a format with kinds of its own, only words are emptied.
    """
    asked = table.reading
    _tell_no_columns(asked, table.names, kinds, note)
    words = words_by_column(asked, table.names)
    rules = {n: Rule(table.path, n, words[n]) for n in table.names if words[n]}
    texts = {
        name: bare(column, words[name])
        for name, column in batch.columns.items()
        if not texts_stay and kinds.get(name) != "text" and may_be_number(column)
    }
    dates = {name: orders_of(column) for name, column in texts.items() if _fits(column, DATE)}
    tell_no_dates({name: texts[name] for name, orders in dates.items() if not orders}, note)
    numbers = {
        name: styles
        for name, column in texts.items()
        if name not in dates and (styles := _styles(column, asked, kinds.get(name)))
    }
    _tell_signs({n: c for n, c in texts.items() if n not in dates and n not in numbers}, note)
    orders = decided_orders(asked, {n: orders for n, orders in dates.items() if orders}, note)
    styles = _decided_styles(table, asked, numbers, batch, note)
    rule = Rule(table.path, "", (), censored=asked.censored, is_checked=not table.streamed)
    for name, order in orders.items():
        rules[name] = rule._replace(name=name, words=words[name], dayfirst=order, is_date=True)
    for name, style in styles.items():
        rules[name] = rule._replace(name=name, words=words[name], style=style)
    _tell_limits({name: texts[name] for name in styles}, asked, note)
    _tell_style(styles, texts, asked, batch, note)
    return rules, _found(asked, orders, styles, batch)


def words_by_column(asked: Reading, names) -> dict[str, tuple[str, ...]]:
    """The words of --na that count in each column: WORD in all, COLUMN=WORD in one."""
    everywhere: list[str] = []
    own: dict[str, list[str]] = {name: [] for name in names}
    for entry in asked.na:
        column, _, word = entry.rpartition("=")
        (own[column] if column in own else everywhere).append(word if column in own else entry)
    return {name: (*everywhere, *words) for name, words in own.items()}


def _tell_no_columns(asked, names, kinds, note):
    """Say which COLUMN=WORD names no column; tables of a known kind need not have all of them."""
    columns = {entry.rpartition("=")[0]: entry for entry in asked.na}
    for column, entry in columns.items():
        if column and column not in names and not kinds:
            note(f"--na {entry}: there is no column {column!r}, so it is taken for a word")


def bare(column, words=()):
    """Texts without blanks around them and with plain ones within, None where there is no value."""
    texts = column.cast(pa.string()).combine_chunks()
    texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), BLANKS, " ")
    return _emptied(texts, (*NO_VALUE, *NO_NUMBER, *words))


def _emptied(texts, words):
    if not words:
        return texts
    return pc.if_else(pc.is_in(texts, value_set=pa.array(words, texts.type)), None, texts)


def _emptied_numbers(column, words):
    """A column of numbers with gaps where a word is the number."""
    codes = [float(word) for word in words if _is_float(word)]
    if not codes:
        return column
    return pc.if_else(np.isin(as_numbers(column), codes), None, column)


def _is_float(word):
    try:
        return np.isfinite(float(word))
    except ValueError:
        return False


def _fits(texts, pattern):
    """Whether all texts, and there are some, fit; the first of them say no sooner."""
    if texts.null_count == len(texts):
        return False
    parts = (texts[:SOME_CELLS], texts[SOME_CELLS:])
    found = (pc.match_substring_regex(part, pattern) for part in parts)
    return all(pc.all(part, min_count=0).as_py() for part in found)


def numbers_in(texts, style: Style, censored="half") -> np.ndarray:
    """Numbers of texts that all fit the style, NaN in the gaps.

    "<0.5" is half the limit, ">100" the limit, or both are gaps.
    """
    limited = _limited(texts).to_numpy(zero_copy_only=False)
    plain = pc.replace_substring_regex(texts, f"^{LIMIT} *", "") if limited.any() else texts
    if style.thousands:
        plain = pc.replace_substring(plain, style.thousands, "")
    if style.decimal != ".":
        plain = pc.replace_substring(plain, style.decimal, ".")
    values = np.array(plain.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
    if censored == "gap":
        return np.where(limited, np.nan, values)
    if limited.any():
        below = _limited(texts, "^[<≤]").to_numpy(zero_copy_only=False) & (values > 0)
        values[below] /= 2
    return values


def _limited(texts, pattern="^[<>≤≥]"):
    return pc.fill_null(pc.match_substring_regex(texts, pattern), False)


def _styles(texts, asked, kind):
    """The styles that all texts of a column fit, of those that the options allow.

    Where numbers without thousands fit, those with any mark of thousands but a comma do as well.
    """
    allowed = [
        style
        for style in STYLES
        if asked.decimal in (None, style.decimal) and asked.thousands in (None, style.thousands)
    ]
    styles: list[Style] = []
    for style in allowed:
        known = Style(style.decimal) in styles and style != THOUSANDS
        if not known and _fits(texts, style.pattern):
            styles.append(style)
    limited = _limited(texts)
    if not styles or kind == "number" or not pc.any(limited).as_py():
        return styles
    # Two limits, as in "<30" and ">=30", are groups; numbers with limits among them are numbers.
    groups = texts.filter(limited).unique()
    plain = texts.filter(pc.invert(limited)).drop_null().unique()
    return styles if len(plain) >= len(groups) else []


def _decided_styles(table, asked, numbers, batch, note):
    """The style of each column; where 1,234 has two meanings, the other columns decide."""
    unmarked = [name for name, styles in numbers.items() if {PLAIN, COMMA} <= set(styles)]
    marked = {name: styles for name, styles in numbers.items() if name not in unmarked}
    unsure = [name for name, styles in marked.items() if {COMMA, THOUSANDS} <= set(styles)]
    chosen = {name: styles[0] for name, styles in marked.items() if name not in unsure}
    if unsure:
        meaning = _meaning(table, asked, unsure, set(chosen.values()), batch, note)
        chosen |= dict.fromkeys(unsure, meaning)
    has_comma = any(style.decimal == "," for style in chosen.values())
    chosen |= dict.fromkeys(unmarked, COMMA if has_comma else PLAIN)
    return {name: chosen[name] for name in numbers}


def _meaning(table, asked, unsure, sure, batch, note):
    """What the comma of 1,234 is, with a note where nothing but the separator tells."""
    if any(style.decimal == "," for style in sure):
        return COMMA
    pointed = list(_fractions(batch))
    as_unsure = _like_thousands(table, pointed)
    if any(style.thousands == "," for style in sure) or set(pointed) - set(as_unsure):
        return THOUSANDS
    meanings, shown = {";": COMMA, ",": THOUSANDS}, _named([*unsure, *as_unsure])
    such = f"numbers such as {'1,234 and 1.234' if as_unsure else '1,234'}"
    if asked.separator not in meanings:
        raise TableError(
            f"{table.path} has {such} in {shown}, which may have decimals or thousands; "
            "say --decimal , or --thousands ,"
        )
    meaning = meanings[asked.separator]
    is_comma = meaning is COMMA
    note(
        f"{such} in {shown}: a comma is read as {'a decimal comma' if is_comma else 'thousands'}; "
        f"if that is wrong, say {'--thousands' if is_comma else '--decimal'} ,"
    )
    return meaning


def _like_thousands(table, names):
    """Those of columns with decimal points that could have thousands there, as 1.234 in a text."""
    written = next(iter(table.written(names))) if table.written and names else {}
    texts = {name: bare(column) for name, column in written.items()}
    return [name for name in texts if _fits(texts[name], POINTS.pattern)]


def _fractions(batch):
    """Names of the columns that were read as numbers with decimal points."""
    for name, column in batch.columns.items():
        if pa.types.is_floating(column.type):
            values = as_numbers(column)
            if (np.mod(values[np.isfinite(values)], 1) != 0).any():
                yield name


def _tell_signs(columns, note):
    """Say which texts are numbers but for a sign, of which nobody expects a level for each."""
    signed = {name: texts for name, texts in columns.items() if _fits(texts, WITH_SIGN)}
    if signed:
        found = (f"{name!r} has {texts.drop_null()[0].as_py()!r}" for name, texts in signed.items())
        note(
            f"numbers with signs: {'; '.join(found)}; read as texts, a level for each; take the "
            "signs out of the cells if they mean numbers"
        )


def _tell_limits(columns, asked, note):
    told = []
    for name, texts in columns.items():
        limited = texts.filter(_limited(texts))
        if len(limited):
            cells = count(len(limited), "cell")
            told.append(f"{name!r} has {cells} as {limited[0].as_py()!r}")
    if not told:
        return
    how, other = "half the limit (above one: as the limit)", "gap"
    if asked.censored == "gap":
        how, other = "gaps", "half"
    note(
        f"limits among numbers: {'; '.join(told)}; read as {how}; say --censored {other} otherwise"
    )


def _tell_style(styles, texts, asked, batch, note):
    def has(name, mark):
        return mark is not None and pc.any(pc.match_substring(texts[name], mark)).as_py()

    commas = [name for name, style in styles.items() if style.decimal == "," and has(name, ",")]
    if commas and asked.decimal is None:
        note(f"decimal commas were found in {_named(commas)}; say --decimal . if they are none")
        if pointed := list(_fractions(batch)):
            note(
                f"decimal points, beside commas elsewhere, were found in {_named(pointed)}; if "
                "they are of thousands, say --thousands ."
            )
    marked = [name for name, style in styles.items() if has(name, style.thousands)]
    if marked and asked.thousands is None:
        mark = styles[marked[0]].thousands
        note(f"thousands with {mark!r} were found in {_named(marked)}; --decimal says otherwise")


def _named(names, most=5):
    more = f" and {count(len(names) - most, 'more column')}" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _found(asked, orders, styles, batch):
    """The reading with what was found; nothing where columns disagree."""
    found = asked
    if (known := set(orders.values()) - {None}) and len(known) == 1:
        found = found._replace(dayfirst=known.pop())
    if asked.decimal is None and {style.decimal for style in styles.values()} == {","}:
        found = found._replace(decimal=None if any(_fractions(batch)) else ",")
    marks = {style.thousands for style in styles.values()} - {None}
    if found.decimal is not None and len(marks) == 1 and found.decimal not in marks:
        found = found._replace(thousands=marks.pop())
    return found
