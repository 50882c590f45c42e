import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_circles
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import SPPCA, KernelFeatures, KernelSPPCA, from_loaders
from gnomon.estimators._targets import contrasts
from gnomon.models import kernel as kernels


def drawn_landmarks(estimator):
    """Repeated rows are other landmarks than one row with its weight."""
    kinds = ("dense", "sparse") if estimator.n_landmarks else ()
    return {f"check_sample_weight_equivalence_on_{kind}_data": "by chance" for kind in kinds}


# Tiny random samples put noise at its floor, of which the fit warns.
@pytest.mark.filterwarnings("ignore:n_components == ")
@parametrize_with_checks(
    [
        KernelSPPCA(),
        KernelSPPCA(supervision=0.5, kernel="poly", n_landmarks=10),
        # Weights are repetition for fits that have settled.
        KernelSPPCA(supervision="likelihood", tol=1e-8),
        KernelSPPCA(kernel="precomputed", supervision=0.5),
    ],
    expected_failed_checks=drawn_landmarks,
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


def test_numbers_linear_in_x_are_predicted_as_by_the_rows_themselves(rng):
    X = rng.standard_normal((120, 6)) @ rng.standard_normal((6, 30))
    y = X[:, 0] - 2 * X[:, 3] + 100
    known = np.where(np.arange(120) < 40, y, np.nan)
    model = KernelSPPCA().fit(X, known)
    assert_allclose(model.number_head_.say, 1)
    assert_allclose(model.predict(X), SPPCA().fit(X, known).predict(X), rtol=1e-3)
    assert np.max(np.abs(model.predict(X) - y)[40:]) < 0.2 * y.std()
    alone = KernelSPPCA().fit(X, known)
    alone.number_head_ = None
    assert np.max(np.abs(alone.predict(X) - y)[40:]) > 0.5 * y.std()


def test_numbers_that_bend_are_left_to_the_kernel(rng):
    X = rng.uniform(-1, 1, (200, 2))
    y = np.sum(X**2, axis=1)
    model = KernelSPPCA().fit(X[:150], y[:150])
    assert np.all(model.number_head_.say < 0.01)
    assert model.score(X[150:], y[150:]) > 0.95


@pytest.mark.parametrize(
    "parameters", [{"kernel": "linear"}, {"supervision": "likelihood"}], ids=str
)
def test_no_rows_stand_beside_a_linear_kernel_or_in_the_likelihood(flowers, parameters):
    X, _, _ = flowers
    assert KernelSPPCA(**parameters).fit(X[:, :3], X[:, 3]).number_head_ is None


def test_rows_beside_the_kernel_may_be_sparse_or_single(flowers):
    X, _, _ = flowers
    model = KernelSPPCA().fit(X[:, :3], X[:, 3])
    model.number_head_ = model.number_head_._replace(say=np.array([0.5]))
    expected = model.predict(X[:, :3])
    assert_allclose(model.predict(sparse.csr_array(X[:, :3])), expected, rtol=1e-10)
    assert_allclose(model.predict(X[:, :3].astype(np.float32)), expected, rtol=1e-5, atol=1e-8)


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
    with pytest.raises(ValueError, match="all rows are equal"):
        KernelSPPCA().fit(np.ones((10, 2)))
    with pytest.raises(ValueError, match="no energy"):
        KernelSPPCA(gamma=1e-30).fit(np.eye(10, 2))


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
    model = KernelSPPCA(4, kernel="cosine", supervision="likelihood", n_landmarks=3)
    with pytest.warns(ConvergenceWarning, match="explains all variance of x and y"):
        model.fit(X, y)
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
    # Circles have points opposite to each other, whose equal weights leave the signs to rounding.
    assert_allclose(gram(far), gram(T), atol=1e-7)


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


def theorem_3(K, codes, q, noise):
    """Coordinates of the rows by Theorem 3 of [YYTKW06] at given noise, (ii) as corrected."""
    n, (sx2, sy2) = len(K), noise
    J = np.eye(n) - 1 / n
    Kc, codes = J @ K @ J, J @ codes
    values, V = np.linalg.eigh(Kc / sx2 + codes @ codes.T / sy2)
    values, V = values[::-1][:q], V[:, ::-1][:, :q]
    D = 1 - n / values
    right = V.T @ Kc @ V + n * sx2 * np.diag(1 / D)
    return np.sqrt(n) * (np.diag(D**-0.5) @ np.linalg.solve(right, V.T @ Kc)).T


def test_theorem_3_at_given_noise(flowers):
    X, y, _ = flowers
    noise = (2e-3, 0.05)
    model = KernelSPPCA(2, supervision="likelihood", noise=noise).fit(X, y)
    Z = theorem_3(rbf_kernel(X, gamma=model.gamma_), contrasts(3)[y], 2, noise)
    assert_allclose(gram(model.transform(X)), gram(Z), atol=1e-8 * np.abs(gram(Z)).max())
    assert (model.noise_variance_, model.target_noise_variance_[0]) == noise


@pytest.mark.parametrize("supervision", [0.5, "likelihood"])
@pytest.mark.parametrize("with_y", [False, True])
def test_the_posterior_of_a_linear_kernel_is_that_of_sppca(flowers, supervision, with_y):
    X, truth, y = flowers
    options = {"n_components": 2, "supervision": supervision}
    dual = KernelSPPCA(kernel="linear", **options).fit(X, y)
    primal = SPPCA(**options).fit(X, y)
    known = truth if with_y else None
    a, b = dual.posterior(X, known), primal.posterior(X, known)
    signs = np.sign(np.sum(dual.transform(X) * primal.transform(X), axis=0))
    assert_allclose(a.mean * signs, b.mean, atol=2e-3 * np.abs(b.mean).max())
    turned = a.covariance * np.outer(signs, signs)
    assert_allclose(turned, b.covariance, atol=2e-3 * np.abs(b.covariance).max())


def test_the_posterior_without_outputs_has_the_mean_of_transform(circles):
    X, _, y = circles
    model = KernelSPPCA(2).fit(X, y)
    posterior = model.posterior(X[:9])
    assert_allclose(posterior.mean, model.transform(X[:9]), atol=1e-12)
    assert np.all(np.linalg.eigvalsh(posterior.covariance) >= 0)


def test_the_density_of_features_of_a_linear_kernel_is_that_of_rows(flowers):
    X, _, y = flowers
    options = {"n_components": 2, "supervision": "likelihood", "tol": 1e-10}
    dual = KernelSPPCA(kernel="linear", **options).fit(X, y)
    primal = SPPCA(**options).fit(X, y)
    assert_allclose(dual.score_samples(X), primal.score_samples(X), atol=1e-4)
    assert dual.score(X) == pytest.approx(np.mean(dual.score_samples(X)))
    assert dual.log_likelihood_ == pytest.approx(primal.log_likelihood_, abs=1e-3)


def test_a_strength_has_no_density_and_says_so(circles):
    X, _, y = circles
    model = KernelSPPCA(2).fit(X, y)
    assert not hasattr(model, "score_samples")
    with pytest.raises(ValueError, match="supervision='likelihood' alone"):
        model.score(X)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("supervision", [0.6, "likelihood"])
def test_weights_are_repeated_rows(flowers, kernel, supervision):
    X, _, y = flowers
    weights = np.tile([1, 2, 0], 50)
    options = {"kernel": kernel, "supervision": supervision}
    model = KernelSPPCA(1, **options).fit(X, y, weights)
    again = KernelSPPCA(1, **options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert model.gamma_ == pytest.approx(again.gamma_)
    T = again.transform(X)
    assert_allclose(model.transform(X), T, atol=1e-4 * np.abs(T).max())
    assert_allclose(model.predict_proba(X), again.predict_proba(X), atol=1e-3)


def test_a_precomputed_kernel_takes_positive_weights_alone(circles):
    X, _, y = circles
    K, weights = rbf_kernel(X, gamma=0.7), np.ones(len(X))
    weights[3] = 2
    model = KernelSPPCA(kernel="precomputed", supervision=0.5).fit(K, y, weights)
    same = KernelSPPCA(gamma=0.7, supervision=0.5).fit(X, y, weights)
    assert_allclose(model.transform(K), same.transform(X), atol=1e-7)
    weights[3] = 0
    with pytest.raises(ValueError, match="leave those rows and their columns out"):
        KernelSPPCA(kernel="precomputed", supervision=0.5).fit(K, y, weights)


def test_noise_at_its_floor_is_warned_of(flowers):
    X, y, _ = flowers
    with pytest.warns(ConvergenceWarning, match="n_components == 6 explains all variance of y"):
        KernelSPPCA(6, supervision="likelihood").fit(X, np.where(np.arange(150) % 50 < 2, y, -1))


@pytest.mark.parametrize("bad", [{"noise": -1.0}, {"noise": "free"}, {"prior": -0.5}])
def test_noise_and_prior_are_checked(circles, bad):
    X, _, y = circles
    with pytest.raises(ValueError, match=next(iter(bad))):
        KernelSPPCA(supervision="likelihood", **bad).fit(X, y)


def test_a_prior_draws_loadings_to_zero(flowers):
    X, y, _ = flowers
    free, held = (
        KernelSPPCA(1, supervision="likelihood", prior=prior).fit(X, y) for prior in (0.0, 50.0)
    )
    assert np.sum(held.kernel_components_**2) < 0.9 * np.sum(free.kernel_components_**2)


def rows_with_gaps(seed):
    """Rows of rank three with two bent classes, and the same with 30 % of gaps."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(300, 3))
    y = (z[:, 0] ** 2 + z[:, 1] ** 2 > 2).astype(int)
    X = z @ rng.normal(size=(3, 12)) + 0.3 * rng.normal(size=(300, 12))
    holed = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    return X, holed, y


@pytest.fixture
def gappy():
    return rows_with_gaps(0)


def test_gaps_are_filled_better_than_by_means():
    gains = []
    for seed in range(4):
        X, holed, y = rows_with_gaps(seed)
        some = np.where(np.arange(300) < 150, y, -1)
        means = np.where(np.isnan(holed), np.nanmean(holed, axis=0), holed)
        right = [KernelSPPCA(3).fit(x, some).predict(x)[150:] == y[150:] for x in (holed, means)]
        gains.append(right[0].mean() - right[1].mean())
        # Maps of one strength: with a chosen one they would differ by that too.
        model = KernelSPPCA(3, supervision=0.5, gamma=0.015)
        maps = [gram(clone(model).fit(x, some).transform(x)) for x in (holed, means, X)]
        errors = [np.linalg.norm(found - maps[2]) for found in maps[:2]]
        assert errors[0] < 0.7 * errors[1]
    assert np.mean(gains) > 0.01


def test_what_gaps_add_to_the_posterior_covers_the_whole_row():
    shares = []
    for seed in range(4):
        X, holed, y = rows_with_gaps(seed)
        model = KernelSPPCA(2, supervision=0.5).fit(X, y)
        rows = np.isnan(holed).any(axis=1)
        whole, found = model.posterior(X[rows]), model.posterior(holed[rows])
        added = np.diagonal(found.covariance - whole.covariance, axis1=1, axis2=2)
        shares.append(np.mean(np.abs(found.mean - whole.mean) < 1.96 * np.sqrt(added)))
    assert 0.93 < np.mean(shares) < 0.97


def test_gaps_widen_numbers(gappy):
    X, holed, _ = gappy
    model = KernelSPPCA(2, supervision=0.5).fit(X, X[:, 0] ** 2)
    _, sure = model.predict(X, return_std=True)
    _, less = model.predict(holed, return_std=True)
    rows = np.isnan(holed).any(axis=1)
    assert np.all(less[rows] > sure[rows])
    assert_allclose(less[~rows], sure[~rows])


def test_labels_links_chunks_gaps_and_weights_go_together():
    rng, scores = np.random.default_rng(1), []
    for seed in range(3):
        _, holed, y = rows_with_gaps(seed)
        same = y[:, None] == y
        A = np.triu(rng.random(same.shape) < np.where(same, 0.05, 0.003), 1)
        links = sparse.csr_array((A | A.T).astype(float))
        some = np.where(np.arange(300) < 60, y, -1)
        chunks = np.where((np.arange(300) >= 280) & (y == 1), 0, -1)
        weights = 1.0 + rng.random(300)
        model = KernelSPPCA(3).fit(holed, some, weights, links=links, chunks=chunks)
        assert model.links_used_
        scores.append(np.mean(model.predict(holed, links=links)[60:] == y[60:]))
    assert np.mean(scores) > 0.82
    assert model.posterior(holed, links=links).covariance.shape == (300, 3, 3)


def test_a_precomputed_kernel_has_no_gaps(circles):
    X, _, y = circles
    K = rbf_kernel(X)
    K[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        KernelSPPCA(kernel="precomputed").fit(K, y)


def test_gaps_after_a_fit_to_sparse_rows_are_refused(flowers):
    X, _, y = flowers
    model = KernelSPPCA().fit(sparse.csr_array(X), y)
    X = X.copy()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="fitted to sparse rows"):
        model.transform(X)


def test_the_kernel_is_wider_where_labels_say_so(rng):
    """Classes that differ in little variance; numbers, a given gamma and s keep the usual."""
    labels = np.arange(200) % 2
    X = np.column_stack([5 * rng.standard_normal((200, 8)), 0.2 * rng.standard_normal((200, 20))])
    X[:, 8:] += 0.3 * labels[:, None]
    known = np.where(np.arange(200) < 60, labels, -1)
    usual = KernelFeatures().fit(X).gamma_
    assert KernelSPPCA(2).fit(X, known).gamma_ < usual / 2
    for model, y in (
        (KernelSPPCA(2, gamma=usual), known),
        (KernelSPPCA(2, supervision=0.0), known),
        (KernelSPPCA(2, supervision="likelihood"), known),
        (KernelSPPCA(2), X[:, 0]),
        (KernelSPPCA(2), rng.permutation(known)),
    ):
        assert_allclose(model.fit(X, y).gamma_, usual)
    assert KernelSPPCA(2, kernel="laplacian").fit(X, known).gamma_ > 0


def test_rows_in_blocks_are_read_four_times(monkeypatch):
    monkeypatch.setattr(kernels, "KEPT_ENTRIES", 6000)
    rng, reads = np.random.default_rng(0), []
    y = np.arange(600) % 3
    X = rng.normal(size=(600, 8)) + 2 * np.eye(3, 8)[y]

    def load(start):
        reads.append(start)
        return X[start : start + 200]

    rows = from_loaders([partial(load, start) for start in (0, 200, 400)])
    reads.clear()
    some = np.where(rng.random(600) < 0.2, y, -1)
    model = KernelSPPCA(2, n_landmarks=20, random_state=0).fit(rows, some)
    assert len(reads) <= 4 * 3
    whole = KernelSPPCA(2, n_landmarks=20, random_state=0).fit(X, some)
    assert_allclose(model.gamma_, whole.gamma_, rtol=1e-10)
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-6)
