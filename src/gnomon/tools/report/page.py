"""The report: one HTML file that opens offline, from a fitted model and its table.

Charts and tables are text and SVG of `sections`; the picture is drawn by a script on a canvas,
from numbers that are packed here. A content-security policy lets nothing else run, and every
name from the data is escaped.
"""

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import gnomon
from gnomon.estimators import count, labelled_rows
from gnomon.estimators.neighbour_layout import NeighbourLayout
from gnomon.inference.checkpoint import write_atomically
from gnomon.tools import modelfile
from gnomon.tools.compare.held_out import Score
from gnomon.tools.dimension import DimensionChoice
from gnomon.tools.prepare import Question, target_columns
from gnomon.tools.report import sections
from gnomon.tools.tables import NUMBER, as_numbers, as_texts, column_kind
from gnomon.tools.web.assets import (
    COLOURS,
    NO_LEVEL,
    as_script,
    pack,
    policy,
    rendered,
    script,
    style,
)
from gnomon.tools.write import latent

# More rows than this are drawn as a sample.
MOST_POINTS = 100_000
# A column with more texts than this has no colours for them.
MOST_LEVELS = 60
# Room for the columns to colour by, and for covariances; a page of more would open slowly.
COLUMN_BYTES, COVARIANCE_BYTES = 16 * 2**20, 8 * 2**20
# More rows than this have no ellipses in a layout: each takes twenty draws to be placed.
LAYOUT_ELLIPSES = 20_000
# More arrows than this hide the points.
ARROW_FEATURES = 60
# After the drawing, each of which needs those before it.
SCRIPTS = ("rows.js", "files.js", "controls.js")


class Subject:
    """What a report is about: a fitted model, the table, and X as the model takes it.

    ``graph`` has the links of the rows of the table, and ``rows`` those of them that ``ready`` and
    X hold, None for all;
    ``model_path`` is the file of a model that was fitted before, to whatever table; ``code`` is
    Python that makes the same coordinates, where that is not plain from the rest. A ``layout``
    places the rows by their neighbours on the map; it may be that of the model's file.
    """

    score: Score | None = None
    choice: DimensionChoice | None = None
    model_path: Path | None = None
    code: str | None = None
    layout: NeighbourLayout | None = None
    layout_is_saved = False

    def __init__(self, model, table, ready, asked, X, graph=None, *, rows=None, n_rows=None):
        self.model, self.table, self.ready, self.asked = model, table, ready, asked
        self.X, self.rows, self.n_rows = X, rows, n_rows or X.shape[0]
        self.links = {} if graph is None else graph.of(slice(None) if rows is None else rows)
        self.Z, self.covariance = latent(model, X, **self.links)

    @classmethod
    def of(cls, model, table, ready, asked, X, graph=None, *, note):
        """The subject of a fit; of a large table a sample of rows, and a note that says so."""
        n = X.shape[0]
        if n <= MOST_POINTS:
            return cls(model, table, ready, asked, X, graph)
        rows, how = _drawn_rows(n, ready.labelled)
        note(f"the report shows {MOST_POINTS:,} of the {n:,} rows, {how}")
        y = None if ready.y is None else ready.y[rows]
        part = ready._replace(X=ready.X[rows], y=y, ids=ready.ids[rows])
        taken = part.X if X is ready.X else X[rows]
        return cls(model, table, part, asked, taken, graph, rows=rows, n_rows=n)

    @cached_property
    def labelled(self) -> Any:
        """Mask of the rows with a label; None without a target."""
        return self.ready.labelled

    @cached_property
    def predicts(self) -> bool:
        """Whether the model says something of the target."""
        return self.ready.y is not None and hasattr(self.model, "predict")

    @cached_property
    def predicted(self) -> Any:
        """The predictions for all rows, or None."""
        return np.asarray(self.model.predict(self.X, **self.links)) if self.predicts else None

    @cached_property
    def proba(self) -> Any:
        """The probabilities of the classes for all rows, or None."""
        classes = self.predicts and self.ready.kind == "classes"
        if not (classes and hasattr(self.model, "predict_proba")):
            return None
        return np.asarray(self.model.predict_proba(self.X, **self.links))

    @property
    def certainty(self) -> Any:
        """The probability of the most likely class, or None."""
        return None if self.proba is None else self.proba.max(axis=1)

    @property
    def used(self) -> set:
        """Columns that the picture shows in another role."""
        return {*self.asked.targets, self.asked.id}


