"""Tables whose features are rows, as genes often are, turned over."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gnomon.exceptions import TableError
from gnomon.tools.cells import STYLES, bare, numbers_in
from gnomon.tools.tables import Batch, Table, as_numbers, as_texts, column_kind

# Columns of one unit, as samples of genes are: with rows so many times as many, and means that lie
# within half a standard deviation of a column.
ALIKE_ROWS, ALIKE_MEANS = 5, 0.5


def turned(table: Table) -> Table:
    """The table with its rows as columns.

    The first column has their names; those of the samples, the header, are the column "sample".
    """
    if table.streamed:
        raise TableError(f"{table.path} is too large to transpose; turn it before")
    (batch,) = table.batches()
    if batch.matrix is not None:
        return _turned_matrix(table, batch)
    first, *samples = table.names
    names = ["" if name is None else name.strip() for name in table.labels(first)]
    names = [name or f"row {i + 1}" for i, name in enumerate(names)]
    label = "sample" if "sample" not in names else "name of the sample"
    columns = {label: pa.chunked_array([pa.array(samples, pa.string())])}
    columns |= _turned_columns(names, [batch.columns[name] for name in samples])
    turned_batch = Batch(len(samples), columns)
    turned_table = table._replace(names=[label, *names], batches=lambda: iter([turned_batch]))
    if table.written is None:
        return turned_table
    return turned_table._replace(written=lambda wanted: _turned_texts(table, turned_table, wanted))


def turned_back(columns, first, to_text) -> dict:
    """Columns of a turned table as the rows that they were, their names in the column ``first``.

    Cells are texts with ``to_text``, else numbers where a column has nothing else.
    """
    samples, *rows = (_chunked(cells) for cells in columns.values())
    names, there = as_texts(samples), {first: pa.array(list(columns)[1:])}
    if not to_text:
        return there | _turned_columns(names, rows)
    texts = np.column_stack([as_texts(cells) for cells in rows])
    return there | {name: pa.array(t, pa.string()) for name, t in zip(names, texts, strict=True)}


def _chunked(cells):
    if isinstance(cells, pa.ChunkedArray):
        return cells
    return pa.chunked_array([pa.array(cells, from_pandas=True)])


def _turned_texts(table, turned_table, wanted):
    """Rows of a table as the file has them, as columns of the turned one."""
    (label, *names), samples = turned_table.names, table.names[1:]
    place_of = {name: place for place, name in enumerate(names)}
    others = [name for name in wanted if name != label]
    places = np.array([place_of[name] for name in others], dtype=int)
    cells = [as_texts(column.take(places)) for column in table.as_written(samples).values()]
    texts = {label: samples} | dict(zip(others, np.column_stack(cells), strict=True))
    yield {name: pa.chunked_array([pa.array(texts[name], pa.string())]) for name in wanted}


def _turned_columns(names, samples):
    """Rows of numbers as columns of numbers, the others as texts."""
    values, odd = zip(*map(_numbers, samples), strict=True)
    X, odd = np.column_stack(values), np.column_stack(odd).any(axis=1)  # type: ignore[assignment]
    columns = {name: pa.array(row, from_pandas=True) for name, row in zip(names, X, strict=True)}
    places = np.flatnonzero(odd)
    texts = np.column_stack([as_texts(column.take(places)) for column in samples])
    columns |= {names[i]: pa.array(row, pa.string()) for i, row in zip(places, texts, strict=True)}
    return {name: pa.chunked_array([columns[name]]) for name in names}


def _numbers(column):
    """The numbers of a column, and which of its cells hold something else."""
    kind = column_kind(column)
    if kind in ("number", "empty"):
        return as_numbers(column), np.zeros(len(column), bool)
    if kind != "text":
        return np.full(len(column), np.nan), np.ones(len(column), bool)
    texts = bare(column)
    plain = pc.fill_null(pc.match_substring_regex(texts, r"^[-+0-9.eE]+$"), False)
    plain = pc.and_(plain, pc.fill_null(pc.match_substring_regex(texts, STYLES[0].pattern), False))
    odd = pc.and_(texts.is_valid(), pc.invert(plain)).to_numpy(zero_copy_only=False)
    return numbers_in(pc.if_else(plain, texts, None), STYLES[0]), odd


def _turned_matrix(table, batch):
    if batch.columns:
        raise TableError(f"{table.path} has columns beside its matrix; it cannot be transposed")
    matrix = (
        batch.matrix.T.copy() if isinstance(batch.matrix, np.ndarray) else batch.matrix.T.tocsr()
    )
    features = [f"x{i + 1}" for i in range(matrix.shape[1])]
    turned_batch = Batch(matrix.shape[0], {}, matrix)
    return table._replace(features=features, batches=lambda: iter([turned_batch]))


def tell_if_alike(table: Table, tallies, report):
    """Say that rows may be features: there are many, with names, and columns are alike."""
    first, *others = table.names
    numbers = [tallies[name] for name in others if name in tallies]
    are_numbers = all(tally.kind == "number" and tally.n > 1 for tally in numbers)
    if len(numbers) < len(others) or not are_numbers or table.reading.transpose:
        return
    names = table.column(first)
    are_names = column_kind(names) == "text" and len(names.unique()) == len(names)
    within = np.median([np.sqrt(tally.m2 / tally.n) for tally in numbers])
    are_alike = np.std([tally.mean for tally in numbers]) < ALIKE_MEANS * within
    if are_names and are_alike and len(names) >= ALIKE_ROWS * len(others):
        report(
            f"{table.path.name} has names in its first column and many rows of one unit; if its "
            "rows are the features, as genes often are, say --transpose"
        )
