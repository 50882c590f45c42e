"""A plain NumPy writing of the variational algorithm of [G13], for comparison only.

Algorithm 1 as in the paper: explicit inverses, expectations of the scores by naive sampling,
random starts, updates (4)-(10) in turn with their second moments. Letters are the paper's.
"""

import numpy as np
from scipy.special import ndtr

N_SAMPLES = 200


def fit(X, y, R, n_sweeps, rng, alpha=1.0, beta=1.0):
    """Factors after the given number of sweeps; X is (N, D), y has classes 0..K-1."""
    X = X.T
    D, N = X.shape
    K = y.max() + 1
    Q, Z = rng.standard_normal((D, R)), rng.standard_normal((R, N))
    W, b, T = rng.standard_normal((R, K)), np.zeros(K), rng.standard_normal((N, K))
    Q_covariance = np.stack([np.eye(D)] * R)
    bW_covariance = np.stack([np.eye(R + 1)] * K)
    Z_covariance = np.eye(R)
    XX = X @ X.T
    for _ in range(n_sweeps):
        phi = (alpha + 0.5) / (1 / beta + 0.5 * (Q**2 + Q_covariance.diagonal(0, 1, 2).T))
        for s in range(R):
            Q_covariance[s] = np.linalg.inv(np.diag(phi[:, s]) + XX)
            Q[:, s] = Q_covariance[s] @ (X @ Z[s])
        WW = W @ W.T + bW_covariance[:, 1:, 1:].sum(axis=0)
        Wb = W @ b + bW_covariance[:, 1:, 0].sum(axis=0)
        Z_covariance = np.linalg.inv(np.eye(R) + WW)
        Z = Z_covariance @ (Q.T @ X + W @ T.T - Wb[:, None])
        lam = (alpha + 0.5) / (1 / beta + 0.5 * (b**2 + bW_covariance[:, 0, 0]))
        variances = bW_covariance.diagonal(0, 1, 2).T[1:]
        psi = (alpha + 0.5) / (1 / beta + 0.5 * (W**2 + variances))
        lifted = np.vstack([np.ones(N), Z])
        moments = lifted @ lifted.T
        moments[1:, 1:] += N * Z_covariance
        for c in range(K):
            prior = np.diag(np.concatenate([[lam[c]], psi[:, c]]))
            bW_covariance[c] = np.linalg.inv(prior + moments)
            mean = bW_covariance[c] @ (lifted @ T[:, c])
            b[c], W[:, c] = mean[0], mean[1:]
        T = sampled_scores(Z.T @ W + b, y, rng)
    return {"Q": Q, "phi": phi, "Z": Z, "W": W, "b": b, "bW_covariance": bW_covariance}


def sampled_scores(M, y, rng):
    """E[T] by naive sampling over u, as in Girolami and Rogers (2006)."""
    rows = np.arange(len(M))
    u = rng.standard_normal((N_SAMPLES, len(M)))
    gaps = u[:, :, None] + M[rows, y][None, :, None] - M[None]
    gaps[:, rows, y] = np.inf
    cdf = np.maximum(ndtr(gaps), 1e-300)
    product = cdf.prod(axis=2)
    normaliser = np.maximum(product.mean(axis=0), 1e-300)
    pdf = np.exp(-0.5 * gaps**2) / np.sqrt(2 * np.pi)
    shift = np.einsum("un,unc->nc", product, pdf / cdf) / N_SAMPLES / normaliser[:, None]
    T = M - shift
    T[rows, y] = M[rows, y] + shift.sum(axis=1)
    return T
