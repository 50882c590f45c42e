"""What a comparison found, in words, in pictures and as code that refits the winner."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from gnomon._lazy import import_extra
from gnomon.displays.style import GREY, axes_or_new, colour, marker
from gnomon.estimators import MARGIN, check_option, count, why_size
from gnomon.tools.compare.standing import Row, Standing
from gnomon.tools.compare.trials import Outcome

HEADINGS = (
    *("model", "q", "score", "95 % interval", "RMSE", "vs leader", ""),
    *("predicts", "seen", "shuffled", "seconds", "MB"),
)


class CurvePoint(NamedTuple):
    """Score of a model that was shown so many labels per class, and its standard error."""

    model: str
    labels: int
    score: float
    error: float


@dataclass(frozen=True)
class Comparison:
    """The result of `gnomon.compare`.

    Attributes
    ----------
    rows : list of Row
        One for each model and number of components, the leader first.
    measure, evaluator : str
        What was measured, and the predictor on top of the embeddings.
    structure : bool or None
        Whether any candidate predicts y better than chance allows; None after one split, which
        is no test.
    structure_p : float
        The p value behind it, for the best of all candidates at once; NaN if there is none.
    leader : Row or None
        The row that is recommended; None if nothing could be scored.
    expected : tuple of float
        The score to expect of the leader, less what choosing the best of many adds to it, and
        its 95 % interval.
    recommendation : str
        One sentence, with its reason.
    skipped, failed : dict
        Why candidates were left out, or what went wrong with them.
    warnings : dict
        The first warning that each model gave.
    stopped : str
        Why not all trials were run; empty if they were.
    learning_curve : list of CurvePoint
        Scores against the number of labels, where asked for.
    outcomes : list of Outcome
        All single results.
    pipeline : Pipeline or None
        The leader with its preparation, not fitted.
    """

    rows: Sequence[Row]
    measure: str
    evaluator: str
    structure: bool | None
    structure_p: float
    leader: Row | None
    expected: tuple[float, float, float]
    recommendation: str
    skipped: dict[str, str]
    failed: dict[str, str]
    warnings: dict[str, str]
    stopped: str
    learning_curve: Sequence[CurvePoint] = ()
    outcomes: Sequence[Outcome] = ()
    pipeline: Pipeline | None = None
    code: str = ""

    def to_frame(self):
        """The table as a pandas data frame, one row for each model and number of components.

        Returns
        -------
        frame : pandas.DataFrame
            The columns are the fields of `Row`.
        """
        pandas = import_extra("pandas", "cli", "to_frame")
        return pandas.DataFrame(list(self.rows), columns=list(Row._fields))

    def snippet(self) -> str:
        """Code that fits the recommended model to the X and y of the comparison.

        Returns
        -------
        code : str
            Python code; empty if nothing is recommended.
        """
        return self.code

    def plot(self, kind="scores", *, ax=None):
        """Draw the comparison.

        Parameters
        ----------
        kind : {"scores", "dimension", "control", "labels"}, default="scores"
            "scores" has a line for each model, with its 95 % interval and what shuffled labels
            give; "dimension" the score against the number of components; "control" the
            score on seen and unseen rows with real and with shuffled labels; "labels" the
            learning curve.
        ax : matplotlib axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        ax : matplotlib axes
            With the drawing.
        """
        drawers = {
            "scores": _draw_scores,
            "dimension": _draw_dimension,
            "control": _draw_control,
            "labels": _draw_labels,
        }
        check_option("kind", kind, tuple(drawers))
        ax = axes_or_new(ax)
        drawers[kind](self, ax)
        return ax

    def __repr__(self):
        lines = _lines(self.rows)
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [_line(cells, widths) for cells in lines]
        notes = _notes(self)
        after = ["", *notes] if notes else []
        return "\n".join([self.recommendation, "", _head(self), *table, *after])

    def _repr_html_(self):
        headings, *cells = _lines(self.rows)
        lines = [_html_line(headings, "th")]
        for row, own in zip(self.rows, cells, strict=True):
            line = _html_line(own, "td")
            leads = row is self.leader
            lines.append(line.replace("<tr>", '<tr style="font-weight: bold">') if leads else line)
        table = f"<table>\n<caption>{escape(_head(self))}</caption>\n{''.join(lines)}</table>"
        notes = "".join(f"<p>{escape(note)}</p>\n" for note in _notes(self))
        return f"<p>{escape(self.recommendation)}</p>\n{table}\n{notes}"


def _html_line(cells, tag):
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>\n"


def _head(comparison):
    text = f"{comparison.measure} of {comparison.evaluator}; q is the number of components"
    return text + "; predicts: the same of the model's prediction"


def _lines(rows):
    """Headings and cells, without the columns that have nothing to say."""
    cells = [_cells(row) for row in rows]
    kept = [j for j, name in enumerate(HEADINGS) if not rows or any(line[j] for line in cells)]
    return [[line[j] for j in kept] for line in [HEADINGS, *cells]]


def _cells(row):
    return (
        row.model,
        str(row.n_components),
        _number(row.score),
        f"{row.low:.3f} to {row.high:.3f}",
        _number(row.rmse, ".4g"),
        _number(row.difference, "+.3f"),
        row.mark,
        _number(row.own),
        _number(row.apparent),
        _number(row.control),
        _number(row.seconds, ".2f"),
        _number(row.memory_mb, ".0f"),
    )


def _number(value, form=".3f"):
    return "" if math.isnan(value) else format(value, form)


def _line(cells, widths):
    first = cells[0].ljust(widths[0])
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  ".join([first, *rest]).rstrip()


def _notes(comparison):
    notes = [f"{name}: {reason}" for name, reason in comparison.skipped.items()]
    notes += [f"{name} failed: {reason}" for name, reason in comparison.failed.items()]
    if comparison.stopped:
        notes.append(f"not all trials were run: {comparison.stopped}")
    return notes


def recommend(standing: Standing, measure) -> str:
    """What to use, or that there is nothing to find, and why."""
    if not standing.rows:
        return "Nothing could be scored: every candidate failed or the time was too short."
    leader, rows = standing.rows[0], standing.rows
    name = f"{leader.model} with {count(leader.n_components, 'component')}"
    figure = _figure(standing, measure)
    if standing.structure is None:
        return f"{name} leads: {figure}. One split: no test. {_why_size(rows)}".rstrip()
    if not standing.structure:
        return (
            f"No structure found: the best candidate, {name}, has {figure}, "
            f"which chance explains ({_p(standing.structure_p)} for the best of all)."
        )
    return f"Use {name}: {figure}. {_others(rows)} {_why_size(rows)}".rstrip()


def _figure(standing, measure):
    """The score to expect of the leader, on how many rows, and with shuffled labels."""
    leader, (value, low, high) = standing.rows[0], standing.expected
    text = f"{measure} {value:.3f} ({low:.3f} to {high:.3f}, {count(leader.n_rows, 'row')})"
    taken = leader.score - value
    if taken >= 0.0005:
        text += f", {taken:.3f} taken off for choosing among {len(standing.rows)}"
    if not math.isnan(leader.control):
        text += f", {leader.control:.3f} with shuffled labels"
    text += f", {standing.baseline:.3f} by a constant guess"
    return text if low > standing.baseline else f"{text}: not better than guessing"


def _p(value):
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _others(rows):
    """Which other models are as good, worse, or cannot be told apart on so few rows."""
    leader, *rest = [row for row in rows if row.chosen]
    if not rest:
        return "No other model was compared."
    if leader.mark == "best":
        return "It is better than every other model."
    by_mark = {mark: [r for r in rest if r.mark == mark] for mark in ("as good", "open", "worse")}
    heads = f"As good within {MARGIN}", "Too few rows to tell it from", "It is better than"
    parts = [
        f"{head}: {_named(own)}" for head, own in zip(heads, by_mark.values(), strict=True) if own
    ]
    fastest = min([leader, *by_mark["as good"]], key=lambda row: row.seconds)
    if fastest is not leader:
        parts[0] += f", of which {fastest.model} is the fastest"
    return ". ".join(parts) + "."


def _named(rows):
    names = ", ".join(f"{row.model} ({row.n_components})" for row in rows[:4])
    return names + (f" and {len(rows) - 4} more" if len(rows) > 4 else "")


def _why_size(rows):
    """Why the leader has its number of components."""
    own = sorted((row for row in rows if row.model == rows[0].model), key=lambda r: r.n_components)
    if len(own) == 1:
        return ""
    reason = why_size({row.n_components: row.score for row in own}, rows[0].n_components)
    return f"Number of components: {reason}"


def refit_code(pipeline: Pipeline, *, learns: bool, links: str, uses_chunks: bool) -> str:
    """Code that builds the pipeline and fits it to X and y."""
    steps = [step for _, step in pipeline.steps]
    imports = {line for step in steps for line in _imports(step)}
    imports.add("from sklearn.pipeline import make_pipeline")
    lines = [f"    {' '.join(repr(step).split())}," for step in steps]
    model = "\n".join(["make_pipeline(", *lines, ")"])
    name = type(steps[-1]).__name__.lower()
    arguments = ["X", "y"] if learns else ["X"]
    arguments += [f"{name}__links={links}"] if links else []
    arguments += [f"{name}__chunks=chunks"] if uses_chunks else []
    # A model of links given wants them for its rows again, the graph of nearest rows does not.
    given = links == "links"
    fit = f"fit_transform({', '.join(arguments)})" if given else f"fit({', '.join(arguments)})"
    fit = f"Z = model.{fit}" if given else f"Z = model.{fit}.transform(X)"
    return "\n".join([*sorted(imports), "", f"model = {model}", fit, ""])


def _imports(step):
    yield f"from {_public_module(type(step))} import {type(step).__name__}"
    inner = getattr(step, "estimator", None)
    if inner is not None and not isinstance(inner, str):
        yield from _imports(inner)


def _public_module(cls):
    """The module that users import a class from: private parts of the path are left out."""
    if cls.__module__.startswith("gnomon.estimators"):
        return "gnomon"
    return ".".join(part for part in cls.__module__.split(".") if not part.startswith("_"))


def _chosen(comparison):
    return [row for row in comparison.rows if row.chosen]


def _draw_scores(comparison, ax):
    rows = _chosen(comparison)[::-1]
    place = np.arange(len(rows))
    reach = [[row.score - row.low for row in rows], [row.high - row.score for row in rows]]
    ax.errorbar([row.score for row in rows], place, xerr=reach, fmt="o", color=colour(0))
    ax.plot(
        [row.control for row in rows], place, "o", mfc="none", color=GREY, label="shuffled labels"
    )
    names = [f"{row.model} ({row.n_components})" + _star(row) for row in rows]
    ax.set_yticks(place, names)
    ax.set(xlabel=f"{comparison.measure}, 95 % interval (* leads, or as good)")
    _legend_above(ax, 1)


def _legend_above(ax, columns):
    """Where no bar or interval is."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False}
    ax.legend(fontsize="small", ncols=columns, **place)


