"""
Structure found, or invented?
=============================

A map that was made with labels separates the classes on the rows it was made from, also where
labels mean nothing. :class:`~gnomon.displays.PermutationDisplay` fits the same model again with
permuted labels and compares what is left on held-out rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon.displays import PermutationDisplay

# %%
# Pure noise, and a method that is eager to please: both maps look alike, and so do the
# held-out scores. The real labels are no better than permuted ones.

rng = np.random.default_rng(1)
noise, labels = rng.normal(size=(90, 40)), np.arange(90) % 3
eager = LinearDiscriminantAnalysis(n_components=2)
display = PermutationDisplay.from_estimator(eager, noise, labels, kind="embedding")
plt.show()
print(f"p = {display.p_value:.2f}")

# %%
# Wines: the real labels are far from all permutations.

X, y = load_wine(return_X_y=True)
model = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(n_components=2))
display = PermutationDisplay.from_estimator(model, X, y)
plt.show()

# %%
# The same display, its numbers already computed, as two maps.

display.plot(kind="embedding")
plt.show()
