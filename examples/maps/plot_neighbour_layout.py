"""
Ten dimensions in one picture
=============================

A map of handwritten digits from 60 labels has ten coordinates, and two of them cannot show ten
classes. A layout by neighbours (:class:`~gnomon.NeighbourLayout`) shows all ten at once: images
that are near on the whole map are near in the plane.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gnomon import SPPCA
from gnomon.displays import EmbeddingDisplay

X, digit = load_digits(return_X_y=True)
X, digit = X[:700], digit[:700]
new = np.arange(700) >= 600
y = np.where(np.arange(700) < 60, digit, -1)

model = SPPCA(n_components=10).fit(X[~new], y[~new])

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5.4), layout="constrained")
quiet = {"uncertainty": "none", "size": 14}
EmbeddingDisplay.from_estimator(model, X[~new], digit[~new], ax=left, legend=False, **quiet)
display = EmbeddingDisplay.from_estimator(
    model, X[~new], digit[~new], ax=right, layout="neighbours", **quiet
)
left.set_title("two of ten axes")
right.set_title("all ten, by their neighbours")
plt.show()

# %%
# The axes are sums of pixels, and a step along one of them has a length; most classes overlap.
# In the layout the classes lie apart, but only nearness has a meaning: not the distance between
# two groups, nor their size, nor which of them lies on the left. There is no chance in it: it
# starts from the two axes, is turned back towards them, and is the same in every run.
#
# New rows
# --------
# A hundred images that the model has not seen are placed on the same picture. ``layout`` takes the
# one that was drawn.

figure, ax = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
EmbeddingDisplay.from_estimator(
    model, X[~new], layout=display.layout_, ax=ax, uncertainty="none", size=4
)
EmbeddingDisplay.from_estimator(
    model, X[new], digit[new], layout=display.layout_, ax=ax, uncertainty="none"
)
plt.show()

# %%
# Uncertainty
# -----------
# Each ellipse is the uncertainty of the map, carried to the plane: draws from the posterior of a
# row are placed as new rows are. Images that lost half of their pixels may lie elsewhere.

lost = X[new].copy()
lost[np.random.default_rng(0).random(lost.shape) < 0.5] = np.nan
EmbeddingDisplay.from_estimator(model, lost, digit[new], layout=display.layout_)
plt.show()

# %%
# **What it shows.** Draw the axes to say what a direction means, and the layout to see which rows
# belong together on a map of more than two dimensions.
