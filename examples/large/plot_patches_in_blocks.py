"""
Patches that are never in memory together
=========================================

All overlapping patches of two photographs, half a million rows, made a band at a time by functions.
:class:`~gnomon.PPCA` asks for the bands when it needs them and sees one at a time.

*Level: with practice.*
"""

import time
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_sample_image

from gnomon import PPCA, from_loaders

side = 7
photos = [load_sample_image(name).mean(axis=2) / 255 for name in ("china.jpg", "flower.jpg")]


def patches(photo, start, stop):
    """All patches whose upper edge lies between two rows of the photograph."""
    band = photo[start : stop + side - 1]
    return sliding_window_view(band, (side, side)).reshape(-1, side * side)


def loader(photo, start, stop):
    return lambda: patches(photo, start, stop)


starts = np.linspace(0, 427 - side + 1, 8).astype(int)
X = from_loaders([loader(p, a, b) for p in photos for a, b in pairwise(starts)])

# %%
begin = time.perf_counter()
model = PPCA(n_components=16).fit(X)
print(f"{X.shape[0]:,} rows of {X.shape[1]} in {time.perf_counter() - begin:.1f} s")

figure, axes = plt.subplots(2, 8, figsize=(10, 2.7), layout="constrained")
for ax, part in zip(axes.flat, model.components_, strict=True):
    ax.imshow(part.reshape(side, side), cmap="RdBu_r", vmin=-abs(part).max(), vmax=abs(part).max())
    ax.axis("off")
plt.show()

# %%
# **What it shows.** Where rows come from is the business of X: the fit is the same, and
# photographs are made of waves.
