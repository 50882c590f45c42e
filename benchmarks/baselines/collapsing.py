"""Maximally collapsing metric learning (Globerson and Roweis 2006)."""

import numpy as np
from benchmarks.baselines.linear import LinearMap
from scipy.optimize import minimize


def collapse_loss(A, X, same):
    """KL from "all rows of my class alike" to neighbour probabilities at metric A A', and gradient.

    ``same`` (n, n) has rows that sum to one over the other rows of the class.
    """
    Z = X @ A
    squares = np.einsum("ij,ij->i", Z, Z)
    logits = 2 * Z @ Z.T - squares[:, None] - squares
    np.fill_diagonal(logits, -np.inf)
    top = logits.max(axis=1, keepdims=True)
    p = np.exp(logits - top)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    log_p = logits - top - np.log(total)
    loss = -np.sum(same * np.where(same > 0, log_p, 0)) / len(X)
    weights = (same - p) / len(X)
    weights = weights + weights.T
    gradient = 2 * (X.T @ (weights.sum(axis=1)[:, None] * Z) - X.T @ (weights @ Z))
    return loss, gradient


class MCML(LinearMap):
    """The metric is learnt in full rank, where the problem is convex, and cut to q axes."""

    def __init__(self, n_components=2, max_iter=50):
        super().__init__(n_components)
        self.max_iter = max_iter

    def fit(self, X, y):
        self.mean_ = X.mean(axis=0)
        X = X - self.mean_
        d = X.shape[1]
        same = (np.asarray(y)[:, None] == y).astype(float)
        np.fill_diagonal(same, 0)
        same /= np.maximum(same.sum(axis=1, keepdims=True), 1)

        def loss(vector):
            value, gradient = collapse_loss(vector.reshape(d, d), X, same)
            return value, gradient.ravel()

        start = np.eye(d) / np.sqrt(np.mean(np.sum(X**2, axis=1)))
        found = minimize(
            loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter}
        )
        U, s, _ = np.linalg.svd(found.x.reshape(d, d))
        self.map_ = U[:, : self.n_components] * s[: self.n_components]
        return self
