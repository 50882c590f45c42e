"""What all displays share: colours and markers, axes, y to colour by, the embedding of a model."""

from typing import NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from gnomon._lazy import import_extra
from gnomon.estimators import Classes, as_array, as_floats, count, kind_of, read_classes

# Okabe and Ito's colours, told apart with every common kind of colour blindness; their yellow is
# too faint on white, so a dark brown stands for it; black is for what lies over points. Each of
# the others is, of all colours of middle lightness, the one that differs most from those before
# it (CIEDE2000) as seen with normal, protanopic, deuteranopic and tritanopic vision.
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"),
    *("#E69F00", "#661100", "#4D1083", "#B5383A", "#94C989"),
    *("#522649", "#617DFE", "#EEA6B5", "#0B00FA", "#584C76"),
    *("#723741", "#445E01", "#5D9949", "#307952", "#94638A"),
)
# The same for a dark page: the colours that would sink into it are replaced, in the same way.
ON_DARK = (
    *("#0A84D0", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"),
    *("#E69F00", "#F0E442", "#E7D4F8", "#A55042", "#94C989"),
    *("#EE0FB7", "#617DFE", "#EEA6B5", "#CA0E78", "#CCACCB"),
    *("#FCD3C3", "#9FFF9A", "#5D9949", "#7CAC99", "#94638A"),
)
# So many colours are told apart at once; after them the marker changes too.
PLAIN_COLOURS = 10
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
# Of the full brightness: when every colour has had every marker, the same again but darker.
SHADES = (1.0, 0.6, 0.35)
GREY = "#6E6E6E"
FAINT = "#BDBDBD"
INK = "#222222"
SEQUENTIAL = "cividis"
DIVERGING = "RdBu_r"

N_LOOKS = PLAIN_COLOURS * len(MARKERS) * len(SHADES)
# A legend has up to two columns as high as the axes; more would leave no room for the points.
NAMES_IN_COLUMN = 16
MOST_NAMES = 2 * NAMES_IN_COLUMN
# Area of a marker in a legend, however small the points are: its colour can still be seen.
LEGEND_SIZE = 25.0


def colour(label) -> str:
    """Colour of class number ``label``; grey where it is negative, that is, unlabelled."""
    if label < 0:
        return GREY
    plain = PALETTE[label % len(PALETTE)]
    shade = SHADES[label // (PLAIN_COLOURS * len(MARKERS)) % len(SHADES)]
    parts = (round(shade * int(plain[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{part:02X}" for part in parts)


def marker(label) -> str:
    """Marker of class number ``label``: it changes after as many classes as colours tell apart."""
    return MARKERS[label // PLAIN_COLOURS % len(MARKERS)] if label >= 0 else "o"


def pyplot():
    """matplotlib.pyplot, imported now and not before."""
    return import_extra("matplotlib.pyplot", "plot", "gnomon.displays")


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


class Target(NamedTuple):
    """What to colour by: classes with their names, or numbers; either may have gaps."""

    classes: Classes | None
    values: np.ndarray

    @property
    def labelled(self) -> np.ndarray:
        """Mask of the rows that have a label."""
        return np.isfinite(self.values) if self.classes is None else self.classes.labelled

    @property
    def labels(self) -> np.ndarray:
        """Number of the class per row, -1 where unlabelled; -1 for all where y is a number."""
        return np.full(len(self.values), -1) if self.classes is None else self.classes.labels


def read_target(y, n_samples) -> Target | None:
    """Y to colour by, of the kind that it is for every model."""
    if y is None:
        return None
    values = as_array(y)
    if values.ndim > 1 and values.shape[1:] != (1,):
        raise ValueError(f"y has shape {values.shape}; pass one column, for example y[:, 0]")
    values = values.reshape(-1)
    if len(values) != n_samples:
        raise ValueError(f"y has {count(len(values), 'row')}, the embedding has {n_samples}")
    if kind_of(values) == "numeric":
        return Target(None, as_floats(values))
    return Target(read_classes(values, n_samples), values)


def has_classes(target: Target | None) -> bool:
    """Whether there is a y, and it holds classes."""
    return target is not None and target.classes is not None


def class_names(target: Target | None) -> list:
    """Names of the classes in the order of their numbers; none for numbers or no y."""
    return [] if target is None or target.classes is None else list(target.classes.names)


def labels_among(values, names) -> np.ndarray:
    """Number of each value's class among names; classes that names lack come after them."""
    found, inverse = np.unique(np.asarray(values), return_inverse=True)
    numbers = {name: i for i, name in enumerate(names)}
    for name in found:
        numbers.setdefault(name, len(numbers))
    labels = np.array([numbers[name] for name in found], dtype=int)
    return labels[inverse].reshape(np.shape(values))


def add_legend(ax):
    """The names of what is drawn, beside the axes; of very many the first ones only."""
    from matplotlib.lines import Line2D

    handles, names = ax.get_legend_handles_labels()
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], f"... and {len(names) - MOST_NAMES + 1} more"]
        handles = [*handles[: MOST_NAMES - 1], Line2D([], [], linestyle="none")]
    style: dict = {"frameon": False, "bbox_to_anchor": (1.0, 1.0), "loc": "upper left"}
    if len(names) > NAMES_IN_COLUMN:
        style |= {"ncols": 2, "fontsize": "small", "columnspacing": 1.0, "handletextpad": 0.2}
    legend = ax.legend(handles, names, **style)
    for handle in legend.legend_handles:
        if hasattr(handle, "set_sizes"):
            handle.set_sizes(np.maximum(handle.get_sizes(), LEGEND_SIZE))
    return legend


def last_step(estimator, X=None):
    """The model at the end of a pipeline, and X as that model sees it."""
    check_is_fitted(estimator)
    if not isinstance(estimator, Pipeline):
        return estimator, X
    before = estimator[:-1]
    if X is not None and len(before) > 0:
        X = before.transform(X)
    return estimator[-1], X


def embed(estimator, X) -> np.ndarray:
    """The embedding as a float array (n, q)."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "transform"):
        raise TypeError(f"estimator {type(estimator).__name__} has no transform")
    Z = estimator.transform(X)
    Z = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
    return Z.astype(float, copy=False)
