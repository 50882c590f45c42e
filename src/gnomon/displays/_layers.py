"""What an embedding is drawn from: regions, links, uncertainty, points, outlines."""

import numpy as np
from scipy import sparse

from gnomon.displays._ellipses import (
    class_moments,
    depth,
    draw_ellipses,
    draw_key,
    ellipses_of,
)
from gnomon.displays._style import GREY, INK, SEQUENTIAL, Labels, codes_among, colour, marker

MANY_POINTS = 2_000
CLASS_LEVEL = 0.95


def draw_regions(ax, regions, names):
    """Fill the plane with the colour of the class predicted there."""
    from matplotlib.colors import ListedColormap

    codes = codes_among(regions.classes, names)
    n_classes = codes.max() + 1
    return ax.pcolormesh(
        regions.x,
        regions.y,
        codes,
        cmap=ListedColormap([colour(c) for c in range(n_classes)]),
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

    alpha = float(np.clip(60 / np.sqrt(max(len(edges), 1)) / 4, 0.06, 0.5))
    lines = LineCollection(Z[edges], colors=GREY, linewidths=0.7, alpha=alpha, zorder=1)
    return ax.add_collection(lines, autolim=False)


def draw_uncertainty(ax, Z, covariance, labels, level):
    """An ellipse for every point, in the colour of its class; grey where y is a number."""
    codes = np.zeros(len(Z), dtype=int) if labels is None else labels.codes
    if labels is not None and labels.classes is None:
        codes = np.full(len(Z), -1)
    from matplotlib.colors import to_rgba

    ellipses = ellipses_of(Z, covariance, level)
    fade = 1 / max(1.0, depth(ellipses) / 3)
    faces = [to_rgba(colour(c), 0.2 * fade if c >= 0 else 0.0) for c in codes]
    edges = [to_rgba(colour(c), (0.7 if c >= 0 else 0.4) * max(fade, 0.3)) for c in codes]
    style = {"facecolors": faces, "edgecolors": edges, "linewidths": 0.6, "zorder": 0.8}
    return draw_ellipses(ax, ellipses, **style)


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


def draw_shared(ax, covariance, level):
    """A key in the corner, for many points that all have the same uncertainty."""
    return draw_key(ax, covariance, level, f"{level:.0%} of each point")


def draw_points(ax, Z, labels: Labels | None, predicted, size):
    """Labelled points filled, unlabelled ones open; returns a collection per group."""
    if labels is None:
        return [ax.scatter(*Z.T, s=size, color=colour(0), linewidths=0, alpha=0.85, zorder=3)]
    groups = _draw_unlabelled(ax, Z, labels, predicted, size)
    if labels.classes is None:
        return [*groups, _draw_numbers(ax, Z, labels, size)]
    for code, name in enumerate(labels.classes.names):
        here = labels.codes == code
        style = {"marker": marker(code), "color": colour(code), "label": str(name)}
        groups.append(
            ax.scatter(*Z[here].T, s=size, linewidths=0.4, edgecolors="white", zorder=3, **style)
        )
    return groups


def _draw_unlabelled(ax, Z, labels, predicted, size):
    rows = np.flatnonzero(~labels.labelled)
    if len(rows) == 0:
        return []
    codes = np.full(len(rows), -1) if predicted is None else predicted[rows]
    label = "unlabelled" if predicted is None else "unlabelled, predicted"
    crowded = len(rows) > 500
    return [
        ax.scatter(
            *Z[rows].T,
            s=size * (0.5 if crowded else 0.8),
            facecolors="none",
            edgecolors=[colour(c) for c in codes],
            linewidths=0.5 if crowded else 0.8,
            alpha=0.6 if crowded else 0.85,
            zorder=2,
            label=label,
        )
    ]


def _draw_numbers(ax, Z, labels, size):
    rows = labels.labelled
    points = ax.scatter(
        *Z[rows].T, c=labels.values[rows], s=size, cmap=SEQUENTIAL, linewidths=0, zorder=3
    )
    ax.figure.colorbar(points, ax=ax, label="y", shrink=0.8)
    return points


def draw_class_names(ax, Z, labels):
    """The name of each class at its mean, in place of points that would hide the density."""
    for code, name in enumerate(labels.classes.names):
        x, y = Z[labels.codes == code].mean(axis=0)
        box = {"boxstyle": "round,pad=0.25", "fc": "white", "ec": colour(code), "alpha": 0.9}
        ax.text(x, y, str(name), ha="center", va="center", size="small", bbox=box, zorder=5)


def draw_class_ellipses(ax, Z, labels):
    """An outline that holds 95 % of a Gaussian with each class's mean and covariance."""
    codes, means, covariances = class_moments(Z, labels.codes, len(labels.classes.names))
    return _draw_outlines(ax, ellipses_of(means, covariances, CLASS_LEVEL), codes)


def draw_mixture(ax, means, covariances, codes, level):
    """The Gaussians of a mixture: outline in the class's colour, a cross at the mean."""
    ax.scatter(*means.T, marker="+", s=60, color=INK, linewidths=1.2, zorder=5)
    return _draw_outlines(ax, ellipses_of(means, covariances, level), codes)


def _draw_outlines(ax, ellipses, codes):
    style = {"facecolors": "none", "linewidths": 1.6, "zorder": 4}
    return draw_ellipses(ax, ellipses, edgecolors=[colour(c) for c in codes], **style)
