"""How much each component matters, and which were kept."""

from typing import Any, Self

import numpy as np
from scipy import sparse

from gnomon.displays import style
from gnomon.estimators import as_array, as_floats
from gnomon.typing import OutputsLike, RowsLike

TINY = np.finfo(float).tiny


class RelevanceDisplay:
    """Bars per component: what it explains of X and of y, and its relevance in the model.

    A share is that of a regression on the component alone, so it exists for every embedding.
    Relevance is the model's own (automatic relevance determination), scaled to a largest bar
    of one. Dropped components are hatched. It is best made with :meth:`from_estimator`.

    Parameters
    ----------
    shares_x, shares_y : array-like of shape (q,), default=None
        Share of the variance of X and of y that each component explains.
    relevance : array-like of shape (q,), default=None
        The model's own measure.
    kept : array-like of bool of shape (q,), default=None
        Which components the model kept; all if None.
    threshold : float, default=None
        Relevance below which a component is dropped.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : dict of BarContainer
        By what they show: ``"X"``, ``"y"``, ``"relevance"``.

    Examples
    --------
    >>> from gnomon.displays import RelevanceDisplay
    >>> display = RelevanceDisplay(shares_x=[0.5, 0.2], shares_y=[0.1, 0.6]).plot()
    >>> sorted(display.bars_)
    ['X', 'y']
    """

    def __init__(
        self,
        *,
        shares_x: Any = None,
        shares_y: Any = None,
        relevance: Any = None,
        kept: Any = None,
        threshold: Any = None,
    ) -> None:
        self.shares_x = shares_x
        self.shares_y = shares_y
        self.relevance = relevance
        self.kept = kept
        self.threshold = threshold

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: RowsLike, y: OutputsLike = None, *, ax: Any = None, **plot: Any
    ) -> Self:
        """Compute the shares of a fitted estimator on X, and on y if given, and draw them.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline
            Its last step's ``relevance_`` is drawn too where it has one.
        X : array-like of shape (n, d)
            Data, with gaps where the estimator takes them.
        y : array-like of shape (n,) or (n, c), default=None
            Classes or numbers; unlabelled rows are left out.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to :meth:`plot`.

        Returns
        -------
        RelevanceDisplay
        """
        Z = style.embed(estimator, X)
        model, seen = style.last_step(estimator, X)
        display = cls(
            shares_x=explained_shares(seen, Z),
            shares_y=None if y is None else explained_shares(target_columns(y, len(Z)), Z),
            relevance=getattr(model, "relevance_", None),
            kept=getattr(model, "kept_", None),
        )
        return display.plot(ax, **plot)

    def plot(self, ax: Any = None, *, max_components: int = 30, legend: bool = True) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        max_components : int, default=30
            Draw at most so many components.
        legend : bool, default=True
            Whether to say what the bars are.

        Returns
        -------
        RelevanceDisplay
        """
        series = self._series(max_components)
        self.ax_ = style.axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self.bars_ = {}
        width = 0.8 / len(series)
        for i, (name, heights) in enumerate(series.items()):
            at = np.arange(len(heights)) + (i - (len(series) - 1) / 2) * width
            self.bars_[name] = self._draw_bars(name, at, heights, width)
        self._finish(series, legend)
        return self

    def _series(self, max_components):
        """Heights by name, all of one length: a dropped component explains nothing."""
        series = {"X": self.shares_x, "y": self.shares_y, "relevance": self.relevance}
        series = {name: np.asarray(part) for name, part in series.items() if part is not None}
        if not series:
            raise ValueError("nothing to draw: give shares_x, shares_y or relevance")
        if "relevance" in series:
            series["relevance"] = series["relevance"] / max(series["relevance"].max(), TINY)
        q = max(len(part) for part in series.values())
        padded = {name: np.pad(part, (0, q - len(part))) for name, part in series.items()}
        return {name: part[:max_components] for name, part in padded.items()}

    def _draw_bars(self, name, at, heights, width):
        fill = {"X": style.PALETTE[0], "y": style.PALETTE[1], "relevance": style.GREY}[name]
        text = {"X": "variance of X", "y": "variance of y", "relevance": "relevance / largest"}
        bars = self.ax_.bar(at, heights, 0.92 * width, color=fill, label=text[name])
        kept = np.ones(len(heights), bool) if self.kept is None else np.asarray(self.kept)
        for bar, keep in zip(bars, kept[: len(heights)], strict=True):
            if not keep:
                bar.set(facecolor="white", edgecolor=fill, hatch="////", linewidth=0.8)
        return bars

    def _finish(self, series, legend):
        q = len(next(iter(series.values())))
        step = 1 + q // 12
        self.ax_.set_xticks(np.arange(0, q, step), np.arange(1, q + 1, step))
        self.ax_.set_xlabel("component" + self._kept_words(q))
        self.ax_.set_ylabel("relative relevance" if list(series) == ["relevance"] else "share")
        if self.threshold is not None and self.relevance is not None:
            line = self.threshold / np.max(self.relevance)
            self.ax_.axhline(line, color=style.FAINT, ls="--", lw=1, zorder=0)
        style.tidy(self.ax_)
        if legend and len(series) > 1:
            self.ax_.legend(frameon=False)

    def _kept_words(self, q):
        if self.kept is None or np.all(self.kept):
            return ""
        return f"   ({np.sum(self.kept)} of {q} kept, dropped ones hatched)"


def explained_shares(X, Z) -> np.ndarray:
    """Share (q,) of the variance of X that a regression on each column of Z alone explains.

    For uncorrelated columns the shares add up; NaN in X is left out pair by pair. Any
    embedding has these shares, also one that comes from no model of variance.
    """
    X, observed = _observed(X)
    counts = observed.sum(axis=0).reshape(-1, 1) if observed is not None else len(Z)
    Z = Z - Z.mean(axis=0)
    sums = (observed.T @ Z) if observed is not None else 0.0
    squares = (observed.T @ Z**2) if observed is not None else np.sum(Z**2, axis=0)
    x_sums = np.asarray(X.sum(axis=0)).reshape(-1, 1)
    # The product needs no centring: columns of X have mean zero, or Z has, where X is sparse.
    cross = X.T @ Z
    z_variation = np.maximum(squares - sums**2 / counts, TINY)
    x_variation = np.asarray((X * X).sum(axis=0)).reshape(-1, 1) - x_sums**2 / counts
    return np.sum(cross**2 / z_variation, axis=0) / max(x_variation.sum(), TINY)


def _observed(X):
    """X with zeros for its gaps, centred where dense, and the mask of what is there."""
    if sparse.issparse(X):
        return sparse.csr_array(X), None  # type: ignore[call-overload]
    X = np.asarray(X, dtype=float)
    observed = np.isfinite(X)
    counts = np.maximum(observed.sum(axis=0), 1)
    means = np.where(observed, X, 0.0).sum(axis=0) / counts
    X = np.where(observed, X - means, 0.0)
    return X, None if observed.all() else observed.astype(float)


def target_columns(y, n_samples):
    """Y as float columns with NaN where unlabelled: an indicator per class, or the numbers."""
    if as_array(y).ndim == 2 and as_array(y).shape[1] > 1:
        return as_floats(y)
    target = style.read_target(y, n_samples)
    if target.classes is None:  # type: ignore[union-attr]
        return target.values[:, None]  # type: ignore[union-attr]
    columns = (target.labels[:, None] == np.arange(len(style.class_names(target)))).astype(float)  # type: ignore[union-attr]
    columns[~target.labelled] = np.nan  # type: ignore[union-attr]
    return columns
