"""
How much can be missing?
========================

Wines lose a growing share of their measurements. The map by the likelihood of what is left is
compared with the map of all measurements, and so is the usual way: fill with column means, then
PCA.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import procrustes
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import PPCA
from gnomon.datasets import remove_entries
from gnomon.displays import EmbeddingDisplay

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
whole = PPCA(2).fit_transform(X)
ways = {
    "PPCA of what is there": PPCA(2),
    "column means, then PCA": make_pipeline(SimpleImputer(), PCA(2)),
}

# %%
shares = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, way in ways.items():
    apart = []
    for share in shares:
        tables = [remove_entries(X, share, random_state=seed) for seed in range(3)]
        apart.append(np.mean([procrustes(whole, way.fit_transform(t))[2] for t in tables]))
    ax.plot(np.multiply(shares, 100), apart, "o-", label=name)
    print(f"{name:24}", np.round(apart, 3))
ax.set(xlabel="per cent of the values missing", ylabel="disparity from the map of all values")
ax.legend()
plt.show()

# %%
# The map with 40 per cent of the values missing; rows that lost more have wider ellipses.

gappy = remove_entries(X, 0.4)
EmbeddingDisplay.from_estimator(PPCA(2).fit(gappy), gappy, y)
plt.show()

# %%
# **What it shows.** The likelihood of what is there keeps the map nearer to the whole one at
# every share of gaps, and its ellipses tell which rows have suffered.
