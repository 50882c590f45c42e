"""
Missing values and how sure the model is
========================================

A tenth of the digits' pixels is removed. PPCA is fitted to what is left, by the exact likelihood
of the observed entries, and fills the gaps with their conditional means. Each filled value has a
standard deviation, and 95 % intervals should hold the true value 95 % of the time. They do where
the model's assumptions hold; on real pixels, which are not Gaussian, the share shows how far off
they are.

*Level: first steps.*
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, load_wine

from gnomon import PPCA
from gnomon.datasets import make_subspace, remove_entries

digits = load_digits().data
gaps = remove_entries(digits, 0.2)
model = PPCA(n_components=15).fit(gaps)
filled, std = model.impute(gaps, return_std=True)

# %%
# Four digits: as given, filled in, the truth, and the standard deviation of the filled pixels.
figure, axes = plt.subplots(4, 4, figsize=(6.4, 6.4), layout="constrained")
titles = ["given", "filled in", "truth", "deviation"]
for column, images in enumerate((gaps, filled, digits, std)):
    for row in range(4):
        axis = axes[row, column]
        axis.imshow(images[row].reshape(8, 8), cmap="gray_r" if column < 3 else "magma")
        axis.set(xticks=[], yticks=[])
        if row == 0:
            axis.set_title(titles[column])
        axis.set_facecolor("#f4d9b8")

# %%
# Do the intervals cover what they say? On rows drawn from the model itself, and on the digits.
planted = make_subspace(2000, 20, 4)
planted_gaps = remove_entries(planted.X, 0.2)
planted_filled, planted_std = PPCA(4).fit(planted_gaps).impute(planted_gaps, return_std=True)


def coverage(truth, gaps, filled, std, widths):
    missing = np.isnan(gaps)
    errors = np.abs(filled - truth)[missing]
    return [np.mean(errors < width * std[missing]) for width in widths]


levels = np.array([0.5, 0.68, 0.8, 0.9, 0.95, 0.99])
widths = np.array([0.674, 0.994, 1.282, 1.645, 1.960, 2.576])
figure, axis = plt.subplots(figsize=(4.8, 4.4), layout="constrained")
axis.plot([0.4, 1], [0.4, 1], color="0.7", lw=1)
for name, marker, data in (
    ("rows of the model", "o", (planted.X, planted_gaps, planted_filled, planted_std)),
    ("digits", "s", (digits, gaps, filled, std)),
):
    axis.plot(levels, coverage(*data, widths), marker=marker, label=name)
axis.set(xlabel="nominal coverage", ylabel="share of values inside", aspect="equal")
axis.legend(frameon=False)
plt.show()

# %%
# A table has units and types. What ``gnomon fit`` wrote takes the data frame and gives it back
# filled, each column in its own type and within what the fit has seen, with the deviations beside
# them: here wines, with magnesium in whole milligrams, a date, and what stands on the label.
import tempfile
from pathlib import Path

import pandas as pd

import gnomon
from gnomon.tools.cli import app

wine = load_wine(as_frame=True)
frame = wine.data[["alcohol", "magnesium", "flavanoids", "proline"]].astype({"magnesium": "Int64"})
frame["label"] = pd.Categorical(np.array(["Barolo", "Grignolino", "Barbera"])[wine.target])
frame["bottled"] = pd.Timestamp("1983-01-01") + pd.to_timedelta(30 * wine.target, unit="D")
rng = np.random.default_rng(0)
frame = frame.mask(rng.random(frame.shape) < 0.1)

with tempfile.TemporaryDirectory() as folder:
    table = Path(folder, "wine.parquet")
    frame.to_parquet(table)
    app(["fit", str(table), "--components", "2", "--out", folder, "--quiet"], standalone_mode=False)
    model = gnomon.load(Path(folder, "model.gnomon"))

print(model)
print(frame.head(8).to_string())
print(model.impute(frame, return_std=True).head(8).to_string())

# %%
# **What it shows.** Gaps are filled with a standard deviation that holds where the model does, in
# the units and types of the table.
