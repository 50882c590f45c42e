import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_circles
from sklearn.decomposition import KernelPCA
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import SPPCA, KernelFeatures, KernelSPPCA
from gnomon.estimators._targets import contrasts
from gnomon.models import kernel as kernels


@parametrize_with_checks(
    [
        KernelSPPCA(),
        KernelSPPCA(supervision=0.5, kernel="poly", n_landmarks=10),
        KernelSPPCA(supervision="likelihood", tol=1e-5),
        KernelSPPCA(kernel="precomputed", supervision=0.5),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def circles():
    X, y = make_circles(120, factor=0.4, noise=0.05, random_state=0)
    return X, y, np.where(np.arange(120) < 20, y, -1)


@pytest.fixture
def flowers():
    X, y = load_iris(return_X_y=True)
    return X, y, np.where(np.arange(150) % 10 < 3, y, -1)


def gram(T):
    return (T - T.mean(axis=0)) @ (T - T.mean(axis=0)).T


@pytest.mark.parametrize("supervision", [0, 0.3, 0.9, 1, "auto"])
def test_a_linear_kernel_is_sppca(flowers, supervision):
    X, _, y = flowers
    options = {"n_components": 2, "supervision": supervision}
    dual = KernelSPPCA(kernel="linear", **options).fit(X[:140], y[:140])
    primal = SPPCA(**options).fit(X[:140], y[:140])
    assert dual.supervision_ == primal.supervision_
    assert_allclose(gram(dual.transform(X)), gram(primal.transform(X)), atol=1e-8)
    assert_allclose(dual.predict_proba(X), primal.predict_proba(X), atol=1e-8)
    assert_allclose(dual.input_share_, primal.input_share_, atol=1e-9)


def test_a_linear_kernel_by_likelihood_is_sppca(flowers):
    X, _, y = flowers
    options = {"n_components": 1, "supervision": "likelihood", "tol": 1e-12}
    dual = KernelSPPCA(kernel="linear", **options).fit(X, y)
    primal = SPPCA(**options).fit(X, y)
    assert_allclose(gram(dual.transform(X)), gram(primal.transform(X)), rtol=1e-8, atol=1e-8)


def test_no_supervision_is_kernel_pca(circles):
    X, _, y = circles
    model = KernelSPPCA(3, supervision=0).fit(X, y)
    peer = KernelPCA(3, kernel="rbf", gamma=model.gamma_).fit(X)
    new = X[:30] + 0.1
    assert_allclose(np.abs(model.transform(new)), np.abs(peer.transform(new)), atol=1e-8)


def test_theorem_3_at_the_noise_that_was_learnt(flowers):
    """Theorem 3 of [YYTKW06]; the projection (ii) as corrected in the errata."""
    X, y, _ = flowers
    n, q = len(X), 1
    model = KernelSPPCA(q, supervision="likelihood", tol=1e-13, max_iter=3000).fit(X, y)
    K = rbf_kernel(X, gamma=model.gamma_)
    J = np.eye(n) - 1 / n
    Kc = J @ K @ J
    codes = J @ contrasts(3)[y]
    sx2, sy2 = learnt_noise(Kc, codes, q)
    values, V = np.linalg.eigh(Kc / sx2 + codes @ codes.T / sy2)
    values, V = values[::-1][:q], V[:, ::-1][:, :q]
    D = 1 - n / values
    right = V.T @ Kc @ V + n * sx2 * np.diag(1 / D)
    Z = np.sqrt(n) * (np.diag(D**-0.5) @ np.linalg.solve(right, V.T @ Kc)).T
    assert_allclose(gram(model.transform(X)), gram(Z), atol=2e-4 * np.abs(gram(Z)).max())
    printed = V.T @ Kc @ V + np.diag(1 / D)
    wrong = np.sqrt(n) * (np.diag(D**-0.5) @ np.linalg.solve(printed, V.T @ Kc)).T
    assert np.abs(gram(wrong) - gram(Z)).max() > 0.01 * np.abs(gram(Z)).max()


def learnt_noise(Kc, codes, q):
    """Noise levels at which the closed form has the largest likelihood, by a search over ratios."""
    n = len(Kc)
    energies = np.linalg.eigvalsh(Kc)
    dimension = np.sum(energies > 1e-8 * energies[-1]) + codes.shape[1]

    def profile(log_ratio):
        values = np.linalg.eigvalsh(Kc + codes @ codes.T / np.exp(log_ratio))[::-1] / n
        sigma2 = values[q:].sum() / (dimension - q)
        fit = np.log(values[:q]).sum() + (dimension - q) * np.log(sigma2)
        fit += codes.shape[1] * log_ratio
        return fit, sigma2, np.exp(log_ratio) * sigma2

    best, width = 0.0, 12.0
    for _ in range(8):
        best = min(np.linspace(best - width, best + width, 25), key=lambda g: profile(g)[0])
        width /= 8
    return profile(best)[1:]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", RBF(0.7)], ids=str)
def test_few_labels_find_what_is_not_linear(circles, kernel):
    X, truth, y = circles
    model = KernelSPPCA(2, kernel=kernel).fit(X, y)
    assert np.mean(model.predict(X) == truth) > 0.95
    near = KNeighborsClassifier(1).fit(model.transform(X)[y >= 0], truth[y >= 0])
    assert np.mean(near.predict(model.transform(X)) == truth) > 0.95


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "cosine", "laplacian"])
def test_sparse_rows_give_the_same(flowers, kernel):
    X, _, y = flowers
    X = np.where(X > 1, X, 0.0)
    dense = KernelSPPCA(kernel=kernel, supervision=0.5).fit(X, y)
    thin = KernelSPPCA(kernel=kernel, supervision=0.5).fit(sparse.csr_array(X), y)
    T = dense.transform(X)
    # Directions of next to no variance are kept or left out by rounding.
    assert_allclose(thin.transform(sparse.csr_array(X)), T, atol=1e-3 * np.abs(T).max())


