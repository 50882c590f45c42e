"""The sections of the report that are text, tables and small charts."""

import numpy as np

from gnomon.tools.report import charts

MOST_ROWS = 15
MOST_FEATURES = 25
MOST_AXES = 6


def facts(subject):
    """Large figures at the top."""
    n, d = subject.ready.X.shape
    pairs = [
        (f"{subject.n_rows:,}", "rows"),
        (f"{d:,}", "features"),
        (f"{subject.Z.shape[1]}", "dimensions"),
    ]
    if subject.ready.y is not None:
        pairs.append((f"{int(subject.labelled.sum()):,}", "labelled rows"))
    gaps = gap_counts(subject).sum()
    if gaps:
        pairs.append((f"{gaps / (n * d):.1%}", "of the cells are gaps"))
    if subject.score is not None:
        pairs.append((f"{subject.score.value:.3f}", f"held-out {subject.score.name}"))
    return pairs


def lead(subject):
    """One sentence under the title."""
    target = f", target {subject.asked.target!r}" if subject.asked.target else ""
    return f"{type(subject.model).__name__} of {subject.table.path.name}{target}"


def picture_hint(subject):
    """How to read the picture."""
    text = "A point is a row. Scroll or pinch to zoom, drag to move, click a name to hide it."
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
        f"the 95 % interval is {low:.3f} to {high:.3f} ({found.n_rows} rows)."
    )
    if found.control is not None:
        rows.append(("permuted labels", found.control, None, None))
        sentence += f" {_verdict(found)}"
    if found.baseline is not None:
        rows.append(("a constant guess", found.baseline, None, None))
    values = [v for row in rows for v in row[1:] if v is not None]
    bounds = (0.0, 1.0) if name == "accuracy" else (min(*values, 0.0), max(values))
    if name not in ("accuracy", "R²"):
        pad = (high - low) or 1.0
        bounds = (low - pad, high + pad)
    return {
        "sentence": sentence,
        "chart": charts.intervals(rows, *bounds),
        "method": "Cross-validation over the labelled rows; unlabelled rows stay in training."
        if found.control is not None
        else "Cross-validation.",
    }


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
    pale = None
    if subject.predicted is not None:
        open_rows = subject.predicted[~subject.labelled].astype(str)
        pale = [counts[i] + int((open_rows == names[i]).sum()) for i in order]
    texts = [f"{counts[i]}" for i in order]
    if pale is not None:
        extra = [total - counts[i] for total, i in zip(pale, order, strict=True)]
        texts = [f"{t} + {e}" if e else t for t, e in zip(texts, extra, strict=True)]
    more = "; lighter: rows without a label that are predicted so" if pale is not None else ""
    return {
        "sentence": f"{len(given)} of {len(subject.ready.y)} rows have a label{more}.",
        "chart": charts.bars([names[i] for i in order], counts[order], texts, pale=pale),
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
        "rows": [_likely(subject, i, classes, f"{entropy[i]:.2f}") for i in rows],
    }


def _likely(subject, i, classes, last):
    first, second = np.argsort(-subject.proba[i], kind="stable")[:2]
    cells = [f"{classes[k]} ({subject.proba[i, k]:.0%})" for k in (first, second)]
    return {"id": str(subject.ready.ids[i]), "index": int(i), "cells": [*cells, last]}


def doubtful(subject):
    """Labelled rows that the model would label otherwise."""
    if subject.proba is None:
        return None
    classes = np.asarray(subject.model.classes_).astype(str)
    given = np.array([str(value) for value in subject.ready.y])
    differ = subject.labelled & (subject.predicted.astype(str) != given)
    rows = np.flatnonzero(differ)
    rows = rows[np.argsort(-subject.proba[rows].max(axis=1), kind="stable")[:10]]
    if len(rows) == 0:
        return None
    return {
        "names": ["label", "most likely", "next"],
        "rows": [_doubt(_likely(subject, i, classes, given[i])) for i in rows],
    }


