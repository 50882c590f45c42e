"""Probabilistic relational PCA [LYZ09]: PPCA of rows that are mixed over their links.

    X = 1 mu' + Z W' + E,    cov(rows of Z) = cov(rows of E) / sigma2 = Delta^-1
    Delta = gamma I + (alpha I + A)(alpha I + A) = R'R

Since (R X)'(R X) = X' Delta X, the model is PPCA of R (X - 1 mu'), with R never squared and
Delta never formed. Theorem 4 is the closed form of PPCA on these rows, and EM by (19)-(22)
is its EM. Without links and with gamma = 0, alpha = 1 this is PPCA.

    here      X     Z     W, sigma2     A     n, d, q     mu
    [LYZ09]   T'    X'    W, sigma^2    A     N, d, q     mu, (16)

A fixed low-pass filter in the place of R, powers of the normalised adjacency, gives PCA
of smoothed content.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from gnomon.linalg.data import Centered, Data
from gnomon.linalg.graph import normalized
from gnomon.linalg.mixed import Mixed


def mixing(A, alpha: float, gamma: float) -> sparse.csr_array:
    """R with R'R = Delta: alpha I + A, stacked on sqrt(gamma) I where gamma is not zero."""
    eye = sparse.eye_array(A.shape[0], format="csr")
    R = sparse.csr_array(alpha * eye + A)
    if gamma == 0:
        return R
    return sparse.csr_array(sparse.vstack([R, np.sqrt(gamma) * eye], format="csr"))


def relational_mean(X: Data, R) -> np.ndarray:
    """The maximum-likelihood mean X' Delta 1 / (1' Delta 1), eq. (16), in float64."""
    weights = R.T @ (R @ np.ones(R.shape[1]))
    weights /= weights.sum()
    mean = np.asarray(X.T @ weights[:, None], dtype=float).ravel()
    if X.is_sparse:
        return mean
    return mean + np.asarray(Centered(X, mean).T @ weights[:, None], dtype=float).ravel()


def log_determinant(A, alpha: float, gamma: float) -> float:
    """Logarithm of |Delta| from a sparse LU of (alpha + i sqrt(gamma)) I + A; -inf if singular.

    Erratum E-LYZ09-2: a singular Delta is a singular precision, and has no density.
    """
    eye = sparse.eye_array(A.shape[0], format="csc")
    shifted = sparse.csc_array((alpha + 1j * np.sqrt(gamma)) * eye + A)
    try:
        diagonal = splu(shifted).U.diagonal()
    except RuntimeError:
        return -np.inf
    with np.errstate(divide="ignore"):
        return 2.0 * float(np.sum(np.log(np.abs(diagonal))))


def smooth(S, B, power: int) -> np.ndarray:
    """S^power B."""
    for _ in range(power):
        B = S @ B
    return B


def filtered(A, X: Data, power: int) -> Data:
    """S^power X for the normalised adjacency S with self-loops, never formed."""
    S = normalized(A).astype(X.dtype)
    for _ in range(power):
        X = Mixed(S, X)
    return X
