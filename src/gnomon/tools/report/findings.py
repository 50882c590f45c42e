"""What the rows and columns show: held-out predictions, classes told apart, axes, outliers.

Each finding is a `Card` of the page, or None where the model or the table has no such thing.
"""

import re
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from gnomon.estimators import count
from gnomon.estimators.outliers import OF_ONE_GAUSSIAN, outlier_contributions, outliers
from gnomon.tools.compare.scoring import wilson
from gnomon.tools.report.charts import Frame, bounds_of, draw_along, draw_signed, short

# What can be taken in at a glance: features of a small chart, small charts, classes.
TOP_FEATURES, MOST_PANELS, MOST_CLASSES = 8, 20, 25
# A matrix of more classes takes the whole width.
BROAD = 8
# Rows of the table of outliers, and columns that are named for each.
MOST_OUTLIERS, MOST_CAUSES = 12, 3
# More dots than this make the file large and say no more.
MOST_DOTS = 2000
# Columns whose names are so few numbers may be numbered by chance.
LEAST_ORDERED = 10
# Numbers of a block of columns that are worked on at a time: 32 MB.
BLOCK_ENTRIES = 2**22


class Card(NamedTuple):
    """A part of the page: a sentence, charts, a table of names and rows, and how to read it."""

    key: str
    title: str
    text: str = ""
    hint: str = ""
    charts: tuple = ()
    names: tuple = ()
    rows: tuple = ()
    wide: bool = False


class TableRow(NamedTuple):
    """A line of a table; ``at`` is the row of the picture that it tells of, or None."""

    name: str
    cells: tuple
    at: int | None = None


class Cell(NamedTuple):
    """A text with classes of the page's style: a number in a shade, or words that may wrap."""

    text: str
    look: str = "cell"

    def __str__(self) -> str:
        """The text alone."""
        return self.text


def _noun(saved):
    return "labelled row" if saved else "held-out row"


def _by_whom(saved):
    return "by the saved model" if saved else "by a fit that had not seen it"


def prediction_cards(subject) -> list[Card]:
    """What the predictions of the rows look like that the score rests on."""
    rows = None if subject.score is None else subject.score.rows
    if rows is None or subject.ready.kind == "multilabel":
        return []
    if subject.ready.kind == "classes":
        return [card for card in (confusion(rows), calibration(rows)) if card is not None]
    truth, predicted = (v.reshape(len(v), -1) for v in (rows.truth, rows.predicted))
    std = None if rows.std is None else rows.std.reshape(truth.shape)
    scores, cards = subject.score.parts or (subject.score,), []
    for j, name in enumerate(subject.asked.targets):
        known = np.isfinite(truth[:, j])
        spread = None if std is None else std[known, j]
        pair = truth[known, j], predicted[known, j]
        cards += number_cards(name, *pair, spread, scores[j].rmse, j, rows.saved)
    return cards


def confusion(rows) -> Card:
    """Which classes are taken for which, and the mean share of a class that is found."""
    c = len(rows.names)
    counts = np.zeros((c, c), dtype=int)
    np.add.at(counts, (rows.truth, rows.predicted), 1)
    sizes = counts.sum(axis=1)
    value, low, high = balanced_accuracy(np.diag(counts), sizes)
    kept = np.sort(np.argsort(-sizes, kind="stable")[:MOST_CLASSES])
    names = [short(str(rows.names[k])) for k in kept]
    table = [
        TableRow(name, (*_shaded(counts[k, kept], k == kept), _share(counts[k, k], sizes[k])))
        for name, k in zip(names, kept, strict=True)
    ]
    more = f" The {len(kept)} largest of {c} classes are shown." if len(kept) < c else ""
    return Card(
        "confusion",
        "Which classes are taken for which",
        f"{counts.trace():,} of {count(counts.sum(), _noun(rows.saved))} are given their class. "
        "Balanced accuracy, the mean over the classes of the share that is found, is "
        f"{value:.3f}; the 95 % interval is {low:.3f} to {high:.3f}.",
        f"A line is a class, a column what was predicted; every row {_by_whom(rows.saved)}.{more}",
        names=("class", *(short(name, 8 if c > BROAD else 14) for name in names), "found"),
        rows=tuple(table),
        wide=c > BROAD,
    )