def _drawn_rows(n, labelled):
    """The rows of a large table that are drawn: all with a label, unless they are many."""
    first, how = np.arange(0), "drawn at random"
    if labelled is not None and labelled.sum() <= MOST_POINTS // 2:
        first, how = np.flatnonzero(labelled), "all with a label and others drawn at random"
    others = np.setdiff1d(np.arange(n), first, assume_unique=True)
    more = np.random.default_rng(0).choice(others, MOST_POINTS - len(first), replace=False)
    return np.sort(np.concatenate([first, more])), how


def write_report(path, subject: Subject, *, command="", notes=(), comparison=None) -> Path:
    """Write the report of a subject to an HTML file."""
    text = render(subject, command=command, notes=notes, comparison=comparison)
    return write_atomically(path, text.encode())


def render(subject: Subject, *, command="", notes=(), comparison=None) -> str:
    """The report as HTML."""
    own_style, own_script = style("style.css", __package__), script(SCRIPTS, __package__)
    path, targets = subject.table.path, subject.asked.targets
    lead = f"{type(subject.model).__name__} of {path.name}"
    return rendered(
        "page.html",
        __package__,
        style=own_style,
        script=own_script,
        policy=policy(own_style, own_script, "img-src data:"),
        payload=as_script(payload(subject)),
        title=f"{path.stem}: {', '.join(targets)}" if targets else path.stem,
        lead=f"{lead}, {_quoted(targets)}" if targets else lead,
        facts=sections.facts(subject),
        picture_hint=sections.picture_hint(subject),
        score=sections.score(subject),
        cards=sections.cards(subject, comparison),
        steps=steps(subject),
        notes=list(notes),
        command=command,
        code=subject.code or python_code(subject),
        model=repr(subject.model),
        versions=", ".join(f"{name} {v}" for name, v in modelfile.versions().items()),
        version=gnomon.__version__,
    )


def steps(subject) -> list[str]:
    """What was done to the data, a line each."""
    recipe, asked = subject.ready.recipe, subject.asked
    lines = [f"Read {count(subject.n_rows, 'row')} from {subject.table.path.name}."]
    if recipe.matrix_names:
        how = "divided by the standard deviation" if recipe.scaled else "taken unchanged"
        columns = count(len(recipe.matrix_names), "column was", "columns were")
        lines.append(f"Of its matrix, {columns} {how}.")
    else:
        lines += _column_steps(recipe)
    if asked.targets:
        lines.append(f"Explained: {_quoted(asked.targets)}, read as {subject.ready.kind}.")
    if recipe.left_out:
        out = "; ".join(f"{name!r} {reason}" for name, reason in recipe.left_out.items())
        lines.append(f"Left out: {out}.")
    if subject.ready.gaps:
        filled = subject.X is not subject.ready.X
        lines.append(
            "Gaps were filled with column means, since this model takes none."
            if filled
            else "Gaps stayed gaps: the model takes them as unknown."
        )
    return lines


def _quoted(targets):
    return f"target{'s' * (len(targets) > 1)} {', '.join(map(repr, targets))}"


def _column_steps(recipe):
    how = "centred and divided by their standard deviation" if recipe.scaled else "centred"
    texts = {
        "number": f"Numbers were {how}",
        "date": f"Dates were read as days and {how}",
        "category": "Categories became an indicator for each level but the most frequent, those "
        "of a column together with the weight of one number",
    }
    columns = {kind: [f.column for f in recipe.features if f.kind == kind] for kind in texts}
    return [f"{texts[kind]}: {_names(names)}." for kind, names in columns.items() if names]


def python_code(subject) -> str:
    """Python that makes the same coordinates: fits the same model, or takes it from its file."""
    path = str(subject.table.path)
    if subject.model_path is not None and not subject.table.options:
        load = f"model = gnomon.load({str(subject.model_path)!r})\n"
        alone, placed = _of_rows_alone(subject), _layout_code(subject)
        return f"import gnomon\n\n{load}{alone}Z = model.transform({path!r})\n{placed}"
    more = "".join(f", {key}={value!r}" for key, value in _reading(subject).items())
    table = f"table = gnomon.read_table({path!r}{more})\n"
    linked = ", links=table.links" if subject.links and subject.model_path is None else ""
    fitted, placed = _model_code(subject) + _of_rows_alone(subject), _layout_code(subject)
    return f"import gnomon\n\n{table}{fitted}Z = model.transform(table.X{linked})\n{placed}"