def _doubt(row):
    *likely, given = row["cells"]
    return row | {"cells": [given, *likely]}


def loadings(subject):
    """The features that weigh most, one column per axis."""
    components = getattr(subject.model, "components_", None)
    names = subject.ready.recipe.names
    if components is None or components.shape[1] != len(names):
        return None
    components = np.asarray(components[:MOST_AXES], dtype=float)
    deviations = getattr(subject.model, "loadings_sd_", None)
    top = np.argsort(-np.abs(components).max(axis=0), kind="stable")[:MOST_FEATURES]
    greatest = np.abs(components).max() or 1.0
    rows = []
    for j in top:
        sd = None if deviations is None else np.asarray(deviations)[: len(components), j]
        cells = [
            _cell(value, greatest, None if sd is None else sd[k])
            for k, value in enumerate(components[:, j])
        ]
        rows.append({"name": names[j], "cells": cells})
    left = len(names) - len(top)
    more = f" {left} features with smaller ones are left out." if left else ""
    return {
        "hint": "Loadings: how much a feature moves when an axis moves by one." + more,
        "names": [f"z{k + 1}" for k in range(len(components))],
        "rows": rows,
    }


def _cell(value, greatest, sd):
    step = round(5 * abs(value) / greatest)
    kind = "" if step == 0 else f"{'p' if value > 0 else 'n'}{step}"
    title = "" if sd is None else f"± {sd:.3f}"
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
    names = [f"z{j + 1}" for j in range(len(shares))]
    bars = list(zip(names, np.asarray(shares, dtype=float), strict=True))[:MOST_ROWS]
    target = first_of(model, "target_share_")
    if target is not None and np.ndim(target) == 1:
        text = "Share of the variance of the features, and of the target, along each axis."
        target_bars = [(f"{n}, target", float(v)) for n, v in zip(names, target, strict=True)]
        bars = [bar for pair in zip(bars, target_bars, strict=False) for bar in pair][:MOST_ROWS]
    values = [value for _, value in bars]
    svg = charts.bars([name for name, _ in bars], values, [f"{v:.3g}" for v in values])
    return {"key": "relevance", "title": "What each axis carries", "text": text, "svg": svg}


def first_of(model, *names):
    """The first of these attributes that the model has, or None."""
    return next((getattr(model, name) for name in names if hasattr(model, name)), None)


def _dimension(subject):
    curve = _criterion(subject)
    if curve is None or len(curve[0]) < 2:
        return None
    return {
        "key": "dimension",
        "title": "How many dimensions",
        "text": f"{curve[3]}, with one standard deviation over splits; the chosen number is "
        "coloured.",
        "svg": charts.curve(*curve[:3], subject.Z.shape[1]),
    }


def _criterion(subject):
    """Numbers of dimensions tried, mean and spread of a criterion, and its name."""
    if subject.choice is not None:
        rows = subject.choice.rows
        tried = [row.n_components for row in rows]
        name = f"{subject.choice.criterion.capitalize()} on held-out rows"
        return tried, [row.mean for row in rows], [row.sd for row in rows], name
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
    svg = charts.line(objective, "iteration")
    return {"key": "convergence", "title": "Convergence", "text": text, "svg": svg}


def gap_counts(subject):
    """Number of gaps in each feature."""
    X = subject.ready.X
    return np.isnan(X).sum(axis=0) if isinstance(X, np.ndarray) else np.zeros(X.shape[1], int)


def _gaps(subject):
    counts = gap_counts(subject)
    if not counts.any():
        return None
    n = subject.ready.X.shape[0]
    top = [j for j in np.argsort(-counts, kind="stable")[:MOST_ROWS] if counts[j]]
    names = [subject.ready.recipe.names[j] for j in top]
    svg = charts.bars(names, counts[top], [f"{counts[j] / n:.1%}" for j in top])
    text = f"{int(counts.sum()):,} cells are empty, in {int((counts > 0).sum())} features."
    return {"key": "gaps", "title": "Gaps", "text": text, "svg": svg}
