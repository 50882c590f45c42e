import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.models.gaussian import filling


@pytest.fixture
def rows():
    """Rows of rank two in columns of different units, and the same with gaps."""
    rng = np.random.default_rng(0)
    units = np.array([1.0, 100.0, 0.01, 5.0, 1.0, 30.0])
    X = (rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(200, 6))) + 3
    X *= units
    return X, np.where(rng.random(X.shape) < 0.3, np.nan, X)


def dense(found):
    """Mean and covariance of a row under the filling."""
    W = found.W * np.reshape(found.scale, (-1, 1))
    return found.mean, W @ W.T + found.noise * np.diag(np.broadcast_to(found.scale, len(W)) ** 2)


def conditional(found, x):
    """Mean and covariance (d, d) of a row given what it observes, by the dense formula."""
    mean, S = dense(found)
    m, o = np.isnan(x), ~np.isnan(x)
    gain = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)])
    out, C = x.copy(), np.zeros_like(S)
    out[m] = mean[m] + gain @ (x[o] - mean[o])
    C[np.ix_(m, m)] = S[np.ix_(m, m)] - gain @ S[np.ix_(o, m)]
    return out, C


def test_gaps_are_at_their_conditional_means(rows):
    _, X = rows
    found = filling.learn(X)
    expected = np.array([conditional(found, x)[0] for x in X])
    assert_allclose(filling.fill(found, X), expected, rtol=1e-9)


def test_what_is_linear_has_the_conditional_covariance(rows):
    _, X = rows
    found, P = filling.learn(X), np.random.default_rng(1).normal(size=(6, 3))
    covariances, pattern = filling.covariances(found, X, P)
    expected = np.array([P.T @ conditional(found, x)[1] @ P for x in X])
    assert_allclose(covariances[pattern], expected, rtol=1e-7, atol=1e-7 * expected.max())


def test_draws_have_the_conditional_moments(rows):
    _, X = rows
    found = filling.learn(X)
    row = X[np.isnan(X).sum(axis=1) == 3][:1]
    rng, own = np.random.default_rng(0), np.arange(5000)
    many = np.concatenate(list(filling.draws(found, np.repeat(row, 5000, axis=0), 4, rng, own)))
    (mean, C), m = conditional(found, row[0]), np.isnan(row[0])
    assert_allclose(many[:, ~m], np.repeat(row[:, ~m], len(many), axis=0))
    mean, C, many = mean[m], C[np.ix_(m, m)], many[:, m]
    sd = np.sqrt(np.diagonal(C))
    assert_allclose((many.mean(axis=0) - mean) / sd, 0, atol=0.05)
    assert_allclose(np.cov(many.T) / np.outer(sd, sd), C / np.outer(sd, sd), atol=0.05)


def test_what_is_drawn_of_a_row_does_not_depend_on_those_beside_it(rows):
    _, X = rows
    found = filling.learn(X)
    every = list(filling.draws(found, X[:9], 3, np.random.default_rng(0)))
    for i in range(9):
        alone = filling.draws(found, X[i : i + 1], 3, np.random.default_rng(0))
        assert_allclose([part[i] for part in every], [part[0] for part in alone])


def test_copies_do_not_depend_on_the_order_of_rows_nor_on_their_repetition(rows):
    _, X = rows
    found, order = filling.learn(X), np.random.default_rng(0).permutation(30)
    one, two = (
        filling.copies(found, some, 4, np.random.default_rng(0))
        for some in (X[:30], np.vstack([X[order], X[order[:7]]]))
    )
    for i, row in enumerate(order):
        assert_allclose(two[0][two[1] == i], one[0][one[1] == row])
    for i in range(7):
        assert_allclose(two[0][two[1] == 30 + i], two[0][two[1] == i])


def test_complete_rows_and_a_single_gap_have_nearly_one_filling(rows):
    X, _ = rows
    holed = X.copy()
    holed[0, 0] = np.nan
    whole, other = filling.learn(X), filling.learn(holed)
    _, S = dense(whole)
    sd = np.sqrt(np.diagonal(S))
    assert_allclose(dense(other)[1] / np.outer(sd, sd), S / np.outer(sd, sd), atol=0.02)


def test_more_columns_than_rows_have_the_same_closed_form(rows):
    X, _ = rows
    wide, tall = X[:4], np.vstack([X[:4]] * 5)
    assert_allclose(dense(filling.learn(wide))[1], dense(filling.learn(tall))[1], rtol=1e-6)


def test_weights_are_repeated_rows(rows):
    _, X = rows
    weights = np.tile([1.0, 2.0], 100)
    found = filling.learn(X, weights)
    again = filling.learn(np.repeat(X, weights.astype(int), axis=0))
    assert_allclose(dense(found)[1], dense(again)[1], rtol=0.05)
    assert_allclose(found.mean, again.mean, rtol=1e-3)


def test_planted_rows_are_filled_far_better_than_by_means(rows):
    whole, X = rows
    gaps, sd = np.isnan(X), whole.std(axis=0)
    error = (filling.fill(filling.learn(X), X) - whole) / sd
    by_means = (np.nanmean(X, axis=0) - whole) / sd
    assert np.mean(error[gaps] ** 2) < 0.2 * np.mean(by_means[gaps] ** 2)


def test_a_column_that_does_not_vary_is_filled_with_its_value(rows):
    _, X = rows
    X = np.column_stack([X, np.where(np.arange(200) < 9, np.nan, 0.1)])
    assert_allclose(filling.fill(filling.learn(X), X)[:, -1], 0.1)


def test_a_column_without_any_value_is_refused(rows):
    _, X = rows
    X[:, 2] = np.nan
    with pytest.raises(ValueError, match="no observed value in column 2"):
        filling.learn(X)


def test_sparse_rows_teach_no_filling(rows):
    assert filling.learn(sparse.csr_array(rows[0])) is None


@pytest.mark.parametrize("gaps", [False, True])
def test_of_very_many_rows_every_so_manieth_is_learnt_from(rows, monkeypatch, gaps):
    X, weights = rows[gaps], np.linspace(1, 2, 200)
    expected = filling.learn(X[::4], weights[::4])
    monkeypatch.setattr(filling, "MOST_ROWS", 60)
    found = filling.learn(X, weights)
    assert_allclose(found.mean, expected.mean)
    assert_allclose(found.W, expected.W)


def test_units_are_means_and_deviations_of_what_is_seen(rng):
    X = 100 + rng.normal(size=(30, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    mean, sd = filling._units(X, np.ones(30))
    assert_allclose(mean, np.nanmean(X, axis=0))
    assert_allclose(sd, np.nanstd(X, axis=0))


def test_one_axis_that_is_left_is_the_noise(rng):
    U = rng.normal(size=(40, 5)) * np.arange(1, 6)
    _, _, noise = filling._complete(U, np.ones(40), 4)
    assert_allclose(noise, np.linalg.eigvalsh(U.T @ U / 40)[0])


def test_a_column_that_does_not_vary_has_a_unit_of_one():
    X = np.column_stack([np.full(6, 0.1), np.arange(6.0)])
    X[2] = np.nan
    assert filling._units(X, np.ones(6))[1][0] == 1.0
