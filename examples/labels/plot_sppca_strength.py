"""
Strength of supervision with three labels a class
=================================================

The same rows, with three labels a class, as the outputs take a growing share of the energy.
At zero the map is PCA; at one it keeps only what predicts the labels. ``"auto"`` chooses by
trials on the labelled rows alone. The classes lie in a plane that is hidden by stronger
variation which all of them share.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from gnomon import SPPCA
from gnomon.datasets import make_classes

sample = make_classes(600, 20, n_classes=8, separation=6, labelled_per_class=3)
X, truth, y = sample.X, sample.y, sample.labels
labelled = y >= 0

# %%
# One picture for each strength, the labelled rows with a black rim. The error is that of the
# nearest labelled neighbour on all other rows.


def error(model):
    T = model.fit(X, y).transform(X)
    nearest = KNeighborsClassifier(1).fit(T[labelled], y[labelled])
    return 1 - nearest.score(T[~labelled], truth[~labelled])


strengths = [0, 0.5, 1, "auto"]
figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
for ax, s in zip(axes, strengths, strict=True):
    T = SPPCA(2, supervision=s).fit(X, y).transform(X)
    ax.scatter(*T.T, c=truth, cmap="tab10", s=4, alpha=0.5)
    ax.scatter(*T[labelled].T, c=y[labelled], cmap="tab10", s=30, edgecolors="black")
    ax.set_title(f"s = {s}: error {error(SPPCA(2, supervision=s)):.2f}")
    ax.set_xticks([])
    ax.set_yticks([])

# %%
# What the automatic choice saw: the criterion of every candidate, the lower the better.

model = SPPCA(2).fit(X, y)
curve = model.supervision_curve_
figure, ax = plt.subplots(layout="constrained")
for pool in np.unique(curve["pool"]):
    kept = curve["pool"] == pool
    ax.plot(curve["s"][kept], curve["criterion"][kept], "o-", label=f"{pool} components")
ax.axvline(model.supervision_, color="black", linestyle=":")
ax.set_xlabel("strength of supervision")
ax.set_ylabel("criterion")
ax.legend(title="pool")
print(f"chosen {model.supervision_}, error {error(SPPCA(2)):.2f}")

# %%
# **What it shows.** Three labels a class find the plane that PCA misses, and what trials on the
# labelled rows choose is better than PCA and than labels alone.
