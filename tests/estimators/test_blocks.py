"""A fit to rows in blocks is the fit to the rows in memory, whatever the blocks."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from gnomon import (
    BSDR,
    DCAGM,
    PPCA,
    PRPCA,
    SPPCA,
    BSDRRegressor,
    KernelSPPCA,
    Links,
    MultinomialProbit,
    from_chunks,
    from_loaders,
    from_parquet,
)
from gnomon.linalg import blocks as storage
from gnomon.models import kernel
from gnomon.models.bsdr import sampled as of_bsdr
from gnomon.models.dcagm import sampled as of_dcagm
from gnomon.models.gaussian import filling, patterns
from gnomon.models.gaussian import fit as of_ppca

MODELS = {
    "PPCA": PPCA(2),
    "SPPCA": SPPCA(2),
    "likelihood": SPPCA(2, supervision="likelihood"),
    "KernelSPPCA": KernelSPPCA(2, n_landmarks=15),
    "DCAGM": DCAGM(2, max_iter=5),
    "BSDR": BSDR(2, max_iter=8, random_state=0),
}
CUTS = {
    "ones": np.arange(1, 300),
    "sevens": np.arange(7, 300, 7),
    "thousands": [],
    "unequal": [1, 40, 41, 290],
    "empty": [0, 100, 100, 100, 300],
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = 2 * np.eye(3, 6)[y] + rng.standard_normal((300, 6))
    return X, np.where(rng.random(300) < 0.4, y, -1)


def few_are_kept(monkeypatch):
    """Rows and their features are too many to be kept, in memory and in blocks alike."""
    for module in (storage, kernel, of_bsdr, of_dcagm):
        monkeypatch.setattr(module, "KEPT_ENTRIES", 600)


def fitted(name, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(MODELS[name]).fit(X, None if name == "PPCA" else y)


# Transformed rows of the fits in memory, by model and by whether rows are kept.
EXPECTED = {}


def tolerance(name):
    return 1e-6 if name == "BSDR" else 1e-9


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "read anew"])
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("name", MODELS)
def test_blocks_are_the_array(rows, name, cuts, kept, monkeypatch):
    if not kept:
        few_are_kept(monkeypatch)
    X, y = rows
    parts = np.split(X, CUTS[cuts])
    found = fitted(name, from_loaders([partial(np.copy, part) for part in parts]), y)
    if (name, kept) not in EXPECTED:
        EXPECTED[name, kept] = fitted(name, X, y).transform(X)
    expected = EXPECTED[name, kept]
    assert_allclose(found.transform(X), expected, atol=tolerance(name) * np.abs(expected).max())


@pytest.mark.parametrize("name", MODELS)
def test_parquet_and_chunks_are_the_array(rows, name, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as files

    X, y = rows
    table = pa.table({str(k): column for k, column in enumerate(X.T)})
    files.write_table(table, tmp_path / "X.parquet", row_group_size=70)
    expected = fitted(name, X, y).transform(X)
    for stored in (from_parquet(tmp_path / "X.parquet"), from_chunks(np.array_split(X, 4))):
        found = fitted(name, stored, y).transform(stored)
        assert_allclose(found, expected, atol=tolerance(name) * np.abs(expected).max())


def many_rows(kind):
    """Rows that overlap, with outputs, and a model for them."""
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=2000)
    X = 1.5 * np.eye(3, 6)[y] + rng.standard_normal((2000, 6))
    if kind == "classes":
        return X, y, BSDR(2, random_state=0, max_iter=200)
    if kind == "two classes":
        return X, np.array(["a", "b"])[np.minimum(y, 1)], BSDR(1, random_state=0, max_iter=200)
    Y = X[:, :3] @ rng.standard_normal((3, 2)) + rng.standard_normal((2000, 2))
    return X, Y, BSDRRegressor(2, random_state=0, max_iter=200)


@pytest.mark.one_sample("of maxima within half a nat of 1,300 either may be found")
@pytest.mark.parametrize("where", ["blocks", "dask"])
@pytest.mark.parametrize("kind", ["classes", "two classes", "numbers"])
def test_bsdr_of_rows_that_are_read_anew_reads_them_few_times(kind, where, monkeypatch):
    X, y, model = many_rows(kind)
    expected, loaded = clone(model).fit(X, y), [0]
    for module in (storage, of_bsdr):
        monkeypatch.setattr(module, "KEPT_ENTRIES", 3600)

    def load(part):
        loaded[0] += len(part)
        return np.copy(part)

    cut = np.split(X, [1, 300, 1100])
    if where == "blocks":
        rows = from_loaders([partial(load, part) for part in cut])
    else:
        da, delayed = pytest.importorskip("dask.array"), pytest.importorskip("dask").delayed
        chunks = [da.from_delayed(delayed(load)(part), part.shape, float) for part in cut]
        rows = da.concatenate(chunks)
    loaded[0], found = 0, clone(model)
    found.fit(rows, y)
    assert 0 < loaded[0] <= 30 * len(X)
    assert found.converged_
    assert np.all(np.diff(found.objective_) > -1e-9 * np.abs(found.objective_[-1]))
    bound = expected.objective_[-1]
    assert found.objective_[-1] > bound - 1e-6 * np.abs(bound)
    theirs, ours = (m.components_.T @ m.weights_ for m in (expected, found))
    assert_allclose(ours, theirs, atol=0.1 * np.abs(theirs).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_bsdr_in_blocks_is_that_of_the_array_in_either_precision(kind, dtype, monkeypatch):
    X, y, model = many_rows(kind)
    X, model = X.astype(dtype), model.set_params(max_iter=20)
    for module in (storage, of_bsdr):
        monkeypatch.setattr(module, "KEPT_ENTRIES", 3600)
    parts = [partial(np.copy, part) for part in np.split(X, [1, 300, 1100])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (clone(model).fit(rows, y) for rows in (from_loaders(parts), X))
    assert_allclose(found.objective_[-1], expected.objective_[-1], rtol=1e-12)
    assert_allclose(found.components_, expected.components_, atol=1e-7)


@pytest.mark.parametrize("name", ["PPCA", "likelihood"])
@pytest.mark.parametrize("cuts", CUTS)
def test_gaps_in_blocks_that_are_read_anew(rows, name, cuts, monkeypatch):
    X, y = rows
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    expected = fitted(name, X, y)
    for module in (storage, patterns):
        monkeypatch.setattr(module, "KEPT_ENTRIES", 600)
    monkeypatch.setattr(patterns, "PART_ROWS", 50)
    found = fitted(name, from_loaders([partial(np.copy, p) for p in np.split(X, CUTS[cuts])]), y)
    assert found.n_iter_ == expected.n_iter_
    assert_allclose(found.get_covariance(), expected.get_covariance(), rtol=1e-9, atol=1e-9)
    assert_allclose(found.log_likelihood_, expected.log_likelihood_, rtol=1e-9)


@pytest.mark.parametrize("strength", ["auto", 0.6, 0.0])
@pytest.mark.parametrize("cuts", CUTS)
def test_gaps_in_blocks_at_a_strength(rows, strength, cuts, monkeypatch):
    X, y = rows
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    y, weights = np.where(np.arange(300) % 4, y, -1), np.linspace(0.5, 2, 300)
    expected = SPPCA(2, supervision=strength).fit(X, y, sample_weight=weights)
    for module in (storage, patterns):
        monkeypatch.setattr(module, "KEPT_ENTRIES", 600)
    monkeypatch.setattr(patterns, "PART_ROWS", 50)
    blocks = from_loaders([partial(np.copy, p) for p in np.split(X, CUTS[cuts])])
    for given in (blocks, X):
        found = SPPCA(2, supervision=strength).fit(given, y, sample_weight=weights)
        assert found.supervision_ == expected.supervision_
        assert_allclose(found.get_covariance(), expected.get_covariance(), rtol=1e-6)
        assert_allclose(found.transform(X), expected.transform(X), atol=1e-6)
        assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-6)


def with_gaps(rows, monkeypatch):
    """Rows with a tenth of gaps, as an array and in blocks that are too many to keep."""
    X = np.where(np.random.default_rng(1).random(rows.shape) < 0.1, np.nan, rows)
    few_are_kept(monkeypatch)
    monkeypatch.setattr(patterns, "KEPT_ENTRIES", 600)
    monkeypatch.setattr(patterns, "PART_ROWS", 50)
    return X, from_loaders([partial(np.copy, part) for part in np.split(X, [100, 170])])


@pytest.mark.parametrize("asked", ["auto", 0.8])
def test_components_of_rows_with_gaps_that_cannot_be_kept_are_chosen(rows, asked, monkeypatch):
    X, _ = rows
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    expected = PPCA(asked).fit(X)
    holed, blocks = with_gaps(rows[0], monkeypatch)
    for given in (holed, blocks):
        found = PPCA(asked).fit(given)
        assert found.n_components_ == expected.n_components_
        assert_allclose(found.get_covariance(), expected.get_covariance(), rtol=1e-6)
    monkeypatch.setattr(of_ppca, "SIZE_ROWS", 100)
    some, again = PPCA(asked).fit(blocks), PPCA(asked).fit(holed)
    assert some.n_components_ == again.n_components_
    assert_allclose(some.get_covariance(), again.get_covariance(), rtol=1e-9)


def test_what_still_refuses_gaps_in_blocks_says_what_to_do(rows, monkeypatch):
    _, blocks = with_gaps(rows[0], monkeypatch)
    probit = SPPCA(2, supervision="likelihood", likelihood="probit")
    learnt = PRPCA(2, relation="learnt"), PRPCA(2, relation="paper", solver="em")
    for model in (probit, PPCA(2, prior="ard"), PRPCA(2, relation="paper", prior="ard"), *learnt):
        with pytest.raises(ValueError, match=r"X has missing values and 1,800.*by its impute"):
            model.fit(blocks, rows[1])


@pytest.mark.parametrize("relation", ["auto", "filter", "beside", "paper", "alone"])
def test_gaps_of_linked_rows_in_blocks_are_filled_as_in_memory(rows, relation, monkeypatch):
    X = rows[0]
    near = np.argsort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1:4]
    edges = np.column_stack([np.repeat(np.arange(len(X)), 3), near.ravel()])
    links = None if relation == "alone" else Links.from_edges(edges, n_nodes=len(X))
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    model = PRPCA(2, relation="auto" if relation == "alone" else relation, tol=1e-12)
    warnings.filterwarnings("ignore", "X has missing values")
    expected = clone(model).fit(X, links=links)
    holed, blocks = with_gaps(rows[0], monkeypatch)
    for given in (holed, blocks):
        found = clone(model).fit(given, links=links)
        assert_allclose(found.get_covariance(), expected.get_covariance(), rtol=1e-6)
        assert_allclose(found.training_scores_, expected.training_scores_, atol=1e-5)
        assert_allclose(found.impute(X), expected.impute(X), atol=1e-5)


ELSEWHERE = MODELS | {"auto": PPCA("auto"), "strength": SPPCA(2, supervision=0.5)}


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "fetched anew"])
def test_gaps_of_rows_of_dask_are_those_of_blocks(rows, name, kept, monkeypatch):
    da = pytest.importorskip("dask.array")
    X = np.where(np.random.default_rng(1).random(rows[0].shape) < 0.1, np.nan, rows[0])
    blocks = from_loaders([partial(np.copy, part) for part in np.split(X, [100, 170])])
    if not kept:
        _, blocks = with_gaps(rows[0], monkeypatch)
    found, expected = clone(ELSEWHERE[name]), clone(ELSEWHERE[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.fit(da.from_array(X, chunks=(70, 6)), rows[1])
        expected.fit(blocks, rows[1])
    theirs = expected.transform(rows[0])
    assert_allclose(found.transform(rows[0]), theirs, atol=1e-6 * np.abs(theirs).max())


FILL = {
    "KernelSPPCA": KernelSPPCA(2),
    "landmarks": KernelSPPCA(2, n_landmarks=30),
    "DCAGM": DCAGM(2),
    "BSDR": BSDR(2, random_state=0),
    "probit": MultinomialProbit(),
}


@pytest.mark.parametrize("name", FILL)
def test_gaps_of_rows_that_cannot_be_kept_are_filled_as_they_are_read(rows, name, monkeypatch):
    """The fit is that of the filled rows, and rows with gaps are predicted nearly as well."""
    X, y = rows
    holed, blocks = with_gaps(X, monkeypatch)
    found, expected = clone(FILL[name]), clone(FILL[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.fit(blocks, y)
        filled = filling.fill(found.filling_, holed)
        parts = np.split(filled, [100, 170])
        expected.fit(from_loaders([partial(np.copy, part) for part in parts]), y)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-6)
    assert found.score(holed, y) > found.score(X, y) - 0.1


def test_gaps_of_rows_with_numbers_are_filled_as_they_are_read(rows, monkeypatch):
    X, _ = rows
    holed, blocks = with_gaps(X, monkeypatch)
    t = X @ np.arange(1.0, X.shape[1] + 1)
    whole = BSDRRegressor(2, random_state=0).fit(X, t)
    found = BSDRRegressor(2, random_state=0).fit(blocks, t)
    assert found.score(X, t) > whole.score(X, t) - 0.05
    assert (
        found.noise_variance_ < 2 * BSDRRegressor(2, random_state=0).fit(holed, t).noise_variance_
    )


@pytest.mark.parametrize("given", ["links", "neighbours", "chunks"])
def test_gaps_in_blocks_beside_links_and_chunks(rows, given, monkeypatch):
    X, y = rows
    holed, blocks = with_gaps(X, monkeypatch)
    near = (y[:, None] == y) & (np.random.default_rng(2).random((300, 300)) < 0.05)
    chunks = np.where(np.arange(300) < 40, np.arange(300) // 2, -1)
    known = {
        "links": {"links": np.triu(near, 1) | np.triu(near, 1).T},
        "neighbours": {"links": "neighbours"},
        "chunks": {"chunks": np.where(y == y[np.maximum(2 * chunks, 0)], chunks, -1)},
    }[given]
    few = np.where(np.arange(300) % 4, -1, y)
    expected, found = (SPPCA(2, random_state=0).fit(rows, few, **known) for rows in (holed, blocks))
    assert_allclose(found.get_covariance(), expected.get_covariance(), rtol=1e-6)


# Of the few rows of the first parts they may explain an output of two as well.
@pytest.mark.filterwarnings("ignore:n_components == 2 explains all variance of y")
@pytest.mark.parametrize("kind", ["classes", "numbers", "labels", "one number", "nothing"])
def test_parts_of_sppca_are_the_fit_to_all_rows(rows, kind):
    X, y = rows
    rng = np.random.default_rng(2)
    numbers = X[:, :2] @ rng.standard_normal((2, 2)) + rng.standard_normal((300, 2))
    numbers[rng.random(300) < 0.5] = np.nan
    signs = np.where(np.isnan(numbers), np.nan, numbers > 0.5)
    late = np.where(np.arange(300) < 100, np.where(y == 2, -1, y), y)
    outputs = {"classes": late, "numbers": numbers, "labels": signs, "one number": numbers[:, 0]}
    t, w = outputs.get(kind), rng.uniform(0.5, 2, 300)
    settings = {"supervision": "likelihood", "tol": 1e-12, "max_iter": 2000}
    if kind in ("classes", "numbers", "one number"):
        settings["noise"] = 1.0  # two components may explain two outputs wholly
    whole, parts = SPPCA(2, **settings).fit(X, t, sample_weight=w), SPPCA(2, **settings)
    for part in np.array_split(np.arange(300), 7):
        parts.partial_fit(X[part], None if t is None else t[part], sample_weight=w[part])
    assert_allclose(parts.log_likelihood_, whole.log_likelihood_, rtol=1e-10)
    # Where the likelihood is flat to 1e-12, the square root of it is left open.
    assert_allclose(parts.get_covariance(), whole.get_covariance(), atol=1e-6)
    assert_allclose(parts.transform(X), whole.transform(X), atol=1e-6)
    assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    assert_allclose(parts.target_covariance_, whole.target_covariance_, atol=1e-6)
    if kind == "classes":
        assert parts.classes_.tolist() == [0, 1, 2]
        assert parts.class_head_ is None
        whole.class_head_ = None
        assert_array_equal(parts.predict(X), whole.predict(X))


def test_partial_fit_of_sppca_says_what_it_cannot(rows):
    X, y = rows
    with pytest.raises(AttributeError, match="partial_fit") as error:
        SPPCA(2).partial_fit(X, y)
    assert "accepted are supervision='likelihood'" in str(error.value.__cause__)
    model = SPPCA(1, supervision="likelihood")
    with pytest.raises(ValueError, match="some outputs missing"):
        model.partial_fit(X, np.column_stack([X[:, 0], np.where(y < 0, np.nan, X[:, 1])]))
    model = SPPCA(1, supervision="likelihood").partial_fit(X, np.where(y > 0, 1, -1))
    with pytest.raises(ValueError, match="-1 and 1 alone before"):
        model.partial_fit(X, y)
    model.fit(X, y)
    assert not hasattr(model, "moments_")


def on_disk(folder, values):
    """A memory map of the values."""
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, values)
    return np.load(path, mmap_mode="r")


def test_labels_weights_and_chunks_may_be_memory_maps(rows, tmp_path):
    X, y = rows
    known = y, np.linspace(0.5, 2, 300), np.where(y < 0, np.arange(300) // 2, -1)
    mapped = [on_disk(tmp_path, values) for values in known]
    blocks = from_loaders([partial(np.copy, part) for part in np.split(X, [100, 170])])
    for model in (SPPCA(2), DCAGM(2, max_iter=5)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, expected = (
                clone(model).fit(data, of[0], sample_weight=of[1], chunks=of[2])
                for data, of in ((blocks, mapped), (X, known))
            )
        assert_allclose(found.transform(X), expected.transform(X), atol=1e-8)


def test_links_may_be_memory_maps(rows, tmp_path):
    X, _ = rows
    links = sparse.random_array(
        (300, 300), density=0.02, rng=np.random.default_rng(2), format="csr"
    )
    links = sparse.csr_array(sparse.triu(links, 1) + sparse.triu(links, 1).T)
    mapped = [on_disk(tmp_path, part) for part in (links.data, links.indices, links.indptr)]
    blocks = from_loaders([partial(np.copy, part) for part in np.split(X, [100, 170])])
    found = PRPCA(2).fit(blocks, links=sparse.csr_array(tuple(mapped), shape=links.shape))
    expected = PRPCA(2).fit(X, links=links)
    assert_allclose(found.components_, expected.components_, atol=1e-9)
