import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import LabelledOnly, labelled_scorer


@parametrize_with_checks(
    [
        LabelledOnly(LogisticRegression()),
        LabelledOnly(Ridge()),
        LabelledOnly(KNeighborsClassifier()),
    ]
)
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.fixture
def sample(rng):
    y = np.repeat([0, 1, -1], 20)
    return rng.standard_normal((60, 3)) + np.abs(y)[:, None], y


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.coo_array])
def test_fit_sees_labelled_rows_only(sample, container):
    X, y = sample
    model = LabelledOnly(LogisticRegression()).fit(container(X), y)
    expected = LogisticRegression().fit(X[y >= 0], y[y >= 0])
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-4)
    assert_array_equal(model.classes_, [0, 1])


def test_data_frames_keep_their_names(sample):
    pandas = pytest.importorskip("pandas")
    X, y = sample
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = LabelledOnly(LogisticRegression()).fit(frame, pandas.Series(y))
    assert_array_equal(model.estimator_.feature_names_in_, ["a", "b", "c"])


def test_kinds_of_estimators_show_through():
    assert is_classifier(LabelledOnly(LogisticRegression()))
    assert is_regressor(LabelledOnly(Ridge()))
    assert hasattr(LabelledOnly(LinearDiscriminantAnalysis()), "transform")
    assert not hasattr(LabelledOnly(Ridge()), "predict_proba")


def test_numbers_without_gaps_are_measurements(rng):
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    y[0] = -1.0
    y[1] = np.nan
    model = LabelledOnly(Ridge()).fit(X, y)
    expected = Ridge().fit(np.delete(X, 1, axis=0), np.delete(y, 1))
    np.testing.assert_allclose(model.estimator_.coef_, expected.coef_)


def test_a_supervised_transformer_is_fitted_on_labelled_rows(sample):
    X, y = sample
    model = LabelledOnly(LinearDiscriminantAnalysis()).fit(X, y)
    expected = LinearDiscriminantAnalysis().fit(X[y >= 0], y[y >= 0])
    np.testing.assert_allclose(model.transform(X), expected.transform(X))


def test_minus_one_and_one_alone_are_two_classes(rng):
    X = rng.standard_normal((20, 2))
    model = LabelledOnly(KNeighborsClassifier(1)).fit(X, np.repeat([-1, 1], 10))
    assert_array_equal(model.classes_, [-1, 1])


def test_weights_are_those_of_the_labelled_rows(sample):
    X, y = sample
    weights = np.arange(60.0)
    model = LabelledOnly(LogisticRegression()).fit(X, y, sample_weight=weights)
    known = y >= 0
    expected = LogisticRegression().fit(X[known], y[known], sample_weight=weights[known])
    np.testing.assert_allclose(model.estimator_.coef_, expected.coef_, atol=1e-4)


def test_a_score_takes_the_weights_of_the_labelled_rows(sample):
    X, y = sample
    weights = np.arange(60.0)
    model = LabelledOnly(LogisticRegression()).fit(X, y)
    known = y >= 0
    hits = model.predict(X[known]) == y[known]
    score = labelled_scorer("accuracy")(model, X, y, sample_weight=weights)
    assert score == np.average(hits, weights=weights[known])


def test_nullable_integers_and_categories_are_classes(sample):
    pandas = pytest.importorskip("pandas")
    X, y = sample
    expected = LabelledOnly(LogisticRegression()).fit(X, y)
    known = pandas.Series(y).where(y >= 0)
    for stored in (known.astype("Int64"), known.astype("Int64").astype("category")):
        model = LabelledOnly(LogisticRegression()).fit(X, stored)
        assert_array_equal(model.classes_, [0, 1])
        assert_array_equal(model.estimator_.coef_, expected.estimator_.coef_)
        assert labelled_scorer("accuracy")(model, X, stored) == model.score(X, y)


def test_labels_are_asked_for(sample):
    with pytest.raises(ValueError, match="y has no labelled row; LabelledOnly needs"):
        LabelledOnly(LogisticRegression()).fit(sample[0], np.full(60, -1))


def test_a_class_of_minus_one_is_scored(sample):
    X, y = sample
    signs = np.where(y > 0, 1, -1)
    model = LogisticRegression().fit(X, signs)
    lower = signs < 0
    score = labelled_scorer("accuracy")(model, X[lower], signs[lower])
    assert score == np.mean(model.predict(X[lower]) == -1)
