import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import MultinomialProbit


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:y has no label for:UserWarning")
@parametrize_with_checks(
    [
        MultinomialProbit(max_iter=8),
        MultinomialProbit(prior="column", max_iter=8),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("prior", ["entry", "column"])
def test_wine_is_classified_and_the_bound_ascends(prior):
    X, y = load_wine(return_X_y=True)
    model = MultinomialProbit(prior=prior).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.95
    assert np.diff(model.objective_).min() > -1e-9 * abs(model.objective_[0])
    assert model.coef_sd_.shape == model.coef_.shape == (3, 13)


def test_without_standardising_the_units_of_the_features_matter():
    X, y = load_wine(return_X_y=True)
    units = 10.0 ** np.arange(-3, 10) % 7 + 0.1
    same = [MultinomialProbit().fit(X * s, y).predict_proba(X * s) for s in (1.0, units)]
    other = [
        MultinomialProbit(standardize=False).fit(X * s, y).predict_proba(X * s)
        for s in (1.0, units)
    ]
    assert_allclose(same[0], same[1], atol=1e-4)
    assert np.abs(other[0] - other[1]).max() > 1e-2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_stops_the_fit_and_sees_its_factors():
    X, y = load_wine(return_X_y=True)
    seen = []

    def watch(n_iter, state, objective):
        seen.append(state.V.shape)
        return n_iter == 3

    model = MultinomialProbit(callback=watch).fit(X, y)
    assert seen == [(13, 3)] * 3
    assert model.n_iter_ == 3


def test_probabilities_are_close_to_a_logistic_fit(rng):
    X = rng.standard_normal((2000, 3))
    y = (X @ rng.standard_normal((3, 4)) + rng.standard_normal((2000, 4))).argmax(axis=1)
    probit = MultinomialProbit().fit(X, y).predict_proba(X)
    logistic = LogisticRegression(C=1e3).fit(X, y).predict_proba(X)
    assert_allclose(probit.sum(axis=1), 1)
    assert np.abs(probit - logistic).mean() < 0.02


def test_intercept_and_weights_give_the_scores():
    X, y = load_wine(return_X_y=True)
    model = MultinomialProbit().fit(X, y)
    assert np.mean((X @ model.coef_.T + model.intercept_).argmax(axis=1) == model.predict(X)) == 1


def test_more_features_than_rows_are_fine(rng):
    X = rng.standard_normal((30, 100))
    y = np.where(X[:, 0] > 0, "a", "b")
    for prior in ("entry", "column"):
        assert MultinomialProbit(prior=prior).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("prior", ["entry", "column"])
def test_a_constant_column_is_left_out(prior):
    """The mean of 178 times 0.1 is not 0.1 to the last bit, but the column does not vary."""
    X, y = load_wine(return_X_y=True)
    padded = np.column_stack([X, np.full(len(y), 0.1)])
    model = MultinomialProbit(prior=prior).fit(padded, y)
    assert_array_equal(model.coef_[:, 13], 0)
    assert np.diff(model.objective_).min() > -1e-9 * abs(model.objective_[0])
    moved = padded + 1e-9 * (np.arange(14) == 13)
    assert_array_equal(model.predict_proba(moved), model.predict_proba(padded))


def test_bad_parameters_are_named():
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match="prior == 'row'; accepted"):
        MultinomialProbit(prior="row").fit(X, y)
    with pytest.raises(ValueError, match=r"weight_prior\[1\] == -1"):
        MultinomialProbit(weight_prior=(1, -1)).fit(X, y)
    with pytest.raises(ValueError, match="1 class"):
        MultinomialProbit().fit(X, np.ones(len(y)))


def test_wide_sparse_rows_are_never_made_dense(rng, monkeypatch):
    """By default the weights of a class share a precision there, which needs products only."""
    wide = sparse.random_array((40, 3000), density=0.01, rng=rng, format="csr")
    y = np.arange(40) % 3
    with pytest.raises(ValueError, match="prior == 'entry' with a sparse X of more features"):
        MultinomialProbit(prior="entry").fit(wide, y)
    expected = MultinomialProbit(prior="column").fit(wide.toarray(), y)
    to_array = type(wide).toarray

    def of_few_columns(array):
        assert array.shape[1] <= 40
        return to_array(array)

    monkeypatch.setattr(type(wide), "toarray", of_few_columns)
    model = MultinomialProbit().fit(wide, y)
    assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.__dict__["_inputs"].table.rows.nnz == wide.nnz
