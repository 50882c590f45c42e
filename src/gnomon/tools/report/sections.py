"""The sections of the report that are text, tables and small charts.

Charts are SVG drawn with classes, so that the page's style colours them. Every text is escaped;
nothing has a style attribute, which the page's policy would refuse.
"""

import numpy as np
from markupsafe import Markup, escape

from gnomon.estimators import count

# Of a chart in its own units: its width, room for names and numbers beside it, height of a bar.
WIDTH, LEFT, RIGHT, ROW = 560, 190, 70, 22
# Where a plot with axes has its left and lower end.
PLOT_LEFT, PLOT_BOTTOM = 80, 172
# What can be taken in at a glance.
MOST_ROWS = 15
MOST_FEATURES = 25
MOST_AXES = 6


def facts(subject):
    """Large figures at the top."""
    recipe = subject.ready.recipe
    pairs = [
        _fact(subject.n_rows, "row"),
        _fact(len(recipe.names), "feature"),
        _fact(subject.Z.shape[1], "dimension"),
    ]
    if subject.ready.y is not None:
        pairs.append(_fact(int(subject.labelled.sum()), "labelled row"))
    gaps, cells = sum(subject.ready.gaps.values()), subject.n_rows * len(recipe.columns)
    if gaps:
        pairs.append((f"{gaps / cells:.1%}", "of the cells are gaps"))
    if subject.score is not None:
        pairs.append((f"{subject.score.value:.3f}", f"held-out {subject.score.name}"))
    return pairs


def _fact(n, noun):
    return tuple(count(n, noun).split(" ", 1))


def picture_hint(subject):
    """How to read the picture."""
    text = (
        "A point is a row. Drag to move; Ctrl and wheel, or two fingers, zoom; "
        "Box and Lasso select rows; click a name beside the picture to hide it."
    )
    if subject.labelled is not None and not subject.labelled.all():
        text += " Filled: labelled. Open: no label; coloured by the prediction where there is one."
    return text


def score(subject):
    """The held-out score against permuted labels and against guessing."""
    found = subject.score
    if found is None:
        return None
    name, low, high = found.name, found.low, found.high
    rows = [("this model", found.value, low, high)]
    sentence = (
        f"On rows it had not seen, the {name} is {found.value:.3f}; "
        f"the 95 % interval is {low:.3f} to {high:.3f} ({count(found.n_rows, 'row')})."
    )
    if found.control is not None:
        rows.append(("permuted labels", found.control, None, None))
        sentence += f" {_verdict(found)}"
    if found.baseline is not None:
        rows.append(("a constant guess", found.baseline, None, None))
    values = [v for row in rows for v in row[1:] if v is not None]
    pad = (high - low) or 1.0
    bounds = {"accuracy": (0.0, 1.0), "R²": (min(*values, 0.0), max(values))}
    chart = draw_intervals(rows, *bounds.get(name, (low - pad, high + pad)))
    labelled = " over the labelled rows; unlabelled rows stay in training"
    method = f"Cross-validation{'' if found.control is None else labelled}."
    return {"sentence": sentence, "chart": chart, "method": method}


def _verdict(found):
    if found.control < found.low:
        return (
            f"With permuted labels the same model reaches {found.control:.3f}: "
            "what it sees in the labels is there."
        )
    return (
        f"With permuted labels the same model reaches {found.control:.3f}, no worse than the "
        "interval: do not read the classes off this picture."
    )


def labels(subject):
    """How many rows of each class are labelled."""
    if subject.ready.kind != "classes":
        return None
    given = subject.ready.y[subject.labelled]
    names, counts = np.unique(given.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_ROWS]
    names, counts = names[order], counts[order]
    texts, pale, more = [f"{count}" for count in counts], None, ""
    if subject.predicted is not None:
        open_rows = subject.predicted[~subject.labelled].astype(str)
        extra = [int((open_rows == name).sum()) for name in names]
        texts = [f"{text} + {e}" if e else text for text, e in zip(texts, extra, strict=True)]
        pale, more = counts + extra, "; lighter: rows without a label that are predicted so"
    of = f"of {count(len(subject.ready.y), 'row')}"
    return {
        "sentence": f"{count(len(given), f'{of} has', f'{of} have')} a label{more}.",
        "chart": draw_bars(names, counts, texts, pale=pale),
    }


