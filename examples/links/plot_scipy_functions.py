"""
Texts that refer to each other
==============================

The documentation of a thousand functions of SciPy: words, and links where a text names another
under "See Also". Eight functions of each part of SciPy have a label. `SPPCA` takes words, labels
and links in one fit, and uses the links only if labels that were left out are found better with
them.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from gnomon import SPPCA, Links
from gnomon.datasets import load_scipy_texts
from gnomon.displays import EmbeddingDisplay

sample = load_scipy_texts()
words = TfidfVectorizer(min_df=3, stop_words="english", sublinear_tf=True)
X = words.fit_transform(sample.texts)
links = Links(sample.adjacency)
print(f"{X.shape[0]} texts, {X.shape[1]} words, {links.n_links} links")


def hide(seed, per_part=8):
    """Labels for a few functions of each part of SciPy, None for the others."""
    rng = np.random.default_rng(seed)
    labels = np.full(len(sample.y), None, dtype=object)
    for part in np.unique(sample.y):
        rows = rng.choice(np.flatnonzero(sample.y == part), per_part, replace=False)
        labels[rows] = part
    return labels, np.array([label is None for label in labels])


# %%
# Three draws of the labels, with links and without, on the texts whose part was hidden.

for seed in range(3):
    labels, hidden = hide(seed)
    plain = SPPCA(10).fit(X, labels)
    linked = SPPCA(10).fit(X, labels, links=links)
    right = plain.predict(X)[hidden] == sample.y[hidden]
    right_linked = linked.predict(X, links=links)[hidden] == sample.y[hidden]
    print(
        f"words {right.mean():.1%}, words and links {right_linked.mean():.1%}; "
        f"links used: {linked.links_used_}"
    )

# %%
# The map with its links, for a draw in which they were used.

labels, hidden = hide(2)
linked = SPPCA(2).fit(X, labels, links=links)
figure, ax = plt.subplots(figsize=(8, 5.6), layout="constrained")
Z = linked.transform(X, links=links)
EmbeddingDisplay.from_data(Z, sample.y, ax=ax, size=10, links=links)
plt.show()

# %%
# **What it shows.** Cross-references cost nothing. They are used where labels that were left out
# are found better with them, and then a text finds its part in up to ten more of a hundred cases.
