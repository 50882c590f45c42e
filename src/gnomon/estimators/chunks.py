"""Chunks: rows known to be of one class, though not of which."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from gnomon.estimators._door import NO_CHUNK, count, read_chunks, share_labels
from gnomon.estimators._targets import Targets, contrasts
from gnomon.linalg.data import Data, center, weighted
from gnomon.models.strength.closed_form import n_directions, principal_space
from gnomon.models.strength.completion import Outputs, doubtful
from gnomon.models.strength.links import content_of


def chunks_from_pairs(pairs: Any, n_samples: int) -> np.ndarray:
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


def share_targets(targets: Targets, chunks, X, weights, settings):
    """Targets with the label of one member of a chunk passed on to all, and chunk numbers.

    A member whose x speaks against that label more than chunks are trusted stays unlabelled.
    """
    if targets.coding.kind != "classes":
        holds = {"none": "no outputs"}.get(targets.coding.kind, targets.coding.kind)
        raise ValueError(f"chunks are rows of one class, and y has {holds}; accepted are classes")
    chunks = read_chunks(chunks, len(targets.Y))
    own = np.asarray(targets.labels)
    labels = share_labels(own, chunks, targets.coding.classes)
    shared, passed_on = _with_labels(targets, labels), (labels >= 0) & (own < 0)
    wrong = passed_on & _doubted(shared, X, weights, settings) if passed_on.any() else passed_on
    if not wrong.any():
        return shared, chunks
    warn_of_wrong_members(wrong)
    return _with_labels(targets, np.where(wrong, -1, labels)), np.where(wrong, NO_CHUNK, chunks)


def warn_of_wrong_members(wrong):
    """Warn where any row has a chunk whose label does not fit."""
    if wrong.any():
        warnings.warn(
            f"{count(wrong.sum(), 'row has', 'rows have')} a chunk whose label does not fit, and "
            f"{'stays' if wrong.sum() == 1 else 'stay'} unlabelled: row {np.flatnonzero(wrong)[0]} "
            "is the first; see whether rows of a chunk share a class",
            stacklevel=5,
        )


def doubtful_labels(X: Data, labels, weights) -> np.ndarray:
    """Whether the class number of each row is doubtful, by the principal directions of the rows."""
    if labels.max() == 0:
        return np.zeros(len(labels), dtype=bool)
    mean, rows = center(weighted(X, weights))
    space = principal_space(mean, rows, n_directions(1), np.random.default_rng(0))
    F = np.asarray(X.less_mean(mean) @ space.axes, dtype=float)
    codes = contrasts(labels.max() + 1)[labels]
    return doubtful(F, Outputs(codes, np.ones(codes.shape, dtype=bool), labels), weights)


def _with_labels(targets, labels):
    """The targets with other labels, among them all that they had."""
    codes = np.zeros((len(targets.coding.classes), targets.Y.shape[1]))
    known = targets.labels >= 0
    codes[targets.labels[known]] = targets.Y[known]
    known = (labels >= 0)[:, None]
    observed = np.repeat(known, targets.Y.shape[1], axis=1)
    return targets._replace(Y=np.where(known, codes[labels], 0.0), observed=observed, labels=labels)


def _doubted(targets, X, weights, settings):
    """Whether the label of each row is doubtful."""
    rows = np.flatnonzero(targets.labels >= 0)
    F = content_of(X, weights, settings).coordinates()
    outputs = Outputs(targets.Y, targets.observed, targets.labels).rows(rows)
    found = np.zeros(len(F), dtype=bool)
    found[rows] = doubtful(
        F[rows], outputs, np.ones(len(rows)) if weights is None else weights[rows]
    )
    return found
