"""Rows in the chunks of dask arrays and data frames; products run there, small results travel.

A pass over the rows is one graph. Every chunk becomes `Data` where it lies, with what is laid over
the rows, and a function of it is called. What they return is joined as a tree, so that the client
gets one small array, whatever the number of chunks. The order is that of the chunks: a sum depends
neither on the number of workers nor on which was first. A worker that is lost takes nothing with
it that was sent there, since all of it is in the graph.

    Distributed     the leaf: where the rows are, layers over them, their weights
    from_dask       declares rows; one pass finds their number, sums, gaps, and infinity
    lazily          a function of rows, chunk by chunk, as dask arrays that are not computed
    computed        a vector of dask, one number a row, in memory
"""

import warnings
from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise, repeat
from operator import add, attrgetter, getitem, methodcaller
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from scipy import sparse

from gnomon.linalg import blocks
from gnomon.linalg.data import SPARSE_BELOW, Centered, Data, Matrix, Scaled
from gnomon.linalg.threads import no_more_threads

# Results that are joined at a time: few levels for thousands of chunks, few results held at once.
JOINED = 8
# Entries that are fetched at a time where rows themselves are asked for: 32 MiB.
FETCHED_ENTRIES = 2**22


class Rows(NamedTuple):
    """Where rows are: what dask makes each chunk of, how many rows of it count, which (None: all).

    The number of rows of a chunk may be unknown, NaN.
    """

    chunks: tuple
    lengths: tuple
    chosen: tuple

    @property
    def starts(self) -> np.ndarray:
        """The number of the first row of every chunk, and that of all rows at the end."""
        return np.cumsum([0, *self.lengths])

    def cut(self, values) -> list:
        """What holds something for every row, for the rows of each chunk."""
        return [values[a:b] for a, b in pairwise(self.starts)]

    def choose(self, index) -> "Rows":
        """The rows of a sorted index; chunks without any are left out, but for one."""
        starts, found = self.starts, []
        for k, some in enumerate(np.split(index, np.searchsorted(index, starts[1:-1]))):
            own = some - starts[k]
            own = own if self.chosen[k] is None else self.chosen[k][own]
            found.append((self.chunks[k], len(own), own))
        return Rows(*zip(*([part for part in found if part[1]] or found[:1]), strict=True))

    def calls(self, function, layers, weights=None, of_rows=()) -> list:
        """Calls of a function with the rows of every chunk, not run as yet."""
        # Lists: dask before 2024.12 takes a tuple that begins with a function for a call of it.
        common = _delayed([function, [*layers]])
        own = repeat(None) if weights is None else self.cut(weights)
        cut = zip(*map(self.cut, of_rows), strict=True) if of_rows else repeat(())
        every = zip(self.chunks, self.chosen, own, cut, strict=False)
        return [_delayed(_call)(chunk, common, *known) for chunk, *known in every]


