"""What the learnt relational model says of rows: embedding, missing entries, densities.

Everything is a function of L applied to the coordinates (X - 1 mu') U of all nodes of a graph,
old and new; the graph may be larger than the one that was fitted (see `model`). New rows are
centred: `Data`, or an array with NaN for gaps.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from gnomon.linalg.data import Data
from gnomon.linalg.graph import COLUMNS, apply, lanczos, normalized, unit_rule
from gnomon.linalg.solve import stacked_covariances
from gnomon.models.gaussian.gaps import BATCH_ENTRIES
from gnomon.models.relational import model
from gnomon.models.relational.model import State, eigenvalues, smoothness, variances_at

# Lanczos steps for a function that is applied once: more than in a fit, which takes many rounds.
STEPS = 40


class Nodes(NamedTuple):
    """Links among known rows and then new ones, and what is known of the first (n_known, k).

    For the learnt model these are coordinates, for the others latent variables.
    """

    adjacency: sparse.csr_array
    known: np.ndarray

    def stack(self, new) -> np.ndarray:
        """A row per node: the known ones, then the new ones."""
        return np.concatenate([self.known, new])


def embed(state: State, rows, nodes: Nodes, noise_factor: float = 1.0) -> np.ndarray:
    """E[f | X] (m, q) of new rows."""
    stacked = coordinates(state, rows, nodes)
    shared = shared_part(state, normalized(nodes.adjacency), stacked, noise_factor)
    return shared[len(nodes.known) :]


def coordinates(state: State, rows, nodes: Nodes) -> np.ndarray:
    """Coordinates (n, q + r) of all nodes, where gaps are filled from the row and its links."""
    if isinstance(rows, Data):
        return nodes.stack(np.asarray(rows @ state.U, dtype=float))
    return fill_new(state, rows, nodes)[1]


def fill_new(state: State, rows, nodes: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """New rows (m, d) with their gaps filled, and the coordinates (n, q + r) of all nodes."""
    missing = np.isnan(rows)
    stacked = nodes.stack(np.where(missing, 0.0, rows) @ state.U)
    gaps, filled = np.flatnonzero(missing.any(axis=1)), rows.copy()
    S, places = normalized(nodes.adjacency), len(nodes.known) + gaps
    filled[gaps], stacked = fill(state, S, stacked, places, rows[gaps])
    return filled, stacked


def log_density(state: State, rows: Data, A, rng) -> float:
    """Log density of rows given the links among them."""
    data = model.link(rows, A, rng, steps=STEPS)
    return model.log_likelihood(state, model.measure(state.U, len(state.a), data))


def shared_part(state: State, S, coordinates, noise_factor: float = 1.0) -> np.ndarray:
    """E[f | X] of all nodes (n, q), with the noise of the content times a factor."""
    q = len(state.a)
    krylov = lanczos(S, coordinates[:, :q], STEPS)
    shared = state.a * smoothness(eigenvalues(krylov.theta), state.beta)
    return apply(krylov, shared / (shared + noise_factor * (state.c[:q] + state.sigma2)))


def signal(state: State, S, coordinates) -> np.ndarray:
    """E[f + g | X] of all nodes on all axes (n, q + r)."""
    q, sigma2 = len(state.a), state.sigma2
    own = state.c[q:] / (state.c[q:] + sigma2)
    krylov = lanczos(S, coordinates[:, :q], STEPS)
    gain = 1.0 - sigma2 / variances_at(state, eigenvalues(krylov.theta))
    return np.concatenate([apply(krylov, gain), coordinates[:, q:] * own], axis=1)


def shared_variances(state: State, nodes: Nodes) -> np.ndarray:
    """Var[f | X] (m, q) of new rows: diagonals of a h (c + sigma2) / v as functions of L."""
    noise = state.c[: len(state.a)] + state.sigma2

    def variance(lam):
        h = state.a * smoothness(lam, state.beta)
        return h * noise / (h + noise)

    new = np.arange(len(nodes.known), nodes.adjacency.shape[0])
    return _diagonals(normalized(nodes.adjacency), new, variance)


def _diagonals(S, places, function):
    """Entries (m, q) of f_k(L) on the diagonal, some at a time."""
    out = []
    for start in range(0, len(places), COLUMNS):
        theta, weights = unit_rule(S, places[start : start + COLUMNS], STEPS)
        out.append(np.einsum("jm,jmq->mq", weights, function(eigenvalues(theta)[:, :, None])))
    return np.concatenate(out)


def fill(state: State, S, coordinates, places, X, *, start=None, tol=1e-8):
    """Missing entries of some nodes, given all that is observed.

    ``X`` (m, d) holds the centred content of the nodes at ``places``, NaN where missing;
    ``coordinates`` (n, q + r) those of all other nodes. The mean T of the missing entries solves
    T = E[content | T, observed], a positive-definite system, by conjugate gradients, from the
    entries of ``start`` if given. Returns X filled, and the coordinates of all nodes.
    """
    missing = np.isnan(X)
    filled = np.where(missing, 0.0, X)

    def predict(content, others):
        stacked = others.copy()
        stacked[places] = content @ state.U
        return (signal(state, S, stacked)[places] @ state.U.T)[missing]

    nobody, content = np.zeros_like(coordinates), np.zeros_like(filled)

    def residual(x):
        content[missing] = x
        return x - predict(content, nobody)

    size = int(missing.sum())
    operator = LinearOperator((size, size), matvec=residual, dtype=float)
    guess = None if start is None else start[missing]
    # SciPy's method stops relative to the right-hand side, so that a good start saves steps.
    filled[missing], _ = cg(operator, predict(filled, coordinates), guess, rtol=tol, maxiter=500)
    coordinates = coordinates.copy()
    coordinates[places] = filled @ state.U
    return filled, coordinates


def gap_deviations(state: State, gaps, nodes: Nodes) -> np.ndarray:
    """Standard deviations (m, d) of the entries of new rows in a mask of gaps, zero elsewhere.

    Those given the observed entries of the row and the content of all other rows, where gaps
    count as if they were known.
    """
    out, rows = np.zeros(gaps.shape), np.flatnonzero(gaps.any(axis=1))
    if len(rows) == 0:
        return out
    shares = noise_shares(state, normalized(nodes.adjacency), len(nodes.known) + rows)
    for part, columns, covariances, _ in gap_blocks(state, gaps[rows], shares):
        deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        out[rows[part][:, None], columns] = deviations
    return out


def noise_shares(state: State, S, places) -> np.ndarray:
    """Diagonals (m, q + r) of sigma2 / v for some nodes: their precisions on the axes."""
    q, sigma2 = len(state.a), state.sigma2
    smooth = _diagonals(S, places, lambda lam: sigma2 / variances_at(state, lam))
    own = sigma2 / (state.c[q:] + sigma2)
    return np.concatenate([smooth, np.tile(own, (len(places), 1))], axis=1)


def gap_blocks(state: State, missing, shares):
    """Rows (p,), columns (p, g) and covariances (p, g, g) of their gaps, a number g at a time.

    The precision of a row is (I - U diag(1 - share) U') / sigma2. Also the log determinants
    of the covariances over sigma2. Rows with as many gaps run side by side.
    """
    U, sigma2 = state.U, state.sigma2
    roots = np.broadcast_to(np.sqrt(np.maximum(1.0 - shares, 0.0)), (len(missing), U.shape[1]))
    for rows in _equal_gaps(missing, U.shape[1]):
        columns = np.nonzero(missing[rows])[1].reshape(len(rows), -1)
        B = U[columns] * roots[rows, None, :]
        turned = np.swapaxes(B, 1, 2)
        inner, log_dets = stacked_covariances(np.eye(U.shape[1]) - turned @ B)
        covariances = sigma2 * (np.eye(columns.shape[1]) + B @ inner @ turned)
        yield rows, columns, covariances, log_dets


def _equal_gaps(missing, k):
    """Rows with the same number of gaps, few enough at a time for their small matrices."""
    sizes = missing.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]):
        rows = np.flatnonzero(sizes == size)
        run = max(1, BATCH_ENTRIES // max(size, k) ** 2)
        for start in range(0, len(rows), run):
            yield rows[start : start + run]
