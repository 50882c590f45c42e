"""Strength of supervision: labels completed on all rows, then SPPCA in closed form.

With learnt noise, few labels hardly turn the subspace of [YYTKW06]: n_1 c label entries stand
against n d inputs. Here the labels are first completed, E[y | x] on every row, and the label
block then holds a stated share s of the energy:

    stage 1    y = m + B'(x - xbar) + e,  e ~ N(0, Sigma)     ridge on the labelled rows
    stage 2    PCA of [sqrt((1-s)/tx) x, sqrt(s/tc) c],       c = Sigma^(-1/2) B'(x - xbar)

    tx, tc      total variance of x and of c over all rows
    r(s)        = (1-s)/s tc/tx, the ratio of noise variances at which stage 2 is Theorem 2

s = 0 is PCA and s = 1 keeps only what predicts y. Stage 2 has no iteration and no local optimum.
All algebra is in the pool: coordinates f on the leading principal directions of all rows.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from gnomon.linalg.data import Data, Weighted
from gnomon.linalg.eigen import from_dual, from_moments, krylov_pairs, route
from gnomon.linalg.solve import fix_signs
from gnomon.models.completion import TINY, Completion, complete

# More directions than these added nothing to stage 1 on any of the sets measured.
POOL = 150
# Nor do more labelled rows than these: some hundred coefficients are certain long before.
MOST_ROWS = 50_000
# Noise floor, in units of the mean variance of a column of x.
NOISE_FLOOR = 1e-6
# Its fixed point is near from the start.
NOISE_STEPS = 200
# Energies below this are rounding: their directions are empty.
NO_ENERGY = 1e-14


class Pool(NamedTuple):
    """Leading principal directions of centred data: axes V (d, p), variances (p,), tr S."""

    data: Data
    axes: np.ndarray
    variances: np.ndarray
    total: float
    weights: np.ndarray | None = None


class Directions(NamedTuple):
    """Stage 2 in pool coordinates: T = F R, eigenvectors U (p, q), energies and shares."""

    R: np.ndarray
    U: np.ndarray
    energies: np.ndarray
    x_share: np.ndarray
    y_share: np.ndarray


class Supervised(NamedTuple):
    """SPPCA at a stated strength, in the units of x.

    T = (x - mean)' projection; E[z | x, c] = T * latent with covariance ``covariance``;
    x = W z + noise of variance sigma2 and c = W_y z + noise of variance sigma2_y, where
    c = whitener (y - mean) and E[y | x] = offset + (x - mean)' coef.
    """

    W: np.ndarray
    sigma2: float
    projection: np.ndarray
    latent: np.ndarray
    covariance: np.ndarray
    W_y: np.ndarray
    sigma2_y: float
    coef: np.ndarray
    offset: np.ndarray
    y_covariance: np.ndarray
    whitener: np.ndarray
    x_share: np.ndarray
    y_share: np.ndarray


def pool_size(q: int) -> int:
    """Number of principal directions that stage 1 sees for q components."""
    return max(POOL, 3 * q)


def pool(X: Data, size: int, rng, leading=None) -> Pool:
    """At most ``size`` principal directions of centred X, the first ``leading`` ones converged."""
    size = min(size, *X.shape)
    way = route(X, size)
    if way == "subspace":
        values, V = krylov_pairs(X, size, rng, leading=leading)
    else:
        values, V, _ = (from_moments if way == "moments" else from_dual)(X, size)
    kept = max(1, int(np.sum(values > 1e-12 * values[0])))
    data, weights = (X.X, X.weights) if isinstance(X, Weighted) else (X, None)
    # Rows that are all equal have one direction, of next to no variance.
    variances = np.maximum(values[:kept] / X.n_samples, TINY)
    total = max(X.squared_norm / X.n_samples, TINY)
    return Pool(data, fix_signs(V[:, :kept]), variances, total, weights)


def truncated(pool: Pool, size: int) -> Pool:
    """The pool's first ``size`` directions; the total variance stays that of all."""
    return pool._replace(axes=pool.axes[:, :size], variances=pool.variances[:size])


def coordinates(pool: Pool, rows) -> np.ndarray:
    """Coordinates F (m, p) of the rows that a mask or a sorted index selects."""
    return np.asarray(pool.data.rows(rows) @ pool.axes, dtype=float)


