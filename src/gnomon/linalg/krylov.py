"""Leading eigenpairs of X'X from products with X alone, in a block Krylov space kept whole."""

import numpy as np
from scipy.linalg import eigh, qr

from gnomon.linalg.data import Data

# Columns beyond those asked for: the last wanted direction then converges with the others.
MARGIN = 10
# A direction whose length falls below this share of the block's is in the space already.
DEPENDENT = 1e-6


def krylov_pairs(X: Data, k: int, rng, *, leading=None, tol=1e-6, max_rounds=8):
    """Values (k,) descending and vectors (d, k) of X'X; one product with X and X' a round.

    The first ``leading`` pairs are converged to ``tol`` of the largest value; the others are
    the best of a space of at least k dimensions, which is what a pool of directions needs.
    """
    leading = min(k if leading is None else leading, k)
    limit = min(X.shape)
    width = min(limit, leading + MARGIN)
    block = _orthonormal(np.asarray(X.T @ _start(X, width, rng), dtype=float))
    V, HV = np.empty((X.n_features, 0)), np.empty((X.n_features, 0))
    for round_ in range(max(1, max_rounds + k // width)):
        V, HV = np.hstack([V, block]), np.hstack([HV, X.T @ (X @ block)])
        values, E = _ritz(V, HV)
        if V.shape[1] >= limit or block.shape[1] == 0:
            break
        top = E[:, :leading]
        residual = np.linalg.norm(HV @ top - V @ (top * values[:leading]), axis=0)
        if V.shape[1] >= min(k + MARGIN, limit) and residual.max() <= tol * values[0]:
            break
        if round_ >= max_rounds and V.shape[1] >= k:
            break
        fresh = HV[:, -block.shape[1] :]
        block = _orthonormal(_outside(_outside(fresh, V), V), np.linalg.norm(fresh))
        block = block[:, : limit - V.shape[1]]
    return np.maximum(values[:k], 0.0), V @ E[:, :k]


def _start(X, width, rng):
    return rng.standard_normal((X.shape[0], width))


def _ritz(V, HV):
    small = V.T @ HV
    values, E = eigh((small + small.T) / 2)
    return values[::-1], E[:, ::-1]


def _outside(B, V):
    return B - V @ (V.T @ B)


def _orthonormal(B, scale=None):
    Q, R, _ = qr(B, mode="economic", pivoting=True)
    sizes = np.abs(np.diagonal(R))
    scale = sizes[0] if scale is None and sizes.size else scale
    return Q[:, sizes > DEPENDENT * scale] if scale else Q[:, :0]
