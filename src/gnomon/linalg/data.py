"""The data matrix behind its products.

A model asks of its data ``X @ B``, ``X.T @ Z``, ``X.squared_norm`` and the like, and never
sees how the rows are stored. `Data` is SciPy's `LinearOperator` with these further words.

    Matrix      an array or a sparse array        the leaf
    Centered    X - 1 mu'                         sparse stays sparse, dense is not copied
    Scaled      X diag(s)                         columns in units of their own
    Weighted    diag(w)^(1/2) X                   weights that count as repeated rows

Rows mixed over links are in `mixed`, rows stacked from parts or made of others in `blocks`,
rows on a cluster in `distributed`, arrays of other libraries in `foreign`. Layers are asked for
by `less_mean`, `scaled` and `weighted`, so that rows that are elsewhere have them laid where
they are.
An operator multiplies in its own dtype and adds up in float64 what it returns as one number.
"""

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import get_blas_funcs
from scipy.sparse.linalg import LinearOperator

from gnomon.linalg.sparse_products import SparseProducts
from gnomon.linalg.threads import in_order

# A block of rows is copied to be centred: small enough for the cache, large enough for BLAS.
BLOCK_ENTRIES = 2**17
# A run of rows is what a thread goes over at a time: some blocks, of which each takes little time.
RUN_ENTRIES = 2**21
# The number of runs is a multiple of this, whatever the number of threads.
EVENLY = 4
# Above this share of stored entries a sparse product is no cheaper than a dense one.
SPARSE_BELOW = 0.25
# Energy of the mean over that of the spread up to which it may be subtracted afterwards.
SAFE_SHIFT = 100.0


