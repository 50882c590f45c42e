"""Small dense algebra: solves with positive-definite matrices, rank, signs.

There is no inverse elsewhere.
"""

from contextlib import ContextDecorator, nullcontext
from threading import Lock
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri
from threadpoolctl import ThreadpoolController

from gnomon.exceptions import NumericalError

# Entries of a dense X up to which one thread is sooner done with its products than two, and
# rows or columns up to which it is with decompositions; products go by runs of rows of their own.
SMALL, THIN = 2**22, 500
# Matrices below which LAPACK inverts a stack sooner, one by one.
FEW = 32
# Rows of matrices that are swept; products of their blocks are faster above.
MOST_SWEPT = 9
# Numbers of a stack that are swept at a time: few enough for the cache.
SWEPT_ENTRIES = 2**15


class _OneThread(ContextDecorator):
    """One thread for BLAS while any thread of the process is inside; what was set before, after."""

    def __init__(self):
        self._lock, self._inside, self._before = Lock(), 0, np.inf
        self._limit: Any = None
        self._controller: Any = None

    def __enter__(self):
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = self._now()
                self._limit = self._controller.limit(limits=1, user_api="blas")
                self._limit.__enter__()

    def __exit__(self, *error):
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.__exit__(*error)

    def allowed(self) -> float:
        """Threads that BLAS has outside; no limit where no BLAS is known."""
        with self._lock:
            return self._before if self._inside else self._now()

    def _now(self):
        # Looking for the libraries takes longer than many fits; they stay the same.
        self._controller = self._controller or ThreadpoolController()
        pools = self._controller.select(user_api="blas").info()
        return min((pool["num_threads"] for pool in pools), default=np.inf)


# Around hundreds of small products: waking other threads takes longer than most of them.
one_thread = _OneThread()


def threads_for(X):
    """One thread for BLAS while a model of a small, thin or sparse X is fitted, else what is set.

    Of a sparse X only thin blocks are dense, too small to share between threads.
    """
    small = X.shape[0] * X.shape[1] <= SMALL or min(X.shape) <= THIN
    return one_thread if X.is_sparse or small else nullcontext()


class Cholesky:
    """The factor of a positive-definite matrix A = L L'."""

    def __init__(self, A):
        try:
            self._factor = cho_factor(A, lower=True, check_finite=False)
        except LinAlgError as error:
            raise NumericalError("a matrix that must be positive definite is not") from error

    @classmethod
    def of_factor(cls, L) -> "Cholesky":
        """The object around a lower triangle that is at hand."""
        factor = cls.__new__(cls)
        factor._factor = (L, True)
        return factor

    @property
    def L(self) -> np.ndarray:
        """The lower triangle L."""
        return np.tril(self._factor[0])

    def solve(self, B) -> np.ndarray:
        """A^-1 B."""
        return cho_solve(self._factor, B, check_finite=False)

    def half_solve(self, B) -> np.ndarray:
        """L^-1 B, so that its squared norm is B' A^-1 B."""
        return solve_triangular(self._factor[0], B, lower=True, check_finite=False)

    def logdet(self) -> float:
        """Logarithm of the determinant of A."""
        return 2.0 * float(np.sum(np.log(np.diagonal(self._factor[0]))))


def inverse_with_log_det(A) -> tuple[np.ndarray, float]:
    """A^-1 of a positive-definite matrix that many systems are solved with, and log det A."""
    L, failed = dpotrf(A, lower=1, clean=0)
    if failed:
        raise NumericalError("a matrix that must be positive definite is not")
    inverse = np.tril(dpotri(L, lower=1)[0])
    return inverse + np.tril(inverse, -1).T, 2.0 * float(np.sum(np.log(np.diagonal(L))))


def gaussian_log_odds(means, covariance, points) -> np.ndarray:
    """Log of N(point; mean, covariance), up to a constant a mean, for all means and points (n, C).

    Terms of the means alone are the same for all points, so that products are enough.
    """
    weights = Cholesky(covariance).solve(points.T)
    return means @ weights - 0.5 * np.sum(points.T * weights, axis=0)