def labelled_rows(pool: Pool, observed) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the rows with an output and a weight, at most MOST_ROWS, and their weights."""
    weights = np.ones(len(observed)) if pool.weights is None else pool.weights
    rows = np.flatnonzero(observed.any(axis=1) & (weights > 0))
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))
    return rows, weights[rows]


def supervise(pool: Pool, Y, observed, q, s, codes=None, votes=None) -> Supervised:
    """SPPCA with share s of the energy in the label block; codes are the classes, if there are.

    Directions beyond those that carry energy (s = 1 has as many as outputs) are zero. Where
    nothing is labelled, or x says nothing about y, it is PCA whatever s. Unlabelled rows that
    ``votes`` name take part in stage 1; the covariance of y is still that of labelled rows.
    """
    completion = completed(pool, Y, observed, codes)
    if votes is None:
        return assemble(pool, completion, q, s)
    with_votes = votes.fit or completed_with_votes(pool, Y, observed, codes, votes)
    found = assemble(pool, with_votes, q, s)
    return found._replace(y_covariance=completion.covariance)


def completed(pool: Pool, Y, observed, codes=None) -> Completion:
    """Stage 1 on the labelled rows of the pool."""
    rows, weights = labelled_rows(pool, observed)
    labels = None if codes is None else codes[rows]
    return complete(coordinates(pool, rows), Y[rows], observed[rows], weights, labels)


def completed_with_votes(pool: Pool, Y, observed, codes, votes) -> Completion:
    """Stage 1 on the labelled rows and on those that votes have given a class."""
    rows, weights = labelled_rows(pool, observed)
    others = np.ones(len(votes.rows)) if pool.weights is None else pool.weights[votes.rows]
    everyone = np.concatenate([rows, votes.rows])
    order = np.argsort(everyone)
    return complete(
        coordinates(pool, everyone[order]),
        np.vstack([Y[rows], votes.Y])[order],
        np.ones((len(everyone), Y.shape[1]), dtype=bool),
        np.concatenate([weights, others * votes.weights])[order],
        np.concatenate([codes[rows], votes.codes])[order],
        np.concatenate([weights, others])[order],
    )


def label_block(completion: Completion, variances) -> np.ndarray:
    """G = S^(1/2) B Sigma^(-1/2) (p, c): label block per unit of every direction's spread."""
    return np.sqrt(variances)[:, None] * (completion.B @ inverse_root(completion.covariance))


def inverse_root(S) -> np.ndarray:
    """S^(-1/2), symmetric: turning the outputs turns it alike."""
    values, vectors = np.linalg.eigh(S)
    return (vectors / np.sqrt(values)) @ vectors.T


def directions(variances, total, G, q, s) -> Directions:
    """Stage 2: leading eigenvectors U of (1-s)/tx S + s/tc G G' and T = F S^(-1/2) U l^(1/2).

    T is scaled to the units of x; at s = 0 it is the principal components.
    """
    energy = float(np.sum(G**2))
    s = s if energy > 0 else 0.0
    GG = G @ G.T / energy if energy > 0 else np.zeros((len(G), len(G)))
    A = s * GG
    A[np.diag_indices_from(A)] += (1 - s) / total * variances
    q = min(q, len(A))
    values, U = eigh(A, subset_by_index=(len(A) - q, len(A) - 1))
    values, U = values[::-1], U[:, ::-1]
    active = values > NO_ENERGY
    energies = np.where(active, values, 0.0)
    U = np.where(active, U, 0.0)
    R = np.sqrt(total / variances)[:, None] * U * np.sqrt(energies)
    x_share = variances @ U**2 / total
    return Directions(R, U, energies, x_share, np.sum((G.T @ U) ** 2, axis=0) / max(energy, TINY))


def assemble(pool: Pool, completion: Completion, q, s) -> Supervised:
    """Both stages in the units of x: projection, loadings, noise, and prediction of y."""
    G = label_block(completion, pool.variances)
    s = s if np.any(G) else 0.0
    found = directions(pool.variances, pool.total, G, q, s)
    d, c = pool.axes.shape[0], G.shape[1]
    noise = _discarded(found.energies, d + (c if s > 0 else 0))
    energies = np.maximum(found.energies, NO_ENERGY)
    shrink = np.sqrt(np.maximum(1 - noise / energies, 0.0)) * (found.energies > 0)
    loadings = np.sqrt(pool.variances)[:, None] * found.U * shrink
    W = pool.axes @ loadings
    signs = _signs(W)
    return Supervised(
        W=padded(W * signs, q),
        sigma2=_input_noise(pool, loadings),
        projection=padded(pool.axes @ (found.R * signs), q),
        latent=padded(shrink / np.sqrt(pool.total * energies), q),
        covariance=np.diag(1 - padded(shrink**2, q)),
        W_y=padded((G.T @ found.U) * shrink * signs, q),
        sigma2_y=noise * float(np.sum(G**2)) / s if s > 0 else np.inf,
        coef=pool.axes @ completion.B,
        offset=completion.offset,
        y_covariance=completion.covariance,
        whitener=inverse_root(completion.covariance),
        x_share=padded(found.x_share, q),
        y_share=padded(found.y_share, q),
    )


def _input_noise(pool: Pool, loadings):
    """The most likely noise of x for these loadings (p, q), those of the labels left aside.

    The noise that is tied to that of the labels is lower, since these repeat what x says. With
    t_k the variance along the axes of the loadings, of lengths l_k, the step is EM's.
    """
    d = len(pool.axes)
    Q, lengths, _ = np.linalg.svd(loadings / np.sqrt(pool.total), full_matrices=False)
    along, squares = (pool.variances / pool.total) @ Q**2, lengths**2
    outside, least = max(1 - along.sum(), 0.0), NOISE_FLOOR / d
    sigma2 = max(outside / max(d - len(along), 1), least)
    for _ in range(NOISE_STEPS):
        before, spread = sigma2, squares + sigma2
        left = along * (sigma2 / spread) ** 2 + squares * sigma2 / spread
        sigma2 = max((outside + left.sum()) / d, least)
        if not abs(sigma2 - before) > 1e-12 * sigma2:
            break
    return sigma2 * pool.total


def _discarded(energies, dimension):
    """Mean energy of the directions left out: the noise of Theorem 2 in shares of the total."""
    left = dimension - len(energies)
    return max(1.0 - float(energies.sum()), 0.0) / left if left > 0 else 0.0


def _signs(W):
    return np.where(np.sum(fix_signs(W) * W, axis=0) < 0, -1.0, 1.0)


def padded(values, q):
    """Zeros for components that a pool of fewer than q directions cannot have."""
    missing = q - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]) if missing else values