class Data(LinearOperator):
    """A row per sample and a column per feature, known by its products."""

    # The hooks of LinearOperator, which the types of SciPy do not know.
    _matmat: Any
    _rmatmat: Any
    # What rows count, None where all count as one.
    weights: np.ndarray | None = None

    def __init__(self, dtype, shape, n_samples=None):
        super().__init__(np.dtype(dtype), shape)  # type: ignore[call-arg]
        self.n_samples = shape[0] if n_samples is None else n_samples

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether a product costs less than its dense shape says."""
        return False

    @property
    def has_gaps(self) -> bool:
        """Whether NaN marks missing values in the rows."""
        return False

    @property
    def squared_norm(self) -> float:
        """Sum of all squared entries, in float64."""
        return float(self.row_squared_norms().sum())

    def row_squared_norms(self) -> np.ndarray:
        """Squared length of every row (n,), in float64."""
        return np.concatenate([row_norms(block) for block in self.dense_blocks()])

    def column_sums(self) -> np.ndarray:
        """Sum of every column (d,), in float64."""
        return sum(block.sum(axis=0, dtype=float) for block in self.dense_blocks())

    def column_means(self) -> np.ndarray:
        """Means of the columns in float64, weighted where the rows are."""
        return self.column_sums() / self.n_samples

    def less_mean(self, mean) -> "Data":
        """X - 1 mean', not formed, below the weights or blocks that X may have."""
        return Centered(self, mean)

    def scaled(self, factors) -> "Data":
        """X diag(factors), not formed; a factor of zero leaves its column out."""
        return Scaled(self, factors)

    def weighted(self, weights) -> "Data":
        """Rows that count as often as their weights say."""
        return Weighted(self, weights)

    @property
    def unweighted(self) -> "Data":
        """The rows without their weights."""
        return self

    def reduced(self, function: Callable, *of_rows, join: Callable = add) -> Any:
        """What ``function(rows, *of_rows)`` returns, for parts of the rows and then joined.

        It must not matter how rows are parted: threads share them, rows elsewhere send their
        small results alone.
        """

        def of_run(run):
            return function(run[1], *(None if of is None else of[run[0]] for of in of_rows))

        return reduce(join, _over_runs(of_run, self, np.inf))

    def mapped(self, function: Callable[["Data"], np.ndarray], n_features: int) -> "Data":
        """Rows that a function makes of these, where these are, not formed; in float64."""
        raise TypeError(f"{type(self).__name__} has its rows here")

    @property
    def is_elsewhere(self) -> bool:
        """Whether what there is one of for every row had better stay where the rows are."""
        return False

    def normal_product(self, B) -> np.ndarray:
        """X'(X B) (d, k), in one pass where rows are elsewhere."""
        # The bare products: what SciPy wraps around them costs more than small ones.
        return self.reduced(lambda X: X._rmatmat(X._matmat(B)))

    def gram(self) -> np.ndarray:
        """X'X (d, d) in one pass over the rows."""
        n, d = self.shape
        return _sum(_over_runs(_run_gram, self, n * d * d), (d, d), float)

    def dual_gram(self) -> np.ndarray:
        """X X' (n, n); of sparse rows by what is stored, which are never all dense at once."""
        if self.is_sparse:
            short = _short_dual_gram(self) if self.dtype == np.float64 else None
            return self._sliced_dual_gram() if short is None else short
        blocks = list(self.dense_blocks())
        rows = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return (rows @ rows.T).astype(float)

    def _sliced_dual_gram(self):
        n = self.shape[0]
        K = np.empty((n, n))
        for rows in row_slices(self.shape):
            K[:, rows] = self @ (self.T @ np.eye(n, rows.stop - rows.start, -rows.start))
        return K

    def runs(self) -> list[tuple[slice, "Data"]]:
        """Rows that threads may go over at the same time, each with its slice; else all as one."""
        return [(slice(0, self.shape[0]), self)]

    def dense_blocks(self) -> Iterator[np.ndarray]:
        """Runs of rows as arrays, each small; together all rows in order."""
        raise TypeError(f"{type(self).__name__} has no rows of its own to iterate over")

    def large_blocks(self, least: int) -> Iterator[np.ndarray]:
        """The same rows in runs of at least so many, but for the last."""
        return larger(self.dense_blocks(), least)

    def as_float32(self) -> "Data":
        """The same data in single precision, if that costs a copy of stored values at most."""
        return self

    def kept_in_memory(self) -> "Data":
        """The same rows in memory, where they are read from elsewhere and few enough to be kept."""
        return self

    def fetched(self) -> "Data":
        """The same rows, read once and for all, whatever their number."""
        return self

    def rows(self, mask) -> "Data":
        """The rows that a boolean mask or an index array selects."""
        raise TypeError(f"{type(self).__name__} has no rows of its own to select")

    def as_array(self) -> np.ndarray:
        """All rows as one array, in one pass."""
        whole = np.empty(self.shape, dtype=self.dtype)
        for rows, block in placed(self.dense_blocks()):
            whole[rows] = block
        return whole

    def _matvec(self, b):
        return self._matmat(np.reshape(b, (-1, 1))).ravel()

    def _rmatvec(self, z):
        return self._rmatmat(np.reshape(z, (-1, 1))).ravel()

    def _transpose(self):
        # The data are real; SciPy's own transpose would copy twice to conjugate.
        return self.adjoint()


