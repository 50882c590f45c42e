"""
Several labels a row, with gaps on both sides
=============================================

Rows carry several 0/1 labels at once, most of them unknown, and the inputs have gaps too. The
likelihood of what is observed needs neither dropped rows nor filled values, and the labels
known of a row help to fill the others.

*Level: for the curious.*
"""

import matplotlib.pyplot as plt
import numpy as np

from gnomon import SPPCA

rng = np.random.default_rng(0)
n, d, n_labels, q = 600, 20, 6, 3
Z = rng.normal(size=(n, q))
X = Z @ rng.normal(size=(q, d)) + 2.0 * rng.normal(size=(n, d))
truth = (Z @ rng.normal(size=(q, n_labels)) + 0.5 * rng.normal(size=(n, n_labels)) > 0).astype(int)

# %%
# Half of the rows have labels, and those only two thirds of theirs; a tenth of X is missing.

y = np.where(rng.random(truth.shape) < 2 / 3, truth, np.nan)
y[n // 2 :] = np.nan
gappy = np.where(rng.random(X.shape) < 0.1, np.nan, X)

model = SPPCA(q, supervision="likelihood").fit(gappy, y)
print(f"{model.target_coding_.kind}, {model.n_iter_} iterations, converged: {model.converged_}")

# %%
# Rows without any label are predicted from x alone; where some labels of a row are known,
# they help with the rest.

half = np.arange(n) < n // 2
unknown = np.isnan(y) & half[:, None]
alone = (model.predict_distribution(gappy).mean > 0.5).astype(int)
_, filled = model.impute(gappy, y)
together = (filled > 0.5).astype(int)
print(f"unlabelled rows: {np.mean(alone[~half] == truth[~half]):.3f} right")
print(f"gaps of labelled rows, from x alone: {np.mean(alone[unknown] == truth[unknown]):.3f}")
print(f"the same, with their other labels: {np.mean(together[unknown] == truth[unknown]):.3f}")

# %%
# The map, coloured by two of the labels: its directions serve all of them at once.

T = model.transform(gappy)
figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, label in zip(axes, (0, 1), strict=True):
    ax.scatter(T[:, 0], T[:, 1], c=truth[:, label], cmap="coolwarm", s=8)
    ax.set_title(f"label {label}")
    ax.set_xlabel("sppca0")
    ax.set_ylabel("sppca1")

# %%
# **What it shows.** Gaps in inputs and in labels are no obstacle, and labels that are known of a
# row help to find the others.