class Distributed(Data):
    """Rows in chunks elsewhere; ``layers`` make them of a chunk, one after another, then weights.

    ``sums`` are those of the columns, where they are known; NaN where one has gaps.
    """

    def __init__(self, where: Rows, layers, n_features, dtype, *, sparse, weights=None, sums=None):
        n = sum(where.lengths)
        super().__init__(dtype, (n, n_features), n if weights is None else float(np.sum(weights)))
        self.where, self.layers, self._is_sparse, self._sums = where, layers, sparse, sums
        self.weights = None if weights is None else np.asarray(weights, dtype=float)

    def _with(self, **changes):
        """The same but for some things; sums are known of bare rows only."""
        same = {"where": self.where, "layers": self.layers, "n_features": self.shape[1]}
        same |= {"dtype": self.dtype, "sparse": self._is_sparse, "weights": self.weights}
        return Distributed(**(same | changes))

    def _under(self, layer, **changes):
        return self._with(layers=(*self.layers, layer), **changes)

    @property
    def is_sparse(self):
        return self._is_sparse

    @property
    def has_gaps(self):
        return self._sums is not None and bool(np.isnan(self._sums).any())

    @property
    def is_elsewhere(self):
        return True

    @property
    def squared_norm(self):
        return float(self.reduced(attrgetter("squared_norm")))

    def row_squared_norms(self):
        return self._of_every_row(methodcaller("row_squared_norms"))

    def column_sums(self):
        return self.reduced(methodcaller("column_sums")) if self._sums is None else self._sums

    def column_means(self):
        sums = self.reduced(_weighted_sums) if self._sums is None else self._sums
        return sums / self.n_samples

    def less_mean(self, mean):
        return self._under(partial(_laid, Centered, mean))

    def scaled(self, factors):
        return self._under(partial(_laid, Scaled, factors))

    def weighted(self, weights):
        return self._with(weights=weights)

    @property
    def unweighted(self):
        return self if self.weights is None else self._with(weights=None)

    def mapped(self, function, n_features):
        return self._under(
            partial(_made, function), n_features=n_features, dtype=float, sparse=False
        )

    def as_float32(self):
        if not self.is_sparse or self.dtype == np.float32:
            return self
        return self._under(methodcaller("as_float32"), dtype=np.float32)

    def reduced(self, function, *of_rows, join=add):
        return _run(_tree(self._calls(function, *of_rows), join))[0]

    def normal_product(self, B):
        return self.reduced(methodcaller("normal_product", B))

    def gram(self):
        return self.reduced(methodcaller("gram"))

    def dual_gram(self):
        return _run(_delayed(_dual_gram)(self._calls(_dense)))[0]

    def rows(self, mask):
        mask = np.asarray(mask)
        index = np.flatnonzero(mask) if mask.dtype == bool else mask
        if np.any(np.diff(index) < 0):
            raise ValueError("an index into rows of dask must be sorted")
        weights = None if self.weights is None else self.weights[index]
        return self._with(where=self.where.choose(index), weights=weights)

    def dense_blocks(self):
        calls = self._calls(_dense)
        batch = np.cumsum(self.where.lengths) * self.shape[1] // FETCHED_ENTRIES
        for run in np.split(np.arange(len(calls)), 1 + np.flatnonzero(np.diff(batch))):
            yield from _run(*(calls[k] for k in run))

    def kept_in_memory(self):
        if self.shape[0] * self.shape[1] > blocks.KEPT_ENTRIES:
            return self
        parts = _run(*self._calls(_stored if self.is_sparse else _dense))
        if self.is_sparse:
            return Matrix(sparse.vstack(parts, format="csr"))
        return Matrix(np.concatenate(parts))

    def _matmat(self, B):
        return self._of_every_row(partial(_product, B=B.astype(self.dtype, copy=False)))

    def _rmatmat(self, Z):
        return self.reduced(_transposed_product, Z.astype(self.dtype, copy=False))

    def _of_every_row(self, function):
        """What a function says of each row, in memory."""
        return np.concatenate(_run(*self._calls(function)))

    def _calls(self, function, *of_rows):
        return self.where.calls(function, self.layers, self.weights, of_rows)


def _call(chunk, common, chosen, weights, of_rows):
    """Run where the chunk is: lay over it what lies over all rows, call the function."""
    function, (first, *layers) = common
    data = first(chunk)
    data = data if chosen is None else data.rows(chosen)
    for layer in layers:
        data = layer(data)
    return function(data if weights is None else data.weighted(weights), *of_rows)


def _leaf(chunk, dtype):
    """A chunk as `Data`: an array, a sparse array, or a part of a data frame."""
    if hasattr(chunk, "to_numpy"):
        chunk = chunk.to_numpy(dtype=dtype, na_value=np.nan)
    chunk = chunk if sparse.issparse(chunk) else np.asarray(chunk)
    return Matrix(chunk.astype(dtype, copy=False))


def _laid(kind, argument, data):
    return kind(data, argument)


