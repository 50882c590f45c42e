"""What every model takes: the same rows in memory, sparse, in blocks or with dask, one fit."""

import inspect

import every
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import gnomon
from gnomon import from_loaders

N, D, CLASSES = 240, 8, 3
CODES = np.arange(N) % CLASSES
SOME = np.where(np.arange(N) % 4, -1, CODES)
# A fifth is wrong: what two components explain wholly has no noise, of which the likelihood warns.
DOUBTFUL = np.where(np.arange(N) % 20, SOME, (CODES + 1) % CLASSES)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(CLASSES, D))
    rows = centres[CODES] + rng.normal(size=(N, D))
    return np.where(np.abs(rows) > 1, rows, 0)


def ring():
    """Every node linked with the next of its class."""
    ahead = (np.arange(N) + CLASSES) % N
    return sparse.csr_array((np.ones(N), (np.arange(N), ahead)), shape=(N, N))


def with_dask(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(77, 5))


KINDS = {
    "sparse": sparse.csr_array,
    "dask": with_dask,
    "loaders": lambda X: from_loaders([lambda s=s: X[s : s + 77] for s in range(0, N, 77)]),
    "sparse loaders": lambda X: from_loaders(
        [lambda s=s: sparse.csr_array(X[s : s + 77]) for s in range(0, N, 77)]
    ),
}
MODELS = {
    "PPCA": (gnomon.PPCA(2), {}),
    "PPCA, auto": (gnomon.PPCA("auto"), {}),
    "SPPCA": (gnomon.SPPCA(2), {"y": SOME}),
    "SPPCA, all labelled": (gnomon.SPPCA(2), {"y": CODES}),
    "SPPCA, likelihood": (gnomon.SPPCA(2, supervision="likelihood"), {"y": DOUBTFUL}),
    "KernelSPPCA": (gnomon.KernelSPPCA(2), {"y": SOME}),
    "KernelSPPCA, landmarks": (gnomon.KernelSPPCA(2, n_landmarks=50), {"y": SOME}),
    "KernelFeatures": (gnomon.KernelFeatures(), {}),
    "KernelFeatures, landmarks": (gnomon.KernelFeatures(n_landmarks=50), {}),
    "PRPCA": (gnomon.PRPCA(2, relation="paper"), {"links": ring()}),
    "PRPCA, filter": (gnomon.PRPCA(2, relation="filter"), {"links": ring()}),
    "PRPCA, learnt": (gnomon.PRPCA(2, relation="learnt"), {"links": ring()}),
    "DCAGM": (gnomon.DCAGM(2), {"y": SOME}),
    "BSDR": (gnomon.BSDR(2), {"y": CODES}),
    "BSDRRegressor": (gnomon.BSDRRegressor(1, max_iter=500), {"y": CODES.astype(float)}),
    "MultinomialProbit": (gnomon.MultinomialProbit(max_iter=500), {"y": CODES}),
}


