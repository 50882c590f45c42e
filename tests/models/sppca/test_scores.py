import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from gnomon.models.sppca.predict import Given
from gnomon.models.sppca.probit import Signs
from gnomon.models.sppca.scores import ClassScores, LabelScores, log_probabilities

n, q = 9, 2


def codes(C):
    return np.linalg.qr(np.column_stack([np.ones(C), np.eye(C)[:, :-1]]))[0][:, 1:]


def given(rng, c, patterns=1):
    """Scores of n rows whose covariances differ by pattern."""
    W = rng.normal(size=(patterns, c, q))
    covariances = np.eye(c) + W @ np.swapaxes(W, 1, 2)
    return Given(rng.normal(size=(n, c)), covariances, np.arange(n) % patterns)


def draws(given, rng, size=200_000):
    """Scores (size, n, c) of all rows."""
    L = np.linalg.cholesky(given.covariances)[given.pattern]
    return given.mean + np.einsum("nij,snj->sni", L, rng.normal(size=(size, *given.mean.shape)))


def test_probabilities_of_two_classes_are_exact(rng):
    scores, rows = ClassScores(codes(2), q), given(rng, 1, patterns=2)
    P = scores.probabilities(rows)
    deviation = np.sqrt(rows.covariances[rows.pattern, 0, 0])
    ahead = rows.mean[:, 0] * np.sign(codes(2)[1, 0])
    assert_allclose(P[:, 1], ndtr(ahead / deviation), rtol=1e-9)


@pytest.mark.parametrize("patterns", [1, 2])
def test_probabilities_of_classes_are_near_the_shares_of_draws(rng, patterns):
    H, rows = codes(4), given(rng, 3, patterns)
    P = ClassScores(H, q).probabilities(rows)
    winners = np.argmax(draws(rows, rng, 50_000) @ H.T, axis=2)
    shares = np.stack([np.mean(winners == k, axis=0) for k in range(4)], axis=1)
    assert_allclose(P.sum(axis=1), 1)
    assert_allclose(P, shares, atol=0.015)


def test_codes_have_the_moments_of_their_classes(rng):
    H, rows = codes(3), given(rng, 2)
    scores = ClassScores(H, q)
    P, found = scores.probabilities(rows), scores.outputs(rows)
    assert_allclose(found.mean @ H.T + 1 / 3, P)
    indicators = np.stack([np.diag(p) - np.outer(p, p) for p in P])
    assert_allclose(H @ found.covariances @ H.T, indicators, atol=1e-12)
    assert_allclose(scores.means(rows), found.mean)


def test_labels_have_the_moments_of_their_draws(rng):
    rows, center = given(rng, 3, patterns=2), np.array([0.2, 0.5, 0.9])
    found = LabelScores(center, q).outputs(rows)
    labels = draws(rows, rng, 50_000) > 0
    assert_allclose(found.mean + center, labels.mean(axis=0), atol=0.01)
    covariances = [np.cov(labels[:, i].T) for i in range(n)]
    assert_allclose(found.covariances, covariances, atol=0.01)


def test_known_labels_help_to_fill_the_others(rng):
    rows, center = given(rng, 3), np.full(3, 0.5)
    rows.mean[:, 0] = 0.5
    Y, observed = np.full((n, 3), 0.5), np.zeros((n, 3), dtype=bool)
    observed[:, 0] = True
    values, deviations = LabelScores(center, q).fill(rows, Y, observed)
    labels = draws(rows, rng, 50_000) > 0
    shares = [labels[labels[:, i, 0], i].mean(axis=0) for i in range(n)]
    assert_allclose(values[:, 0], Y[:, 0])
    assert_allclose(values[:, 1:] + 0.5, np.array(shares)[:, 1:], atol=0.02)
    assert_allclose(deviations[:, 0], 0)


def test_drawn_scores_become_the_columns_of_the_fit(rng):
    H, drawn = codes(3), rng.normal(size=(n, 2))
    assert_allclose(ClassScores(H, q).columns(drawn), H[np.argmax(drawn @ H.T, axis=1)])
    assert_allclose(LabelScores(np.array([0.3, 0.6]), q).columns(drawn), (drawn > 0) - [0.3, 0.6])


def test_rows_do_not_depend_on_their_block(rng, monkeypatch):
    rows, signs = given(rng, 3, patterns=2), Signs(np.sign(rng.normal(size=(n, 3))))
    whole = log_probabilities(rows, signs, q)
    monkeypatch.setattr("gnomon.models.sppca.scores.BLOCK_ENTRIES", 24)
    assert_allclose(log_probabilities(rows, signs, q), whole, atol=1e-9)
