"""
Structure found, or invented?
=============================

A map that was made with labels separates the classes on the rows it was made from, also where
labels mean nothing. :class:`~gnomon.displays.PermutationDisplay` fits the same model again with
permuted labels and compares what is left on held-out rows.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import SPPCA
from gnomon.displays import PermutationDisplay

# %%
# Pure noise, and a method that is eager to please: both maps show three classes, but held-out
# rows are not where their class is. The real labels are no better than permuted ones.

rng = np.random.default_rng(2)
noise, labels = rng.normal(size=(90, 60)), np.arange(90) % 3
eager = LinearDiscriminantAnalysis(n_components=2)
display = PermutationDisplay.from_estimator(eager, noise, labels, cv=3, kind="embedding")
plt.show()
print(f"p = {display.p_value:.2f}")

# %%
# :class:`~gnomon.SPPCA` on the same noise finds little use for the labels: its map separates
# the classes far less, and has less to retract on held-out rows.

careful = SPPCA(n_components=2, random_state=0)
display = PermutationDisplay.from_estimator(
    careful, noise, labels, n_permutations=9, cv=3, kind="embedding"
)
plt.show()
print(f"p = {display.p_value:.2f}")

# %%
# Wines: the real labels are far from all permutations.

X, y = load_wine(return_X_y=True)
model = make_pipeline(StandardScaler(), SPPCA(n_components=2, random_state=0))
display = PermutationDisplay.from_estimator(model, X, y, cv=3)
plt.show()

# %%
# The same numbers as two maps.

display.plot(kind="embedding")
plt.show()

# %%
# **What it shows.** A picture with separate classes proves nothing; the same picture with
# permuted labels beside it does.
