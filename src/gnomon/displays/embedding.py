"""The embedding, with how sure it is."""

from typing import Any, Self

import numpy as np

from gnomon.displays import layers, style
from gnomon.estimators import NEIGHBOURS, check_option
from gnomon.estimators.neighbour_layout import LAYOUTS, NeighbourLayout
from gnomon.typing import GraphLike, OutputsLike, RowsLike

UNCERTAINTIES = ("auto", "ellipses", "density", "none")


class EmbeddingDisplay:
    """Points in two components: labelled ones filled, unlabelled ones open.

    Up to 2,000 points each has an ellipse that contains its latent position with the probability
    ``level``; above that a density of the mean standard deviation is drawn in their place. More
    than 20,000 points without a label are drawn as a density; labelled ones are always drawn.
    It is best made with :meth:`from_estimator`, or with :meth:`from_data` for any embedding.

    Parameters
    ----------
    embedding : ndarray of shape (n, q)
        The points.
    y : array-like of shape (n,), default=None
        Classes (-1 or None is unlabelled) or numbers (NaN is unlabelled) to colour by.
    covariance : ndarray of shape (q, q) or (n, q, q), default=None
        Posterior covariance that all points share, or one for each.
    predicted : array-like of shape (n,), default=None
        Classes predicted; unlabelled points take their colours.
    links : Links or sparse array of shape (n, n), default=None
        Links between the points.
    mixture : Mixture, default=None
        Gaussians to outline.
    regions : Regions, default=None
        Classes predicted on a grid.
    components : tuple of two ints, default=(0, 1)
        Which columns of the embedding are drawn.
    layout : {"axes", "neighbours"} or NeighbourLayout, default="axes"
        What the plane shows: two components, or all of them in a `NeighbourLayout`, where near
        points are near on the whole map; a fitted one places these points on the picture of
        others. The page on maps and pictures says what each can show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    layout_ : NeighbourLayout or None
        The layout, which other rows can be placed on.
    points_ : list of PathCollection
        Unlabelled points first, then one collection for each class.
    ellipses_ : EllipseCollection or None
        Uncertainty of the points.
    density_ : PolyCollection or None
        Mean standard deviation, for many points.
    crowd_ : PolyCollection or None
        Number of points without a label, where they are many.
    class_ellipses_, mixture_, regions_, links_ : artists or None
        The other layers.

    See Also
    --------
    LoadingsDisplay : What the axes are made of.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.displays import EmbeddingDisplay
    >>> rng = np.random.default_rng(0)
    >>> Z, y = rng.normal(size=(20, 2)), np.repeat([0, 1, -1, -1], 5)
    >>> display = EmbeddingDisplay.from_data(Z, y, covariance=0.1 * np.eye(2))
    >>> len(display.ellipses_.get_offsets())
    20
    """

    def __init__(
        self,
        embedding: Any,
        *,
        y: OutputsLike = None,
        covariance: Any = None,
        predicted: Any = None,
        links: GraphLike = None,
        mixture: Any = None,
        regions: Any = None,
        components: tuple[int, int] = (0, 1),
        layout: str | NeighbourLayout = "axes",
    ) -> None:
        self.embedding = embedding
        self.y = y
        self.covariance = covariance
        self.predicted = predicted
        self.links = links
        self.mixture = mixture
        self.regions = regions
        self.components = components
        self.layout = layout

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: RowsLike,
        y: OutputsLike = None,
        *,
        components: tuple[int, int] = (0, 1),
        predict: bool = False,
        links: GraphLike = None,
        mixture: Any = False,
        regions: Any = False,
        layout: str | NeighbourLayout = "axes",
        ax: Any = None,
        **plot: Any,
    ) -> Self:
        """Embed X with a fitted estimator and draw it.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline
            Anything with ``transform``; its ``posterior`` gives the uncertainty.
        X : array-like of shape (n, d)
            Data.
        y : array-like of shape (n,), default=None
            What to colour by; see the class.
        components : tuple of two ints, default=(0, 1)
            Which components to draw.
        predict : bool, default=False
            Give unlabelled points the colour of the class that the estimator predicts.
        links : Links or sparse array of shape (n, n), default=None
            Links to draw.
        mixture : bool, default=False
            Outline the Gaussians of a mixture model such as ``DCAGM``.
        regions : bool, default=False
            Colour the plane by the class predicted; further components stay at their mean.
        layout : {"axes", "neighbours"} or NeighbourLayout, default="axes"
            What the plane shows; see the class.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to :meth:`plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        Z = style.embed(estimator, X)
        display = cls(
            Z,
            y=y,
            covariance=_posterior_covariance(estimator, X),
            predicted=estimator.predict(X) if predict else None,
            links=links,
            mixture=layers.mixture_of(estimator) if mixture else None,
            components=components,
            layout=layout,
        )
        if regions:
            pair = _two_components(components, Z, "regions")
            display.regions = layers.decision_regions(estimator, X, Z, pair)
        return display.plot(ax, **plot)

    @classmethod
    def from_data(
        cls,
        embedding: Any,
        y: OutputsLike = None,
        *,
        ax: Any = None,
        covariance: Any = None,
        links: GraphLike = None,
        layout: str | NeighbourLayout = "axes",
        **plot: Any,
    ) -> Self:
        """Draw a given embedding, of any method.

        Parameters
        ----------
        embedding, y, covariance, links, layout
            See the class.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to :meth:`plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        Z = np.asarray(embedding, dtype=float)
        display = cls(Z, y=y, covariance=covariance, links=links, layout=layout)
        return display.plot(ax, **plot)

    def plot(
        self,
        ax: Any = None,
        *,
        uncertainty: str = "auto",
        level: float = 0.68,
        class_ellipses: bool = False,
        size: float | None = None,
        legend: bool = True,
    ) -> Self:
        """Draw the embedding.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        uncertainty : {"auto", "ellipses", "density", "none"}, default="auto"
            Ellipses up to 2,000 points and a density above (in a neighbour layout nothing), one
            of them, or nothing. Where all of many points share one covariance, one ellipse in
            the corner says it.
        level : float, default=0.68
            Probability that a point lies inside its ellipse.
        class_ellipses : bool, default=False
            Outline 95 % of each class, from the labelled points.
        size : float, default=None
            Area of a point; chosen by their number if None.
        legend : bool, default=True
            Whether to name the classes.

        Returns
        -------
        EmbeddingDisplay
        """
        check_option("uncertainty", uncertainty, UNCERTAINTIES)
        target = style.read_target(self.y, len(self.embedding))
        self.layout_ = self._laid_out()
        if self.layout_ is None:
            Z, covariance = self._plane(target)
        else:
            Z, covariance = self._positions(uncertainty)
        self.ax_ = style.axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self._draw_behind(Z, target)
        hidden = self._draw_uncertainty(Z, covariance, target, uncertainty, level)
        self._draw_points(Z, target, hidden, size)
        self._draw_outlines(Z, target, class_ellipses or hidden, level)
        self._finish(target, legend and not hidden)
        return self

    def _laid_out(self):
        """The layout of all components, fitted now if it is not; None where two are drawn."""
        given: Any = self.layout
        if not isinstance(given, NeighbourLayout):
            check_option("layout", given, LAYOUTS)
            given = None if given == "axes" else NeighbourLayout().fit(self.embedding)
        if given is None:
            return None
        refused = {"mixture": self.mixture, "regions": self.regions}
        refused["components"] = None if tuple(self.components) == (0, 1) else self.components
        for name, value in refused.items():
            if value is not None:
                raise ValueError(f"{name} is for layout='axes'; {NEIGHBOURS!r} shows no two axes")
        return given

    def _positions(self, uncertainty):
        """Where the layout has the points, and the covariances of that where they are drawn."""
        Z, covariance = self.layout_.transform(self.embedding), None
        wanted = uncertainty != "none" and (uncertainty != "auto" or len(Z) <= layers.MANY_POINTS)
        if self.covariance is not None and wanted:
            covariance = self.layout_.covariance(self.embedding, self.covariance)
        return Z, covariance

    def _plane(self, target):
        """The two coordinates drawn and their covariance; one component is drawn against y."""
        pair = _pair(self.components, self.embedding)
        covariance = self.covariance
        if covariance is not None:
            covariance = np.asarray(covariance)[..., pair, :][..., :, pair]
        Z = self.embedding[:, pair]
        if len(pair) == 1:
            Z = np.column_stack([Z, _heights(target, len(Z))])
            if covariance is not None:
                covariance = covariance * np.diag([1.0, 0.0])
        return Z, covariance

    def _draw_behind(self, Z, target):
        self.regions_ = self.links_ = None
        if self.regions is not None:
            self.regions_ = layers.draw_regions(self.ax_, self.regions, style.class_names(target))
        if self.links is not None:
            self.links_ = layers.draw_links(self.ax_, Z, layers.edges_of(self.links, len(Z)))

    def _draw_uncertainty(self, Z, covariance, target, uncertainty, level):
        """Draw it and say whether it hides the points."""
        self.ellipses_ = self.density_ = None
        if covariance is None or uncertainty == "none":
            return False
        if uncertainty == "auto":
            uncertainty = "density" if len(Z) > layers.MANY_POINTS else "ellipses"
        if uncertainty == "ellipses":
            self.ellipses_ = layers.draw_uncertainty(self.ax_, Z, covariance, target, level)
            return False
        shared = _shared(covariance)
        if shared is not None:
            layers.draw_shared(self.ax_, shared, level)
            return False
        self.density_ = layers.draw_density(self.ax_, Z, covariance)
        return True

    def _draw_points(self, Z, target, hidden, size):
        """All points, of a crowd its density; over a density of uncertainty the labelled ones."""
        self.points_ = []
        predicted = self.predicted
        if predicted is not None:
            predicted = style.labels_among(predicted, style.class_names(target))
        self.crowd_ = None if hidden else layers.draw_crowd(self.ax_, Z, target)
        alone = hidden or self.crowd_ is not None
        n = len(Z) if target is None or not alone else target.labelled.sum()
        size = size or float(np.clip(12_000 / max(n, 1), 1 if alone else 4, 12 if alone else 36))
        if not hidden:
            self.points_ = layers.draw_points(self.ax_, Z, target, predicted, size)
        elif style.has_classes(target):
            shown = target.labelled
            self.points_ = layers.draw_points(self.ax_, Z[shown], _labelled(target), None, size)
            layers.draw_class_names(self.ax_, Z, target)

    def _draw_outlines(self, Z, target, class_ellipses, level):
        self.class_ellipses_ = self.mixture_ = None
        if class_ellipses and style.has_classes(target):
            self.class_ellipses_ = layers.draw_class_ellipses(self.ax_, Z, target)
        if self.mixture is not None:
            pair = _two_components(self.components, self.embedding, "mixture")
            names = style.class_names(target)
            self.mixture_ = layers.draw_mixture(self.ax_, self.mixture, pair, names, level)

    def _finish(self, target, legend):
        if self.layout_ is None:
            self._name_axes(target)
        else:
            size = self.embedding.shape[1]
            self.ax_.set_xlabel(f"neighbour layout of {size} components: only nearness counts")
            self.ax_.set(xticks=[], yticks=[])
            self.ax_.set_aspect("equal", adjustable="datalim")
        self.ax_.autoscale_view()
        if self.regions is not None:
            x, y = self.regions.x, self.regions.y
            self.ax_.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))
            self.ax_.set_aspect("equal", adjustable="box")
        style.tidy(self.ax_)
        if legend and style.has_classes(target):
            style.add_legend(self.ax_)

    def _name_axes(self, target):
        pair = _pair(self.components, self.embedding)
        self.ax_.set_xlabel(f"component {pair[0] + 1}")
        if len(pair) == 2:
            self.ax_.set_ylabel(f"component {pair[1] + 1}")
            self.ax_.set_aspect("equal", adjustable="datalim")
        elif target is None or style.has_classes(target):
            self.ax_.set_yticks([])
        else:
            self.ax_.set_ylabel("y")


def _posterior_covariance(estimator, X):
    """Covariances (n, q, q) of the embedded points; None where the model has none."""
    model, X = style.last_step(estimator, X)
    if not hasattr(model, "posterior"):
        return None
    return np.asarray(model.posterior(X).covariance, dtype=float)


def _pair(components, Z):
    """Columns to draw, as a list; one where the embedding has only one."""
    components = list(components)[: Z.shape[1]]
    if not components or min(components) < 0 or max(components) >= Z.shape[1]:
        raise ValueError(
            f"components == {components!r}; accepted are two numbers from 0 to {Z.shape[1] - 1}"
        )
    return components


def _two_components(components, Z, name):
    pair = _pair(components, Z)
    if len(pair) == 1:
        raise ValueError(f"{name} needs two components; one is drawn of {Z.shape[1]}")
    return pair


def _labelled(target):
    """The target of the labelled rows alone."""
    classes = target.classes._replace(labels=target.labels[target.labelled])
    return style.Target(classes, target.values[target.labelled])


def _shared(covariance):
    """The covariance of all points if they share one, else None."""
    if covariance.ndim == 2:
        return covariance
    return covariance[0] if np.ptp(covariance, axis=0).max() == 0 else None


def _heights(target, n):
    """Second coordinate of a single component: y itself, or the class with random jitter."""
    if target is not None and target.classes is None:
        return np.where(target.labelled, target.values, np.nanmean(target.values))
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, size=n)
    return jitter if target is None else target.labels + jitter
