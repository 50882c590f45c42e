"""What the components are made of."""

from typing import Any, Self

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from gnomon.displays import style
from gnomon.displays.layers import draw_points
from gnomon.estimators import check_option, n_rows, take_rows
from gnomon.typing import OutputsLike, RowsLike, SeedLike

KINDS = ("heatmap", "top", "biplot", "images")


class LoadingsDisplay:
    """Loadings as a heat map, as ranked bars with intervals, as a biplot, or as images.

    Parameters
    ----------
    loadings : array-like of shape (q, d)
        A row per component.
    feature_names : array-like of str of shape (d,), default=None
        Names of the features; x0, x1, ... if None.
    sd : array-like of shape (q, d), default=None
        Standard deviations of the loadings; bars of 95 % are drawn.
    embedding : ndarray of shape (n, q), default=None
        Points of the biplot.
    y : array-like of shape (n,), default=None
        What to colour the points of the biplot by.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    axes_ : ndarray of Axes
        All panels; more than one for ``kind="images"``.
    shown_ : ndarray of int
        Which features are drawn, in their order.

    Examples
    --------
    >>> from gnomon.displays import LoadingsDisplay
    >>> display = LoadingsDisplay([[0.1, -0.9, 0.3]], sd=[[0.1, 0.1, 0.1]])
    >>> display.plot(kind="top", n_features=2).shown_.tolist()
    [1, 2]
    """

    def __init__(
        self,
        loadings: Any,
        *,
        feature_names: Any = None,
        sd: Any = None,
        embedding: Any = None,
        y: OutputsLike = None,
    ) -> None:
        self.loadings = loadings
        self.feature_names = feature_names
        self.sd = sd
        self.embedding = embedding
        self.y = y

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: RowsLike = None,
        y: OutputsLike = None,
        *,
        n_bootstrap: int = 0,
        random_state: SeedLike = 0,
        ax: Any = None,
        **plot: Any,
    ) -> Self:
        """Read the loadings of a fitted estimator and draw them.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline
            Its last step has ``components_``, and intervals where it has ``loadings_sd_``.
        X : array-like of shape (n, d), default=None
            Data, for the points of ``kind="biplot"`` and for ``n_bootstrap``.
        y : array-like of shape (n,), default=None
            What to colour these points by, and the labels of the fits of ``n_bootstrap``.
        n_bootstrap : int, default=0
            For a model that has no posterior of its loadings: fit it again so many times, to
            rows drawn with replacement, and take the intervals from these fits.
        random_state : int, default=0
            Draws the rows.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to :meth:`plot`.

        Returns
        -------
        LoadingsDisplay
        """
        model, _ = style.last_step(estimator)
        if not hasattr(model, "components_"):
            raise TypeError(f"{type(model).__name__} has no components_, so it has no loadings")
        loadings = np.asarray(model.components_, dtype=float)
        sd = getattr(model, "loadings_sd_", None)
        if n_bootstrap and X is None:
            raise ValueError(f"n_bootstrap == {n_bootstrap!r} needs the rows: pass X")
        if n_bootstrap:
            sd = _bootstrap_sd(estimator, X, y, n_bootstrap, random_state)
        display = cls(
            loadings,
            feature_names=_feature_names(estimator, loadings.shape[1]),
            sd=sd,
            embedding=None if X is None else style.embed(estimator, X),
            y=y,
        )
        return display.plot(ax, **plot)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: str = "heatmap",
        component: int = 0,
        n_features: int = 20,
        image_shape: tuple[int, int] | None = None,
    ) -> Self:
        """Draw the loadings.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        kind : {"heatmap", "top", "biplot", "images"}, default="heatmap"
            All components against the strongest features; one component's strongest features
            with intervals; points with the strongest features as arrows; each component as an
            image.
        component : int, default=0
            The component of ``kind="top"``.
        n_features : int, default=20
            How many features to draw, the strongest first.
        image_shape : tuple of two ints, default=None
            Height and width of an image, for ``kind="images"``; square if None.

        Returns
        -------
        LoadingsDisplay
        """
        check_option("kind", kind, KINDS)
        loadings = np.atleast_2d(np.asarray(self.loadings, dtype=float))
        names = self.feature_names
        self._names = [f"x{j}" for j in range(loadings.shape[1])] if names is None else names
        if kind == "images":
            self._draw_images(ax, loadings, image_shape)
            return self
        strength = np.abs(loadings[component]) if kind == "top" else np.hypot.reduce(loadings[:2])
        if kind == "heatmap":
            strength = np.abs(loadings).max(axis=0)
        self.shown_ = np.argsort(-strength, kind="stable")[:n_features]
        self.ax_ = style.axes_or_new(ax, figsize=_size(kind, len(self.shown_), len(loadings)))
        self.axes_, self.figure_ = np.array([self.ax_]), self.ax_.figure
        if kind == "heatmap":
            self._draw_heatmap(loadings)
        elif kind == "top":
            self._draw_top(loadings, component)
        else:
            self._draw_biplot(loadings)
        return self

    def _draw_heatmap(self, loadings):
        """Features grouped by the component where they are strongest."""
        strongest = np.argmax(np.abs(loadings[:, self.shown_]), axis=0)
        self.shown_ = self.shown_[np.argsort(strongest, kind="stable")]
        shown = loadings[:, self.shown_].T
        limit = np.abs(shown).max() or 1.0
        image = self.ax_.imshow(shown, cmap=style.DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
        self.figure_.colorbar(image, ax=self.ax_, label="loading", shrink=0.8)
        q = len(loadings)
        self.ax_.set_xticks(np.arange(q), np.arange(1, q + 1))
        self.ax_.set_yticks(np.arange(len(shown)), [self._names[j] for j in self.shown_])
        self.ax_.set_xlabel("component")
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)

    def _draw_top(self, loadings, component):
        at = np.arange(len(self.shown_))
        values = loadings[component, self.shown_]
        colours = [style.PALETTE[1] if value > 0 else style.PALETTE[0] for value in values]
        self.ax_.hlines(at, 0, values, colors=colours, lw=2, zorder=2)
        self.ax_.scatter(values, at, color=colours, s=28, zorder=3)
        if self.sd is not None:
            half = 1.96 * np.asarray(self.sd)[component, self.shown_]
            self.ax_.errorbar(values, at, xerr=half, fmt="none", ecolor=style.INK, capsize=2, lw=1)
        self.ax_.axvline(0, color=style.FAINT, lw=1, zorder=0)
        self.ax_.set_yticks(at, [self._names[j] for j in self.shown_])
        self.ax_.invert_yaxis()
        words = ", with 95 % intervals" if self.sd is not None else ""
        self.ax_.set_xlabel(f"loading on component {component + 1}{words}")
        style.tidy(self.ax_)

    def _draw_biplot(self, loadings):
        if self.embedding is None or self.embedding.shape[1] < 2 or len(loadings) < 2:
            raise ValueError("kind='biplot' needs points: pass X, and two components or more")
        Z = self.embedding[:, :2]
        target = style.read_target(self.y, len(Z))
        draw_points(self.ax_, Z, target, None, 14)
        tips = self._draw_arrows(loadings[:2, self.shown_].T, np.quantile(np.hypot(*Z.T), 0.95))
        self.ax_.autoscale_view()
        self.ax_.set_aspect("equal", adjustable="datalim")
        self.ax_.set(xlabel="component 1", ylabel="component 2")
        style.tidy(self.ax_)
        if style.has_classes(target):
            style.add_legend(self.ax_)
        self._name_arrows(tips)

    def _draw_arrows(self, arrows, reach):
        """Tips of an arrow per feature; the longest reaches as far as nearly all points."""
        tips = arrows * reach / max(np.hypot(*arrows.T).max(), np.finfo(float).tiny)
        look = {"arrowstyle": "-|>", "color": style.INK, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
        for tip in tips:
            self.ax_.annotate("", tip, (0, 0), arrowprops=look, zorder=4)
        self.ax_.update_datalim(1.25 * tips)
        return tips

    def _name_arrows(self, tips):
        """The names at the tips, the longest arrow first, a thin line to those moved away."""
        box = {"fc": "white", "ec": "none", "alpha": 0.75, "pad": 0.8}
        look = {"size": "small", "ha": "center", "va": "center", "bbox": box, "zorder": 5}
        line = {"arrowstyle": "-", "color": style.GREY, "lw": 0.6}
        look |= {"textcoords": "offset points", "arrowprops": line}
        names = [self._names[j] for j in self.shown_]
        texts = [
            self.ax_.annotate(name, tip, (0, 0), **look)
            for name, tip in zip(names, tips, strict=True)
        ]
        self.figure_.draw_without_rendering()
        points = 72 / self.figure_.dpi
        sizes = points * np.array([text.get_window_extent().size for text in texts])
        at = points * self.ax_.transData.transform([(0, 0), *tips])
        for text, offset in zip(texts, placed_apart(at[1:], at[1:] - at[0], sizes), strict=True):
            text.set_position(offset)

    def _draw_images(self, ax, loadings, image_shape):
        q, d = loadings.shape
        side = round(np.sqrt(d))
        height, width = image_shape or (side, side)
        if height * width != d:
            raise ValueError(f"image_shape == {(height, width)!r}; its product must be {d}")
        columns = min(q, 5)
        rows = -(-q // columns)
        self.axes_ = style.panels(ax, rows, columns, figsize=(1.9 * columns, 2.1 * rows)).ravel()
        self.ax_ = self.axes_[0] if ax is None else ax
        self.figure_, self.shown_ = self.axes_[0].figure, np.arange(d)
        for j, panel in enumerate(self.axes_):
            panel.set_axis_off()
            if j < q:
                limit = np.abs(loadings[j]).max() or 1.0
                image = loadings[j].reshape(height, width)
                panel.imshow(image, cmap=style.DIVERGING, vmin=-limit, vmax=limit)
                panel.set_title(f"component {j + 1}", size="medium")


def _bootstrap_sd(estimator, X, y, n_bootstrap, random_state) -> np.ndarray:
    """Standard deviations (q, d) of the loadings over fits to rows drawn with replacement.

    Each fit is turned onto the given one first: axes may turn or change sign without any change
    of the subspace, and that is no uncertainty of a loading.
    """
    rng = np.random.default_rng(random_state)
    reference = style.last_step(estimator)[0].components_
    draws = []
    for _ in range(n_bootstrap):
        rows = rng.integers(n_rows(X), size=n_rows(X))
        drawn = None if y is None else take_rows(y, rows)
        model, _ = style.last_step(clone(estimator).fit(take_rows(X, rows), drawn))
        draws.append(_turned(model.components_, reference))
    return np.std(draws, axis=0, ddof=1)


def _turned(loadings, reference):
    if loadings.shape != reference.shape:
        raise ValueError(
            f"a fit to resampled rows has {len(loadings)} components in place of "
            f"{len(reference)}; give n_components as a number for n_bootstrap"
        )
    turn, _ = orthogonal_procrustes(loadings.T, reference.T)
    return (loadings.T @ turn).T


def _feature_names(estimator, n_features):
    """Names of the features that the model sees; x0, x1, ... where they have none."""
    model, _ = style.last_step(estimator)
    names = getattr(model, "feature_names_in_", None)
    if names is None and isinstance(estimator, Pipeline) and len(estimator) > 1:
        names = _names_out(estimator[:-1])
    if names is None or len(names) != n_features:
        names = [f"x{j}" for j in range(n_features)]
    return np.asarray(names, dtype=object)


def _names_out(steps):
    try:
        return steps.get_feature_names_out()
    except (AttributeError, ValueError):
        return None


def placed_apart(tips, directions, sizes) -> np.ndarray:
    """Offsets (m, 2) of the middle of boxes of these sizes from their tips, so that none overlap.

    Each box goes to the first free place on rays about the direction of its arrow, the nearest
    one first; where all are taken, it stays at the furthest.
    """
    offsets = np.zeros((len(tips), 2))
    taken: list[tuple[np.ndarray, np.ndarray]] = []
    for i, (tip, direction) in enumerate(zip(tips, directions, strict=True)):
        for offset in _places(direction, sizes[i]):
            low, high = tip + offset - sizes[i] / 2, tip + offset + sizes[i] / 2
            if not any((low < b).all() and (a < high).all() for a, b in taken):
                break
        offsets[i] = offset
        taken.append((low, high))
    return offsets


def _places(direction, size):
    """Offsets of a box whose edge lies on circles about its tip, the nearest circle first."""
    angle = np.arctan2(direction[1], direction[0])
    for radius in size[1] * np.array([0.2, 1, 2, 3, 4, 6, 8]):
        for turn in np.radians([0, 25, -25, 50, -50, 80, -80]):
            ray = np.array([np.cos(angle + turn), np.sin(angle + turn)])
            yield ray * (radius + np.min(size / 2 / np.maximum(np.abs(ray), 1e-9)))


def _size(kind, n_features, q):
    if kind == "biplot":
        return None
    width = 3.2 + 0.45 * q if kind == "heatmap" else 6.0
    return max(width, 4.5), max(2.4, 1.2 + 0.24 * n_features)
