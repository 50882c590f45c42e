"""Draw the picture of the README: python docs/readme_picture.py."""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import PPCA, SPPCA
from gnomon.datasets import remove_entries
from gnomon.displays import EmbeddingDisplay

X, y = load_wine(return_X_y=True)
X = remove_entries(X, 0.1)
rng = np.random.default_rng(0)
kept = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:4] for c in range(3)])
labels = np.full(len(y), -1)
labels[kept] = y[kept]

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for axis, model, title in (
    (axes[0], PPCA(n_components=2), "PPCA: no labels, a tenth of the values missing"),
    (axes[1], SPPCA(n_components=2, random_state=0), "SPPCA: four labels a class"),
):
    pipe = make_pipeline(StandardScaler(), model).fit(X, labels)
    EmbeddingDisplay.from_estimator(pipe, X, labels, ax=axis)
    axis.set_title(title)
figure.savefig(Path(__file__).parent / "_static" / "wine.png", dpi=110)
