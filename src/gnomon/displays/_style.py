"""Colours, markers and axes that all displays share."""

from typing import NamedTuple

import numpy as np

from gnomon.estimators import Classes, as_floats, kind_of, read_classes

# Okabe and Ito's colours, told apart with every common kind of colour blindness; their yellow
# is too faint on white, so a dark brown stands for it; black is for what lies over points.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#661100")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = "#6E6E6E"
FAINT = "#BDBDBD"
INK = "#222222"
SEQUENTIAL = "cividis"
DIVERGING = "RdBu_r"

MANY_CLASSES = len(PALETTE) * len(MARKERS)


def colour(code) -> str:
    """Colour of class number ``code``; grey where it is negative, that is, unlabelled."""
    return PALETTE[code % len(PALETTE)] if code >= 0 else GREY


def marker(code) -> str:
    """Marker of class number ``code``: it changes when the colours have all been used."""
    return MARKERS[code // len(PALETTE) % len(MARKERS)] if code >= 0 else "o"


def pyplot():
    """matplotlib.pyplot, imported now and not before."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "gnomon.displays needs matplotlib; install it with: pip install 'gnomon[plot]'"
        ) from error
    return plt


def axes_or_new(ax, **subplots):
    """The axes given, or new ones on a figure of their own."""
    if ax is None:
        _, ax = pyplot().subplots(layout="constrained", **subplots)
    return ax


def panels(ax, n_rows, n_columns, *, figsize, **grid):
    """An array of axes on a new figure, or in the place of the axes given."""
    plt = pyplot()
    if ax is None:
        figure = plt.figure(figsize=figsize, layout="constrained")
        return figure.subplots(n_rows, n_columns, squeeze=False, gridspec_kw=grid)
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError("ax has no place in a grid; accepted are axes made by subplots()")
    ax.set_axis_off()
    inner = place.subgridspec(n_rows, n_columns, **grid)
    return inner.subplots(squeeze=False)


def tidy(ax):
    """Leave out the frame lines that carry nothing."""
    ax.spines[["top", "right"]].set_visible(False)


class Labels(NamedTuple):
    """What to colour by: classes with their names, or numbers; either may have gaps."""

    classes: Classes | None
    values: np.ndarray

    @property
    def labelled(self) -> np.ndarray:
        """Mask of the rows that have a label."""
        return np.isfinite(self.values) if self.classes is None else self.classes.labelled

    @property
    def codes(self) -> np.ndarray:
        """Number of the class per row, -1 where unlabelled; 0 for all labelled numbers."""
        if self.classes is not None:
            return self.classes.labels
        return np.where(self.labelled, 0, -1)


def class_names(labels: Labels | None) -> list:
    """Names of the classes in the order of their numbers; none for numbers or no labels."""
    return [] if labels is None or labels.classes is None else list(labels.classes.names)


def codes_among(values, names) -> np.ndarray:
    """Number of each value's class among names; classes that names lack come after them."""
    found, inverse = np.unique(np.asarray(values), return_inverse=True)
    numbers = {name: i for i, name in enumerate(names)}
    for name in found:
        numbers.setdefault(name, len(numbers))
    codes = np.array([numbers[name] for name in found], dtype=int)
    return codes[inverse].reshape(np.shape(values))


def read_labels(y, n_samples) -> Labels | None:
    """Labels from y, of the kind that it is for every model."""
    if y is None:
        return None
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if values.ndim > 1 and values.shape[1:] != (1,):
        raise ValueError(f"y has shape {values.shape}; pass one column, for example y[:, 0]")
    values = values.reshape(-1)
    if len(values) != n_samples:
        raise ValueError(f"y has {len(values)} rows, the embedding has {n_samples}")
    if kind_of(values) == "numeric":
        return Labels(None, as_floats(values))
    return Labels(read_classes(values, n_samples), values)
