import sys
from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import multivariate_normal

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.prpca_density import conditional_log_density

from gnomon.linalg import graph
from gnomon.models.relational.model import State


def test_conditional_density_is_the_dense_gaussian(rng):
    n, d = 12, 4
    upper = np.triu(rng.random((n, n)) < 0.2, 1).astype(float)
    S = graph.normalized(sparse.csr_array(upper + upper.T))
    U = np.linalg.qr(rng.standard_normal((d, 2)))[0]
    state = State(U, np.array([2.0]), np.array([0.4, 0.9]), np.array([3.0]), 0.3)
    inner = np.linalg.inv(np.eye(n) + 3.0 * (np.eye(n) - S.toarray()))
    K = 2.0 * inner @ inner + 0.4 * np.eye(n)
    C = np.kron(K, np.outer(U[:, 0], U[:, 0])) + 0.3 * np.eye(n * d)
    C += np.kron(0.9 * np.eye(n), np.outer(U[:, 1], U[:, 1]))
    X, new = rng.standard_normal((n, d)), np.isin(np.arange(n), [2, 5, 6])
    old = np.repeat(~new, d)
    joint = multivariate_normal(cov=C).logpdf(X.ravel())
    marginal = multivariate_normal(cov=C[np.ix_(old, old)]).logpdf(X.ravel()[old])
    actual = conditional_log_density(state, S, X @ U, np.sum(X**2, axis=1), new)
    assert_allclose(actual, joint - marginal)
