import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg import graph


def random_graph(rng, n, p=0.2):
    upper = np.triu(rng.random((n, n)) < p, 1).astype(float)
    return sparse.csr_array(upper + upper.T)


@pytest.fixture
def A(rng):
    return random_graph(rng, 12, 0.15)


@pytest.fixture
def S(rng):
    return graph.normalized(random_graph(rng, 20))


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


def test_a_full_run_gives_functions_of_the_matrix_exactly(S, rng):
    B = rng.standard_normal((20, 3))
    space = graph.lanczos(S, B, 20)
    values, V = np.linalg.eigh(S.toarray())
    expected = V @ (np.exp(values)[:, None] * (V.T @ B))
    assert_allclose(graph.apply(space, np.exp(space.theta)), expected, atol=1e-10)
    forms = np.sum(space.weights * np.exp(space.theta), axis=0)
    assert_allclose(forms, np.sum(B * expected, axis=0), rtol=1e-10)


def test_columns_that_end_early_or_are_zero_do_no_harm(S):
    values, V = np.linalg.eigh(S.toarray())
    B = np.column_stack([V[:, 3], np.zeros(20), V[:, 0] + V[:, -1]])
    space = graph.lanczos(S, B, 8)
    expected = V @ (np.exp(values)[:, None] * (V.T @ B))
    assert_allclose(graph.apply(space, np.exp(space.theta)), expected, atol=1e-10)


def test_the_rule_of_units_gives_diagonal_entries(S, monkeypatch):
    monkeypatch.setattr(graph, "COLUMNS", 3)
    nodes = np.array([0, 4, 5, 11])
    theta, weights = graph.unit_rule(S, nodes, 20)
    values, V = np.linalg.eigh(S.toarray())
    expected = (V**2 @ np.exp(values))[nodes]
    assert_allclose(np.sum(weights * np.exp(theta), axis=0), expected, rtol=1e-10)


def test_short_runs_on_many_rows_need_no_help_to_stay_orthogonal(rng):
    """Also where most columns end early, in components of a few nodes."""
    n = graph.ORTHOGONAL_BELOW + 100
    S = graph.normalized(random_graph(rng, n, 0.0015))
    B = np.column_stack([np.eye(n)[:, :40], rng.standard_normal((n, 10))])
    space = graph.lanczos(S, B, 16)
    values, V = np.linalg.eigh(S.toarray())
    expected = V @ ((1.5 - values)[:, None] ** -1 * (V.T @ B))
    assert_allclose(graph.apply(space, 1 / (1.5 - space.theta)), expected, atol=1e-6)
    theta, weights = graph.unit_rule(S, np.arange(40), 16)
    diagonal = V[:40] ** 2 @ (1 / (1.5 - values))
    assert_allclose(np.sum(weights / (1.5 - theta), axis=0), diagonal, rtol=1e-8)
    G = np.einsum("ink,jnk->kij", space.basis[:, :, 40:], space.basis[:, :, 40:])
    assert_allclose(G, np.broadcast_to(np.eye(16), G.shape), atol=1e-10)


def test_few_steps_suffice_for_a_smooth_function(rng):
    S = graph.normalized(random_graph(rng, 400, 0.02))
    B = rng.standard_normal((400, 2))
    space = graph.lanczos(S, B, 16)
    expected = B + S @ B / 2
    assert_allclose(graph.apply(space, 1 + space.theta / 2), expected, atol=1e-10)


def test_the_density_of_a_small_matrix_is_its_spectrum(S, rng):
    density = graph.density(S, None, rng)
    assert_allclose(
        np.sum(density.counts * density.eigenvalues**3),
        np.trace(S.toarray() ** 1 @ S.toarray() @ S.toarray()),
    )


def test_the_sampled_density_agrees_with_the_exact_one(rng, monkeypatch):
    A = random_graph(rng, 600, 0.005)
    S = graph.normalized(A)
    exact = graph.density(S, None, rng)
    monkeypatch.setattr(graph, "EXACT_BELOW", 10)
    sampled = graph.density(S, graph.component_basis(A), rng)
    assert_allclose(sampled.counts.sum(), 600)
    for beta in (1.0, 30.0):
        logs = [
            each.counts @ np.log(0.1 + (1 + beta * (1 - each.eigenvalues)) ** -2)
            for each in (exact, sampled)
        ]
        assert_allclose(logs[1], logs[0], rtol=0.03)


def test_a_long_ring_has_a_density(rng):
    n = 3000
    ring = sparse.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    ring = ring + ring.T
    density = graph.density(graph.normalized(ring), graph.component_basis(ring), rng)
    exact = (1 + 2 * np.cos(2 * np.pi * np.arange(n) / n)) / 3
    assert_allclose(density.counts.sum(), n)
    assert_allclose(density.counts @ density.eigenvalues**2 / n, np.mean(exact**2), rtol=0.02)


def test_the_pairs_that_nodes_join_are_counted_before_they_are_joined(rng):
    D = (rng.random((12, 12)) < 0.3).astype(float)
    plain = D * (1 - np.eye(12))
    degrees = [plain.sum(axis=axis) for axis in (0, 1)]
    most, pairs = graph.joined_pairs(sparse.csr_array(D))
    assert most == max(k.max() for k in degrees)
    assert pairs == min(66, sum((k * (k - 1) / 2).sum() for k in degrees))
    assert graph.colinks(sparse.csr_array(D)).nnz // 2 <= pairs


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_nearest_anchors_are_those_of_all_distances(rng, k):
    F, anchors = rng.normal(size=(40, 3)), rng.normal(size=(2000, 3))
    distances = np.linalg.norm(F[:, None] - anchors, axis=2)
    np.testing.assert_array_equal(graph.nearest(F, anchors, k), np.argsort(distances)[:, :k])


def test_the_mean_of_one_column_is_that_column():
    found = graph.means_of(np.array([[2], [0], [1]]), 3)
    assert_allclose(found.toarray(), np.eye(3)[[2, 0, 1]])
    assert len(found.indptr) == 4


def test_one_step_is_the_function_at_the_quotient_of_rayleigh(S, rng):
    B = rng.standard_normal((S.shape[0], 2))
    space = graph.lanczos(S, B, 1)
    theta = np.sum(B * (S @ B), axis=0) / np.sum(B**2, axis=0)
    assert_allclose(graph.apply(space, np.exp(space.theta)), B * np.exp(theta))


def test_a_path_of_three_nodes_has_one_eigenpair_beside_the_first(rng):
    A = sparse.csr_array(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    S, top = graph.normalized(A), graph.component_basis(A)
    values, vectors = graph._next_eigenpairs(S, top, rng)
    assert_allclose(values, np.linalg.eigvalsh(S.toarray())[-2:-1], atol=1e-3)
    assert vectors.shape == (3, 1)


def test_eigenvalues_without_weight_are_left_out():
    theta, weights = np.linspace(0, 1, 4 * graph.N_MERGED), np.ones(4 * graph.N_MERGED)
    weights[:8] = 0.0
    centres, total = graph._merge(theta, weights)
    assert len(centres) == len(total) == graph.N_MERGED - 2
    assert_allclose(centres @ total, theta @ weights)
