"""Writing what a model says of a table."""

import codecs
import os
import sys
from collections.abc import Iterable
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gnomon.exceptions import TableError
from gnomon.inference.checkpoint import atomic_file
from gnomon.linalg.data import slices
from gnomon.linalg.threads import in_order
from gnomon.tools.growth import COMPRESSED
from gnomon.tools.tables import (
    BATCH_ROWS,
    NUMBER,
    TEXTS,
    column_kind,
    suffix_of,
)

# A spreadsheet runs cells that begin like this; a quote before them keeps them text. Numbers,
# as the class -1, do no harm.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
PARQUET = (".parquet", ".pq")
# The files of a fit.
MODEL, REPORT = "model.gnomon", "report.html"
COMPARISON = "comparison.csv"
TABLES = ("embedding.csv", "embedding.parquet", "predictions.csv", "predictions.parquet")


def suffix_for(path) -> str:
    """The suffix of what is written about a table: parquet for parquet, else csv."""
    return ".parquet" if path.suffix.lower() in PARQUET else ".csv"


def stem_of(path) -> str:
    """The name of a table without its suffix, and that of its compression."""
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSED else path.stem


def named_after(path, ending) -> Path:
    """A file in the working directory for what a model says of a table."""
    return Path(f"{stem_of(path)}-{ending}{suffix_for(path)}")


def place(path, out=None) -> Path:
    """The folder for a fit: the one given, or one named after the table that holds nothing else."""
    folder = Path(f"{stem_of(path)}-map") if out is None else Path(out)
    there = next(part for part in (folder, *folder.parents) if part.exists())
    if not there.is_dir():
        raise TableError(f"{there} is a file; a folder is wanted, name one with --out")
    _check_rights(there)
    if out is None and folder.exists() and not (folder / MODEL).exists() and any(folder.iterdir()):
        raise TableError(
            f"the folder {folder} holds something else than a result of gnomon fit; "
            "name another one with --out"
        )
    return folder


def _check_rights(folder):
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TableError(f"the folder {folder} may not be written to; name another with --out")


def check_place(out):
    """Refuse a file that cannot be made; a device is written to as it is."""
    if str(out) == "-" or (os.path.exists(out) and not os.path.isfile(out)):
        return
    folder = Path(os.path.realpath(out)).parent
    if not folder.is_dir():
        raise TableError(f"--out {out}: the folder {folder} is not there")
    _check_rights(folder)


def make_folder(out) -> Path:
    """The folder, made if it is not there."""
    folder = place(None, out)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def earlier_results(folder) -> list[Path]:
    """The files that an earlier fit left in a folder; none where its model is not there."""
    if not (folder / MODEL).exists():
        return []
    return [path for name in (*TABLES, REPORT) if (path := folder / name).exists()]


def remove(paths, written):
    """Remove what an earlier fit left, but those that are written anew: it is of another model."""
    for path in paths:
        if str(path) not in written:
            path.unlink(missing_ok=True)


def check_apart(out, *inputs):
    """Refuse to write where a file lies that is read: it would be lost."""
    for path in inputs:
        if path is not None and _is_same(out, path):
            raise TableError(f"--out {out} is {path}, which is read; name another one")


def _is_same(out, path):
    try:
        return os.path.samefile(out, path)
    except OSError:
        return False


def check_folder_apart(folder, *inputs):
    """Refuse a folder of results in which one of their names is that of a file that is read."""
    for name in (MODEL, REPORT, COMPARISON, *TABLES):
        check_apart(folder / name, *inputs)


def is_text(path) -> bool:
    """Whether a table goes there as text; the path "-" is csv on standard output."""
    return str(path) == "-" or str(path).endswith((".csv", ".tsv", ".txt"))


