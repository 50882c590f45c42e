"""What a model file says of itself: as plain values for programs, in sentences for people.

A file of `gnomon fit` has beside the model the rule for its tables, the question, how its table
was read, and facts of the fit. A file saved in Python has none of these, an old one some.
"""

import shlex
from datetime import datetime

import gnomon
from gnomon.estimators import count
from gnomon.exceptions import visible
from gnomon.tools.compare.held_out import Score

# As many columns, and levels of one, as can be taken in at a glance.
MOST_COLUMNS, MOST_LEVELS = 20, 8
# What a column is for that is no feature, by the part of the question that names it.
ROLES = {"target": "target", "id": "names of the rows", "chunks": "groups of one class"}
TASKS = {"classes": "the classes", "numeric": "the numbers"}
# What goes on from a model file, by the method that it takes.
USES = {
    "transform": ("transform", "new rows on the same map"),
    "predict": ("predict", "what it says of their target"),
    "impute": ("impute", "their gaps filled, with standard deviations"),
    "report": ("transform", "the page on them, one file that opens offline"),
}


def for_programs(file, path) -> dict:
    """All that the file says, as plain values; None for what it does not say."""
    model, notes = file.document["model"], file.notes
    fit, asked = notes.get("fit", {}), notes.get("question", {})
    params, fitted = model["params"], model["attributes"]
    return {
        "path": str(path),
        "model": model["estimator"],
        "steps": _steps(params),
        "dimensions": fitted.get("n_components_", params.get("n_components")),
        "features": fitted.get("n_features_in_"),
        "target": asked.get("target"),
        "task": asked.get("task") if asked.get("target") else None,
        **{name: fit.get(name) for name in ("date", "table", "rows", "labelled", "classes")},
        "held out": fit.get("score"),
        "reading": notes.get("reading"),
        "columns": _columns(notes.get("recipe"), asked),
        "parameters": params,
        "attributes": list(fitted),
        "arrays": len(file.arrays),
        "bytes": sum(array.nbytes for array in file.arrays.values()),
        "format": file.document["format"],
        "versions": file.document["versions"],
        "checksum": "right",
    }


def _steps(params):
    """The classes that a pipeline is made of, None for a model."""
    if "steps" not in params:
        return None
    steps = [step["tuple"][1] for step in params["steps"]]
    return [step["estimator"] if isinstance(step, dict) else step for step in steps]


def _names(asked) -> tuple:
    """None, one or several names that the question has for a role."""
    return () if asked is None else (asked,) if isinstance(asked, str) else tuple(asked)


def _columns(recipe, asked):
    """Name, use and levels of every column of the table; None without a rule for tables."""
    if recipe is None:
        return None
    roles = {name: role for part, role in ROLES.items() for name in _names(asked.get(part))}
    ignored = dict.fromkeys(asked.get("ignore", ()), "by --ignore")
    found = [{"name": name, "use": role} for name, role in roles.items()]
    for feature in recipe["features"]:
        levels = {"levels": feature["levels"]} if feature["levels"] else {}
        found.append({"name": feature["column"], "use": feature["kind"]} | levels)
    found += [{"name": name, "use": "number"} for name in recipe["matrix_names"]]
    left_out = ignored | recipe["left_out"]
    return found + [{"name": n, "use": "left out", "reason": r} for n, r in left_out.items()]