def _star(row):
    return " *" if row.mark in ("best", "leads", "as good") else ""


def _draw_dimension(comparison, ax):
    rows = sorted(comparison.rows, key=lambda row: row.n_components)
    models = dict.fromkeys(row.model for row in comparison.rows)
    points = {model: [row for row in rows if row.model == model] for model in models}
    _draw_curves(ax, points, "n_components")
    ax.set(xlabel="number of components", ylabel=comparison.measure)
    ax.legend(fontsize="small", ncols=2)


def _draw_curves(ax, points, x):
    """Score with its standard error against a field of the points, a curve for each model."""
    for index, (model, own) in enumerate(points.items()):
        at, scores = [getattr(point, x) for point in own], [point.score for point in own]
        look = {"color": colour(index), "marker": marker(index), "ms": 4, "label": model}
        ax.errorbar(at, scores, yerr=[point.error for point in own], **look)


def _draw_control(comparison, ax):
    rows = _chosen(comparison)
    place, width = np.arange(len(rows)), 0.2
    series = ("apparent", "score", "control_apparent", "control")
    names = ("seen rows", "unseen rows", "seen, shuffled labels", "unseen, shuffled labels")
    for index, (column, name) in enumerate(zip(series, names, strict=True)):
        heights = [getattr(row, column) for row in rows]
        ax.bar(place + (index - 1.5) * width, heights, width, label=name, color=colour(index))
    ax.set_xticks(place, [row.model for row in rows], rotation=45, ha="right")
    ax.set(ylabel=comparison.measure)
    _legend_above(ax, 2)


def _draw_labels(comparison, ax):
    if not comparison.learning_curve:
        raise ValueError("this comparison has no learning curve; pass learning_curve to compare")
    points: dict[str, list] = {point.model: [] for point in comparison.learning_curve}
    for point in comparison.learning_curve:
        points[point.model].append(point)
    _draw_curves(ax, points, "labels")
    ax.set(xlabel="labels in training (for each class)", ylabel=comparison.measure)
    ax.legend(fontsize="small")
