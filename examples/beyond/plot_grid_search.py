"""
Tuning in a pipeline, with half of the labels hidden
====================================================

gnomon's models are scikit-learn estimators, so that a search tunes them together with what comes
before and after. With unlabelled rows it needs a splitter and a scorer that know of these.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from gnomon import SPPCA, SemiSupervisedSplit, labelled_scorer
from gnomon.displays import SupervisionDisplay

X, y = load_wine(return_X_y=True)
labels = np.where(np.random.default_rng(0).random(len(y)) < 0.5, y, -1)
search = GridSearchCV(
    make_pipeline(PowerTransformer(), SPPCA(n_components=2)),
    {"sppca__supervision": [0.0, 0.1, 0.5, 0.9]},
    cv=SemiSupervisedSplit(4),
    scoring=labelled_scorer("neg_log_loss"),
).fit(X, labels)
print(search.best_params_, f"log loss {-search.best_score_:.3f}")

# %%
SupervisionDisplay.from_search(search, ylabel="log probability of held-out labels")
plt.show()

# %%
# **What it shows.** Searches, pipelines and scores of scikit-learn work as they are, once the
# rows without a label are kept out of the score and in the fit.