def test_a_precomputed_kernel_is_the_same(circles):
    X, _, y = circles
    model = KernelSPPCA(gamma=0.7, supervision=0.5).fit(X, y)
    given = KernelSPPCA(kernel="precomputed", supervision=0.5).fit(rbf_kernel(X, gamma=0.7), y)
    new = X[:7] + 0.05
    assert_allclose(given.transform(rbf_kernel(new, X, gamma=0.7)), model.transform(new), atol=1e-7)


def test_a_callable_is_given_two_matrices(circles):
    X, _, y = circles
    model = KernelSPPCA(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.7)).fit(X, y)
    assert_allclose(model.transform(X), KernelSPPCA(gamma=0.7).fit(X, y).transform(X), atol=1e-8)


def test_landmarks_that_are_all_rows_change_nothing(circles, monkeypatch):
    X, _, y = circles
    exact = KernelSPPCA(supervision=0.5).fit(X, y)
    assert KernelSPPCA(n_landmarks=500).fit(X, y).landmarks_.shape == (120, 2)
    monkeypatch.setattr(kernels, "MOST_EXACT", 50)
    monkeypatch.setattr(kernels, "LANDMARKS", 119)
    near = KernelSPPCA(supervision=0.5).fit(X, y)
    assert near.landmarks_.shape == (119, 2)
    assert_allclose(gram(near.transform(X)), gram(exact.transform(X)), atol=1e-4)


def test_few_landmarks_predict_nearly_as_well(circles):
    X, truth, y = circles
    model = KernelSPPCA(n_landmarks=25).fit(X, y)
    assert model.dual_components_.shape == (25, 2)
    assert np.mean(model.predict(X) == truth) > 0.95


def test_numbers_and_indicators(flowers):
    X, _, _ = flowers
    numbers = KernelSPPCA(supervision=0.5).fit(X[:, :2], np.where(X[:, 3] > 2, np.nan, X[:, 3]))
    known = X[:, 3] <= 2
    assert np.corrcoef(numbers.predict(X[:, :2])[known], X[known, 3])[0, 1] > 0.8
    indicators = np.column_stack([X[:, 2] > 4, X[:, 3] > 1]).astype(float)
    indicators[::3, 0] = np.nan
    model = KernelSPPCA(supervision=0.5).fit(X, indicators)
    assert model.predict(X).shape == (150, 2)
    assert np.mean(model.predict(X)[:, 1] == indicators[:, 1]) > 0.9
    assert not hasattr(model, "predict_proba")


def test_without_outputs_it_projects_and_refuses_to_predict(circles):
    X, _, _ = circles
    model = KernelSPPCA().fit(X)
    assert model.transform(X).shape == (120, 2)
    with pytest.raises(ValueError, match="without outputs"):
        model.predict(X)


def test_the_constant_term_of_a_polynomial_turns_the_map(circles):
    X, y, _ = circles
    maps = [KernelSPPCA(kernel="poly", coef0=c).fit(X, y).transform(X) for c in (0.0, 1.0, 1.0)]
    assert_allclose(maps[1], maps[2])
    grams = [Z @ Z.T / np.linalg.norm(Z @ Z.T) for Z in maps]
    assert np.linalg.norm(grams[0] - grams[1]) > 0.1


def test_integers_are_numbers_where_target_says_so(circles):
    X, _, _ = circles
    y = np.round(3 * X[:, 0]).astype(int)
    assert KernelSPPCA().fit(X, y).target_coding_.kind == "classes"
    model = KernelSPPCA(target="numeric").fit(X, y)
    assert model.target_coding_.kind == "numeric"
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_stops_the_likelihood(circles):
    X, y, _ = circles
    stop = KernelSPPCA(supervision="likelihood", callback=lambda n_iter, *_: n_iter == 2)
    assert stop.fit(X, y).n_iter_ == 2