def _of_rows_alone(subject):
    """A remark where the page has rows placed by links, which the model's file does not have."""
    if not subject.links or subject.model_path is None:
        return ""
    return "# Each row alone: gnomon transform with --links places them by their links, as here.\n"


def _layout_code(subject):
    """Python for the places in the layout: of the model's file, or fitted to these rows."""
    if subject.layout is None:
        return ""
    if subject.layout_is_saved:
        return f"P = gnomon.load({str(subject.model_path)!r}).layout.transform(Z)\n"
    params = f"random_state={subject.asked.seed}" if subject.asked.seed else ""
    return f"P = gnomon.NeighbourLayout({params}).fit_transform(Z)\n"


def _model_code(subject):
    """The model for a matrix: that of the file, or the same one fitted."""
    if subject.model_path is not None:
        return f"model = gnomon.load({str(subject.model_path)!r}).model\n"
    ready = subject.ready
    extra = [key for key in ("links", "chunks") if getattr(ready, key) is not None]
    given = ["table.X", *(["table.y"] if ready.y is not None else [])]
    given += [f"{key}=table.{key}" for key in extra]
    return f"model = gnomon.{_constructor(subject.model)}\nmodel.fit({', '.join(given)})\n"


def _reading(subject):
    """The arguments of `gnomon.read_table` that are not the usual ones."""
    filled = {"fill_gaps": True} if subject.X is not subject.ready.X else {}
    if subject.model_path is not None:
        return {"model": str(subject.model_path)} | dict(subject.table.options) | filled
    usual, asked = Question(), subject.asked
    names = ("target", "task", "unlabelled", "id", "ignore", "links", "chunks", "scale")
    changed = {n: getattr(asked, n) for n in names if getattr(asked, n) != getattr(usual, n)}
    texts = {n: str(value) if isinstance(value, Path) else value for n, value in changed.items()}
    return texts | dict(subject.table.options) | filled


def _constructor(model):
    defaults = type(model)().get_params()
    given = {k: v for k, v in model.get_params().items() if repr(v) != repr(defaults[k])}
    return f"{type(model).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


def _names(names, most=20):
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def payload(subject) -> dict:
    """All that the picture shows of a `Subject`."""
    Z, covariance, axes = _axes(subject)
    q, own = len(axes), _own_columns(subject)
    columns, left_out = colour_columns(subject, own)
    return {
        "name": subject.table.path.stem,
        "n": len(Z),
        "q": q,
        "axes": axes,
        "row_name": subject.asked.id or "row",
        "ids": [str(name) for name in subject.ready.ids],
        "z": [pack(Z[:, j], "<f4") for j in range(q)],
        "covariance": _covariance(covariance, q),
        "labelled": None if subject.labelled is None else pack(subject.labelled, "u1"),
        "palette": COLOURS,
        "columns": columns,
        "columns_left_out": left_out,
        "own": len(own),
        "predicted": subject.predicts,
        "loadings": _arrows(subject, q),
        "layout": _layout(subject),
    }


def _layout(subject):
    """Where the layout has the rows, and the covariances of that, one for each row."""
    layout = subject.layout
    if layout is None:
        return None
    places, spread = layout.transform(subject.Z), None
    if subject.covariance is not None and len(places) <= LAYOUT_ELLIPSES:
        each = layout.covariance(subject.Z, subject.covariance)
        spread = pack(each[:, [0, 0, 1], [0, 1, 1]], "<f4")
    columns = [pack(places[:, j], "<f4") for j in range(2)]
    return {"places": columns, "covariance": spread, "dimensions": subject.Z.shape[1]}


def _axes(subject):
    """Coordinates, covariances and names; a single axis gets a second one that only spreads."""
    q = min(subject.Z.shape[1], sections.MOST_AXES)
    names = axis_names(subject.model, q)
    if q > 1:
        return subject.Z, subject.covariance, names
    jitter = np.random.default_rng(0).uniform(-1, 1, len(subject.Z)) * np.ptp(subject.Z) / 8
    covariance = subject.covariance
    if covariance is not None:
        covariance = np.pad(covariance, ((0, 0), (0, 1), (0, 1)))
    return np.column_stack([subject.Z, jitter]), covariance, [*names, "spread, without meaning"]


def axis_names(model, q) -> list[str]:
    """Names of the axes, with their share of the variance where the model has one."""
    shares = sections.first_of(model, "explained_variance_ratio_", "input_share_")
    if shares is None or np.ndim(shares) != 1:
        return [f"z{j + 1}" for j in range(q)]
    return [f"z{j + 1} ({share:.0%} of the variance)" for j, share in enumerate(shares[:q])]


