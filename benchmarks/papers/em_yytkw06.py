"""EM of [YYTKW06], Algorithm 2, as the paper ran it: random loadings, noise 1e-5, 1000 steps.

Steps from second moments, which are equal to steps on the rows. Eq. (12) is corrected. Without
unlabelled rows it is Algorithm 1.
"""

import numpy as np

START_NOISE = 1e-5
STEPS = 1000


def paper_em(X, Y, unlabelled, q, rng):
    """Loadings W of the inputs and their noise variance; X and unlabelled are centred."""
    Y = Y - Y.mean(axis=0)
    S, S2, XY, YY = X.T @ X, unlabelled.T @ unlabelled, X.T @ Y, Y.T @ Y
    counts = len(X), len(unlabelled)
    W, V = rng.standard_normal((X.shape[1], q)), rng.standard_normal((Y.shape[1], q))
    noise = START_NOISE, START_NOISE
    for _ in range(STEPS):
        W, V, noise = step(W, V, noise, (S, S2, XY, YY), counts)
    return W, noise[0]


def step(W, V, noise, moments, counts):
    """One E-step, (5), (6), (11), (12), and M-step, (13) to (16)."""
    (S, S2, XY, YY), (n1, n2), (sx, sy) = moments, counts, noise
    inputs = W.T @ W / sx + np.eye(W.shape[1])
    covariance, covariance2 = np.linalg.inv(inputs + V.T @ V / sy), np.linalg.inv(inputs)
    # Posterior means are X P + Y R for labelled rows, X P2 for the others.
    P, R, P2 = W @ covariance / sx, V @ covariance / sy, W @ covariance2 / sx
    SP, SP2, cross = S @ P, S2 @ P2, P.T @ XY @ R
    XZ, YZ = SP + XY @ R + SP2, XY.T @ P + YY @ R
    C1 = n1 * covariance + P.T @ SP + cross + cross.T + R.T @ YY @ R
    W = np.linalg.solve(C1 + n2 * covariance2 + P2.T @ SP2, XZ.T).T
    V = np.linalg.solve(C1, YZ.T).T
    sx = (np.trace(S) + np.trace(S2) - np.sum(W * XZ)) / ((n1 + n2) * len(W))
    sy = (np.trace(YY) - np.sum(V * YZ)) / (n1 * len(V))
    # Exact fits of the outputs would divide by zero.
    return W, V, (max(sx, 1e-12), max(sy, 1e-12))
