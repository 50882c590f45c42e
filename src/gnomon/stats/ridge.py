"""Gaussian posterior of regression weights, one column per output, by the cheapest exact route.

    z_s = X p_s + e,   e ~ N(0, noise I),   p_fs ~ N(0, 1 / phi_fs)
    Sigma_s = (diag(phi_s) + X'X / noise)^-1,   mean_s = Sigma_s X'z_s / noise

    GramRidge       Cholesky of (d, d) matrices           phi (d, q), or (d,) where columns share it
    DualRidge       Woodbury with (n, n) matrices         the same, for n much smaller than d
    SpectralRidge   one eigendecomposition of the data    phi (q,), the same for all features

Never is a covariance formed: a `Spread` has what expectations need of it. A spectral ridge works
in coordinates along the principal axes of the data, in which X'X is diagonal.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dtrtri
from scipy.sparse.linalg import aslinearoperator

from gnomon.linalg.data import Data
from gnomon.linalg.solve import Cholesky

# Fewer samples than this share of the features make (n, n) matrices the cheaper ones.
DUAL_BELOW = 0.5
# Directions with less of the largest eigenvalue are rounding noise of the Gram matrix.
RANK_TOLERANCE = 1e-11


class Spread(NamedTuple):
    """What is needed of the covariances Sigma_s of the columns."""

    variance: np.ndarray
    """Diagonals (d, q)."""
    rest: np.ndarray
    """Variance summed over features outside the span of the data (q,)."""
    log_det: np.ndarray
    """Log determinants (q,)."""
    gram_trace: np.ndarray
    """tr(X'X Sigma_s) (q,)."""
    factor: np.ndarray
    """What the ridge solves with: Cholesky factors, or precisions along the axes."""


class GramRidge:
    """Cholesky factors of diag(phi_s) + X'X / noise."""

    def __init__(self, X, noise, gram=None):
        self.X, self.noise = X, noise
        self.gram = X.gram() if gram is None else gram
        self.n_features = len(self.gram)

    def gram_product(self, P):
        """X'X P."""
        return self.gram @ P

    def factors(self, phi):
        """One Cholesky factor for every distinct column of phi."""
        return [Cholesky(self._precision(column)) for column in _columns(phi)]

    def spread(self, phi, q) -> Spread:
        """The `Spread` of q columns."""
        factors = self.factors(phi)
        variance = np.stack([_inverse_diagonal(factor) for factor in factors], axis=1)
        log_det = -np.array([factor.logdet() for factor in factors])
        trace = self.noise * (self.n_features - np.sum(_columns(phi).T * variance, axis=0))
        return _spread(variance, log_det, trace, factors, q)

    def solve(self, phi, spread: Spread, R):
        """The columns Sigma_s r_s."""
        return _by_column([Cholesky.of_factor(U.T).solve for U in spread.factor], R)

    def solver(self, phi):
        """The function R -> Sigma_s r_s, for phi not met before."""
        solvers = [factor.solve for factor in self.factors(phi)]
        return lambda R: _by_column(solvers, R)

    def forms(self, phi, q):
        """The function of rows (m, d) that returns x' Sigma_s x, (m, q)."""
        factors = self.factors(phi)

        def evaluate(rows):
            columns = [np.sum(f.half_solve(rows.T) ** 2, axis=0) for f in factors]
            return np.broadcast_to(np.stack(columns, axis=1), (len(rows), q))

        return evaluate

    def _precision(self, column):
        precision = self.gram / self.noise
        precision[np.diag_indices_from(precision)] += column
        return precision


class DualRidge:
    """Cholesky factors of noise I + X diag(1 / phi_s) X', by Woodbury's identity."""

    def __init__(self, X, noise):
        if isinstance(X, Data):
            X = np.concatenate([block.astype(float) for block in X.dense_blocks()])
        self.X, self.noise = X, noise
        self.n_features = X.shape[1]

    def gram_product(self, P):
        """X'X P."""
        return self.X.T @ (self.X @ P)

    def factors(self, phi):
        """One Cholesky factor for every distinct column of phi."""
        return [Cholesky(self._covariance(column)) for column in _columns(phi)]

    def spread(self, phi, q) -> Spread:
        """The `Spread` of q columns."""
        columns, factors = _columns(phi), self.factors(phi)
        reduction = np.stack([np.sum(f.half_solve(self.X) ** 2, axis=0) for f in factors])
        variance = ((1.0 - reduction / columns) / columns).T
        n = len(self.X)
        log_det = [n * np.log(self.noise) - f.logdet() for f in factors]
        log_det = np.array(log_det) - np.log(columns).sum(axis=1)
        trace = self.noise * np.sum(reduction / columns, axis=1)
        return _spread(variance, log_det, trace, factors, q)

    def solve(self, phi, spread: Spread, R):
        """The columns Sigma_s r_s."""
        return self._solve(phi, [Cholesky.of_factor(U.T).solve for U in spread.factor], R)

    def solver(self, phi):
        """The function R -> Sigma_s r_s, for phi not met before."""
        return partial(self._solve, phi, [factor.solve for factor in self.factors(phi)])

    def forms(self, phi, q):
        """The function of rows (m, d) that returns x' Sigma_s x, (m, q)."""
        pairs = list(zip(_columns(phi), self.factors(phi), strict=True))

        def evaluate(rows):
            columns = [self._form(rows, *pair) for pair in pairs]
            return np.broadcast_to(np.stack(columns, axis=1), (len(rows), q))

        return evaluate

    def _solve(self, phi, solvers, R):
        scaled = R / _columns(phi).T
        inner = _by_column(solvers, self.X @ scaled)
        return scaled - (self.X.T @ inner) / _columns(phi).T

    def _form(self, rows, column, factor):
        scaled = rows / column
        seen = np.sum(factor.half_solve(self.X @ scaled.T) ** 2, axis=0)
        return np.sum(scaled * rows, axis=1) - seen

    def _covariance(self, column):
        covariance = (self.X / column) @ self.X.T
        covariance[np.diag_indices_from(covariance)] += self.noise
        return covariance


class SpectralRidge:
    """Coordinates along the principal axes, where X'X is diagonal with these values.

    ``X`` maps coordinates to rows; ``n_features`` counts also the features outside the span
    of the data, whose weights keep their prior.
    """

    def __init__(self, X, values, n_features, noise):
        self.X, self.values, self.noise = X, values, noise
        self.n_features = n_features

    def gram_product(self, P):
        """X'X P."""
        return self.values[:, None] * P

    def spread(self, phi, q) -> Spread:
        """The `Spread` of q columns, for phi (q,)."""
        precision = phi + self.values[:, None] / self.noise
        outside = self.n_features - len(self.values)
        log_det = -np.log(precision).sum(axis=0) - outside * np.log(phi)
        trace = np.sum(self.values[:, None] / precision, axis=0)
        return Spread(1.0 / precision, outside / phi, log_det, trace, precision)

    def solve(self, phi, spread: Spread, R):
        """The columns Sigma_s r_s."""
        return R / spread.factor

    def solver(self, phi):
        """The function R -> Sigma_s r_s, for phi not met before."""
        precision = phi + self.values[:, None] / self.noise
        return lambda R: R / precision

    def forms(self, phi, coordinates, squares):
        """The forms x' Sigma_s x (m, q) from coordinates (m, r) and squared norms (m,) of rows."""
        inside = coordinates**2
        outside = np.maximum(squares - inside.sum(axis=1), 0.0)
        return inside @ (1.0 / (phi + self.values[:, None] / self.noise)) + outside[:, None] / phi


def gram_or_dual(X: Data, noise):
    """The route of less work for precisions that differ between features."""
    return DualRidge(X, noise) if X.shape[0] < DUAL_BELOW * X.shape[1] else GramRidge(X, noise)


def spectral(X: Data, noise):
    """A spectral ridge and the axes (d, r) of its coordinates."""
    n, d = X.shape
    if d <= n:
        values, axes = eigh(X.gram(), check_finite=False)
        values = np.maximum(values, 0.0)
        return SpectralRidge(X @ aslinearoperator(axes), values, d, noise), axes
    values, vectors = leading_pairs(dual_gram(X))
    axes = np.asarray(X.T @ vectors, dtype=float) / np.sqrt(values)
    return SpectralRidge(vectors * np.sqrt(values), values, d, noise), axes


def spectral_of_kernel(K, noise):
    """A spectral ridge of a centred Gram matrix, and weights (n, r) from k(x) to coordinates."""
    values, vectors = leading_pairs(K)
    root = np.sqrt(values)
    return SpectralRidge(vectors * root, values, len(values), noise), vectors / root


def leading_pairs(K):
    """Eigenpairs of a semi-definite K, those of rounding size left out."""
    values, vectors = eigh(K, check_finite=False)
    kept = values > RANK_TOLERANCE * max(values[-1], np.finfo(float).tiny)
    return values[kept], vectors[:, kept]


def dual_gram(X: Data):
    """X X' (n, n); by products with slices of the identity where X is sparse."""
    if not X.is_sparse:
        return X.dual_gram()
    n, d = X.shape
    width = max(1, 2**22 // d)
    K = np.empty((n, n))
    for start in range(0, n, width):
        stop = min(start + width, n)
        K[:, start:stop] = X @ (X.T @ np.eye(n, stop - start, -start))
    return K


def _columns(phi):
    """Precisions (d,) or (d, q) as rows, one for every distinct column."""
    return phi[None] if phi.ndim == 1 else phi.T


def _inverse_diagonal(factor: Cholesky):
    inverse, _ = dtrtri(factor.L, lower=1)
    return np.einsum("ij,ij->j", inverse, inverse)


def _by_column(solvers, R):
    """R solved by the one solver, or each column by its own."""
    if len(solvers) == 1:
        return solvers[0](R)
    return np.hstack([solve(R[:, [s]]) for s, solve in enumerate(solvers)])


def _spread(variance, log_det, trace, factors, q):
    d = len(variance)
    return Spread(
        np.broadcast_to(variance, (d, q)),
        np.zeros(q),
        np.broadcast_to(log_det, q),
        np.broadcast_to(trace, q),
        # Upper triangles row by row are lower ones in the order that LAPACK reads.
        np.stack([factor.L.T for factor in factors]),
    )
