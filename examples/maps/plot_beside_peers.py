"""
The same digits on six maps
===========================

1083 images of six digits, three labels for each. PCA ignores them; linear discriminant analysis
and PLS use the eighteen labelled images alone; `SPPCA`, `KernelSPPCA` and `DCAGM` use both the
labels and the images without one. The figure above a map is the accuracy of the nearest labelled
image *on the map*.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from gnomon import DCAGM, SPPCA, KernelSPPCA, LabelledOnly
from gnomon.displays import EmbeddingDisplay
from gnomon.peers import PLSDiscriminant

X, y = load_digits(n_class=6, return_X_y=True)
rng = np.random.default_rng(0)
labels = np.full(len(y), -1)
for digit in range(6):
    labels[rng.choice(np.flatnonzero(y == digit), 3, replace=False)] = digit

models = {
    "PCA": PCA(2),
    "LDA, shrunk": LabelledOnly(LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.5)),
    "PLS": LabelledOnly(PLSDiscriminant(2)),
    "SPPCA": SPPCA(2),
    "KernelSPPCA": KernelSPPCA(2),
    "DCAGM": DCAGM(2, standardize=False),
}

# %%
hidden = labels < 0
figure, axes = plt.subplots(2, 3, figsize=(11, 7), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    Z = model.fit(X, labels).transform(X)[:, :2]
    nearest = KNeighborsClassifier(1).fit(Z[~hidden], labels[~hidden])
    EmbeddingDisplay.from_data(Z, y, ax=ax, size=5, legend=ax is axes[0, 2])
    ax.set(title=f"{name}: {nearest.score(Z[hidden], y[hidden]):.0%}", xlabel="", ylabel="")
plt.show()

# %%
# **What it shows.** Two dimensions hardly hold six digits, but SPPCA and KernelSPPCA, which use
# labels and unlabelled images together, hold more of them than maps that use one or the other.
