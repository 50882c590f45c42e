"""
Must-link chunks: rows of one class, whichever it is
====================================================

In a film the same face stays for some frames; nobody says whose it is. Such knowledge is a
*chunk*: rows that share a class, though not a known one. Here the frames are images of digits,
in sequences of five that show the same digit. Twenty images have a label.

*Level: with practice.*
"""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gnomon import DCAGM, chunks_from_pairs
from gnomon.displays import EmbeddingDisplay

X, y = load_digits(n_class=5, return_X_y=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(y))
train, test = order[:600], order[600:]

labels = np.full(len(train), -1)
for digit in range(5):
    own = np.flatnonzero(y[train] == digit)
    labels[own[:4]] = digit

# %%
# A tracker would say which frame follows which: pairs of rows. Their transitive closure is one
# number per row, which cross-validation cuts as it cuts rows.

pairs = []
for digit in range(5):
    frames = np.flatnonzero((y[train] == digit) & (labels < 0))
    for film in np.array_split(frames[:75], 15):
        pairs += list(itertools.pairwise(film))
chunks = chunks_from_pairs(pairs, len(train))
print(f"{len(pairs)} pairs make {chunks.max() + 1} chunks")

# %%
# The chunks count when the Gaussians are fitted and in the objective. ``tol`` is what the
# objective must rise by per label; with twenty labels the default would wait for very little.

plain = DCAGM(n_components=4, tol=0.01).fit(X[train], labels)
chunked = DCAGM(n_components=4, tol=0.01).fit(X[train], labels, chunks=chunks)
for name, model in (("without chunks", plain), ("with chunks", chunked)):
    print(f"{name}: accuracy on new images {model.score(X[test], y[test]):.3f}")

fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, title, model in zip(axes, ("without chunks", "with chunks"), (plain, chunked), strict=True):
    EmbeddingDisplay.from_estimator(model, X[test], y[test], ax=ax, legend=model is chunked)
    ax.set_title(title)
plt.show()

# %%
# **What it shows.** Knowing which frames belong together, though not to what, takes accuracy from
# 86 to 99 per cent.
