"""
When a probability can be believed
==================================

With five labels a digit, a model is asked for the class of 1700 images and for the probability
that it is right. Where it says 90 %, nine of ten should be right.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from gnomon import SPPCA, LabelledOnly

X, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
labels = np.full(len(y), -1)
for digit in range(10):
    labels[rng.choice(np.flatnonzero(y == digit), 5, replace=False)] = digit
hidden = labels < 0

models = {
    "naive Bayes": LabelledOnly(GaussianNB(var_smoothing=1e-3)),
    "logistic regression": LabelledOnly(LogisticRegression(max_iter=2000)),
    "SPPCA": SPPCA(10),
}

# %%
figure, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
ax.plot([0, 1], [0, 1], color="0.7")
for name, model in models.items():
    chances = model.fit(X, labels).predict_proba(X[hidden])
    right = chances.argmax(axis=1) == y[hidden]
    sure = chances.max(axis=1)
    groups = np.array_split(np.argsort(sure), 8)
    ax.plot([sure[g].mean() for g in groups], [right[g].mean() for g in groups], "o-", label=name)
    print(f"{name:20} says {sure.mean():.2f}, is right in {right.mean():.2f}")
ax.set(xlabel="probability that is claimed", ylabel="share that is right")
ax.legend()
plt.show()

# %%
# **What it shows.** `SPPCA` claims about what comes true, as its probabilities are calibrated on
# labels that were left out; naive Bayes is sure of everything.
