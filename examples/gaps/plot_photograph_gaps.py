"""
A photograph with half of its pixels lost
=========================================

Half of the numbers of a photograph are removed at random. Patches are rows with gaps; PPCA is
fitted to what is left, and fills each gap from the pixels around it. No complete patch is ever
seen.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from gnomon import PPCA

side, height, width = 8, 200, 320
photo = load_sample_image("china.jpg")[60 : 60 + height, 100 : 100 + width].mean(axis=2) / 255
gone = np.random.default_rng(0).random(photo.shape) < 0.5
damaged = np.where(gone, np.nan, photo)


def to_patches(image):
    blocks = image.reshape(height // side, side, width // side, side).swapaxes(1, 2)
    return blocks.reshape(-1, side * side)


def to_image(patches):
    blocks = patches.reshape(height // side, width // side, side, side)
    return blocks.swapaxes(1, 2).reshape(height, width)


# %%
patches = to_patches(damaged)
model = PPCA(n_components=12, max_iter=100, tol=1e-5).fit(patches)
filled, sd = model.impute(patches, return_std=True)
filled, sd = to_image(filled), to_image(sd)

figure, axes = plt.subplots(2, 2, figsize=(10, 6.6), layout="constrained")
parts = (("damaged", damaged), ("filled", filled), ("the photograph", photo))
for ax, (title, image) in zip(axes.flat, parts, strict=False):
    ax.imshow(image, cmap="gray", vmin=0, vmax=1)
    ax.set_title(title)
axes[1, 1].imshow(np.where(gone, sd, 0), cmap="magma")
axes[1, 1].set_title("standard deviation of what was filled")
for ax in axes.flat:
    ax.axis("off")
plt.show()

# %%
error = np.sqrt(np.mean((filled[gone] - photo[gone]) ** 2))
flat = np.sqrt(np.mean((np.nanmean(damaged) - photo[gone]) ** 2))
print(f"error of a lost pixel: {error:.3f}; filled with the mean of the picture it is {flat:.3f}")

# %%
# **What it shows.** A model of what patches look like, learnt from damaged patches alone, gives
# the picture back, and knows where it is guessing.
