"""Gaps of a table filled, in the types and the words that its columns have."""

import re
from datetime import time, timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gnomon.exceptions import TableError
from gnomon.tools.recipe import Feature, Recipe, indicators_of
from gnomon.tools.tables import MICROSECONDS_OF_A_DAY, as_numbers, as_texts, column_kind
from gnomon.tools.write import as_given

# Cells that show the style of a column of dates.
MOST_LOOKED_AT = 25
# The clock that a time is by, where it is said.
ZONE = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)?$")
# How times of the day and dates are written, for `str.format` of a date and its milliseconds.
CLOCKS = ("{0:%H:%M:%S}", "{0:%H:%M}", "{0:%H:%M:%S}.{1:03}", "{0:%H:%M:%S.%f}", "{0.hour}:{0:%M}")


def _day_styles():
    """Styles of days: year, day or month first, with each mark, padded or not."""
    for mark in "-./":
        for day, month in (("{0:%d}", "{0:%m}"), ("{0.day}", "{0.month}")):
            yield from (mark.join((year, month, day)) for year in ("{0:%Y}", "{0:%y}"))
            for first, second in ((day, month), (month, day)):
                yield from (mark.join((first, second, year)) for year in ("{0:%Y}", "{0:%y}"))


DAYS = tuple(_day_styles())
# Of ISO first a time, then a day.
DATES = (
    "{0:%Y-%m-%d %H:%M:%S}",
    *DAYS,
    *(f"{day}{mark}{clock}" for day in DAYS for mark in " T" for clock in CLOCKS),
)


class Filling(NamedTuple):
    """A column with its gaps filled, how sure that is where it had gaps, and how many they were."""

    column: pa.Array
    beside: str
    sureness: np.ndarray
    n_gaps: int


def fillings(recipe: Recipe, table, filled, deviations, *, within_range=True) -> dict[str, Filling]:
    """For each column of the table that has gaps, the column without them, in its own type."""
    (batch,) = table.batches()
    if recipe.matrix_names:
        return _matrix_fillings(recipe, batch.matrix, filled, deviations, within_range)
    found, stop = {}, 0
    for feature in recipe.features:
        start, stop = stop, stop + len(feature.names)
        column, parts = batch.columns[feature.column], filled[:, start:stop]
        if feature.kind == "category":
            filling = _filled_category(feature, column, parts)
        else:
            filling = _filled(feature, column, parts[:, 0], deviations[:, start], within_range)
        if filling.n_gaps:
            found[feature.column] = filling
    return found


def imputed_columns(recipe: Recipe, table, filled, *, with_sureness=True, to_text=False) -> dict:
    """The columns of the table, those with gaps filled, with how sure that is beside them.

    What was there stays as it was, ``to_text`` to the letter.
    """
    given = _matrix_columns(recipe, table) if recipe.matrix_names else as_given(table, to_text)
    decimal = table.reading.decimal or "."
    columns: dict = {}
    for name, column in given.items():
        if name not in filled:
            columns[name] = column
            continue
        filling = filled[name]
        if to_text:
            words, sureness = in_words_of(column, filling, decimal), filling.sureness
            filling = filling._replace(column=words, sureness=_in_style(sureness, decimal))
        columns |= beside(name, filling, given, with_sureness)
    return columns


def _in_style(numbers, decimal):
    """Numbers, as texts where their decimal is no point; NaN is an empty cell."""
    if decimal == ".":
        return numbers
    texts = pa.array(numbers, from_pandas=True).cast(pa.string())
    return pc.replace_substring(texts, ".", decimal)


def _matrix_columns(recipe, table):
    (batch,) = table.batches()
    return {name: batch.matrix[:, j] for j, name in enumerate(recipe.matrix_names)}


