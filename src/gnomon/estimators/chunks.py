"""Chunks: rows known to be of one class, though not of which."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

NO_CHUNK = -1


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


def read_chunks(chunks, n_samples) -> np.ndarray:
    """Chunk ids as integers, -1 for rows without chunk; None is no chunk at all."""
    if chunks is None:
        return np.full(n_samples, NO_CHUNK)
    chunks = chunks.to_numpy() if hasattr(chunks, "to_numpy") else np.asarray(chunks)
    if chunks.shape != (n_samples,):
        raise ValueError(
            f"chunks has shape {chunks.shape}; accepted is one id per row, ({n_samples},), "
            "-1 for none (chunks_from_pairs makes it of pairs)"
        )
    if chunks.dtype.kind == "f":
        if not np.all(chunks == np.floor(chunks)):
            raise ValueError("chunks has fractions, NaN or infinity; accepted are whole numbers")
        chunks = chunks.astype(int)
    if chunks.dtype.kind not in "iu":
        raise TypeError(f"chunks has dtype {chunks.dtype}; accepted are whole numbers, -1 for none")
    if chunks.dtype.kind == "i" and chunks.min() < NO_CHUNK:
        raise ValueError(f"chunks has the value {chunks.min()}; accepted are ids >= 0, -1 for none")
    return _numbered(chunks)


def _numbered(chunks):
    """Ids as 0, 1, ... so that any width of integer is safe to count with."""
    out = np.full(len(chunks), NO_CHUNK)
    inside = chunks != NO_CHUNK if chunks.dtype.kind == "i" else np.ones(len(chunks), dtype=bool)
    out[inside] = np.unique(chunks[inside], return_inverse=True)[1]
    return out


def spread_labels(labels, chunks, names) -> np.ndarray:
    """Class numbers with the label of one member of a chunk passed on to all of them."""
    inside = chunks != NO_CHUNK
    known = inside & (labels >= 0)
    if not known.any():
        return labels
    highest = np.full(chunks.max() + 1, -1)
    np.maximum.at(highest, chunks[known], labels[known])
    lowest = np.full(chunks.max() + 1, len(names))
    np.minimum.at(lowest, chunks[known], labels[known])
    clash = np.flatnonzero((highest >= 0) & (highest != lowest))
    if clash.size:
        members = np.flatnonzero(known & (chunks == clash[0]))
        classes = sorted({str(names[label]) for label in labels[members]})
        raise ValueError(
            f"chunks puts rows {', '.join(map(str, members[:4]))} in one chunk, but y has the "
            f"labels {', '.join(classes)} there; rows of a chunk must share a class"
        )
    out = labels.copy()
    out[inside] = highest[chunks[inside]]
    return out
