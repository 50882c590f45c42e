"""What the page says of the fit: large figures, the score, labels, axes, and how it was found."""

import numpy as np

from gnomon.estimators import count
from gnomon.tools.compare.held_out import NOT_SEEN
from gnomon.tools.report import findings
from gnomon.tools.report.charts import (
    bounds_of,
    draw_along,
    draw_bars,
    draw_curve,
    draw_intervals,
    draw_line,
    draw_signed,
)
from gnomon.tools.report.findings import TOP_FEATURES, Card, TableRow, ordered_scale
from gnomon.tools.suggest import View, choose, without_values

# What can be taken in at a glance.
MOST_ROWS = 15
MOST_AXES = 6
# Of full uncertainty: below it a row is sure, and a label for it would teach next to nothing.
LEAST_ENTROPY = 0.01
# Measures that cannot exceed one, so that no axis of theirs does.
AT_MOST_ONE = ("accuracy", "r2", "r²", "macro f1", "f1")


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
        pairs.append((f"{subject.score.value:.3f}", _figure_name(subject.score)))
    return pairs


def _figure_name(score):
    return f"held-out {score.name}" if score.on == NOT_SEEN else f"{score.name} on {score.on}"


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
    if subject.layout is not None:
        size = count(subject.Z.shape[1], "dimension")
        text += (
            f" Neighbours: rows near each other in all {size} are near; how far groups are apart, "
            "how large they are and where they lie says nothing. Axes: two of them as they are."
        )
    return text


def score(subject):
    """The scores, against permuted labels and against guessing."""
    found = subject.score
    if found is None:
        return None
    figures = (found, *found.more)
    rows = [row for figure in figures for row in _score_rows(figure)]
    if found.baseline is not None:
        rows.append(("a constant guess", found.baseline, None, None))
    values = [v for row in rows for v in row[1:] if v is not None]
    pad = (found.high - found.low) or 1.0
    around = min(values) - pad, max(values) + pad
    bounds = {"accuracy": (0.0, 1.0), "F1": (0.0, 1.0), "R²": (min(*values, 0.0), max(values))}
    return {
        "sentence": " ".join([*map(_score_sentence, figures), *_nothing_found(subject.model)]),
        "chart": draw_intervals(rows, *bounds.get(found.name, around)),
        "method": _method(found),
    }


def _method(found):
    """How the rows of a score were predicted."""
    if found.on != NOT_SEEN:
        return (
            "The model as it was saved, on a table that is not the one of its fit: nothing was "
            "fitted anew. Rows that are in both make it look better than it is on others."
        )
    labelled = " over the labelled rows; unlabelled rows stay in training"
    return f"Cross-validation{'' if found.baseline is None else labelled}."


def _nothing_found(model):
    """A sentence where the model could not find the classes of rows left out."""
    # .999 where they are not found, and .99 in files of before; else that of half a labelled row.
    if getattr(model, "class_doubt_", 0.0) >= 0.99:
        yield (
            "In the fit, rows left out were not found better than by the shares of the classes: "
            "the probabilities of all rows are nearly these shares."
        )


def _score_rows(figure):
    """A figure with its interval, each output where there are several, and the control."""
    name = figure.of.replace("nearest labelled rows on", "nearest on")
    yield name, figure.value, figure.low, figure.high
    for part in figure.parts:
        yield f"… {part.of}", part.value, part.low, part.high
    if figure.control is not None:
        yield "… permuted labels", figure.control, None, None


def _score_sentence(figure):
    text = (
        f"{figure.of[0].upper()}{figure.of[1:]}: on {figure.on} the {figure.name} is "
        f"{figure.value:.3f}; the 95 % interval is {figure.low:.3f} to {figure.high:.3f} "
        f"({count(figure.n_rows, 'row')})."
    )
    if figure.rmse is not None:
        text += " The root mean squared error is {:.4g} ({:.4g} to {:.4g}).".format(*figure.rmse)
    return f"{text} {_verdict(figure)}".rstrip()


def _verdict(figure):
    """What the figure is worth, beside a constant guess and permuted labels."""
    if figure.baseline is None:
        return ""
    if not figure.is_better_than_guessing:
        return f"A constant guess reaches {figure.baseline:.3f}: this is not better than guessing."
    if figure.control is None:
        return f"A constant guess reaches {figure.baseline:.3f}."
    if figure.control < figure.low:
        return (
            f"A constant guess reaches {figure.baseline:.3f}, permuted labels "
            f"{figure.control:.3f}: what it sees in the labels is there."
        )
    return (
        f"With permuted labels the same reaches {figure.control:.3f}, no worse than the "
        "interval: do not read the labels off this picture."
    )


