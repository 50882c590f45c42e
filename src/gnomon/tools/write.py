"""Writing what a model says of a table."""

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

from gnomon.exceptions import TableError
from gnomon.inference.checkpoint import atomic_file
from gnomon.linalg.data import slices
from gnomon.tools.recipe import Recipe, indicators_of
from gnomon.tools.tables import (
    BATCH_ROWS,
    COMPRESSED,
    MICROSECONDS_OF_A_DAY,
    NUMBER,
    as_numbers,
    as_texts,
)

# A spreadsheet runs cells that begin like this; a quote before them keeps them text. Numbers,
# as the class -1, do no harm.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
PARQUET = (".parquet", ".pq")
# The files of a fit.
MODEL, REPORT = "model.gnomon", "report.html"
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
    if folder.exists() and not folder.is_dir():
        raise TableError(f"{folder} is a file; a folder is wanted, name one with --out")
    if out is None and folder.exists() and not (folder / MODEL).exists() and any(folder.iterdir()):
        raise TableError(
            f"the folder {folder} holds something else than a result of gnomon fit; "
            "name another one with --out"
        )
    return folder


def make_folder(out) -> Path:
    """The folder, made if it is not there."""
    folder = place(None, out)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def clear(folder):
    """Remove what an earlier fit left: it is not of the model that is written now."""
    if (folder / MODEL).exists():
        for name in (*TABLES, REPORT):
            (folder / name).unlink(missing_ok=True)


def write_batches(path, batches: Iterable[dict]):
    """Columns of some rows after those of others as csv or parquet, by the suffix of the file.

    The path "-" is csv on standard output.
    """
    tables = (pa.table({name: _arrow(v) for name, v in batch.items()}) for batch in batches)
    if str(path) == "-":
        _write_csv(sys.stdout.buffer, tables)
        return path
    if not str(path).endswith((".csv", ".tsv", ".txt", *PARQUET)):
        raise TableError(f"--out {path}: accepted are csv and parquet files, or - for the screen")
    with atomic_file(path) as file:
        if str(path).endswith(PARQUET):
            _write_parquet(file, tables)
        else:
            _write_csv(file, tables, "\t" if str(path).endswith(".tsv") else ",")
    return path


def _arrow(values):
    return values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)


def row_batches(n_rows, rows=None):
    """Slices over all rows, or parts of the given ones, of a size that fits in memory."""
    count = n_rows if rows is None else len(rows)
    for part in slices(count, BATCH_ROWS):
        yield part if rows is None else rows[part]


def latent(model, X):
    """Coordinates (n, q) and their covariances (n, q, q), None for a model without them."""
    Z = np.asarray(model.transform(X), dtype=float)
    if not hasattr(model, "posterior"):
        return Z, None
    return Z, np.asarray(model.posterior(X).covariance)


def embedding_batches(model, X, ids, target=None):
    """Names of the rows, coordinates, their standard deviations, and the target if given."""
    # As a whole: a part without a label would have another type than the rest.
    target = {name: _arrow(values) for name, values in (target or {}).items()}
    for part in row_batches(X.shape[0]):
        Z, covariance = latent(model, X[part])
        columns = {"row": ids[part]}
        columns |= {f"z{j + 1}": Z[:, j] for j in range(Z.shape[1])}
        if covariance is not None:
            sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
            columns |= {f"sd{j + 1}": sd[:, j] for j in range(Z.shape[1])}
        yield columns | {name: values[part] for name, values in target.items()}


def prediction_batches(model, X, ids, rows=None, *, kind=None, names=()):
    """`prediction_columns` of all rows, or of the given ones, part by part."""
    for part in row_batches(X.shape[0], rows):
        yield {"row": ids[part]} | prediction_columns(model, X[part], kind, names)


def prediction_columns(model, X, kind=None, names=()) -> dict:
    """Predictions: of classes with probabilities, of numbers with standard deviations.

    Several targets have a column each, called by their ``names``.
    """
    if kind == "numeric":
        predicted, sd = model.predict(X, return_std=True)
        return _named({"predicted": predicted, "sd": sd}, names)
    predicted = np.asarray(model.predict(X))
    if kind == "multilabel":
        return _named({"predicted": predicted} | _label_scores(model, X), names)
    if not hasattr(model, "predict_proba"):
        return {"predicted": predicted}
    proba = np.asarray(model.predict_proba(X))
    columns = {"predicted": predicted, "probability": proba.max(axis=1)}
    return columns | {f"p({name})": p for name, p in zip(model.classes_, proba.T, strict=True)}


