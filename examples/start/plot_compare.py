"""
Which projection suits my data
==============================

Handwritten digits, eight of each with a label. Five projections are compared on rows whose labels
were hidden, and each is also shown shuffled labels: what it makes of those is what it can make of
nothing.

*Level: first steps.*
"""

# %%
# Six hundred images. Eight of each digit keep their label; -1 marks the others.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import gnomon

rng = np.random.default_rng(0)
X, digit = load_digits(return_X_y=True)
kept = rng.choice(len(X), 600, replace=False)
X, digit = X[kept], digit[kept]
y = np.full(len(digit), -1)
for c in range(10):
    y[rng.choice(np.flatnonzero(digit == c), 8, replace=False)] = c

# %%
# The table names what was measured; the sentence on top says what to use and why.

models = ["PCA", "whitened PCA", "LDA", "PLS", "SPPCA"]
result = gnomon.compare(X, y, models=models, n_components=(2, 5, 10))
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
# **What it shows.** With eighty labels SPPCA in ten dimensions predicts hidden labels best, and the
# table says which of the others could be as good by luck. LDA fits shuffled labels on the rows it
# has seen almost as well as real ones: a picture of seen rows proves nothing.
