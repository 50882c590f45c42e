"""Chunks: rows known to be of one class, though not of which."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from gnomon.estimators._door import NO_CHUNK


def chunks_from_pairs(pairs, n_samples):
    """Chunk ids of rows from must-link pairs, by transitive closure.

    Cross-validation cuts a list of pairs wrongly; ids, one per row, are cut as rows are.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2)
        Numbers of two rows that belong to the same class, a pair per line.
    n_samples : int
        Number of rows.

    Returns
    -------
    chunks : ndarray of shape (n_samples,)
        Number of the chunk of each row, counted by first members; -1 for rows without pair.

    Examples
    --------
    >>> from gnomon import chunks_from_pairs
    >>> chunks_from_pairs([(4, 1), (1, 2), (0, 5)], n_samples=7)
    array([ 0,  1,  1, -1,  1,  0, -1])
    """
    pairs = _read_pairs(pairs, n_samples)
    links = sparse.coo_array(
        (np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_samples, n_samples)
    )
    _, parts = connected_components(links, directed=False)
    chunks = np.full(n_samples, NO_CHUNK)
    linked = np.unique(pairs[pairs[:, 0] != pairs[:, 1]])
    _, first, numbers = np.unique(parts[linked], return_index=True, return_inverse=True)
    chunks[linked] = np.argsort(np.argsort(first))[numbers]
    return chunks


def _read_pairs(pairs, n_samples):
    pairs = np.asarray(pairs)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=int)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"pairs has shape {pairs.shape}; accepted is (n_pairs, 2)")
    if pairs.dtype.kind not in "iu":
        raise TypeError(f"pairs has dtype {pairs.dtype}; accepted are row numbers, integers")
    if pairs.min() < 0 or pairs.max() >= n_samples:
        worst = pairs.min() if pairs.min() < 0 else pairs.max()
        raise ValueError(
            f"pairs has the row number {worst}; accepted are 0 to {n_samples - 1}, "
            f"since n_samples == {n_samples}"
        )
    return pairs.astype(int)
