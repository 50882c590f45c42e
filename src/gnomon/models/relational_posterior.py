"""What the relational model says of nodes: shared parts, missing content, densities.

Everything is a function of L applied to the scores s = (X - 1 mu') U of all nodes of a graph,
old and new; the graph may be larger than the one that was fitted (see `relational`).
"""

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from gnomon.linalg.lanczos import apply, lanczos
from gnomon.linalg.solve import Cholesky
from gnomon.models.relational import Relational, smoothness, variances_at

# Steps for a filter that is applied once: more than in a fit, where it is applied every round.
STEPS = 40
# Columns of the identity that run side by side for variances.
COLUMNS = 64


def shared_part(state: Relational, S, scores, *, temper: float = 1.0, steps: int = STEPS):
    """E[f | X] of all nodes (n, q); ``temper`` multiplies the noise that content is trusted by."""
    q = len(state.a)
    krylov = lanczos(S, scores[:, :q], steps)
    return apply(krylov, _shared_gain(state, _eigenvalues(krylov), temper))


def signal(state: Relational, S, scores, *, steps: int = STEPS) -> np.ndarray:
    """E[f + g | X] of all nodes on all axes (n, q + r)."""
    q, sigma2 = len(state.a), state.sigma2
    own = state.c[q:] / (state.c[q:] + sigma2)
    krylov = lanczos(S, scores[:, :q], steps)
    gain = 1.0 - sigma2 / variances_at(state, _eigenvalues(krylov))
    return np.concatenate([apply(krylov, gain), scores[:, q:] * own], axis=1)


def shared_variances(state: Relational, S, nodes, *, steps: int = STEPS) -> np.ndarray:
    """Var[f | X] (m, q) of some nodes: diagonals of a h (c + sigma2) / v as functions of L."""
    n, q = S.shape[0], len(state.a)
    noise = state.c[:q] + state.sigma2
    out = np.empty((len(nodes), q))
    for start in range(0, len(nodes), COLUMNS):
        part = nodes[start : start + COLUMNS]
        E = np.zeros((n, len(part)))
        E[part, np.arange(len(part))] = 1.0
        krylov = lanczos(S, E, steps)
        lam = _eigenvalues(krylov)[:, :, None]
        h = state.a * smoothness(lam, state.beta)
        out[start : start + COLUMNS] = np.einsum(
            "jm,jmq->mq", krylov.weights, h * noise / (h + noise)
        )
    return out


def fill(state: Relational, S, scores, rows, X, *, start=None, tol=1e-8):
    """Missing entries of some nodes, given all that is observed.

    ``X`` (m, d) holds the centred content of the nodes ``rows``, NaN where missing; ``scores``
    (n, q + r) those of all other nodes. The mean T of the missing entries solves
    T = E[content | T, observed], a positive-definite system, by conjugate gradients, from the
    entries of ``start`` if given.
    Returns X with the gaps filled, and the scores of all nodes.
    """
    missing = np.isnan(X)
    known = np.where(missing, 0.0, X)

    def predict(content, others):
        full = others.copy()
        full[rows] = content @ state.U
        return (signal(state, S, full)[rows] @ state.U.T)[missing]

    nobody = np.zeros_like(scores)
    content = np.zeros_like(known)

    def residual(x):
        content[missing] = x
        return x - predict(content, nobody)

    size = int(missing.sum())
    operator = LinearOperator((size, size), matvec=residual, dtype=float)
    guess = None if start is None else start[missing]
    values, _ = cg(operator, predict(known, scores), x0=guess, rtol=tol, maxiter=500)
    known[missing] = values
    scores = scores.copy()
    scores[rows] = known @ state.U
    return known, scores


def gap_covariances(state: Relational, observed, gains) -> tuple[np.ndarray, float]:
    """Sum of the covariances of missing entries (d, d), and the sum of half their log determinants.

    ``observed`` (m, d) are the patterns, ``gains`` the mean of sigma2 / v over the spectrum for
    every axis (q + r,): rows are taken one at a time, each with the mean precision of a row.
    """
    U, sigma2 = state.U, state.sigma2
    total, entropy = np.zeros((len(U), len(U))), 0.0
    kept = gains < 1.0 - 1e-12
    roots = np.sqrt(1.0 - gains[kept])
    for row in ~observed:
        if not row.any():
            continue
        B = U[np.ix_(row, kept)] * roots
        inner = Cholesky(np.eye(B.shape[1]) - B.T @ B)
        half = inner.half_solve(B.T)
        total[np.ix_(row, row)] += sigma2 * (np.eye(len(B)) + half.T @ half)
        entropy += 0.5 * (len(B) * (1 + np.log(2 * np.pi * sigma2)) - inner.logdet())
    return total, entropy


def conditional_log_density(state: Relational, S, scores, norms, new) -> float:
    """Log density of the rows ``new`` given all others, on a graph small enough for dense algebra.

    ``scores`` (n, q + r) and squared lengths ``norms`` (n,) are those of all centred rows.
    """
    d, k = state.U.shape
    q, m = len(state.a), int(np.sum(new))
    lam, V = np.linalg.eigh(np.eye(S.shape[0]) - S.toarray())
    v = variances_at(state, np.maximum(lam, 0.0)[:, None])
    total = 0.0
    for j in range(q):
        K = (V * v[:, j]) @ V.T
        total += _normal(K, scores[:, j]) - _normal(K[np.ix_(~new, ~new)], scores[~new, j])
    own = state.c[q:] + state.sigma2
    squares = np.sum(scores[new] ** 2, axis=0)
    rest = norms[new].sum() - squares.sum()
    total -= 0.5 * np.sum(m * np.log(2 * np.pi * own) + squares[q:] / own)
    return float(
        total - 0.5 * (m * (d - k) * np.log(2 * np.pi * state.sigma2) + rest / state.sigma2)
    )


def _normal(K, s):
    factor = Cholesky(K)
    z = factor.half_solve(s)
    return -0.5 * (len(s) * np.log(2 * np.pi) + factor.logdet() + z @ z)


def _eigenvalues(krylov):
    return np.maximum(1.0 - krylov.nodes, 0.0)


def _shared_gain(state, lam, temper):
    q = len(state.a)
    shared = state.a * smoothness(lam, state.beta)
    return shared / (shared + temper * (state.c[:q] + state.sigma2))