def _made(function, data):
    return Matrix(np.asarray(function(data), dtype=float))


def _weighted_sums(data):
    return data.n_samples * data.column_means()


def _product(data, B):
    return data @ B


def _transposed_product(data, Z):
    return data.T @ Z


def _dense(data):
    return np.concatenate([np.empty((0, data.shape[1]), data.dtype), *data.dense_blocks()])


def _stored(data):
    return data.X if isinstance(data, Matrix) else sparse.csr_array(_dense(data))


def _dual_gram(parts):
    return Matrix(np.concatenate(parts)).dual_gram()


class _Look(NamedTuple):
    """Numbers of rows of chunks, sums of columns, whether entries are taken; how many if sparse.

    Sums are NaN for columns with gaps, which dense chunks may have.
    """

    lengths: tuple
    sums: np.ndarray
    is_taken: bool
    stored: float


def _look(data):
    """A first look at a chunk."""
    stored = data.X.nnz if sparse.issparse(data.X) else np.inf  # type: ignore[attr-defined]
    with np.errstate(over="ignore", invalid="ignore"):
        sums = data.column_sums()
    # Sums of huge numbers may overflow where these are finite themselves.
    gaps, infinite = np.zeros((2, data.shape[1]), dtype=bool)
    if not np.isfinite(sums).all():
        for block in data.dense_blocks():
            gaps |= np.isnan(block).any(axis=0)
            infinite |= np.isinf(block).any(axis=0)
        sums = np.where(gaps, np.nan, np.where(np.isnan(sums), np.inf, sums))
    is_taken = not infinite.any() and not (gaps.any() and np.isfinite(stored))
    return _Look((data.shape[0],), sums, bool(is_taken), stored)


def _joined_looks(a, b):
    found = a.lengths + b.lengths, a.sums + b.sums, a.is_taken and b.is_taken
    return _Look(*found, a.stored + b.stored)


def from_dask(X) -> Distributed:
    """Rows of a dask array or data frame, which stay in its chunks, after one look at them.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)
        Chunks are arrays or sparse arrays; columns are put in one chunk.

    Returns
    -------
    X : Distributed
    """
    where, d, dtype = _table_of(X)
    layers = (partial(_leaf, dtype=dtype),)
    look = _run(_tree(where.calls(_look, layers), _joined_looks))[0]
    if not look.is_taken:
        raise ValueError(
            "X is a dask array with infinity, or with NaN in sparse chunks; accepted are finite "
            "numbers, and NaN for missing values in dense chunks"
        )
    n = sum(look.lengths)
    if n == 0:
        raise ValueError("X is a dask array without rows; accepted are arrays with at least one")
    where = where._replace(lengths=look.lengths).choose(np.arange(n))
    whole = where._replace(chosen=(None,) * len(where.chunks))
    is_sparse = look.stored < SPARSE_BELOW * n * d
    return Distributed(whole, layers, d, dtype, sparse=is_sparse, sums=look.sums)


# dask itself: what is known of its tables, its graphs, and results that are not computed.


