import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg import graph


@pytest.fixture
def A(rng):
    upper = np.triu(rng.random((12, 12)) < 0.15, 1).astype(float)
    return sparse.csr_array(upper + upper.T)


def test_normalized_adjacency_is_the_dense_formula(A):
    loops = A.toarray() + np.eye(12)
    D = np.diag(loops.sum(axis=1) ** -0.5)
    assert_allclose(graph.normalized(A).toarray(), D @ loops @ D)


def test_an_isolated_node_is_left_as_it_is():
    S = graph.normalized(sparse.csr_array((3, 3)))
    assert_allclose(S.toarray(), np.eye(3))


def test_component_basis_spans_the_eigenspace_at_one(A):
    values, vectors = np.linalg.eigh(graph.normalized(A).toarray())
    top = vectors[:, values > 1 - 1e-9]
    B = graph.component_basis(A).toarray()
    assert_allclose(B @ B.T, top @ top.T, atol=1e-12)


def test_colinks_follow_the_definition(rng):
    D = (rng.random((9, 9)) < 0.2).astype(float)
    expected = np.zeros((9, 9))
    for i in range(9):
        for j in range(9):
            others = [k for k in range(9) if k not in (i, j)]
            joined = any((D[k, i] and D[k, j]) or (D[i, k] and D[j, k]) for k in others)
            expected[i, j] = i != j and joined
    assert_allclose(graph.colinks(sparse.csr_array(D)).toarray(), expected)


def test_near_order_puts_linked_nodes_close(rng):
    n = 60
    path = sparse.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n))
    mixed = rng.permutation(n)
    A = graph.undirected(sparse.csr_array(path))[mixed][:, mixed]
    order = graph.near_order(A)
    assert sorted(order) == list(range(n))
    rows, columns = A[order][:, order].nonzero()
    assert np.abs(rows - columns).max() == 1
