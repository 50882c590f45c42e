import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon import SPPCA
from gnomon.linalg import graph
from gnomon.models.strength import links
from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.fit import Settings


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


def content(X, q=2):
    settings = Settings(q, "auto", False, 500, 1e-7, np.random.default_rng(0))
    return links.content_of(X, None, settings)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_links_between_rows_of_a_kind_are_used(rng):
    X, labels, A = ring_of_kinds(rng)
    outputs = outputs_of(labels, np.arange(120) % 3 < 2)
    found, E = links.learn(content(X), A, outputs, None)
    assert 2 in found.steps
    assert_allclose(links.expand(found, X, links.Place(A, np.arange(0))), E)


def test_permuted_links_are_left_alone(rng):
    X, labels, A = ring_of_kinds(rng)
    outputs = outputs_of(labels, np.arange(120) % 3 < 2)
    used = 0
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(120)
        used += links.learn(content(X), A[order][:, order], outputs, None) is not None
    # By chance one of forty serves labels that were left out.
    assert used <= 2


def test_links_serve_numbers_too(rng):
    X, _, A = ring_of_kinds(rng)
    smooth = np.linalg.matrix_power(graph.normalized(A).toarray(), 2) @ X
    y = smooth[:, :1] / smooth[:, 0].std()
    outputs = Outputs(y, np.ones((120, 1), dtype=bool))
    found = links.learn(content(X), A, outputs, None)
    assert found is not None
    outputs = Outputs(X[:, :1] / X[:, 0].std(), np.ones((120, 1), dtype=bool))
    assert links.learn(content(X), A, outputs, None) is None


def test_blocks_are_powers_of_the_normalised_adjacency(rng):
    X, _, A = ring_of_kinds(rng, n=30)
    axes = np.linalg.qr(rng.standard_normal((10, 4)))[0]
    mean = X.mean(axis=0)
    F = (X - mean) @ axes
    S = graph.normalized(A).toarray()
    lengths = np.array([2.0, 3.0])
    linked = links.LinkedRows(mean, axes, np.array([0, 2]), lengths, F)
    E = links.expand(linked, X, links.Place(A, np.arange(0)))
    assert_allclose(E, np.hstack([F / 2, S @ S @ F / 3]))
    again = links.expand(linked, X[20:], links.Place(A, np.arange(20)))
    assert_allclose(again, E[20:])
    alone = links.expand(linked, X[:5], links.Place(sparse.csr_array((5, 5)), np.arange(0)))
    assert_allclose(alone, np.hstack([F[:5] / 2, F[:5] / 3]))


def test_axes_of_the_graph_tell_rows_by_whom_they_link_to(rng):
    # Rows of a class never link to each other: what they share is whom they link to.
    labels = np.arange(120) % 2
    X = rng.standard_normal((120, 6))
    hubs = np.where(labels == 0, rng.integers(0, 10, 120) * 2 + 1, rng.integers(0, 10, 120) * 2)
    pairs = np.column_stack([np.arange(120), hubs])[20:]
    A = graph.undirected(graph.from_pairs(pairs, np.ones(len(pairs)), 120))
    known = np.arange(120) % 2 == np.arange(120) // 2 % 2
    Y = np.where(known, 1.0 - 2 * labels, 0.0)[:, None]
    outputs = Outputs(Y, known[:, None], np.where(known, labels, -1))
    found, E = links.learn(content(X), A, outputs, None)
    assert found.graph_axes is not None
    old, new = np.arange(100), np.arange(100, 120)
    assert_allclose(links.expand(found, X, links.Place(A, np.arange(0))), E)
    again = links.expand(found, X[new], links.Place(A, old, new))
    assert_allclose(again, E[new], atol=1e-12)
    with pytest.warns(UserWarning, match="no row has a link to a row of the fit"):
        strangers = links.expand(found, X[new], links.Place(A[new][:, new], np.arange(0)))
    width = found.graph_axes.shape[1]
    assert not strangers[:, -width:].any()


def test_leading_axes_span_the_adjacency(rng):
    _, _, A = ring_of_kinds(rng, n=40)
    values, V = np.linalg.eigh(A.toarray())
    U = A @ graph.leading_axes(A, 40)
    size = (V * np.abs(values)) @ V.T
    assert_allclose(U @ U.T, size, atol=1e-10)
    few = A @ graph.leading_axes(A, 5)
    lead = np.argsort(-np.abs(values))[:5]
    assert_allclose(few @ few.T, (V[:, lead] * np.abs(values[lead])) @ V[:, lead].T, atol=1e-10)


def test_nearest_rows_are_the_nearest(rng):
    F, anchors = rng.standard_normal((30, 3)), rng.standard_normal((20, 3))
    S = graph.means_of(graph.nearest(F, anchors, 4), len(anchors)).toarray()
    distances = np.linalg.norm(F[:, None] - anchors, axis=2)
    for row, distance in zip(S, distances, strict=True):
        assert set(np.flatnonzero(row)) == set(np.argsort(distance)[:4])
    assert_allclose(S.sum(axis=1), 1)


def test_smaller_neighbourhoods_are_the_first_of_larger_ones(rng):
    F, anchors = rng.standard_normal((30, 3)), rng.standard_normal((20, 3))
    distances = np.linalg.norm(F[:, None] - anchors, axis=2)
    assert_allclose(graph.nearest(F, anchors, 7)[:, :3], np.argsort(distances, axis=1)[:, :3])


