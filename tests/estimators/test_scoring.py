import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics import r2_score

from gnomon import BSDR, DCAGM, BSDRRegressor, MultinomialProbit


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    return rng.normal(size=(60, 3)) + 2 * np.eye(3)[labels], labels


@pytest.mark.parametrize("model", [DCAGM(2), BSDR(2), MultinomialProbit()])
@pytest.mark.parametrize("mark", [-1, None, np.nan])
@pytest.mark.filterwarnings("ignore:y has no label")
def test_rows_without_a_label_do_not_count(sample, model, mark):
    X, labels = sample
    y = labels.astype(float if mark is np.nan else object)
    y[::4] = mark
    model.fit(X, y)
    known = np.arange(60) % 4 > 0
    expected = np.mean(model.predict(X)[known] == labels[known])
    assert_allclose(model.score(X, y), expected)
    assert_allclose(model.score(sparse.csr_array(X), y.tolist()), expected)
    weights = np.where(np.arange(60) % 2, 1.0, 3.0)
    hits = model.predict(X) == labels
    assert_allclose(model.score(X, y, weights), np.average(hits[known], weights=weights[known]))
    with pytest.raises(ValueError, match="y has no labelled row"):
        model.score(X, np.full(60, -1))


def test_a_class_of_minus_one_counts(sample):
    X, labels = sample
    signs = np.where(labels > 0, 1, -1)
    model = DCAGM(1).fit(X, signs)
    lower = signs < 0
    assert_allclose(model.score(X[lower], signs[lower]), np.mean(model.predict(X[lower]) == -1))


@pytest.mark.filterwarnings("ignore:y has no label")
def test_numbers_without_gap_are_scored(sample):
    X, _ = sample
    Y = np.column_stack([X[:, 0], X[:, 1] - 1])
    gaps = Y.copy()
    gaps[::5, 0] = np.nan
    model = BSDRRegressor(2).fit(X, gaps)
    known = np.arange(60) % 5 > 0
    assert_allclose(model.score(X, gaps), model.score(X[known], Y[known]))


def test_a_number_of_minus_one_is_scored(sample):
    X, labels = sample
    y = labels - 1.0
    model = BSDRRegressor(1).fit(X, y)
    assert_allclose(model.score(X, y), r2_score(y, model.predict(X)))


def test_labels_that_are_missing_altogether_are_asked_for(sample):
    with pytest.raises(ValueError, match="DCAGM requires y to be passed"):
        DCAGM(2).fit(sample[0], None)