def balanced_accuracy(hits, sizes):
    """Mean share of hits over the classes that have rows, and its 95 % interval."""
    hits, sizes = hits[sizes > 0], sizes[sizes > 0]
    value = float(np.mean(hits / sizes))
    # Shares near 0 or 1 would look certain without the rows added.
    shares = (hits + 1) / (sizes + 2)
    half = 1.96 * np.sqrt(np.sum(shares * (1 - shares) / sizes)) / len(sizes)
    return value, max(0.0, value - half), min(1.0, value + half)


def _shaded(counts, own):
    total = max(counts.sum(), 1)
    for hits, is_own in zip(counts, own, strict=True):
        step = int(np.ceil(5 * hits / total))
        yield Cell(f"{hits or ''}", f"cell {'p' if is_own else 'n'}{step}" if step else "cell")


def _share(hits, size):
    return Cell(f"{hits / size:.0%}" if size else "")


def calibration(rows) -> Card | None:
    """How often the predicted class is right, against the probability that it was given."""
    if rows.proba is None:
        return None
    sure = rows.proba.max(axis=1)
    right = rows.proba.argmax(axis=1) == rows.truth
    bins = np.minimum((10 * sure).astype(int), 9)
    used, counts = np.unique(bins, return_counts=True)
    mean = np.array([sure[bins == b].mean() for b in used])
    hits = np.array([right[bins == b].sum() for b in used])
    low, high = np.array([wilson(h, n) for h, n in zip(hits, counts, strict=True)]).T
    across = (max(float(mean.min()) - 0.05, 0.0), 1.0)
    frame = Frame(across, (0, 1), ("probability given", "share that is right"))
    ends = np.array([frame.x[0], 1.0])
    marks = [frame.text(x, 0.0, f"{n}") for x, n in zip(mean, counts, strict=True)]
    parts = (frame.line(ends, ends, "limit"), frame.whiskers(mean, low, high))
    return Card(
        "calibration",
        "Whether its probabilities hold",
        f"On average the predicted class is given {sure.mean():.0%} and is right "
        f"{right.mean():.0%} of the time, over {count(len(sure), _noun(rows.saved))}.",
        "Dots on the dashed line: probabilities that hold. Rows in tenths by their probability, "
        "with their number below; the bar is the 95 % interval of the share.",
        (frame.draw(*parts, frame.dots(mean, hits / counts, "marks"), *marks),),
    )


def number_cards(name, truth, predicted, std, rmse, number=0, saved=False) -> list[Card]:
    """Predicted against measured with intervals, and what is left over, for one target.

    ``rmse`` is the root mean squared error with its interval; ``saved`` says who predicted the
    rows.
    """
    error = truth - predicted
    value, low, high = rmse
    text = f"RMSE of {name} is {value:.4g} on {_noun(saved)}s; the 95 % interval is {low:.4g} to "
    text += f"{high:.4g} ({count(len(truth), 'row')}). {_coverage(error, std)}"
    rows = _some(len(truth))
    x, y = truth[rows], predicted[rows]
    half = 0 * x if std is None else 1.96 * std[rows]
    bounds = bounds_of(truth, predicted)
    frame = Frame(bounds, bounds_of(bounds, y - half, y + half), (f"{name}, measured", "predicted"))
    whiskers = () if std is None else (frame.whiskers(x, y - half, y + half, "faint"),)
    diagonal = frame.line(np.array(bounds), np.array(bounds), "limit")
    left = Frame(bounds_of(predicted), bounds_of(error), ("predicted", "measured less predicted"))
    zero = left.line(np.array(left.x), np.zeros(2), "limit")
    shown = f" {MOST_DOTS:,} of the rows are drawn." if len(rows) < len(truth) else ""
    bias = 1.96 * error.std() / np.sqrt(len(error))
    return [
        Card(
            "measured" if number == 0 else f"measured-{number + 1}",
            f"Predicted against measured: {name}",
            text,
            f"Dots on the dashed line: predicted as measured; every row {_by_whom(saved)}. "
            f"{'' if std is None else 'Bars are 95 % intervals.'}{shown}",
            (frame.draw(diagonal, *whiskers, frame.dots(x, y)),),
        ),
        Card(
            "residuals" if number == 0 else f"residuals-{number + 1}",
            f"What is left over: {name}",
            f"The mean residual is {error.mean():.3g} ± {bias:.2g} (95 %).",
            "A bend or a fan in this cloud is something that the model does not say." + shown,
            (left.draw(zero, left.dots(y, error[rows])),),
        ),
    ]


