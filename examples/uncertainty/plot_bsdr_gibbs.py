"""
Draws of the posterior, and whether to trust them
=================================================

`inference="gibbs"` follows the variational fit by sampling. Traces and rank plots of quantities
that no rotation changes show whether the chains have found the same distribution.

*Level: for the curious.*
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import rankdata
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from gnomon import BSDR

X, y = load_iris(return_X_y=True)
model = BSDR(1, inference="gibbs", n_chains=3, n_draws=250, n_warmup=100, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    model.fit(X, y)

# %%
# So few draws have not mixed, and the fit says so.

print(caught[-1].message)
for name, value in model.rhat_.items():
    print(f"{name}: R-hat {np.max(value):.2f}, effective draws {np.min(model.ess_[name]):.0f}")

# %%
# Chains that agree have flat ranks.

fig, axes = plt.subplots(2, 2, figsize=(9, 5))
for row, (name, draws) in zip(
    axes,
    (
        ("log joint", model.draws_["log_joint"]),
        ("score spread", model.draws_["score_spread"][..., 0]),
    ),
    strict=True,
):
    ranks = rankdata(draws).reshape(draws.shape)
    for chain, rank in zip(draws, ranks, strict=True):
        row[0].plot(chain, linewidth=0.7)
        row[1].hist(rank, bins=15, histtype="step")
    row[0].set(title=f"trace of the {name}", xlabel="draw")
    row[1].set(title="ranks over all chains", xlabel="rank")
fig.tight_layout()
plt.show()

# %%
# **What it shows.** Draws are only as good as the mixing of their chains; traces and ranks show
# which quantities to trust, and some here need more draws.
