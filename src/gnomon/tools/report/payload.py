"""The numbers behind the interactive picture, as JSON with packed arrays."""

import base64
import json

import numpy as np
import pyarrow as pa

from gnomon.tools.columns import as_numbers, as_texts, kind_of
from gnomon.tools.report.sections import first_of

NO_VALUE = 65535
MAX_AXES = 6
# Room for the columns one can colour by; a page of more would open slowly.
COLUMN_BYTES = 8 * 2**20
COVARIANCE_BYTES = 8 * 2**20
ARROW_FEATURES = 60


def payload(subject) -> dict:
    """All that the picture shows of a `Subject`."""
    Z, covariance, axes = _axes(subject)
    q = len(axes)
    columns = colour_columns(subject)
    return {
        "n": len(Z),
        "q": q,
        "axes": axes,
        "ids": [str(name) for name in subject.ready.ids],
        "z": [_pack(Z[:, j], "<f4") for j in range(q)],
        "covariance": _covariance(covariance, q),
        "labelled": None if subject.labelled is None else _pack(subject.labelled, "u1"),
        "columns": columns,
        "colour": 0,
        "loadings": _arrows(subject, q),
    }


def _axes(subject):
    """Coordinates, covariances and names; a single axis gets a second one that only spreads."""
    q = min(subject.Z.shape[1], MAX_AXES)
    names = axis_names(subject.model, q)
    if q > 1:
        return subject.Z, subject.covariance, names
    spread = np.random.default_rng(0).uniform(-1, 1, len(subject.Z)) * np.ptp(subject.Z) / 8
    covariance = subject.covariance
    if covariance is not None:
        covariance = np.pad(covariance, ((0, 0), (0, 1), (0, 1)))
    return np.column_stack([subject.Z, spread]), covariance, [*names, "spread, without meaning"]


def as_script(values) -> str:
    """JSON that is safe inside a script element: no way to close it or to open a comment."""
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, code)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def axis_names(model, q) -> list[str]:
    """Names of the axes, with their share of the variance where the model has one."""
    shares = first_of(model, "explained_variance_ratio_", "input_share_")
    if shares is None or np.ndim(shares) != 1:
        return [f"z{j + 1}" for j in range(q)]
    return [f"z{j + 1} ({share:.0%} of the variance)" for j, share in enumerate(shares[:q])]


def colour_columns(subject) -> list[dict]:
    """What the rows can be coloured by: target first, then certainty, then the table's columns."""
    columns = _own_columns(subject)
    room = COLUMN_BYTES - sum(len(column["values"]) for column in columns)
    if subject.table.streamed:
        return columns
    (batch,) = subject.table.batches()
    for name, column in batch.columns.items():
        if subject.rows is not None:
            column = column.take(pa.array(subject.rows))
        packed = None if name in subject.used else _column(name, column)
        if packed is not None and len(packed["values"]) <= room:
            room -= len(packed["values"])
            columns.append(packed)
    return columns


def _own_columns(subject):
    columns = []
    if subject.ready.kind == "classes":
        columns.append(_levels(subject.asked.target, _given_or_predicted(subject)))
    if subject.ready.kind == "numeric":
        columns.append(_numbers(subject.asked.target, _given_or_predicted(subject)))
    if subject.certainty is not None:
        columns.append(_numbers("probability of the class", subject.certainty))
    if subject.covariance is not None:
        spread = np.sqrt(np.trace(subject.covariance, axis1=1, axis2=2))
        columns.append(_numbers("uncertainty", spread))
    return columns or [_numbers("z1", subject.Z[:, 0])]


def _given_or_predicted(subject):
    if subject.predicted is None:
        return subject.ready.y
    return np.where(subject.labelled, subject.ready.y, subject.predicted)


def _column(name, column):
    kind = kind_of(column)
    if kind in ("number", "date"):
        values = as_numbers(column)
        return None if np.isnan(values).all() else _numbers(name, values)
    if kind != "text":
        return None
    texts = as_texts(column)
    return _levels(name, texts) if len(set(texts)) <= 60 else None


def _numbers(name, values):
    values = np.asarray(values, dtype=float)
    return {"name": str(name), "levels": None, "values": _pack(values, "<f4")}


def _levels(name, texts):
    levels = sorted({str(text) for text in texts if text is not None})
    codes = {level: i for i, level in enumerate(levels)}
    values = [NO_VALUE if text is None else codes[str(text)] for text in texts]
    return {"name": str(name), "levels": levels, "values": _pack(values, "<u2")}


def _covariance(covariance, q):
    """The upper triangles, one for all rows where all are equal."""
    if covariance is None:
        return None
    rows, cols = np.triu_indices(q)
    shared = covariance.strides[0] == 0 or bool((covariance == covariance[0]).all())
    values = covariance[:1] if shared else covariance
    if not shared and len(values) * len(rows) * 4 > COVARIANCE_BYTES:
        return None
    return {"shared": shared, "values": _pack(values[:, rows, cols], "<f4")}


def _arrows(subject, q):
    components = getattr(subject.model, "components_", None)
    if components is None or components.shape[1] != len(subject.ready.recipe.names):
        return None
    top = np.argsort(-np.abs(components[:q]).max(axis=0))[:ARROW_FEATURES]
    names = [subject.ready.recipe.names[j] for j in top]
    values = np.zeros((q, len(top)))
    values[: len(components)] = np.asarray(components[:q, top], dtype=float).round(6)
    return {"names": names, "values": values.tolist()}


def _pack(values, dtype):
    array = np.ascontiguousarray(np.asarray(values).astype(dtype))
    return base64.b64encode(array.tobytes()).decode()