def cards(subject, compared=None) -> list[Card]:
    """The parts of the page below the score, in their order."""
    makers = (
        labels,
        *(findings.distinguishing, loadings, findings.outlier_card, next_labels, doubtful),
        *(_relevance, _dimension, _convergence, _gaps),
    )
    first, *rest = (make(subject) for make in makers)
    found = [first, *findings.prediction_cards(subject), comparison(compared), *rest]
    return [card for card in found if card is not None]


def labels(subject) -> Card | None:
    """How many rows of each class are labelled."""
    if subject.ready.kind != "classes":
        return None
    given = subject.ready.y[subject.labelled]
    names, counts = np.unique(given.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")[: findings.MOST_CLASSES]
    left = len(names) - len(order)
    names, counts = names[order], counts[order]
    texts, pale, more = [f"{count}" for count in counts], None, ""
    if subject.predicted is not None and not subject.labelled.all():
        open_rows = subject.predicted[~subject.labelled].astype(str)
        extra = [int((open_rows == name).sum()) for name in names]
        texts = [f"{text} + {e}" if e else text for text, e in zip(texts, extra, strict=True)]
        pale, more = counts + extra, "; lighter: rows without a label that are predicted so"
    of = f"of {count(len(subject.ready.y), 'row')}"
    text = f"{count(len(given), f'{of} has', f'{of} have')} a label{more}."
    hint = f"{count(left, 'smaller class is', 'smaller classes are')} left out." if left else ""
    return Card("labels", "Labels", text, hint, (draw_bars(names, counts, texts, pale=pale),))


def comparison(result) -> Card | None:
    """All candidates of a `Comparison`, those that stand for their model first."""
    if result is None:
        return None
    measured = f"{result.measure} of {result.evaluator}", "95 % interval"
    others = "of the model's prediction", "with shuffled labels", "seconds", ""
    rows = sorted(result.rows, key=lambda row: not row.chosen)
    return Card(
        "comparison",
        "Compared with other projections",
        result.recommendation,
        "First each model with the number of dimensions that was chosen for it, the leader at the "
        "top; then all that was tried besides.",
        names=("model", "dimensions", *measured, *others),
        rows=tuple(_compared(row) for row in rows),
        wide=True,
    )


def _compared(row):
    own, control = ("" if np.isnan(v) else f"{v:.3f}" for v in (row.own, row.control))
    score = f"{row.score:.3f}", f"{row.low:.3f} to {row.high:.3f}"
    cells = (f"{row.n_components}", *score, own, control, f"{row.seconds:.2f}", row.mark)
    return TableRow(row.model, cells)


def next_labels(subject) -> Card | None:
    """The unlabelled rows that stand for most rows in doubt, by the rule of `gnomon.suggest`."""
    if subject.proba is None or subject.labelled.all():
        return None
    proba = np.clip(subject.proba, 1e-300, 1)
    entropy = -(proba * np.log(proba)).sum(axis=1) / np.log(proba.shape[1])
    places, classes = np.asarray(subject.Z), np.asarray(subject.model.classes_).astype(str)
    passed = (entropy < LEAST_ENTROPY) | without_values(subject.ready.X)
    view = View(places, places, proba, subject.labelled, tuple(classes.tolist()), passed)
    rng = np.random.default_rng(0)
    found = choose(view, n=MOST_ROWS, rule="representative", rng=rng)
    title = "Rows most worth labelling next"
    if not found:
        text = "The model is sure of every row without a label; no label would teach it much."
        return Card("next", title, text)
    rows = []
    for row, reason, _ in found:
        cells = [*_likely(subject, row, classes), f"{entropy[row]:.2f}", reason.partition(";")[0]]
        rows.append(_row(subject, row, cells))
    return Card(
        "next",
        title,
        hint="The rows that stand for most rows of which the model is unsure, and which no "
        "labelled row is like on the map; each counts as labelled for those below.",
        names=("row", "most likely", "next", "entropy (1 = no idea)", "why", ""),
        rows=tuple(rows),
    )


def _likely(subject, i, classes):
    """The two most likely classes of a row, with their probabilities."""
    top = np.argsort(-subject.proba[i], kind="stable")[:2]
    return [f"{classes[k]} ({subject.proba[i, k]:.0%})" for k in top]


def _row(subject, i, cells):
    return TableRow(str(subject.ready.ids[i]), tuple(cells), int(i))


def doubtful(subject) -> Card | None:
    """Labelled rows that the model would label otherwise."""
    if subject.proba is None:
        return None
    classes = np.asarray(subject.model.classes_).astype(str)
    given = np.array([str(value) for value in subject.ready.y])
    rows = np.flatnonzero(subject.labelled & (subject.predicted.astype(str) != given))
    rows = rows[np.argsort(-subject.proba[rows].max(axis=1), kind="stable")[:MOST_ROWS]]
    if len(rows) == 0:
        return None
    return Card(
        "doubtful",
        "Labels worth a second look",
        hint="Labelled rows that the model would label otherwise, the surest first.",
        names=("row", "label", "most likely", "next", ""),
        rows=tuple(_row(subject, i, [given[i], *_likely(subject, i, classes)]) for i in rows),
    )


def loadings(subject) -> Card | None:
    """How features and axes belong together: lines along an ordered scale, or the strongest."""
    components = getattr(subject.model, "components_", None)
    names = subject.ready.recipe.names
    if components is None or components.shape[1] != len(names):
        return None
    values = np.asarray(components[:MOST_AXES], dtype=float)
    sd = getattr(subject.model, "loadings_sd_", None)
    half = None if sd is None else 1.96 * np.asarray(sd, dtype=float)[: len(values)]
    scale = ordered_scale(names)
    draw = _loading_bars if scale is None else _loading_lines
    how = f"the {TOP_FEATURES} strongest of each" if scale is None else "along their scale"
    return Card(
        "loadings",
        "What the axes are made of",
        "",
        f"Loadings: how much a feature moves when an axis moves by one; {how}."
        + ("" if sd is None else " Bars are 95 % intervals."),
        draw(values, half, names, scale),
        wide=True,
    )


def _loading_bars(values, half, names, scale):
    limit = (np.abs(values) + (0 if half is None else half)).max()
    charts = []
    for k, row in enumerate(values):
        top = np.argsort(-np.abs(row), kind="stable")[:TOP_FEATURES]
        bars = [(names[j], row[j], None, None) for j in top]
        if half is not None:
            bars = [(names[j], row[j], row[j] - half[k, j], row[j] + half[k, j]) for j in top]
        charts.append(draw_signed(f"z{k + 1}", bars, (-limit, limit)))
    return tuple(charts)


def _loading_lines(values, half, names, scale):
    spread = np.zeros(values.shape) if half is None else half
    low, high = values - spread, values + spread
    bounds = bounds_of([0.0], low, high)
    return tuple(
        draw_along(f"z{k + 1}", *scale, row, low[k], high[k], bounds)  # type: ignore[call-arg]
        for k, row in enumerate(values)
    )


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
    return Card("relevance", "What each axis carries", hint=text, charts=(svg,))


def first_of(model, *names):
    """The first of these attributes that the model has, or None."""
    return next((getattr(model, name) for name in names if hasattr(model, name)), None)


def _dimension(subject):
    curve = _criterion(subject)
    if curve is None or len(curve[0]) < 2:
        return None
    *points, name = curve
    text = f"{name}, with one standard deviation over splits; the chosen number is coloured."
    highest = 1.0 if name.lower().startswith(AT_MOST_ONE) else np.inf
    svg = draw_curve(*points, subject.Z.shape[1], highest)  # type: ignore[call-arg]
    return Card("dimension", "How many dimensions", hint=text, charts=(svg,))


def _criterion(subject):
    """Numbers of dimensions tried, mean and deviation of a criterion, and its name."""
    if subject.choice is not None:
        _, tried, means, sds = zip(*subject.choice.rows, strict=True)
        return tried, means, sds, f"{subject.choice.criterion.capitalize()} on held-out rows"
    found = getattr(subject.model, "criterion_", None)
    if not isinstance(found, dict) or not {"n_components", "mean", "std"} <= found.keys():
        return None
    tried = [int(q) for q in found["n_components"]]  # type: ignore[assignment]
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
    return Card("convergence", "Convergence", hint=text, charts=(svg,))


def _gaps(subject):
    gaps = subject.ready.gaps
    if not gaps:
        return None
    top = sorted(gaps, key=lambda name: -gaps[name])[:MOST_ROWS]
    counts = [gaps[name] for name in top]
    svg = draw_bars(top, counts, [f"{number / subject.n_rows:.1%}" for number in counts])
    cells = count(sum(gaps.values()), "cell is", "cells are")
    text = f"{cells} empty, in {count(len(gaps), 'column')}."
    return Card("gaps", "Gaps", hint=text, charts=(svg,))
