"""What a session leaves: the labels beside their rows, the model of the map, and its report."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from gnomon.exceptions import TableError
from gnomon.tools import prepare, write
from gnomon.tools.compare.held_out import held_out
from gnomon.tools.label.learning import fit_model, known_to
from gnomon.tools.label.record import ORIGINS, Record
from gnomon.tools.label.session import Session
from gnomon.tools.report.page import Subject, write_report

LABELS = "labels"


def export(session: Session) -> list[Path]:
    """Write labels, model and report into the folder of the session; the files."""
    record = session.snapshot()
    if not (record.labels >= 0).any():
        raise TableError("there is no label yet, so there is nothing to write")
    table, ready, asked = session.rows.source
    labels = _write_labels(session, record)
    notes: dict[str, None] = {}
    ready, asked = _with_labels(ready, asked, record, notes.setdefault)
    model, X = _fitted(session, ready, notes.setdefault)
    score = held_out(model, X, ready.y, ready.kind, **known_to(model, ready.chunks))
    path = session.folder / write.MODEL
    prepare.save_fit(model, path, ready, asked, _facts(session, record))
    subject = Subject.of(model, table, ready, asked, X, note=notes.setdefault)
    subject.score, subject.model_path = score, path
    if session.rows.path is None:
        subject.code = f"import gnomon\n\nmodel = gnomon.load({str(path)!r}).model\n"
        subject.code += "Z = model.transform(X)\n"
    report = write_report(session.folder / write.REPORT, subject, notes=list(notes))
    return [labels, path, report]


def names_of(record: Record) -> np.ndarray:
    """The names of the labels, None for rows without."""
    return np.array([*record.classes, None], dtype=object)[record.labels]


def label_columns(target, record: Record) -> dict:
    """Label, time, origin and chunk of every row, by the names of their columns."""
    time = [text or None for text in record.times]
    origin = [ORIGINS[place] or None for place in record.origins]
    columns = {target: names_of(record).tolist(), f"{target}: time": time}
    columns[f"{target}: origin"] = origin
    if (record.chunks >= 0).any():
        columns[f"{target}: together"] = [None if c < 0 else int(c) for c in record.chunks]
    return {name: pa.array(values) for name, values in columns.items()}


def _write_labels(session, record):
    """The columns of the table with the labels after them; of a matrix the names of its rows."""
    table = session.rows.source[0]
    path = session.folder / f"{LABELS}{write.suffix_for(table.path)}"
    mine = label_columns(session.rows.target, record)
    own, how = {"row": pa.array(session.rows.ids)}, {}
    if not table.features:
        how = write.copying(table, path)
        own = write.as_given(table, to_text=bool(how))
        how |= {"copied": frozenset(own) - set(mine)} if how else {}
    columns = {name: column for name, column in own.items() if name not in mine} | mine
    return write.write_batches(path, [_flat(columns)], **how)


def _flat(columns):
    return {
        name: column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        for name, column in columns.items()
    }


def _with_labels(ready, asked, record, note):
    """The table and the question with the labels that were given; without where they are of one."""
    chunks = record.chunks if (record.chunks >= 0).any() else None
    if len(np.unique(record.labels[record.labels >= 0])) > 1:
        return ready._replace(y=names_of(record), kind="classes", chunks=chunks), asked
    note("fewer than two classes have labels, so the map is of the rows alone")
    return ready._replace(y=None, kind=None), asked._replace(target=None)


def _fitted(session, ready, note):
    """The model of the map, fitted again to labels by their names, and X as it takes it."""
    learner = session.learner
    model = clone(learner.fitted) if ready.y is None else learner.new_model()
    X = prepare.fill_gaps(model, ready.X, ready.recipe, note)
    return fit_model(model, X, ready.y, ready.chunks), X


def _facts(session, record) -> dict:
    """What the model file says of its fit."""
    names, counts = np.unique(record.labels[record.labels >= 0], return_counts=True)
    classes = {record.classes[code]: int(n) for code, n in zip(names, counts, strict=True)}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "table": session.rows.name,
        "rows": len(session.rows.ids),
        "labelled": int(sum(classes.values())),
        "classes": classes,
        "date": date,
    }
