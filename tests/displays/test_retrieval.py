import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import FunctionTransformer

from gnomon.displays import RetrievalDisplay
from gnomon.displays.retrieval import average_precision, nearest
from gnomon.displays.style import PALETTE


def test_nearest_is_by_angle():
    gallery = np.array([[1.0, 0.1], [0.0, 5.0], [9.0, 9.0]])
    assert nearest([[0.1, 0.1]], gallery, 3).tolist() == [[2, 0, 1]]


def test_average_precision_is_scikit_learns(rng):
    hits = rng.random((5, 30)) < 0.3
    ranks = -np.arange(30.0)
    expected = [average_precision_score(row, ranks) for row in hits]
    assert_allclose(average_precision(hits), expected)


def test_a_query_without_hits_has_no_average_precision():
    assert np.isnan(average_precision(np.zeros((1, 4)))[0])


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    X, y = data.data[:300], data.target[:300]
    return PCA(8).fit(X), X, y, data.images[:300]


def test_rows_show_queries_and_their_neighbours(digits):
    model, X, y, images = digits
    display = RetrievalDisplay.from_estimator(model, X, y, images=images, queries=4, k=3)
    Z = model.transform(X)
    cosine = Z @ Z.T / np.outer(*[np.linalg.norm(Z, axis=1)] * 2)
    np.fill_diagonal(cosine, -2)
    for row, query in zip(display.axes_, display.queries, strict=True):
        expected = [query, *np.argsort(-cosine[query])[:3]]
        assert_allclose([panel.images[0].get_array() for panel in row], images[expected])


def test_hits_are_framed_apart_from_misses(digits):
    model, X, y, images = digits
    # Every class in two halves, so that about half the neighbours are hits.
    y = 2 * y + np.arange(300) % 2
    display = RetrievalDisplay.from_estimator(model, X, y, images=images, queries=10, k=5)
    assert_allclose(display.hits_, y[display.neighbours] == y[display.queries][:, None])
    assert 0 < display.hits_.mean() < 1
    for panel, hit in zip(display.axes_[:, 1:].ravel(), display.hits_.ravel(), strict=True):
        expected = to_rgba(PALETTE[2] if hit else PALETTE[1])
        assert panel.spines["left"].get_edgecolor() == expected


def test_queries_take_the_classes_in_turn(digits):
    model, X, y, _ = digits
    display = RetrievalDisplay.from_estimator(model, X, y, queries=10, k=2)
    assert sorted(y[display.queries]) == list(range(10))


def test_mean_average_precision_asks_for_every_row(digits):
    model, X, y, _ = digits
    display = RetrievalDisplay.from_estimator(model, X, y, queries=1, k=1)
    Z = model.transform(X)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    others = ~np.eye(300, dtype=bool)
    expected = [
        average_precision_score(y[mask] == label, Z[mask] @ z)
        for mask, label, z in zip(others, y, Z, strict=True)
    ]
    assert_allclose(display.mean_average_precision, np.mean(expected))


def test_unlabelled_rows_are_neither_asked_for_nor_found(rng):
    X, y = rng.normal(size=(30, 2)), np.where(np.arange(30) < 12, np.arange(30) % 2, -1)
    display = RetrievalDisplay.from_estimator(FunctionTransformer().fit(X), X, y, queries=6, k=4)
    assert max(display.queries) < 12
    assert display.neighbours.max() < 12
    assert not np.any(display.neighbours == display.queries[:, None])


def test_without_pictures_the_class_is_written():
    display = RetrievalDisplay([2], [[0, 1]], labels=["a", "b", "a"]).plot()
    assert [panel.texts[0].get_text() for panel in display.axes_[0]] == ["a", "a", "b"]


def test_the_rows_fit_in_given_axes():
    figure, axes = plt.subplots(1, 2)
    display = RetrievalDisplay([2], [[0, 1]], labels=["a", "b", "a"]).plot(axes[0])
    assert display.figure_ is figure and display.axes_.shape == (1, 3)


def test_numbers_have_no_hits(rng):
    X = rng.normal(size=(10, 2))
    with pytest.raises(ValueError, match="y must hold classes"):
        RetrievalDisplay.from_estimator(FunctionTransformer().fit(X), X, X[:, 0])
