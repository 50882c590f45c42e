"""
How many components?
====================

Data from three latent variables in twenty dimensions. ``n_components="auto"`` takes the number
with the greatest log likelihood of held-out rows, and keeps the whole curve.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gnomon import PPCA
from gnomon.displays import DimensionDisplay, RelevanceDisplay

rng = np.random.default_rng(0)
n, d, q = 200, 20, 3
Z = rng.normal(size=(n, q))
X = Z @ rng.normal(size=(q, d)) + 1.5 * rng.normal(size=(n, d))
y = (Z[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)

model = PPCA(n_components="auto", random_state=0).fit(X)
DimensionDisplay.from_estimator(model)
plt.show()

# %%
# Bars say what each component explains: of the variance of X, and of a label that PPCA has not
# seen. The label follows one latent variable, which the first three components share.

RelevanceDisplay.from_estimator(PPCA(n_components=6).fit(X), X, y)
plt.show()

# %%
# The dimension that serves a purpose may be another one. A search over a pipeline is drawn in
# the same way, with standard errors over the splits.

pipeline = make_pipeline(PPCA(), LogisticRegression())
search = GridSearchCV(pipeline, {"ppca__n_components": [1, 2, 3, 4, 6, 8, 12]}, cv=5).fit(X, y)
DimensionDisplay.from_search(search, ylabel="held-out accuracy")
plt.show()

# %%
# **What it shows.** Held-out likelihood finds the three latent variables; a purpose such as a
# prediction may need more or fewer.