class Matrix(Data):
    """An array or a sparse array; a sparse array that is nearly full is worked on in blocks."""

    def __init__(self, X):
        super().__init__(X.dtype, X.shape)
        self._stored_sparse = sparse.issparse(X)
        if self._stored_sparse:
            X = X if X.format in ("csr", "csc") else X.tocsr()
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            self._products = SparseProducts(X)
        self.X = X
        # Asked for by the mean and again by moments: a pass over the rows.
        self._sums: np.ndarray | None = None

    @property
    def is_sparse(self):
        return self._stored_sparse and self.X.nnz < SPARSE_BELOW * self.shape[0] * self.shape[1]

    @property
    def has_gaps(self):
        return not self._stored_sparse and _are_gaps(self.X, self.column_sums())

    @property
    def squared_norm(self):
        return _squared_sum(self.X.data if self._stored_sparse else self.X)

    def row_squared_norms(self):
        if self._stored_sparse:
            return np.asarray(self.X.power(2).sum(axis=1, dtype=float)).ravel()
        return super().row_squared_norms()

    def column_sums(self):
        if self._sums is None and self._stored_sparse:
            self._sums = np.asarray(self.X.sum(axis=0, dtype=float)).ravel()
        elif self._sums is None:
            self._sums = column_sums(self.X)
        return self._sums.copy()

    def stored_deviations(self, mean) -> float:
        """Sum of (x - mu)^2 over all entries of a sparse array, at the cost of the stored ones."""
        known = squared_deviations(self.shape[0], self.squared_norm, self.column_sums(), mean)
        return self._deviations_by_entry(mean) if known is None else known

    def _deviations_by_entry(self, mean):
        columns = self.X.indices
        if self.X.format == "csc":
            columns = np.repeat(np.arange(self.shape[1]), np.diff(self.X.indptr))
        counts = np.bincount(columns, minlength=self.shape[1])

        def squares(part):
            return _squared_sum(self.X.data[part] - mean[columns[part]])

        # Fetching means takes a thread longer than the products that its work is counted by.
        stored = sum(in_order(squares, list(slices(self.X.nnz)), 8 * self.X.nnz))
        return stored + float((self.shape[0] - counts) @ mean**2)

    def as_float32(self):
        if not self._stored_sparse or self.dtype == np.float32:
            return self
        parts = (self.X.data.astype(np.float32), self.X.indices, self.X.indptr)
        return Matrix(type(self.X)(parts, shape=self.shape))

    def runs(self):
        if self._stored_sparse:
            return super().runs()
        return [(rows, self.rows(rows)) for rows in run_slices(self.shape)]

    def dense_blocks(self):
        X = self.X.tocsr() if self._stored_sparse else self.X
        for rows in row_slices(self.shape):
            yield X[rows].toarray() if self._stored_sparse else X[rows]

    def large_blocks(self, least):
        if self._stored_sparse:
            return super().large_blocks(least)
        return (self.X[rows] for rows in slices(self.shape[0], least))

    def gram(self):
        if self.is_sparse:
            return np.asarray((self.X.T @ self.X).toarray(), dtype=float)
        if self._stored_sparse:
            return super().gram()
        # By runs: BLAS's own threads share a tall product badly (200,000 x 200: .12 s to .08).
        n, d = self.shape
        return _sum(_over_runs(lambda run: run[1].X.T @ run[1].X, self, n * d * d), (d, d), float)

    def rows(self, mask):
        return Matrix((self.X.tocsr() if self._stored_sparse else self.X)[mask])

    def _matmat(self, B):
        B = B.astype(self.dtype, copy=False)
        return self._products.product(B) if self._stored_sparse else _stack_products(self, B)

    def _rmatmat(self, Z):
        Z = Z.astype(self.dtype, copy=False)
        if self._stored_sparse:
            return self._products.transposed_product(Z)
        return _add_products(self, Z)


