import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import inputs
from gnomon.models.bsdr.inputs import (
    DualRidge,
    GramRidge,
    Spanned,
    gap_variances,
    gram_or_dual_ridge,
    latent_variances,
    loading_variances,
    loadings,
    read_inputs,
    spectral_ridge,
)
from gnomon.models.gaussian import filling

NOISE, q = 0.7, 3


def dense_covariances(X, phi):
    return [np.linalg.inv(np.diag(column) + X.T @ X / NOISE) for column in phi.T]


@pytest.fixture(params=[(12, 5), (6, 20)], ids=["tall", "wide"])
def X(request, rng):
    return rng.standard_normal(request.param)


@pytest.mark.parametrize("route", [GramRidge, DualRidge])
@pytest.mark.parametrize("columns_share", [False, True])
def test_covariances_equal_the_dense_inverse(X, rng, route, columns_share):
    phi = rng.uniform(0.2, 3, X.shape[1] if columns_share else (X.shape[1], q))
    dense = dense_covariances(X, np.broadcast_to(phi.reshape(X.shape[1], -1), (X.shape[1], q)))
    ridge = route(X, NOISE) if route is DualRidge else route(Matrix(X), NOISE)
    covariances = ridge.covariances(phi, q)
    assert_allclose(covariances.variance.T, [np.diag(S) for S in dense])
    assert_allclose(covariances.log_det, [np.linalg.slogdet(S)[1] for S in dense])
    assert_allclose(covariances.gram_trace, [np.trace(X.T @ X @ S) for S in dense])
    R = rng.standard_normal((X.shape[1], q))
    expected = np.stack([S @ r for S, r in zip(dense, R.T, strict=True)], axis=1)
    assert_allclose(ridge.solve(phi, covariances, R), expected, atol=1e-12)
    assert_allclose(ridge.gram_product(R), X.T @ X @ R)
    forms = np.stack([np.einsum("ia,ab,ib->i", X, S, X) for S in dense], axis=1)
    assert_allclose(ridge.forms(phi, q)(X), forms)


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_spectral_route_equals_the_dense_inverse(X, rng, storage):
    X = np.where(np.abs(X) > 1, X, 0) if storage is sparse.csr_array else X
    phi = rng.uniform(0.2, 3, q)
    ridge = spectral_ridge(Matrix(storage(X)), NOISE)
    axes = ridge.table
    dense = dense_covariances(X, np.broadcast_to(phi, (X.shape[1], q)))
    covariances = ridge.covariances(phi, q)
    traces = covariances.variance.sum(axis=0) + covariances.rest
    assert_allclose(traces, [np.trace(S) for S in dense])
    assert_allclose(covariances.log_det, [np.linalg.slogdet(S)[1] for S in dense])
    assert_allclose(covariances.gram_trace, [np.trace(X.T @ X @ S) for S in dense])
    Z = rng.standard_normal((X.shape[0], q))
    P = axes @ ridge.solve(phi, covariances, ridge.X.T @ Z / NOISE)
    expected = np.stack([S @ X.T @ z / NOISE for S, z in zip(dense, Z.T, strict=True)], axis=1)
    assert_allclose(P, expected, atol=1e-10)
    rows = rng.standard_normal((4, X.shape[1]))
    forms = np.stack([np.einsum("ia,ab,ib->i", rows, S, rows) for S in dense], axis=1)
    assert_allclose(ridge.forms(phi, q)(rows), forms)


def test_axes_of_wide_sparse_rows_are_kept_as_these_rows(rng):
    X = sparse.random_array((12, 90), density=0.2, rng=rng, format="csr")
    inputs, ridge = read_inputs(Matrix(X), "column", NOISE, True)
    same, dense = read_inputs(Matrix(X.toarray()), "column", NOISE, True)
    assert isinstance(inputs.table, Spanned) and isinstance(same.table, np.ndarray)
    assert inputs.table.rows.nnz == X.nnz
    assert inputs.table.shape == same.table.shape
    axes = inputs.table @ np.eye(inputs.table.shape[1])
    assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-10)
    phi, new = rng.uniform(0.2, 3, q), Matrix(rng.standard_normal((5, 90)))
    expected = latent_variances(same, phi, q, new)
    assert_allclose(latent_variances(inputs, phi, q, new), expected, rtol=1e-10)
    variance, other = (r.covariances(phi, q).variance for r in (ridge, dense))
    expected = loading_variances(same, phi, other)
    assert_allclose(loading_variances(inputs, phi, variance), expected, rtol=1e-9, atol=1e-12)


def test_solvers_need_no_covariances(X, rng):
    phi = rng.uniform(0.5, 2, (X.shape[1], q))
    R = rng.standard_normal(phi.shape)
    for ridge in (GramRidge(Matrix(X), NOISE), DualRidge(X, NOISE)):
        assert_allclose(
            ridge.solver(phi)(R), ridge.solve(phi, ridge.covariances(phi, q), R), atol=1e-10
        )
    ridge = spectral_ridge(Matrix(X), NOISE)
    R = R[: len(ridge.values)]
    covariances = ridge.covariances(phi[0], q)
    assert_allclose(ridge.solver(phi[0])(R), ridge.solve(phi[0], covariances, R))


def test_route_follows_the_shape(rng):
    assert isinstance(gram_or_dual_ridge(Matrix(rng.standard_normal((9, 4))), 1.0), GramRidge)
    assert isinstance(gram_or_dual_ridge(Matrix(rng.standard_normal((4, 9))), 1.0), DualRidge)


