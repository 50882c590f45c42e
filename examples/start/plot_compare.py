"""
Which projection suits my data
==============================

Wines with four labels a class. Five projections are compared on rows whose labels were hidden,
and each is also shown shuffled labels: what it makes of those is what it can make of nothing.

*Level: first steps.*
"""

# %%
# Four wines of each kind keep their label; -1 marks the others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import gnomon

X, kind = load_wine(return_X_y=True)
y = np.full(len(kind), -1)
for c in range(3):
    y[np.random.default_rng(c).choice(np.flatnonzero(kind == c), 4, replace=False)] = c

# %%
# The table names what was measured; the sentence on top says what to use and why.

models = ["PCA", "whitened PCA", "LDA", "PLS", "SPPCA"]
result = gnomon.compare(X, y, models=models, n_components=(1, 2, 5))
print(result)

# %%
# Rows the map has seen and rows it has not, with real and with shuffled labels. A picture of seen
# rows is worth as much as its bar is above the one for shuffled labels.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
result.plot("scores", ax=left)
result.plot("control", ax=right)
plt.show()

# %%
# The code that fits the recommended model:

print(result.snippet())

# %%
# **What it shows.** With twelve labels no two of these projections can be told apart by more than
# luck; the table says so, and the leader is named with the score that is to be expected of it.