class Centered(Data):
    """X - 1 mu', never formed: sparse X stays sparse, dense X is centred a block at a time.

    Centring before the product keeps the digits that ``X @ B - mu @ B`` would cancel
    when the mean is large against the spread.
    """

    def __init__(self, X: Data, mean):
        super().__init__(X.dtype, X.shape, X.n_samples)
        self.X, self.mean = X, np.asarray(mean, dtype=X.dtype)

    @property
    def is_sparse(self):
        return self.X.is_sparse

    @property
    def squared_norm(self):
        if self.is_sparse and hasattr(self.X, "stored_deviations"):
            return self.X.stored_deviations(self.mean.astype(float))
        return super().squared_norm

    def row_squared_norms(self):
        if not self.is_sparse:
            return super().row_squared_norms()
        mean = self.mean.astype(float)
        norms = self.X.row_squared_norms() - 2 * (self.X @ mean[:, None]).ravel() + mean @ mean
        return np.maximum(norms, 0)

    def column_sums(self):
        if not self.is_sparse:
            return super().column_sums()
        return self.X.column_sums() - self.shape[0] * self.mean.astype(float)

    def gram(self):
        if not isinstance(self.X, Matrix) or self.X.dtype != np.float64:
            return super().gram()
        return self._short_gram()

    def _short_gram(self):
        """X'X less what the mean adds, without copies, unless that would cancel its digits.

        The mean need not be that of these rows, which may be some of those it was taken from.
        """
        cross = np.outer(self.X.column_sums(), self.mean)
        shift = cross + cross.T - self.shape[0] * np.outer(self.mean, self.mean)
        raw = self.X.gram()
        spread = np.trace(raw) - np.trace(shift)
        if not np.trace(cross) < SAFE_SHIFT * spread:
            return super().gram()
        return raw - shift

    def runs(self):
        runs = self.X.runs()
        if len(runs) == 1:
            return super().runs()
        return [(rows, Centered(part, self.mean)) for rows, part in runs]

    def dense_blocks(self):
        for block in self.X.dense_blocks():
            yield block - self.mean

    def large_blocks(self, least):
        # Centred where they are read, without a copy of small blocks.
        return (block - self.mean for block in self.X.large_blocks(least))

    def as_float32(self):
        X = self.X.as_float32()
        return self if X is self.X else Centered(X, self.mean)

    def fetched(self):
        return Centered(self.X.fetched(), self.mean)

    def rows(self, mask):
        return Centered(self.X.rows(mask), self.mean)

    def _matmat(self, B):
        B = B.astype(self.dtype, copy=False)
        if self.is_sparse:
            out = self.X._matmat(B)
            out -= self.mean @ B
            return out
        return _stack_products(self, B)

    def _rmatmat(self, Z):
        Z = Z.astype(self.dtype, copy=False)
        if self.is_sparse:
            # By BLAS, which adds up columns several times faster than NumPy.
            sums = np.ones(len(Z), dtype=self.dtype) @ Z
            return self._less_mean_products(self.X._rmatmat(Z), sums)
        return _add_products(self, Z)

    def _less_mean_products(self, out, sums):
        """X'Z less mu (1'Z), in the place of X'Z, which of wide rows is the largest array."""
        less_outer = get_blas_funcs("ger", (out,))
        return less_outer(-1.0, sums, self.mean, a=out.T, overwrite_a=1).T


class Scaled(Data):
    """X diag(factors), never formed."""

    def __init__(self, X: Data, factors):
        super().__init__(X.dtype, X.shape, X.n_samples)
        self.X, self.factors = X, np.asarray(factors, dtype=X.dtype)

    @property
    def is_sparse(self):
        return self.X.is_sparse

    def runs(self):
        runs = self.X.runs()
        if len(runs) == 1:
            return super().runs()
        return [(rows, Scaled(part, self.factors)) for rows, part in runs]

    def dense_blocks(self):
        for block in self.X.dense_blocks():
            # Centred rows are a copy already.
            out = block if isinstance(self.X, Centered) else None
            yield np.multiply(block, self.factors, out=out)

    def large_blocks(self, least):
        for block in self.X.large_blocks(least):
            out = block if isinstance(self.X, Centered) else None
            yield np.multiply(block, self.factors, out=out)

    def fetched(self):
        return Scaled(self.X.fetched(), self.factors)

    def rows(self, mask):
        return Scaled(self.X.rows(mask), self.factors)

    def _matmat(self, B):
        return self.X @ (self.factors[:, None] * B.astype(self.dtype, copy=False))

    def _rmatmat(self, Z):
        out = self.X.T @ Z
        out *= self.factors[:, None]
        return out


class Weighted(Data):
    """Rows scaled by the roots of their weights; n_samples is the sum of the weights."""

    weights: np.ndarray

    def __init__(self, X: Data, weights):
        super().__init__(X.dtype, X.shape, float(np.sum(weights)))
        self.X, self.weights = X, np.asarray(weights, dtype=float)
        self._roots = np.sqrt(self.weights).astype(X.dtype)[:, None]

    @property
    def is_sparse(self):
        return self.X.is_sparse

    def row_squared_norms(self):
        return self.weights * self.X.row_squared_norms()

    def column_sums(self):
        return np.asarray(self.X.T @ self._roots, dtype=float).ravel()

    def column_means(self):
        return np.asarray(self.X.T @ self.weights[:, None], dtype=float).ravel() / self.n_samples

    def less_mean(self, mean):
        return self.X.less_mean(mean).weighted(self.weights)

    @property
    def unweighted(self):
        return self.X

    def runs(self):
        runs = self.X.runs()
        if len(runs) == 1:
            return super().runs()
        return [(rows, Weighted(part, self.weights[rows])) for rows, part in runs]

    def dense_blocks(self):
        for rows, block in placed(self.X.dense_blocks()):
            yield block * self._roots[rows]

    def as_float32(self):
        X = self.X.as_float32()
        return self if X is self.X else Weighted(X, self.weights)

    def fetched(self):
        return Weighted(self.X.fetched(), self.weights)

    def rows(self, mask):
        return Weighted(self.X.rows(mask), self.weights[mask])

    def _matmat(self, B):
        return (self.X @ B) * self._roots

    def _rmatmat(self, Z):
        return self.X.T @ (Z.astype(self.dtype, copy=False) * self._roots)


