"""Rows stacked from parts that may not fit in memory together.

A memory map is an array like any other and needs nothing of this.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import pairwise
from operator import add, methodcaller
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.linalg.data import Centered, Data, Matrix, larger, placed, squared_deviations

# Entries of rows in blocks that are read once and kept, for fits that read them many times: 128 MB
# in double precision, which leaves as much again for what a fit holds beside them.
KEPT_ENTRIES = 2**24


class Blocks(Data):
    """Rows of several `Data`, stacked."""

    def __init__(self, parts: Iterable[Data]):
        parts = list(parts)
        if not parts:
            raise ValueError("parts is empty; Blocks needs at least one block of rows")
        # A block without rows has nothing to say, but where there is no other.
        self.parts: Sequence[Data] = [part for part in parts if part.shape[0]] or parts[:1]
        widths = {part.shape[1] for part in parts}
        if len(widths) > 1:
            raise ValueError(f"parts have {sorted(widths)} columns; all must have the same")
        dtype = np.result_type(*[part.dtype for part in parts])
        self._starts = np.cumsum([0] + [part.shape[0] for part in self.parts])
        super().__init__(
            dtype,
            (int(self._starts[-1]), widths.pop()),
            sum(part.n_samples for part in self.parts),
        )

    @property
    def is_sparse(self):
        return all(part.is_sparse for part in self.parts)

    @property
    def has_gaps(self):
        return any(part.has_gaps for part in self.parts)

    @property
    def squared_norm(self):
        return float(sum(part.squared_norm for part in self.parts))

    def row_squared_norms(self):
        return np.concatenate([part.row_squared_norms() for part in self.parts])

    def column_sums(self):
        return sum(part.column_sums() for part in self.parts)

    def less_mean(self, mean):
        return Blocks([Centered(part, mean) for part in self.parts])

    def gram(self):
        return sum(part.gram() for part in self.parts)

    def dense_blocks(self):
        for part in self.parts:
            yield from part.dense_blocks()

    def each(self):
        """The blocks, one after another, as arrays or sparse arrays."""
        for part in self.parts:
            yield _rows_of(part)

    def as_float32(self):
        return Blocks([part.as_float32() for part in self.parts])

    def rows(self, mask):
        mask = np.asarray(mask)
        if mask.dtype != bool:
            if np.any(np.diff(mask) < 1):
                raise ValueError("an index into Blocks must be sorted, each row once")
            mask = np.isin(np.arange(self.shape[0]), mask)
        cut = np.split(mask, self._starts[1:-1])
        parts = [part.rows(m) for part, m in zip(self.parts, cut, strict=True) if m.any()]
        return Blocks(parts or [self.parts[0].rows(cut[0])])

    def fetched(self):
        return Blocks([part.fetched() for part in self.parts])

    def kept_in_memory(self):
        if self.shape[0] * self.shape[1] > KEPT_ENTRIES:
            return self
        parts = [_rows_of(part) for part in self.parts]
        if sparse.issparse(parts[0]):
            stacked = sparse.vstack(parts, format="csr")
            return Matrix(stacked.astype(self.dtype, copy=False))
        return Matrix(_stacked(parts, self.shape, self.dtype))

    def reduced(self, function, *of_rows, join=add):
        # A part is read once, however often the function goes over it.
        found = (
            part.fetched().reduced(
                function, *(None if of is None else of[start:stop] for of in of_rows), join=join
            )
            for part, (start, stop) in zip(self.parts, pairwise(self._starts), strict=True)
        )
        return reduce(join, found)

    def normal_product(self, B):
        return self.reduced(methodcaller("normal_product", B))

    def _matmat(self, B):
        return np.concatenate([part @ B for part in self.parts])

    def _rmatmat(self, Z):
        cut = np.split(Z, self._starts[1:-1])
        return sum(part.T @ own for part, own in zip(self.parts, cut, strict=True))


def _stacked(parts, shape, dtype):
    """Dense and sparse parts as one dense array."""
    whole, stop = np.empty(shape, dtype=dtype), 0
    for part in parts:
        start, stop = stop, stop + part.shape[0]
        dense = part.toarray() if sparse.issparse(part) else part  # type: ignore[attr-defined]
        whole[start:stop] = dense
    return whole


def _rows_of(part):
    """The rows of a part, which are in memory or loaded."""
    return part.leaf.X if isinstance(part, Loaded) else part.X


class Facts(NamedTuple):
    """What is known of rows since they were first read; sums are None where they are not known.

    Whether NaN marks gaps in them, whether they are sparse, sums of their columns (d,), of squares.
    """

    has_gaps: bool = False
    is_sparse: bool = False
    sums: np.ndarray | None = None
    squares: float | None = None


class Loaded(Data):
    """Rows that a function returns each time they are needed; one block is in memory at a time."""

    def __init__(self, load: Callable[[], np.ndarray], shape, dtype, facts: Facts | None = None):
        super().__init__(dtype, shape)
        self.load, self.facts = load, Facts() if facts is None else facts

    @property
    def has_gaps(self):
        return self.facts.has_gaps

    @property
    def is_sparse(self):
        return self.facts.is_sparse

    @property
    def leaf(self) -> Matrix:
        """The rows themselves."""
        return Matrix(self.load().astype(self.dtype, copy=False))

    @property
    def squared_norm(self):
        known = self.facts.squares
        return self.leaf.squared_norm if known is None else known

    def row_squared_norms(self):
        return self.leaf.row_squared_norms()

    def column_sums(self):
        known = self.facts.sums
        return self.leaf.column_sums() if known is None else known

    def stored_deviations(self, mean):
        """Sum of (x - mu)^2 over all entries of sparse rows, at the cost of the stored ones."""
        sums, squares = self.facts.sums, self.facts.squares
        known = None
        if sums is not None and squares is not None:
            known = squared_deviations(self.shape[0], squares, sums, mean)
        return self.leaf.stored_deviations(mean) if known is None else known

    def gram(self):
        return self.leaf.gram()

    def as_float32(self):
        if not self.is_sparse or self.dtype == np.float32:
            return self
        return Loaded(self.load, self.shape, np.float32, self.facts)

    def dense_blocks(self):
        yield from self.leaf.dense_blocks()

    def fetched(self):
        return self.leaf

    def rows(self, mask):
        mask = np.asarray(mask)
        n = int(mask.sum()) if mask.dtype == bool else len(mask)
        facts = Facts(self.has_gaps, self.is_sparse)
        return Loaded(lambda: self.load()[mask], (n, self.shape[1]), self.dtype, facts)

    def _matmat(self, B):
        return self.leaf @ B

    def _rmatmat(self, Z):
        return self.leaf.T @ Z


class Made(Data):
    """Rows that a function makes of others, of the same width, anew each time they are needed."""

    def __init__(self, X: Data, function: Callable[[np.ndarray], np.ndarray], at_once: int):
        super().__init__(X.dtype, X.shape, X.n_samples)
        self.X, self.function, self.at_once = X, function, at_once

    def dense_blocks(self):
        for block in larger(self.X.dense_blocks(), self.at_once):
            yield self.function(block).astype(self.dtype, copy=False)

    def rows(self, mask):
        return Made(self.X.rows(mask), self.function, self.at_once)

    def fetched(self):
        return Matrix(self.as_array())

    def kept_in_memory(self):
        return self.fetched() if self.shape[0] * self.shape[1] <= KEPT_ENTRIES else self

    def _matmat(self, B):
        B = B.astype(self.dtype, copy=False)
        return np.concatenate([block @ B for block in self.dense_blocks()])

    def _rmatmat(self, Z):
        Z = Z.astype(self.dtype, copy=False)
        return sum(block.T @ Z[rows] for rows, block in placed(self.dense_blocks()))


def from_loaders(loaders: Iterable[Callable[[], np.ndarray]]) -> Blocks:
    """Rows that several functions return, stacked; each is called once to learn its shape.

    Parameters
    ----------
    loaders : iterable of callable
        Functions without arguments that return arrays or sparse arrays with the same columns,
        such as readers of the parts of a file. They are called again for every pass, and must
        return the same numbers each time; NaN marks missing values in arrays.

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


