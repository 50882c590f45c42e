"""Small dense algebra: solves with positive-definite matrices, rank, signs.

There is no inverse elsewhere.
"""

from contextlib import ContextDecorator
from threading import Lock

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from threadpoolctl import ThreadpoolController

from gnomon.exceptions import NumericalError


class _OneThread(ContextDecorator):
    """One thread for BLAS while any thread of the process is inside; what was set before, after."""

    def __init__(self):
        self._lock, self._inside, self._limit = Lock(), 0, None

    def __enter__(self):
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = ThreadpoolController().limit(limits=1, user_api="blas")
                self._limit.__enter__()

    def __exit__(self, *error):
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.__exit__(*error)


# Around hundreds of small products: waking other threads takes longer than most of them.
one_thread = _OneThread()


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


def gaussian_log_odds(means, covariance, points) -> np.ndarray:
    """Log of N(point; mean, covariance), up to a constant a mean, for all means and points (n, C).

    Terms of the means alone are the same for all points, so that products are enough.
    """
    weights = Cholesky(covariance).solve(points.T)
    return means @ weights - 0.5 * np.sum(points.T * weights, axis=0)


def stacked_half_inverses(A) -> tuple[np.ndarray, np.ndarray]:
    """L^-1 (m, q, q) for a stack of small matrices A = L L', and their log determinants."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError as error:
        raise NumericalError("a matrix that must be positive definite is not") from error
    half = np.linalg.solve(L, np.broadcast_to(np.eye(A.shape[-1]), A.shape))
    return half, 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)


def stacked_covariances(A) -> tuple[np.ndarray, np.ndarray]:
    """Covariances A^-1 (m, q, q) of a stack of small precisions, and their log determinants."""
    half, log_det = stacked_half_inverses(A)
    return np.swapaxes(half, 1, 2) @ half, -log_det


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


def fix_signs(vectors) -> np.ndarray:
    """Columns with the entry of largest size made positive."""
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)
