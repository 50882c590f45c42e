"""
A photograph taken apart
========================

Every eight by eight patch of a photograph is a row of 192 numbers. :class:`~gnomon.PPCA` finds
what patches are made of: brightness, edges, colours. A few dozen of these parts are enough to
draw the picture again.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from gnomon import PPCA

photo = load_sample_image("flower.jpg")[:424, :640] / 255
side = 8
blocks = photo.reshape(424 // side, side, 640 // side, side, 3).swapaxes(1, 2)
X = blocks.reshape(-1, side * side * 3)

model = PPCA(n_components=24).fit(X)
print(f"{len(X)} patches of {X.shape[1]} numbers")

# %%
# The first parts, each added to the mean patch.

figure, axes = plt.subplots(2, 6, figsize=(9, 3.2), layout="constrained")
for ax, part in zip(axes.flat, model.components_, strict=False):
    shown = 0.5 + part / np.abs(part).max() / 2
    ax.imshow(shown.reshape(side, side, 3))
    ax.axis("off")
plt.show()

# %%
# The picture from 3 and from 24 numbers a patch, of 192.

figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
Z = model.transform(X)
for ax, kept in zip(axes, (3, 24, 192), strict=True):
    drawn = X if kept == 192 else PPCA(kept).fit(X).inverse_transform(Z[:, :kept])
    shape = (424 // side, 640 // side, side, side, 3)
    ax.imshow(np.clip(drawn.reshape(shape).swapaxes(1, 2).reshape(424, 640, 3), 0, 1))
    ax.set_title(f"{kept} numbers a patch")
    ax.axis("off")
plt.show()

# %%
# **What it shows.** Components are made of the columns, so where columns are pixels one can look at
# them, and an eighth of the numbers holds nearly all of the picture.
