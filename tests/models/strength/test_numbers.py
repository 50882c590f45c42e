import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.linalg.data import as_data, center
from gnomon.models.strength import completion, numbers
from gnomon.models.strength.closed_form import coordinates, principal_space
from gnomon.models.strength.completion import Outputs, complete

n, d = 40, 5


@pytest.fixture
def spaces(rng):
    """Of rows, and of features that bend them; outputs linear in the first, and in the second."""
    X = rng.standard_normal((n, d))
    spaces = [principal_space(*center(as_data(rows)), d, rng) for rows in (np.tanh(3 * X), X)]
    coef, noise = rng.standard_normal((d, 2)), 0.01 * rng.standard_normal((n, 2))
    Y = np.column_stack([np.tanh(3 * X) @ coef[:, 0], X @ coef[:, 1]]) + noise
    return X, *spaces, Y - Y.mean(axis=0)


def test_each_output_is_predicted_by_what_finds_rows_left_out(spaces):
    X, bent, plain, Y = spaces
    head, _ = numbers.learn(bent, plain, Outputs(Y, np.ones(Y.shape, dtype=bool)))
    assert_allclose(head.say, [0, 1], atol=1e-6)
    by_kernel = np.full(Y.shape, 7.0)
    expected = numbers.expected(head, X, by_kernel)
    assert_allclose(expected[:, 0], 7)
    assert_allclose(expected[:, 1], Y[:, 1], atol=0.1)


def test_shares_are_likelihoods_of_rows_left_out_and_the_covariance_is_that_of_both(
    spaces, rng, monkeypatch
):
    """Of many rows; of few the covariance is that of rows in folds."""
    monkeypatch.setattr(completion, "RULE", completion.RULE._replace(many_rows=10))
    _, bent, plain, _ = spaces
    Y = rng.standard_normal((n, 1))
    observed = np.arange(n)[:, None] % 3 > 0
    head, by_kernel = numbers.learn(bent, plain, Outputs(Y, observed))
    rows = np.flatnonzero(observed)
    known, ones = Outputs(Y, observed).rows(rows), np.ones(len(rows))
    fits = [complete(coordinates(space, rows), known, ones) for space in (bent, plain)]
    assert_allclose(by_kernel.coef, bent.axes @ fits[0].B)
    E = [fit.residuals for fit in fits]
    variances = np.array([np.mean(part**2) for part in E])
    odds = (variances[0] / variances[1]) ** (len(rows) / 2)
    assert 0.01 < head.say[0] < 0.99
    assert_allclose(head.say, odds / (1 + odds))
    left = np.array([[np.sum(np.delete(part, i) ** 2) for i in range(len(rows))] for part in E])
    odds = (left[0] / left[1]) ** ((len(rows) - 1) / 2)
    say = (odds / (1 + odds))[:, None]
    together = (1 - say) * E[0] + say * E[1]
    freedom = len(rows) - 1
    assert_allclose(by_kernel.covariance[0, 0], np.mean(together**2) * freedom / (freedom - 2))


def test_rows_in_folds_are_left_out_of_all_that_is_chosen(spaces, rng):
    _, bent, plain, _ = spaces
    Y = rng.standard_normal((n, 1))
    outputs = Outputs(Y, np.ones((n, 1), dtype=bool))
    _, by_kernel = numbers.learn(bent, plain, outputs)
    views = [(coordinates(space, np.arange(n)), space.variances) for space in (bent, plain)]
    ranks = np.argsort(np.argsort(np.sum(views[1][0] ** 2, axis=1)))
    E = np.empty((n, 1))
    for fold in range(10):
        lost = ranks % 10 == fold
        E[lost] = numbers._errors(views, outputs, np.ones(n), lost, ~lost)
        some = outputs.rows(~lost), np.ones(n)[~lost]
        fits = [complete(F[~lost], *some, variances=own) for F, own in views]
        guesses = [fit.offset + F[lost] @ fit.B for (F, _), fit in zip(views, fits, strict=True)]
        lowest, highest = np.minimum(*guesses), np.maximum(*guesses)
        assert np.all((Y[lost] - E[lost] > lowest - 1e-9) & (Y[lost] - E[lost] < highest + 1e-9))
    assert_allclose(by_kernel.covariance[0, 0], np.mean(E**2) * (n - 1) / (n - 3))
