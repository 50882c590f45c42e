"""The data of the papers, found by the environment variable GNOMON_DATA.

A folder of NAME.npz files with X (or X_data, X_indices, X_indptr, X_shape), y or Y, and for graphs
A_row, A_col. Nothing is committed or downloaded; what is not there is skipped with a reason.
"""

import os
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import sparse


class MissingDataError(Exception):
    """A data set is not in GNOMON_DATA."""


def load(name):
    """A dictionary with X, y or Y, and A where there is a graph."""
    folder = os.environ.get("GNOMON_DATA")
    if not folder:
        raise MissingDataError("GNOMON_DATA is not set")
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        raise MissingDataError(f"{name}.npz is not in GNOMON_DATA")
    with np.load(path, allow_pickle=False) as file:
        stored = {key: file[key] for key in file.files}
    data = {key: stored[key] for key in ("y", "Y", "target", "split") if key in stored}
    if "X_data" in stored:
        parts = stored["X_data"].astype(float), stored["X_indices"], stored["X_indptr"]
        data["X"] = sparse.csr_array(parts, shape=tuple(stored["X_shape"]))
    else:
        data["X"] = stored["X"].astype(float)
    if "A_row" in stored:
        # liblinear takes sparse inputs with 32-bit indices only.
        rows, columns = stored["A_row"].astype(np.int32), stored["A_col"].astype(np.int32)
        n = data["X"].shape[0]
        pairs = np.r_[rows, columns], np.r_[columns, rows]
        data["A"] = sparse.csr_array((np.ones(2 * len(rows)), pairs), shape=(n, n))
    return data


def unit_rows(X):
    """Rows of length one; rows of zeros stay."""
    norms = np.sqrt(np.asarray((X.multiply(X) if sparse.issparse(X) else X**2).sum(axis=1))).ravel()
    scale = 1 / np.where(norms > 0, norms, 1)
    return (sparse.diags_array(scale) @ X).tocsr() if sparse.issparse(X) else X * scale[:, None]


def tfidf(X):
    """Counts times the log of inverse document frequency, rows of length one."""
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    weights = np.log(X.shape[0] / np.maximum(frequency, 1))
    return unit_rows((X @ sparse.diags_array(weights)).tocsr())


@lru_cache(maxsize=1)
def prepared(name, preparation):
    """X prepared as "", "unit rows" or "tf-idf", and y or Y; the last set is kept in memory."""
    data = load(name)
    prepare = {"": lambda X: X, "unit rows": unit_rows, "tf-idf": tfidf}[preparation]
    labels = data["y"] if "y" in data else data["Y"]
    return prepare(data["X"]), labels.astype(int)
