"""
How much should labels weigh?
=============================

Four classes that differ in two directions, hidden behind strong variation that all of them
share; 400 rows, ten labels in each class. With ``supervision=0`` the labels are ignored and
:class:`~gnomon.SPPCA` is PCA; with ``supervision=1`` they are all that counts.
``supervision="auto"`` holds labels back, predicts them in the map, and takes a strength that
does well.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

from gnomon import SPPCA, LabelledOnly
from gnomon.datasets import make_classes
from gnomon.displays import EmbeddingDisplay, SupervisionDisplay

sample = make_classes(400, 20, 4, labelled_per_class=10, separation=4.0, random_state=0)
model = SPPCA(n_components=2, random_state=0).fit(sample.X, sample.labels)
SupervisionDisplay.from_estimator(model)
plt.show()

# %%
# The map without labels beside the one that uses them. Filled points had a label; the colour of
# an open point is the class that the model predicts for it. The title says for how many rows
# the nearest labelled point on the map has the right class.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
plain = SPPCA(n_components=2, supervision=0).fit(sample.X, sample.labels)
for ax, fit, title in zip(axes, (plain, model), ("labels ignored", "labels used"), strict=True):
    EmbeddingDisplay.from_estimator(
        fit, sample.X, sample.labels, predict=True, ax=ax, uncertainty="none", legend=ax is axes[1]
    )
    Z = fit.transform(sample.X)
    nearest = LabelledOnly(KNeighborsClassifier(1)).fit(Z, sample.labels)
    ax.set_title(f"{title}: {nearest.score(Z, sample.y):.0%}")
plt.show()

# %%
# **What it shows.** Ten labels a class find the plane that PCA misses, and the strength is found
# without being told.
