import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.linalg import eigen
from gnomon.linalg.data import Matrix
from gnomon.linalg.stacked import center


@pytest.mark.parametrize("shape", [(60, 12), (12, 60), (20, 20)])
@pytest.mark.parametrize("route", [eigen.from_moments, eigen.from_dual])
def test_routes_agree_with_the_svd(shape, route, rng):
    X = rng.normal(size=shape)
    _, centered = center(Matrix(X))
    values, vectors, trace = route(centered, 5)
    _, s, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    assert_allclose(values, s[:5] ** 2)
    assert_allclose(trace, np.sum(s**2))
    assert_allclose(vectors @ vectors.T, Vt[:5].T @ Vt[:5], atol=1e-8)


def test_directions_without_energy_are_completed_to_a_basis(rng):
    X = np.outer(rng.normal(size=8), rng.normal(size=30))
    _, centered = center(Matrix(X))
    values, vectors, _ = eigen.from_dual(centered, 3)
    assert_allclose(values[1:], 0, atol=1e-10 * values[0])
    assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-8)


def test_signs_are_fixed_by_the_largest_entry(rng):
    V = rng.normal(size=(9, 4))
    fixed = eigen.fix_signs(V)
    assert_allclose(fixed, eigen.fix_signs(-V))
    assert np.all(fixed[np.argmax(np.abs(fixed), axis=0), np.arange(4)] > 0)


def test_the_route_follows_the_shape():
    assert eigen.route(Matrix(np.empty((5000, 100))), 5) == "moments"
    assert eigen.route(Matrix(np.empty((100, 5000))), 5) == "dual"
    assert eigen.route(Matrix(np.empty((5000, 1000))), 5) == "subspace"