def comparison(result):
    """The chosen row of each model in a `Comparison`."""
    if result is None:
        return None
    names = ["model", "dimensions", result.measure, "sd", "with shuffled labels", "seconds", ""]
    rows = [
        [
            row.model,
            row.n_components,
            f"{row.score:.3f}",
            f"{row.sd:.3f}",
            "" if np.isnan(row.control) else f"{row.control:.3f}",
            f"{row.seconds:.2f}",
            row.mark,
        ]
        for row in result.rows
        if row.chosen
    ]
    return {"sentence": result.recommendation, "names": names, "rows": rows}


def next_labels(subject):
    """The unlabelled rows whose prediction is least sure."""
    if subject.proba is None or subject.labelled.all():
        return None
    proba = np.clip(subject.proba, 1e-300, 1)
    entropy = -(proba * np.log(proba)).sum(axis=1) / np.log(proba.shape[1])
    rows = np.flatnonzero(~subject.labelled)
    rows = rows[np.argsort(-entropy[rows], kind="stable")[:MOST_ROWS]]
    classes = np.asarray(subject.model.classes_).astype(str)
    return {
        "hint": "The rows whose class the model knows least; a label there teaches it most.",
        "names": ["most likely", "next", "entropy (1 = no idea)"],
        "rows": [
            _row(subject, i, [*_likely(subject, i, classes), f"{entropy[i]:.2f}"]) for i in rows
        ],
    }


def _likely(subject, i, classes):
    """The two most likely classes of a row, with their probabilities."""
    top = np.argsort(-subject.proba[i], kind="stable")[:2]
    return [f"{classes[k]} ({subject.proba[i, k]:.0%})" for k in top]


def _row(subject, i, cells):
    return {"id": str(subject.ready.ids[i]), "index": int(i), "cells": cells}


def doubtful(subject):
    """Labelled rows that the model would label otherwise."""
    if subject.proba is None:
        return None
    classes = np.asarray(subject.model.classes_).astype(str)
    given = np.array([str(value) for value in subject.ready.y])
    rows = np.flatnonzero(subject.labelled & (subject.predicted.astype(str) != given))
    rows = rows[np.argsort(-subject.proba[rows].max(axis=1), kind="stable")[:10]]
    if len(rows) == 0:
        return None
    return {
        "names": ["label", "most likely", "next"],
        "rows": [_row(subject, i, [given[i], *_likely(subject, i, classes)]) for i in rows],
    }


def loadings(subject):
    """The features that weigh most, one column per axis."""
    components = getattr(subject.model, "components_", None)
    names = subject.ready.recipe.names
    if components is None or components.shape[1] != len(names):
        return None
    components = np.asarray(components[:MOST_AXES], dtype=float)
    unknown = np.full(components.shape, np.nan)
    sd = np.asarray(getattr(subject.model, "loadings_sd_", unknown))[: len(components)]
    top = np.argsort(-np.abs(components).max(axis=0), kind="stable")[:MOST_FEATURES]
    greatest = np.abs(components).max() or 1.0
    pairs = {j: zip(components[:, j], sd[:, j], strict=True) for j in top}
    rows = [{"name": names[j], "cells": [_cell(*c, greatest) for c in pairs[j]]} for j in top]
    left = len(names) - len(top)
    more = f" {count(left, 'feature has', 'features have')} smaller ones." if left else ""
    return {
        "hint": "Loadings: how much a feature moves when an axis moves by one." + more,
        "names": [f"z{k + 1}" for k in range(len(components))],
        "rows": rows,
    }


def _cell(value, sd, greatest):
    step = round(5 * abs(value) / greatest)
    kind = "" if step == 0 else f"{'p' if value > 0 else 'n'}{step}"
    title = "" if np.isnan(sd) else f"± {sd:.3f}"
    return {"text": f"{value:.2f}", "kind": kind, "title": title}


def figures(subject):
    """Relevance, choice of the dimension, convergence, gaps: those the model has."""
    makers = (_relevance, _dimension, _convergence, _gaps)
    return [chart for chart in (make(subject) for make in makers) if chart is not None]


