"""What the relational model says of nodes: shared parts, missing content, densities.

Everything is a function of L applied to the scores s = (X - 1 mu') U of all nodes of a graph,
old and new; the graph may be larger than the one that was fitted (see `relational`).
"""

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from gnomon.linalg.lanczos import COLUMNS, apply, lanczos, unit_rule
from gnomon.linalg.solve import Cholesky, stacked_covariances
from gnomon.models.relational import Relational, smoothness, variances_at

# Steps for a filter that is applied once: more than in a fit, where it is applied every round.
STEPS = 40
# Entries of small matrices that are worked on at a time.
BATCH_ENTRIES = 2**21


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
    noise = state.c[: len(state.a)] + state.sigma2

    def variance(lam):
        h = state.a * smoothness(lam, state.beta)
        return h * noise / (h + noise)

    return _diagonals(S, nodes, variance, steps)


def noise_shares(state: Relational, S, nodes, *, steps: int = STEPS) -> np.ndarray:
    """Diagonals (m, q + r) of sigma2 / v for some nodes: their precisions on the axes."""
    q, sigma2 = len(state.a), state.sigma2
    smooth = _diagonals(S, nodes, lambda lam: sigma2 / variances_at(state, lam), steps)
    own = sigma2 / (state.c[q:] + sigma2)
    return np.concatenate([smooth, np.tile(own, (len(nodes), 1))], axis=1)


def _diagonals(S, nodes, function, steps):
    """Entries (m, q) of f_k(L) on the diagonal."""
    out = []
    for start in range(0, len(nodes), COLUMNS):
        theta, weights = unit_rule(S, nodes[start : start + COLUMNS], steps)
        values = function(np.maximum(1.0 - theta, 0.0)[:, :, None])
        out.append(np.einsum("jm,jmq->mq", weights, values))
    return np.concatenate(out)


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


def gap_covariances(state: Relational, observed, shares) -> tuple[np.ndarray, float]:
    """Sum of the covariances of missing entries (d, d), and their entropy.

    ``observed`` (m, d) are the patterns, ``shares`` the mean of sigma2 / v over the spectrum for
    every axis (q + r,): rows are taken one at a time, each with the mean precision of a row.
    """
    sigma2, d = state.sigma2, len(state.U)
    missing, counts = np.unique(~observed, axis=0, return_counts=True)
    total, entropy = np.zeros((d, d)), 0.0
    for rows, places, covariances, log_dets in _gap_blocks(state, missing, shares[None]):
        weights = counts[rows]
        where = places[:, :, None], places[:, None, :]
        np.add.at(total, where, weights[:, None, None] * covariances)
        size = places.shape[1]
        entropy += 0.5 * weights @ (size * (1 + np.log(2 * np.pi * sigma2)) + log_dets)
    return total, float(entropy)


def gap_deviations(state: Relational, S, nodes, observed) -> np.ndarray:
    """Standard deviations (m, d) of the missing entries of some nodes, zero where observed.

    Those given the observed entries of the node and the content of all other nodes, where gaps
    count as if they were known.
    """
    out = np.zeros(observed.shape)
    shares = noise_shares(state, S, nodes)
    for rows, places, covariances, _ in _gap_blocks(state, ~observed, shares):
        deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        out[rows[:, None], places] = deviations
    return out


def _gap_blocks(state, missing, shares):
    """Rows (p,), columns (p, g) and covariances (p, g, g) of their gaps, a number g at a time.

    The precision of a row is (I - U diag(1 - share) U') / sigma2. Also the log determinants
    of the covariances over sigma2. Rows with as many gaps run side by side.
    """
    U, sigma2 = state.U, state.sigma2
    roots = np.broadcast_to(np.sqrt(np.maximum(1.0 - shares, 0.0)), (len(missing), U.shape[1]))
    sizes = missing.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]):
        chosen = np.flatnonzero(sizes == size)
        run = max(1, BATCH_ENTRIES // (max(size, U.shape[1]) ** 2))
        for start in range(0, len(chosen), run):
            rows = chosen[start : start + run]
            places = np.nonzero(missing[rows])[1].reshape(-1, size)
            B = U[places] * roots[rows, None, :]
            turned = np.swapaxes(B, 1, 2)
            inner, log_dets = stacked_covariances(np.eye(U.shape[1]) - turned @ B)
            yield rows, places, sigma2 * (np.eye(size) + B @ inner @ turned), log_dets


def conditional_log_density(state: Relational, S, scores, norms, new) -> float:
    """Log density of the rows ``new`` given all others, on a graph small enough for dense algebra.

    ``scores`` (n, q + r) and squared lengths ``norms`` (n,) are those of all centred rows.
    """
    d, k = state.U.shape
    q, m = len(state.a), int(np.sum(new))
    lam, V = np.linalg.eigh(np.eye(S.shape[0]) - S.toarray())
    v = variances_at(state, np.maximum(lam, 0.0)[:, None])
    # Given all others the rows have the precision P of all, cut to them, and P s in place of s.
    pulled = V[new] @ ((V.T @ scores[:, :q]) / v)
    total = -0.5 * m * q * np.log(2 * np.pi)
    for j in range(q):
        precision = Cholesky((V[new] / v[:, j]) @ V[new].T)
        total += 0.5 * (precision.logdet() - np.sum(precision.half_solve(pulled[:, j]) ** 2))
    own = state.c[q:] + state.sigma2
    squares = np.sum(scores[new] ** 2, axis=0)
    rest = norms[new].sum() - squares.sum()
    total -= 0.5 * np.sum(m * np.log(2 * np.pi * own) + squares[q:] / own)
    return float(
        total - 0.5 * (m * (d - k) * np.log(2 * np.pi * state.sigma2) + rest / state.sigma2)
    )


def _eigenvalues(krylov):
    return np.maximum(1.0 - krylov.nodes, 0.0)


def _shared_gain(state, lam, temper):
    q = len(state.a)
    shared = state.a * smoothness(lam, state.beta)
    return shared / (shared + temper * (state.c[:q] + state.sigma2))
