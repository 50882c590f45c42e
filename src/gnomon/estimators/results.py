"""Results of a fitted model for rows that come in blocks, a block at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import check_option, n_rows, take_rows
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import slices
from gnomon.typing import RowsLike

METHODS = ("transform", "predict", "predict_proba", "score_samples", "impute")
# Entries of a block of rows in one array: 8 MB in double precision.
RESULT_ENTRIES = 2**20


def transform_blocks(model: Any, X: RowsLike, *, out: Any = None, method: str = "transform") -> Any:
    """What a model says of rows, a block at a time, so that neither they nor it need fit in memory.

    Parameters
    ----------
    model : estimator
        Fitted; of this package or any other with the method.
    X : {array-like, sparse matrix, Blocks} of shape (n_samples, n_features)
        Rows in memory, a memory map, or what `from_loaders`, `from_rows`, `from_parquet` and
        the like give. NaN marks missing values where the model takes them.
    out : array-like of shape (n_samples, ...), default=None
        What results are written to, as a memory map, a data set of h5py or an array of zarr.
    method : {"transform", "predict", "predict_proba", "score_samples", "impute"}, \
            default="transform"

    Returns
    -------
    results : generator of ndarray, or out
        The results of one block after another, or ``out`` with all of them written.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PPCA, from_rows, transform_blocks
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> rows = from_rows(X, block_rows=30)
    >>> model = PPCA(2).fit(rows)
    >>> Z = transform_blocks(model, rows, out=np.empty((100, 2)))
    >>> bool(np.allclose(Z, model.transform(X)))
    True
    >>> sum(len(block) for block in transform_blocks(model, rows))
    100
    """
    check_option("method", method, METHODS)
    check_is_fitted(model)
    results = (getattr(model, method)(rows) for rows in _blocks(X))
    return results if out is None else _written(results, out, n_rows(X))


def _blocks(X) -> Iterator[Any]:
    """Runs of rows as arrays, sparse arrays or frames."""
    if isinstance(X, Blocks):
        yield from X.each()
        return
    n = n_rows(X)
    width = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    for rows in slices(n, max(RESULT_ENTRIES // max(width, 1), 1)):
        yield take_rows(X, np.arange(rows.start, rows.stop)) if n else X


def _written(results, out, n):
    if len(out) != n:
        raise ValueError(f"out has {len(out)} rows; accepted are {n}, those of X")
    start = 0
    for block in results:
        stop = start + len(block)
        if np.shape(block)[1:] != tuple(out.shape[1:]):
            raise ValueError(
                f"out has shape {out.shape}; accepted is {(n, *np.shape(block)[1:])}, that of the "
                "results"
            )
        out[start:stop] = block
        start = stop
    return out
