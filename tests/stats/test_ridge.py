import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg.data import Matrix
from gnomon.stats.ridge import (
    DualRidge,
    GramRidge,
    gram_or_dual,
    spectral,
    spectral_of_kernel,
)

NOISE, q = 0.7, 3


def covariances(X, phi):
    return [np.linalg.inv(np.diag(column) + X.T @ X / NOISE) for column in phi.T]


@pytest.fixture(params=[(12, 5), (6, 20)], ids=["tall", "wide"])
def X(request, rng):
    return rng.standard_normal(request.param)


@pytest.mark.parametrize("route", [GramRidge, DualRidge])
@pytest.mark.parametrize("columns_share", [False, True])
def test_spread_equals_the_dense_inverse(X, rng, route, columns_share):
    phi = rng.uniform(0.2, 3, X.shape[1] if columns_share else (X.shape[1], q))
    dense = covariances(X, np.broadcast_to(phi.reshape(X.shape[1], -1), (X.shape[1], q)))
    ridge = route(Matrix(X), NOISE)
    spread = ridge.spread(phi, q)
    assert_allclose(spread.variance.T, [np.diag(S) for S in dense])
    assert_allclose(spread.log_det, [np.linalg.slogdet(S)[1] for S in dense])
    assert_allclose(spread.gram_trace, [np.trace(X.T @ X @ S) for S in dense])
    R = rng.standard_normal((X.shape[1], q))
    expected = np.stack([S @ r for S, r in zip(dense, R.T, strict=True)], axis=1)
    assert_allclose(ridge.solve(phi, spread, R), expected, atol=1e-12)
    assert_allclose(ridge.gram_product(R), X.T @ X @ R)
    forms = np.stack([np.einsum("ia,ab,ib->i", X, S, X) for S in dense], axis=1)
    assert_allclose(ridge.forms(phi, q)(X), forms)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_spectral_route_equals_the_dense_inverse(X, rng, storage):
    X = np.where(np.abs(X) > 1, X, 0) if storage is sparse.csr_array else X
    phi = rng.uniform(0.2, 3, q)
    ridge, axes = spectral(Matrix(storage(X)), NOISE)
    dense = covariances(X, np.broadcast_to(phi, (X.shape[1], q)))
    spread = ridge.spread(phi, q)
    traces = spread.variance.sum(axis=0) + spread.rest
    assert_allclose(traces, [np.trace(S) for S in dense])
    assert_allclose(spread.log_det, [np.linalg.slogdet(S)[1] for S in dense])
    assert_allclose(spread.gram_trace, [np.trace(X.T @ X @ S) for S in dense])
    Z = rng.standard_normal((X.shape[0], q))
    P = axes @ ridge.solve(phi, spread, ridge.X.T @ Z / NOISE)
    expected = np.stack([S @ X.T @ z / NOISE for S, z in zip(dense, Z.T, strict=True)], axis=1)
    assert_allclose(P, expected, atol=1e-10)
    rows = rng.standard_normal((4, X.shape[1]))
    forms = np.stack([np.einsum("ia,ab,ib->i", rows, S, rows) for S in dense], axis=1)
    assert_allclose(ridge.forms(phi, rows @ axes, np.sum(rows**2, axis=1)), forms)


def test_linear_kernel_is_the_spectral_route(X, rng):
    phi = rng.uniform(0.2, 3, q)
    Z = rng.standard_normal((X.shape[0], q))
    means = []
    for ridge in (spectral(Matrix(X), NOISE)[0], spectral_of_kernel(X @ X.T, NOISE)[0]):
        P = ridge.solve(phi, ridge.spread(phi, q), ridge.X.T @ Z / NOISE)
        means.append(ridge.X @ P)
    assert_allclose(means[0], means[1], atol=1e-10)


def test_solvers_need_no_spread(X, rng):
    phi = rng.uniform(0.5, 2, (X.shape[1], q))
    R = rng.standard_normal(phi.shape)
    for ridge in (GramRidge(Matrix(X), NOISE), DualRidge(Matrix(X), NOISE)):
        assert_allclose(ridge.solver(phi)(R), ridge.solve(phi, ridge.spread(phi, q), R), atol=1e-10)
    ridge, _ = spectral(Matrix(X), NOISE)
    R = R[: len(ridge.values)]
    spread = ridge.spread(phi[0], q)
    assert_allclose(ridge.solver(phi[0])(R), ridge.solve(phi[0], spread, R))


def test_route_follows_the_shape(rng):
    assert isinstance(gram_or_dual(Matrix(rng.standard_normal((9, 4))), 1.0), GramRidge)
    assert isinstance(gram_or_dual(Matrix(rng.standard_normal((4, 9))), 1.0), DualRidge)