def _loaded(k, load):
    if not callable(load):
        raise TypeError(f"loaders[{k}] is {type(load).__name__}; accepted are functions")
    first = load()
    is_table = isinstance(first, np.ndarray) or sparse.issparse(first)
    if not is_table:
        raise TypeError(
            f"loaders[{k}] returns {type(first).__name__}; accepted are arrays and sparse arrays"
        )
    if first.ndim != 2:
        raise ValueError(f"loaders[{k}] returns {first.ndim} dimensions; accepted are 2")
    dtype = np.float32 if first.dtype == np.float32 else np.float64
    load = _Loader(k, load, first.shape, _checksum(first))
    return Loaded(load, first.shape, dtype, _facts(k, first.astype(dtype, copy=False)))


def _facts(k, rows):
    """What fits ask of all rows before anything else, so that it costs them no read."""
    data, has_gaps = Matrix(rows), _gaps_of(k, rows)
    if has_gaps:
        return Facts(has_gaps=True)
    with np.errstate(over="ignore"):
        return Facts(False, data.is_sparse, data.column_sums(), data.squared_norm)


def _gaps_of(k, rows):
    """Whether rows have missing values; infinity and NaN among stored entries are refused."""
    with np.errstate(all="ignore"):
        if np.isfinite(float(rows.sum())):
            return False
    entries = rows.data if sparse.issparse(rows) else rows  # type: ignore[attr-defined]
    if np.isinf(entries).any() or sparse.issparse(rows):
        raise ValueError(
            f"loaders[{k}] returns NaN in a sparse array or infinity; accepted are finite numbers, "
            "and NaN for missing values in arrays"
        )
    return True


class _Loader:
    """Calls a loader, and refuses other rows than it returned at first."""

    def __init__(self, k, load, shape, checksum):
        self.k, self.load, self.shape, self.checksum = k, load, shape, checksum

    def __call__(self):
        rows = self.load()
        if np.shape(rows) != self.shape or _checksum(rows) != self.checksum:
            raise ValueError(
                f"loaders[{self.k}] returns other rows than at its first call; accepted are "
                "functions that return the same numbers each time"
            )
        return rows


def _checksum(rows) -> int:
    """A number that other entries, or the same in another order, change."""
    if not sparse.issparse(rows):
        return zlib.crc32(np.ascontiguousarray(rows).data)
    rows, total = sparse.csr_array(rows), 0  # type: ignore[call-overload]
    for part in (rows.indptr, rows.indices, rows.data):
        total = zlib.crc32(part.data, total)
    return total
