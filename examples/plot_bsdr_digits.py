"""
Digits in two dimensions, with their uncertainty
================================================

`BSDR` learns a projection for the classifier that uses it. Two dimensions hold ten digits far
better than two principal components, and every point has a posterior: the ellipses are two
standard deviations of z given x.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from gnomon import BSDR

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

mean, covariance = model.posterior(X[test])
fig, ax = plt.subplots(figsize=(6, 5))
for k in range(10):
    own = np.flatnonzero(y[test] == k)
    ax.scatter(*mean[own].T, s=12, color=plt.cm.tab10(k), label=k)
    for i in own[:8]:
        width, height = 4 * np.sqrt(np.diagonal(covariance[i]))
        ax.add_patch(Ellipse(mean[i], width, height, color=plt.cm.tab10(k), alpha=0.15))
ax.legend(ncols=2, fontsize=8)
ax.set(xlabel="component 1", ylabel="component 2", title="E[z | x] of new digits")
plt.show()
