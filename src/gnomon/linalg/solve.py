"""Solves with positive-definite matrices; there is no inverse elsewhere."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from gnomon.exceptions import NumericalError


class Cholesky:
    """The factor of a positive-definite matrix A = L L'."""

    def __init__(self, A):
        try:
            self._factor = cho_factor(A, lower=True, check_finite=False)
        except LinAlgError as error:
            raise NumericalError("a matrix that must be positive definite is not") from error

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