def in_words_of(given, filling: Filling, decimal=None):
    """The filled column; as texts where the given one has texts.

    Dates and times are filled in the style of their column. Numbers of a style of their own become
    numbers, unless it is known what their decimal point is.
    """
    column, gaps = filling.column, pa.array(~np.isnan(filling.sureness))
    if column_kind(given) != "text" or column_kind(column) == "text":
        return column
    texts = pc.if_else(gaps, None, given.cast(pa.string()))
    if pa.types.is_temporal(column.type) and not pa.types.is_duration(column.type):
        return pc.if_else(gaps, _dates_in_style(column, texts), texts)
    if decimal is None and not _is_plain(texts, column.type):
        return column
    fillings = _narrowed(column).cast(pa.string())
    if pa.types.is_boolean(column.type):
        fillings = _in_words(column, fillings, texts)
    if decimal == ",":
        fillings = pc.replace_substring(fillings, ".", decimal)
    return pc.if_else(gaps, fillings, texts)


def _is_plain(texts, kind):
    """Whether all texts are how values of that kind are written."""
    try:
        texts.cast(kind)
    except pa.ArrowException:
        return False
    return True


def _in_words(column, fillings, texts):
    """True and false in the words of the column, as True, TRUE or true."""
    for value in (True, False):
        own = texts.filter(pc.equal(column, value)).drop_null()
        if len(own):
            fillings = pc.if_else(pc.equal(column, value), own[0], fillings)
    return fillings


