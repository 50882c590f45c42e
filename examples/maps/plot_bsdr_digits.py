"""
Digits in two dimensions, with their uncertainty
================================================

`BSDR` learns a projection for the classifier that uses it. Two dimensions hold ten digits
better than two principal components, and every point has a posterior: the ellipses are two
standard deviations of z given x, which hold 86 % in the plane.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from gnomon import BSDR
from gnomon.displays import EmbeddingDisplay

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
train, test = order[:600], order[600:1000]
model = BSDR(2, n_init=3, max_iter=30, tol=1e-2, random_state=0).fit(X[train], y[train])
pca = PCA(2).fit(X[train])

# %%
# New rows: the accuracy of the model, and of neighbours on both maps.

for name, map_ in (("BSDR", model), ("PCA", pca)):
    neighbours = KNeighborsClassifier(5).fit(map_.transform(X[train]), y[train])
    print(f"{name}: {neighbours.score(map_.transform(X[test]), y[test]):.2f} with 5 neighbours")
print(f"BSDR itself: {model.score(X[test], y[test]):.2f}")

# %%
# The posterior is widest for rows unlike those of the fit.

EmbeddingDisplay.from_estimator(model, X[test], y[test], level=0.86)
plt.show()

# %%
# **What it shows.** Two dimensions that were learnt for the classes place a new digit better than
# two principal components do, and say how sure each place is.
