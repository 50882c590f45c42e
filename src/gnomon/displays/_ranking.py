"""Nearest points by angle, and how well they share a label."""

import numpy as np

ROWS_AT_ONCE = 500


def nearest(queries, gallery, k) -> np.ndarray:
    """Indices (m, k) of the rows of gallery with the greatest cosine to each query."""
    closeness = unit(queries) @ unit(gallery).T
    return np.argsort(-closeness, axis=1, kind="stable")[:, :k]


def unit(Z):
    """Rows scaled to length one; a row of zeros stays."""
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    return Z / np.where(lengths > 0, lengths, 1.0)


def average_precision(hits) -> np.ndarray:
    """Average precision of every row of a ranked list of hits; NaN where there is none."""
    hits = np.asarray(hits, dtype=float)
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    n_hits = hits.sum(axis=1)
    found = np.sum(precision * hits, axis=1)
    return np.divide(found, n_hits, out=np.full(len(hits), np.nan), where=n_hits > 0)
