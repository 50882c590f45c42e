import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

from gnomon import SPPCA, KernelSPPCA, Links
from gnomon.estimators.links import read_links


def path(n):
    return np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)


def test_every_way_in_makes_the_same_graph():
    nx = pytest.importorskip("networkx")
    pairs = [(0, 1), (1, 2), (2, 3)]
    named = [("abcd"[i], "abcd"[j]) for i, j in pairs]
    ways = [
        Links(path(4)),
        Links(sparse.coo_array(path(4))),
        Links.from_edges(pairs),
        Links.from_edges(named, nodes="abcd"),
        Links.from_edge_index(np.transpose(pairs)),
        Links.from_networkx(nx.path_graph(4)),
        Links.from_networkx(nx.DiGraph(nx.path_graph(4))),
    ]
    for links in ways:
        assert_array_equal(links.adjacency.toarray(), path(4))
        assert (links.n_nodes, links.n_links) == (4, 3)


def test_networkx_nodes_come_in_the_order_asked_for():
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    graph.add_edge("b", "a", weight=2.5)
    graph.add_node("c")
    links = Links.from_networkx(graph, nodes=["a", "c", "b"])
    assert links.adjacency[0, 2] == 2.5
    assert links.n_links == 1


def test_an_adjacency_and_its_transpose_agree(rng):
    A = rng.random((6, 6)) * (rng.random((6, 6)) < 0.4)
    np.fill_diagonal(A, 0)
    expected = np.maximum(A, A.T)
    assert_array_equal(Links(A).adjacency.toarray(), expected)
    assert_array_equal(Links(A.T).adjacency.toarray(), expected)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32])
def test_a_hub_of_small_integers_equals_floats(dtype):
    n = 300
    star = np.zeros((n, n), dtype=dtype)
    star[0, 1:] = star[1:, 0] = 1
    A = Links(star).adjacency
    assert A.dtype == np.float64
    assert (A @ A)[0, 0] == n - 1


def test_weights_are_used_as_given_and_the_largest_of_a_repeated_pair_counts():
    links = Links.from_edges([(0, 1), (1, 0), (1, 2)], weights=[0.5, 2.0, 3.0])
    assert_array_equal(links.adjacency.toarray(), [[0, 2, 0], [2, 0, 3], [0, 3, 0]])
    assert_array_equal(links.degrees, [2, 5, 3])


def test_repeated_entries_of_a_sparse_adjacency_add_up_as_sparse_arrays_do():
    A = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert Links(A).adjacency[0, 1] == 3


def test_self_links_are_dropped_with_a_warning():
    with pytest.warns(UserWarning, match="2 nodes are linked with themselves"):
        links = Links(path(3) + np.diag([1, 0, 1]))
    assert_array_equal(links.adjacency.toarray(), path(3))


def test_what_is_passed_in_is_left_alone():
    A = sparse.csr_array(path(3) + np.eye(3))
    before = A.toarray()
    with pytest.warns(UserWarning):
        Links(A)
    assert_array_equal(A.toarray(), before)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_bad_weights_are_refused(weight):
    A = path(3)
    A[0, 1] = weight
    with pytest.raises(ValueError, match="adjacency has"):
        Links(A)
    with pytest.raises(ValueError, match="weights has"):
        Links.from_edges([(0, 1)], weights=[weight])


@pytest.mark.parametrize(
    "bad", [np.ones((2, 3)), np.ones(3), np.ones((0, 0)), sparse.csr_array((2, 3))]
)
def test_a_shape_that_is_no_square_is_refused(bad):
    with pytest.raises(ValueError, match="adjacency has shape"):
        Links(bad)


def test_text_is_no_adjacency():
    with pytest.raises(TypeError, match="adjacency has dtype"):
        Links(np.array([["a", "b"], ["c", "d"]]))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(pairs=[(0, 5)], n_nodes=3), "n_nodes == 3"),
        (dict(pairs=[(-1, 2)]), "node -1"),
        (dict(pairs=[(0, 1, 2)]), "pairs has shape"),
        (dict(pairs=[(0, 1)], weights=[1, 2]), "weights has shape"),
        (dict(pairs=[("a", "z")], nodes=["a", "b"]), "'z'"),
        (dict(pairs=[], nodes=["a", "a"]), "a name twice"),
    ],
)
def test_bad_pairs_are_refused_by_name(arguments, words):
    with pytest.raises(ValueError, match=words):
        Links.from_edges(**arguments)


