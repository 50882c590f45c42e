"""
Rows that are linked
====================

Papers cite papers and pages link to pages, and what is linked is often alike. Here rows of four
groups are linked mostly within their group, while the largest part of their content has nothing
to do with the groups. PCA finds that part. The three relations of `PRPCA` look for what
linked rows share.

*Level: with practice.*
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from gnomon import PPCA, PRPCA, Links
from gnomon.displays import EmbeddingDisplay

rng = np.random.default_rng(0)
n, d = 240, 30
group = np.repeat(np.arange(4), n // 4)
axes = np.linalg.qr(rng.standard_normal((d, 4)))[0]
centers = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) * 1.5
own = 4 * rng.standard_normal((n, 2))
X = np.hstack([centers[group] + rng.standard_normal((n, 2)), own]) @ axes.T
X += 0.7 * rng.standard_normal((n, d))
same = np.equal.outer(group, group)
links = Links(np.triu(rng.random((n, n)) < np.where(same, 0.06, 0.002), 1))

# %%
# The same rows by four maps, with their links.
models = {
    "PPCA, without links": PPCA(2),
    'PRPCA, relation="paper"': PRPCA(2, relation="paper", projection="smoothed"),
    'PRPCA, relation="filter"': PRPCA(2, relation="filter"),
    'PRPCA, relation="learnt"': PRPCA(2, relation="learnt", random_state=0),
}
figure, panels = plt.subplots(2, 2, figsize=(9, 8), layout="constrained")
for panel, (title, model) in zip(panels.flat, models.items(), strict=True):
    Z = model.fit_transform(X, links=links) if "PRPCA" in title else model.fit_transform(X)
    EmbeddingDisplay.from_data(Z, group, links=links, ax=panel)
    panel.set_title(title)

# %%
# The learnt model knows how much the links are worth: its log likelihood over that of a model
# without them, and the same for a graph whose nodes were shuffled. Links that are noise are
# left aside.
learnt = models['PRPCA, relation="learnt"']
print(f"true links:     used {learnt.links_used_}, gain {learnt.link_gain_:.0f} nats")
print(f"shuffled graph: gain {learnt.permuted_link_gain_:.0f} nats")
noise = links.subset(rng.permutation(n))
rejected = PRPCA(2, relation="learnt", random_state=0).fit(X, links=noise)
print(f"random links:   used {rejected.links_used_}, gain {rejected.link_gain_:.0f} nats")

# %%
# A row without content is placed by its links alone, and its content predicted from them.
new = np.arange(0, n, 8)
old = np.setdiff1d(np.arange(n), new)
learnt = PRPCA(2, relation="learnt", random_state=0).fit(X[old], links=links, sample_index=old)
blank = np.full((len(new), d), np.nan)
known = learnt.transform(X[old], links=links, sample_index=old)
placed = learnt.transform(blank, links=links, sample_index=new)
guess = LogisticRegression().fit(known, group[old]).score(placed, group[new])
print(f"group of {len(new)} rows from their links alone: {guess:.0%} right")

# %%
# Cross-validation needs the whole graph and the node of each row: `Links` is handed on whole,
# ``sample_index`` is cut to the fold, and both reach `fit` and `transform` by metadata routing.
with config_context(enable_metadata_routing=True):
    embed = PRPCA(2, relation="filter")
    embed.set_fit_request(links=True, sample_index=True)
    embed.set_transform_request(links=True, sample_index=True)
    model = make_pipeline(embed, LogisticRegression())
    params = {"links": links, "sample_index": np.arange(n)}
    with_links = cross_val_score(model, X, group, params=params).mean()
    without = cross_val_score(make_pipeline(PPCA(2), LogisticRegression()), X, group).mean()
print(f"accuracy on held-out rows: {with_links:.2f} with links, {without:.2f} without")
plt.show()

# %%
# **What it shows.** Where linked rows are alike, links find what content hides; and the learnt
# relation leaves a graph aside that says nothing.
