"""Rivals of [LYZ09] that use the links: PLSI+PHITS, directed graph regularisation, the spectrum."""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import NMF


def plsi_phits(A, X, q, *, max_iter=150):
    """P(topic | node) of content and links explained by the same topics (Cohn and Hofmann 2001).

    PLSI is the factorisation by Kullback-Leibler divergence with rows scaled to sum one; words
    and links of a node weigh the same.
    """
    parts = [_shares(M) for M in (X, A)]
    model = NMF(
        q,
        init="nndsvda",
        solver="mu",
        beta_loss="kullback-leibler",
        max_iter=max_iter,
        random_state=0,
    )
    Z = model.fit_transform(sparse.hstack(parts, format="csr"))
    weights = Z * model.components_.sum(axis=1)
    return weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)


def spectral(A, q):
    """Leading eigenvectors of the normalised adjacency with a loop at every node."""
    S = _normalised(A + sparse.eye_array(A.shape[0]))
    _, vectors = eigsh(S, k=q + 1, which="LA", v0=np.ones(A.shape[0]))
    # The first has only the degrees.
    return vectors[:, -2::-1]


class GraphRegularisation(ClassifierMixin, BaseEstimator):
    """Labels spread over the links, (I - a S)^-1 Y (Zhou, Huang and Scholkopf 2005).

    For links without direction the walk of the paper gives S = D^-1/2 A D^-1/2. X holds node
    numbers in its one column, so that folds of nodes can be drawn.
    """

    def __init__(self, A=None, alpha=0.9):
        self.A = A
        self.alpha = alpha

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        n = self.A.shape[0]
        start = np.zeros((n, len(self.classes_)))
        start[X[:, 0]] = y[:, None] == self.classes_
        system = sparse.eye_array(n) - self.alpha * _normalised(self.A)
        self.scores_ = sparse.linalg.splu(system.tocsc()).solve(start)
        # Nodes that no label reaches get the commonest class.
        self.scores_ += 1e-9 * start.mean(axis=0)
        return self

    def predict(self, X):
        return self.classes_[np.argmax(self.scores_[X[:, 0]], axis=1)]


def _normalised(A):
    scale = 1 / np.sqrt(np.maximum(A.sum(axis=1), 1))
    return sparse.diags_array(scale) @ A @ sparse.diags_array(scale)


def _shares(M):
    sums = np.asarray(M.sum(axis=1)).ravel()
    return sparse.diags_array(1 / np.where(sums > 0, sums, 1)) @ M
