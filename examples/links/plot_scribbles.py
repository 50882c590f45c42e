"""
A few strokes on a photograph
=============================

Every pixel is a row (its colour and those around it), linked to the pixels beside it. Two strokes
say "flower" here and "background" there; `SPPCA` with links carries them over the picture.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter, zoom
from scipy.sparse import eye_array
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import grid_to_graph

from gnomon import SPPCA, Links

photo = load_sample_image("flower.jpg") / 255
small = zoom(photo, (0.14, 0.14, 1), order=1)
height, width = small.shape[:2]
layers = [small, *(gaussian_filter(small, (s, s, 0)) for s in (1, 2, 4))]
X = np.concatenate(layers, axis=2).reshape(height * width, -1)
links = Links(grid_to_graph(height, width) - eye_array(height * width))

# %%
# The strokes, as rows and columns of the small picture.

strokes = np.full((height, width), -1)
strokes[int(height * 0.45) : int(height * 0.55), int(width * 0.42) : int(width * 0.6)] = 1
strokes[2:5, 4 : width - 4] = 0
strokes[height - 6 : height - 3, 4 : width // 3] = 0
labels = strokes.ravel()
print(f"{np.mean(labels >= 0):.1%} of {len(labels)} pixels have a label")

model = SPPCA(2).fit(X, labels, links=links)
chance = model.predict_proba(X, links=links)[:, 1].reshape(height, width)

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 2.8), layout="constrained")
axes[0].imshow(small)
axes[0].contourf(
    np.ma.masked_less(strokes, 0), levels=[-0.5, 0.5, 1.5], colors=["#0072B2", "#E69F00"]
)
axes[0].set_title("strokes")
axes[1].imshow(chance, cmap="magma", vmin=0, vmax=1)
axes[1].set_title("probability of the flower")
axes[2].imshow(np.where(chance[:, :, None] > 0.5, small, 0.3 * small + 0.65))
axes[2].set_title("what was found")
for ax in axes:
    ax.axis("off")
plt.show()

# %%
# **What it shows.** Labels for a few per cent of the pixels, colours, and the knowledge of what
# lies beside what, are enough to lift the flower from its background.