def is_dask(X) -> bool:
    """Whether it is an array, a data frame or a series of dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def computed(values):
    """A vector that dask may hold, one number a row, in memory."""
    return values.compute() if is_dask(values) else values


def with_lengths(X) -> Any:
    """A dask array whose chunks have known sizes, of an array or a data frame."""
    if not hasattr(X, "rechunk"):
        return X.to_dask_array(lengths=True)
    return X.compute_chunk_sizes() if np.isnan(X.chunks[0]).any() else X


def _table_of(X) -> tuple[Rows, int, np.dtype]:
    """Chunks, columns and type of a dask array or data frame; nothing is computed."""
    if hasattr(X, "rechunk"):
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimensions; accepted is a dask array with 2")
        X = X if len(X.chunks[1]) == 1 else X.rechunk({1: -1})
        lengths, kinds = X.chunks[0], {"X": X.dtype}
    elif getattr(X, "ndim", 0) == 2:
        lengths, kinds = (np.nan,) * X.npartitions, dict(X.dtypes.items())
    else:
        raise TypeError(f"X is a dask {type(X).__name__}; accepted are dask arrays and data frames")
    for name, kind in kinds.items():
        if getattr(kind, "kind", "O") not in "biuf":
            raise TypeError(f"{name} has dtype {kind}; accepted in a dask X are numbers")
    single = all(kind == np.float32 for kind in kinds.values())
    chunks = tuple(np.ravel(X.to_delayed()))
    where = Rows(chunks, lengths, (None,) * len(chunks))
    return where, X.shape[1], np.dtype(np.float32 if single else np.float64)


def _delayed(value):
    """A node of a graph, which has it once for all tasks."""
    from dask import delayed

    return delayed(value, pure=False, traverse=False)


def _tree(tasks, join):
    """The task that joins what all of them return, a few at a time."""
    while len(tasks) > 1:
        groups = (tasks[k : k + JOINED] for k in range(0, len(tasks), JOINED))
        tasks = [_delayed(reduce)(join, group) for group in groups]
    return tasks[0]


def _run(*tasks) -> tuple:
    """What the tasks return, by the scheduler that is set: threads, or the client's cluster.

    Tasks run side by side, so that none of them may have threads of its own. That a graph is large
    is no news where a model sends something of every row, which must not be lost with a worker.
    """
    import dask

    with no_more_threads(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return dask.compute(*tasks)


def lazily(function: Callable, X, *of_rows) -> Any:
    """``function(rows, *of_rows)`` of every chunk as dask arrays, not computed.

    The form, one array or a tuple of them, is that of what it returns for one row of zeros.
    """
    where, d, dtype = _table_of(X)
    if of_rows and np.isnan(where.lengths).any():
        raise ValueError(
            "X has chunks of unknown sizes, and other values of its rows are given; accepted is "
            "an X after X.compute_chunk_sizes(), or to_dask_array(lengths=True) of a data frame"
        )
    row = np.zeros((1, d), dtype=dtype)
    if hasattr(X, "columns"):
        row = type(X.dtypes.to_frame())(row, columns=list(X.columns))
    example = _plain(function(row, *(values[:1] for values in of_rows)))
    common = _delayed((function, [part[:0] for part in example.parts]))
    cut = zip(*map(where.cut, of_rows), strict=True) if of_rows else repeat(())
    tasks = [_delayed(_of_chunk)(*own, common) for own in zip(where.chunks, cut, strict=False)]
    return example.form(
        [_lazy_array(tasks, k, part, where) for k, part in enumerate(example.parts)]
    )


class _Plain(NamedTuple):
    """Arrays, and what makes the result of them that had them."""

    parts: list
    form: Callable


def _plain(result) -> _Plain:
    """A result taken apart: one array, or a tuple of them, named or not."""
    if not isinstance(result, tuple):
        return _Plain([np.asarray(result)], lambda parts: parts[0])
    form = getattr(type(result), "_make", tuple)
    return _Plain([np.asarray(part) for part in result], form)


def _of_chunk(chunk, of_rows, common):
    """Run where the chunk is: the arrays that the function returns."""
    function, nothing = common
    return _plain(function(chunk, *of_rows)).parts if chunk.shape[0] else nothing


def _lazy_array(tasks, k, example, where):
    """The k-th array that every task returns, stacked, not computed."""
    from dask.array import Array
    from dask.highlevelgraph import HighLevelGraph

    name = f"gnomon-{uuid4().hex}"
    zeros = (0,) * (example.ndim - 1)
    graph: Any = {(name, i, *zeros): (getitem, task.key, k) for i, task in enumerate(tasks)}
    chunks = (where.lengths, *((size,) for size in example.shape[1:]))
    whole = HighLevelGraph.from_collections(name, graph, dependencies=tasks)
    return Array(whole, name, chunks, meta=np.empty((0,) * example.ndim, dtype=example.dtype))
