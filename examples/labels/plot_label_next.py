"""
Which rows to label next
========================

Ten digits, two labels each, and time to label forty more images. Rows that stand for many others of
which the model is not sure teach it more than rows drawn by lot.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gnomon import SPPCA, suggest

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
start = np.full(len(y), -1)
for digit in range(10):
    start[rng.choice(np.flatnonzero(y == digit), 2, replace=False)] = digit


def label_more(pick, rounds=5, batch=8):
    """Accuracy on the rows left after each round of labelling."""
    labels, curve = start.copy(), []
    for _ in range(rounds + 1):
        model = SPPCA(10).fit(X, labels)
        open_rows = np.flatnonzero(labels < 0)
        curve.append(np.mean(model.predict(X[open_rows]) == y[open_rows]))
        chosen = pick(model, labels, batch)
        labels[chosen] = y[chosen]  # the person who knows
    return curve


def suggested(model, labels, batch):
    """The rows that gnomon would ask for."""
    return [row.row for row in suggest(model, X, labels, n=batch)]


def by_lot(model, labels, batch):
    return rng.choice(np.flatnonzero(labels < 0), batch, replace=False)


# %%
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
counts = 20 + 8 * np.arange(6)
for name, pick in (("as suggested", suggested), ("by lot", by_lot)):
    curve = label_more(pick)
    ax.plot(counts, curve, "o-", label=name)
    print(f"{name:16}", np.round(curve, 3))
ax.set(xlabel="labels", ylabel="accuracy on the rows without one")
ax.legend()
plt.show()

# %%
# The images that are asked for first, each with its reason, are ways to write a digit that many
# images share and no labelled one has.

for row in suggest(SPPCA(10).fit(X, start), X, start, n=4):
    print(row.row, row.reason)

asked = suggested(SPPCA(10).fit(X, start), start, 12)
figure, axes = plt.subplots(1, 12, figsize=(9, 1), layout="constrained")
for ax, row in zip(axes, asked, strict=True):
    ax.imshow(X[row].reshape(8, 8), cmap="Greys")
    ax.axis("off")
plt.show()

# %%
# **What it shows.** The same effort buys more where the model chooses the rows, once it has
# learnt enough to know what it does not know.
