"""Sums over many classes by a few points are the sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_ndtr

from gnomon.models.bsdr import many, probit


@pytest.fixture(params=[0.0, 0.01, 0.3, 1.0])
def distances(request, rng):
    """Distances (800, 5) of that deviation, around another mean in each row."""
    return request.param * rng.normal(size=(800, 5)) + rng.normal(size=5)


def test_weighted_points_have_the_sums_over_all_classes(distances):
    points = many.points_of(distances)
    assert len(points.shift) == many.n_points(distances) < 60
    for function in (log_ndtr, probit.hazard):
        sums = (points.counts * function(points.shift)).sum(axis=0)
        assert_allclose(sums, function(distances).sum(axis=0), rtol=1e-12)


def test_values_at_points_are_those_at_the_classes(distances):
    points = many.points_of(distances)
    found = points.at_places(probit.hazard(points.shift))
    assert_allclose(found, probit.hazard(distances), rtol=1e-10, atol=1e-13)


def test_points_are_taken_for_many_classes_that_lie_close():
    near, far = np.linspace(0, 0.1, 300)[:, None], np.linspace(0, 10, 300)[:, None]
    assert many.are_many(near)
    assert not many.are_many(far)
    assert not many.are_many(near[::10])
    assert not many.are_many(near[:0])


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.5])
def test_scores_of_many_classes_are_the_same_with_and_without_points(spread, rng, monkeypatch):
    M, labels = spread * rng.normal(size=(300, 1000)), rng.integers(1000, size=300)
    assert many.are_many(probit._differences(M, labels))
    found = probit.class_scores(M, labels)
    monkeypatch.setattr(many, "are_many", lambda shift: False)
    expected = probit.class_scores(M, labels)
    assert_allclose(found[0], expected[0], atol=1e-12)
    assert_allclose(found[1], expected[1], atol=1e-11)
