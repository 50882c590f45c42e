"""Neighbours by angle in a projection, and how many of them share the class of the query."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gnomon.displays.retrieval import ROWS_AT_ONCE, average_precision, nearest
from gnomon.linalg.data import slices
from gnomon.typing import RowsLike


def retrieve(estimator: Any, queries: RowsLike, gallery: RowsLike, *, k: int = 10) -> np.ndarray:
    """Rows of a gallery that lie nearest to each query, by cosine in the projection.

    Parameters
    ----------
    estimator : fitted transformer
        Anything with ``transform``, such as `gnomon.BSDR`.
    queries : array-like of shape (n_queries, n_features)
    gallery : array-like of shape (n_gallery, n_features)
        Rows to search.
    k : int, default=10
        How many to return.

    Returns
    -------
    neighbours : ndarray of int of shape (n_queries, min(k, n_gallery))
        Indices of rows of the gallery, nearest first.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gnomon import BSDR, retrieve
    >>> X, y = load_wine(return_X_y=True)
    >>> model = BSDR(random_state=0).fit(X[::2], y[::2])
    >>> retrieve(model, X[1::2], X[::2], k=3).shape
    (89, 3)
    """
    found = _project(estimator, gallery)
    Z = _project(estimator, queries)
    return np.concatenate([nearest(Z[rows], found, k) for rows in slices(len(Z), ROWS_AT_ONCE)])


def retrieval_score(
    estimator: Any,
    queries: RowsLike,
    query_labels: ArrayLike,
    gallery: RowsLike,
    gallery_labels: ArrayLike,
) -> float:
    """Mean average precision of ranking a gallery by cosine.

    Every query ranks the whole gallery, as in [1]_; rows of its own class are relevant. Queries
    whose class the gallery does not have are left out.

    Parameters
    ----------
    estimator : fitted transformer
        Anything with ``transform``.
    queries, gallery : array-like of shape (n_queries, n_features) and (n_gallery, n_features)
    query_labels, gallery_labels : array-like of shape (n_queries,) and (n_gallery,)
        Classes.

    Returns
    -------
    score : float
        Between 0 and 1; 1 if relevant rows always come first.

    References
    ----------
    .. [1] M. Gönen, "Bayesian supervised dimensionality reduction", IEEE Transactions on
       Cybernetics 43 (2013), 2179-2189.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gnomon import BSDR, retrieval_score
    >>> X, y = load_wine(return_X_y=True)
    >>> model = BSDR(random_state=0).fit(X[::2], y[::2])
    >>> bool(retrieval_score(model, X[1::2], y[1::2], X[::2], y[::2]) > 0.9)
    True
    """
    found, Z = _project(estimator, gallery), _project(estimator, queries)
    labels, asked = np.asarray(gallery_labels), np.asarray(query_labels)
    for name, values, rows in (
        ("gallery_labels", labels, found),
        ("query_labels", asked, Z),
    ):
        if values.shape != (len(rows),):
            raise ValueError(f"{name} has shape {values.shape}; accepted is ({len(rows)},)")
    hits = (
        labels[nearest(Z[rows], found, len(found))] == asked[rows, None]
        for rows in slices(len(Z), ROWS_AT_ONCE)
    )
    precision = np.concatenate([average_precision(part) for part in hits])
    if np.isnan(precision).all():
        raise ValueError("query_labels and gallery_labels have no class in common")
    return float(np.nanmean(precision))


def _project(estimator, X):
    return np.asarray(estimator.transform(X), dtype=float)
