"""The data before any model: gaps, labels, links."""

from typing import Any, NamedTuple, Self

import numpy as np

from gnomon.displays import style
from gnomon.displays.layers import edges_of
from gnomon.estimators import count
from gnomon.typing import GraphLike, OutputsLike, RowsLike

MOST_CELLS = 80  # blocks of rows and of features whose gaps are drawn, as many as can be seen
MOST_BARS = 16  # so many classes have their names and numbers beside their bars without overlap


class Gaps(NamedTuple):
    """Share of missing values, over all and in a grid of blocks of rows and features."""

    share: float
    grid: np.ndarray
    shape: tuple[int, int]


class Degrees(NamedTuple):
    """Number of links, links per row, and the share of links within a class (NaN if unknown)."""

    n_links: int
    degrees: np.ndarray
    within: float


class OverviewDisplay:
    """What the data have: missing values, labels per class, links per row.

    Parameters
    ----------
    gaps : Gaps, default=None
        Missing values.
    labels : Target, default=None
        Classes or numbers, with their gaps.
    degrees : Degrees, default=None
        Links.

    Attributes
    ----------
    axes_ : ndarray of Axes
        One panel for each part that is there.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.displays import OverviewDisplay
    >>> X = np.array([[1.0, np.nan], [0.0, 1.0], [2.0, 0.5], [1.0, 1.0]])
    >>> display = OverviewDisplay.from_data(X, [0, 1, -1, -1])
    >>> display.gaps.share
    0.125
    """

    def __init__(self, *, gaps: Any = None, labels: Any = None, degrees: Any = None) -> None:
        self.gaps = gaps
        self.labels = labels
        self.degrees = degrees

    @classmethod
    def from_data(
        cls, X: RowsLike, y: OutputsLike = None, *, links: GraphLike = None, ax: Any = None
    ) -> Self:
        """Count what is there in X, y and links, and draw it.

        Parameters
        ----------
        X : array-like or sparse array of shape (n, d)
            Data; NaN is missing.
        y : array-like of shape (n,), default=None
            Classes (-1 or None is unlabelled) or numbers (NaN is unlabelled).
        links : Links or sparse array of shape (n, n), default=None
            Links between rows.
        ax : matplotlib Axes, default=None
            Axes whose place the panels take; a new figure if None.

        Returns
        -------
        OverviewDisplay
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        target = style.read_target(y, n)
        degrees = None if links is None else _degrees(edges_of(links, n), target, n)
        return cls(gaps=_gaps(X), labels=target, degrees=degrees).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a panel for each part.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes whose place the panels take; a new figure if None.

        Returns
        -------
        OverviewDisplay
        """
        parts = [
            (self.gaps, _draw_gaps),
            (self.labels, _draw_labels),
            (self.degrees, _draw_degrees),
        ]
        parts = [(part, draw) for part, draw in parts if part is not None]
        if not parts:
            raise ValueError("nothing to draw: give gaps, labels or degrees")
        self.axes_ = style.panels(ax, 1, len(parts), figsize=(3.9 * len(parts), 3.4)).ravel()
        self.ax_ = self.axes_[0] if ax is None else ax
        self.figure_ = self.axes_[0].figure
        for panel, (part, draw) in zip(self.axes_, parts, strict=True):
            draw(panel, part)
        return self


def _gaps(X) -> Gaps:
    """Missing values; a sparse array has none, its zeros are values."""
    if hasattr(X, "toarray"):
        return Gaps(0.0, np.zeros((1, 1)), X.shape)
    values = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    missing = _are_missing(values)
    rows, columns = (np.linspace(0, s, min(s, MOST_CELLS) + 1).astype(int) for s in missing.shape)
    sums = np.add.reduceat(missing.astype(float), rows[:-1], axis=0)
    sums = np.add.reduceat(sums, columns[:-1], axis=1)
    cells = np.outer(np.diff(rows), np.diff(columns))
    return Gaps(float(missing.mean()), sums / cells, missing.shape)


def _are_missing(values):
    if values.dtype.kind != "O":
        return np.isnan(values.astype(float))
    return np.array([[v is None or bool(v != v) for v in row] for row in values])


def _degrees(edges, target: style.Target | None, n) -> Degrees:
    within = np.nan
    if target is not None:
        ends = target.labels[edges]
        known = (ends >= 0).all(axis=1)
        if known.any():
            within = float(np.mean(ends[known, 0] == ends[known, 1]))
    return Degrees(len(edges), np.bincount(edges.ravel(), minlength=n), within)


def _draw_gaps(ax, gaps):
    n, d = gaps.shape
    image = ax.imshow(
        gaps.grid,
        cmap="Greys",
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
        extent=(0.5, d + 0.5, n + 0.5, 0.5),
    )
    ax.figure.colorbar(image, ax=ax, label="share missing", shrink=0.8)
    ax.set(xlabel="feature", ylabel="row")
    size = f"{count(n, 'row')}, {count(d, 'feature')}"
    ax.set_title(f"{size}, {gaps.share:.1%} missing", size="medium")


def _draw_labels(ax, target):
    labelled, n = target.labelled.sum(), len(target.labelled)
    ax.set_title(f"{labelled} of {n} labelled ({labelled / n:.0%})", size="medium")
    style.tidy(ax)
    if target.classes is None:
        ax.hist(target.values[target.labelled], bins=30, color=style.PALETTE[0])
        ax.set(xlabel="y", ylabel="rows")
    else:
        _draw_counts(ax, target)


def _draw_counts(ax, target):
    """A bar per class with its number of rows; where classes are few, one for unlabelled rows."""
    names = style.class_names(target)
    counts = np.bincount(target.labels[target.labelled], minlength=len(names)).tolist()
    ax.barh(np.arange(len(names)), counts, color=[style.colour(c) for c in range(len(names))])
    few = len(names) <= MOST_BARS
    if few and not target.labelled.all():
        counts.append(int(np.sum(~target.labelled)))
        ax.barh(len(names), counts[-1], facecolor="none", edgecolor=style.GREY)
        names = [*names, "unlabelled"]
    for i, n in enumerate(counts if few else []):
        ax.text(n, i, f" {n}", va="center", size="small")
    step = 1 + (len(names) - 1) // (MOST_BARS + 1)
    ax.set_yticks(np.arange(0, len(names), step), [str(name) for name in names[::step]])
    ax.margins(x=0.14)
    ax.invert_yaxis()
    ax.set_xlabel("rows")


def _draw_degrees(ax, degrees):
    top = int(degrees.degrees.max(initial=0))
    bins = np.arange(top + 2) - 0.5 if top < 40 else 40
    ax.hist(degrees.degrees, bins=bins, color=style.FAINT, edgecolor=style.GREY, linewidth=0.6)
    ax.set(xlabel="links of a row", ylabel="rows")
    words = count(degrees.n_links, "link")
    if np.isfinite(degrees.within):
        words += f", {degrees.within:.0%} within a class"
    ax.set_title(words, size="medium")
    style.tidy(ax)
