"""Graphs as sparse arrays: undirected, without loops, normalised.

Weights are float64 from the start, so that no product of small integers wraps around.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee


def undirected(A) -> sparse.csr_array:
    """The larger of the two weights between each two nodes; A and A' give the same."""
    A = sparse.csr_array(A.maximum(A.T))
    A.eliminate_zeros()
    A.sort_indices()
    return A


def without_loops(A) -> sparse.csr_array:
    """A copy of A with a zero diagonal."""
    A = sparse.csr_array(A, copy=True)
    A.setdiag(0)
    A.eliminate_zeros()
    return A


def colinks(directed) -> sparse.csr_array:
    """1 where a third node links to both, or both link to a third; 0 elsewhere."""
    D = without_loops(directed)
    D.data[:] = 1.0
    A = without_loops(D.T @ D + D @ D.T)
    A.data[:] = 1.0
    return A


def from_pairs(pairs, weights, n) -> sparse.coo_array:
    """Each pair once, with the largest of its weights; a sparse array would add them up."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    order = np.lexsort((-weights, high, low))
    low, high, weights = low[order], high[order], weights[order]
    first = np.ones(len(low), dtype=bool)
    first[1:] = (np.diff(low) != 0) | (np.diff(high) != 0)
    return sparse.coo_array((weights[first], (low[first], high[first])), shape=(n, n))


def normalized(A) -> sparse.csr_array:
    """S = D^(-1/2) (A + I) D^(-1/2) with D the degrees of A + I; spectrum in (-1, 1]."""
    roots = _loop_roots(A)
    n = A.shape[0]
    S = sparse.csr_array(A + sparse.eye_array(n, format="csr"))
    return sparse.csr_array(S / roots[:, None] / roots[None, :])


def _loop_roots(A):
    """Square roots of the degrees of A + I."""
    return np.sqrt(1.0 + np.asarray(A.sum(axis=1), dtype=float).ravel())


def component_basis(A) -> sparse.csr_array:
    """Orthonormal columns that span the eigenspace of `normalized` at 1, one per component."""
    n = A.shape[0]
    n_components, member = connected_components(A, directed=False)
    roots = _loop_roots(A)
    lengths = np.sqrt(np.bincount(member, roots**2, minlength=n_components))
    entries = roots / lengths[member]
    return sparse.csr_array((entries, (np.arange(n), member)), shape=(n, n_components))


def near_order(A) -> np.ndarray:
    """The nodes with linked ones close to one another, so that products stay in the cache."""
    return reverse_cuthill_mckee(sparse.csr_array(A), symmetric_mode=True)