def stacked_half_inverses(A) -> tuple[np.ndarray, np.ndarray]:
    """L^-1 (..., q, q) for a stack of small matrices A = L L', and their log determinants."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError as error:
        raise NumericalError("a matrix that must be positive definite is not") from error
    half = np.linalg.solve(L, np.broadcast_to(np.eye(A.shape[-1]), A.shape))
    return half, 2.0 * np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)


def stacked_covariances(A) -> tuple[np.ndarray, np.ndarray]:
    """Covariances A^-1 (m, q, q) of a stack of small precisions, and their log determinants.

    Small ones are swept, all of a stack at once; large ones are split in four blocks until small.
    """
    m, q, _ = A.shape
    if m == 1:
        return _small_inverse(A[0])
    if m < FEW:
        half, log_det = stacked_half_inverses(A)
        return np.swapaxes(half, 1, 2) @ half, -log_det
    if q > MOST_SWEPT:
        return _inverses_by_blocks(A)
    inverses, log_det, size = np.empty(A.shape), np.empty(m), max(FEW, SWEPT_ENTRIES // q**2)
    for rows in (slice(k, k + size) for k in range(0, m, size)):
        swept, log_det[rows] = _swept(A[rows].transpose(1, 2, 0).copy())
        inverses[rows] = swept.transpose(2, 0, 1)
    return inverses, log_det


def _small_inverse(A):
    """The same of one small matrix, by LAPACK alone: NumPy takes longer around it than for it."""
    L, failed = dpotrf(A, lower=1)
    if failed:
        raise NumericalError("a matrix that must be positive definite is not")
    half, _ = dtrtri(L, lower=1)
    return (half.T @ half)[None], np.array([-2.0 * np.log(L.diagonal()).sum()])


def _swept(A):
    """Inverses (q, q, m) by elimination in place, and their log determinants."""
    pivots = np.empty(A.shape[1:])
    for k, pivot in enumerate(pivots):
        pivot[:] = A[k, k]
        row, column = A[k] / pivot, A[:, k].copy()
        A -= column[:, None] * row
        A[k], A[:, k] = row, -column / pivot
        A[k, k] = 1 / pivot
    if not np.all(pivots > 0):
        raise NumericalError("a matrix that must be positive definite is not")
    return A, -np.log(pivots).sum(axis=0)


def _inverses_by_blocks(A):
    """The same from the inverse of the first block, and that of what it leaves of the last."""
    h = A.shape[1] // 2
    first, log_det = stacked_covariances(A[:, :h, :h])
    X = first @ A[:, :h, h:]
    last, rest = stacked_covariances(A[:, h:, h:] - np.swapaxes(A[:, :h, h:], 1, 2) @ X)
    across = X @ last
    inverses = np.empty(A.shape)
    inverses[:, :h, :h] = first + across @ np.swapaxes(X, 1, 2)
    inverses[:, :h, h:] = -across
    inverses[:, h:, :h] = -np.swapaxes(across, 1, 2)
    inverses[:, h:, h:] = last
    return inverses, log_det + rest


def preconditioned_solution(product, B, start, solve, steps, tolerance) -> np.ndarray:
    """X with product(X) near B by conjugate gradients, one system whose unknown is a matrix.

    ``solve`` is the inverse of a positive-definite map near ``product``. Ends when the error that
    it sees is below this share of that of the start, or after so many steps.
    """
    X = start.copy()
    residual = B - product(X)
    scaled = solve(residual)
    direction, energy = scaled, np.sum(residual * scaled)
    goal = tolerance**2 * energy
    for _ in range(steps):
        if energy <= goal:
            break
        image = product(direction)
        length = energy / np.sum(direction * image)
        X += length * direction
        residual -= length * image
        scaled = solve(residual)
        energy, previous = np.sum(residual * scaled), energy
        direction = scaled + energy / previous * direction
    return X


def above_rounding(values, dtype=float, n_terms=0) -> np.ndarray:
    """Mask of the eigenvalues of a Gram matrix that are more than its rounding; one rank cut.

    ``dtype`` is that of the data whose products it holds, ``n_terms`` the length of the sums
    that they are where that is more than the number of eigenvalues, as in X X' of a wide X.
    """
    top = max(float(np.max(values, initial=0.0)), np.finfo(float).tiny)
    return values > max(len(values), n_terms) * np.finfo(dtype).eps * top


def ranks_of_rows(*keys) -> np.ndarray:
    """Ranks of rows by keys, the last key first; rows that only rounding tells apart share one."""
    keys = tuple(map(_rounded, keys))
    order = np.lexsort(keys)
    is_new = np.any([np.diff(key[order], prepend=np.nan) != 0 for key in keys], axis=0)
    ranks = np.empty(len(order), dtype=int)
    ranks[order] = np.cumsum(is_new) - 1
    return ranks


def _rounded(values):
    """Values without the digits that sums in another order change."""
    values = np.ravel(values).astype(float)
    middle = np.median(values) if len(values) else 0.0
    return np.round(values / (np.abs(values - middle).max(initial=0.0) or 1.0), 9)


def fix_signs(vectors) -> np.ndarray:
    """Columns with the entry of largest size made positive."""
    return vectors * column_signs(vectors)


def column_signs(vectors) -> np.ndarray:
    """The sign of each column's entry of largest size, one where two are as large or all zero."""
    # Without an array of sizes, which of tall vectors takes longer than all else.
    return np.where(-vectors.min(axis=0) > vectors.max(axis=0), -1.0, 1.0)