def _coverage(error, std):
    if std is None:
        return "This model gives no intervals."
    inside = int(np.sum(np.abs(error) <= 1.96 * std))
    low, high = wilson(inside, len(error))
    return (
        f"Of its 95 % intervals {inside / len(error):.1%} hold what was measured "
        f"({low:.1%} to {high:.1%})."
    )


def _some(n, first=()):
    """At most so many rows as are drawn, the first among them."""
    if n <= MOST_DOTS:
        return np.arange(n)
    others = np.random.default_rng(0).permutation(n)
    return np.unique(np.concatenate([np.asarray(first, dtype=int), others])[:MOST_DOTS])


def distinguishing(subject) -> Card | None:
    """The features in which each class differs most from the others, or that go with a number."""
    kind = subject.ready.kind
    if kind not in ("classes", "numeric"):
        return None
    rows, names = np.flatnonzero(subject.labelled), subject.ready.recipe.names
    if len(rows) < 4:
        return None
    X, y = subject.ready.X[rows], subject.ready.y[rows]
    if kind == "classes":
        panels, columns = np.unique(y.astype(str), return_inverse=True)
        sizes = np.bincount(columns)
        order = np.sort(np.argsort(-sizes, kind="stable")[:MOST_PANELS])
        found = class_differences(X, columns, len(panels))
        titles = {k: f"{panels[k]} ({sizes[k]})" for k in order}
        words = "How far a class lies from all others, in standard deviations within them"
    else:
        found = correlations(X, y.reshape(len(y), -1))
        titles = dict(enumerate(subject.asked.targets))
        words = "Correlation with the target"
    scale = ordered_scale(names)
    which = f"the {TOP_FEATURES} greatest" if scale is None else "along the scale of the columns"
    return Card(
        "distinguishing",
        "What distinguishes the classes" if kind == "classes" else "What goes with the target",
        f"{words}, among the {len(rows):,} labelled rows: {which}.",
        f"The thin lines are intervals that hold for all {len(names):,} features at once (95 %, "
        "Bonferroni): what they let be zero, chance may have made.",
        (_panels if scale is None else _lines)(found, titles, names, scale),
        wide=True,
    )


def _panels(found, titles, names, scale):
    """Bars of the greatest features per title, on one scale."""
    tops = {k: np.argsort(-np.abs(found[0][k]), kind="stable")[:TOP_FEATURES] for k in titles}
    ends = [side[k][top] for k, top in tops.items() for side in found]
    bounds = bounds_of([0.0], *ends, margin=0.02)
    rows = {k: [(names[j], *(side[k][j] for side in found)) for j in tops[k]] for k in titles}
    return tuple(draw_signed(title, rows[k], bounds) for k, title in titles.items())


def _lines(found, titles, names, scale):
    """All features along their scale, a chart per title."""
    bounds = bounds_of([0.0], *(side[k] for k in titles for side in found))
    return tuple(
        draw_along(title, *scale, found[0][k], found[1][k], found[2][k], bounds)  # type: ignore[call-arg]
        for k, title in titles.items()
    )


