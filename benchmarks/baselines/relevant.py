"""Relevant component analysis (Bar-Hillel et al. 2003) and LDA followed by it, as in [PGK07]."""

import numpy as np
from benchmarks.baselines.linear import LinearMap
from scipy.linalg import eigh
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis


def within_covariance(X, chunks, shrinkage=1e-3):
    """Covariance of rows about the mean of their chunk, shrunk a little to be regular."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for chunk in np.unique(chunks):
        rows = X[chunks == chunk]
        rows = rows - rows.mean(axis=0)
        total += rows.T @ rows
    total /= len(X)
    return total + shrinkage * np.trace(total) / len(total) * np.eye(len(total))


def inverse_root(C):
    values, U = eigh(C)
    return U / np.sqrt(values)


class RCA(LinearMap):
    """Whitening by the covariance within chunks; leading axes by total variance after it."""

    def fit(self, X, y):
        self.mean_ = X.mean(axis=0)
        whitening = inverse_root(within_covariance(X, y))
        _, _, Vt = np.linalg.svd((X - self.mean_) @ whitening, full_matrices=False)
        self.map_ = whitening @ Vt[: self.n_components].T
        return self


class LDARCA(LinearMap):
    """Discriminant axes, padded by principal ones where there are too few, then RCA on them."""

    def fit(self, X, y):
        self.mean_ = X.mean(axis=0)
        lda = LinearDiscriminantAnalysis(solver="eigen", shrinkage=1e-3).fit(X, y)
        axes = lda.scalings_[:, : min(self.n_components, len(lda.classes_) - 1)]
        if axes.shape[1] < self.n_components:
            Q, _ = np.linalg.qr(axes)
            rest = (X - self.mean_) - (X - self.mean_) @ Q @ Q.T
            _, _, Vt = np.linalg.svd(rest, full_matrices=False)
            axes = np.column_stack([axes, Vt[: self.n_components - axes.shape[1]].T])
        Z = (X - self.mean_) @ axes
        self.map_ = axes @ inverse_root(within_covariance(Z, y))
        return self
