"""
Words behind the axes of a text map
===================================

A thousand texts on mathematics: the documentation of SciPy, with a handful of labels for each
part. The map is sparse all the way, and the loadings name the words that pull a text to either
side.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from gnomon import SPPCA
from gnomon.datasets import load_scipy_texts
from gnomon.displays import EmbeddingDisplay

sample = load_scipy_texts()
kept = np.isin(sample.y, ["fft", "linalg", "ndimage", "signal", "stats"])
texts, parts = np.array(sample.texts, dtype=object)[kept], sample.y[kept]
words = TfidfVectorizer(min_df=3, stop_words="english", sublinear_tf=True)
X = words.fit_transform(texts)

rng = np.random.default_rng(0)
labels = np.full(len(parts), None, dtype=object)
for part in np.unique(parts):
    rows = rng.choice(np.flatnonzero(parts == part), 6, replace=False)
    labels[rows] = part
model = SPPCA(2).fit(X, labels)
hidden = np.array([label is None for label in labels])
print(f"{np.mean(model.predict(X[hidden]) == parts[hidden]):.0%} of the other texts are recognised")

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained", width_ratios=(2, 1, 1))
EmbeddingDisplay.from_estimator(model, X, parts, ax=axes[0], uncertainty="none", size=8)
names = words.get_feature_names_out()
for k, ax in enumerate(axes[1:]):
    order = np.argsort(model.components_[k])
    shown = np.concatenate([order[:7], order[-7:]])
    ax.barh(names[shown], model.components_[k][shown], color="#0072B2")
    ax.set_title(f"words of axis {k + 1}")
plt.show()

# %%
# **What it shows.** Thirty labels turn a map of words into one of subjects, and the words along
# its axes say what the subjects are about.
