from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon import PPCA
from gnomon.datasets import make_subspace, remove_entries
from gnomon.models.gaussian import dimension, patterns, whole


@pytest.mark.parametrize("top", [1, 2, 6, 11, 23, 29])
def test_the_top_is_found_without_trying_every_size(top):
    seen: dict[int, float] = {}

    def score(q):
        return seen.setdefault(q, -abs(q - top))

    best = dimension._climb(score, 40)
    assert dimension._top(score, seen, best) == top
    assert len(seen) <= 20


def test_with_gaps_the_planted_size_is_found_by_either_way(monkeypatch):
    data = patterns.inputs(remove_entries(make_subspace(160, 9, 3).X, 0.2))
    for most in (200, 2):
        monkeypatch.setattr(whole, "MOST_COLUMNS", most)
        curve = dimension.search_curve(data, np.random.default_rng(0), 200, 1e-7)
        # One more is no worse but for chance; one less is.
        assert curve.best in (3, 4)
        mean = dict(zip(curve.n_components, curve.mean, strict=True))
        assert mean[3] > mean[2] + 0.05
        assert list(curve.n_components) == sorted(set(curve.n_components))


def test_shares_with_gaps_are_those_of_the_fitted_covariance(rng):
    W, sigma2 = rng.normal(size=(6, 3)), 0.4
    values = np.linalg.eigvalsh(W @ W.T + sigma2 * np.eye(6))[::-1]
    shares = dimension.explained_with_gaps(None, lambda data, k: (W, np.zeros(6), [sigma2]), 3)
    assert_allclose(shares, np.cumsum(values[:3]) / values.sum())


@pytest.mark.parametrize("seed", range(10))
def test_the_curve_does_not_depend_on_the_order_of_rows_columns_or_axes(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6))
    order, columns = rng.permutation(40), rng.permutation(6)
    turned = X @ np.linalg.qr(rng.normal(size=(6, 6)))[0]
    whole, *others = (PPCA("auto").fit(Z) for Z in (X, X[order][:, columns], turned))
    for other in others:
        assert_allclose(other.criterion_["mean"], whole.criterion_["mean"], rtol=1e-9)
    gappy = remove_entries(X, 0.1)
    one, two = (PPCA("auto").fit(Z) for Z in (gappy, gappy[order][:, columns]))
    assert_allclose(one.criterion_["mean"], two.criterion_["mean"], rtol=1e-4)


def test_rows_at_one_distance_from_the_mean_are_told_apart():
    corners = np.array(list(product([-1.0, 1.0], repeat=5)))
    folds = dimension._folds(np.sum(corners**2, axis=1), corners @ np.sqrt([2, 3, 5, 7, 11]))
    assert set(np.bincount(folds)) == {6, 7}
    assert 1 <= PPCA("auto").fit(corners).n_components_ <= 4


def test_sizes_are_tried_by_ones_at_first_and_then_by_two_fifths():
    tried: list[int] = []

    def score(q):
        tried.append(q)
        return q

    assert dimension._climb(score, 20) == 16
    assert sorted(set(tried)) == [1, 2, 3, 4, 5, 7, 9, 12, 16]


def test_of_sizes_that_only_rounding_tells_apart_the_least_is_taken():
    folds = np.array([408.0, 407.0, 409.0])
    higher = folds + np.array([1e-6, 1e-6, 1.1e-6])
    scores = [folds - 40, folds, higher, folds - 1e-6]
    assert dimension.curve_from([9, 10, 11, 12], scores).best == 10
