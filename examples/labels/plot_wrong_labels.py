"""
Labels worth a second look
==========================

In 569 diagnoses twelve were entered wrongly, on purpose here. Each label is left out in turn and
predicted from the others; those that the model finds least likely are shown to the person who
knows.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import SPPCA
from gnomon.displays import EmbeddingDisplay

X, truth = load_breast_cancer(return_X_y=True)
wrong = np.random.default_rng(0).choice(len(truth), 12, replace=False)
y = truth.copy()
y[wrong] = 1 - y[wrong]

model = make_pipeline(StandardScaler(), SPPCA(n_components=2))
chances = cross_val_predict(model, X, y, cv=10, method="predict_proba")[np.arange(len(y)), y]

# %%
# Of the labels with the least probability, how many were indeed wrong?

order = np.argsort(chances)
for looked_at in (5, 10, 15, 30):
    found = np.isin(order[:looked_at], wrong).sum()
    print(f"{looked_at} labels looked at: {found} of the 12 wrong ones found")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
display = EmbeddingDisplay.from_estimator(model.fit(X, y), X, y, ax=axes[0], uncertainty="none")
Z = model.transform(X)
axes[0].scatter(*Z[order[:15]].T, s=90, facecolor="none", edgecolor="black")
axes[0].set_aspect("auto")
axes[0].set_title("circles: fifteen labels to look at")
axes[1].plot(np.sort(chances)[:60], ".", color="0.6")
ranks = np.flatnonzero(np.isin(order, wrong))
axes[1].plot(ranks[ranks < 60], chances[order][ranks[ranks < 60]], "o", color="#D55E00")
axes[1].set(xlabel="rank", ylabel="probability of the label", title="orange: entered wrongly")
plt.show()

# %%
# **What it shows.** Looking at fifteen labels instead of 569 finds most of those that were wrong;
# the others lie where tumours of both kinds do.