def for_people(file, path, *, describe, details=False) -> dict:
    """What a person wants to know, a line or a few for each name; ``describe`` words a score."""
    known, notes = _cleaned(for_programs(file, path)), _cleaned(file.notes)
    score, versions = known["held out"], known["versions"]
    pairs = {
        "model": _model(known),
        "fitted": _fitted(known),
        "rows": _rows(known),
        "held out": None if score is None else describe(Score(**score)),
        "reads": _reads(notes),
        "columns": _column_lines(known["columns"], None if details else MOST_COLUMNS),
        "use it": _uses(known),
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    pairs |= _technical(known) if details else {"more": "--details, or --json for programs"}
    return {name: text for name, text in pairs.items() if text}


def _cleaned(value):
    """A value of the file whose texts can do nothing to a terminal, nor forge a line of ours."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(part) for key, part in value.items()}
    return type(value)(map(_cleaned, value)) if type(value) in (list, tuple) else value


def _model(known):
    """What the model is, in a sentence, and its own description below."""
    name, q, d = known["model"], known["dimensions"], known["features"]
    text = f"{name}: a map of {count(q, 'dimension')}" if isinstance(q, int) else name
    text += "" if d is None else f" from {count(d, 'feature')}"
    text += "" if known["steps"] is None else f": {', '.join(map(str, known['steps']))}"
    if known["target"] is not None:
        targets = ", ".join(map(repr, _names(known["target"])))
        text += f", for {TASKS.get(known['task'], 'the target')} {targets}"
    about = getattr(gnomon, name).__doc__ if name in gnomon.__all__ else None
    return text + (f"\n{about.splitlines()[0]}" if about else "")


def _fitted(known):
    if known["date"] is None:
        return None
    return f"{datetime.fromisoformat(known['date']):%Y-%m-%d %H:%M %Z} to {known['table']!r}"


def _rows(known):
    if known["rows"] is None:
        return None
    labelled, classes = known["labelled"], known["classes"]
    text = f"{known['rows']:,}" + ("" if labelled is None else f", {labelled:,} labelled")
    return text + (f": {_some([f'{n!r} {m:,}' for n, m in classes.items()])}" if classes else "")


def _reads(notes):
    """How a table is read and what its numbers become."""
    if "recipe" not in notes:
        return None
    recipe, options = notes["recipe"], notes.get("reading") or {}
    form = "a matrix" if recipe["matrix_names"] else "a table with named columns"
    parts = [form, *(f"{name} {value!r}" for name, value in options.items())]
    how = "centred and divided by their standard deviations" if recipe["scaled"] else "not scaled"
    return f"{', '.join(parts)}; numbers are {how}"


def _column_lines(columns, most):
    """A line a column, those that are left out last, as many as can be taken in."""
    if columns is None:
        return None
    lines = []
    for left_out in (False, True):
        group = [column for column in columns if (column["use"] == "left out") == left_out]
        lines += [f"{column['name']!r}: {_use(column)}" for column in group[:most]]
        if most is not None and len(group) > most:
            lines.append(f"and {len(group) - most:,} more, with --details")
    return "\n".join(lines)


def _use(column):
    levels = [repr(level) for level in column.get("levels", ())]
    if levels:
        return f"{column['use']} of {count(len(levels), 'level')}, {_some(levels)}"
    return f"{column['use']}, {column['reason']}" if "reason" in column else column["use"]


def _uses(known):
    """The commands that take the file; in Python where it has no rule for tables."""
    if known["columns"] is None:
        takes = "a matrix, no table" if known["steps"] is None else "what it was fitted on"
        return f"model = gnomon.load({known['path']!r})  # in Python; it takes {takes}"
    able = getattr(gnomon, known["model"], None)
    path, lines = shlex.quote(known["path"]), []
    for command, (method, what) in USES.items():
        if hasattr(able, method) and (command != "predict" or known["target"] is not None):
            lines.append((f"gnomon {command} {path} new.csv", what))
    width = max(len(line) for line, _ in lines)
    return "\n".join(f"{line.ljust(width)}  # {what}" for line, what in lines)


def _technical(known):
    """What is of use to somebody who doubts the file."""
    given = {name: value for name, value in known["parameters"].items() if value is not None}
    given.pop("steps", None)
    return {
        "parameters": ", ".join(f"{name}={value!r}" for name, value in given.items()),
        "attributes": ", ".join(known["attributes"]),
        "arrays": f"{known['arrays']:,}, {count(known['bytes'], 'byte')}",
        "format": str(known["format"]),
        "checksum": known["checksum"],
    }


def _some(texts, most=MOST_LEVELS):
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