def center(X: Data) -> tuple[np.ndarray, Data]:
    """Column means of X, and X less them, not formed."""
    mean = X.column_means()
    return mean, X.less_mean(mean)


def has_gaps(X) -> bool:
    """Whether rows have missing values, which sparse arrays have not; infinity is refused."""
    if isinstance(X, Data):
        return X.has_gaps
    return isinstance(X, np.ndarray) and _are_gaps(X, column_sums(X))


def _are_gaps(X, sums):
    """By sums of columns, which NaN spreads to; as infinity does, which is refused."""
    if np.isfinite(sums).all():
        return False
    if any(np.isinf(X[rows]).any() for rows in row_slices(X.shape)):
        raise ValueError(
            "X contains infinity, or a number too large for its dtype; accepted are finite "
            "numbers, and NaN for missing values"
        )
    return bool(np.isnan(sums).any())


def column_sums(X) -> np.ndarray:
    """Sum of every column of an array, in float64: the quickest pass that sees every entry."""
    n, d = X.shape

    def of_rows(rows):
        # Infinities of unlike sign have no sum, which is for whoever asks to say.
        with np.errstate(all="ignore"):
            return X[rows].sum(axis=0, dtype=float)

    if X.size <= RUN_ENTRIES:
        return of_rows(slice(0, n))
    return _sum(in_order(of_rows, list(run_slices(X.shape)), X.size), d, float)


def squared_deviations(n, squares, sums, mean) -> float | None:
    """Sum of (x - mu)^2 from sums over n rows; None where the mean would cancel their digits."""
    shift = 2 * float(sums @ mean) - n * float(mean @ mean)
    return squares - shift if abs(shift) < SAFE_SHIFT * (squares - shift) else None


def check_spread(total, dtype=float):
    """Squared norm of centred X, refused where it is zero or out of the range of its numbers.

    Products are in the dtype of X: those of single precision end at 1e-38 and at 3e38.
    """
    if total < 1e6 * np.finfo(dtype).tiny:
        raise ValueError(
            "X has no variation: all rows are equal, or their squared differences are too small "
            "for numbers; accepted are rows that differ, rescale X if they do"
        )
    if not total <= np.finfo(dtype).max:
        raise ValueError("X has entries whose squares leave the range of numbers; rescale X")
    return total


def check_columns(X):
    """Raise where a column of an array, or of rows in blocks, has no observed entry."""
    seen = np.zeros(X.shape[1], dtype=bool)
    for block in as_data(X).dense_blocks():
        seen |= ~np.isnan(block).all(axis=0)
        if seen.all():
            return
    empty = np.flatnonzero(~seen)
    if empty.size:
        raise ValueError(
            f"X has no observed value in column {', '.join(map(str, empty[:5]))}; "
            "every column needs at least one, drop those without"
        )


def as_data(X) -> Data:
    """X as `Data`: an operator as it is, an array or a sparse array as a `Matrix`."""
    return X if isinstance(X, Data) else Matrix(X)


def weighted(X, weights) -> Data:
    """X as `Data`, its rows weighted where there are weights."""
    return as_data(X) if weights is None else as_data(X).weighted(weights)


class StoredRows(NamedTuple):
    """A sparse array whose rows less one shift (d,) are the data."""

    array: Any
    shift: np.ndarray


