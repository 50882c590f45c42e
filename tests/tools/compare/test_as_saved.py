"""The scores of a fitted model as it is, on rows of another table."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import f1_score
from sklearn.neighbors import KNeighborsClassifier

import gnomon
from gnomon.tools.compare.as_saved import as_saved

HALF = np.arange(150) % 2 == 0


@pytest.fixture(scope="module")
def flowers():
    """A model of half of the rows, and the other half, in which a class has another name."""
    X, y = load_iris(return_X_y=True)
    y = np.array(["a", "b", "c"], dtype=object)[y]
    model = gnomon.SPPCA(3, supervision=0.5).fit(X[HALF], y[HALF])
    labels = np.where(y[~HALF] == "c", "d", y[~HALF])
    return model, X[~HALF], np.where(np.arange(75) % 5, labels, None)


def test_the_figure_is_what_score_says_of_the_labelled_rows(flowers):
    model, X, y = flowers
    known = np.array([label is not None for label in y])
    score = as_saved(model, X, y, "classes")
    assert_allclose(score.value, model.score(X[known], y[known]))
    assert (score.n_rows, score.on) == (known.sum(), "this table")
    assert score.of == "the saved model's prediction"
    assert score.control is None
    rows = score.rows
    assert rows.saved
    assert list(rows.names) == ["a", "b", "c", "d"]
    assert_allclose(rows.proba[:, :3], model.predict_proba(X[known]))
    assert not rows.proba[:, 3].any()
    assert list(rows.names[rows.truth]) == list(y[known])


def test_neighbours_on_its_map_are_the_other_rows(flowers):
    model, X, y = flowers
    known = np.array([label is not None for label in y])
    Z, labels = model.transform(X[known]), y[known].astype(str)
    whole, drawn = as_saved(model, X, y, "classes").more
    for score, size in ((whole, 3), (drawn, 2)):
        near = KNeighborsClassifier(2).fit(Z[:, :size], labels).kneighbors()[1][:, 0]
        assert_allclose(score.value, np.mean(labels[near] == labels))


def test_a_map_without_predictions_is_scored_by_neighbours(flowers):
    _, X, y = flowers
    score = as_saved(gnomon.PPCA(2).fit(X), X, y, "classes")
    assert score.of.startswith("nearest labelled rows on the map")
    assert score.rows is None


def test_numbers_and_labels_are_scored_as_they_are():
    X, y = load_diabetes(return_X_y=True)
    model = gnomon.SPPCA(2, supervision=0.5, target="numeric").fit(X[::2], y[::2])
    score = as_saved(model, X[1::2], y[1::2], "numeric")
    assert_allclose(score.value, model.score(X[1::2], y[1::2]))
    assert_allclose(score.rows.std, model.predict(X[1::2], return_std=True)[1])
    assert as_saved(model, X, np.ones(len(X)), "numeric") is None
    Y = np.column_stack([y > 150, X[:, 2] > 0]).astype(float)
    model = gnomon.SPPCA(2, supervision=0.5, target="multilabel").fit(X[::2], Y[::2])
    score = as_saved(model, X[1::2], Y[1::2], "multilabel", names=("high", "wide"))
    assert_allclose(score.value, f1_score(Y[1::2], model.predict(X[1::2]) > 0.5, average="macro"))
    assert [part.of for part in score.parts] == ["high", "wide"]


def test_without_a_target_the_density_is_that_of_the_model(flowers):
    _, X, _ = flowers
    model = gnomon.PPCA(2).fit(X)
    score = as_saved(model, X + 1, None, None)
    assert_allclose(score.value, model.score(X + 1))
    assert as_saved(gnomon.PPCA(2).fit(X), X, np.full(75, None), "classes") is None
