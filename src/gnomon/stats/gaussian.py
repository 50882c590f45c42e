"""Linear Gaussian models seen from one view: x = W z + e, z ~ N(0, I), e ~ N(0, sigma2 I).

Nothing of size d x d is formed: all goes through M = sigma2 I + W'W, of size q x q.

    here     W, sigma2       M     weights
    [TB99]   W, sigma^2      M     W M^-1
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data
from gnomon.linalg.solve import Cholesky, above_rounding

# Share of the mean variance below which noise may not fall: where the latent variables explain
# all of a view, its noise would run to zero and the likelihood to infinity.
NOISE_FLOOR = 1e-9
# A t distribution of fewer degrees of freedom has no variance.
LEAST_FREEDOM = 3


class View(NamedTuple):
    """Loadings W (d, q) and noise variance of one kind of observation."""

    W: np.ndarray
    sigma2: float


class Posterior(NamedTuple):
    """z | x ~ N((x - mean) @ weights, covariance): the map (d, q) and the covariance (q, q)."""

    weights: np.ndarray
    covariance: np.ndarray


def latent_posterior(W, sigma2) -> Posterior:
    """Posterior of z given a centred row x, eqs. (9)-(10) of [TB99]."""
    q = W.shape[1]
    M = Cholesky(sigma2 * np.eye(q) + W.T @ W)
    return Posterior(M.solve(W.T).T, sigma2 * M.solve(np.eye(q)))


def log_density(X: Data, W, sigma2) -> np.ndarray:
    """Log of N(x; 0, W W' + sigma2 I) of every row (n,)."""
    d, q = W.shape
    M = Cholesky(sigma2 * np.eye(q) + W.T @ W)
    explained = np.sum(M.half_solve((X @ W).T.astype(float)) ** 2, axis=0)
    distance = (X.row_squared_norms() - explained) / sigma2
    logdet = (d - q) * np.log(sigma2) + M.logdet()
    return -0.5 * (d * np.log(2 * np.pi) + logdet + np.maximum(distance, 0))


class Distances(NamedTuple):
    """How far rows lie from the mean: T2 within the span of W, Q squared from that span (n,).

    T2 is in units of the variances there, so that T2 + Q / sigma2 is Mahalanobis' distance.
    """

    t2: np.ndarray
    q: np.ndarray


def distances(X: Data, W, sigma2) -> Distances:
    """Distances of centred rows."""
    lengths, vectors = np.linalg.eigh(W.T @ W)
    along = (X @ (W @ vectors)).astype(float)
    return split_distances(lengths, along, X.row_squared_norms(), sigma2)


def split_distances(lengths, along, squares, sigma2) -> Distances:
    """T2 = b'A^-1 (A + sigma2 I)^-1 b and Q = r'r - b'A^-1 b, with A = W'W and b = W'r.

    ``lengths`` are the eigenvalues of A and ``along`` is b in its eigenvectors, ``squares`` r'r.
    """
    kept = above_rounding(lengths.ravel()).reshape(lengths.shape)
    scores = np.where(kept, along**2 / np.where(kept, lengths, 1.0), 0.0)
    t2 = np.sum(scores / (lengths + sigma2), axis=1)
    return Distances(t2, np.maximum(squares - scores.sum(axis=1), 0.0))


def distance_parts(R, W, sigma2) -> Distances:
    """What each entry of the centred rows R (n, d) adds to both distances, of shape (n, d)."""
    lengths, vectors = np.linalg.eigh(W.T @ W)
    kept = above_rounding(lengths)
    U = (W @ vectors)[:, kept] / np.sqrt(lengths[kept])
    scores = R @ U
    return Distances(R * (scores / (lengths[kept] + sigma2) @ U.T), (R - scores @ U.T) ** 2)


def covariance(W, sigma2) -> np.ndarray:
    """W W' + sigma2 I (d, d)."""
    return W @ W.T + sigma2 * np.eye(W.shape[0])


def precision(W, sigma2) -> np.ndarray:
    """Inverse of the covariance (d, d), through the q x q matrix M."""
    d, q = W.shape
    M = Cholesky(sigma2 * np.eye(q) + W.T @ W)
    return (np.eye(d) - W @ M.solve(W.T)) / sigma2


def sample(rng: np.random.Generator, n, mean, W, sigma2) -> np.ndarray:
    """Draws of n rows."""
    d, q = W.shape
    Z = rng.standard_normal((n, q))
    return mean + Z @ W.T + np.sqrt(sigma2) * rng.standard_normal((n, d))


def variance_of_t(freedom) -> np.ndarray:
    """Variance of a t distribution: what widens a prediction whose variance few values show."""
    freedom = np.maximum(freedom, LEAST_FREEDOM)
    return freedom / (freedom - 2)
