"""
Did the fit converge?
=====================

Every iterative fit keeps its objective, so several starts can be drawn together. A filled end
means that the objective had settled, an open end that the fit was stopped before.

*Level: for the curious.*
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gnomon import PPCA
from gnomon.displays import ConvergenceDisplay

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4)) @ rng.normal(size=(4, 12)) + rng.normal(size=(150, 12))

fits = {f"start {i}": PPCA(4, solver="em", random_state=i).fit(X) for i in (0, 1, 3)}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    fits["stopped early"] = PPCA(4, solver="em", random_state=4, max_iter=5).fit(X)

ConvergenceDisplay.from_estimator(fits, ylabel="log likelihood")
plt.show()

# %%
# The distance to the best value on a logarithmic axis shows how fast the last digits come, and
# that all starts end at the same maximum.

ConvergenceDisplay.from_estimator(fits, gap=True)
plt.show()

# %%
# **What it shows.** All starts end at one maximum; the curve says which fit was stopped before.
