"""
How many components do linked rows have?
========================================

A number of components has to come from somewhere. With a prior on the loadings of each component,
`PRPCA` finds it: components without evidence are left out. Here rows are drawn from the
model of the paper, with three components, and a part of their entries is lost.

*Level: with practice.*
"""

# %%
# The precision of the rows is gamma I + (I + A)², where A has the links. Latent variables
# and noise are drawn with it.
import matplotlib.pyplot as plt
import numpy as np

from gnomon import PRPCA, Links

rng = np.random.default_rng(0)
n, d, q, gamma = 150, 20, 3, 0.1
links = Links(np.triu(rng.random((n, n)) < 3 / n, 1))
R = np.eye(n) + links.adjacency.toarray()
root = np.linalg.cholesky(np.linalg.inv(R @ R + gamma * np.eye(n)))
W = np.linalg.qr(rng.standard_normal((d, q)))[0] * [6, 4, 3]
X = root @ (rng.standard_normal((n, q)) @ W.T + rng.standard_normal((n, d)))

# %%
# The most that there may be is a dozen; ``n_components="auto"`` begins with as many as can have
# evidence at all.
model = PRPCA("auto", prior="ard", relation="paper", gamma=gamma).fit(X, links=links)
print(f"{model.n_components_} components, evidence above {model.objective_[-1]:.0f} nats")

# %%
# The same with a fifth of the entries lost. The bound rises at every step.
holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
with_gaps = PRPCA("auto", prior="ard", relation="paper", gamma=gamma).fit(holes, links=links)
print(f"{with_gaps.n_components_} components after {with_gaps.n_iter_} steps")

# %%
# Without a prior every component gets the loadings of highest likelihood, noise among them.
plain = PRPCA(12, relation="paper", gamma=gamma).fit(X, links=links)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
for name, fitted, shift in (("without prior", plain, 0.0), ("with prior", model, 0.4)):
    lengths = np.linalg.norm(fitted.components_, axis=1)
    left.bar(np.arange(1, len(lengths) + 1) + shift, lengths, width=0.4, label=name)
left.set(xlabel="component", ylabel="length of its loadings")
left.legend()
right.plot(np.arange(1, with_gaps.n_iter_ + 1), with_gaps.objective_, marker="o")
right.set(xlabel="step, with gaps", ylabel="bound of the log evidence")
plt.show()

# %%
# **What it shows.** With a prior the number of components is found with the components, also where
# entries are missing; without one all that are asked for have loadings.
