"""
How ill in a year?
==================

442 patients, ten measurements, and a score of the disease a year later, here known for sixty.
`SPPCA` predicts the score of the others with an interval, and the map shows along which direction
it grows.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from gnomon import SPPCA
from gnomon.displays import EmbeddingDisplay, LoadingsDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True)
known = np.random.default_rng(0).choice(len(y), 60, replace=False)
partly = np.full(len(y), np.nan)
partly[known] = y[known]

model = SPPCA(n_components=2, target="numeric").fit(X, partly)
hidden = np.isnan(partly)
mean, sd = model.predict(X[hidden], return_std=True)
inside = np.abs(mean - y[hidden]) < 1.96 * sd
print(f"R² {model.score(X[hidden], y[hidden]):.2f}; 95 % intervals hold {inside.mean():.1%}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
EmbeddingDisplay.from_estimator(model, X, y.to_numpy(), ax=axes[0], uncertainty="none")
axes[0].set_title("the score on the map")
LoadingsDisplay.from_estimator(model, kind="top", component=0, ax=axes[1])
plt.show()

# %%
# **What it shows.** The score grows along the first axis, which is blood fats and weight; more
# than half of it is chance to these measurements, and the intervals say so.
