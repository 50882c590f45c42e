"""
What is there: gaps, labels and links
=====================================

Before any model, :class:`~gnomon.displays.OverviewDisplay` shows which values are missing,
how many rows of each class have a label, and how the rows are linked. The wines here have lost
some measurements, most of them in the first half of the table, and most of their labels. Links
join wines that were bottled in the same week, which is often the same cultivar.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from gnomon import Links
from gnomon.displays import OverviewDisplay

rng = np.random.default_rng(0)
X, y = load_wine(return_X_y=True)
lost = np.where(np.arange(len(X)) < 90, 0.25, 0.05)
X[rng.random(X.shape) < lost[:, None]] = np.nan
labels = np.where(rng.random(len(y)) < 0.3, y, -1)

pairs = rng.integers(len(X), size=(2000, 2))
chance = np.where(y[pairs[:, 0]] == y[pairs[:, 1]], 0.3, 0.02)
kept = (rng.random(len(pairs)) < chance) & (pairs[:, 0] != pairs[:, 1])
links = Links.from_edges(pairs[kept], n_nodes=len(X))

OverviewDisplay.from_data(X, labels, links=links)
plt.show()

# %%
# **What it shows.** A look at the gaps, labels and links of a table tells which model can use
# them, before any is fitted.
