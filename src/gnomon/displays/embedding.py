"""The embedding, with how sure it is."""

import numpy as np

from gnomon.displays import _layers as layers
from gnomon.displays import _plane as plane
from gnomon.displays._reading import embed, posterior_covariance
from gnomon.displays._regions import decision_regions
from gnomon.displays._style import axes_or_new, class_names, codes_among, read_labels, tidy

UNCERTAINTIES = ("auto", "ellipses", "density", "none")


class EmbeddingDisplay:
    """Points in two components: labelled ones filled, unlabelled ones open.

    Up to 2,000 points each has an ellipse that holds its latent position with the probability
    ``level``; above that a density of the mean standard deviation is drawn in their place.
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

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    points_ : list of PathCollection
        Unlabelled points first, then one collection for each class.
    ellipses_ : EllipseCollection or None
        Uncertainty of the points.
    density_ : PolyCollection or None
        Mean standard deviation, for many points.
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
        embedding,
        *,
        y=None,
        covariance=None,
        predicted=None,
        links=None,
        mixture=None,
        regions=None,
        components=(0, 1),
    ):
        self.embedding = embedding
        self.y = y
        self.covariance = covariance
        self.predicted = predicted
        self.links = links
        self.mixture = mixture
        self.regions = regions
        self.components = components

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y=None,
        *,
        components=(0, 1),
        predict=False,
        links=None,
        mixture=False,
        regions=False,
        ax=None,
        **plot,
    ):
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
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to :meth:`plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        Z = embed(estimator, X)
        display = cls(
            Z,
            y=y,
            covariance=posterior_covariance(estimator, X),
            predicted=estimator.predict(X) if predict else None,
            links=links,
            mixture=plane.mixture_of(estimator) if mixture else None,
            regions=decision_regions(estimator, X, Z, plane.pair(components, Z))
            if regions
            else None,
            components=components,
        )
        return display.plot(ax, **plot)

    @classmethod
    def from_data(cls, embedding, y=None, *, ax=None, covariance=None, links=None, **plot):
        """Draw an embedding that is at hand, of whatever method.

        Parameters
        ----------
        embedding, y, covariance, links
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
        return cls(Z, y=y, covariance=covariance, links=links).plot(ax, **plot)

    def plot(
        self,
        ax=None,
        *,
        uncertainty="auto",
        level=0.68,
        class_ellipses=False,
        size=None,
        legend=True,
    ):
        """Draw the embedding.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        uncertainty : {"auto", "ellipses", "density", "none"}, default="auto"
            Ellipses up to 2,000 points and a density above, one of them, or nothing. Where all
            of many points share one covariance, one ellipse in the corner says it.
        level : float, default=0.68
            Probability that an ellipse holds.
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
        if uncertainty not in UNCERTAINTIES:
            raise ValueError(f"uncertainty == {uncertainty!r}; accepted are {UNCERTAINTIES}")
        labels = read_labels(self.y, len(self.embedding))
        Z, covariance = self._plane(labels)
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self._draw_behind(Z, labels)
        hidden = self._draw_uncertainty(Z, covariance, labels, uncertainty, level)
        self._draw_points(Z, labels, hidden, size)
        self._draw_outlines(Z, labels, class_ellipses or hidden, level)
        self._finish(labels, legend and not hidden)
        return self

    def _plane(self, labels):
        """The two coordinates drawn and their covariance; one component is spread by y."""
        pair = plane.pair(self.components, self.embedding)
        covariance = self.covariance
        if covariance is not None:
            covariance = np.asarray(covariance)[..., pair, :][..., :, pair]
        Z = self.embedding[:, pair]
        if len(pair) == 1:
            Z = np.column_stack([Z, plane.heights(labels, len(Z))])
            if covariance is not None:
                covariance = covariance * np.diag([1.0, 0.0])
        return Z, covariance

    def _draw_behind(self, Z, labels):
        self.regions_ = self.links_ = None
        if self.regions is not None:
            self.regions_ = layers.draw_regions(self.ax_, self.regions, class_names(labels))
        if self.links is not None:
            self.links_ = layers.draw_links(self.ax_, Z, layers.edges_of(self.links, len(Z)))

    def _draw_uncertainty(self, Z, covariance, labels, uncertainty, level):
        """Draw it and say whether it hides the points."""
        self.ellipses_ = self.density_ = None
        if covariance is None or uncertainty == "none":
            return False
        many = len(Z) > layers.MANY_POINTS
        if uncertainty == "auto":
            uncertainty = "density" if many else "ellipses"
        if uncertainty == "ellipses":
            self.ellipses_ = layers.draw_uncertainty(self.ax_, Z, covariance, labels, level)
            return False
        shared = plane.shared(covariance)
        if shared is not None:
            layers.draw_shared(self.ax_, shared, level)
            return False
        self.density_ = layers.draw_density(self.ax_, Z, covariance)
        return True

    def _draw_points(self, Z, labels, hidden, size):
        """All points; over a density only the labelled ones, and only where they are few."""
        self.points_ = []
        predicted = self.predicted
        if predicted is not None:
            predicted = codes_among(predicted, class_names(labels))
        size = size or float(np.clip(12_000 / max(len(Z), 1), 4, 36))
        if not hidden:
            self.points_ = layers.draw_points(self.ax_, Z, labels, predicted, size)
        elif labels is not None and labels.classes is not None:
            few = labels.labelled.sum() <= layers.MANY_POINTS
            if few:
                shown = labels.labelled
                kept = read_labels(np.asarray(self.y)[shown], int(shown.sum()))
                self.points_ = layers.draw_points(self.ax_, Z[shown], kept, None, 12)
            layers.draw_class_names(self.ax_, Z, labels)

    def _draw_outlines(self, Z, labels, class_ellipses, level):
        self.class_ellipses_ = self.mixture_ = None
        if class_ellipses and labels is not None and labels.classes is not None:
            self.class_ellipses_ = layers.draw_class_ellipses(self.ax_, Z, labels)
        if self.mixture is not None:
            pair = plane.pair(self.components, self.embedding)
            covariances = np.asarray(self.mixture.covariances)[:, pair, :][:, :, pair]
            codes = codes_among(self.mixture.classes, class_names(labels))
            means = np.asarray(self.mixture.means)[:, pair]
            self.mixture_ = layers.draw_mixture(self.ax_, means, covariances, codes, level)

    def _finish(self, labels, legend):
        pair = plane.pair(self.components, self.embedding)
        self.ax_.set_xlabel(f"component {pair[0] + 1}")
        if len(pair) == 2:
            self.ax_.set_ylabel(f"component {pair[1] + 1}")
            self.ax_.set_aspect("equal", adjustable="datalim")
        elif labels is None or labels.classes is not None:
            self.ax_.set_yticks([])
        else:
            self.ax_.set_ylabel("y")
        self.ax_.autoscale_view()
        if self.regions is not None:
            self.ax_.set(xlim=plane.ends(self.regions.x), ylim=plane.ends(self.regions.y))
            self.ax_.set_aspect("equal", adjustable="box")
        tidy(self.ax_)
        if legend and labels is not None and labels.classes is not None:
            columns = 1 + len(labels.classes.names) // 16
            self.ax_.legend(
                frameon=False, bbox_to_anchor=(1.0, 1.0), loc="upper left", ncols=columns
            )