def test_numbers_beyond_32_bits_do_not_wrap():
    with pytest.raises(ValueError, match="n_nodes == 10"):
        Links.from_edges(np.array([[0, 2**40]]), n_nodes=10)
    narrow = Links(path(5)).adjacency
    wide = sparse.csr_array(
        (narrow.data, narrow.indices.astype(np.int64), narrow.indptr.astype(np.int64)), shape=(5, 5)
    )
    assert_array_equal(Links(wide).adjacency.toarray(), path(5))


def test_pairs_with_fractions_are_refused():
    with pytest.raises(TypeError, match="pairs has dtype"):
        Links.from_edges([(0.5, 1.0)])


def test_no_pairs_make_a_graph_without_links():
    assert Links.from_edges([], n_nodes=3).n_links == 0


def test_subset_keeps_the_order_given():
    A = np.arange(16.0).reshape(4, 4)
    A = np.triu(A, 1) + np.triu(A, 1).T
    links = Links(A).subset([2, 0, 3])
    assert_allclose(links.adjacency.toarray(), A[np.ix_([2, 0, 3], [2, 0, 3])])


@pytest.mark.parametrize(
    ("index", "words"), [([0, 0], "twice"), ([0, 9], "runs from 0 to 9"), ([0.5, 1.0], "dtype")]
)
def test_a_bad_sample_index_is_refused(index, words):
    with pytest.raises(ValueError, match=words):
        Links(path(4)).subset(index)


def test_links_are_no_array_so_that_cross_validation_hands_them_on_whole():
    links = Links(path(4))
    for attribute in ("__len__", "shape", "__array__", "__getitem__", "iloc"):
        assert not hasattr(links, attribute)


def test_a_cut_adjacency_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"pass Links\(adjacency\)"):
        read_links(sparse.csr_array(path(6))[:4], 4)


def test_a_graph_object_is_refused_with_the_way_out():
    nx = pytest.importorskip("networkx")
    with pytest.raises(TypeError, match=r"Links\.from_networkx"):
        read_links(nx.path_graph(3), 3)


def test_links_of_other_rows_are_refused():
    with pytest.raises(ValueError, match="pass sample_index"):
        read_links(Links(path(4)), 3)
    with pytest.raises(ValueError, match="sample_index has 2 entries, X has 3 rows"):
        read_links(Links(path(4)), 3, sample_index=[0, 1])


def test_rows_and_nodes_meet_through_sample_index():
    A = read_links(Links(path(4)), 2, sample_index=[3, 2]).adjacency
    assert_array_equal(A.toarray(), [[0, 1], [1, 0]])


def test_links_survive_pickle():
    links = pickle.loads(pickle.dumps(Links(path(4))))
    assert_array_equal(links.adjacency.toarray(), path(4))


def test_repr_counts():
    assert repr(Links(path(4))) == "Links(n_nodes=4, n_links=3)"


