"""
From a csv file to a picture, and back
======================================

A table as people have it, with texts, gaps and a column that only some rows have filled in. The
command ``gnomon fit`` reads it, prepares it, fits a map, and writes a report; Python opens the same
model file and places new rows of the table.

*Level: first steps.*
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import gnomon
from gnomon.displays import EmbeddingDisplay
from gnomon.tools.cli import app

wine = load_wine(as_frame=True)
table = wine.data.mask(np.random.default_rng(0).random(wine.data.shape) < 0.05)
table["bottle"] = [f"bottle {i}" for i in range(len(table))]
cultivar = pd.Series(np.array(["Barolo", "Grignolino", "Barbera"])[wine.target])
table["cultivar"] = cultivar.where(np.random.default_rng(1).random(len(table)) < 0.2)

# %%
# In the shell: ``gnomon fit wine.csv --target cultivar --id bottle --out map``.

folder = Path(tempfile.mkdtemp())
table.iloc[:150].to_csv(folder / "wine.csv", index=False)
words = ["fit", str(folder / "wine.csv"), "--target", "cultivar", "--id", "bottle"]
app([*words, "--out", str(folder / "map"), "--quiet"], standalone_mode=False)
print(sorted(path.name for path in (folder / "map").iterdir()))

# %%
# The model in the file takes tables, with their texts, their gaps and their units.

model = gnomon.load(folder / "map" / "model.gnomon")
new = table.iloc[150:]
print(f"predicted for new bottles: {np.mean(model.predict(new) == cultivar[150:]):.0%} right")

figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
EmbeddingDisplay.from_data(model.transform(table), cultivar.to_numpy(), ax=ax)
ax.scatter(*model.transform(new).T[:2], s=90, facecolor="none", edgecolor="black")
ax.set_title("circles: bottles that came after the fit")
plt.show()

# %%
# **What it shows.** The file holds the model and the rule for its tables, so that new rows need no
# preparation in Python or in the shell.
