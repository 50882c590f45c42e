"""The report: one HTML file that opens offline, from a fitted model and its table.

Charts and tables are text and SVG made here; the picture is drawn by a script on a canvas. A
content-security policy lets nothing else run, and every name from the data is escaped.
"""

import base64
import hashlib
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment

import gnomon
from gnomon.inference.checkpoint import write_atomically
from gnomon.tools import modelfile
from gnomon.tools.building import latent
from gnomon.tools.dimension import DimensionChoice
from gnomon.tools.evaluation import Score, is_labelled
from gnomon.tools.report import sections
from gnomon.tools.report.payload import as_script, payload

# More rows than this are drawn as a sample.
MOST_POINTS = 100_000


class Subject:
    """What a report is about: a fitted model, the table, and X as the model takes it.

    ``rows`` are the rows of the table that ``ready`` and X hold, None for all of them.
    """

    score: Score | None = None
    choice: DimensionChoice | None = None

    def __init__(self, model, table, ready, asked, X, rows=None, n_rows=None):
        self.model, self.table, self.ready, self.asked = model, table, ready, asked
        self.X, self.rows, self.n_rows = X, rows, n_rows or X.shape[0]
        self.Z, self.covariance = latent(model, X)

    @classmethod
    def of(cls, model, table, ready, asked, X, *, note):
        """The subject of a fit; of a large table a sample of rows, and a note that says so."""
        n = X.shape[0]
        if n <= MOST_POINTS:
            return cls(model, table, ready, asked, X)
        note(f"the report shows {MOST_POINTS:,} of the {n:,} rows, drawn at random")
        rows = np.sort(np.random.default_rng(0).choice(n, MOST_POINTS, replace=False))
        y = None if ready.y is None else ready.y[rows]
        part = ready._replace(X=ready.X[rows], y=y, ids=ready.ids[rows])
        taken = part.X if X is ready.X else X[rows]
        return cls(model, table, part, asked, taken, rows, n)

    @cached_property
    def labelled(self) -> Any:
        """Mask of the rows with a label; None without a target."""
        return None if self.ready.y is None else is_labelled(self.ready.y)

    @cached_property
    def predicts(self) -> bool:
        """Whether the model says something of the target."""
        return self.ready.y is not None and hasattr(self.model, "predict")

    @cached_property
    def predicted(self) -> Any:
        """The predictions for all rows, or None."""
        return np.asarray(self.model.predict(self.X)) if self.predicts else None

    @cached_property
    def proba(self) -> Any:
        """The probabilities of the classes for all rows, or None."""
        if not (self.predicts and hasattr(self.model, "predict_proba")):
            return None
        return np.asarray(self.model.predict_proba(self.X))

    @property
    def certainty(self) -> Any:
        """The probability of the most likely class, or None."""
        return None if self.proba is None else self.proba.max(axis=1)

    @property
    def used(self) -> set:
        """Columns that the picture shows in another role."""
        return {self.asked.target, self.asked.id}


def write_report(path, subject: Subject, *, command="", notes=(), comparison=None) -> Path:
    """Write the report of a subject to an HTML file."""
    text = render(subject, command=command, notes=notes, comparison=comparison)
    return write_atomically(path, text.encode())


def render(subject: Subject, *, command="", notes=(), comparison=None) -> str:
    """The report as HTML."""
    style, script = _asset("style.css"), _asset("script.js")
    page = Environment(autoescape=True, trim_blocks=True).from_string(_asset("page.html"))
    return page.render(
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        payload=as_script(payload(subject)),
        title=_title(subject),
        lead=sections.lead(subject),
        facts=sections.facts(subject),
        picture_hint=sections.picture_hint(subject),
        score=sections.score(subject),
        labels=sections.labels(subject),
        comparison=sections.comparison(comparison),
        next_labels=sections.next_labels(subject),
        doubtful=sections.doubtful(subject),
        loadings=sections.loadings(subject),
        charts=sections.figures(subject),
        steps=steps(subject),
        notes=list(notes),
        command=command,
        code=python_code(subject),
        model=repr(subject.model),
        versions=", ".join(f"{name} {v}" for name, v in modelfile.versions().items()),
        version=gnomon.__version__,
    )


def steps(subject) -> list[str]:
    """What was done to the data, a line each."""
    recipe, asked = subject.ready.recipe, subject.asked
    lines = [f"Read {subject.n_rows:,} rows from {subject.table.path.name}."]
    if recipe.matrix_names:
        how = "divided by their standard deviations" if recipe.scaled else "taken as they are"
        lines.append(f"The {len(recipe.matrix_names)} columns of its matrix were {how}.")
    else:
        lines += _column_steps(recipe)
    if asked.target is not None:
        lines.append(f"The target is {asked.target!r}, read as {subject.ready.kind}.")
    if recipe.left_out:
        out = "; ".join(f"{name!r} {reason}" for name, reason in recipe.left_out.items())
        lines.append(f"Left out: {out}.")
    if sections.gap_counts(subject).any():
        filled = subject.X is not subject.ready.X
        lines.append(
            "Gaps were filled with column means, since this model takes none."
            if filled
            else "Gaps stayed gaps: the model takes them as unknown."
        )
    return lines


def _column_steps(recipe):
    kinds = {
        kind: [f.column for f in recipe.features if f.kind == kind]
        for kind in ("number", "date", "category")
    }
    how = "centred and divided by their standard deviation" if recipe.scaled else "centred"
    lines = []
    if kinds["number"]:
        lines.append(f"Numbers were {how}: {_names(kinds['number'])}.")
    if kinds["date"]:
        lines.append(f"Dates were read as days and {how}: {_names(kinds['date'])}.")
    if kinds["category"]:
        lines.append(
            "Categories became an indicator for each level but the most frequent, those of a "
            f"column together with the weight of one number: {_names(kinds['category'])}."
        )
    return lines


def python_code(subject) -> str:
    """Python that fits the same model to the same table."""
    name = type(subject.model).__name__
    defaults = type(subject.asked)()._asdict()
    asked = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in subject.asked._asdict().items()
        if value != defaults[key]
    }
    arguments = ", ".join(f"{key}={value!r}" for key, value in asked.items())
    extra = [key for key in ("links", "chunks") if getattr(subject.ready, key) is not None]
    more = "".join(f", {key}=ready.{key}" for key in extra)
    reading = "".join(f", {key}={value!r}" for key, value in subject.table.options.items())
    filled = subject.X is not subject.ready.X
    return (
        f"from gnomon import {name}\n"
        + ("from gnomon.tools.building import fill_gaps\n" if filled else "")
        + "from gnomon.tools.tables import read_table\n"
        "from gnomon.tools.workflow import Question, prepare\n\n"
        f"table = read_table({str(subject.table.path)!r}{reading})\n"
        f"ready = prepare(table, Question({arguments}), print)\n"
        f"model = {_constructor(subject.model)}\n"
        f"X = {'fill_gaps(model, ready.X, ready.recipe, print)' if filled else 'ready.X'}\n"
        f"model.fit(X, {'ready.y' if subject.ready.y is not None else 'None'}{more})\n"
        "Z = model.transform(X)\n"
    )


def _constructor(model):
    defaults = type(model)().get_params()
    given = {k: v for k, v in model.get_params().items() if repr(v) != repr(defaults[k])}
    return f"{type(model).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


def _title(subject):
    target = subject.asked.target
    return f"{subject.table.path.stem}: {target}" if target else subject.table.path.stem


def _names(names, most=20):
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _asset(name):
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _hash(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
