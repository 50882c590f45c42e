"""A comparison in words: the table, the recommendation, the code that refits the winner."""

import math
from html import escape

from sklearn.pipeline import Pipeline

HEADINGS = ("model", "q", "score", "sd", "vs leader", "p", "", "seen", "shuffled", "seconds", "MB")


def render(comparison) -> str:
    """The comparison as a table in plain text, with its notes."""
    lines = [_cells(row) for row in comparison.rows]
    widths = [max(len(line[i]) for line in [HEADINGS, *lines]) for i in range(len(HEADINGS))]
    table = [_line(cells, widths) for cells in [HEADINGS, *lines]]
    notes = _notes(comparison)
    after = ["", *notes] if notes else []
    return "\n".join([comparison.recommendation, "", _head(comparison), *table, *after])


def render_html(comparison) -> str:
    """The same for a notebook; the leader is bold."""
    lines = [_html_line(HEADINGS, "th")]
    for row in comparison.rows:
        line = _html_line(_cells(row), "td")
        leads = row is comparison.leader
        lines.append(line.replace("<tr>", '<tr style="font-weight: bold">') if leads else line)
    table = f"<table>\n<caption>{escape(_head(comparison))}</caption>\n{''.join(lines)}</table>"
    notes = "".join(f"<p>{escape(note)}</p>\n" for note in _notes(comparison))
    return f"<p>{escape(comparison.recommendation)}</p>\n{table}\n{notes}"


def _html_line(cells, tag):
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>\n"


def _head(comparison):
    return f"{comparison.measure} by {comparison.evaluator}; q is the number of components"


def _cells(row):
    p = "" if math.isnan(row.p_value) else f"{row.p_value:.3f}"
    return (
        row.model,
        str(row.n_components),
        _number(row.score),
        _number(row.sd),
        _number(row.difference, "+.3f"),
        p,
        row.mark,
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


def recommend(rows, leader, measure, structure_p, structure) -> str:
    """One sentence: what to use, or that there is nothing to find, and why."""
    if leader is None:
        return "Nothing could be scored: every candidate failed or the time was too short."
    name = f"{leader.model} with {_components(leader.n_components)}"
    shuffled = "" if math.isnan(leader.control) else f", {leader.control:.3f} with shuffled labels"
    if not structure:
        return (
            f"No structure found: the best candidate, {name}, has {measure} {leader.score:.3f}"
            f"{shuffled}, which chance explains ({_p(structure_p)} for the best of all)."
        )
    return (
        f"Use {name}: {measure} {leader.score:.3f} (sd {leader.sd:.3f} over "
        f"{leader.n_splits} splits){shuffled}; {_standing(rows, leader)}."
    )


def _p(value):
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _components(count):
    return f"{count} component" + ("" if count == 1 else "s")


def _standing(rows, leader):
    others = [row for row in rows if row.chosen and row.model != leader.model]
    tied = [row for row in others if row.mark == "tied"]
    if not others:
        return "no other model was compared"
    if not tied:
        return f"better than every other model (corrected {_p(max(r.p_value for r in others))})"
    names = ", ".join(f"{row.model} ({row.n_components})" for row in tied[:4])
    more = f" and {len(tied) - 4} more" if len(tied) > 4 else ""
    faster = min([leader, *tied], key=lambda row: row.seconds)
    hint = "" if faster is leader else f", of which {faster.model} is the fastest"
    return f"not distinguishable from {names}{more}{hint}"


def refit_code(pipeline: Pipeline, *, learns: bool, uses_links: bool, uses_chunks: bool) -> str:
    """Code that builds the pipeline and fits it to X and y."""
    steps = [step for _, step in pipeline.steps]
    imports = sorted({line for step in steps for line in _imports(step)})
    imports.append("from sklearn.pipeline import make_pipeline")
    model = "make_pipeline(\n    " + ",\n    ".join(_expression(step) for step in steps) + ",\n)"
    name = type(steps[-1]).__name__.lower()
    arguments = ["X", "y"] if learns else ["X"]
    arguments += [f"{name}__chunks=chunks"] if uses_chunks else []
    fit = f"Z = model.fit({', '.join(arguments)}).transform(X)"
    if uses_links:
        fit = f"Z = model.fit_transform(X, {name}__links=links)"
    return "\n".join([*sorted(set(imports)), "", f"model = {model}", fit, ""])


def _expression(step):
    return " ".join(repr(step).split())


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
