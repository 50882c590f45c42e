"""
Where one class ends and the next begins
========================================

:class:`~gnomon.DCAGM` learns a map in which classes, each a mixture of Gaussians, can be told
apart. Every other iris has a label. Outlines hold 68 % of each Gaussian, the background has the
colour of the class that is predicted there, and the colour of an open point is its predicted
class.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import DCAGM, SPPCA
from gnomon.displays import EmbeddingDisplay

X, y = load_iris(return_X_y=True)
names = load_iris().target_names[y].astype(object)
labels = np.where(np.arange(len(y)) % 2 == 0, names, None)

model = make_pipeline(StandardScaler(), DCAGM(n_components=2, n_gaussians=2, random_state=0))
model.fit(X, labels)
EmbeddingDisplay.from_estimator(model, X, labels, mixture=True, regions=True, predict=True)
plt.show()

# %%
# Regions can be drawn for every linear map that predicts classes. Those of
# :class:`~gnomon.SPPCA` have straight borders, and its points have ellipses.

model = make_pipeline(StandardScaler(), SPPCA(n_components=2, random_state=0)).fit(X, labels)
EmbeddingDisplay.from_estimator(model, X, labels, regions=True)
plt.show()

# %%
# **What it shows.** Mixtures of Gaussians give borders that bend; each model shows where its
# prediction changes.