def linked_table(noise=6.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(150) % 3
    X = noise * rng.standard_normal((150, 10)) + 4 * np.eye(10)[labels]
    pairs = rng.integers(150, size=(1800, 2))
    pairs = pairs[(labels[pairs[:, 0]] == labels[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])]
    return X, labels, Links.from_edges(pairs, n_nodes=150)


def test_probabilities_of_linked_rows_are_read_from_all_that_is_smoothed():
    X, labels, links = linked_table()
    y = np.where(np.arange(150) % 5 == 0, labels, -1)
    model = SPPCA(2).fit(X, y, links=links)
    assert model.class_head_.coef.shape == (model.mean_.shape[0], 3)
    assert_allclose(model.class_head_.say, 10 / (10 + 2))
    P = model.predict_proba(X, links=links)
    assert np.mean(P.argmax(axis=1) == labels) > 0.95
    # Two components may explain the two outputs wholly: the noise is fixed.
    by_likelihood = SPPCA(2, supervision="likelihood", noise=1.0).fit(X, y, links=links)
    assert by_likelihood.class_head_.say == 0.5


@pytest.mark.parametrize("model", [SPPCA(2), KernelSPPCA(2), SPPCA(2, supervision=0.5)])
def test_labels_and_links_together_find_more_than_either(model):
    X, labels, links = linked_table()
    y = np.where(np.arange(150) % 5 == 0, labels, -1)
    hidden = y < 0
    model.fit(X, y, links=links)
    assert model.links_used_
    both = np.mean(model.predict(X, links=links)[hidden] == labels[hidden])
    alone = np.mean(clone(model).fit(X, y).predict(X)[hidden] == labels[hidden])
    assert both > max(0.9, alone + 0.2)
    assert model.predict_proba(X, links=links).shape == (150, 3)
    assert model.transform(X, links=links).shape == (150, 2)
    assert_allclose(
        model.score(X, labels, links=links), np.mean(model.predict(X, links=links) == labels)
    )
    together = clone(model).fit_transform(X, y, links=links)
    assert_allclose(together, model.transform(X, links=links))


def test_new_rows_have_links_to_the_rows_of_the_fit():
    X, labels, links = linked_table()
    old, new = np.arange(100), np.arange(100, 150)
    y = np.where(np.arange(100) % 4 == 0, labels[:100], -1)
    model = SPPCA(2).fit(X[old], y, links=links, sample_index=old)
    linked = model.predict(X[new], links=links, sample_index=new)
    alone = model.predict(X[new])
    assert np.mean(linked == labels[new]) > max(0.85, np.mean(alone == labels[new]))


def test_links_without_meaning_change_nothing():
    left_aside = 0
    for seed in range(5):  # of which one may gain by chance
        X, labels, links = linked_table(noise=2.0, seed=seed)
        y = np.where(np.arange(150) % 5 == 0, labels, -1)
        order = np.random.default_rng(seed + 1).permutation(150)
        permuted = Links(links.adjacency[order][:, order])
        model = SPPCA(2).fit(X, y, links=permuted)
        if model.links_used_:
            continue
        left_aside += 1
        expected = SPPCA(2).fit(X, y)
        assert_allclose(model.transform(X, links=permuted), expected.transform(X))
        assert_allclose(model.impute(X), X)
    assert left_aside >= 3


@pytest.mark.parametrize(
    ("name", "arguments"), [("inverse_transform", 2), ("impute", 10), ("score_samples", 10)]
)
def test_what_linked_rows_do_not_have_is_said(name, arguments):
    X, labels, links = linked_table()
    model = SPPCA(2).fit(X, labels, links=links)
    with pytest.raises(ValueError, match=f"{name} is not defined where content is smoothed"):
        getattr(model, name)(np.zeros((3, arguments)))
    with pytest.raises(ValueError, match="sample is not defined"):
        model.sample()


def test_links_of_a_supervised_fit_are_checked():
    X, labels, links = linked_table()
    with pytest.raises(ValueError, match="links are judged by outputs that differ, and y has none"):
        SPPCA(2).fit(X, links=links)
    with pytest.raises(ValueError, match="links == 'nearest'; accepted are 'neighbours'"):
        SPPCA(2).fit(X, labels, links="nearest")
    with pytest.raises(ValueError, match="links is not what the model was fitted with"):
        SPPCA(2).fit(X, labels, links=links).transform(X, links="neighbours")
    with pytest.raises(ValueError, match="the model was fitted without links"):
        SPPCA(2).fit(X, labels).transform(X, links=links)
    with pytest.raises(ValueError, match="sample_weight has zeros"):
        SPPCA(2).fit(X, labels, np.arange(150.0), links=links)
    with pytest.raises(ValueError, match="a precomputed kernel has none"):
        KernelSPPCA(kernel="precomputed").fit(X @ X.T, labels, links=links)
    with pytest.raises(ValueError, match=r"Links\.from_edges"):
        SPPCA(2).fit(X, labels, links=[(0, 1), (1, 2)])


def test_gaps_beside_links_are_filled_by_what_the_row_has():
    X, labels, links = linked_table(noise=4.0)
    y = np.where(np.arange(150) % 5 == 0, labels, -1)
    rng = np.random.default_rng(3)
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    model = SPPCA(2).fit(gaps, y, links=links)
    assert model.links_used_
    both = np.mean(model.predict(gaps, links=links)[y < 0] == labels[y < 0])
    assert both > 0.85
    # A model of complete rows takes rows with gaps too.
    whole = SPPCA(2).fit(X, y, links=links)
    T, T_gaps = whole.transform(X, links=links), whole.transform(gaps, links=links)
    assert np.mean((T - T_gaps) ** 2) < 0.1 * T.var()


@pytest.mark.parametrize("model", [SPPCA(2), KernelSPPCA(2), SPPCA("auto")])
def test_neighbours_make_a_graph_of_their_own(model):
    X, y = load_digits(return_X_y=True)
    for seed in range(4):  # of one draw of labels in some thirty they are not used
        order = np.random.default_rng(seed).permutation(len(y))
        X, y = X[order], y[order]
        known = np.where(np.arange(500) < 60, y[:500], -1)
        model = clone(model).fit(X[:500], known, links="neighbours")
        if model.links_used_:
            break
    assert model.links_used_
    assert model.linked_rows_.n_neighbours in (5, 10)
    plain = clone(model).fit(X[:500], known)
    new = slice(500, 1500)
    assert model.score(X[new], y[new]) > plain.score(X[new], y[new]) - 0.03
    T = model.transform(X[500:600])
    assert_allclose(T[:7], model.transform(X[500:507]), rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="links is not what the model was fitted with"):
        model.transform(X[new], links=Links.from_edges([(0, 1)], n_nodes=100))


@pytest.mark.filterwarnings("ignore:.*a chunk whose label does not fit")
def test_links_chunks_gaps_and_weights_are_taken_together():
    X, labels, links = linked_table(noise=4.0)
    y = np.where(np.arange(150) % 14 == 0, labels, -1)
    chunks = np.where(np.arange(150) < 90, np.arange(150) // 15 * 3 + labels, -1)
    X[::7, 2] = np.nan
    weights = 1 + np.arange(150) % 2
    model = SPPCA(2).fit(X, y, weights, links=links, chunks=chunks)
    assert model.links_used_
    hidden = y < 0
    assert np.mean(model.predict(X, links=links)[hidden] == labels[hidden]) > 0.85


def test_hubs_that_join_too_many_pairs_are_refused_before_they_are_joined():
    n = 20_000
    hub = sparse.coo_array((np.ones(n - 1), (np.zeros(n - 1, int), np.arange(1, n))), shape=(n, n))
    for directed in (hub, hub.T):
        with pytest.raises(ValueError, match=r"a node with 19,999 links; .* 199,970,001 pairs"):
            Links.colinks(directed)
    small = sparse.csr_array(hub)[:200, :200]
    assert Links.colinks(small).n_links == 199 * 198 // 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_table_of_edges_is_read_by_its_rows(library):
    frames = pytest.importorskip(library)
    edges = frames.DataFrame({"from": ["a", "b"], "to": ["b", "d"], "weight": [1.0, 0.5]})
    links = Links.from_edges(edges[["from", "to"]], weights=edges["weight"], nodes=list("abcd"))
    expected = Links.from_edges([(0, 1), (1, 3)], weights=[1.0, 0.5], n_nodes=4)
    assert (links.adjacency != expected.adjacency).nnz == 0


def test_a_graph_of_one_node_has_no_links():
    assert Links.from_edges([], n_nodes=1).n_nodes == 1
    with pytest.raises(ValueError, match="n_nodes == 0; accepted are integers from 1"):
        Links.from_edges([])


def test_rows_apart_from_the_fit_are_told_where_axes_of_the_graph_are_used():
    n, rng = 240, np.random.default_rng(0)
    classes, A = np.arange(n) % 4, np.zeros((n, n))
    for i in range(8, n):
        hub = 2 * classes[i] + rng.integers(2)
        A[hub, i] = A[i, hub] = 1
    X, y = rng.normal(size=(n, 20)), np.full(n, -1)
    for k in range(4):
        y[rng.choice(np.flatnonzero(classes == k), 15, replace=False)] = k
    model = SPPCA(3).fit(X, y, links=Links(A))
    other = X + 0.01
    with pytest.warns(UserWarning, match="no row has a link to a row of the fit"):
        model.predict(other, links=A)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = model.predict(other, links=A, sample_index=np.arange(n))
    assert np.mean(known[y < 0] == classes[y < 0]) > 0.9
