from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gnomon.datasets import remove_entries
from gnomon.models.gaussian import gaps, patterns

n, d, q = 400, 5, 2
GROUPS = np.array([0, 0, 0, 1, 1])


@pytest.fixture
def X(rng):
    X = remove_entries(rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3, 0.1)
    X[7] = np.nan
    return X


@pytest.mark.parametrize("n_columns", [3, 64, 65, 150])
def test_rows_of_a_pattern_are_together_and_the_largest_patterns_first(n_columns, rng):
    X = np.zeros((60, n_columns))
    X[10:30, [0, -1]] = np.nan
    X[40:45, -1] = np.nan
    shuffled = rng.permutation(60)
    data = patterns.group_rows(X[shuffled], np.zeros(n_columns, dtype=int))
    assert_array_equal(np.diff(data.starts), [35, 20, 5])
    of_row = np.repeat(np.arange(3), np.diff(data.starts))
    assert_array_equal(data.observed[of_row] == 0, np.isnan(X[shuffled])[data.order])
    assert_array_equal(np.sort(data.order), np.arange(60))


def test_few_rows_that_stand_for_many_have_the_same_step(X, rng):
    data = patterns.group_rows(X, GROUPS, rng.integers(1, 4, n).astype(float))
    few = patterns.condensed(data)
    assert len(few.X) < len(data.X) / 2
    assert_array_equal(few.observed, data.observed)
    state = gaps.State(rng.normal(size=(d, q)), rng.normal(size=d), np.array([0.5, 2.0]))
    (one, objective), (two, again) = (gaps.step(state, rows) for rows in (data, few))
    assert_allclose(again, objective)
    for a, b in zip(one, two, strict=True):
        assert_allclose(a, b)
    assert_allclose(patterns.group_sizes(few), patterns.group_sizes(data))


def test_rows_that_are_all_alike_stand_for_themselves(rng):
    X = np.tile(rng.normal(size=d), (n, 1))
    few = patterns.condensed(patterns.group_rows(X, GROUPS, shift=np.zeros(d)))
    assert_allclose(few.X, X[: len(few.X)], atol=1e-6)
    assert_allclose(few.weights.sum(), n)


def test_patterns_of_few_rows_stay_as_they_are(rng):
    data = patterns.group_rows(remove_entries(rng.normal(size=(20, d)), 0.4), GROUPS)
    assert patterns.condensed(data) is data


def test_a_selection_has_the_rows_of_the_mask(X, rng):
    data, mask = patterns.group_rows(X, GROUPS), rng.random(n) < 0.3
    part = patterns.select(data, mask)
    back = np.empty_like(part.X)
    back[part.order] = part.X + data.shift
    assert_allclose(np.where(np.isnan(X[mask]), data.shift, X[mask]), back)


@pytest.mark.parametrize("rows", [1, 30, 5000])
def test_a_pattern_of_many_rows_is_seen_in_parts(rows, rng):
    X = rng.normal(size=(rows, d))
    X[::2, 1] = np.nan
    data = patterns.group_rows(X, np.zeros(d, dtype=int), shift=np.zeros(d))
    state = gaps.State(rng.normal(size=(d, q)), rng.normal(size=d), np.array([0.5]))
    seen = [np.arange(rows)[part.rows] for part in gaps.posteriors(state, data)]
    assert_array_equal(np.concatenate(seen), np.arange(rows))
    alone = patterns.group_rows(X[-1:], np.zeros(d, dtype=int), shift=np.zeros(d))
    assert_allclose(gaps.log_density(state, data)[-1:], gaps.log_density(state, alone))


def test_columns_without_a_value_are_named():
    with pytest.raises(ValueError, match="no observed value in column 1, 3;"):
        patterns._check_counts(np.array([3.0, 0, 2, 0]))


def test_equal_patterns_of_many_columns_are_together(rng):
    """Many sets in the first 64 columns, two beyond: words must not run into each other."""
    mask = np.ones((200, 70), dtype=bool)
    mask[:, :6] = (np.arange(200)[:, None] // 2) >> np.arange(6) & 1
    mask[:, 66] = np.arange(200) % 2
    mask = mask[rng.permutation(200)]
    order, starts = patterns._sorted_by_pattern(mask)
    assert len(starts) - 1 == len(np.unique(mask, axis=0))
    for start, stop in pairwise(starts):
        assert np.all(mask[order[start:stop]] == mask[order[start]])
