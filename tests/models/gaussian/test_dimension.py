import numpy as np
import pytest

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
        assert curve.best == 3
        assert list(curve.n_components) == sorted(set(curve.n_components))


def test_shares_with_gaps_are_those_of_the_fitted_covariance(rng):
    W, sigma2 = rng.normal(size=(6, 3)), 0.4
    values = np.linalg.eigvalsh(W @ W.T + sigma2 * np.eye(6))[::-1]
    shares = dimension.explained_with_gaps(None, lambda data, k: (W, np.zeros(6), [sigma2]), 3)
    np.testing.assert_allclose(shares, np.cumsum(values[:3]) / values.sum())
