"""What a column of a table holds, as numbers or as texts."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# A text that is a number, be its fraction behind a point or a comma.
NUMBER = re.compile(r"\s*[-+]?[0-9]+([.,][0-9]+)?(e[-+]?[0-9]+)?\s*", re.IGNORECASE)


def kind_of(column) -> str:
    """What a column holds: number, date, text, empty or other."""
    kinds = {
        "empty": pa.types.is_null,
        "number": _is_number,
        "date": pa.types.is_temporal,
        "text": _is_text,
    }
    kind = _value_type(column.type)
    return next((name for name, holds in kinds.items() if holds(kind)), "other")


def as_numbers(column) -> np.ndarray:
    """A column of numbers, booleans or dates (in days) as floats, NaN in the gaps."""
    if pa.types.is_temporal(column.type):
        return _as_days(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = column.cast(pa.float64(), safe=False)
    return np.array(column.to_numpy(zero_copy_only=False), dtype=float)


def as_texts(column) -> np.ndarray:
    """A column as strings, None in the gaps."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = _without_fraction(column)
    # A text that occurs often is one object.
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    levels = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    return levels[pc.fill_null(coded.indices, len(levels) - 1).to_numpy()]


def _without_fraction(column):
    """Whole numbers as integers, so that class 1.0 reads 1; NaN is a gap."""
    column = pc.if_else(pc.is_nan(column), None, column)
    whole = pc.all(pc.equal(column, pc.floor(column))).as_py()
    return column.cast(pa.int64(), safe=False) if whole else column


def _as_days(column):
    kind = column.type
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        unit = "D" if pa.types.is_duration(kind) else "h"
        column = column.cast(pa.duration("us") if unit == "D" else pa.time64("us"))
        per_unit = {"D": 86_400e6, "h": 3_600e6}[unit]
    else:
        column = column.cast(pa.timestamp("us", getattr(kind, "tz", None)))
        per_unit = 86_400e6
    micros = column.cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.array(micros.to_numpy(zero_copy_only=False), dtype=float) / per_unit


def _value_type(kind):
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_number(kind):
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return number or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)


def _is_text(kind):
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