def _named(parts, names):
    """Each part as a column, or, of several targets, as a column for each of them."""
    if all(np.ndim(values) == 1 for values in parts.values()):
        return parts
    return {f"{part} {n}": v[:, k] for k, n in enumerate(names) for part, v in parts.items()}


def _label_scores(model, X):
    """How much a model is for each of several labels: a probability, a score, or nothing."""
    if hasattr(model, "predict_proba"):
        return {"probability": model.predict_proba(X)}
    if hasattr(model, "predict_distribution"):
        return {"score": np.clip(model.predict_distribution(X).mean, 0, 1)}
    return {}


def imputed_columns(recipe: Recipe, table, filled, deviations) -> dict:
    """The columns of the table with their gaps filled; beside them how sure each filling is."""
    (batch,) = table.batches()
    if recipe.matrix_names:
        return _imputed_matrix(recipe, batch.matrix, filled, deviations)
    parts, stop = {}, 0
    for feature in recipe.features:
        start, stop = stop, stop + len(feature.names)
        parts[feature.column] = feature, filled[:, start:stop], deviations[:, start:stop]
    columns: dict = {}
    for name, column in batch.columns.items():
        columns |= _imputed(column, *parts[name]) if name in parts else {name: column}
    return columns


def _imputed_matrix(recipe, matrix, filled, deviations):
    raw = recipe.matrix_scale is None
    scale, center = (1.0, 0.0) if raw else (recipe.matrix_scale, recipe.matrix_center)
    values, columns = filled * scale + center, {}
    for j, name in enumerate(recipe.matrix_names):
        columns[name] = values[:, j]
        gaps = np.isnan(matrix[:, j])
        if gaps.any():
            columns[f"{name} (sd)"] = np.where(gaps, (deviations * scale)[:, j], np.nan)
    return columns


def _imputed(column, feature, filled, deviations):
    """A column with its gaps filled, and the standard deviations where it had any."""
    if feature.kind == "category":
        return _imputed_category(feature, column, filled)
    raw = as_numbers(column)
    gaps = np.isnan(raw)
    values = np.where(gaps, filled[:, 0] * feature.scale + feature.center, raw)
    if feature.kind == "date":
        values = (values * MICROSECONDS_OF_A_DAY).astype("M8[us]")
    if not gaps.any():
        return {feature.column: values}
    sd = np.where(gaps, deviations[:, 0] * feature.scale, np.nan)
    return {feature.column: values, f"{feature.column} (sd)": sd}


def _imputed_category(feature, column, filled):
    """The level whose indicator is highest; its value, cut to [0, 1], says how sure."""
    texts = as_texts(column)
    known = set(feature.levels)
    gaps = np.array([text not in known for text in texts])
    indicators = np.clip(indicators_of(feature, filled), 0, 1)
    best = np.array(feature.levels, dtype=object)[indicators.argmax(axis=1)]
    columns = {feature.column: np.where(gaps, best, texts)}
    if gaps.any():
        columns[f"{feature.column} (share)"] = np.where(gaps, indicators.max(axis=1), np.nan)
    return columns


def _write_csv(file, tables, separator=","):
    from pyarrow import csv

    for i, table in enumerate(tables):
        names = [_safe_text(name) for name in table.column_names]
        safe = pa.table([_safe(table, name) for name in table.column_names], names=names)
        options = csv.WriteOptions(
            include_header=i == 0, delimiter=separator, quoting_style="needed"
        )
        csv.write_csv(safe, file, options)


def _write_parquet(file, tables):
    from pyarrow import parquet

    writer = None
    for table in tables:
        writer = writer or parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _safe(table, name):
    column = table.column(name)
    if pa.types.is_nested(column.type):
        raise TableError(f"column {name!r} holds {column.type}, which csv cannot; write parquet")
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column
    return pa.array([_safe_text(text) for text in column.to_pylist()], pa.string())


def _safe_text(text):
    if text is None or not text.startswith(FORMULA) or NUMBER.fullmatch(text):
        return text
    return f"'{text}"