def outcome(model, X):
    """What the model says of the rows, free of signs."""
    if hasattr(model, "transform"):
        Z = model.transform(X)
        return Z @ Z.T
    return model.predict_proba(X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_the_kind_of_the_rows_does_not_matter(X, kind, name):
    model, known = clone(MODELS[name][0]), MODELS[name][1]
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    expected = outcome(model.fit(X, **known), X)
    rows = KINDS[kind](X)
    assert_allclose(outcome(model.fit(rows, **known), rows), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name", [n for n in MODELS if n.startswith(("PPCA", "SPPCA", "Kernel", "PRPCA"))]
)
def test_two_fits_without_a_seed_agree(X, name):
    model, known = clone(MODELS[name][0]), MODELS[name][1]
    first = model.fit(X, **known).transform(X)
    assert_array_equal(model.fit(X, **known).transform(X), first)


METHODS = ("transform", "posterior", "impute", "score_samples", "predict", "predict_proba")


@pytest.mark.parametrize("name", MODELS)
def test_data_frames_are_read_by_their_names_throughout(X, name):
    """No warning of lost names, and frames out where they are asked for."""
    pandas = pytest.importorskip("pandas")
    model, known = clone(MODELS[name][0]), MODELS[name][1]
    frame = pandas.DataFrame(X, columns=list("abcdefgh"), index=np.arange(N)[::-1])
    if hasattr(model, "transform"):
        model.set_output(transform="pandas")
    model.fit(frame, **known)
    for method in METHODS:
        if hasattr(model, method):
            getattr(model, method)(frame)
    if hasattr(model, "transform"):
        assert list(model.transform(frame).columns) == list(model.get_feature_names_out())
        assert model.transform(frame).index.equals(frame.index)
    if name.startswith("SPPCA"):
        assert_allclose(model.impute(frame, SOME)[0], X)


@pytest.mark.parametrize(
    "name", [name for name, case in MODELS.items() if hasattr(case[0], "transform")]
)
def test_polars_frames_go_in_and_come_out(X, name):
    polars = pytest.importorskip("polars")
    model, known = clone(MODELS[name][0]).set_output(transform="polars"), MODELS[name][1]
    frame = polars.DataFrame(X, schema=list("abcdefgh"))
    Z = model.fit(frame, **known).transform(frame)
    assert isinstance(Z, polars.DataFrame) and Z.columns == list(model.get_feature_names_out())
    assert list(model.feature_names_in_) == list("abcdefgh")


@pytest.mark.parametrize("name", MODELS)
def test_a_notebook_shows_whether_a_model_is_fitted(X, name):
    model, known = clone(MODELS[name][0]), MODELS[name][1]
    assert "<span>Not fitted</span>" in model._repr_html_()
    assert "<span>Fitted</span>" in model.fit(X, **known)._repr_html_()


@pytest.mark.parametrize("kind", every.constructors(), ids=lambda kind: kind.__name__)
def test_what_a_fit_may_be_told_of_rows_is_routed_through_a_pipeline(kind, monkeypatch):
    asked = set(inspect.signature(kind.fit).parameters) - {"self", "X", "y", "fit_params"}
    told, seen = dict.fromkeys(asked, CODES), {}
    monkeypatch.setattr(kind, "fit", lambda self, X, y=None, **given: seen.update(given) or self)
    with config_context(enable_metadata_routing=True):
        model = kind().set_fit_request(**dict.fromkeys(asked, True)) if asked else kind()
        make_pipeline(model).fit(np.ones((N, D)), CODES, **told)
    assert seen == told


@pytest.mark.parametrize("name", MODELS)
def test_skops_loads_what_it_dumps(X, name):
    skops = pytest.importorskip("skops.io")
    model, known = clone(MODELS[name][0]), MODELS[name][1]
    dumped = skops.dumps(model.fit(X, **known))
    ours = skops.get_untrusted_types(data=dumped)
    assert all(kind.startswith("gnomon.") for kind in ours)
    assert_array_equal(outcome(skops.loads(dumped, trusted=ours), X), outcome(model, X))


def test_loaders_of_integers_are_rows_of_numbers(X):
    counts = X.astype(np.int32)
    model = gnomon.PPCA(2).fit(from_loaders([lambda: counts[:90], lambda: counts[90:]]))
    expected = gnomon.PPCA(2).fit(counts.astype(float))
    assert_allclose(model.get_covariance(), expected.get_covariance(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_loaders_that_return_no_number_are_named(X, store):
    for bad in (np.inf, np.nan)[: 1 + (store is sparse.csr_array)]:
        spoilt = X.copy()
        spoilt[100, 3] = bad
        with pytest.raises(ValueError, match=r"loaders\[1\] returns.*infinity"):
            from_loaders([lambda X=spoilt: store(X[:90]), lambda X=spoilt: store(X[90:])])


def test_loaders_return_tables(X):
    with pytest.raises(ValueError, match=r"loaders\[0\] returns 1 dimensions"):
        from_loaders([lambda: X[0]])
    with pytest.raises(TypeError, match=r"loaders\[0\] returns list; accepted are arrays"):
        from_loaders([X.tolist])
    with pytest.raises(TypeError, match=r"loaders\[0\] is ndarray; accepted are functions"):
        from_loaders(X)


def test_gaps_are_filled_in_arrays_only(X):
    model = gnomon.PPCA(2).fit(X)
    with pytest.raises(TypeError, match="X is sparse; impute accepts an array"):
        model.impute(sparse.csr_array(X))
    with pytest.raises(TypeError, match="X is in blocks; impute accepts an array"):
        model.impute(from_loaders([lambda: X]))


def test_a_kernel_of_rows_in_blocks_is_refused(X):
    K = from_loaders([lambda: X @ X.T])
    for model in (
        gnomon.KernelSPPCA(2, kernel="precomputed"),
        gnomon.KernelFeatures("precomputed"),
    ):
        with pytest.raises(ValueError, match="in blocks; kernel == 'precomputed'"):
            model.fit(K, SOME)