def _relevance(subject):
    """What each axis carries of the features, and of the target where the model tells."""
    model = subject.model
    shares = first_of(model, "explained_variance_ratio_", "input_share_")
    text = "Share of the variance of the features along each axis."
    if shares is None:
        shares = first_of(model, "relevance_")
        text = "Relevance of each axis: how far it spreads the rows beyond noise."
    if shares is None or np.ndim(shares) != 1:
        return None
    bars = [[(f"z{j + 1}", share)] for j, share in enumerate(shares)]
    target = first_of(model, "target_share_")
    if target is not None and np.ndim(target) == 1:
        text = "Share of the variance of the features, and of the target, along each axis."
        for j, share in enumerate(target):
            bars[j].append((f"z{j + 1}, target", share))
    names, values = zip(*[bar for axis in bars for bar in axis][:MOST_ROWS], strict=True)
    svg = draw_bars(names, values, [f"{v:.3g}" for v in values])
    return {"key": "relevance", "title": "What each axis carries", "text": text, "svg": svg}


def first_of(model, *names):
    """The first of these attributes that the model has, or None."""
    return next((getattr(model, name) for name in names if hasattr(model, name)), None)


def _dimension(subject):
    curve = _criterion(subject)
    if curve is None or len(curve[0]) < 2:
        return None
    *points, name = curve
    text = f"{name}, with one standard deviation over splits; the chosen number is coloured."
    svg = draw_curve(*points, subject.Z.shape[1])
    return {"key": "dimension", "title": "How many dimensions", "text": text, "svg": svg}


def _criterion(subject):
    """Numbers of dimensions tried, mean and deviation of a criterion, and its name."""
    if subject.choice is not None:
        _, tried, means, sds = zip(*subject.choice.rows, strict=True)
        return tried, means, sds, f"{subject.choice.criterion.capitalize()} on held-out rows"
    found = getattr(subject.model, "criterion_", None)
    if not isinstance(found, dict) or not {"n_components", "mean", "std"} <= found.keys():
        return None
    tried = [int(q) for q in found["n_components"]]
    return tried, found["mean"], found["std"], "Log likelihood per held-out row"


def _convergence(subject):
    objective = getattr(subject.model, "objective_", None)
    if objective is None or len(objective) < 3:
        return None
    settled = getattr(subject.model, "converged_", True)
    text = f"The objective over {len(objective)} iterations; " + (
        "it settled." if settled else "it had not settled when the fit ended."
    )
    svg = draw_line(objective, "iteration")
    return {"key": "convergence", "title": "Convergence", "text": text, "svg": svg}


def _gaps(subject):
    gaps = subject.ready.gaps
    if not gaps:
        return None
    top = sorted(gaps, key=lambda name: -gaps[name])[:MOST_ROWS]
    counts = [gaps[name] for name in top]
    svg = draw_bars(top, counts, [f"{number / subject.n_rows:.1%}" for number in counts])
    cells = count(sum(gaps.values()), "cell is", "cells are")
    text = f"{cells} empty, in {count(len(gaps), 'column')}."
    return {"key": "gaps", "title": "Gaps", "text": text, "svg": svg}


def draw_bars(names, values, texts, *, pale=None) -> Markup:
    """Horizontal bars with a name on the left and a text on the right.

    ``pale`` are lengths drawn behind in a lighter shade.
    """
    values = np.asarray(values, dtype=float)
    longest = max(np.max(values), np.max(pale) if pale is not None else 0, 1e-300)
    room = WIDTH - LEFT - RIGHT
    parts = []
    for i, (name, value, text) in enumerate(zip(names, values, texts, strict=True)):
        y = i * ROW
        if pale is not None:
            parts.append(_rect(y, room * pale[i] / longest, "pale"))
        parts.append(_rect(y, room * value / longest, "fill"))
        parts.append(_text(LEFT - 8, y + 14, _short(name), "end", title=name))
        end = LEFT + room * max(value, 0 if pale is None else pale[i]) / longest
        parts.append(_text(end + 6, y + 14, text, "start", "soft"))
    return _svg(parts, len(values) * ROW + 2)


def draw_line(values, label) -> Markup:
    """A curve against the number of the iteration."""
    values = np.asarray(values, dtype=float)
    x = PLOT_LEFT + (WIDTH - PLOT_LEFT - 20) * np.linspace(0, 1, len(values))
    low, high = float(values.min()), float(values.max())
    y = PLOT_BOTTOM - (PLOT_BOTTOM - 14) * (values - low) / (high - low or 1)
    keep = np.unique(np.linspace(0, len(values) - 1, min(len(values), 400)).astype(int))
    path = " ".join(f"{x[i]:.1f},{y[i]:.1f}" for i in keep)
    parts = [
        Markup('<polyline class="line" points="{}"/>').format(path),
        _text(PLOT_LEFT, PLOT_BOTTOM + 18, "1", "middle", "soft"),
        _text(WIDTH - 20, PLOT_BOTTOM + 18, f"{len(values)}", "end", "soft"),
    ]
    return _svg([*parts, *_axes(f"{low:.6g}", f"{high:.6g}", label, 18)], PLOT_BOTTOM + 28)


