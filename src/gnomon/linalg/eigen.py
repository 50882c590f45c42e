"""Leading eigenpairs of X'X by the cheapest route for the shape of X."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from gnomon.exceptions import NumericalError
from gnomon.linalg.data import Data
from gnomon.linalg.tall import inner, mixed

# Columns beyond those asked for: the last wanted direction then converges with the others.
MARGIN = 10
# Rows whose random mixtures are a start: all up to so many; more lean no better, and where they are
# elsewhere each would be sent its numbers.
MIXED_ROWS = 50_000
# A direction whose length falls below this share of the block's is in the space already.
DEPENDENT = 1e-6
# Rows of a symmetric matrix for each pair wanted from which products with blocks find them sooner
# than its whole reduction: 0.33 s for 0.58 of 150 pairs of 1,797 rows.
LARGE_FOR_PAIRS = 10
# Residual of a pair in shares of the largest value: values are then right to its square, and the
# directions at the cut to some ten thousandths, where the next ones are hardly different.
PAIRS_TOLERANCE = 1e-6


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


def suits_lanczos(X: Data, k: int) -> bool:
    """Whether `from_lanczos` is the cheapest: products cost little, k is well below both sides."""
    return X.is_sparse and 8 * k <= min(X.shape)


def from_lanczos(X: Data, k: int, rng, *, tol=1e-6) -> tuple[np.ndarray, np.ndarray]:
    """Leading values (k,) and vectors (d, k) of X'X from products with one vector at a time.

    Fewest columns in all, so the best where a product with X is cheap for its size, as with
    sparse rows that are mixed over a graph. Works on the shorter side, since ARPACK keeps vectors
    of that length and takes longer over these than over products. Asks for k well below both sides.
    """
    m = min(X.shape)
    start = rng.standard_normal(m).astype(X.dtype)

    def product(b):
        b = b.reshape(-1, 1)
        return (X.normal_product(b) if m == X.n_features else X @ (X.T @ b)).ravel()

    operator = LinearOperator((m, m), matvec=product, dtype=X.dtype)
    try:
        values, vectors = eigsh(operator, k, tol=tol, v0=start)
    except ArpackNoConvergence:
        return krylov_pairs(X, k, rng, tol=tol)
    values, vectors = np.maximum(values[::-1], 0.0).astype(float), vectors[:, ::-1].astype(float)
    return values, vectors if m == X.n_features else _other_side(X, values, vectors)


def _other_side(X, values, U):
    """Vectors of X'X from those of X X'; those of several pairs are orthogonal."""
    # X'u has the length sqrt(value).
    V = np.asarray(X.T @ U, dtype=float)
    return V / np.sqrt(np.where(values > 0, values, 1.0))


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


class _Space:
    """An orthonormal basis V (m, r), H V, and S = V'H V, grown block by block."""

    def __init__(self, H, m, room, dtype=float):
        self.H, self.size = H, 0
        self._V, self._HV = (np.empty((m, room), dtype=dtype, order="F") for _ in range(2))
        self._S = np.empty((room, room))

    @property
    def V(self):
        return self._V[:, : self.size]

    @property
    def HV(self):
        return self._HV[:, : self.size]

    def add(self, block):
        """Take in an orthonormal block that is orthogonal to the basis; two products with X."""
        start, stop = self.size, self.size + block.shape[1]
        self._V[:, start:stop] = block
        self._HV[:, start:stop] = self.H(block)
        self.size = stop
        cross = inner(self.V, self._HV[:, start:stop])
        self._S[:stop, start:stop] = cross
        self._S[start:stop, :start] = cross[:start].T

    def outside(self, start):
        """What H does to the columns from ``start`` on, outside of the basis, orthonormal."""
        fresh = self.HV[:, start:]
        left = mixed(self.V, -self._S[: self.size, start : self.size], plus=fresh)
        left = mixed(self.V, -inner(self.V, left), plus=left)
        return _orthonormal(left, np.linalg.norm(fresh))

    def ritz(self):
        """Eigenvalues of S, descending, and their vectors in coordinates of the basis."""
        S = self._S[: self.size, : self.size]
        values, E = eigh((S + S.T) / 2)
        return values[::-1], E[:, ::-1]


