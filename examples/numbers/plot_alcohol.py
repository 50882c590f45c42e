"""
Alcohol without the alcohol meter
=================================

The alcohol of a wine from its other twelve measurements, some of which are missing. The intervals
are wider for wines of which less is known.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from gnomon import SPPCA
from gnomon.datasets import remove_entries

wine = load_wine(as_frame=True).data
alcohol, X = wine["alcohol"].to_numpy(), wine.drop(columns="alcohol")
X = remove_entries(X, 0.25)
train = np.random.default_rng(0).random(len(X)) < 0.6
scaler = StandardScaler().fit(X[train])
model = SPPCA(n_components=4, target="numeric").fit(scaler.transform(X[train]), alcohol[train])
mean, sd = model.predict(scaler.transform(X[~train]), return_std=True)

# %%
gaps = np.isnan(X[~train]).sum(axis=1)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].errorbar(alcohol[~train], mean, 1.96 * sd, fmt="o", ms=3, lw=0.7)
axes[0].axline((13, 13), slope=1, color="0.6")
axes[0].set(xlabel="measured alcohol, %", ylabel="predicted, with 95 % intervals")
axes[1].scatter(gaps, sd, s=14)
axes[1].set(xlabel="measurements missing", ylabel="standard deviation, %")
plt.show()

error = mean - alcohol[~train]
print(f"error {np.sqrt(np.mean(error**2)):.2f} %, spread of alcohol {alcohol[~train].std():.2f} %")
print(f"95 % intervals hold {np.mean(np.abs(error) < 1.96 * sd):.1%} of the wines")

# %%
# **What it shows.** A wine that lacks half of its measurements still has a prediction, and a
# wider interval to go with it.
