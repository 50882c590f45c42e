"""Rows elsewhere: results that are not computed, and results in the library of the rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import gnomon
from gnomon.linalg import blocks
from gnomon.linalg.foreign import Foreign, in_memory, opened

N, D = 150, 6
RNG = np.random.default_rng(0)
CODES = np.arange(N) % 3
X = (3 * RNG.normal(size=(3, D)))[CODES] + RNG.normal(size=(N, D))
X = np.where(np.abs(X) > 0.5, X, 0.0)
SOME = np.where(np.arange(N) % 4, -1, CODES)
NUMBERS = X[:, 0] + RNG.normal(size=N)
MODELS = {
    "PPCA": (gnomon.PPCA(2), None),
    "SPPCA": (gnomon.SPPCA(2), SOME),
    "SPPCA, likelihood": (gnomon.SPPCA(2, supervision="likelihood"), NUMBERS),
    "KernelSPPCA": (gnomon.KernelSPPCA(2, n_landmarks=30), np.array(["a", "b", "c"])[CODES]),
    "KernelFeatures": (gnomon.KernelFeatures(n_landmarks=30), None),
    "PRPCA": (gnomon.PRPCA(2, relation="paper"), None),
    "DCAGM": (gnomon.DCAGM(2, max_iter=5, random_state=0), SOME),
    "BSDR": (gnomon.BSDR(2, max_iter=5, random_state=0), CODES),
    # Its bound is flat along the scale of z, so that later steps magnify rounding.
    "BSDRRegressor": (gnomon.BSDRRegressor(1, max_iter=1, random_state=0), NUMBERS),
    "MultinomialProbit": (gnomon.MultinomialProbit(max_iter=5), CODES),
}
METHODS = ("transform", "posterior", "predict", "predict_proba", "score_samples", "impute")


def fitted(name, rows=X, y=None):
    model, own = MODELS[name]
    known = {"links": sparse.csr_array((N, N))} if name == "PRPCA" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(rows, own if y is None else y, **known)


def said(model, rows):
    """What every method of rows says, an array or a tuple of them by its name."""
    names = [name for name in METHODS if hasattr(model, name)]
    if isinstance(model, gnomon.PPCA) or not hasattr(model, "impute"):
        names = [name for name in names if name != "impute"]
    return {name: getattr(model, name)(rows) for name in names}


def parts(result):
    return result if isinstance(result, tuple) else (result,)


# dask


def lazy_rows():
    """Rows of dask, and the list of the chunks that were computed."""
    da = pytest.importorskip("dask.array", reason="needs dask")
    computed = []

    def seen(chunk, block_info=None):
        computed.append(block_info[0]["chunk-location"])
        return chunk

    whole = da.from_array(X, chunks=(40, D))
    return whole.map_blocks(seen, dtype=X.dtype, meta=np.empty((0, 0))), computed


@pytest.mark.parametrize("name", MODELS)
def test_results_of_dask_rows_are_not_computed(name):
    rows, computed = lazy_rows()
    model = fitted(name)
    for method, expected in said(model, X).items():
        found = getattr(model, method)(rows)
        assert not computed
        assert type(parts(found)) is type(parts(expected))
        for lazy, dense in zip(parts(found), parts(expected), strict=True):
            assert lazy.chunks[0] == (40, 40, 40, 30)
            assert lazy.shape == dense.shape and lazy.dtype == dense.dtype
            values = lazy.compute()
            assert values.dtype == dense.dtype
            if dense.dtype.kind == "f":
                assert_allclose(values, dense, rtol=1e-9, atol=1e-9)
            else:
                assert_array_equal(values, dense)
        computed.clear()


def test_a_part_of_a_lazy_result_computes_the_chunks_that_it_needs():
    rows, computed = lazy_rows()
    Z = fitted("SPPCA").transform(rows)[85:90].compute()
    assert_allclose(Z, fitted("SPPCA").transform(X)[85:90])
    assert computed == [(2, 0)]


def test_lazy_results_of_frames_and_sparse_and_empty_chunks():
    da = pytest.importorskip("dask.array", reason="needs dask")
    dd, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = fitted("SPPCA", dd.from_pandas(frame, npartitions=3))
    assert list(model.feature_names_in_) == list("abcdef")
    expected = fitted("SPPCA").transform(X)
    Z = model.transform(dd.from_pandas(frame, npartitions=2))
    assert np.isnan(Z.shape[0]) and Z.shape[1] == 2
    assert_allclose(Z.compute(), expected, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(dd.from_pandas(frame[list("bacdef")], npartitions=2)).compute()
    model = fitted("SPPCA")
    for rows in (
        da.from_array(X, chunks=(40, D)).map_blocks(sparse.csr_array),
        da.from_array(X, chunks=((0, 100, 0, 50), (D,))),
    ):
        assert_allclose(model.transform(rows).compute(), expected, rtol=1e-9, atol=1e-9)


def test_gaps_in_dask_rows_are_filled_where_they_are():
    da = pytest.importorskip("dask.array", reason="needs dask")
    holed, model = np.where(RNG.random(X.shape) < 0.1, np.nan, X), fitted("SPPCA")
    rows = da.from_array(holed, chunks=(40, D))
    assert_allclose(model.transform(rows).compute(), model.transform(holed), rtol=1e-9)
    assert_allclose(model.impute(rows).compute(), model.impute(holed), rtol=1e-9)


def test_outputs_of_dask_rows_are_cut_as_these_are():
    rows, computed = lazy_rows()
    model = fitted("SPPCA")
    found, expected = model.posterior(rows, SOME), model.posterior(X, SOME)
    assert not computed
    assert_allclose(found.mean.compute(), expected.mean, rtol=1e-9, atol=1e-9)
    assert_allclose(model.score_samples(rows, SOME).compute(), model.score_samples(X, SOME))
    with pytest.raises(ValueError, match="X has chunks of unknown sizes"):
        model.posterior(rows[rows[:, 0] < 9], SOME)


def test_scores_of_dask_rows():
    rows, _ = lazy_rows()
    for name, y in (("SPPCA", CODES), ("SPPCA, likelihood", NUMBERS), ("DCAGM", SOME)):
        model = fitted(name)
        assert_allclose(model.score(rows, y), model.score(X, y), rtol=1e-9)


def test_a_size_is_chosen_and_rows_are_scored_where_lengths_are_unknown():
    dd, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = dd.from_pandas(pandas.DataFrame(X, columns=list("abcdef")), npartitions=3)
    model = gnomon.SPPCA("auto", random_state=0).fit(frame, SOME)
    assert model.n_components_ == gnomon.SPPCA("auto", random_state=0).fit(X, SOME).n_components_
    assert list(model.feature_names_in_) == list("abcdef")
    rows, _ = lazy_rows()
    assert_allclose(fitted("DCAGM").score(frame, SOME), fitted("DCAGM").score(X, SOME))
    assert_allclose(
        fitted("DCAGM").score(rows[rows[:, 0] < 1e9], SOME), fitted("DCAGM").score(X, SOME)
    )


def test_linked_dask_rows_are_refused():
    rows, _ = lazy_rows()
    with pytest.raises(ValueError, match="X is a dask Array and links is given"):
        fitted("PRPCA").transform(rows, links=sparse.csr_array((N, N)))


def test_a_model_that_is_not_fitted_says_so_at_once():
    rows, _ = lazy_rows()
    with pytest.raises(ValueError, match="not fitted"):
        gnomon.PPCA().transform(rows)


def test_vectors_of_rows_may_be_dask_too():
    da = pytest.importorskip("dask.array", reason="needs dask")
    dd, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    weights, groups = RNG.random(N), np.arange(N) // 2
    names = pandas.Series(np.where(SOME < 0, None, np.array(["a", "b", "c"])[SOME]))
    lazy = da.from_array(X, chunks=(40, D))
    expected = gnomon.SPPCA(2).fit(X, names, weights, chunks=np.where(SOME < 0, -1, groups))
    found = gnomon.SPPCA(2).fit(
        lazy,
        dd.from_pandas(names, npartitions=2),
        da.from_array(weights, chunks=50),
        chunks=da.from_array(np.where(SOME < 0, -1, groups), chunks=70),
    )
    assert list(found.classes_) == list("abc")
    assert_allclose(found.transform(X), expected.transform(X), rtol=1e-9, atol=1e-9)


# Arrays of other libraries


def strict(values):
    xp = pytest.importorskip("array_api_strict", reason="needs array-api-strict")
    return xp.asarray(np.asarray(values))


def torch(values):
    return pytest.importorskip("torch", reason="needs torch").asarray(np.array(values))


LIBRARIES = [strict, torch]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", MODELS)
def test_rows_of_other_libraries_give_the_same_in_their_own(library, name, monkeypatch):
    monkeypatch.setattr(blocks, "KEPT_ENTRIES", 0)
    rows = library(X)
    expected, model = fitted(name), fitted(name, rows)
    for method, result in said(expected, X).items():
        found = getattr(model, method)(rows)
        assert type(parts(found)) is type(parts(result))
        for there, here in zip(parts(found), parts(result), strict=True):
            if here.dtype.kind == "U":
                assert_array_equal(there, here)
                continue
            assert type(there) is type(rows)
            assert_allclose(in_memory(there), here, rtol=1e-6, atol=1e-6)
            assert in_memory(there).dtype == here.dtype


@pytest.mark.parametrize("library", LIBRARIES)
def test_products_run_in_the_library_of_the_rows(library, monkeypatch):
    """Rows never become an array of NumPy: not even a block of them travels."""
    largest, came = [0], in_memory

    def seen(values):
        largest[0] = max(largest[0], int(np.prod(values.shape)))
        return came(values)

    monkeypatch.setattr("gnomon.linalg.foreign.in_memory", seen)
    weights = np.arange(1.0, N + 1)
    for solver in ("moments", "em"):
        model = gnomon.PPCA(2, solver=solver).fit(library(X), sample_weight=weights)
        expected = gnomon.PPCA(2, solver=solver).fit(X, sample_weight=weights)
        assert_allclose(model.get_covariance(), expected.get_covariance(), rtol=1e-6)
        # EM looks for an axis beside its two before it ends.
        assert 0 < largest[0] <= max(3 * N, D * D)


@pytest.mark.parametrize("library", LIBRARIES)
def test_foreign_rows_have_all_products(library, rng, monkeypatch):
    monkeypatch.setattr("gnomon.linalg.foreign.FOREIGN_ENTRIES", 7 * D)
    mean, units, weights = rng.normal(size=D), np.arange(D) / 2, rng.random(N)
    data = opened(library(X)).less_mean(mean).scaled(units).weighted(weights)
    dense = (X - mean) * units * np.sqrt(weights)[:, None]
    assert_allclose(data @ np.eye(D), dense)
    assert_allclose(data.T @ np.eye(N), dense.T)
    assert_allclose(data.gram(), dense.T @ dense)
    assert_allclose(data.dual_gram(), dense @ dense.T)
    assert_allclose(data.squared_norm, np.sum(dense**2))
    assert_allclose(data.row_squared_norms(), np.sum(dense**2, axis=1))
    assert_allclose(data.column_sums(), dense.sum(axis=0))
    assert_allclose(data.column_means(), weights @ ((X - mean) * units) / weights.sum())
    assert_allclose(data.unweighted @ np.eye(D), (X - mean) * units)
    less = ((X - mean) * units - 1)[:, 1:]
    assert_allclose(data.less_mean(np.ones(D)).unweighted @ np.eye(D)[:, 1:], less)
    some = weights < 0.5
    assert_allclose(data.rows(some).scaled(units) @ np.eye(D), (dense * units)[some])
    assert_allclose(data.rows(np.array([7, 2])).n_samples, weights[[7, 2]].sum())


@pytest.mark.parametrize("library", LIBRARIES)
def test_fit_transform_stays_in_the_library(library):
    for name in ("SPPCA", "KernelFeatures", "BSDR"):
        model, y = MODELS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Z = clone(model).fit_transform(library(X), y)
        assert type(Z) is type(library(X))
    model = gnomon.SPPCA("auto", random_state=0).fit(library(X), SOME)
    assert model.n_components_ == gnomon.SPPCA("auto", random_state=0).fit(X, SOME).n_components_


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_not_a_table_of_finite_floats_is_read_in_memory(library):
    assert isinstance(opened(library(X)), Foreign)
    holed = np.where(X > 3, np.nan, X)
    assert_array_equal(opened(library(holed)), holed)
    assert isinstance(opened(library(X.astype(int))), np.ndarray)
    model = gnomon.PPCA(2).fit(library(holed))
    assert_array_equal(model.components_, gnomon.PPCA(2).fit(holed).components_)
    assert type(model.transform(library(holed))) is type(library(X))
    assert type(model.impute(library(holed))) is type(library(X))
    with pytest.raises(ValueError, match="infinity"):
        gnomon.PPCA(2).fit(library(np.where(X > 3, np.inf, X)))
    with pytest.raises(ValueError, match="expecting 6 features"):
        model.transform(library(X[:, :3]))


@pytest.mark.parametrize("library", LIBRARIES)
def test_single_precision_and_vectors_of_other_libraries(library):
    rows, weights = library(X.astype(np.float32)), RNG.random(N)
    model = gnomon.SPPCA(2).fit(rows, library(SOME), library(weights))
    assert model.components_.dtype == np.float32
    Z = model.transform(rows)
    assert Z.dtype == rows.dtype
    expected = gnomon.SPPCA(2).fit(X.astype(np.float32), SOME, weights).transform(X)
    assert_allclose(in_memory(Z), expected, rtol=1e-3, atol=1e-3)
    assert model.score(rows, library(CODES)) == model.score(X.astype(np.float32), CODES)
    classifier = fitted("DCAGM", rows)
    assert classifier.score(rows, library(SOME)) == classifier.score(X.astype(np.float32), SOME)
    back = model.inverse_transform(Z)
    assert type(back) is type(rows) and tuple(back.shape) == X.shape


def test_a_tensor_that_learns_is_read():
    rows = torch(X).requires_grad_()
    assert_allclose(gnomon.PPCA(2).fit(rows).mean_, X.mean(axis=0))
