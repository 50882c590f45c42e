import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.linalg.moments import Summed, joined, moments_of


def test_moments_of_parts_join_to_those_of_the_whole(rng):
    X, weights = rng.normal(size=(30, 4)) + 5, rng.random(30)
    whole = moments_of(Weighted(Matrix(X), weights))
    parts = [moments_of(Weighted(Matrix(X[a]), weights[a])) for a in (slice(7), slice(7, 30))]
    both = joined(*parts)
    assert both.n_rows == 30
    assert_allclose(both.weight, weights.sum())
    assert_allclose(both.mean, np.average(X, axis=0, weights=weights))
    assert_allclose(both.scatter, whole.scatter, atol=1e-12)
    assert_allclose(both.scatter, np.cov(X.T, aweights=weights, ddof=0) * weights.sum())


def test_digits_survive_a_mean_far_larger_than_the_spread(rng):
    Z = rng.normal(size=(200, 3))
    parts = [moments_of(Matrix(Z[k : k + 20] + 1e8)) for k in range(0, 200, 20)]
    both = parts[0]
    for part in parts[1:]:
        both = joined(both, part)
    assert_allclose(both.scatter, np.cov(Z.T, ddof=0) * 200, rtol=1e-6, atol=1e-5)


def test_sums_are_those_of_the_rows(rng):
    X = rng.normal(size=(20, 3)) + 2
    data, summed = Matrix(X), Summed(moments_of(Matrix(X)))
    assert summed.shape == data.shape
    assert_allclose(summed.column_sums(), data.column_sums())
    for a, b in ((data, summed), (center(data)[1], center(summed)[1])):
        assert_allclose(b.gram(), a.gram(), atol=1e-12)
        assert_allclose(b.squared_norm, a.squared_norm)


def test_moments_have_no_rows(rng):
    with pytest.raises(TypeError, match="Summed has no rows"):
        Summed(moments_of(Matrix(rng.normal(size=(5, 2))))).rows([0])
