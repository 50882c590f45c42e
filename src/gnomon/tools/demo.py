"""The data of `gnomon demo`: wines of three cultivars, most labels and some cells hidden."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv
from sklearn.datasets import load_wine

from gnomon.inference.checkpoint import write_atomically
from gnomon.tools.prepare import Question

CULTIVARS = np.array(["Barolo", "Grignolino", "Barbera"], dtype=object)
# So few labels and so many gaps that it is worth seeing.
LABELS_PER_CLASS = 5
GAPS = 0.05
ASKED = Question(target="cultivar", id="bottle", components=2)
COMPARED_MODELS = ("SPPCA", "PPCA", "DCAGM", "PCA", "LDA", "PLS")
OPTIONS = ("--target", "cultivar", "--id", "bottle", "--components", "2")


def wine():
    """Measurements with gaps, labels with None, all labels, names of the measurements."""
    X, y, names = _bundled()
    rng = np.random.default_rng(0)
    X = np.where(rng.random(X.shape) < GAPS, np.nan, X)
    labels = np.full(len(y), None, dtype=object)
    for number, cultivar in enumerate(CULTIVARS):
        shown = rng.choice(np.flatnonzero(y == number), LABELS_PER_CLASS, replace=False)
        labels[shown] = cultivar
    return X, labels, CULTIVARS[y], names


def write_wine(path) -> Path:
    """The table as a csv file."""
    X, labels, _, names = wine()
    columns = {"bottle": [f"bottle {i + 1:03d}" for i in range(len(X))], "cultivar": labels}
    columns |= {name: X[:, j] for j, name in enumerate(names)}
    buffer = io.BytesIO()
    table = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    csv.write_csv(pa.table(table), buffer)
    return write_atomically(path, buffer.getvalue())


def hidden_accuracy(subject) -> float:
    """Share of the hidden labels that are predicted."""
    truth = wine()[2]
    hidden = ~subject.labelled
    return float((subject.predicted[hidden] == truth[hidden]).mean())


def _bundled():
    data = load_wine()
    # One column has two names in its own: what was measured and at which wavelengths.
    names = [
        name.replace("od280/od315_of_diluted_wines", "od280/od315") for name in data.feature_names
    ]
    return data.data, data.target, [name.replace("_", " ") for name in names]
