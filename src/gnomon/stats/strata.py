"""Some rows that stand for all: of each kind the same number, weighted by how many they are."""

import numpy as np


def drawn(kinds, size, weights=None) -> tuple[np.ndarray, np.ndarray]:
    """Sorted numbers of at most ``size`` rows, the same number of every kind that has as many.

    The weights that come with them make those of a kind add up to all of that kind; ``weights``
    are what rows count by themselves. A kind always has a row, and the same rows are drawn anew.
    """
    rng, own = np.random.default_rng(0), np.ones(len(kinds)) if weights is None else weights
    names, counts = np.unique(kinds, return_counts=True)
    most = _level(counts, size)
    index, scaled = [], np.zeros(len(kinds))
    for name, count in zip(names, counts, strict=True):
        rows = np.flatnonzero(kinds == name)
        some = rows if count <= most else np.sort(rng.choice(rows, most, replace=False))
        scaled[some] = own[some] * (own[rows].sum() / own[some].sum())
        index.append(some)
    order = np.sort(np.concatenate(index))
    return order, scaled[order]


def _level(counts, size):
    """The number that every count is cut at so that they add up to ``size`` at most."""
    counts, left = np.sort(counts), size
    for k, count in enumerate(counts):
        share = left // (len(counts) - k)
        if count > share:
            return max(share, 1)
        left -= count
    return counts[-1]
