"""
One wine, less and less of it known
===================================

A wine loses its thirteen measurements one after the other. Its place on the map moves a little,
and the ellipse in which it lies with a probability of 68 % grows, until nothing is known but what
all wines are like.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from gnomon import PPCA
from gnomon.displays import EmbeddingDisplay

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = PPCA(n_components=2).fit(X)

steps = (0, 4, 8, 11, 12, 13)
order = np.random.default_rng(3).permutation(13)
versions = np.repeat(X[:1], len(steps), axis=0)
for version, lost in zip(versions, steps, strict=True):
    version[order[:lost]] = np.nan

# %%
# A row of which nothing is known has the mean of all rows, and their spread.

posterior = model.posterior(versions)
figure, axes = plt.subplots(2, 3, figsize=(11, 6.6), layout="constrained")
everyone = model.transform(X)
for k, ax in enumerate(axes.flat):
    ax.scatter(*everyone.T, s=6, color="0.8")
    EmbeddingDisplay.from_data(
        posterior.mean[[k]], covariance=posterior.covariance[[k]], ax=ax, size=40, legend=False
    )
    ax.set_aspect("equal", adjustable="box")
    ax.set(xlim=(-3, 3), ylim=(-3, 3))
    ax.set_title(f"{13 - steps[k]} of 13 measurements")
plt.show()

# %%
# **What it shows.** Half of the measurements place this wine nearly as well as all of them; the
# ellipse says when that ends.
