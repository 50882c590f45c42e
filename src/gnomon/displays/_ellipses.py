"""Ellipses that hold a Gaussian with a stated probability."""

from typing import NamedTuple

import numpy as np

from gnomon.displays._style import pyplot


class Ellipses(NamedTuple):
    """Centres (m, 2), full lengths of both axes (m,), angle of the first axis in degrees (m,)."""

    centres: np.ndarray
    widths: np.ndarray
    heights: np.ndarray
    angles: np.ndarray


def ellipses_of(means, covariances, level) -> Ellipses:
    """Ellipses that hold N(mean, covariance) in the plane with probability ``level``."""
    means = np.asarray(means, dtype=float)
    covariances = np.broadcast_to(covariances, (len(means), 2, 2))
    eigenvalues, vectors = np.linalg.eigh(covariances)
    lengths = 2 * radius(level) * np.sqrt(np.maximum(eigenvalues, 0.0))
    angles = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    return Ellipses(means, lengths[:, 1], lengths[:, 0], angles)


def radius(level):
    """Standard deviations that hold a two-dimensional Gaussian with probability ``level``."""
    return np.sqrt(-2.0 * np.log1p(-level))


def depth(ellipses: Ellipses) -> float:
    """How many ellipses lie over a place, on average over the box that holds them."""
    reach = _extents(ellipses)
    box = np.ptp(np.vstack([ellipses.centres - reach, ellipses.centres + reach]), axis=0)
    areas = np.pi / 4 * ellipses.widths * ellipses.heights
    return float(areas.sum() / max(np.prod(box), np.finfo(float).tiny))


def class_moments(Z, codes, n_classes):
    """Numbers, means and covariances of the classes with at least three points."""
    found = [c for c in range(n_classes) if np.sum(codes == c) >= 3]
    means = np.array([Z[codes == c].mean(axis=0) for c in found]).reshape(-1, 2)
    covariances = np.array([np.cov(Z[codes == c].T) for c in found]).reshape(-1, 2, 2)
    return np.array(found, dtype=int), means, covariances


def draw_ellipses(ax, ellipses: Ellipses, **style):
    """Add the ellipses to the axes, in data units, and widen the limits to hold them."""
    pyplot()
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
    reach = _extents(ellipses)
    ax.update_datalim(np.vstack([ellipses.centres - reach, ellipses.centres + reach]))
    return collection


def draw_key(ax, covariance, level, text):
    """One ellipse in the corner, in data units, for an uncertainty that all points share."""
    from matplotlib.offsetbox import AnchoredOffsetbox, AuxTransformBox, TextArea, VPacker
    from matplotlib.patches import Ellipse

    _, width, height, angle = (part[0] for part in ellipses_of([[0, 0]], covariance, level))
    patch = Ellipse((0, 0), width, height, angle=angle, fill=False, color="0.3", lw=1.2)
    box = AuxTransformBox(ax.transData)
    box.add_artist(patch)
    words = TextArea(text, textprops={"size": "small", "color": "0.3"})
    packed = VPacker(children=[box, words], align="center", pad=0, sep=3)
    ax.add_artist(AnchoredOffsetbox("lower right", child=packed, frameon=True, pad=0.4))
    return patch


def _extents(ellipses):
    """Half width and half height of the box around each ellipse."""
    cosine, sine = np.cos(np.radians(ellipses.angles)), np.sin(np.radians(ellipses.angles))
    a, b = ellipses.widths / 2, ellipses.heights / 2
    return np.column_stack([np.hypot(a * cosine, b * sine), np.hypot(a * sine, b * cosine)])
