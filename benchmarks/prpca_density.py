"""Log density of the content of held-out nodes, for the tables of prpca_accuracy.py."""

import numpy as np

from gnomon.linalg.solve import Cholesky
from gnomon.models.relational.model import State, eigenvalues, variances_at


def conditional_log_density(state: State, S, coordinates, norms, new) -> float:
    """Log density of the rows ``new`` given all others, on a graph small enough for dense algebra.

    ``coordinates`` (n, q + r) and squared lengths ``norms`` (n,) are those of all centred rows.
    """
    d, k = state.U.shape
    q, m = len(state.a), int(np.sum(new))
    theta, V = np.linalg.eigh(S.toarray())
    v = variances_at(state, eigenvalues(theta)[:, None])
    # Given all others the rows have the precision P of all, cut to them, and P s in place of s.
    pulled = V[new] @ ((V.T @ coordinates[:, :q]) / v)
    total = -0.5 * m * q * np.log(2 * np.pi)
    for j in range(q):
        precision = Cholesky((V[new] / v[:, j]) @ V[new].T)
        total += 0.5 * (precision.logdet() - np.sum(precision.half_solve(pulled[:, j]) ** 2))
    own = state.c[q:] + state.sigma2
    squares = np.sum(coordinates[new] ** 2, axis=0)
    total -= 0.5 * np.sum(m * np.log(2 * np.pi * own) + squares[q:] / own)
    rest = norms[new].sum() - squares.sum()
    noise = m * (d - k) * np.log(2 * np.pi * state.sigma2) + rest / state.sigma2
    return float(total - 0.5 * noise)