def write_batches(path, batches: Iterable[dict], *, separator=None, copied=(), encoding="utf-8"):
    """Columns of some rows after those of others as csv or parquet, by the suffix of the file.

    The path "-" is csv on standard output. Cells do not run in a spreadsheet, but those of columns
    that are ``copied`` from another text file, whose separator and ``encoding`` csv has.
    """
    tables = (pa.table({name: _arrow(v) for name, v in batch.items()}) for batch in batches)
    if str(path).endswith(".tsv") or separator in (None, "\t"):
        separator = "\t" if str(path).endswith(".tsv") else ","
    style = {"separator": separator, "copied": copied, "encoding": encoding}
    if str(path) == "-":
        _write_csv(sys.stdout.buffer, tables, style)
        return path
    if not is_text(path) and not str(path).endswith(PARQUET):
        raise TableError(f"--out {path}: accepted are csv and parquet files, or - for the screen")
    with atomic_file(path) as file:
        if is_text(path):
            _write_csv(file, tables, style)
        else:
            _write_parquet(file, tables)
    return path


def _arrow(values):
    return values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)


def row_batches(n_rows, rows=None):
    """Slices over all rows, or parts of the given ones, of a size that fits in memory."""
    count = n_rows if rows is None else len(rows)
    for part in slices(count, BATCH_ROWS):
        yield part if rows is None else rows[part]


def latent(model, X, **graph):
    """Coordinates (n, q) and their covariances (n, q, q), None for a model without them."""
    Z = np.asarray(model.transform(X, **graph), dtype=float)
    if not hasattr(model, "posterior"):
        return Z, None
    return Z, np.asarray(model.posterior(X, **graph).covariance)


def _part_of(graph, rows) -> dict:
    """The links of some rows, as models take them; nothing where there are none."""
    return {} if graph is None else graph.of(rows)


def coordinates(model, X, graph=None) -> np.ndarray:
    """Coordinates (n, q) of all rows, part by part."""
    parts = row_batches(X.shape[0])
    return np.vstack([model.transform(X[part], **_part_of(graph, part)) for part in parts])


def embedding_batches(model, X, ids, target=None, graph=None, layout=None):
    """Names of the rows, coordinates, their standard deviations, and the target if given.

    With a layout, two columns say where it has each row.
    """
    # As a whole: a part without a label would have another type than the rest.
    target = {name: _arrow(values) for name, values in (target or {}).items()}
    for part in row_batches(X.shape[0]):
        Z, covariance = latent(model, X[part], **_part_of(graph, part))
        columns = {"row": ids[part]}
        columns |= {f"z{j + 1}": Z[:, j] for j in range(Z.shape[1])}
        if covariance is not None:
            sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
            columns |= {f"sd{j + 1}": sd[:, j] for j in range(Z.shape[1])}
        if layout is not None:
            places = layout.transform(Z)
            columns |= {f"layout{j + 1}": places[:, j] for j in range(2)}
        yield columns | {_free(name, columns): values[part] for name, values in target.items()}


def _free(name, taken):
    """The name, with a word behind it where a column has it already."""
    while name in taken:
        name += " (target)"
    return name


def prediction_batches(model, X, ids, rows=None, *, kind=None, names=(), graph=None):
    """`prediction_columns` of all rows, or of the given ones, part by part."""
    for part in row_batches(X.shape[0], rows):
        links = _part_of(graph, part)
        yield {"row": ids[part]} | prediction_columns(model, X[part], kind, names, **links)


def prediction_columns(model, X, kind=None, names=(), **graph) -> dict:
    """Predictions: of classes with probabilities, of numbers with standard deviations.

    Several targets have a column each, called by their ``names``.
    """
    if kind == "numeric":
        predicted, sd = model.predict(X, return_std=True, **graph)
        return _named({"predicted": predicted, "sd": sd}, names)
    predicted = np.asarray(model.predict(X, **graph))
    if kind == "multilabel":
        return _named({"predicted": predicted} | _label_scores(model, X, **graph), names)
    if not hasattr(model, "predict_proba"):
        return {"predicted": predicted}
    proba = np.asarray(model.predict_proba(X, **graph))
    columns = {"predicted": predicted, "probability": proba.max(axis=1)}
    return columns | {f"p({name})": p for name, p in zip(model.classes_, proba.T, strict=True)}


