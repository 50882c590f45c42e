"""Data frames of pandas, polars and pyarrow as tables, and with their gaps filled.

Columns become the Arrow columns that those of a file become; what is filled goes back into the
frame in the type that its column had. The libraries are imported only if a frame is of them.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gnomon.exceptions import TableError
from gnomon.tools.cells import bare, mended
from gnomon.tools.fillings import Filling, beside, in_words_of
from gnomon.tools.tables import PLAIN, Batch, Table, as_numbers, column_kind, plain

# What a table without a file is called in messages.
TABLE = Path("the table")


def _library(frame) -> str | None:
    """The library that a data frame is of, None for anything else."""
    for name, kind in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        library = sys.modules.get(name)
        if library is not None and isinstance(frame, getattr(library, kind)):
            return name
    return None


def is_frame(value) -> bool:
    """Whether a value is a data frame of pandas or polars, or a table of pyarrow."""
    return _library(value) is not None


def table_of(frame, saved, note) -> Table:
    """The columns that a saved model names, as a table that is read as its own was."""
    if len(frame) == 0:
        raise TableError(f"{TABLE} has no rows")
    recipe, names = saved.recipe, [feature.column for feature in saved.recipe.features]
    wanted = dict.fromkeys([*recipe.matrix_names, *names, *_texts(saved.asked)])
    found = _named_columns(frame, wanted)
    known = {name for name, kind in saved.kinds.items() if kind == "date"} & found.keys()
    found |= {name: _as_times(found[name]) for name in known}
    matrix = _stacked(recipe.matrix_names, found) if recipe.matrix_names else None
    batch = Batch(len(frame), found, matrix)
    table = Table(TABLE, list(found), list(recipe.matrix_names), lambda: iter([batch]))
    table = table._replace(reading=saved.reading)
    return table if recipe.matrix_names else mended(table, batch, saved.kinds, note)


def _texts(question):
    """All that may be the name of a column."""
    for part in question:
        yield from part if isinstance(part, tuple | list) else (part,)


def _names(frame) -> dict:
    """The names of the columns as a file would have them, with the frame's own names for them."""
    own = frame.column_names if _library(frame) == "pyarrow" else list(frame.columns)
    return {str(name).strip(): name for name in own} | {str(name): name for name in own}


def _named_columns(frame, wanted) -> dict[str, pa.ChunkedArray]:
    """Those of the wanted columns that the frame has; the others are not looked at."""
    names = _names(frame)
    return {name: _arrow(frame, names[name]) for name in wanted if name in names}


def _arrow(frame, name):
    """A column of a data frame as Arrow has it."""
    library = _library(frame)
    try:
        if library == "pyarrow":
            return plain(frame.column(name))
        column = frame[name]
        array = column.to_arrow() if library == "polars" else pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, KeyError) as error:
        text = " ".join(str(error).split())[:200]
        raise TableError(f"column {name!r} of {TABLE} cannot be read: {text}") from error
    return plain(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))


def _as_times(column):
    """Texts as the reader of text files takes them for times and stamps, else as they are."""
    if column_kind(column) != "text":
        return column
    text, parse = pa.BufferOutputStream(), csv.ParseOptions(ignore_empty_lines=False)
    csv.write_csv(pa.table({"": bare(column)}), text)
    (found,) = csv.read_csv(pa.py_buffer(text.getvalue()), parse_options=parse).columns
    return found if column_kind(found) == "date" else column


def _stacked(names, columns):
    """The columns of a matrix by its names."""
    for name in names:
        if name not in columns:
            raise TableError(f"{TABLE} has no column {name!r}, which the model was fitted on")
    return np.column_stack([as_numbers(columns[name]) for name in names])


def as_pandas(columns):
    """Columns of a file as a data frame of pandas."""
    return pa.table(columns).to_pandas(date_as_object=False)


def filled_frame(frame, filled: dict[str, Filling], *, with_sureness):
    """The frame with filled columns in place of those with gaps; it is not changed itself."""
    names, library = _names(frame), str(_library(frame))
    put = {"pandas": _put_in_pandas, "polars": _put_in_polars, "pyarrow": _put_in_arrow}[library]
    frame = frame.copy() if library == "pandas" else frame
    for name, filling in filled.items():
        _, *more = beside(name, filling, names, with_sureness).items()
        given = _arrow(frame, names[name])
        column = in_words_of(given, filling)
        typed = column_kind(given) == "text" and column_kind(column) != "text"
        frame = put(frame, names[name], column, more, keep_type=not typed)
    return frame


def _put_in_pandas(frame, name, column, more, keep_type):
    place, filled = frame.columns.get_loc(name), column.to_pandas()
    filled.index = frame.index
    frame[name] = _as_dtype(filled, frame[name].dtype) if keep_type else filled
    for title, values in more:
        frame.insert(place + 1, title, values)
    return frame


def _as_dtype(filled, dtype):
    """The filled column in the type of the given one, with the levels that it takes."""
    import pandas as pd

    if isinstance(dtype, pd.CategoricalDtype):
        levels = [*dtype.categories, *(v for v in filled.unique() if v not in dtype.categories)]
        dtype = pd.CategoricalDtype(levels, dtype.ordered)
    # A column of objects takes the type of what it holds, now that all of it is there.
    return filled if dtype.kind == "O" and dtype.name == "object" else filled.astype(dtype)


def _put_in_polars(frame, name, column, more, keep_type):
    import polars as pl

    place, filled = frame.columns.index(name), pl.Series(name, pl.from_arrow(column))
    dtype = frame.schema[name] if keep_type else filled.dtype
    if isinstance(dtype, pl.Enum):
        levels = filled.cast(pl.String).unique().to_list()
        dtype = pl.Enum(list(dict.fromkeys([*dtype.categories, *levels])))
    frame = frame.with_columns(filled.cast(dtype))
    for title, values in more:
        frame = frame.insert_column(place + 1, pl.Series(title, values, nan_to_null=True))
    return frame


def _put_in_arrow(table, name, column, more, keep_type):
    place, kind = table.column_names.index(name), table.schema.field(name).type
    column = column.cast(kind) if keep_type and kind in PLAIN else column
    table = table.set_column(place, name, column)
    for title, values in more:
        table = table.add_column(place + 1, title, pa.array(values, from_pandas=True))
    return table
