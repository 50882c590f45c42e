"""Pictures of a comparison; matplotlib is imported when one is drawn."""

import numpy as np

from gnomon.displays.style import GREY, axes_or_new, colour, marker
from gnomon.estimators import check_option

KINDS = ("scores", "dimension", "control", "labels")


def draw(comparison, kind, ax=None):
    """The figure of one kind on the given axes."""
    check_option("kind", kind, KINDS)
    ax = axes_or_new(ax)
    drawers = {"scores": _scores, "dimension": _dimension, "control": _control, "labels": _labels}
    drawers[kind](comparison, ax)
    return ax


def _chosen(comparison):
    return [row for row in comparison.rows if row.chosen]


def _scores(comparison, ax):
    rows = _chosen(comparison)[::-1]
    place = np.arange(len(rows))
    ax.errorbar(
        [row.score for row in rows], place, xerr=[row.sd for row in rows], fmt="o", color=colour(0)
    )
    ax.plot(
        [row.control for row in rows], place, "o", mfc="none", color=GREY, label="shuffled labels"
    )
    names = [f"{row.model} ({row.n_components})" + (" *" if row.mark else "") for row in rows]
    ax.set_yticks(place, names)
    ax.set(xlabel=f"{comparison.measure}, mean and sd over splits (* best, or tied with it)")
    ax.legend()


def _dimension(comparison, ax):
    for index, model in enumerate(dict.fromkeys(row.model for row in comparison.rows)):
        rows = sorted(
            (row for row in comparison.rows if row.model == model), key=lambda r: r.n_components
        )
        sizes, scores = [r.n_components for r in rows], [r.score for r in rows]
        look = {"color": colour(index), "marker": marker(index), "ms": 4, "label": model}
        ax.errorbar(sizes, scores, yerr=[r.sd for r in rows], **look)
    ax.set(xlabel="number of components", ylabel=comparison.measure)
    ax.legend(fontsize="small", ncols=2)


def _control(comparison, ax):
    rows = _chosen(comparison)
    place, width = np.arange(len(rows)), 0.2
    series = ("apparent", "score", "control_apparent", "control")
    names = ("seen rows", "unseen rows", "seen, shuffled labels", "unseen, shuffled labels")
    for index, (column, name) in enumerate(zip(series, names, strict=True)):
        heights = [getattr(row, column) for row in rows]
        ax.bar(place + (index - 1.5) * width, heights, width, label=name, color=colour(index))
    ax.set_xticks(place, [row.model for row in rows], rotation=45, ha="right")
    ax.set(ylabel=comparison.measure)
    ax.legend(fontsize="small")


def _labels(comparison, ax):
    if not comparison.learning_curve:
        raise ValueError("this comparison has no learning curve; pass learning_curve to compare")
    models = dict.fromkeys(point.model for point in comparison.learning_curve)
    for index, model in enumerate(models):
        points = [point for point in comparison.learning_curve if point.model == model]
        labels, scores = [p.labels for p in points], [p.score for p in points]
        look = {"color": colour(index), "marker": marker(index), "ms": 4, "label": model}
        ax.errorbar(labels, scores, yerr=[p.sd for p in points], **look)
    ax.set(xlabel="labels in training (for each class)", ylabel=comparison.measure)
    ax.legend(fontsize="small")
