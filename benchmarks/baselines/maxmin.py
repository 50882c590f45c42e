"""Max-min distance analysis (Bian and Tao 2011), by its relaxation to a semidefinite programme."""

import numpy as np
from benchmarks.baselines.linear import LinearMap
from benchmarks.baselines.relevant import inverse_root, within_covariance


class MMDA(LinearMap):
    """Makes the nearest two class means as distant as can be, rows whitened within classes.

    maximise t subject to (m_i - m_j)' M (m_i - m_j) >= t for all pairs, 0 <= M <= I, tr M = q;
    the map is the q leading eigenvectors of M. Solved by cvxpy with Clarabel.
    """

    def fit(self, X, y):
        import cvxpy

        self.mean_ = X.mean(axis=0)
        whitening = inverse_root(within_covariance(X, y, shrinkage=1e-2))
        means = np.array([X[y == c].mean(axis=0) for c in np.unique(y)]) @ whitening
        # Only the span of the class means matters.
        _, s, Vt = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
        basis = Vt[: max(self.n_components, int(np.sum(s > 1e-9 * s[0])))]
        means = means @ basis.T
        i, j = np.triu_indices(len(means), 1)
        gaps = means[i] - means[j]
        M = cvxpy.Variable((len(basis), len(basis)), PSD=True)
        least = cvxpy.Variable()
        distances = cvxpy.sum(cvxpy.multiply(gaps @ M, gaps), axis=1)
        constraints = [distances >= least, np.eye(len(basis)) - M >> 0]
        constraints.append(cvxpy.trace(M) == self.n_components)
        cvxpy.Problem(cvxpy.Maximize(least), constraints).solve(solver=cvxpy.CLARABEL)
        _, U = np.linalg.eigh(M.value)
        self.map_ = whitening @ basis.T @ U[:, ::-1][:, : self.n_components]
        return self