def _named(parts, names):
    """Each part as a column, or, of several targets, as a column for each of them."""
    if all(np.ndim(values) == 1 for values in parts.values()):
        return parts
    return {f"{part} {n}": v[:, k] for k, n in enumerate(names) for part, v in parts.items()}


def _label_scores(model, X, **graph):
    """How much a model is for each of several labels: a probability, a score, or nothing."""
    if hasattr(model, "predict_proba"):
        return {"probability": model.predict_proba(X, **graph)}
    if hasattr(model, "predict_distribution"):
        return {"score": np.clip(model.predict_distribution(X, **graph).mean, 0, 1)}
    return {}


def copying(table, out) -> dict:
    """How a table goes from one text file to another; nothing where it does not."""
    if not is_text(out) or suffix_of(table.path) not in TEXTS:
        return {}
    reading = table.reading
    copied = {"separator": reading.separator, "copied": frozenset(table.names)}
    return copied | {"encoding": reading.encoding}


def as_given(table, to_text=False) -> dict:
    """The columns of a table as its file has them: ``to_text`` to the letter."""
    (batch,) = table.batches()
    written = table.as_written(table.names)
    return {name: _kept(batch.columns[name], written[name], to_text) for name in table.names}


def _kept(column, written, to_text):
    """A column with the kind it was read as, if that loses nothing, else as it was written."""
    if column_kind(written) != "text":
        return written
    texts = written.cast(pa.string())
    bare = pc.if_else(pc.equal(texts, ""), None, texts)
    if to_text or column_kind(column) == "text":
        return bare
    same = pc.equal(column.cast(pa.string()), texts)
    return column if pc.all(pc.fill_null(same, True)).as_py() else bare


def _write_csv(file, tables, style):
    text, parts = partial(_csv_text, **style), enumerate(tables)
    first = list(islice(parts, 2))
    several = len(first) > 1
    for part in in_order(text, chain(first, parts), np.inf) if several else map(text, first):
        file.write(part)


def _csv_text(numbered, separator, copied, encoding):
    """A part of a table as csv, the first one with a header."""
    from pyarrow import csv

    i, table = numbered
    _check_cells(table)
    given = dict(zip(table.column_names, table.columns, strict=True))
    names = [name if name in copied else _safe_text(name) for name in given]
    columns = [c if name in copied else _safe(c) for name, c in given.items()]
    text = pa.BufferOutputStream()
    options = csv.WriteOptions(include_header=i == 0, delimiter=separator, quoting_style="needed")
    csv.write_csv(pa.table(columns, names=names), text, options)
    return _encoded(text.getvalue(), encoding)


def _encoded(text, encoding):
    """Text in UTF-8 as bytes in an encoding."""
    if codecs.lookup(encoding).name == "utf-8":
        return text
    try:
        return text.to_pybytes().decode().encode(encoding)
    except UnicodeEncodeError as error:
        sign = error.object[error.start]
        raise TableError(
            f"{sign!r} cannot be written in {encoding}, in which the table was read; write parquet"
        ) from None


def _write_parquet(file, tables):
    from pyarrow import parquet

    writer = None
    for table in tables:
        writer = writer or parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _check_cells(table):
    for field in table.schema:
        if pa.types.is_nested(field.type):
            raise TableError(
                f"column {field.name!r} holds {field.type}, which csv cannot; write parquet"
            )


def _safe(column):
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column
    return pa.array([_safe_text(text) for text in column.to_pylist()], pa.string())


def _safe_text(text):
    if text is None or not text.startswith(FORMULA) or NUMBER.fullmatch(text):
        return text
    return f"'{text}"
