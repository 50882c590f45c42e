"""Draw the planes of [G13], Figures 4 and 5, for docs/reproduction.

GNOMON_DATA=... python -m benchmarks.papers.pictures
"""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from benchmarks.papers import g13
from benchmarks.papers.data import MissingDataError
from matplotlib import pyplot

from gnomon import BSDR

PICTURE = Path(__file__).parents[2] / "docs" / "_static" / "bsdr_planes.png"


def rival(name, method):
    """Test rows of [G13] in the plane of a rival, learnt from 100 rows a class."""
    X, y, X_test, y_test = g13.split(name, 0)
    return g13.rival(method, 2, X.shape[1]).fit(X, y).transform(X_test), y_test


def ours(name):
    X, y, X_test, y_test = g13.split(name, 0)
    return BSDR(2, random_state=0, **g13.PAPER).fit(X, y).transform(X_test), y_test


PANELS = (
    ("Vowel, MMDA", lambda: rival("vowel_vj", "MMDA")),
    ("MultiFeat, MCML", lambda: rival("mfeat", "MCML")),
    ("Vowel, BSDR", lambda: ours("vowel_vj")),
    ("MultiFeat, BSDR", lambda: ours("mfeat")),
)


def draw():
    figure, axes = pyplot.subplots(2, 2, figsize=(7, 6.4), layout="constrained")
    for ax, (title, plane) in zip(axes.ravel(), PANELS, strict=True):
        Z, y = plane()
        ax.scatter(*Z.T, c=y, s=5, cmap="tab10", linewidths=0)
        ax.set(title=title, xticks=[], yticks=[])
    figure.savefig(PICTURE, dpi=80)


def main():
    warnings.simplefilter("ignore")
    try:
        draw()
    except MissingDataError as reason:
        print(f"no picture: {reason}")


if __name__ == "__main__":
    main()
