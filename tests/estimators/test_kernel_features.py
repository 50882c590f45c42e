import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_circles
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import BSDR, DCAGM, PPCA, KernelFeatures, KernelSPPCA, from_loaders
from gnomon.models import kernel as kernels

KERNELS = ["linear", "rbf", "poly", "sigmoid", "cosine", "laplacian"]


@parametrize_with_checks(
    [
        KernelFeatures(),
        KernelFeatures("poly", n_landmarks=10),
        KernelFeatures("linear"),
        KernelFeatures("precomputed"),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def circles():
    return make_circles(120, factor=0.4, noise=0.05, random_state=0)


@pytest.fixture
def flowers():
    X, y = load_iris(return_X_y=True)
    return np.where(X > 1, X, 0.0), y


def centred(K, K_fit):
    """Kernel K (m, n) of points with the rows of the fit, both less the mean of these rows."""
    means = K_fit.mean(axis=0)
    return K - means - K.mean(axis=1, keepdims=True) + means.mean()


@pytest.mark.parametrize(
    "kernel", ["linear", "rbf", "poly", "cosine", "laplacian", RBF(0.7)], ids=str
)
def test_products_of_features_are_the_centred_kernel(circles, kernel):
    X, _ = circles
    new = X[:20] + 0.1
    model = KernelFeatures(kernel)
    F, F_new = model.fit_transform(X), model.transform(new)
    options = {"gamma": getattr(model, "gamma_", None), "degree": 3, "coef0": 1.0}
    if callable(kernel):
        K, K_new = kernel(X, X), kernel(new, X)
    else:
        K = pairwise_kernels(X, metric=kernel, filter_params=True, **options)
        K_new = pairwise_kernels(new, X, metric=kernel, filter_params=True, **options)
    assert_allclose(F @ F.T, centred(K, K), atol=1e-6)
    assert_allclose(F_new @ F.T, centred(K_new, K), atol=1e-6)
    assert_allclose(model.transform(X), F, atol=1e-6)


def test_features_are_the_components_of_kernel_pca(circles):
    X, _ = circles
    model = KernelFeatures().fit(X)
    peer = KernelPCA(5, kernel="rbf", gamma=model.gamma_).fit(X)
    assert_allclose(
        np.abs(model.transform(X + 0.1)[:, :5]), np.abs(peer.transform(X + 0.1)), atol=1e-8
    )
    assert_allclose(model.energies_[:5], peer.eigenvalues_)


def test_there_are_as_many_features_as_the_kernel_has_rank(flowers):
    X, _ = flowers
    model = KernelFeatures("linear").fit(X)
    assert model.basis_.shape == (150, 4)
    assert list(model.get_feature_names_out()) == [f"kernelfeatures{i}" for i in range(4)]
    assert KernelFeatures("poly", degree=2).fit(X[:, :2]).transform(X[:9, :2]).shape == (9, 5)


def test_features_of_landmarks_are_near_the_exact_ones(circles):
    X, _ = circles
    exact, few = KernelFeatures(gamma=0.3).fit(X), KernelFeatures(gamma=0.3, n_landmarks=50).fit(X)
    F, near = exact.transform(X + 0.1), few.transform(X + 0.1)
    assert few.landmarks_.shape == (50, 2)
    assert_array_equal(few.landmarks_, X[few.landmark_indices_])
    assert not hasattr(few, "energies_")
    assert_allclose(near @ near.T, F @ F.T, atol=1e-3)


def test_many_rows_have_landmarks(circles, monkeypatch):
    X, _ = circles
    monkeypatch.setattr(kernels, "MOST_EXACT", 50)
    monkeypatch.setattr(kernels, "LANDMARKS", 20)
    model = KernelFeatures().fit(X)
    assert model.landmark_indices_.shape == (20,)
    assert_array_equal(KernelFeatures().fit(X).landmark_indices_, model.landmark_indices_)
    assert not np.array_equal(
        KernelFeatures(random_state=1).fit(X).landmark_indices_, model.landmark_indices_
    )


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_a_precomputed_kernel_is_the_same(circles, n_landmarks):
    X, _ = circles
    model = KernelFeatures(gamma=0.7, n_landmarks=n_landmarks).fit(X)
    given = KernelFeatures("precomputed", n_landmarks=n_landmarks).fit(rbf_kernel(X, gamma=0.7))
    new = X[:7] + 0.05
    F = given.transform(rbf_kernel(new, X, gamma=0.7))
    assert_allclose(F, model.transform(new), atol=1e-6)
    assert not hasattr(given, "landmarks_")
    assert not hasattr(given, "gamma_")


@pytest.mark.parametrize("make", [KernelFeatures, lambda kernel: KernelSPPCA(2, kernel=kernel)])
def test_a_precomputed_kernel_is_symmetric_but_for_rounding(circles, make):
    X, _ = circles
    K = rbf_kernel(X, gamma=0.7)
    K[3, 5] += 1e-6
    make("precomputed").fit(K)
    K[3, 5] += 0.01
    for kernel in (K, sparse.csr_array(K)):
        with pytest.raises(ValueError, match=r"differs from its transpose by up to 0\.01"):
            make("precomputed").fit(kernel)


def test_folds_of_a_precomputed_kernel_are_cut_on_both_sides(circles):
    X, y = circles
    model = make_pipeline(KernelFeatures("precomputed"), BSDR(1, prior="column", standardize=False))
    assert cross_val_score(model, rbf_kernel(X, gamma=2.0), y, cv=3).min() > 0.9


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_sparse_rows_and_rows_in_blocks_give_the_same(flowers, kernel, n_landmarks):
    X, _ = flowers
    model = KernelFeatures(kernel, n_landmarks=n_landmarks)
    expected = model.fit(X).transform(X)
    blocks = from_loaders([lambda: X[:70], lambda: X[70:]])
    for rows in (sparse.csr_array(X), sparse.csc_array(X), blocks):
        F = model.fit(rows).transform(rows)
        assert_allclose(F @ F.T, expected @ expected.T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_an_offset_of_all_rows_does_not_turn_the_features(circles, kernel, n_landmarks):
    X, _ = circles
    X = np.round(X * 2**20) / 2**20
    model = KernelFeatures(kernel, n_landmarks=n_landmarks)
    F = model.fit_transform(X)
    for far in (X + 2**27, sparse.csr_array(X + 2**27), from_loaders([lambda: X + 2**27])):
        G = model.fit_transform(far)
        assert_allclose(G @ G.T, F @ F.T, atol=1e-7)


def test_repeated_entries_of_sparse_rows_are_summed(flowers):
    X, _ = flowers
    once = sparse.csr_array(X)
    twice = sparse.csr_array(
        (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), shape=X.shape
    )
    model = KernelFeatures()
    assert_allclose(model.fit(twice).transform(twice), model.fit(once).transform(once), atol=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_long_indices_of_sparse_rows_are_taken(flowers, kernel):
    X, _ = flowers
    once = sparse.csr_array(X)
    index = once.indices.astype(np.int64), once.indptr.astype(np.int64)
    long = sparse.csr_array((once.data, *index), shape=X.shape)
    model = KernelFeatures(kernel).fit(X)
    assert_allclose(model.transform(long), model.transform(X), atol=1e-8)
    assert_allclose(model.fit(long).transform(long), model.fit(X).transform(X), atol=1e-7)


def test_single_precision_stays_and_rounding_adds_no_features(circles):
    X, _ = circles
    single = X.astype(np.float32)
    model = KernelFeatures(gamma=0.1)
    F = model.fit_transform(single)
    assert F.dtype == model.transform(single).dtype == np.float32
    assert F.shape == model.fit_transform(single.astype(float)).shape


def test_none_as_gamma_is_the_width_of_the_rows(circles):
    X, _ = circles
    D = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    assert_allclose(KernelFeatures().fit(X).gamma_, 1 / D.mean())
    assert KernelFeatures(gamma=0.3).fit(X).gamma_ == 0.3
    assert not hasattr(KernelFeatures("cosine").fit(X), "gamma_")


def test_a_new_fit_forgets_what_it_does_not_have(circles):
    X, _ = circles
    model = KernelFeatures().fit(X)
    model.set_params(kernel="precomputed", n_landmarks=9).fit(X @ X.T)
    assert {"gamma_", "landmarks_", "energies_"}.isdisjoint(vars(model))


@pytest.mark.filterwarnings("ignore:BSDR found the null solution")
@pytest.mark.parametrize(
    "linear",
    [
        BSDR(1, prior="column", standardize=False, random_state=0),
        DCAGM(1, standardize=False, random_state=0),
    ],
    ids=["BSDR", "DCAGM"],
)
def test_a_linear_model_that_follows_is_not_linear_any_more(circles, linear):
    X, y = circles
    model = make_pipeline(KernelFeatures(), linear)
    assert cross_val_score(model, X, y, cv=3).mean() > 0.97
    assert cross_val_score(clone(linear), X, y, cv=3).mean() < 0.85


def test_ppca_that_follows_is_kernel_pca(circles):
    X, _ = circles
    Z = make_pipeline(KernelFeatures(gamma=1.0), PPCA(2)).fit_transform(X)
    peer = KernelPCA(2, kernel="rbf", gamma=1.0).fit_transform(X)
    for column, other in zip(Z.T, peer.T, strict=True):
        assert abs(np.corrcoef(column, other)[0, 1]) > 1 - 1e-9


@pytest.mark.filterwarnings("ignore:BSDR found the null solution")
def test_it_lives_in_searches_and_pickles(circles):
    X, y = circles
    model = make_pipeline(KernelFeatures(), BSDR(1, prior="column", standardize=False))
    search = GridSearchCV(model, {"kernelfeatures__gamma": [1e4, 2.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernelfeatures__gamma": 2.0}
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert_array_equal(again.predict(X), search.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "round"}, "kernel == 'round'"),
        ({"gamma": 0}, "gamma == 0"),
        ({"degree": 0}, "degree == 0"),
        ({"coef0": np.nan}, "coef0 == nan"),
        ({"n_landmarks": 0}, "n_landmarks == 0"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_bad_arguments_are_named(circles, options, message):
    X, _ = circles
    with pytest.raises(ValueError, match=message):
        KernelFeatures(**options).fit(X)


def test_rows_that_are_all_equal_are_refused():
    with pytest.raises(ValueError, match="all rows are equal"):
        KernelFeatures().fit(np.ones((10, 2)))
    with pytest.raises(ValueError, match=r"kernel == 'rbf': .* no energy"):
        KernelFeatures(gamma=1e-30).fit(np.eye(10, 2))


@pytest.mark.parametrize(("most", "kept"), [(400, True), (399, False)])
def test_the_kernel_of_rows_and_landmarks_is_kept_where_it_is_small(rng, monkeypatch, most, kept):
    """40 rows and 10 landmarks: 400 entries."""
    monkeypatch.setattr(kernels, "KEPT_ENTRIES", most)
    way, called = kernels.map_features, []
    monkeypatch.setattr(kernels, "map_features", lambda *of: called.append(1) or way(*of))
    KernelFeatures("rbf", n_landmarks=10, random_state=0).fit(rng.standard_normal((40, 3)))
    assert bool(called) != kept
