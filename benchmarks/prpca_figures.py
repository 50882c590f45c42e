"""Figures 2, 3 and 4 of the PRPCA paper on the data at hand, as pictures of the documentation.

    GNOMON_DATA=folder python benchmarks/prpca_figures.py

Figure 2 runs the paper's own EM, equations (21)-(22), from PCA with noise variance 1e-6.
Embeddings are classified by a linear SVM with C = 10, 5-fold.
"""

import json
import sys
import warnings
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.svm import LinearSVC

from gnomon import PRPCA, Links
from gnomon.displays import EmbeddingDisplay

sys.path.insert(0, str(Path(__file__).parent))
from papers.data import MissingDataError, load
from prpca_accuracy import CITATIONS, WEB, accuracy, read
from prpca_report import RESULTS

from measure import describe

PICTURES = Path(__file__).parent.parent / "docs" / "_static"
STEPS = (1, 2, 3, 5, 8, 12, 20, 50)
SIZES = (10, 20, 30, 40, 50)
score = partial(accuracy, repeats=1, classifier=partial(LinearSVC, C=10, dual=False))


def pca(X, q):
    return PCA(q, svd_solver="arpack", random_state=0).fit(X)


def paper_em(X, links, q, steps):
    """Embeddings (19) after some steps of the paper's EM from its own start."""
    for step in steps:
        options = {"solver": "em", "max_iter": step, "tol": 0, "gamma": 1e-6}
        model = PRPCA(q, relation="paper", random_state=0, **options)
        yield step, model.fit(X, links=links).transform(X)


def iterations():
    out = {}
    for name in ("cora_ds", "webkb_cornell"):
        X, links, y = read(name)
        closed = PRPCA(50, random_state=0, relation="paper").fit(X, links=links).transform(X)
        curve = [(t, score(Z, y)[0]) for t, Z in paper_em(X, links, 50, STEPS)]
        out[name] = dict(em=curve, closed=score(closed, y)[0])
        print(name, out[name], flush=True)
    return out


def sizes():
    out = {}
    for name in (*CITATIONS[:4], *WEB):
        X, links, y = read(name)
        rows = []
        for q in SIZES:
            models = pca(X, q), PRPCA(q, random_state=0, relation="paper").fit(X, links=links)
            rows.append((q, *(score(model.transform(X), y)[0] for model in models)))
        out[name] = rows
        print(name, rows, flush=True)
    return out


def draw_iterations(curves):
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for ax, (name, curve) in zip(axes, curves.items(), strict=True):
        steps, values = zip(*curve["em"], strict=True)
        ax.plot(steps, values, "o-", color="C0", label="EM (21)-(22)")
        ax.axhline(curve["closed"], color="C1", linestyle="--", label="closed form")
        ax.set(xscale="log", xlabel="iterations T", ylabel="accuracy", title=name)
        ax.legend()
    figure.savefig(PICTURES / "prpca_iterations.png", dpi=110)


def draw_sizes(curves):
    figure, axes = plt.subplots(2, 4, figsize=(10, 5), layout="constrained", sharex=True)
    for ax, (name, rows) in zip(axes.flat, curves.items(), strict=False):
        q, plain, linked = zip(*rows, strict=True)
        ax.plot(q, plain, "o-", color="C0", label="PCA")
        ax.plot(q, linked, "s-", color="C1", label="PRPCA")
        ax.set(title=name, xlabel="q", ylabel="accuracy")
    axes.flat[0].legend()
    axes.flat[-1].set_axis_off()
    figure.savefig(PICTURES / "prpca_dimension.png", dpi=110)


def draw_books():
    data = load("polbooks")
    X, links = data["X"], Links(data["A"])
    side = np.where(data["y"] == 0, "liberal", "other")
    ways = {
        "PCA": pca(X, 2).transform(X),
        "PRPCA, content": PRPCA(2, random_state=0, relation="paper").fit_transform(X, links=links),
        "PRPCA, smoothed": PRPCA(
            2, projection="smoothed", random_state=0, relation="paper"
        ).fit_transform(X, links=links),
    }
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for ax, (title, Z) in zip(axes, ways.items(), strict=True):
        EmbeddingDisplay.from_data(Z, side, links=links, ax=ax)
        ax.set_title(title)
    figure.savefig(PICTURES / "prpca_books.png", dpi=110)


def main():
    warnings.simplefilter("ignore")
    PICTURES.mkdir(exist_ok=True)
    try:
        draw_books()
        figures = dict(machine=describe(), iterations=iterations(), sizes=sizes())
    except MissingDataError as reason:
        print(f"skipped: {reason}")
        return
    draw_iterations(figures["iterations"])
    draw_sizes(figures["sizes"])
    (RESULTS / "prpca_figures.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