def _dates_in_style(column, texts):
    """For gaps in texts dates or times in the style that most others are in, or in that of ISO."""
    of_day = pa.types.is_time(column.type)
    moments = column.cast(pa.time64("us") if of_day else pa.timestamp("us"), safe=False).to_pylist()
    texts = texts.to_pylist()
    known = [(moment, text) for moment, text in zip(moments, texts, strict=True) if text]
    known = known[:: 1 + len(known) // MOST_LOOKED_AT]
    zoned = getattr(column.type, "tz", None) is not None
    zones = {ZONE.search(text)[0] for _, text in known} if zoned else {""}  # type: ignore[index]
    styles = [(style, zone) for zone in sorted(zones) for style in (CLOCKS if of_day else DATES)]
    hits = [sum(_written(m, *style) == text for m, text in known) for style in styles]
    if max(hits, default=0):
        style = styles[int(np.argmax(hits))]
    else:
        style = CLOCKS[0] if of_day else DATES[_are_days(moments)], "Z" * zoned
    filled = (
        _written(moment, *style) if text is None else None
        for moment, text in zip(moments, texts, strict=True)
    )
    return pa.array(filled, pa.string())


def _are_days(moments):
    return all(moment.time() == time() for moment in moments)


def _written(moment, style, zone):
    """A date or a time in a style, by the clock of a zone."""
    if zone not in ("", "Z"):
        hours, minutes = int(zone[:3]), int(zone[0] + (zone[3:].strip(":") or "0"))
        moment = moment + timedelta(hours=hours, minutes=minutes)
    return style.format(moment, moment.microsecond // 1000) + zone


def _narrowed(column):
    """Whole numbers as integers, for short texts."""
    try:
        return column if pa.types.is_boolean(column.type) else column.cast(pa.int64())
    except pa.ArrowException:
        return column


def beside(name, filling: Filling, given, with_sureness=True) -> dict:
    """A filled column and, if wanted, the one beside it, whose name must be free."""
    if not with_sureness:
        return {name: filling.column}
    if filling.beside in given:
        raise TableError(f"the table has a column {filling.beside!r} already; rename it")
    return {name: filling.column, filling.beside: filling.sureness}


def _matrix_fillings(recipe, matrix, filled, deviations, within_range):
    found = {}
    for j, name in enumerate(recipe.matrix_names):
        column = pa.chunked_array([pa.array(matrix[:, j])])
        parts = (filled[:, j], deviations[:, j])
        filling = _filled(_matrix_feature(recipe, j), column, *parts, within_range)
        if filling.n_gaps:
            found[name] = filling
    return found


def _matrix_feature(recipe, j):
    """The column j of a matrix as a feature; early files do not know its range."""
    raw, seen = recipe.matrix_scale is None, recipe.matrix_low is not None
    scaling = (0.0, 1.0) if raw else (recipe.matrix_center[j], recipe.matrix_scale[j])
    center, scale = (np.array([part]) for part in scaling)
    feature = Feature(recipe.matrix_names[j], "number", [], center, scale)
    if not seen:
        return feature
    low, high = float(recipe.matrix_low[j]), float(recipe.matrix_high[j])
    return feature._replace(low=low, high=high, whole=bool(recipe.matrix_whole[j]))


def _filled(feature, column, filled, deviations, within_range) -> Filling:
    """Numbers or dates; within what the fit has seen, whole where all were."""
    gaps = np.isnan(as_numbers(column))
    values = filled * feature.scale + feature.center
    if within_range or feature.boolean:
        values = np.clip(values, feature.low, feature.high)
    typed = _typed(values, feature, column.type)
    whole = _with_gaps_filled(column, gaps, typed)
    sd = np.where(gaps, deviations * feature.scale, np.nan)
    return Filling(whole, f"{feature.column} (sd)", sd, int(gaps.sum()))


def _filled_category(feature, column, filled) -> Filling:
    """The level whose indicator is highest; its value, cut to [0, 1], says how sure."""
    gaps = np.array([text is None for text in as_texts(column)])
    indicators = np.clip(indicators_of(feature, filled), 0, 1)
    best = np.array(feature.levels, dtype=object)[indicators.argmax(axis=1)]
    if column_kind(column) != "text":
        column = pa.chunked_array([pa.array(as_texts(column), pa.string())])
    whole = _with_gaps_filled(column, gaps, pa.array(best, pa.string()))
    share = np.where(gaps, indicators.max(axis=1), np.nan)
    return Filling(whole, f"{feature.column} (share)", share, int(gaps.sum()))


def _with_gaps_filled(column, gaps, values):
    """The column in its own type, with values where there are gaps and itself elsewhere."""
    kind = column.type
    if pa.types.is_null(kind):
        return values
    if pa.types.is_dictionary(kind):
        plain = _with_gaps_filled(column.cast(kind.value_type), gaps, values)
        return _as_dictionary(plain, kind)
    return pc.if_else(pa.array(gaps), values.cast(kind), column)


def _as_dictionary(plain, kind):
    """Values as a dictionary of this type, whose parts some versions cannot make from a list."""
    codes = pa.array(plain.to_pylist(), kind.value_type).dictionary_encode()
    indices = codes.indices.cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, codes.dictionary, ordered=kind.ordered)


def _typed(values, feature, kind):
    """Numbers as a type of columns has them: the way back from `as_numbers`."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        kind = _usual_type(feature)
    if pa.types.is_boolean(kind):
        return pa.array(values >= 0.5)
    if feature.whole or pa.types.is_integer(kind) or pa.types.is_date(kind):
        values = np.rint(values)
    if pa.types.is_temporal(kind):
        return _times(values, kind)
    if pa.types.is_integer(kind):
        bounds = np.iinfo(kind.to_pandas_dtype())
        values = np.clip(values, bounds.min, bounds.max)
    return pa.array(values).cast(kind, safe=False)


def _usual_type(feature):
    """For a column without a value, which has no type of its own."""
    if feature.kind == "date":
        return pa.date32() if feature.whole else pa.timestamp("us")
    if feature.boolean:
        return pa.bool_()
    return pa.int64() if feature.whole else pa.float64()


def _times(values, kind):
    """Dates and durations from days, times of the day from hours."""
    micros = values * MICROSECONDS_OF_A_DAY
    if pa.types.is_duration(kind):
        unit = pa.duration("us")
    elif pa.types.is_time(kind):
        micros, unit = np.clip(micros / 24, 0, MICROSECONDS_OF_A_DAY - 1), pa.time64("us")
    else:
        unit = pa.timestamp("us", getattr(kind, "tz", None))
    return pa.array(np.rint(micros).astype(np.int64)).cast(unit).cast(kind, safe=False)
