"""Queries and what the embedding finds nearest to them."""

from typing import Any, Self

import numpy as np

from gnomon.displays.style import GREY, PALETTE, embed, has_classes, panels, read_target
from gnomon.typing import OutputsLike, RowsLike, SeedLike

ROWS_AT_ONCE = 500  # of the queries, so that their distances to many rows fit in memory


class RetrievalDisplay:
    """A row per query: the query, then its nearest neighbours by cosine, hits framed.

    Parameters
    ----------
    queries : array-like of int of shape (m,)
        Rows that are asked for.
    neighbours : array-like of int of shape (m, k)
        What is found, nearest first.
    labels : array-like of shape (n,)
        Class of every row; the same class is a hit.
    images : ndarray of shape (n, height, width) or (n, height, width, 3), default=None
        A picture of every row; the class is written if None.
    mean_average_precision : float, default=None
        Over all queries, for the title.

    Attributes
    ----------
    axes_ : ndarray of Axes of shape (m, k + 1)
        A panel for every picture.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    hits_ : ndarray of bool of shape (m, k)
        Which neighbours share the class of the query.

    Examples
    --------
    >>> from gnomon.displays import RetrievalDisplay
    >>> display = RetrievalDisplay([0], [[1, 2]], labels=["a", "a", "b"]).plot()
    >>> display.hits_.tolist()
    [[True, False]]
    """

    def __init__(
        self,
        queries: Any,
        neighbours: Any,
        labels: Any,
        *,
        images: Any = None,
        mean_average_precision: Any = None,
    ) -> None:
        self.queries = queries
        self.neighbours = neighbours
        self.labels = labels
        self.images = images
        self.mean_average_precision = mean_average_precision

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: RowsLike,
        y: OutputsLike,
        *,
        queries: Any = 5,
        k: int = 8,
        images: Any = None,
        random_state: SeedLike = 0,
        ax: Any = None,
        **plot: Any,
    ) -> Self:
        """Find the neighbours of some rows of X in the embedding and draw them.

        Every labelled row is asked for once, among all other labelled rows, to compute the
        mean average precision.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline
            Anything with ``transform``. Rows it was not fitted on give the honest figure.
        X : array-like of shape (n, d)
            Rows, queries and gallery in one.
        y : array-like of shape (n,)
            Their classes; unlabelled rows are left out.
        queries : int or array-like of int, default=5
            How many rows to draw, chosen so that classes alternate, or which rows.
        k : int, default=8
            How many neighbours to draw.
        images : ndarray of shape (n, height, width), default=None
            A picture of every row.
        random_state : int, default=0
            Chooses the rows.
        ax : matplotlib Axes, default=None
            Axes whose place the panels take; a new figure if None.
        **plot
            Passed to :meth:`plot`.

        Returns
        -------
        RetrievalDisplay
        """
        Z = embed(estimator, X)
        target = read_target(y, len(Z))
        if not has_classes(target):
            raise ValueError("y must hold classes: a hit is a neighbour of the same class")
        rows = np.flatnonzero(target.labelled)  # type: ignore[union-attr]
        if np.ndim(queries) == 0:
            queries = _choose(target.labels, rows, int(queries), random_state)  # type: ignore[union-attr]
        found = rows[_others(Z[queries], Z[rows], np.searchsorted(rows, queries), k)]
        precision = _mean_precision(Z[rows], target.labels[rows])  # type: ignore[union-attr]
        display = cls(queries, found, y, images=images, mean_average_precision=precision)
        return display.plot(ax, **plot)

    def plot(self, ax: Any = None) -> Self:
        """Draw the rows.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes whose place the panels take; a new figure if None.

        Returns
        -------
        RetrievalDisplay
        """
        labels = np.asarray(self.labels, dtype=object)
        queries, neighbours = np.asarray(self.queries), np.asarray(self.neighbours)
        self.hits_ = labels[neighbours] == labels[queries][:, None]
        rows, columns = neighbours.shape[0], neighbours.shape[1] + 1
        size = (0.95 * columns + 0.3, 1.0 * rows + 0.4)
        self.axes_ = panels(ax, rows, columns, figsize=size, wspace=0.08, hspace=0.08)
        self.ax_ = self.axes_[0, 0] if ax is None else ax
        self.figure_ = self.axes_[0, 0].figure
        for row, query, found, hits in zip(
            self.axes_, queries, neighbours, self.hits_, strict=True
        ):
            self._draw_cell(row[0], query, labels, None)
            for panel, index, hit in zip(row[1:], found, hits, strict=True):
                self._draw_cell(panel, index, labels, hit)
        self._write_titles()
        return self

    def _draw_cell(self, panel, index, labels, hit):
        """One picture; green and solid frames a hit, orange and dashed a miss."""
        panel.set(xticks=[], yticks=[])
        if self.images is not None:
            panel.imshow(self.images[index], cmap="gray_r")
        else:
            panel.text(0.5, 0.5, str(labels[index]), ha="center", va="center")
        style = {
            None: (GREY, 1.0, "-"),
            True: (PALETTE[2], 3.0, "-"),
            False: (PALETTE[1], 1.6, ":"),
        }
        edge, width, dashes = style[None if hit is None else bool(hit)]
        panel.spines[:].set(color=edge, linewidth=width, linestyle=dashes)

    def _write_titles(self):
        self.axes_[0, 0].set_title("query", size="medium")
        middle = self.axes_[0, 1 + (self.axes_.shape[1] - 1) // 2]
        words = "nearest first"
        if self.mean_average_precision is not None:
            words += f"; mean average precision {self.mean_average_precision:.2f}"
        middle.set_title(words, size="medium")


def nearest(queries, gallery, k) -> np.ndarray:
    """Indices (m, k) of the rows of gallery with the greatest cosine to each query."""
    closeness = _unit(queries) @ _unit(gallery).T
    return np.argsort(-closeness, axis=1, kind="stable")[:, :k]


def _unit(Z):
    """Rows scaled to length one; a row of zeros stays."""
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    return Z / np.where(lengths > 0, lengths, 1.0)


def average_precision(hits) -> np.ndarray:
    """Average precision of every row of a ranked list of hits; NaN where there is none."""
    hits = np.asarray(hits, dtype=float)
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    n_hits = hits.sum(axis=1)
    found = np.sum(precision * hits, axis=1)
    return np.divide(found, n_hits, out=np.full(len(hits), np.nan), where=n_hits > 0)


def _choose(labels, rows, m, random_state):
    """M rows, one of each class in turn."""
    rng = np.random.default_rng(random_state)
    shuffled = rng.permutation(rows)
    order = np.argsort(labels[shuffled], kind="stable")
    _, starts, counts = np.unique(labels[shuffled][order], return_index=True, return_counts=True)
    turn = np.empty(len(rows), dtype=int)
    turn[order] = np.arange(len(rows)) - np.repeat(starts, counts)
    return shuffled[np.argsort(turn, kind="stable")[:m]]


def _others(queries, gallery, own, k):
    """The k nearest in the gallery, without the query itself."""
    found = nearest(queries, gallery, k + 1)
    ahead = np.argsort(found == np.asarray(own)[:, None], axis=1, kind="stable")
    return np.take_along_axis(found, ahead, axis=1)[:, :k]


def _mean_precision(Z, labels):
    """Mean average precision with every row as the query once."""
    parts = []
    for start in range(0, len(Z), ROWS_AT_ONCE):
        own = np.arange(start, min(start + ROWS_AT_ONCE, len(Z)))
        ranked = _others(Z[own], Z, own, len(Z) - 1)
        parts.append(average_precision(labels[ranked] == labels[own][:, None]))
    return float(np.nanmean(np.concatenate(parts)))