def ordered_scale(names):
    """The numbers in the names and what stands around them, where they are a scale; or None.

    They are where there are ten at least, each name has one number between the same texts, and
    the numbers rise or fall from the first column to the last. Columns that are only counted,
    from 0 or 1 in steps of one, are no scale.
    """
    found = [re.fullmatch(r"(\D*)(\d+(?:\.\d+)?)(\D*)", name) for name in names]
    if len(names) < LEAST_ORDERED or not all(found):
        return None
    parts: list[Any] = [("", "-" + m[2], m[3]) if m[1] == "-" else m.groups() for m in found if m]
    texts = {(head, tail) for head, _, tail in parts}
    numbers = np.array([float(number) for _, number, _ in parts])
    steps = np.diff(numbers)
    counted = numbers[0] in (0, 1) and np.all(steps == 1)
    if len(texts) > 1 or counted or not (np.all(steps > 0) or np.all(steps < 0)):
        return None
    return numbers, " ".join(text.strip(" _-") for text in texts.pop()).strip()


def class_differences(X, labels, n_classes):
    """Standardised mean differences (c, d) of each class from the rest, with intervals.

    Hedges and Olkin's standard error; the intervals hold for all d features at once.
    """
    members = np.eye(n_classes)[labels]
    parts = [_differences(block, members) for block in _dense_blocks(X)]
    value, error = (np.hstack(part) for part in zip(*parts, strict=True))
    return _around(value, error)


def _differences(block, members):
    seen = ~np.isnan(block)
    block = np.where(seen, block - _mean(block, seen), 0.0)
    n, total, squares = (members.T @ part for part in (seen.astype(float), block, block**2))
    rest = [part.sum(axis=0) - part for part in (n, total, squares)]
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = total / n - rest[1] / rest[0]
        within = squares - total**2 / n + rest[2] - rest[1] ** 2 / rest[0]
        value = gap / np.sqrt(within / (n + rest[0] - 2))
        error = np.sqrt((n + rest[0]) / (n * rest[0]) + value**2 / (2 * (n + rest[0])))
    known = np.isfinite(value) & np.isfinite(error)
    return np.where(known, value, 0.0), np.where(known, error, 0.0)


def correlations(X, Y):
    """Correlations (c, d) of the features with the targets, with Fisher's intervals for all."""
    parts = [_correlations(block, Y) for block in _dense_blocks(X)]
    value, count = (np.hstack(part) for part in zip(*parts, strict=True))
    value, low, high = _around(np.arctanh(value), 1 / np.sqrt(np.maximum(count - 3, 1)))
    return np.tanh(value), np.tanh(low), np.tanh(high)


def _correlations(block, Y):
    values, counts = [], []
    for y in Y.T:
        seen = ~np.isnan(block) & np.isfinite(y)[:, None]
        columns = np.repeat(np.where(np.isfinite(y), y, 0.0)[:, None], block.shape[1], axis=1)
        A, b = (np.where(seen, V - _mean(V, seen), 0.0) for V in (block, columns))
        length = np.sqrt((A**2).sum(axis=0) * (b**2).sum(axis=0))
        value = (A * b).sum(axis=0) / np.where(length > 0, length, 1.0)
        values.append(np.clip(value, -0.999999, 0.999999))
        counts.append(seen.sum(axis=0))
    return np.array(values), np.array(counts)


def _around(value, error):
    """Values with intervals that hold for all columns at once with 95 %."""
    half = norm.isf(0.025 / value.shape[1]) * error
    return value, value - half, value + half


def _mean(block, seen):
    return np.where(seen, block, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)


