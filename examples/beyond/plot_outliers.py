"""
Rows unlike the others
======================

A row can be unusual in two ways: far out within the map, where others lie too but nearer, or off
the map, where no other row lies. Chemometrics calls the first distance Hotelling's T² and the
second Q, the squared prediction error. Both follow from a fitted PPCA or SPPCA, with limits that
usual rows rarely pass.

Here are spectra of three substances in changing amounts. One sample is simply very concentrated,
one has a substance that no other has, and one has a single wrong reading.

*Level: with practice.*
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from gnomon import PPCA, outlier_contributions, outliers

rng = np.random.default_rng(0)
wavelengths = np.arange(400, 1000, 5)


def peak(centre, width):
    return np.exp(-(((wavelengths - centre) / width) ** 2))


pure = np.array([peak(centre, 60) for centre in (480, 640, 820)])
X = rng.normal(1, 0.2, size=(150, 3)) @ pure + 0.01 * rng.normal(size=(150, 120))
X[10] += 1.2 * pure[0] + 0.9 * pure[2]
X[20] += 0.08 * peak(560, 15)
X[30, 50] += 0.15

model = PPCA(n_components=3).fit(X)
found = outliers(model, X)
beyond = (found.t2 > found.t2_limit[1]) | (found.q > found.q_limit[1])

# %%
# T² against Q. The concentrated sample lies within the map, since it is made of the same
# substances; the other two lie off it.
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
ax.scatter(found.t2, found.q, s=14, color=np.where(beyond, "#D55E00", "#0072B2"))
for level, t2, q in zip(("95 %", "99 %"), found.t2_limit, found.q_limit, strict=True):
    ax.axvline(t2, color="0.6", lw=1, ls="--")
    ax.axhline(q, color="0.6", lw=1, ls="--")
    ax.annotate(level, (t2, 0.98), xycoords=("data", "axes fraction"), va="top", size="small")
for i in (10, 20, 30):
    ax.annotate(f"row {i}", (found.t2[i], found.q[i]), xytext=(5, 3), textcoords="offset points")
ax.set(xlabel="T²: within the map", ylabel="Q: from the map")
ax.spines[["top", "right"]].set_visible(False)

# %%
# The columns that make these rows unusual: where the foreign substance absorbs, and the one
# wrong reading.
rows = [20, 30]
parts = outlier_contributions(model, X[rows]).q
figure, axes = plt.subplots(2, 1, figsize=(6.4, 4.4), layout="constrained", sharex=True)
for ax, row, part in zip(axes, rows, parts, strict=True):
    ax.fill_between(wavelengths, part, color="#D55E00", step="mid")
    ax.set(ylabel=f"part of Q, row {row}")
    ax.spines[["top", "right"]].set_visible(False)
axes[-1].set_xlabel("wavelength")
plt.show()

# %%
# **What it shows.** T² finds the sample that has much of what others have, Q those that have
# something of their own, and their columns say what.