def stored_rows(X: Data) -> StoredRows | None:
    """What centred and scaled rows of one sparse array are made of; None for all others."""
    if isinstance(X, Matrix) and X.is_sparse:
        return StoredRows(X.X, np.zeros(X.n_features))
    below = stored_rows(X.X) if isinstance(X, Centered | Scaled) else None
    if below is not None and isinstance(X, Centered):
        return below._replace(shift=below.shift + X.mean)
    if below is not None and isinstance(X, Scaled):
        scaled = below.array @ sparse.diags_array(X.factors)
        return StoredRows(scaled, below.shift * X.factors)
    return None


def _short_dual_gram(X):
    """X X' from products of the stored entries, where what the shift takes away leaves its digits.

    None where it does not. Of 2,000 rows with 200,000 columns slices would take 8 s, this 0.1 s.
    """
    stored = stored_rows(X)
    if stored is None:
        return None
    raw = np.asarray((stored.array @ stored.array.T).toarray(), dtype=float)
    along, energy = stored.array @ stored.shift, float(stored.shift @ stored.shift)
    shorter = raw - along[:, None] - along + energy
    return shorter if len(raw) * energy < SAFE_SHIFT * np.trace(shorter) else None


def row_slices(shape) -> Iterator[slice]:
    """Slices of rows that hold about BLOCK_ENTRIES entries each."""
    n, d = shape
    return slices(n, max(64, BLOCK_ENTRIES // max(d, 1)))


def run_slices(shape) -> Iterator[slice]:
    """Slices of rows that threads share: of about RUN_ENTRIES entries, as many as share evenly.

    A short one at the end leaves a thread without work (X'X of 200,000 x 200: .093 s to .084).
    """
    n, d = shape
    count = -(-n * d // RUN_ENTRIES)
    count = EVENLY * -(-count // EVENLY) if count > 1 else 1
    return slices(n, max(1, -(-n // count)))


def slices(n, size=BLOCK_ENTRIES) -> Iterator[slice]:
    """Slices of at most ``size`` of n, one after another."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def placed(blocks) -> Iterator[tuple[slice, np.ndarray]]:
    """Runs of rows, each with the slice of all rows that it is."""
    start = 0
    for block in blocks:
        yield slice(start, start + len(block)), block
        start += len(block)


def larger(blocks, least) -> Iterator[np.ndarray]:
    """The same rows in runs of at least so many, but for the last."""
    waiting: list[np.ndarray] = []
    for block in blocks:
        waiting.append(block)
        if sum(map(len, waiting)) >= least:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _run_gram(run):
    rows, d = run[1], run[1].n_features
    return _sum((block.T @ block for block in rows.dense_blocks()), (d, d), float)


def _over_runs(function, X, work):
    """What a function gives for every run of rows, by threads where there are several."""
    runs = X.runs()
    return in_order(function, runs, work) if len(runs) > 1 else map(function, runs)


def _stack_products(X, B):
    # BLAS scales what it writes to by zero: a NaN that memory held would raise a flag.
    out = np.zeros((X.shape[0], B.shape[1]), dtype=B.dtype)

    def place(run):
        rows, part = run
        for own, block in placed(part.dense_blocks()):
            np.matmul(block, B, out=out[rows][own])

    for _ in _over_runs(place, X, X.shape[0] * B.size):
        pass
    return out


def _add_products(X, Z):
    shape = X.n_features, Z.shape[1]

    def added(run):
        rows, part = run
        blocks = placed(part.dense_blocks())
        return _sum((block.T @ Z[rows][own] for own, block in blocks), shape, Z.dtype)

    return _sum(_over_runs(added, X, X.n_features * Z.size), shape, Z.dtype)


def _sum(parts, shape, dtype):
    total = np.zeros(shape, dtype=dtype)
    for part in parts:
        total += part
    return total


def row_norms(block) -> np.ndarray:
    """Squared lengths of the rows of an array, in float64."""
    return np.einsum("ij,ij->i", block, block, dtype=float, casting="same_kind")


def _squared_sum(values):
    flat = values.ravel(order="K")
    if flat.dtype == np.float64:
        return float(flat @ flat)
    return float(sum(np.sum(flat[part].astype(float) ** 2) for part in slices(flat.size)))
