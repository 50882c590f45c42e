"""
What pulls a tumour to the right
================================

A map is read by its axes. The arrows of a biplot show in which direction each measurement grows;
the bars rank what the first axis is made of.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import PPCA
from gnomon.displays import LoadingsDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
means = X.filter(like="mean")
model = make_pipeline(StandardScaler(), PPCA(n_components=2)).fit(means)

# %%
diagnosis = y.map({0: "malignant", 1: "benign"})
_, ax = plt.subplots(figsize=(8.5, 6), layout="constrained")
LoadingsDisplay.from_estimator(model, means, diagnosis, kind="biplot", ax=ax)
plt.show()

# %%
LoadingsDisplay.from_estimator(model, kind="top", component=0)
plt.show()

# %%
# **What it shows.** The first axis is size and irregular outline together, and malignant tumours
# have more of both; the second tells large smooth ones from small rough ones and says little of
# the diagnosis.
