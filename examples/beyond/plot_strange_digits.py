"""
The strangest digits
====================

Which images are unlike all others? PPCA of each image says how far it lies from the map (Q) and
how far out within the map (T²). Chemists use the two to find samples that went wrong; here they
find handwriting that did.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gnomon import PPCA, outliers

X, y = load_digits(return_X_y=True)
model = PPCA(n_components=12).fit(X)
found = outliers(model, X)
orders = {"far from the map": np.argsort(-found.q), "as usual as it gets": np.argsort(found.q)}

# %%
figure, axes = plt.subplots(2, 10, figsize=(10, 2.6), layout="constrained")
for row, (title, order) in zip(axes, orders.items(), strict=True):
    for ax, i in zip(row, order, strict=False):
        ax.imshow(X[i].reshape(8, 8), cmap="Greys")
        ax.set_title(f"{y[i]}", size="small")
        ax.axis("off")
    row[0].text(-0.1, 1.45, title, transform=row[0].transAxes)
plt.show()

# %%
beyond = np.mean((found.q > found.q_limit[1]) | (found.t2 > found.t2_limit[1]))
print(f"{beyond:.1%} of the images lie beyond one of the 99 % limits")

# %%
# **What it shows.** The images that a person would stumble over are those that the model finds
# least likely, and no label was needed to find them.
