"""
A kernel finds what is not linear
=================================

Three rings, of which only a few points have a label. No linear map tells them apart. In the
space of a kernel the labels are completed on all points, and two components show the rings as
three groups.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from gnomon import SPPCA, KernelSPPCA

rng = np.random.default_rng(0)
truth = np.repeat([0, 1, 2], 150)
angle = rng.uniform(0, 2 * np.pi, 450)
radius = 1 + truth + 0.15 * rng.standard_normal(450)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
labelled = np.zeros(450, dtype=bool)
labelled[np.r_[0:12, 150:162, 300:312]] = True
y = np.where(labelled, truth, -1)

# %%
# The same labels, with linear components, with kernel PCA, and with both kernel and labels. A
# point is right where straight lines between the labelled ones put it on the side of its ring.

models = {
    "SPPCA": SPPCA(2),
    "kernel PCA": KernelSPPCA(2, supervision=0),
    "KernelSPPCA": KernelSPPCA(2),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    T = model.fit(X, y).transform(X)
    lines = LogisticRegression(C=100).fit(T[labelled], y[labelled])
    right = lines.score(T[~labelled], truth[~labelled])
    ax.scatter(*T.T, c=truth, cmap="viridis", s=6, alpha=0.6)
    ax.scatter(*T[labelled].T, c=truth[labelled], cmap="viridis", s=35, edgecolors="black")
    ax.set_title(f"{name}: {right:.0%} of points right")
    ax.set_xticks([])
    ax.set_yticks([])

# %%
# The probability of the middle ring's class over the plane, from the Gaussian prediction of the
# codes of the classes.

grid = np.linspace(-4, 4, 80)
points = np.column_stack([values.ravel() for values in np.meshgrid(grid, grid)])
probability = models["KernelSPPCA"].predict_proba(points)[:, 1].reshape(80, 80)
figure, ax = plt.subplots(figsize=(4.6, 4), layout="constrained")
ax.contourf(grid, grid, probability, levels=10, cmap="Greys", alpha=0.6)
ax.scatter(*X.T, c=truth, cmap="viridis", s=4)
ax.set_aspect("equal")
ax.set_title("probability of the middle ring")

# %%
# **What it shows.** In the space of a kernel a few labels part three rings that no linear map can
# part.
