"""
Where one class ends and the next begins
========================================

:class:`~gnomon.DCAGM` learns a map in which classes, each a mixture of Gaussians, can be told
apart. A fifth of the wines have a label. Outlines hold 68 % of each Gaussian, the background
has the colour of the class that is predicted there, and open points are wines whose class the
model was not told.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import DCAGM
from gnomon.displays import EmbeddingDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
rng = np.random.default_rng(3)
labels = np.where(rng.random(len(y)) < 0.2, y, -1)

model = make_pipeline(StandardScaler(), DCAGM(n_components=2, n_gaussians=2, random_state=0))
model.fit(X, labels)
EmbeddingDisplay.from_estimator(model, X, labels, mixture=True, regions=True, predict=True)
plt.show()

hidden = labels == -1
right = np.mean(model.predict(X)[hidden] == y[hidden])
print(f"{right:.0%} of the unlabelled wines are in their own region")
