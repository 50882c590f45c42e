"""
What the components are made of
===============================

A map is only useful if one can say what its axes are. The loadings of a linear model say it:
here as a heat map, as a ranking, as a biplot, and as images.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import PPCA
from gnomon.displays import LoadingsDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
model = make_pipeline(StandardScaler(), PPCA(n_components=4)).fit(X)

# %%
# All components: red is positive, blue is negative. Features stand together with the
# component where they are strongest.

LoadingsDisplay.from_estimator(model)
plt.show()

# %%
# One component, ranked.

LoadingsDisplay.from_estimator(model, kind="top", component=1, n_features=8)
plt.show()

# %%
# Points and features in one picture: an arrow points to where its feature grows.

LoadingsDisplay.from_estimator(model, X, y, kind="biplot", n_features=7)
plt.show()

# %%
# Where the features are pixels, every component is an image.

digits = PPCA(n_components=10).fit(load_digits().data)
LoadingsDisplay.from_estimator(digits, kind="images")
plt.show()

# %%
# **What it shows.** Loadings tell what an axis is made of: colour and acidity for wines, strokes
# for digits.
