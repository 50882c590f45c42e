"""Products of a sparse array with thin dense ones, its rows shared between threads.

A row of M B is a sum over the entries of a row of M, in their order, so that shares of rows have
the digits of the whole. M' Z is a sum over rows: of a thin Z it is taken over parts of these that
are the same for any number of threads, and added up in their order; of a wider one threads share
the columns, few at a time, whose sums stay in the cache.
"""

from itertools import pairwise

import numpy as np
from scipy import sparse

from gnomon.linalg.threads import in_order

# Parts of the rows: enough for several threads when another program has one of their cores.
PARTS = 8
# Parts whose products are added up, an array of the size of the result each: fewer (18,820 texts,
# two threads: with 8 sums 5.2 ms, with 4 4.5; one thread 5.9).
SUMS = 4
# Entries from which rows are parted: a product of fewer is done as soon as threads are awake.
SHARED_FROM = 2**18
# Entries that a part has for every column in the mean: its sums are few beside its products.
LEAST_ENTRIES = 4
# Columns from which a product is shared: with fewer it waits for memory, which threads share.
LEAST_COLUMNS = 4
# Bytes of a row of Z from which columns are shared, and of the columns that are taken at a time
# (18,820 texts, two threads: 30 columns in double precision 11 ms to 7, 150 columns 82 to 36).
WIDE_ROW, NARROW_ROW = 192, 128
# Columns that a product takes at a time: in single precision 18,820 texts times 19 columns and back
# take 17.6 ms, times 20 columns 13.6.
LANES = 4


class SparseProducts:
    """The products M B and M' Z of an array that is stored by rows, or by columns for M'."""

    def __init__(self, X):
        self._by_rows = X.format == "csr"
        self._whole = X if self._by_rows else X.T
        self._parts = _parted(self._whole, PARTS, _rows)
        self._summands = _parted(self._whole, SUMS, _rows_as_columns)

    def product(self, B) -> np.ndarray:
        """X B for an array B (columns of X, k)."""
        return self._stacked(B) if self._by_rows else self._summed(B)

    def transposed_product(self, Z) -> np.ndarray:
        """X' Z for an array Z (rows of X, k)."""
        return self._summed(Z) if self._by_rows else self._stacked(Z)

    def _stacked(self, B):
        if len(self._parts) == 1 or B.shape[1] < LEAST_COLUMNS:
            return self._whole @ B
        out = np.empty((self._whole.shape[0], B.shape[1]), dtype=B.dtype)

        def place(part):
            out[part[0]] = part[1] @ B

        for _ in in_order(place, self._parts, self._whole.nnz * B.shape[1]):
            pass
        return out

    def _summed(self, Z):
        if len(self._summands) > 1 and Z.shape[1] * Z.itemsize >= WIDE_ROW:
            return self._by_columns(Z)
        wide = self._whole.nnz < SUMS * LEAST_ENTRIES * self._whole.shape[1]
        if len(self._summands) == 1 or wide or Z.shape[1] < LEAST_COLUMNS:
            return self._whole.T @ Z
        sums = in_order(
            lambda part: part[1] @ Z[part[0]], self._summands, self._whole.nnz * Z.shape[1]
        )
        total = next(sums)
        for other in sums:
            total += other
        return total

    def _by_columns(self, Z):
        out = np.empty((self._whole.shape[1], Z.shape[1]), dtype=Z.dtype)

        def place(columns):
            out[:, columns] = self._whole.T @ np.ascontiguousarray(Z[:, columns])

        groups = _narrow(Z.shape[1], NARROW_ROW // Z.itemsize)
        for _ in in_order(place, groups, self._whole.nnz * Z.shape[1]):
            pass
        return out


def _narrow(count, most):
    """Slices of at most so many columns, about as many in each and in whole lanes."""
    width = LANES * -(-count // (LANES * -(-count // most)))
    return [slice(start, start + width) for start in range(0, count, width)]


def _parted(M, count, part_of):
    """Runs of rows of about as many entries, without a copy of these."""
    count = count if M.nnz >= SHARED_FROM else 1
    edges = np.searchsorted(M.indptr, np.linspace(0, M.nnz, count + 1)[1:-1])
    edges = np.unique(np.r_[0, edges, M.shape[0]])
    return [(slice(a, b), part_of(M, a, b)) for a, b in pairwise(edges)]


def _rows(M, start, stop):
    return _filled(sparse.csr_array((stop - start, M.shape[1]), dtype=M.dtype), M, start, stop)


def _rows_as_columns(M, start, stop):
    return _filled(sparse.csc_array((M.shape[1], stop - start), dtype=M.dtype), M, start, stop)


def _filled(part, M, start, stop):
    """Rows of M in an empty array: its constructor would copy them, being views of larger ones."""
    first, last = M.indptr[start], M.indptr[stop]
    part.data, part.indices = M.data[first:last], M.indices[first:last]
    part.indptr = M.indptr[start : stop + 1] - first
    return part
