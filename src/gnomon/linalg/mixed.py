"""Rows of the data mixed over links, R X, and two data sets side by side; never formed."""

from functools import reduce

import numpy as np

from gnomon.linalg.data import BLOCK_ENTRIES, Centered, Data, Matrix, row_norms, row_slices, slices

# An entry of a product of two sparse arrays costs about as much as this many of a dense one.
SPARSE_PRODUCT = 20
# Products beyond which a norm is added up in single precision: its errors are then many, small and
# of either sign, and cancel.
MANY_PRODUCTS = 1e8


class Mixed(Data):
    """R X for a sparse mixing R (m, n) of rows, never formed; n_samples stays that of X."""

    def __init__(self, R, X: Data):
        super().__init__(X.dtype, (R.shape[0], X.shape[1]), X.n_samples)
        self.R, self.X = R, X
        # Products by rows are twice as fast as the scattered ones of a transposed view.
        self._transposed = R.T.tocsr()

    @property
    def is_sparse(self):
        return self.X.is_sparse

    def row_squared_norms(self):
        mixings, rows = [self.R], self.X
        while isinstance(rows, Mixed):
            mixings, rows = [*mixings, rows.R], rows.X
        content, mean = rows, np.zeros(self.n_features)
        if isinstance(rows, Centered):
            content, mean = rows.X, rows.mean.astype(float)
        if not (self.is_sparse and isinstance(content, Matrix)):
            return sum(row_norms(columns) for _, columns in self._columns())
        if len(mixings) > 1:
            return _norms_by_columns(mixings, content.X.tocsc(), mean)
        return _norms_of_sparse(self.R.tocsr(), content.X, mean)

    def gram(self):
        # Rows that are mixed twice reach all others by way of a hub, and R R is dense.
        if not isinstance(self.X, Mixed):
            return super().gram()
        total = np.empty((self.n_features, self.n_features))
        for which, columns in self._columns():
            total[:, which] = self._rmatmat(columns)
        return (total + total.T) / 2

    def _columns(self):
        """Some columns of R X at a time, by products with an identity, so that it is not formed."""
        d = self.n_features
        for which in slices(d, max(1, 8 * BLOCK_ENTRIES // max(self.shape))):
            size = which.stop - which.start
            yield which, self._matmat(np.eye(d, size, -which.start, dtype=self.dtype))

    def dense_blocks(self):
        R = self.R.tocsr()
        for rows in row_slices(self.shape):
            part = R[rows]
            used = _columns_used(part)
            if len(used):
                yield part[:, used] @ np.concatenate(list(self.X.rows(used).dense_blocks()))
            else:
                yield np.zeros((part.shape[0], self.n_features), dtype=self.dtype)

    def rows(self, mask):
        R, X = self.R.tocsr()[mask], self.X
        if not isinstance(X, Mixed):
            return Mixed(R, X)
        # Rows that reach few others are mixed at once, which touches these alone.
        reached = np.diff(X.R.tocsr().indptr)[R.indices].sum()
        return Mixed(R @ X.R, X.X) if reached <= X.R.nnz else Mixed(R, X)

    def as_float32(self):
        X = self.X.as_float32()
        return self if X is self.X else Mixed(self.R.astype(np.float32), X)

    def _matmat(self, B):
        return self.R @ self.X._matmat(B)

    def _rmatmat(self, Z):
        return self.X._rmatmat(self._transposed @ Z)


class SideBySide(Data):
    """[X, Y] of the same rows, never formed."""

    def __init__(self, X: Data, Y: Data):
        super().__init__(X.dtype, (X.shape[0], X.n_features + Y.n_features), X.n_samples)
        self.X, self.Y = X, Y

    @property
    def is_sparse(self):
        return self.X.is_sparse and self.Y.is_sparse

    def row_squared_norms(self):
        return self.X.row_squared_norms() + self.Y.row_squared_norms()

    def dense_blocks(self):
        for rows in row_slices(self.shape):
            which = np.arange(self.shape[0])[rows]
            parts = (list(part.rows(which).dense_blocks()) for part in (self.X, self.Y))
            yield np.hstack([np.concatenate(blocks) for blocks in parts])

    def rows(self, mask):
        return SideBySide(self.X.rows(mask), self.Y.rows(mask))

    def _matmat(self, B):
        d = self.X.n_features
        return self.X._matmat(B[:d]) + self.Y._matmat(B[d:])

    def _rmatmat(self, Z):
        return np.concatenate([self.X._rmatmat(Z), self.Y._rmatmat(Z)])


def _columns_used(R):
    used = np.zeros(R.shape[1], dtype=bool)
    used[R.indices] = True
    return np.flatnonzero(used)


def _norms_of_sparse(R, X, mean):
    """Squared lengths of the rows of R (X - 1 mean') by the cheaper way."""
    if 4 * R.shape[0] < R.shape[1]:
        used = _columns_used(R)
        R, X = R[:, used], X.tocsr()[used]
    if X.shape[1] * X.shape[0] < SPARSE_PRODUCT * X.nnz:
        return _norms_by_columns([R], X.tocsc(), mean)
    return _norms_by_rows(R, X.tocsr(), mean)


def _norms_by_columns(mixings, X, mean):
    """The same for a product of several R, the last one first, from dense runs of columns of X."""
    products = X.shape[1] * sum(R.nnz for R in mixings)
    dtype = np.float32 if products > MANY_PRODUCTS else np.float64
    mixings, norms = [R.astype(dtype) for R in mixings], np.zeros(mixings[0].shape[0])
    width = max(1, 64 * BLOCK_ENTRIES // X.shape[0])
    for start in range(0, X.shape[1], width):
        columns = slice(start, start + width)
        block = (X[:, columns].toarray() - mean[columns]).astype(dtype, copy=False)
        norms += row_norms(reduce(lambda rows, R: R @ rows, reversed(mixings), block))
    return norms


def _norms_by_rows(R, X, mean):
    """The same from sparse products of runs of rows: |R x - (R 1) mean|^2, expanded."""
    norms = []
    for rows in row_slices((R.shape[0], 1)):
        part, ones = R[rows] @ X, np.asarray(R[rows].sum(axis=1), dtype=float).ravel()
        squares = np.concatenate([[0.0], np.cumsum(part.data.astype(float) ** 2)])
        stored = squares[part.indptr[1:]] - squares[part.indptr[:-1]]
        norms.append(stored + ones * (ones * (mean @ mean) - 2 * (part @ mean)))
    return np.maximum(np.concatenate(norms), 0.0)
