import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg import graph
from gnomon.models.strength import links
from gnomon.models.strength.completion import Outputs


def ring_of_kinds(rng, n=120, noise=6.0, n_classes=3):
    """Noisy content, classes, and links mostly within classes."""
    labels = np.arange(n) % n_classes
    X = noise * rng.standard_normal((n, 10)) + 4 * np.eye(10)[labels]
    pairs = rng.integers(n, size=(12 * n, 2))
    within = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    pairs = pairs[within & (pairs[:, 0] != pairs[:, 1])]
    return X, labels, graph.undirected(graph.from_pairs(pairs, np.ones(len(pairs)), n))


def outputs_of(labels, known):
    Y = np.eye(labels.max() + 1)[labels] @ np.linalg.svd(np.eye(3) - 1 / 3)[0][:, :2]
    observed = np.repeat(known[:, None], 2, axis=1)
    return Outputs(np.where(observed, Y, 0.0), observed, np.where(known, labels, -1))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_links_between_rows_of_a_kind_are_used(rng):
    X, labels, A = ring_of_kinds(rng)
    outputs = outputs_of(labels, np.arange(120) % 3 < 2)
    found = links.learn(X, A, outputs, None, 2, np.random.default_rng(0))
    assert found is not None
    assert 2 in found.steps


def test_permuted_links_are_left_alone(rng):
    X, labels, A = ring_of_kinds(rng)
    outputs = outputs_of(labels, np.arange(120) % 3 < 2)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(120)
        A_other = A[order][:, order]
        assert links.learn(X, A_other, outputs, None, 2, np.random.default_rng(0)) is None


def test_links_serve_numbers_too(rng):
    X, _, A = ring_of_kinds(rng)
    smooth = np.linalg.matrix_power(graph.normalized(A).toarray(), 2) @ X
    y = smooth[:, :1] / smooth[:, 0].std()
    outputs = Outputs(y, np.ones((120, 1), dtype=bool))
    found = links.learn(X, A, outputs, None, 2, np.random.default_rng(0))
    assert found is not None
    outputs = Outputs(X[:, :1] / X[:, 0].std(), np.ones((120, 1), dtype=bool))
    assert links.learn(X, A, outputs, None, 2, np.random.default_rng(0)) is None


def test_blocks_are_powers_of_the_normalised_adjacency(rng):
    X, _, A = ring_of_kinds(rng, n=30)
    axes = np.linalg.qr(rng.standard_normal((10, 4)))[0]
    mean = X.mean(axis=0)
    F = (X - mean) @ axes
    S = graph.normalized(A).toarray()
    lengths = np.array([2.0, 3.0])
    linked = links.LinkedRows(mean, axes, np.array([0, 2]), lengths, F)
    E = links.expand(linked, X, A, np.arange(0))
    assert_allclose(E, np.hstack([F / 2, S @ S @ F / 3]))
    again = links.expand(linked, X[20:], A, np.arange(20))
    assert_allclose(again, E[20:])
    alone = links.expand(linked, X[:5], sparse.csr_array((5, 5)), np.arange(0))
    assert_allclose(alone, np.hstack([F[:5] / 2, F[:5] / 3]))
