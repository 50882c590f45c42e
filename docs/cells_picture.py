"""Draw docs/_static/cells.png: the cells of docs/guides/cells.md. Needs anndata and scanpy.

python docs/cells_picture.py
"""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import scanpy as sc

from gnomon import SPPCA
from gnomon.io import fit_anndata

cells = sc.datasets.pbmc68k_reduced()
known = np.random.default_rng(0).choice(cells.n_obs, 100, replace=False)
cells.obs["annotated"] = cells.obs["bulk_labels"].where(np.isin(np.arange(cells.n_obs), known))
cells.uns["annotated_colors"] = cells.uns["bulk_labels_colors"]
fit_anndata(cells, SPPCA(n_components=20), labels="annotated")
hidden = cells.obs["annotated"].isna()
right = cells.obs["sppca_predicted"].astype(str) == cells.obs["bulk_labels"].astype(str)
print(f"{right[hidden].mean():.1%} of {hidden.sum()} cells without annotation are right")

sc.pp.neighbors(cells, use_rep="X_sppca")
sc.tl.umap(cells, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for ax, colour in zip(axes, ("bulk_labels", "sppca_predicted", "sppca_probability"), strict=True):
    legend = None if colour == "bulk_labels" else "right margin"
    sc.pl.umap(cells, color=colour, ax=ax, show=False, legend_loc=legend, size=30)
figure.savefig(Path(__file__).parent / "_static" / "cells.png", dpi=110)
