"""Rows that do not fit in memory, or that live elsewhere, as `Blocks`.

A memory map is an array like any other and needs nothing of this. A dask array stays where its
chunks are: products run there, and only their small results travel.
"""

from collections.abc import Callable, Iterable

import numpy as np
from scipy import sparse

from gnomon.linalg.data import Data, Matrix, Weighted
from gnomon.linalg.stacked import Blocks


class Loaded(Data):
    """Rows that a function returns each time they are needed; one block is in memory at a time."""

    def __init__(self, load: Callable[[], np.ndarray], shape, dtype):
        super().__init__(dtype, shape)
        self.load = load

    @property
    def leaf(self) -> Matrix:
        """The rows themselves."""
        return Matrix(self.load().astype(self.dtype, copy=False))

    @property
    def squared_norm(self):
        return self.leaf.squared_norm

    def dense_blocks(self):
        yield from self.leaf.dense_blocks()

    def rows(self, mask):
        mask = np.asarray(mask)
        n = int(mask.sum()) if mask.dtype == bool else len(mask)
        if isinstance(self.load, _Chunk):
            return Loaded(self.load.rows(mask), (n, self.shape[1]), self.dtype)
        return Loaded(lambda: self.load()[mask], (n, self.shape[1]), self.dtype)

    def _matmat(self, B):
        return self.leaf @ B

    def _rmatmat(self, Z):
        return self.leaf.T @ Z


def from_loaders(loaders: Iterable[Callable[[], np.ndarray]]) -> Blocks:
    """Rows that several functions return, stacked; each is called once to learn its shape.

    Parameters
    ----------
    loaders : iterable of callable
        Functions without arguments that return arrays or sparse arrays with the same columns,
        such as readers of the parts of a file. They are called again for every pass, and must
        return the same finite numbers each time.

    Returns
    -------
    X : Blocks
        To be given to an estimator in the place of an array; one block is in memory at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PPCA, from_loaders
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> parts = from_loaders([lambda: X[:60], lambda: X[60:]])
    >>> bool(np.allclose(PPCA().fit(parts).get_covariance(), PPCA().fit(X).get_covariance()))
    True
    """
    return Blocks([_loaded(k, load) for k, load in enumerate(loaders)])


def from_dask(X) -> Blocks:
    """A dask array (n, d) as rows that stay in its chunks; columns are put in one chunk.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_features)

    Returns
    -------
    X : Blocks
    """
    import dask

    X = X.rechunk({1: -1})
    if any(np.isnan(X.chunks[0])):
        X = X.compute_chunk_sizes()
    blocks = X.to_delayed().ravel()
    parts = [
        Loaded(_Chunk(block), (rows, X.shape[1]), X.dtype)
        for block, rows in zip(blocks, X.chunks[0], strict=True)
    ]

    def run(function, *iterables):
        calls = zip(*iterables, strict=True)
        return dask.compute(
            *[dask.delayed(_apply)(function, *_take_apart(*call)) for call in calls]
        )

    return Blocks(parts, map=run)


class _Chunk:
    """Loads a chunk that dask holds."""

    def __init__(self, block):
        self.block = block

    def __call__(self):
        return self.block.compute()

    def rows(self, mask):
        return _Chunk(self.block[mask])


def _take_apart(part, *args):
    """The chunk as dask knows it, what is laid over it (outermost last), other arguments."""
    layers = []
    while not isinstance(part, Loaded):
        layers.append((type(part), part.weights if isinstance(part, Weighted) else part.mean))
        part = part.X
    return part.load.block, layers[::-1], args


def _apply(function, array, layers, args):
    """Run where the chunk is: lay over it what was laid over its stand-in, call the function."""
    data: Data = Matrix(np.asarray(array))
    for kind, argument in layers:
        data = kind(data, argument)
    return function(data, *args)


def _loaded(k, load):
    if not callable(load):
        raise TypeError(f"loaders[{k}] is {type(load).__name__}; accepted are functions")
    first = load()
    if not isinstance(first, np.ndarray) and not sparse.issparse(first):
        raise TypeError(
            f"loaders[{k}] returns {type(first).__name__}; accepted are arrays and sparse arrays"
        )
    if first.ndim != 2:
        raise ValueError(f"loaders[{k}] returns {first.ndim} dimensions; accepted are 2")
    if not np.isfinite(float(first.sum())):
        raise ValueError(f"loaders[{k}] returns NaN or infinity; accepted are finite numbers")
    dtype = np.float32 if first.dtype == np.float32 else np.float64
    return Loaded(load, first.shape, dtype)