def test_pre_images_are_refused(circles):
    X, _, y = circles
    model = KernelSPPCA().fit(X, y)
    with pytest.raises(NotImplementedError, match="pre-image"):
        model.inverse_transform(model.transform(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "round"}, "kernel == 'round'"),
        ({"gamma": 0}, "gamma == 0"),
        ({"degree": 0}, "degree == 0"),
        ({"supervision": 1.5}, "supervision == 1.5"),
        ({"supervision": "much"}, "supervision == 'much'"),
        ({"n_components": 0}, "n_components == 0"),
        ({"n_components": 500}, "n_components == 500"),
        ({"n_landmarks": 0}, "n_landmarks == 0"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_bad_arguments_are_named(circles, options, message):
    X, _, y = circles
    with pytest.raises(ValueError, match=message):
        KernelSPPCA(**options).fit(X, y)


def test_rows_that_are_all_equal_are_refused():
    with pytest.raises(ValueError, match="no energy"):
        KernelSPPCA().fit(np.ones((10, 2)))


def test_float32_stays(circles):
    X, _, y = circles
    model = KernelSPPCA().fit(X.astype(np.float32), y)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(
        np.abs(model.transform(X.astype(np.float32))),
        np.abs(KernelSPPCA().fit(X, y).transform(X)),
        atol=1e-2,
    )


def test_it_lives_in_pipelines_and_searches(circles):
    X, truth, _ = circles
    search = GridSearchCV(
        make_pipeline(KernelSPPCA(supervision=0.5), KNeighborsClassifier(1)),
        {"kernelsppca__gamma": [0.1, 2.0]},
        cv=3,
    ).fit(X, truth)
    assert search.best_score_ > 0.9
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert_allclose(again.predict(X), search.predict(X))


def test_names_of_the_output(circles):
    pd = pytest.importorskip("pandas")
    X, _, y = circles
    model = clone(KernelSPPCA()).set_output(transform="pandas")
    frame = model.fit_transform(pd.DataFrame(X, columns=["a", "b"]), y)
    assert list(frame.columns) == ["kernelsppca0", "kernelsppca1"]


def test_a_kernel_of_less_rank_than_components_is_fitted_by_likelihood():
    """One feature, whose cosines are signs: the other components have no energy."""
    X = np.array([[1.0], [2.0], [-1.0], [3.0], [-2.0], [1.0], [-4.0], [2.0], [1.0]])
    y = np.sin(np.arange(9.0))
    model = KernelSPPCA(4, kernel="cosine", supervision="likelihood", n_landmarks=3).fit(X, y)
    T = model.transform(X)
    signs = np.sign(X[:, 0]) - np.sign(X[:, 0]).mean()
    assert_allclose(T[:, 2:], 0, atol=1e-12)
    assert np.abs(T[:, 1]).max() < 1e-3 * np.abs(T[:, 0]).max()
    assert abs(np.corrcoef(T[:, 0], signs)[0, 1]) > 1 - 1e-9


def test_it_is_a_model_of_the_features_of_the_kernel(circles):
    X, _, y = circles
    for n_landmarks in (None, 30):
        options = {"gamma": 0.8, "n_landmarks": n_landmarks, "random_state": 3}
        model = KernelSPPCA(2, supervision=0.5, **options).fit(X, y)
        features = KernelFeatures(**options)
        primal = SPPCA(2, supervision=0.5).fit(features.fit_transform(X), y)
        T, expected = model.transform(X + 0.1), primal.transform(features.transform(X + 0.1))
        assert_allclose(gram(T), gram(expected), atol=1e-7)
        assert_allclose(model.landmark_indices_, features.landmark_indices_)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_an_offset_of_all_rows_does_not_turn_the_map(circles, kernel, n_landmarks):
    X, _, y = circles
    # Offsets and rows that binary fractions hold, so that nothing but distances can round.
    X = np.round(X * 2**20) / 2**20
    model = KernelSPPCA(kernel=kernel, supervision=0.5, n_landmarks=n_landmarks)
    T = model.fit(X, y).transform(X[:30] + 2**-6)
    far = model.fit(X + 2**27, y).transform(X[:30] + 2**-6 + 2**27)
    assert_allclose(far, T, atol=1e-7)


def test_repeated_entries_of_sparse_rows_are_summed(flowers):
    X, _, y = flowers
    X = np.where(X > 1, X, 0.0)
    once = sparse.csr_array(X)
    twice = sparse.csr_array(
        (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), shape=X.shape
    )
    assert not twice.has_canonical_format
    for kernel in ("rbf", "laplacian", "poly"):
        model = KernelSPPCA(kernel=kernel, supervision=0.5)
        expected = model.fit(once, y).transform(once)
        assert_allclose(model.fit(twice, y).transform(twice), expected, atol=1e-8)
