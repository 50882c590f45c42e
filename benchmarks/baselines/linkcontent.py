"""Joint factorisation of links and content (Zhu, Yu, Chi and Gong 2007).

    min |A - Z U Z'|^2 + weight |X - Z V'|^2 + ridge (|Z|^2 + |V|^2 + |U|^2)

Transductive: rows Z are found for the nodes at hand, new nodes have none.
"""

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from sklearn.decomposition import TruncatedSVD


def loss(Z, U, V, A, X, weight, ridge):
    """The objective and its gradients by Z, U, V; A and X stay sparse."""
    ZZ, AZ, XV = Z.T @ Z, A @ Z, X @ V
    inner = Z.T @ AZ
    links = -2 * np.sum(inner * U) + np.sum((ZZ @ U) * (U @ ZZ))
    content = -2 * np.sum(XV * Z) + np.sum(ZZ * (V.T @ V))
    value = links + weight * content + ridge * sum(np.sum(M**2) for M in (Z, U, V))
    by_Z = -2 * (AZ @ U.T + A.T @ (Z @ U)) + 2 * Z @ (U @ ZZ @ U.T + U.T @ ZZ @ U)
    by_Z += weight * (-2 * XV + 2 * Z @ (V.T @ V)) + 2 * ridge * Z
    by_U = -2 * inner + 2 * ZZ @ U @ ZZ + 2 * ridge * U
    by_V = weight * (-2 * (X.T @ Z) + 2 * V @ ZZ) + 2 * ridge * V
    return value, (by_Z, by_U, by_V)


def link_content_factors(A, X, q, *, weight=None, ridge=1e-2, max_iter=150):
    """Factors Z (n, q) by L-BFGS from a truncated SVD of links and content side by side.

    Links and content weigh the same by default: weight = |A|^2 / |X|^2.
    """
    n, d = X.shape
    if weight is None:
        weight = float(A.power(2).sum() / X.power(2).sum())
    both = sparse.hstack([A, np.sqrt(weight) * X], format="csr")
    svd = TruncatedSVD(q, random_state=0).fit(both)
    Z = svd.transform(both) / np.sqrt(svd.singular_values_)
    inverse = np.linalg.pinv(Z)
    U, V = inverse @ (A @ inverse.T), (inverse @ X).T
    cuts = np.cumsum([n * q, q * q])

    def packed(vector):
        parts = np.split(vector, cuts)
        shaped = parts[0].reshape(n, q), parts[1].reshape(q, q), parts[2].reshape(d, q)
        value, gradients = loss(*shaped, A, X, weight, ridge)
        return value, np.concatenate([g.ravel() for g in gradients])

    start = np.concatenate([Z.ravel(), U.ravel(), V.ravel()])
    found = minimize(packed, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return found.x[: n * q].reshape(n, q)
