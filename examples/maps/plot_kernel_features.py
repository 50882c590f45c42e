"""
Any linear model, made to bend
==============================

:class:`~gnomon.KernelFeatures` turns rows into features whose products are the values of a
kernel. A linear model that follows it in a pipeline is linear in these features, and curved in
the rows. Two moons that no line tells apart are shown to :class:`~gnomon.BSDR` and to
:class:`~gnomon.DCAGM`, as they are and after the features of a Gaussian kernel.

*Level: for the curious.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline

from gnomon import BSDR, DCAGM, PPCA, KernelFeatures

X, y = make_moons(300, noise=0.2, random_state=0)
new, truth = make_moons(600, noise=0.2, random_state=1)

bsdr = BSDR(1, prior="column", standardize=False, random_state=0)
dcagm = DCAGM(1, standardize=False, random_state=0)
models = {
    "BSDR": bsdr,
    "DCAGM": dcagm,
    "KernelFeatures, BSDR": make_pipeline(KernelFeatures(gamma=1.0), bsdr),
    "KernelFeatures, DCAGM": make_pipeline(KernelFeatures(gamma=1.0), dcagm),
}

# %%
# The background is the probability of the second moon. The features keep the lengths that the
# kernel gives them: ``standardize=False`` leaves the many short ones short, which is what keeps
# the borders smooth.

grid = np.meshgrid(np.linspace(-2, 3, 90), np.linspace(-1.5, 2, 70))
points = np.column_stack([values.ravel() for values in grid])
figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    model.fit(X, y)
    probability = model.predict_proba(points)[:, 1].reshape(grid[0].shape)
    ax.contourf(*grid, probability, levels=10, cmap="RdBu_r", alpha=0.6)
    ax.contour(*grid, probability, levels=[0.5], colors="black", linewidths=1)
    ax.scatter(*X.T, c=y, cmap="RdBu_r", s=14, edgecolors="white", linewidths=0.3)
    ax.set_title(f"{name}: {model.score(new, truth):.0%} of new points right")
    ax.set_xticks([])
    ax.set_yticks([])

# %%
# The features are the principal components of the kernel's space, longest first. Few of them
# matter, and :class:`~gnomon.PPCA` of them is a probabilistic kernel PCA. With landmarks the
# kernel of all rows is never formed, and new rows are mapped as quickly.

features = KernelFeatures(gamma=1.0).fit(X)
few = make_pipeline(KernelFeatures(gamma=1.0, n_landmarks=40), PPCA(2))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogy(np.arange(1, len(features.energies_) + 1), features.energies_ / len(X), ".-")
left.set_xlabel("feature")
left.set_ylabel("variance")
right.scatter(*few.fit_transform(X).T, c=y, cmap="RdBu_r", s=10)
right.set_xlabel("first component")
right.set_ylabel("second component")
plt.show()

# %%
# **What it shows.** A kernel goes before the model, in a pipeline: any linear model then bends.
