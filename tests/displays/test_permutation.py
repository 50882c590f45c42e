import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from gnomon import LabelledOnly
from gnomon.displays import PermutationDisplay


def test_real_structure_stands_out():
    X, y = load_iris(return_X_y=True)
    display = PermutationDisplay.from_estimator(PCA(2), X, y, n_permutations=9)
    assert display.score > 0.9 > 0.6 > max(display.permuted_scores)
    assert display.p_value == 0.1
    bars, real = display.ax_.patches, display.ax_.lines[0]
    assert sum(bar.get_height() for bar in bars) == 9
    assert real.get_xdata()[0] == display.score


def test_the_score_is_that_of_the_nearest_labelled_neighbour():
    X, y = load_iris(return_X_y=True)
    y[np.arange(150) % 3 > 0] = -1
    display = PermutationDisplay.from_estimator(PCA(4), X, y, n_permutations=1)
    judge = LabelledOnly(KNeighborsClassifier(1)).fit(X, y)
    assert abs(display.score - judge.score(X, load_iris().target)) < 0.1


def test_both_maps_are_drawn_with_their_own_labels():
    X, y = load_iris(return_X_y=True)
    model = LabelledOnly(LinearDiscriminantAnalysis())
    y[np.arange(150) % 5 > 1] = -1
    display = PermutationDisplay.from_estimator(model, X, y, n_permutations=2, kind="embedding")
    assert len(display.axes_) == 2
    for panel, Z, labels in zip(display.axes_, display.embeddings, display.labels, strict=True):
        assert_allclose(panel.collections[0].get_offsets(), Z[labels == -1])
        assert_allclose(panel.collections[1].get_offsets(), Z[labels == 0])
    assert f"{display.score:.2f}" in display.axes_[0].get_title()


def test_numbers_are_judged_by_a_regressor(rng):
    X = rng.normal(size=(60, 3))
    display = PermutationDisplay.from_estimator(PCA(3), X, X[:, 0] + 0.5, n_permutations=3)
    assert display.score > 0 > max(display.permuted_scores)


def test_maps_need_embeddings():
    with pytest.raises(ValueError, match="from_estimator"):
        PermutationDisplay(0.5, [0.4]).plot(kind="embedding")


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind == 'pie'"):
        PermutationDisplay(0.5, [0.4]).plot(kind="pie")
