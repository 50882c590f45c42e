"""
How many components, which features
===================================

The columnwise prior of `BSDR` switches off components that the classes do not need; the rowwise
prior does the same to features. Here eight classes are sectors of a plane that is hidden among
noise.

*Level: for the curious.*
"""

import matplotlib.pyplot as plt
import numpy as np

from gnomon import BSDR
from gnomon.displays import RelevanceDisplay

rng = np.random.default_rng(0)
n = 400
plane = rng.normal(size=(n, 2))
y = np.floor((np.arctan2(*plane.T) + np.pi) / (2 * np.pi) * 8).astype(int) % 8
mixed = plane @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(n, 6))
X = np.hstack([mixed, rng.normal(size=(n, 10))])

# %%
# Seven components are tried, two are kept.

columns = BSDR("auto", max_iter=30, tol=1e-2, random_state=0).fit(X, y)
print(f"kept {columns.n_components_} of {len(columns.kept_)} components")

# %%
# With a precision per feature, none of the ten noise features is left. More latent noise makes
# the choice sharper.

rows = BSDR(2, prior="row", latent_noise=1, n_init=2, tol=1e-2, random_state=0).fit(X, y)
print("features used:", rows.get_support(indices=True))

_, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
RelevanceDisplay.from_estimator(columns, X, y, ax=left)
left.set_title("columnwise prior")
right.bar(np.arange(16), rows.feature_relevance_, color="#0072B2")
right.set(xlabel="feature", ylabel="length of loadings", title="rowwise prior")
plt.show()

# %%
# **What it shows.** Priors that switch off what is not needed find the two components and the two
# features that were planted.