def colour_columns(subject, own):
    """What the rows can be coloured by, the model's own first; and how many have no room."""
    columns, room = list(own), COLUMN_BYTES - sum(len(column["values"]) for column in own)
    if subject.table.streamed:
        return columns, 0
    (batch,), left_out = subject.table.batches(), 0
    for name, column in batch.columns.items():
        if subject.rows is not None:
            column = column.take(pa.array(subject.rows))
        packed = None if name in subject.used else _column(name, column)
        if packed is not None and len(packed["values"]) <= room:
            room -= len(packed["values"])
            columns.append(packed)
        else:
            left_out += packed is not None
    return columns, left_out


def _own_columns(subject):
    """Target, predictions, certainty and uncertainty: those that there are."""
    columns = [] if subject.ready.kind is None else _target_columns(subject)
    if subject.certainty is not None:
        columns.append(_numbers("probability of the class", subject.certainty))
    if subject.covariance is not None:
        sd = np.sqrt(np.trace(subject.covariance, axis1=1, axis2=2))
        columns += [] if np.allclose(sd, sd[0]) else [_numbers("uncertainty", sd)]
    return columns or [_numbers("z1", subject.Z[:, 0])]


def _target_columns(subject):
    """Every target, predicted where it is not given, then its predictions in the same colours."""
    given = target_columns(subject.asked, subject.ready.y)
    if subject.predicted is None:
        return [column for name, y in given.items() for column in _drawn(subject, {name: y})]
    predicted, columns = target_columns(subject.asked, subject.predicted), []
    for name, y in given.items():
        known = labelled_rows(y, subject.ready.kind)
        drawn = {name: np.where(known, y, predicted[name]), f"{name}, predicted": predicted[name]}
        columns += _drawn(subject, drawn)
    return columns


def _drawn(subject, values):
    """Columns of one target, classes with the same levels."""
    if subject.ready.kind != "classes":
        return [_numbers(name, column) for name, column in values.items()]
    levels = _sorted_levels(np.concatenate(list(values.values())))
    return [_levels(name, column, levels) for name, column in values.items()]


def _column(name, column):
    kind = column_kind(column)
    if kind in ("number", "date"):
        values = as_numbers(column)
        is_date = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
        return None if np.isnan(values).all() else _numbers(name, values, is_date=is_date)
    if kind != "text":
        return None
    texts = as_texts(column)
    levels = _sorted_levels(texts)
    return _levels(name, texts, levels) if len(levels) <= MOST_LEVELS else None


def _numbers(name, values, *, is_date=False):
    """A column of numbers, or of dates as days since 1970, with the minutes in their fraction."""
    kind, dtype = ("date", "<f8") if is_date else ("number", "<f4")
    packed = pack(np.asarray(values, dtype=float), dtype)
    return {"name": str(name), "kind": kind, "levels": None, "values": packed}


def _sorted_levels(texts):
    """The different texts; numbers are sorted as numbers, those within a text too."""
    levels = {str(text) for text in texts if text is not None}
    if all(NUMBER.fullmatch(level) for level in levels):
        return sorted(levels, key=lambda level: float(level.replace(",", ".")))
    return sorted(levels, key=lambda level: re.sub("[0-9]+", lambda m: m[0].zfill(20), level))


def _levels(name, texts, levels):
    places = {level: i for i, level in enumerate(levels)}
    values = [NO_LEVEL if text is None else places[str(text)] for text in texts]
    return {"name": str(name), "kind": "classes", "levels": levels, "values": pack(values, "<u2")}


def _covariance(covariance, q):
    """The upper triangles, one for all rows where all are equal."""
    if covariance is None:
        return None
    rows, cols = np.triu_indices(q)
    shared = bool((covariance == covariance[0]).all())
    values = covariance[:1] if shared else covariance
    if not shared and len(values) * len(rows) * 4 > COVARIANCE_BYTES:
        return None
    return {"shared": shared, "values": pack(values[:, rows, cols], "<f4")}


def _arrows(subject, q):
    components = getattr(subject.model, "components_", None)
    if components is None or components.shape[1] != len(subject.ready.recipe.names):
        return None
    top = np.argsort(-np.abs(components[:q]).max(axis=0))[:ARROW_FEATURES]
    names = [subject.ready.recipe.names[j] for j in top]
    values = np.zeros((q, len(top)))
    values[: len(components)] = np.asarray(components[:q, top], dtype=float).round(6)
    return {"names": names, "values": values.tolist()}
