"""What a person is shown of one row: its values beside those typical of its likely classes.

What is typical of a class are mean and standard deviation over all rows, each counted by its
probability of the class, in the units of the table. Columns come first whose value in this row
speaks most for one of the two likely classes against the other.
"""

from typing import Any, NamedTuple

import numpy as np

from gnomon.tools.label.learning import State
from gnomon.tools.label.rows import Rows
from gnomon.tools.recipe import Feature, indicators_of

# Classes whose typical values stand beside a row's own; more do not fit.
MOST_CLASSES = 3
# Columns that are sent; a person reads a dozen.
MOST_COLUMNS = 40
# Labelled rows nearest on the map.
NEAREST = 5
# Characters of a neighbour's text.
SNIPPET = 160
# Of a standard deviation that is nearly none, so that nothing is divided by it.
FLOOR = 1e-3


class Typical(NamedTuple):
    """Means and standard deviations (C, d) of the columns of X in every class, or in all rows."""

    mean: np.ndarray
    sd: np.ndarray


def typical(X, P) -> Typical:
    """What is typical of the classes, by probabilities P (n, C); gaps do not count."""
    if not isinstance(X, np.ndarray):
        weight = P.sum(axis=0)[:, None] + np.zeros(X.shape[1])
        sums, squares = P.T @ X, P.T @ X.multiply(X)
    else:
        known = ~np.isnan(X)
        values = np.where(known, X, 0.0)
        weight, sums, squares = P.T @ known, P.T @ values, P.T @ values**2
    weight = np.maximum(np.asarray(weight, dtype=float), np.finfo(float).tiny)
    mean = np.asarray(sums, dtype=float) / weight
    return Typical(mean, np.sqrt(np.maximum(np.asarray(squares) / weight - mean**2, 0.0)))


def details(rows: Rows, state: State, labels, row, found: Typical) -> dict:
    """All that the card of a row shows, besides what the page knows."""
    shown = likely_classes(state, row) if found.mean.shape[0] > 1 else [0]
    x = rows.X[row] if isinstance(rows.X, np.ndarray) else rows.X[[row]].toarray()[0]
    return {
        "row": row,
        "classes": shown if found.mean.shape[0] > 1 else [],
        "probabilities": [round(float(p), 4) for p in state.probabilities[row]],
        "columns": _columns(rows.features, x, found, shown),
        "n_columns": len(rows.features),
        "text": None if rows.texts is None else rows.texts[row],
        "image": rows.image(row) is not None,
        "image_name": None if rows.images is None else rows.images[row],
        "nearest": [_neighbour(rows, i) for i in nearest_labelled(state, labels, row)],
    }


def likely_classes(state, row) -> list[int]:
    """The classes most probable for a row, the first first."""
    return np.argsort(-state.probabilities[row], kind="stable")[:MOST_CLASSES].tolist()


def nearest_labelled(state, labels, row) -> list[int]:
    """The labelled rows nearest to a row on the map, without itself."""
    known = np.flatnonzero(labels >= 0)
    known = known[known != row]
    away = np.sum((state.coordinates[known] - state.coordinates[row]) ** 2, axis=1)
    return known[np.argsort(away, kind="stable")[:NEAREST]].tolist()


def _neighbour(rows, i) -> dict[str, Any]:
    text = None if rows.texts is None else rows.texts[i]
    snippet = text if text is None or len(text) <= SNIPPET else text[: SNIPPET - 1] + "…"
    return {"row": i, "text": snippet, "image": rows.image(i) is not None}


def _columns(features, x, found, shown) -> list[dict]:
    """The columns of the table, those first that tell the likely classes apart."""
    mean, sd = found.mean[shown], found.sd[shown]
    said = _speaks(x, mean, sd)
    columns, stop = [], 0
    for feature in features:
        start, stop = stop, stop + len(feature.names)
        part = slice(start, stop)
        told = float(np.nanmax(np.abs(said[part]), initial=0.0))
        columns.append((told, feature, part))
    columns.sort(key=lambda item: -item[0])
    return [
        _column(f, x[part], mean[:, part], sd[:, part]) for _, f, part in columns[:MOST_COLUMNS]
    ]


def _speaks(x, mean, sd):
    """How far each value is likelier in the first class than in the second, or unusual in all."""
    sd = np.maximum(sd, FLOOR * (np.abs(mean) + 1))
    away = ((x - mean) / sd) ** 2 / 2
    return away[0] if len(away) == 1 else away[1] - away[0] + np.log(sd[1] / sd[0])


def _column(feature: Feature, x, mean, sd) -> dict:
    if feature.kind == "category":
        return _category(feature, x, mean)
    scale, center = float(feature.scale[0]), float(feature.center[0])
    value = float(x[0]) * scale + center
    usual = np.column_stack([mean[:, 0] * scale + center, sd[:, 0] * scale]).tolist()
    own = None if np.isnan(value) else value
    return {"name": feature.column, "kind": feature.kind, "value": own, "usual": usual}


def _category(feature, x, mean) -> dict:
    """The level of a row, and in each class the most frequent one with its share."""
    levels, value = feature.levels, None
    if not np.isnan(x).any():
        value = levels[int(indicators_of(feature, x[None])[0].argmax())]
    shares = np.clip(indicators_of(feature, mean), 0, 1)
    usual = [[levels[int(share.argmax())], float(share.max())] for share in shares]
    return {"name": feature.column, "kind": "category", "value": value, "usual": usual}
