"""Locality preserving projections (He and Niyogi 2003), neighbourhood preserving embedding (2005).

Both take the q smallest generalised eigenvectors of X' M X against X' N X, for a graph of the k
nearest neighbours; X is reduced to its leading principal components first, so that N is regular.
"""

import numpy as np
from benchmarks.baselines.linear import LinearMap
from scipy import sparse
from scipy.linalg import eigh
from sklearn.decomposition import PCA
from sklearn.neighbors import kneighbors_graph

# The defaults of the toolbox that [G13] took these methods from.
NEIGHBOURS = 12


class _GraphMap(LinearMap):
    def fit(self, X, y=None):
        pca = PCA(min(100, X.shape[1], len(X) - 1), random_state=0).fit(X)
        Z = pca.transform(X)
        Z = Z[:, Z.std(axis=0) > 1e-9]
        left, right = self.graphs(Z)
        right = Z.T @ (right @ Z)
        right += 1e-6 * np.trace(right) / len(right) * np.eye(len(right))
        _, axes = eigh(Z.T @ (left @ Z), right, subset_by_index=[0, self.n_components - 1])
        self.mean_ = pca.mean_
        self.map_ = pca.components_[: Z.shape[1]].T @ axes
        return self


class LPP(_GraphMap):
    """Keeps neighbours near: the Laplacian of the graph with heat weights."""

    def graphs(self, Z):
        distances = kneighbors_graph(Z, NEIGHBOURS, mode="distance")
        weights = distances.copy()
        scale = np.mean(distances.data**2)
        weights.data = np.exp(-(distances.data**2) / scale)
        weights = weights.maximum(weights.T)
        degrees = sparse.diags(np.asarray(weights.sum(axis=1)).ravel())
        return degrees - weights, degrees


class NPE(_GraphMap):
    """Keeps each row the same mixture of its neighbours."""

    def graphs(self, Z):
        n = len(Z)
        neighbours = kneighbors_graph(Z, NEIGHBOURS).indices.reshape(n, NEIGHBOURS)
        offsets = Z[neighbours] - Z[:, None]
        gram = offsets @ offsets.transpose(0, 2, 1)
        ridge = 1e-3 * np.trace(gram, axis1=1, axis2=2)[:, None, None]
        gram += ridge * np.eye(NEIGHBOURS)
        mixture = np.linalg.solve(gram, np.ones((n, NEIGHBOURS, 1)))[:, :, 0]
        mixture /= mixture.sum(axis=1, keepdims=True)
        rows = np.repeat(np.arange(n), NEIGHBOURS)
        W = sparse.csr_array((mixture.ravel(), (rows, neighbours.ravel())), shape=(n, n))
        M = sparse.eye_array(n) - W
        return M.T @ M, sparse.eye_array(n)
