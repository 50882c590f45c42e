import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg import data
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Centered, Matrix, Weighted, as_data, center, has_gaps

n, d = 40, 7


def storages(X):
    thin = sparse.csr_array(X)
    noncanonical = sparse.coo_array(
        (
            np.r_[thin.data / 2, thin.data / 2],
            (np.tile(thin.tocoo().row, 2), np.tile(thin.indices, 2)),
        ),
        shape=X.shape,
    )
    return {
        "dense": Matrix(X),
        "fortran": Matrix(np.asfortranarray(X)),
        "csr": Matrix(thin),
        "csc": Matrix(sparse.csc_array(X)),
        "coo with duplicates": Matrix(noncanonical),
        "blocks": Blocks([Matrix(X[:11]), Matrix(sparse.csr_array(X[11:]))]),
    }


@pytest.fixture(params=[0.1, 1.0], ids=["few entries", "full"])
def X(request, rng):
    return np.where(rng.random((n, d)) < request.param, rng.normal(size=(n, d)) + 3, 0.0)


KINDS = ["dense", "fortran", "csr", "csc", "coo with duplicates", "blocks"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_storage_answers_as_the_dense_matrix_does(X, kind, rng):
    data = storages(X)[kind]
    mean, centered = center(data)
    for operator, dense in ((data, X), (centered, X - X.mean(axis=0))):
        B, Z = rng.normal(size=(d, 3)), rng.normal(size=(n, 2))
        assert_allclose(operator @ B, dense @ B, atol=1e-12)
        assert_allclose(operator @ B[:, 0], dense @ B[:, 0], atol=1e-12)
        assert_allclose(operator.T @ Z, dense.T @ Z, atol=1e-12)
        assert_allclose(operator.squared_norm, np.sum(dense**2))
        assert_allclose(operator.row_squared_norms(), np.sum(dense**2, axis=1), atol=1e-12)
        assert_allclose(operator.column_sums(), dense.sum(axis=0), atol=1e-12)
        assert_allclose(operator.gram(), dense.T @ dense, atol=1e-11)
        assert_allclose(operator.dual_gram(), dense @ dense.T, atol=1e-11)
        mask = rng.random(n) < 0.4
        assert_allclose(operator.rows(mask) @ B, dense[mask] @ B, atol=1e-12)
    assert_allclose(mean, X.mean(axis=0))


@pytest.mark.parametrize("kind", ["dense", "csr", "blocks"])
def test_weights_count_as_repeated_rows(X, kind, rng):
    weights = rng.integers(0, 4, size=n)
    repeated = np.repeat(X, weights, axis=0)
    data = Weighted(storages(X)[kind], weights) if kind != "blocks" else None
    if data is None:
        data = Weighted(Matrix(X), weights)
    mean, centered = center(data)
    deviations = repeated - repeated.mean(axis=0)
    assert_allclose(mean, repeated.mean(axis=0))
    assert centered.n_samples == len(repeated)
    assert_allclose(centered.gram(), deviations.T @ deviations, atol=1e-11)
    assert_allclose(centered.squared_norm, np.sum(deviations**2))
    mask = np.arange(n) < 20
    part = np.repeat(X[mask], weights[mask], axis=0) - mean
    assert_allclose(centered.rows(mask).gram(), part.T @ part, atol=1e-11)


@pytest.mark.parametrize("kind", ["dense", "csr", "csc", "blocks"])
def test_single_precision_stays(X, kind):
    data = storages(X.astype(np.float32))[kind]
    _, centered = center(data)
    assert (centered @ np.ones((d, 2))).dtype == np.float32
    assert (centered.T @ np.ones((n, 2))).dtype == np.float32
    assert isinstance(centered.squared_norm, float)


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_single_is_the_same_data_in_single_precision_where_it_is_cheap(rng, kind):
    X = np.where(rng.random((200, 30)) < 0.1, rng.normal(size=(200, 30)), 0.0)
    _, centered = center(storages(X)[kind])
    single = centered.as_float32()
    assert single.dtype == (np.float32 if kind == "csr" else np.float64)
    assert_allclose(single @ np.eye(30), X - X.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_of_1e8_leaves_the_digits_of_the_spread(kind, rng):
    spread = rng.normal(size=(n, d))
    X = spread + 1e8 * rng.normal(size=d)
    deviations = X - X.mean(axis=0)
    _, centered = center(storages(X)[kind])
    assert_allclose(centered.gram(), deviations.T @ deviations, atol=1e-5)
    assert_allclose(centered @ np.eye(d), deviations, atol=1e-6)
    assert_allclose(centered.squared_norm, np.sum(deviations**2), rtol=1e-6)


def test_a_sparse_matrix_is_never_made_dense(rng):
    X = sparse.random_array((2000, 50_000), density=1e-3, rng=rng, format="csr")
    _, centered = center(Matrix(X))
    import tracemalloc

    tracemalloc.start()
    centered.T @ (centered @ rng.normal(size=(50_000, 5)))
    expected = X.power(2).sum() - 2000 * np.sum(X.mean(axis=0) ** 2)
    assert_allclose(centered.squared_norm, expected)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * X.shape[0] * X.shape[1]


def test_products_of_sparse_rows_with_each_other_leave_them_sparse(rng):
    n, d, m = 400, 40_000, 10
    entries = (rng.normal(size=n * m), rng.integers(0, d, n * m), np.arange(0, n * m + 1, m))
    _, centered = center(Matrix(sparse.csr_array(entries, shape=(n, d))))
    import tracemalloc

    tracemalloc.start()
    K = centered.dual_gram()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    dense = centered.as_array()
    assert_allclose(K, dense @ dense.T, atol=1e-10)
    # A slice has 64 rows at least, here in four arrays at a time.
    assert peak < 0.8 * dense.nbytes


def test_products_with_all_columns_take_their_own_place_alone(rng):
    n, d = 200, 40_000
    X = sparse.random_array((n, d), density=1e-3, rng=rng, format="csr")
    scaled = center(Matrix(X))[1].scaled(np.full(d, 2.0))
    Z = rng.normal(size=(n, n))
    scaled.T @ Z
    import tracemalloc

    tracemalloc.start()
    out = scaled.T @ Z
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(out, scaled.as_array().T @ Z, atol=1e-10)
    assert peak < 1.4 * out.nbytes


def test_dense_input_is_not_copied_to_be_centred(rng):
    X = rng.normal(size=(20_000, 100))
    import tracemalloc

    tracemalloc.start()
    _, centered = center(Matrix(X))
    centered.gram()
    centered.T @ (centered @ np.ones((100, 2)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * X.nbytes


def test_blocks_refuse_what_does_not_stack(X):
    with pytest.raises(ValueError, match="parts is empty"):
        Blocks([])
    with pytest.raises(ValueError, match="columns"):
        Blocks([Matrix(X), Matrix(X[:, :2])])


def test_as_data_keeps_operators(X):
    data = Centered(Matrix(X), X.mean(axis=0))
    assert as_data(data) is data
    assert_allclose(as_data(X).column_means(), X.mean(axis=0))


def test_rows_of_blocks_by_index(X):
    blocks = Blocks([Matrix(X[:9]), Matrix(X[9:])])
    assert_allclose(blocks.rows(np.array([1, 8, 20])) @ np.eye(d), X[[1, 8, 20]])
    with pytest.raises(ValueError, match="sorted"):
        blocks.rows(np.array([5, 1]))


def test_the_gram_matrix_of_some_centred_rows_is_about_the_mean_of_all(rng):
    X = rng.standard_normal((40, 3)) + 2
    _, centred = center(Matrix(X))
    rows = X[:15] - X.mean(axis=0)
    assert_allclose(centred.rows(np.arange(15)).gram(), rows.T @ rows)


def test_gaps_and_means_take_one_pass_together(rng, monkeypatch):
    X = rng.standard_normal((30, 4))
    rows, passes = Matrix(X), []

    def counted(array):
        passes.append(array.shape)
        return array.sum(axis=0)

    monkeypatch.setattr(data, "column_sums", counted)
    assert not rows.has_gaps
    assert_allclose(rows.column_means(), X.mean(axis=0))
    assert passes == [(30, 4)]
    X[3, 1] = np.nan
    assert Matrix(X).has_gaps
    assert not Matrix(sparse.csr_array(np.eye(3))).has_gaps


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_products_of_sparse_rows_with_each_other_are_those_of_dense_ones(offset, rng):
    dense = np.where(rng.random((20, 90)) < 0.1, rng.standard_normal((20, 90)), 0.0)
    dense[:, 0] = offset + rng.standard_normal(20)
    X = data.center(Matrix(sparse.csr_array(dense)))[1].scaled(rng.uniform(0.5, 2, 90))
    expected = X.as_array() @ X.as_array().T
    assert_allclose(X.dual_gram(), expected, atol=1e-9 * np.trace(expected))


def test_products_of_sparse_rows_with_each_other_make_no_dense_columns(rng, monkeypatch):
    X = data.center(Matrix(sparse.random_array((20, 900), density=0.01, rng=rng)))[1]
    monkeypatch.setattr(data.Data, "_sliced_dual_gram", None)
    assert_allclose(X.dual_gram(), X.as_array() @ X.as_array().T, atol=1e-12)
    assert data.stored_rows(X.weighted(np.ones(20))) is None


@pytest.mark.parametrize("kind", ["array", "sparse", "blocks"])
def test_large_blocks_are_the_rows_and_leave_what_is_stored(X, kind):
    stored = X.copy()
    parts = [Matrix(stored[:3]), Matrix(stored[3:])]
    made = {"array": Matrix(stored), "sparse": Matrix(sparse.csr_array(X)), "blocks": Blocks(parts)}
    factors, mean = np.arange(1.0, X.shape[1] + 1), X.mean(axis=0)
    for rows, expected in (
        (made[kind], X),
        (made[kind].scaled(factors), X * factors),
        (made[kind].less_mean(mean).scaled(factors), (X - mean) * factors),
    ):
        blocks = list(rows.large_blocks(4))
        assert all(len(block) >= 4 for block in blocks[:-1])
        assert_allclose(np.concatenate(blocks), expected, atol=1e-12)
    assert_allclose(stored, X)


@pytest.mark.parametrize("n_rows", [0, 1, 40, 341, 342, 5000, 5003])
def test_threads_share_rows_evenly(n_rows, monkeypatch):
    monkeypatch.setattr(data, "RUN_ENTRIES", 2**10)
    runs = list(data.run_slices((n_rows, 3)))
    sizes = [run.stop - run.start for run in runs]
    assert sum(sizes) == n_rows and max(sizes, default=0) * 3 <= 2**10
    assert len(runs) == min(n_rows, 1) if n_rows <= 341 else len(runs) % data.EVENLY == 0
    assert max(sizes, default=0) - min(sizes, default=0) < data.EVENLY + len(runs)
    assert [run.start for run in runs] == list(np.cumsum([0, *sizes])[: len(runs)])


def test_sums_of_many_rows_in_single_precision_have_the_digits_of_double(rng, monkeypatch):
    monkeypatch.setattr(data, "RUN_ENTRIES", 2**10)
    monkeypatch.setattr(data, "BLOCK_ENTRIES", 2**8)
    X = (1000 + rng.standard_normal((5000, 3))).astype(np.float32)
    assert_allclose(data.column_sums(X), X.astype(float).sum(axis=0), rtol=1e-14)


@pytest.mark.parametrize("entry", [np.inf, -np.inf])
def test_whoever_asks_for_gaps_is_told_of_infinity(entry, rng):
    X = rng.standard_normal((20, 3))
    X[[3, 4], 1] = entry, -entry
    for asked in (lambda: has_gaps(X), lambda: Matrix(X).has_gaps):
        with pytest.raises(ValueError, match="X contains infinity"):
            asked()
    X[3:5, 1] = np.nan
    assert has_gaps(X) and Matrix(X).has_gaps
    assert not has_gaps(X[5:])
    huge = np.full((20, 3), 1e308)
    assert not has_gaps(huge)