@pytest.fixture
def with_constants(X):
    """Two columns that do not vary; the mean of the first need not be 0.1 to the last bit."""
    return np.column_stack([X, np.full(len(X), 0.1), np.full(len(X), 7.0)])


@pytest.mark.parametrize("kind", ["entry", "column", "row"])
@pytest.mark.parametrize("standardize", [True, False])
def test_columns_that_do_not_vary_are_left_out(with_constants, rng, kind, standardize):
    inputs, ridge = read_inputs(Matrix(with_constants), kind, NOISE, standardize)
    assert_array_equal(inputs.factors[-2:], 0)
    assert np.all(inputs.factors[:-2] > 0)
    P = rng.standard_normal((ridge.X.shape[1], q))
    assert_array_equal(loadings(inputs, P)[-2:], 0)
    moved = with_constants.copy()
    moved[:, -2] += 1e-9
    phi = np.ones({"entry": (len(P), q), "column": q, "row": len(P)}[kind])
    before, after = (latent_variances(inputs, phi, q, Matrix(x)) for x in (with_constants, moved))
    assert_array_equal(after, before)


@pytest.mark.parametrize("kind", ["entry", "column", "row"])
def test_standard_units_do_not_depend_on_the_given_ones(X, rng, kind):
    scale = 10.0 ** rng.integers(-6, 7, X.shape[1])
    for units in (1.0, scale):
        inputs, ridge = read_inputs(Matrix(X * units + 3 * units), kind, NOISE, True)
        P = rng.standard_normal((ridge.X.shape[1], q))
        Z = (X * units - X.mean(axis=0) * units) @ loadings(inputs, P)
        assert_allclose(Z, np.asarray(ridge.X @ P), atol=1e-8 * np.abs(Z).max())


def test_principal_components_keep_their_variances_unless_asked_for_unit_ones(X):
    rank = min(len(X) - 1, X.shape[1])
    U, values, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    U, values = U[:, :rank], values[:rank]
    for columns, one_number in ((U * values, True), (X, False), (U[:, ::-1] * values[::-1], False)):
        auto, unit = (
            read_inputs(Matrix(columns), "entry", NOISE, way)[0].factors for way in ("auto", True)
        )
        assert (np.ptp(auto) < 1e-12 * auto[0]) == one_number
        assert_allclose(auto, 1 / np.median(columns.std(axis=0)) if one_number else unit)


@pytest.mark.parametrize("kind", ["entry", "column", "row"])
def test_variances_of_loadings_and_rows_are_those_of_the_dense_inverse(X, rng, kind):
    inputs, ridge = read_inputs(Matrix(X), kind, NOISE, True)
    d = X.shape[1]
    phi = rng.uniform(0.5, 2, {"entry": (d, q), "column": q, "row": d}[kind])
    full = np.broadcast_to(phi[:, None] if kind == "row" else phi, (d, q))
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    dense = dense_covariances(standard, full)
    found = loading_variances(inputs, phi, ridge.covariances(phi, q).variance)
    expected = np.stack([np.diag(S) for S in dense], axis=1) / X.var(axis=0)[:, None]
    assert_allclose(found, expected)
    forms = np.stack([np.einsum("ia,ab,ib->i", standard, S, standard) for S in dense], axis=1)
    assert_allclose(latent_variances(inputs, phi, q, Matrix(X)), NOISE + forms)


@pytest.mark.parametrize("kind", ["entry", "column", "row"])
def test_gaps_add_the_expected_forms_of_what_is_unseen(X, rng, kind):
    inputs, _ = read_inputs(Matrix(X), kind, NOISE, True)
    d = X.shape[1]
    phi = rng.uniform(0.5, 2, {"entry": (d, q), "column": q, "row": d}[kind])
    full = np.broadcast_to(phi[:, None] if kind == "row" else phi, (d, q))
    known, holed = filling.learn(X), np.where(rng.random(X.shape) < 0.4, np.nan, X)
    dense = dense_covariances((X - X.mean(axis=0)) / X.std(axis=0), full)
    unseen, pattern = filling.covariances(known, holed, np.diag(inputs.factors))
    expected = [[np.trace(S @ C) for S in dense] for C in unseen[pattern]]
    assert_allclose(gap_variances(inputs, phi, q, known, holed), expected)


def test_directions_of_rounding_are_left_out(rng):
    """Centred rows span one direction less than there are rows."""
    X = rng.standard_normal((6, 20))
    for dtype in (np.float64, np.float32):
        _, ridge = read_inputs(Matrix(X.astype(dtype)), "column", NOISE, True)
        assert len(ridge.values) == 5
        assert_allclose(ridge.table.T @ ridge.table, np.eye(5), atol=1e-4)


@pytest.mark.parametrize("wide", [False, True])
def test_a_random_start_does_not_depend_on_the_signs_of_eigenvectors(rng, monkeypatch, wide):
    X = rng.normal(size=(6, 9) if wide else (9, 6))
    images = []
    for sign in (1.0, -1.0):

        def turned(S, sign=sign, **options):
            values, vectors = np.linalg.eigh(S)
            return values, sign * vectors

        monkeypatch.setattr(inputs, "eigh", turned)
        ridge = spectral_ridge(Matrix(X), NOISE)
        images.append(ridge.X @ np.ones(ridge.X.shape[1]))
    assert_allclose(images[1], images[0])
