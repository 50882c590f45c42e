import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs, SignOutputs, mask_of


def test_masks_are_ones_where_known_and_none_where_all_are():
    assert mask_of(np.ones((3, 2), dtype=bool)) is None
    assert_array_equal(mask_of(np.array([[True, False]])), [[1.0, 0.0]])
    assert SignOutputs(np.array([[1.0, -1.0]])).observed is None
    assert_array_equal(SignOutputs(np.array([[1.0, 0.0]])).observed, [[1.0, 0.0]])


def test_regression_of_class_columns_is_discriminant_analysis(rng):
    """Also in its order: the fitted values vary most along the leading discriminant."""
    labels = np.repeat([0, 1, 2], [50, 8, 20])
    X = rng.standard_normal((78, 4)) + np.array([[0, 0], [3, 0], [0, 2]])[labels] @ np.eye(2, 4)
    X -= X.mean(axis=0)
    columns = ClassOutputs(labels, 3).start_columns()
    weights = np.linalg.lstsq(X, columns - columns.mean(axis=0), rcond=None)[0]
    leading = np.linalg.svd(X @ weights)[2][:2]
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, labels).scalings_[:, :2]
    ours = weights @ leading.T
    cosine = np.sum(ours * theirs, axis=0)
    cosine /= np.linalg.norm(ours, axis=0) * np.linalg.norm(theirs, axis=0)
    assert_allclose(np.abs(cosine), 1.0, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_of_classes_sum_their_log_probabilities(n_classes):
    """With equal means every class is as probable as any other."""
    outputs = ClassOutputs(np.zeros(5, dtype=int), n_classes)
    T, log_Z = outputs.scores(np.zeros((5, n_classes)))
    assert_allclose(log_Z, -5 * np.log(n_classes), rtol=1e-6)
    assert_allclose(T.sum(axis=1), 0.0, atol=1e-6)


def test_numbers_are_their_own_scores(rng):
    Y = rng.standard_normal((4, 2))
    outputs = NumberOutputs(Y)
    assert outputs.scores(None) == (Y, 0.0)
    assert outputs.draw(None, rng) is Y
    assert outputs.n_outputs == 2


def test_numbers_start_with_columns_whose_products_are_means(rng):
    Y = rng.normal(size=(50, 3))
    columns = NumberOutputs(Y).start_columns()
    assert_allclose(columns.T @ columns, Y.T @ Y / 50)
