"""
Three numbers from twenty men
=============================

Weight, waist and pulse from three exercises, for twenty men: the smallest real table there is. A
Bayesian model has to say that so little is known; :class:`~gnomon.BSDRRegressor` does.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_linnerud
from sklearn.model_selection import KFold

from gnomon import BSDRRegressor

data = load_linnerud()
X, Y = data.data, data.target
mean, sd = np.empty_like(Y), np.empty_like(Y)
for train, test in KFold(5, shuffle=True, random_state=0).split(X):
    model = BSDRRegressor(n_components=1, random_state=0).fit(X[train], Y[train])
    mean[test], sd[test] = model.predict(X[test], return_std=True)

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for k, ax in enumerate(axes):
    order = np.argsort(Y[:, k])
    ax.errorbar(np.arange(20), mean[order, k], 1.96 * sd[order, k], fmt="none", color="0.6")
    ax.plot(np.arange(20), Y[order, k], "o", ms=4, color="#D55E00")
    ax.set(title=data.target_names[k], xlabel="men, by the true value")
plt.show()

inside = np.abs(mean - Y) < 1.96 * sd
print(f"95 % intervals of men left out hold {inside.mean():.0%} of the values")

# %%
# **What it shows.** Exercises say little of weight, waist and pulse. The intervals of men who
# were left out are wide enough to hold what they should.
