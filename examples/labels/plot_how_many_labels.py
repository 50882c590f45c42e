"""
What more labels would buy
==========================

Labels cost money. How well do maps predict from 2, 5, 10 or 20 labelled images of each digit?
Every number is the accuracy on the images whose label was hidden, averaged over three draws of
the labels.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from gnomon import SPPCA, KernelSPPCA, LabelledOnly

X, y = load_digits(return_X_y=True)
X, y = X[:1000], y[:1000]
models = {
    "logistic regression": LabelledOnly(LogisticRegression(max_iter=1000)),
    "the same on 20 principal components": make_pipeline(
        PCA(20), LabelledOnly(LogisticRegression(max_iter=1000))
    ),
    "SPPCA": SPPCA(10),
    "KernelSPPCA": KernelSPPCA(10),
}


def hide(per_class, seed):
    rng = np.random.default_rng(seed)
    kept = [rng.choice(np.flatnonzero(y == k), per_class, replace=False) for k in range(10)]
    labels = np.full(len(y), -1)
    labels[np.concatenate(kept)] = y[np.concatenate(kept)]
    return labels


# %%
counts = (2, 5, 10, 20)
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for name, model in models.items():
    curve = []
    for count in counts:
        draws = [hide(count, seed) for seed in range(3)]
        curve.append(
            np.mean([np.mean(model.fit(X, k).predict(X[k < 0]) == y[k < 0]) for k in draws])
        )
    ax.plot(counts, curve, "o-", label=name)
    print(f"{name:36}", np.round(curve, 3))
ax.set(xscale="log", xticks=counts, xlabel="labels for each digit", ylabel="accuracy")
ax.set_xticks([], minor=True)
ax.set_xticklabels(counts)
ax.legend()
plt.show()

# %%
# **What it shows.** The fewer the labels, the more the unlabelled images help: with five
# labels a digit both models of gnomon know about as much as logistic regression does with ten.
