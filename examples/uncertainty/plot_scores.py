"""
Classes by scores: a probit likelihood
======================================

The likelihood of SPPCA codes classes as Gaussian numbers. On a map of two dimensions five digits
cannot all be linear functions of the place, and probabilities suffer. With scores, of which the
largest is the class, each digit has a region of its own.

*Level: for the curious.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from gnomon import SPPCA

X, truth = load_digits(n_class=5, return_X_y=True)
train = np.arange(len(X)) % 2 == 0
models = {
    name: SPPCA(2, supervision="likelihood", likelihood=name).fit(X[train], truth[train])
    for name in ("gaussian", "probit")
}

# %%
# Rows that were not shown: how often the most probable class is right, and the log loss. The
# probabilities of the Gaussian likelihood are averaged with those of a logistic regression on
# the map; the scores need none.

for name, model in models.items():
    right = model.score(X[~train], truth[~train])
    loss = log_loss(truth[~train], model.predict_proba(X[~train]))
    print(f"{name}: {right:.3f} right, log loss {loss:.3f}")

# %%
# A point is large where its own class is sure.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    T = model.transform(X[~train])
    sure = model.predict_proba(X[~train])[np.arange((~train).sum()), truth[~train]]
    ax.scatter(T[:, 0], T[:, 1], c=truth[~train], s=2 + 30 * sure, cmap="tab10", vmax=9, alpha=0.6)
    ax.set_title(name)
    ax.set_xlabel("sppca0")
    ax.set_ylabel("sppca1")

# %%
# **What it shows.** Where all rows have a class and the map is small, probabilities of scores are
# nearer to the truth than those of Gaussian codes; the map itself hardly changes.
