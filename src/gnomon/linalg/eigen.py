"""Leading eigenpairs of X'X by the cheapest route for the shape of X; one sign convention."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from gnomon.exceptions import NumericalError
from gnomon.linalg.data import Data
from gnomon.linalg.krylov import krylov_pairs


class Spectrum(NamedTuple):
    """Leading eigenvalues of X'X, descending, their vectors (d, k), and the trace."""

    values: np.ndarray
    vectors: np.ndarray
    trace: float


def route(X: Data, q: int) -> str:
    """The cheapest of "moments" (X'X), "dual" (X X') and "subspace" (products only)."""
    n, d = X.shape
    if min(n, d) > 250 + 8 * q:
        return "subspace"
    return "moments" if d <= n else "dual"


def from_moments(X: Data, k: int) -> Spectrum:
    """Eigenpairs of X'X formed in one pass over the rows; for moderate d."""
    S = X.gram()
    values, vectors = _leading(S, k)
    return Spectrum(values, vectors, float(np.trace(S)))


def from_dual(X: Data, k: int) -> Spectrum:
    """Eigenpairs of X'X from those of X X'; for few rows."""
    K = X.dual_gram()
    values, U = _leading(K, k)
    V = np.asarray(X.T @ U, dtype=float)
    lengths = np.linalg.norm(V, axis=0)
    # A direction without energy has no image: complete the basis with any orthonormal one.
    V, R = np.linalg.qr(V)
    V *= np.where(np.diagonal(R) < 0, -1.0, 1.0)
    return Spectrum(np.where(lengths > 0, values, 0.0), V, float(np.trace(K)))


def from_lanczos(X: Data, k: int, rng, *, tol=1e-6) -> tuple[np.ndarray, np.ndarray]:
    """Leading values (k,) and vectors (d, k) of X'X from products with one vector at a time.

    Fewest columns in all, so the best where a product with X is cheap for its size, as with
    sparse rows that are mixed over a graph. Asks for k well below both sides of X.
    """
    d = X.n_features
    start = rng.standard_normal(d).astype(X.dtype)

    def normal(b):
        # The bare products: what scipy wraps around them costs more than they do.
        return X._rmatmat(X._matmat(b.reshape(-1, 1))).ravel()

    operator = LinearOperator((d, d), matvec=normal, dtype=X.dtype)
    try:
        values, vectors = eigsh(operator, k, tol=tol, v0=start)
    except ArpackNoConvergence:
        return krylov_pairs(X, k, rng, tol=tol)
    return np.maximum(values[::-1], 0.0).astype(float), vectors[:, ::-1].astype(float)


def fix_signs(vectors) -> np.ndarray:
    """Columns with the entry of largest size made positive."""
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return vectors * np.where(signs == 0, 1.0, signs)


def _leading(S, k):
    """The k largest eigenpairs of a symmetric matrix, descending, values not negative."""
    if not np.isfinite(np.trace(S)):
        raise NumericalError("X has entries whose squares leave the range of numbers; rescale X")
    m = S.shape[0]
    if k > m // 4:
        values, vectors = eigh(S)
    else:
        values, vectors = eigh(S, subset_by_index=(m - k, m - 1))
    return np.maximum(values[::-1][:k], 0.0), vectors[:, ::-1][:, :k]
