"""
A map that says how sure it is
==============================

Thirteen measurements of 178 wines, a sixth of them lost, and a label for two wines in five.
:class:`~gnomon.PPCA` fits what is there. Each ellipse holds the latent position of its wine
with a probability of 68 %: the more measurements are missing, the wider it is.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import PPCA
from gnomon.displays import EmbeddingDisplay

rng = np.random.default_rng(0)
X, y = load_wine(return_X_y=True, as_frame=True)
X = X.mask(rng.random(X.shape) < 1 / 6)
labels = y.where(rng.random(len(y)) < 0.4, -1)

model = make_pipeline(StandardScaler(), PPCA(n_components=2)).fit(X)
EmbeddingDisplay.from_estimator(model, X, labels)
plt.show()

# %%
# Labelled wines are filled, unlabelled ones open. PPCA has not seen the labels; they are only
# drawn here. With ``class_ellipses=True`` an outline holds 95 % of each class.

EmbeddingDisplay.from_estimator(model, X, y, class_ellipses=True, uncertainty="none")
plt.show()

# %%
# Above 2,000 points ellipses would cover each other. The display then draws how large the
# standard deviation is on average, and names the classes at their means.

many = rng.integers(len(X), size=6000)
crowd = X.to_numpy()[many] + 0.1 * X.std().to_numpy() * rng.normal(size=(6000, 13))
crowd[rng.random(crowd.shape) < np.linspace(0, 0.6, 6000)[:, None]] = np.nan
big = make_pipeline(StandardScaler(), PPCA(n_components=2)).fit(crowd)
EmbeddingDisplay.from_estimator(big, crowd, y.to_numpy()[many])
plt.show()

# %%
# **What it shows.** The fewer of its values are known, the wider is the ellipse of a row: the map
# tells which points to read with care.