def _dense_blocks(X):
    """Some columns of X at a time, as float arrays with NaN for gaps."""
    step = max(1, BLOCK_ENTRIES // X.shape[0])
    for start in range(0, X.shape[1], step):
        block = X[:, start : start + step]
        yield np.asarray(block.toarray() if hasattr(block, "toarray") else block, dtype=float)


def outlier_card(subject) -> Card | None:
    """Rows far from the rest, within the map and from it, and the columns that make them so."""
    model, X = subject.model, subject.X
    if not isinstance(model, OF_ONE_GAUSSIAN) or X.shape[0] <= max(10, len(model.components_)):
        return None
    if hasattr(model, "linked_rows_"):
        return None
    found = outliers(model, X)
    excess = np.maximum(found.t2 / found.t2_limit[1], found.q / max(found.q_limit[1], 1e-300))
    order = np.argsort(-excess, kind="stable")
    beyond = [int(np.sum((found.t2 > t) | (found.q > q))) for t, q in zip(*found[3:], strict=True)]
    top = order[: min(MOST_OUTLIERS, beyond[0])]
    return Card(
        "outliers",
        "Rows unlike the others",
        f"{beyond[0]:,} of {count(len(excess), 'row')} lie beyond a 95 % limit, {beyond[1]:,} of "
        "them beyond a 99 % limit. T² is the distance from the centre within the map, Q the "
        "squared distance from the map.",
        "Dashed: limits of 95 % and 99 %, of T² by the F distribution, of Q by Box's "
        "approximation; of usual rows about one in ten lies beyond one of the first. Columns that "
        "add most, with their share of the distance that is further beyond its limit.",
        (_outlier_chart(subject, found, order, top),),
        ("row", "T²", "Q", "log density", "because of", ""),
        tuple(_outlier_rows(subject, found, top)),
        wide=True,
    )


def _outlier_chart(subject, found, order, top):
    rows = _some(len(found.t2), order[: MOST_DOTS // 2])
    most = (max(found.t2.max(), found.t2_limit[1]), max(found.q.max(), found.q_limit[1]))
    across, up = ((0, 1.08 * float(value) or 1.0) for value in most)
    frame = Frame(across, up, ("T²: within the map", "Q: from the map"), root=True)
    far = (found.t2 > found.t2_limit[0]) | (found.q > found.q_limit[0])
    parts = [
        frame.dots(found.t2[part], found.q[part], shade)
        for part, shade in ((rows[~far[rows]], "dots"), (rows[far[rows]], "far"))
    ]
    for t2, q in zip(found.t2_limit, found.q_limit, strict=True):
        parts.append(frame.line(np.full(2, t2), np.array(frame.y), "limit"))
        parts.append(frame.line(np.array(frame.x), np.full(2, q), "limit"))
    taken: list[Any] = []
    for i in top:
        at = float(frame.across(found.t2[i])), float(frame.up(found.q[i]))
        if all(abs(at[0] - a) > 60 or abs(at[1] - b) > 16 for a, b in taken):
            taken.append(at)
            parts.append(frame.text(found.t2[i], found.q[i], str(subject.ready.ids[i])[:14], ""))
    return frame.draw(*parts)


def _outlier_rows(subject, found, top):
    rows = subject.X[top]
    parts = outlier_contributions(subject.model, rows) if len(top) else ()
    names = subject.ready.recipe.names
    for k, i in enumerate(top):
        within = found.t2[i] / found.t2_limit[1] > found.q[i] / max(found.q_limit[1], 1e-300)
        part = np.maximum(parts.t2[k] if within else parts.q[k], 0.0)  # type: ignore[union-attr]
        most = np.argsort(-part, kind="stable")[:MOST_CAUSES]
        causes = ", ".join(f"{names[j]} ({part[j] / (part.sum() or 1):.0%})" for j in most)
        values = (f"{found.t2[i]:.3g}", f"{found.q[i]:.3g}", f"{found.log_density[i]:.4g}")
        yield TableRow(str(subject.ready.ids[i]), (*values, Cell(causes, "words")), int(i))
