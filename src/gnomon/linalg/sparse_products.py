"""Products of a sparse array with thin dense ones, its rows shared between threads.

A row of the product is a sum over the entries of a row of the array, in their order, so that
shares of rows have the digits of the whole. An array that is stored by columns has no such rows:
once it has been asked for a few products it is stored by rows too, which adds up in that same
order, for as long as it is kept.
"""

from itertools import pairwise

import numpy as np
from scipy import sparse

from gnomon.linalg.threads import in_order, n_threads

# Entries of a share of rows: a product of these takes longer than handing it to a thread.
SHARE = 2**17
# Products after which rows are stored too, as that takes as long as some products, and entries
# up to which they are: of more the copy would be some gigabytes.
SOON, MOST_COPIED = 2, 2**27
# Columns from which a product is shared: with fewer it waits for memory, which threads share.
LEAST_COLUMNS = 4


class SparseProducts:
    """The products M B of a sparse array M that is stored by rows or by columns."""

    def __init__(self, M):
        self._M, self._asked, self._parts = M, 0, None

    def product(self, B) -> np.ndarray:
        """M B for an array B (columns of M, k)."""
        shared = self._M.nnz > SHARE and B.shape[1] >= LEAST_COLUMNS and n_threads() > 1
        parts = self._shares() if shared else None
        if parts is None:
            return self._M @ B
        out = np.empty((self._M.shape[0], B.shape[1]), dtype=B.dtype)

        def place(part):
            out[part[0]] = part[1] @ B

        for _ in in_order(place, parts, self._M.nnz * B.shape[1]):
            pass
        return out

    def _shares(self):
        """Shares of rows, each with its slice; None where there are none as yet."""
        self._asked += 1
        by_rows = self._M.format == "csr"
        ready = by_rows or (self._asked > SOON and self._M.nnz <= MOST_COPIED)
        if self._parts is None and ready:
            self._parts = _shared(self._M if by_rows else self._M.tocsr())
        return self._parts


def _shared(M):
    """Runs of rows of about as many entries, without a copy of these."""
    edges = np.searchsorted(M.indptr, np.arange(0, M.nnz, SHARE))
    edges = np.unique(np.r_[0, edges, M.shape[0]])
    return [(slice(a, b), _rows(M, a, b)) for a, b in pairwise(edges)]


def _rows(M, start, stop):
    first, last = M.indptr[start], M.indptr[stop]
    entries = M.data[first:last], M.indices[first:last], M.indptr[start : stop + 1] - first
    return sparse.csr_array(entries, shape=(stop - start, M.shape[1]))
