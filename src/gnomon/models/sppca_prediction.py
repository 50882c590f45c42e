"""Outputs given inputs, y | x ~ N(offset + (x - mean)' coef, covariance), with gaps on both sides.

    E[y | x_o]   = offset + (E[x | x_o] - mean)' coef
    Cov[y | x_o] = covariance + coef' Cov[x | x_o] coef

Rows with the same gaps share a covariance, so c x c work is for each pattern. An output that
is not seen takes part as a row and a column of the identity, which changes nothing.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.solve import Cholesky
from gnomon.models.sppca import State


class Prediction(NamedTuple):
    """The map coef (d, c), the mean of y at the mean of x (c,), and the covariance (c, c)."""

    coef: np.ndarray
    offset: np.ndarray
    covariance: np.ndarray


def prediction(state: State) -> Prediction:
    """Prediction of y through z, section 3.4.1 of [YYTKW06]."""
    q = state.W.shape[1]
    M = Cholesky(state.sigma2 * np.eye(q) + state.W.T @ state.W)
    coef = M.solve(state.W.T).T @ state.W_y.T
    latent = state.sigma2 * M.solve(np.eye(q))
    covariance = state.W_y @ latent @ state.W_y.T + np.diag(state.sigma2_y)
    return Prediction(coef, state.mean_y, covariance)


def latent_posterior(state: State, XW, Y, observed):
    """Means (n, q) and covariances (n, q, q) of z given x, as X W, and the outputs seen."""
    q = state.W.shape[1]
    seen, pattern = np.unique(observed, axis=0, return_inverse=True)
    products = (state.W_y[:, :, None] * state.W_y[:, None, :]).reshape(-1, q * q)
    A = np.eye(q) + state.W.T @ state.W / state.sigma2
    A = A + ((seen / state.sigma2_y) @ products).reshape(-1, q, q)
    covariances = np.linalg.solve(A, np.broadcast_to(np.eye(q), A.shape))[pattern.ravel()]
    residual = np.where(observed, Y - state.mean_y, 0.0)
    b = XW / state.sigma2 + (residual / state.sigma2_y) @ state.W_y
    return np.einsum("nij,nj->ni", covariances, b), covariances


def stretched(mean, covariance, factors):
    """Mean (n, q) and covariance (..., q, q) of variables times factors (q,)."""
    return mean * factors, covariance * np.outer(factors, factors)


def spread_by_gaps(found: Prediction, W, sigma2, gaps) -> np.ndarray:
    """Cov[y | x_o] (P, c, c) for patterns of gaps (P, d) in x = W z + e."""
    q, c = W.shape[1], found.coef.shape[1]
    # Sizes are spelt out: of a single class there is no column, and -1 has no answer.
    d, p = W.shape[0], len(gaps)
    products = (W[:, :, None] * W[:, None, :]).reshape(d, q * q) / sigma2
    A = np.eye(q) + ((1.0 - gaps) @ products).reshape(-1, q, q)
    through = (found.coef[:, :, None] * W[:, None, :]).reshape(d, c * q)
    through = (gaps @ through).reshape(p, c, q)
    own = (found.coef[:, :, None] * found.coef[:, None, :]).reshape(d, c * c)
    spread = through @ np.linalg.solve(A, np.swapaxes(through, 1, 2))
    return found.covariance + spread + sigma2 * (gaps @ own).reshape(p, c, c)


def log_density(residual, observed, covariances, pattern) -> np.ndarray:
    """Log density (n,) of the outputs seen; row n has covariances[pattern[n]]."""
    solved, logdets = _solve_seen(residual, observed, covariances, pattern)
    distances = np.sum(np.where(observed, residual, 0.0) * solved, axis=1)
    return -0.5 * (distances + logdets + observed.sum(axis=1) * np.log(2 * np.pi))


def fill(mean, Y, observed, covariances, pattern):
    """Outputs (n, c) with those not seen at their means given x and the others; deviations."""
    residual = np.where(observed, Y - mean, 0.0)
    solved, _ = _solve_seen(residual, observed, covariances, pattern)
    means = mean + np.einsum("nij,nj->ni", covariances[pattern], solved)
    values = np.where(observed, Y, means)
    keys, which = _joint_patterns(observed, pattern)
    left = np.stack([_left_variance(covariances[p], seen) for p, seen in keys])
    return values, np.where(observed, 0.0, np.sqrt(left)[which])


def class_log_odds(mean, covariances, pattern, codes) -> np.ndarray:
    """Log density of every class's code (C, c) under the prediction (n, C), up to a constant."""
    L = np.linalg.cholesky(covariances)[pattern]
    away = np.linalg.solve(L, np.swapaxes(codes[None] - mean[:, None], 1, 2))
    return -0.5 * np.sum(away**2, axis=1)


def _solve_seen(residual, observed, covariances, pattern):
    """C_oo^-1 r for every row, zero where not seen, and log |C_oo|."""
    keys, which = _joint_patterns(observed, pattern)
    masked = np.stack([_seen_block(covariances[p], seen) for p, seen in keys])
    L = np.linalg.cholesky(masked)
    logdets = 2 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
    residual = np.where(observed, residual, 0.0)
    return np.linalg.solve(masked[which], residual[:, :, None])[:, :, 0], logdets[which]


def _joint_patterns(observed, pattern):
    """Distinct pairs (pattern of x, outputs seen) and which of them a row has."""
    joint = np.column_stack([pattern, observed])
    keys, which = np.unique(joint, axis=0, return_inverse=True)
    return [(int(key[0]), key[1:].astype(bool)) for key in keys], which.ravel()


def _seen_block(C, seen):
    both = np.outer(seen, seen)
    return np.where(both, C, 0.0) + np.diag(1.0 - seen)


def _left_variance(C, seen):
    """Variances of all outputs once those seen are known."""
    cross = np.where(seen[:, None], C, 0.0)
    return np.maximum(np.diagonal(C - cross.T @ np.linalg.solve(_seen_block(C, seen), cross)), 0.0)