def test_a_sample_has_the_wanted_rows_first(rng):
    wanted = np.arange(50) % 10 == 0
    found = links._sample(50, 12, rng, wanted)
    assert len(found) == 12
    assert set(np.flatnonzero(wanted)) <= set(found)
    assert set(links._sample(50, 3, rng, wanted)) <= set(np.flatnonzero(wanted))
    assert_allclose(links._sample(5, 12, rng), np.arange(5))


def clustered(rng, n=300):
    """Two classes of three clusters each, in noise that the mean of some rows takes away."""
    cluster = np.arange(n) % 6
    return rng.standard_normal((n, 20)) + 6 * rng.standard_normal((6, 20))[cluster] / 4, cluster % 2


def served(n):
    """The first of some samples whose labels are found better by the graph; most are not hard."""
    known = np.arange(n) % 10 < 3
    for seed in range(20):
        X, labels = clustered(np.random.default_rng(seed), n)
        Y = np.where(known, 1.0 - 2 * labels, 0.0)[:, None]
        outputs = Outputs(Y, known[:, None], np.where(known, labels, -1))
        if links.learn_neighbours(content(X), outputs, None, np.random.default_rng(0)):
            return X, labels, known, outputs
    raise AssertionError("the graph of nearest rows is never used")


def test_the_graph_of_nearest_rows_is_used_where_it_serves(rng):
    X, labels, known, outputs = served(300)
    found, E = links.learn_neighbours(content(X), outputs, None, np.random.default_rng(0))
    assert_allclose(links.expand(found, X, links.Place(sparse.csr_array((300, 300)), None)), E)
    # The same rows, with labels that neither they nor their neighbours tell.
    permuted = rng.permutation(labels)
    Y = np.where(known, 1.0 - 2 * permuted, 0.0)[:, None]
    outputs = Outputs(Y, known[:, None], np.where(known, permuted, -1))
    assert links.learn_neighbours(content(X), outputs, None, np.random.default_rng(0)) is None


def test_many_rows_are_stood_for_by_a_sample(monkeypatch):
    monkeypatch.setattr(links, "MOST_ANCHORS", 150)
    monkeypatch.setattr(links, "MOST_TRIED", 400)
    X, _, _, outputs = served(600)
    found, E = links.learn_neighbours(content(X), outputs, None, np.random.default_rng(0))
    assert len(found.coordinates) == 150
    assert_allclose(links.expand(found, X, links.Place(sparse.csr_array((600, 600)), None)), E)


def test_all_rows_are_searched_only_where_the_nearest_of_labelled_ones_help(rng, monkeypatch):
    X, labels = clustered(rng)
    known = np.arange(300) % 10 < 3
    searched, nearest = [], links.graph.nearest

    def counted(F, anchors, k):
        searched.append(len(F))
        return nearest(F, anchors, k)

    monkeypatch.setattr(links.graph, "nearest", counted)
    for classes in (labels, *(rng.permutation(labels) for _ in range(10))):
        Y = np.where(known, 1.0 - 2 * classes, 0.0)[:, None]
        outputs = Outputs(Y, known[:, None], np.where(known, classes, -1))
        links.learn_neighbours(content(X), outputs, None, np.random.default_rng(0))
    assert searched[:2] == [90, 300]
    assert searched.count(90) == 11
    # One step lowers the loss of random classes by chance only.
    assert searched.count(300) < 11


def _many_columns(rng):
    X, labels, A = ring_of_kinds(rng, n=400)
    return np.hstack([X, 6 * rng.standard_normal((400, 190))]), labels, A


def test_a_head_sees_directions_of_content_that_the_map_does_not(rng):
    X, labels, A = _many_columns(rng)
    outputs = outputs_of(labels, np.arange(400) % 3 < 2)
    found, E = links.learn(content(X), A, outputs, None, for_head=2)
    plain, M = links.learn(content(X), A, outputs, None)
    seen = found.n_map_columns(E.shape[1])
    assert_allclose(E[:, :seen], M)
    assert plain.n_map_columns(M.shape[1]) == M.shape[1] == seen
    assert E.shape[1] - seen == len(found.steps) * (200 - 150)
    assert_allclose(links.expand(found, X, links.Place(A, np.arange(0))), E, atol=1e-9)
    # What comes last is content beyond the axes of the map, smoothed as these are.
    assert_allclose(found.axes[:, 150:].T @ found.axes[:, :150], 0, atol=1e-8)
    S = graph.normalized(A).toarray()
    beyond = (X - X.mean(axis=0)) @ found.axes[:, 150:]
    first = np.linalg.matrix_power(S, found.steps[0]) @ beyond / found.lengths[0]
    assert_allclose(E[:, seen : seen + 50], first, atol=1e-9)


def test_columns_for_a_head_leave_the_map_as_it_is(rng, monkeypatch):
    X, labels, A = _many_columns(rng)
    y = np.where(np.arange(400) % 3 < 2, labels, -1)
    model = SPPCA(2).fit(X, y, links=A)
    learn = links.learn
    monkeypatch.setattr(links, "learn", lambda *known: learn(*known[:4]))
    plain = SPPCA(2).fit(X, y, links=A)
    assert len(model.class_head_.coef) > len(plain.class_head_.coef)
    assert_allclose(model.transform(X, links=A), plain.transform(X, links=A), rtol=1e-6)
    for ours, theirs in zip(model.posterior(X, links=A), plain.posterior(X, links=A), strict=True):
        assert_allclose(ours, theirs, rtol=1e-6)
