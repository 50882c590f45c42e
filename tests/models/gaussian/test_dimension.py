import numpy as np
import pytest

from gnomon.datasets import make_subspace, remove_entries
from gnomon.models.gaussian import dimension, patterns, whole


@pytest.mark.parametrize("top", [1, 2, 6, 11, 23, 38, 40])
@pytest.mark.parametrize("flat", [0.0, 0.3])
def test_a_search_finds_what_trying_all_sizes_would(top, flat, rng):
    sizes, folds = np.arange(1, 41), rng.normal(size=5)
    away = np.abs(sizes - top)
    scores = -np.where(away * flat > 1, away, away * (1 - flat))[:, None] * (1 + 0.3 * folds)
    seen: dict[int, np.ndarray] = {}

    def score(q):
        seen.setdefault(q, scores[q - 1])
        return seen[q].mean()

    best = dimension._climb(score, 40)
    lowest, highest = dimension._neighbours(seen, best)
    tried = {*seen, *range(lowest, highest + 1)}
    dimension._bracket_top(score, seen, best)
    dimension._bracket_least(score, seen, lowest)
    every = sorted(tried)
    expected = dimension.curve_from(every, scores[np.array(every) - 1]).best
    assert dimension._curve_of(seen).best == expected
    assert len(seen) <= len(every)


def test_with_gaps_the_planted_size_is_found_by_either_way(monkeypatch):
    data = patterns.inputs(remove_entries(make_subspace(160, 9, 3).X, 0.2))
    for most in (200, 2):
        monkeypatch.setattr(whole, "MOST_COLUMNS", most)
        curve = dimension.search_curve(data, np.random.default_rng(0), 200, 1e-7)
        assert curve.best == 3
        assert list(curve.n_components) == sorted(set(curve.n_components))
