"""
A first map
===========

A thousand images of six digits, and a label for five of each. Ten lines make a map of all images,
colour every one by what is predicted of it, and say how often that is right.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from gnomon import SPPCA
from gnomon.displays import EmbeddingDisplay

X, truth = load_digits(n_class=6, return_X_y=True)
rng = np.random.default_rng(0)
labels = np.full(len(truth), -1)  # -1: no label
for digit in range(6):
    labels[rng.choice(np.flatnonzero(truth == digit), 5, replace=False)] = digit

model = SPPCA(n_components=2).fit(X, labels)

# %%
# Filled points have a label, open ones the colour of the digit that is predicted.

EmbeddingDisplay.from_estimator(model, X, labels, predict=True, uncertainty="none")
plt.show()

# %%
# The other labels were hidden from the fit, so they can judge it.

hidden = labels < 0
right = model.predict(X[hidden]) == truth[hidden]
print(f"right for {right.mean():.1%} of the {hidden.sum()} images without a label")

# %%
# **What it shows.** Thirty labels and a thousand images without one make a map that most images
# can be read from.
