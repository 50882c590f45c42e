"""Rows read block by block: how often each model reads them, and what it holds in memory.

    python benchmarks/out_of_core.py

100,000 rows of 100 columns in ten blocks that a function makes each time it is asked. Counts the
calls during `fit`, and the most memory that arrays take, as a share of all rows.
"""

import warnings

import numpy as np

import gnomon

import measure

ROWS, COLUMNS, BLOCKS, CLASSES = 100_000, 100, 10, 5
MODELS = {
    "PPCA": (gnomon.PPCA(3), None),
    'SPPCA, supervision="likelihood", 2 % labelled': (
        gnomon.SPPCA(3, supervision="likelihood"),
        0.02,
    ),
    "SPPCA, 2 % labelled": (gnomon.SPPCA(3), 0.02),
    "SPPCA, all labelled": (gnomon.SPPCA(3), 1),
    "KernelSPPCA, 100 landmarks, 2 % labelled": (gnomon.KernelSPPCA(3, n_landmarks=100), 0.02),
    "DCAGM, 2 % labelled": (gnomon.DCAGM(3), 0.02),
    "DCAGM, all labelled": (gnomon.DCAGM(3), 1),
    "BSDR, all labelled": (gnomon.BSDR(3), 1),
}


class Rows:
    """Blocks of rows with classes, made anew at each call and counted."""

    def __init__(self):
        self.calls = 0
        self.loadings = np.random.default_rng(0).normal(size=(CLASSES, COLUMNS))

    def codes(self, k):
        return np.random.default_rng(k).integers(0, CLASSES, ROWS // BLOCKS)

    def load(self, k):
        self.calls += 1
        rng, size = np.random.default_rng([k, 1]), ROWS // BLOCKS
        Z = 2 * np.eye(CLASSES)[self.codes(k)] + rng.normal(size=(size, CLASSES))
        return Z @ self.loadings + rng.normal(size=(size, COLUMNS))


def labels(rows, share):
    y = np.concatenate([rows.codes(k) for k in range(BLOCKS)])
    known = np.random.default_rng(1).random(ROWS) < share
    return np.where(known, y, -1)


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)


def measured(model, share):
    rows = Rows()
    X = gnomon.from_loaders([lambda k=k: rows.load(k) for k in range(BLOCKS)])
    y = None if share is None else labels(rows, share)
    rows.calls = 0
    peak = measure.peak_memory(lambda: fitted(model, X, y))
    return f"{rows.calls / BLOCKS:.0f}", f"{peak * 2**20 / (8 * ROWS * COLUMNS):.2f}"


def main():
    found = []
    for name, (model, share) in MODELS.items():
        found.append([name, *measured(model, share)])
        print(found[-1], flush=True)
    title = f"Rows read block by block: {ROWS:,} x {COLUMNS} in {BLOCKS} blocks"
    header = ["model", "reads of every row", "memory, as a share of all rows"]
    notes = [f"One block is {1 / BLOCKS} of all rows; `fit` with its defaults, three components."]
    measure.write("out_of_core", title, header, found, notes)


if __name__ == "__main__":
    main()