def draw_intervals(rows, low, high) -> Markup:
    """A dot for each (name, value, lower, upper), with a whisker where there is an interval."""
    room = WIDTH - LEFT - RIGHT

    def at(value):
        return LEFT + room * (min(max(value, low), high) - low) / (high - low or 1)

    parts = [
        _text(at(low), len(rows) * 28 + 14, f"{low:.3g}", "middle", "soft"),
        _text(at(high), len(rows) * 28 + 14, f"{high:.3g}", "middle", "soft"),
    ]
    for i, (name, value, lower, upper) in enumerate(rows):
        y = i * 28 + 12
        parts.append(_rule(at(low), at(high), y, "grid"))
        if lower is not None:
            parts.append(_rule(at(lower), at(upper), y, "whisker"))
        parts.append(_dot(at(value), y, 5, i == 0))
        parts.append(_text(LEFT - 8, y + 4, name, "end"))
        parts.append(_text(WIDTH - RIGHT + 8, y + 4, f"{value:.3f}", "start", "soft"))
    return _svg(parts, len(rows) * 28 + 22)


def draw_curve(x, mean, sd, chosen) -> Markup:
    """Means with whiskers against whole numbers, the chosen one marked."""
    mean, sd = np.asarray(mean, dtype=float), np.asarray(sd, dtype=float)
    low, high = float((mean - sd).min()), float((mean + sd).max())
    at_x = PLOT_LEFT + 12 + (WIDTH - PLOT_LEFT - 40) * np.arange(len(x)) / max(1, len(x) - 1)
    heights = (np.array([mean - sd, mean, mean + sd]) - low) / (high - low or 1)
    at_y = PLOT_BOTTOM - (PLOT_BOTTOM - 14) * heights
    every = max(1, len(x) // 14)
    parts = _axes(f"{low:.5g}", f"{high:.5g}", "dimensions", 34)
    for i, number in enumerate(x):
        whisker = '<line class="axis" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>'
        parts.append(Markup(whisker).format(at_x[i], at_y[0, i], at_y[2, i]))
        is_chosen = number == chosen
        parts.append(_dot(at_x[i], at_y[1, i], 6 if is_chosen else 4, is_chosen))
        if i % every == 0 or is_chosen:
            parts.append(_text(at_x[i], PLOT_BOTTOM + 18, f"{number}", "middle", "soft"))
    return _svg(parts, PLOT_BOTTOM + 38)


def _axes(low, high, label, below):
    """The line at the bottom, the lowest and highest value beside it, a name under it."""
    return [
        _rule(PLOT_LEFT, WIDTH - 10, PLOT_BOTTOM, "axis"),
        _text(PLOT_LEFT - 6, PLOT_BOTTOM, low, "end", "soft"),
        _text(PLOT_LEFT - 6, 18, high, "end", "soft"),
        _text((PLOT_LEFT + WIDTH) / 2, PLOT_BOTTOM + below, label, "middle", "soft"),
    ]


def _dot(x, y, radius, marked):
    shade = "fill" if marked else "grey"
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(shade, x, y, radius)


def _rect(y, length, shade):
    return Markup('<rect class="{}" x="{}" y="{}" width="{:.1f}" height="{}" rx="2"/>').format(
        shade, LEFT, y + 3, max(length, 0.5), ROW - 7
    )


def _rule(x1, x2, y, shade):
    return Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>').format(
        shade, x1, x2, y, y
    )


def _text(x, y, text, anchor, shade="", title=None):
    inner = escape(text) if title is None else Markup("{}<title>{}</title>").format(text, title)
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>').format(
        x, y, anchor, shade, inner
    )


def _short(name, most=22):
    return name if len(name) <= most else name[: most - 1] + "…"


def _svg(parts, height):
    inner = Markup("").join(parts)
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" xmlns="http://www.w3.org/2000/svg">{}</svg>'
    ).format(WIDTH, height, inner)
