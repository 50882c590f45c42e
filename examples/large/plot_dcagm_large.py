"""
A hundred thousand rows
=======================

Neighbourhood components analysis compares all pairs of rows; :class:`~gnomon.DCAGM` compares
rows with a few Gaussians, so that its time is linear in the number of rows. The classes here
have two clusters each and differ in four of fifty directions.

*Level: with practice.*
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from gnomon import DCAGM
from gnomon.displays import EmbeddingDisplay

rng = np.random.default_rng(0)
n, n_classes = 100_000, 4
y = rng.integers(n_classes, size=n)
X = rng.standard_normal((n, 50))
X[:, :4] += 3 * rng.standard_normal((2, n_classes, 4))[rng.integers(2, size=n), y]

# %%
# All rows at once, and in batches of 5,000 rows.

models = {
    "LDA": LinearDiscriminantAnalysis(n_components=2),
    "DCAGM": DCAGM(n_components=2),
    "DCAGM, batches": DCAGM(n_components=2, batch_size=5000, random_state=0),
}
new = slice(n - 2000, n)
for name, model in models.items():
    start = time.perf_counter()
    model.fit(X[:-2000], y[:-2000])
    seconds = time.perf_counter() - start
    Z = model.transform(X)
    near = KNeighborsClassifier(15).fit(Z[:20_000], y[:20_000]).score(Z[new], y[new])
    print(f"{name:>15}: {seconds:5.1f} s, accuracy of 15 neighbours {near:.3f}")

# %%
# LDA assumes a single Gaussian per class and puts the two clusters of a class between each
# other; here the plane keeps them apart.

fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, name in zip(axes, ("LDA", "DCAGM"), strict=True):
    EmbeddingDisplay.from_data(
        models[name].transform(X[:1500]), y[:1500], ax=ax, legend=name == "DCAGM"
    )
    ax.set_title(name)
plt.show()

# %%
# **What it shows.** In seconds, classes of two clusters each are placed so that neighbours tell
# them apart, where linear discriminant analysis cannot.
