"""The layers of an embedding, from back to front: regions, links, uncertainty, points, outlines.

Each layer has what it is drawn from, if that has to be computed, and how it is drawn.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.displays.style import (
    GREY,
    INK,
    SEQUENTIAL,
    Target,
    class_names,
    colour,
    embed,
    labels_among,
    last_step,
    marker,
)
from gnomon.linalg.data import as_data

# Above so many, ellipses of single points cover each other and take long to draw.
MANY_POINTS = 2_000
# Above so many, points without a label are drawn as a density.
MOST_MARKERS = 20_000
# Above so many, unlabelled points are drawn smaller and fainter than labelled ones.
CROWD = 500
CLASS_LEVEL = 0.95  # the usual share of a class that its outline holds
RESOLUTION = 120  # places of the grid along each axis, as fine as a figure shows
ROWS_AT_ONCE = 2_000  # of the grid, so that inputs with many features fit in memory


class Regions(NamedTuple):
    """Grid positions per axis and the class predicted at each, (rows, columns)."""

    x: np.ndarray
    y: np.ndarray
    classes: np.ndarray


def decision_regions(estimator, X, Z, components) -> Regions:
    """Predicted classes on a grid in two components; the others stay at their mean.

    The embedding is affine in X, so the rows of pinv(Z - mean) X, whose mean cancels, move an
    input by one unit along each component. This gives an input for every point of the grid.
    """
    like = _maker(X)
    data = as_data(X if sparse.issparse(X) else np.asarray(X, dtype=float))
    x_mean, z_mean = data.column_means(), Z.mean(axis=0)
    moves = (data.T @ np.linalg.pinv(Z - z_mean).T).T
    x, y = _grid(Z[:, components])
    offsets = np.zeros((len(x) * len(y), Z.shape[1]))
    offsets[:, components] = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    offsets[:, components] -= z_mean[components]
    probe = offsets[:: len(offsets) // 5]
    _check_affine(estimator, like(x_mean + probe @ moves), z_mean + probe)
    parts = [
        estimator.predict(like(x_mean + offsets[i : i + ROWS_AT_ONCE] @ moves))
        for i in range(0, len(offsets), ROWS_AT_ONCE)
    ]
    return Regions(x, y, np.concatenate(parts).reshape(len(y), len(x)))


def _grid(Z):
    """Positions along both axes, with a margin; the short one spans at least 0.6 of the long."""
    extents = np.maximum(np.ptp(Z, axis=0), np.finfo(float).tiny)
    centres, halves = Z.min(axis=0) + extents / 2, 0.65 * extents
    halves = np.maximum(halves, 0.6 * halves.max())
    return [np.linspace(c - h, c + h, RESOLUTION) for c, h in zip(centres, halves, strict=True)]


def _maker(X):
    """Makes of an array what X is: a data frame with its columns, or the array itself."""
    if hasattr(X, "iloc"):
        return lambda rows: type(X)(rows, columns=X.columns)
    return np.asarray


def _check_affine(estimator, X, Z):
    if not np.allclose(embed(estimator, X), Z, rtol=0, atol=0.01 * np.ptp(Z, axis=0).max()):
        raise ValueError(
            "regions=True needs an embedding that is linear in X and has no missing values; "
            f"{type(estimator).__name__} is not linear here"
        )


def draw_regions(ax, regions: Regions, names):
    """Fill the plane with the colour of the class predicted there."""
    from matplotlib.colors import ListedColormap

    labels = labels_among(regions.classes, names)
    n_classes = labels.max() + 1
    return ax.pcolormesh(
        regions.x,
        regions.y,
        labels,
        cmap=ListedColormap([colour(label) for label in range(n_classes)]),
        vmin=-0.5,
        vmax=n_classes - 0.5,
        alpha=0.16,
        shading="nearest",
        linewidth=0,
        rasterized=True,
        zorder=0,
    )


def edges_of(links, n):
    """Ends (m, 2) of the links, each pair once, from a Links object or an adjacency matrix."""
    adjacency = sparse.coo_array(getattr(links, "adjacency", links))
    if adjacency.shape != (n, n):
        raise ValueError(f"links join {adjacency.shape} rows; the embedding has {n}")
    pairs = np.column_stack([adjacency.row, adjacency.col])[adjacency.data != 0]
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(np.sort(pairs, axis=1), axis=0)


def draw_links(ax, Z, edges):
    """One thin line per link, fainter where there are many."""
    from matplotlib.collections import LineCollection

    alpha = float(np.clip(15 / np.sqrt(max(len(edges), 1)), 0.06, 0.5))
    lines = LineCollection(Z[edges], colors=GREY, linewidths=0.7, alpha=alpha, zorder=1)
    return ax.add_collection(lines, autolim=False)


class Ellipses(NamedTuple):
    """Centres (m, 2), full lengths of both axes (m,), angle of the first axis in degrees (m,)."""

    centres: np.ndarray
    widths: np.ndarray
    heights: np.ndarray
    angles: np.ndarray


def ellipses_of(means, covariances, level) -> Ellipses:
    """Ellipses that contain N(mean, covariance) in the plane with probability ``level``.

    In two dimensions this radius is sqrt(-2 log(1 - level)) standard deviations.
    """
    means = np.asarray(means, dtype=float)
    covariances = np.broadcast_to(covariances, (len(means), 2, 2))
    eigenvalues, vectors = np.linalg.eigh(covariances)
    lengths = 2 * np.sqrt(-2.0 * np.log1p(-level) * np.maximum(eigenvalues, 0.0))
    angles = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    return Ellipses(means, lengths[:, 1], lengths[:, 0], angles)


def draw_uncertainty(ax, Z, covariance, target: Target | None, level):
    """An ellipse for every point, in the colour of its class; grey where y is a number."""
    from matplotlib.colors import to_rgba

    labels = np.zeros(len(Z), dtype=int) if target is None else target.labels
    ellipses = ellipses_of(Z, covariance, level)
    fade = 1 / max(1.0, _overlap(ellipses) / 3)
    faces = [to_rgba(colour(c), 0.2 * fade if c >= 0 else 0.0) for c in labels]
    edges = [to_rgba(colour(c), (0.7 if c >= 0 else 0.4) * max(fade, 0.3)) for c in labels]
    style = {"facecolors": faces, "edgecolors": edges, "linewidths": 0.6, "zorder": 0.8}
    return _draw_ellipses(ax, ellipses, **style)


def draw_shared(ax, covariance, level):
    """One ellipse in the corner, in data units, for an uncertainty that all points share."""
    from matplotlib.offsetbox import AnchoredOffsetbox, AuxTransformBox, TextArea, VPacker
    from matplotlib.patches import Ellipse

    _, width, height, angle = (part[0] for part in ellipses_of([[0, 0]], covariance, level))
    box = AuxTransformBox(ax.transData)
    box.add_artist(Ellipse((0, 0), width, height, angle=angle, fill=False, color="0.3", lw=1.2))
    style = {"size": "small", "color": "0.3"}
    words = TextArea(f"{level:.0%} of each point", textprops=style)
    packed = VPacker(children=[box, words], align="center", pad=0, sep=3)
    ax.add_artist(AnchoredOffsetbox("lower right", child=packed, frameon=True, pad=0.4))


def draw_density(ax, Z, covariance):
    """Hexagons coloured by the mean standard deviation of the points inside."""
    sd = np.sqrt(np.trace(covariance, axis1=-2, axis2=-1) / 2)
    density = ax.hexbin(
        *Z.T,
        C=np.broadcast_to(sd, len(Z)),
        reduce_C_function=np.mean,
        gridsize=45,
        cmap=SEQUENTIAL,
        edgecolors="face",
        linewidths=0.4,
        zorder=0.5,
    )
    ax.figure.colorbar(density, ax=ax, label="mean standard deviation", shrink=0.8)
    return density


def draw_crowd(ax, Z, target: Target | None):
    """Hexagons shaded by the number of points without a label, where these are many; or None."""
    rows = Z if target is None else Z[~target.labelled]
    if len(rows) <= MOST_MARKERS:
        return None
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # Light enough for labelled points of any colour to stand out.
    greys = ListedColormap(colormaps["Greys"](np.linspace(0.12, 0.6, 128)))
    style = {"bins": "log", "mincnt": 1, "edgecolors": "face", "linewidths": 0.2}
    crowd = ax.hexbin(*rows.T, gridsize=80, cmap=greys, zorder=0.5, **style)
    what = "rows" if target is None else "unlabelled rows"
    ax.figure.colorbar(crowd, ax=ax, label=f"{what} in a hexagon", shrink=0.8)
    return crowd


def _overlap(ellipses):
    """How many ellipses lie over a place, on average over the box that contains them."""
    box = np.ptp(_corners(ellipses), axis=0)
    areas = np.pi / 4 * ellipses.widths * ellipses.heights
    return float(areas.sum() / max(np.prod(box), np.finfo(float).tiny))


def _draw_ellipses(ax, ellipses, **style):
    """Add the ellipses to the axes, in data units, and widen the limits to show them."""
    from matplotlib.collections import EllipseCollection

    collection = EllipseCollection(
        ellipses.widths,
        ellipses.heights,
        ellipses.angles,
        units="xy",
        offsets=ellipses.centres,
        offset_transform=ax.transData,
        **style,
    )
    ax.add_collection(collection, autolim=False)
    ax.update_datalim(_corners(ellipses))
    return collection


def _corners(ellipses):
    """Lower and upper corners of the boxes around the ellipses."""
    cosine, sine = np.cos(np.radians(ellipses.angles)), np.sin(np.radians(ellipses.angles))
    a, b = ellipses.widths / 2, ellipses.heights / 2
    half = np.column_stack([np.hypot(a * cosine, b * sine), np.hypot(a * sine, b * cosine)])
    return np.vstack([ellipses.centres - half, ellipses.centres + half])


def draw_points(ax, Z, target: Target | None, predicted, size):
    """Labelled points filled, unlabelled ones open; returns a collection per group."""
    if target is None and len(Z) > MOST_MARKERS:
        return []
    if target is None:
        return [ax.scatter(*Z.T, s=size, color=colour(0), linewidths=0, alpha=0.85, zorder=3)]
    groups = _draw_unlabelled(ax, Z, target, predicted, size)
    if target.classes is None:
        return [*groups, _draw_numbers(ax, Z, target, size)]
    for label, name in enumerate(class_names(target)):
        here = target.labels == label
        style = {"marker": marker(label), "color": colour(label), "label": str(name)}
        groups.append(
            ax.scatter(*Z[here].T, s=size, linewidths=0.4, edgecolors="white", zorder=3, **style)
        )
    return groups


def _draw_unlabelled(ax, Z, target, predicted, size):
    rows = np.flatnonzero(~target.labelled)
    if len(rows) == 0 or len(rows) > MOST_MARKERS:
        return []
    labels = np.full(len(rows), -1) if predicted is None else predicted[rows]
    crowded = len(rows) > CROWD
    return [
        ax.scatter(
            *Z[rows].T,
            s=size * (0.5 if crowded else 0.8),
            facecolors="none",
            edgecolors=[colour(label) for label in labels],
            linewidths=0.5 if crowded else 0.8,
            alpha=0.6 if crowded else 0.85,
            zorder=2,
            label="unlabelled" if predicted is None else "unlabelled, predicted",
        )
    ]


def _draw_numbers(ax, Z, target, size):
    rows = target.labelled
    points = ax.scatter(
        *Z[rows].T, c=target.values[rows], s=size, cmap=SEQUENTIAL, linewidths=0, zorder=3
    )
    ax.figure.colorbar(points, ax=ax, label="y", shrink=0.8)
    return points


def draw_class_names(ax, Z, target):
    """The name of each class at its mean, in place of points that would hide the density."""
    for label, name in enumerate(class_names(target)):
        x, y = Z[target.labels == label].mean(axis=0)
        box = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": colour(label), "alpha": 0.9}
        ax.text(x, y, str(name), ha="center", va="center", size="small", bbox=box, zorder=5)


def draw_class_ellipses(ax, Z, target):
    """An outline that contains 95 % of a Gaussian with each class's mean and covariance.

    A covariance needs three points at least; classes with fewer have no outline.
    """
    groups = [Z[target.labels == label] for label in range(len(class_names(target)))]
    labels = [label for label, group in enumerate(groups) if len(group) >= 3]
    means = np.array([groups[label].mean(axis=0) for label in labels]).reshape(-1, 2)
    covariances = np.array([np.cov(groups[label].T) for label in labels]).reshape(-1, 2, 2)
    return _draw_outlines(ax, ellipses_of(means, covariances, CLASS_LEVEL), labels)


class Mixture(NamedTuple):
    """Gaussians in the embedding: means (m, q), covariances (m, q, q), class of each (m,)."""

    means: np.ndarray
    covariances: np.ndarray
    classes: np.ndarray


def mixture_of(estimator) -> Mixture:
    """The Gaussians of a fitted mixture model, with the class of each."""
    model, _ = last_step(estimator)
    if not hasattr(model, "gaussian_classes_"):
        raise TypeError(f"mixture=True needs a mixture; {type(model).__name__} has none")
    classes = np.asarray(model.classes_)[model.gaussian_classes_]
    return Mixture(model.means_, model.covariances_, classes)


def draw_mixture(ax, mixture: Mixture, components, names, level):
    """The Gaussians of a mixture: outline in the class's colour, a cross at the mean."""
    means = np.asarray(mixture.means)[:, components]
    covariances = np.asarray(mixture.covariances)[:, components, :][:, :, components]
    ax.scatter(*means.T, marker="+", s=60, color=INK, linewidths=1.2, zorder=5)
    labels = labels_among(mixture.classes, names)
    return _draw_outlines(ax, ellipses_of(means, covariances, level), labels)


def _draw_outlines(ax, ellipses, labels):
    style = {"facecolors": "none", "linewidths": 1.6, "zorder": 4}
    return _draw_ellipses(ax, ellipses, edgecolors=[colour(c) for c in labels], **style)