def krylov_pairs(X: Data, k: int, rng, *, leading=None, tol=1e-4, max_rounds=8):
    """Values (k,) descending and vectors (d, k) of X'X; one product with X and X' a round.

    The first ``leading`` pairs have residuals below ``tol`` of the largest value, and so values
    right to its square; the others are the best of a space of at least k dimensions, which is
    what a pool of directions needs. The space is built on the shorter side of X.
    """
    leading = min(k if leading is None else leading, k)
    n, d = X.shape
    width = min(n, d, leading + MARGIN)
    if n < d:
        start = rng.standard_normal((n, width))
        values, U = _leading_pairs(lambda B: X @ (X.T @ B), start, k, leading, (tol, max_rounds))
        return values, _other_side(X, values, U)
    start = np.asarray(_mixtures(X, width, rng, MIXED_ROWS), dtype=float)
    return _leading_pairs(X.normal_product, start, k, leading, (tol, max_rounds))


def leaning_block(X: Data, start, rounds: int) -> np.ndarray:
    """Mixtures X'Z of rows (d, k) that lean on the leading axes, in the precision of X.

    Z (n, k) is the best of the space that so many rounds from a start (n, k) make, on the side of
    the rows: one is the start itself.
    """
    if rounds > 1:

        def there_and_back(B):
            # The bare products: what SciPy wraps around them costs more than small ones.
            return X._matmat(X._rmatmat(B))

        k = start.shape[1]
        _, start = _leading_pairs(there_and_back, start, k, k, (0.0, rounds - 1))
    return X._rmatmat(start)


def _mixtures(X, k, rng, most):
    """Random mixtures (d, k) of at most so many rows: they lean towards the leading axes."""
    n = X.shape[0]
    rows = X if n <= most else X.rows(np.sort(rng.choice(n, most, replace=False)))
    return rows.T @ rng.standard_normal((min(n, most), k)).astype(X.dtype, copy=False)


def symmetric_pairs(S, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a symmetric matrix, descending, and their vectors.

    Of a large one by products with blocks, which are faster than the reduction of all of it where
    few are wanted: residuals are below PAIRS_TOLERANCE of the largest value. A spectrum too flat
    for that ends in the whole decomposition.
    """
    n, width = len(S), max(k // 4, MARGIN)
    if n > LARGE_FOR_PAIRS * k:
        start = np.random.default_rng(0).standard_normal((n, width))
        space, most = _Space(lambda B: S @ B, n, n // 2 + width), n // 2
        block = _orthonormal(S @ start)
        while block.shape[1] and space.size <= most:
            size = space.size
            space.add(block)
            if space.size >= 3 * k and _converged(space, k, PAIRS_TOLERANCE):
                values, E = space.ritz()
                return values[:k], space.V @ E[:, :k]
            block = space.outside(size)
    values, vectors = eigh(S, subset_by_index=None if k >= n else (n - k, n - 1))
    return values[::-1], vectors[:, ::-1]


def _leading_pairs(H, start, k, leading, stop):
    tol, max_rounds = stop
    m, width = start.shape
    rounds = max_rounds + -(-k // width)
    space = _Space(H, m, min(m, (rounds + 1) * width), start.dtype)
    block = _orthonormal(start)
    for _ in range(rounds):
        size = space.size
        space.add(block)
        if tol and space.size >= min(k + MARGIN, m) and _converged(space, leading, tol):
            break
        block = space.outside(size)[:, : m - space.size]
        if block.shape[1] == 0:
            break
    values, E = space.ritz()
    return np.maximum(values[:k], 0.0), mixed(space.V, E[:, :k])


def _converged(space, leading, tol):
    values, E = space.ritz()
    top = E[:, :leading]
    residual = mixed(space.HV, top, less=(space.V, top * values[:leading]))
    return np.linalg.norm(residual, axis=0).max(initial=0) <= tol * values[0]


def _orthonormal(B, scale=None):
    Q, R, _ = qr(B, mode="economic", pivoting=True)
    sizes = np.abs(np.diagonal(R))
    scale = sizes[0] if scale is None and sizes.size else scale
    return Q[:, sizes > DEPENDENT * scale] if scale else Q[:, :0]
