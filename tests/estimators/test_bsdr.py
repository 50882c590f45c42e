import pickle
import sys
import warnings
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_circles
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import BSDR
from gnomon.estimators._heads import fit_head
from gnomon.inference.callbacks import Checkpoint
from gnomon.inference.loop import iterate
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Matrix, as_data
from gnomon.models.bsdr.fit import Problem
from gnomon.models.bsdr.fit import fit as bsdr_fit
from gnomon.models.bsdr.held_out import held_out
from gnomon.models.bsdr.outputs import ClassOutputs


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:BSDR found the null solution:UserWarning")
@pytest.mark.filterwarnings("ignore:y has no label for:UserWarning")
@parametrize_with_checks(
    [
        BSDR(max_iter=3, n_init=1),
        BSDR(n_components="auto", max_iter=3, n_init=1),
        BSDR(solver="paper", max_iter=30),
        BSDR(inference="gibbs", n_chains=1, n_draws=4, n_warmup=1, max_iter=3, n_init=1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def fit(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "BSDR found the null solution")
        return BSDR(random_state=0, **parameters).fit(X, y)


@pytest.mark.parametrize("prior", ["entry", "column", "row"])
def test_wine_is_separated_in_two_dimensions(wine, prior):
    X, y = wine
    model = fit(X[::2], y[::2], prior=prior)
    assert model.score(X[1::2], y[1::2]) > 0.9
    assert np.diff(model.objective_).min() > -1e-8


@pytest.mark.parametrize("prior", ["entry", "column"])
def test_sparse_and_dense_agree(wine, prior):
    X, y = wine
    X = np.where(X > np.median(X, axis=0), X, 0)
    dense = fit(X, y, prior=prior, max_iter=5)
    for storage in (sparse.csr_array, sparse.csc_array):
        assert_allclose(
            fit(storage(X), y, prior=prior, max_iter=5).components_, dense.components_, atol=1e-6
        )
        assert_allclose(dense.transform(storage(X)), dense.transform(X), atol=1e-8)


def test_blocks_of_rows_agree_with_one_array(wine):
    X, y = wine
    parts = Blocks([Matrix(X[:50]), Matrix(X[50:])])
    whole, blocked = fit(X, y, max_iter=5), fit(parts, y, max_iter=5)
    assert_allclose(blocked.components_, whole.components_, atol=1e-6)
    assert_allclose(blocked.transform(parts), whole.transform(X), atol=1e-6)
    assert_allclose(blocked.posterior(parts).covariance, whole.posterior(X).covariance, atol=1e-8)


def test_units_and_offsets_do_not_matter(wine):
    X, y = wine
    scale = 10.0 ** np.arange(-6, 7)
    moved = fit(X * scale + 1e3 * scale, y, max_iter=5)
    assert_allclose(
        moved.transform(X * scale + 1e3 * scale), fit(X, y, max_iter=5).transform(X), atol=1e-5
    )


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_extreme_scales_are_fitted(wine, size):
    X, y = wine
    Z = fit(X, y, max_iter=5).transform(X)
    assert_allclose(fit(X * size, y, max_iter=5).transform(X * size), Z, atol=1e-6)


def test_float32_stays(wine):
    """Both fits end at the maximum: with the default tol they stop at different places before."""
    X, y = wine
    to_the_end = {"tol": 1e-7, "max_iter": 500}
    model = fit(X.astype(np.float32), y, **to_the_end)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.components_.dtype == np.float32
    exact = fit(X, y, **to_the_end)
    assert model.converged_ and exact.converged_
    assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=0.01)


def test_names_of_classes_do_not_matter(wine):
    X, y = wine
    numbers, words = fit(X, y), fit(X, np.array(["b", "c", "d"])[y])
    assert_array_equal(words.components_, numbers.components_)
    assert_array_equal(words.predict(X), np.array(["b", "c", "d"])[numbers.predict(X)])


def test_probabilities_sum_to_one_and_follow_the_classes(wine):
    X, y = wine
    for proba in ("plug-in", "integral"):
        P = fit(X, y, proba=proba).predict_proba(X)
        assert_allclose(P.sum(axis=1), 1)
        assert P[np.arange(len(y)), y].mean() > 0.8


def test_integral_agrees_with_draws_of_the_latent_variables(wine):
    X, y = wine
    model = fit(X, y, proba="integral")
    mean, covariance = model.posterior(X[:3])
    rng = np.random.default_rng(0)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    B = np.vstack([model.bias_, model.weights_])
    votes = np.zeros((3, 3))
    for _ in range(5000):
        lifted = np.column_stack([np.ones(3), mean + sd * rng.standard_normal(sd.shape)])
        variance = 1 + np.einsum("na,cab,nb->nc", lifted, model.weights_covariance_, lifted)
        scores = lifted @ B + np.sqrt(variance) * rng.standard_normal((3, 3))
        votes[np.arange(3), scores.argmax(axis=1)] += 1
    assert_allclose(model.predict_proba(X[:3]), votes / 5000, atol=0.04)


def test_dropping_the_latent_noise_is_off(wine):
    """Erratum E-G13-6: the printed prediction plugs the mean of z into the scores."""
    X, y = wine
    keep = np.arange(0, len(y), 8)
    model = fit(X[keep], y[keep])
    plain = model.predict_proba(X)
    integral = model.set_params(proba="integral").predict_proba(X)
    assert np.abs(plain - integral).max() > 0.02


def test_posterior_is_wider_far_from_the_data(wine):
    X, y = wine
    model = fit(X, y)
    near = model.posterior(X.mean(axis=0, keepdims=True)).covariance
    far = model.posterior(X[:1] + 100 * X.std(axis=0)).covariance
    assert np.all(np.diagonal(far[0]) > np.diagonal(near[0]))
    assert_allclose(np.diagonal(near[0]), model.latent_noise_**2, atol=1e-8)


@pytest.mark.parametrize("parameters", [{"prior": "column"}, {"prior": "entry"}])
def test_routes_agree_on_posterior_variances(wine, parameters, rng):
    """For fewer rows than features the dual routes are taken."""
    X, _ = wine
    wide = np.hstack([X[:30:3], rng.standard_normal((10, 40))])
    model = fit(wide, np.arange(10) % 3, max_iter=5, **parameters)
    variances = np.diagonal(model.posterior(wide).covariance, axis1=1, axis2=2)
    assert np.all(variances > model.latent_noise_**2)
    assert np.all(model.loadings_sd_ > 0)


def test_unlabelled_rows_are_left_out_with_a_warning(wine):
    X, y = wine
    hidden = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    with pytest.warns(UserWarning, match="no label for 60 of 178 rows; BSDR leaves them out"):
        model = BSDR(random_state=0).fit(X, hidden)
    assert_allclose(model.components_, fit(X[hidden >= 0], y[hidden >= 0]).components_)


def test_binary_classes_are_a_probit(wine):
    X, y = wine
    model = fit(X, np.where(y == 0, "no", "yes"), n_components=1)
    P = model.predict_proba(X)
    assert P.shape == (len(y), 2) and model.weights_.shape == (1, 1)
    assert model.score(X, np.where(y == 0, "no", "yes")) > 0.97


def test_labels_with_gaps_are_learnt(wine, rng):
    X, y = wine
    Y = np.column_stack([y == 0, y == 1, y == 2]).astype(float)
    gaps = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
    gaps[0] = Y[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BSDR(random_state=0).fit(X, gaps)
    P = model.predict_proba(X)
    assert P.shape == Y.shape
    assert np.mean(model.predict(X) == Y) > 0.95


def test_columnwise_prior_finds_the_dimension(rng):
    Z = rng.standard_normal((300, 2))
    codes = np.floor((np.arctan2(*Z.T) + np.pi) / (2 * np.pi) * 6).astype(int) % 6
    X = np.hstack([Z, rng.standard_normal((300, 6))]) @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    model = fit(X, codes, n_components="auto")
    assert model.n_components_ == 2
    assert len(model.relevance_) == 5
    assert model.transform(X).shape == (300, 2)


def test_latent_noise_is_less_where_components_are_to_be_found(wine):
    X, y = wine
    assert fit(X, y).latent_noise_ == 1.0
    assert_allclose(fit(X, y, n_components="auto", max_iter=3).latent_noise_, 0.1)
    assert_allclose(fit(X, y, latent_noise=0.5, max_iter=3).latent_noise_, 0.5)


def test_components_that_classes_need_are_kept(rng):
    y = np.tile(np.arange(3), 20)
    X = 2.5 * np.eye(3, 10)[y] + rng.standard_normal((60, 10))
    assert fit(X, y, n_components="auto").n_components_ == 2


def test_rowwise_prior_drops_noise_features(wine, rng):
    X, y = wine
    noisy = np.hstack([X, rng.standard_normal((len(y), 10))])
    model = fit(noisy, y, prior="row")
    support = model.get_support()
    assert not support[13:].any()
    assert 2 <= support[:13].sum() < 13
    assert_array_equal(model.get_support(indices=True), np.flatnonzero(support))
    selector = SelectFromModel(
        BSDR(prior="row", random_state=0), importance_getter="feature_relevance_", threshold=0.03
    )
    assert not selector.fit(noisy, y).get_support()[13:].any()


def test_features_of_a_kernel_separate_rings():
    X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    linear = fit(X, y, n_components=1)
    features = KernelPCA(kernel="rbf", gamma=2.0).fit_transform(X)
    rings = fit(features, y, n_components=1, prior="column", standardize=False)
    assert linear.score(X, y) < 0.7
    assert rings.score(features, y) > 0.97


def test_features_of_the_linear_kernel_are_the_columnwise_model(wine):
    """The columnwise prior does not depend on the axes."""
    X, y = wine
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    features = KernelPCA(kernel="linear").fit_transform(X)
    linear, kernel = (fit(F, y, prior="column", standardize=False) for F in (X, features))
    assert_allclose(kernel.objective_[-1], linear.objective_[-1], rtol=1e-8)
    assert_allclose(np.abs(kernel.transform(features)), np.abs(linear.transform(X)), atol=1e-6)


def test_null_solution_warns(rng):
    X = rng.standard_normal((40, 30))
    with pytest.warns(UserWarning, match="null solution"):
        BSDR(prior="column", projection_prior=(1e-3, 1e3), random_state=0).fit(X, np.arange(40) % 4)


def test_what_the_warning_of_the_null_solution_says_helps():
    X, y = load_iris(return_X_y=True)
    few = np.arange(0, 150, 13)
    with pytest.warns(UserWarning, match=r"prunes less, as \(0.1, 10\)"):
        BSDR("auto", projection_prior=(1e-3, 1e3)).fit(X[few], y[few])
    assert BSDR("auto", projection_prior=(0.1, 10)).fit(X[few], y[few]).score(X, y) > 0.8


@pytest.mark.filterwarnings("ignore:BSDR found the null solution", "ignore:the chains have not")
def test_draws_of_few_labels_do_not_collapse():
    """One sample may be unlucky, which four are not together: .47 of one deviates by .06."""
    rng, scores = np.random.default_rng(0), []
    y = np.tile(np.arange(5), 30)
    settings = {"n_chains": 1, "n_draws": 50, "n_warmup": 50, "random_state": 0}
    models = BSDR(4, proba="plug-in", random_state=0), BSDR(4, inference="gibbs", **settings)
    for _ in range(4):
        X = 2.5 * np.eye(5, 10)[y] + rng.standard_normal((150, 10))
        scores.append([model.fit(X[:10], y[:10]).score(X, y) for model in models])
    plain, drawn = np.mean(scores, axis=0)
    assert plain < 0.3
    assert drawn > plain + 0.1


def test_same_seed_same_bits(wine):
    X, y = wine
    assert_array_equal(fit(X, y, n_components=1).components_, fit(X, y, n_components=1).components_)


def test_restarts_do_not_lose(wine):
    X, y = wine
    one = fit(X, y, n_components=1, n_init=1)
    many = fit(X, y, n_components=1, n_init=6)
    assert many.objective_[-1] > one.objective_[-1] - 1


def test_callback_stops_and_warns(wine):
    X, y = wine
    with pytest.warns(ConvergenceWarning):
        model = BSDR(callback=lambda n_iter, state, objective: n_iter == 3).fit(X, y)
    assert model.n_iter_ == 3 and not model.converged_


def test_pickle_and_clone(wine):
    X, y = wine
    model = fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_components": 0}, "n_components == 0"),
        ({"n_components": 14}, "n_components == 14; accepted are integers from 1 to 13"),
        ({"n_components": "two"}, "n_components"),
        ({"prior": "rows"}, "prior == 'rows'; accepted"),
        ({"solver": "plain"}, "solver == 'plain'; accepted"),
        ({"projection_prior": (0, 1)}, r"projection_prior\[0\] == 0"),
        ({"projection_prior": 3}, "projection_prior == 3; accepted are 'auto' and pairs"),
        ({"projection_prior": "flat"}, "projection_prior == 'flat'; accepted are 'auto'"),
        ({"weight_prior": (1, 0)}, r"weight_prior\[1\] == 0"),
        ({"weight_prior": "auto"}, "weight_prior == 'auto'; accepted are pairs"),
        ({"n_draws": 3}, "n_draws == 3; accepted are integers >= 4"),
        ({"inference": "sampling"}, "inference == 'sampling'; accepted"),
        ({"latent_noise": 0}, "latent_noise == 0"),
        ({"latent_noise": "none"}, "latent_noise == 'none'"),
        ({"proba": "full"}, "proba == 'full'"),
        ({"n_init": 0}, "n_init == 0"),
        ({"prior": "row", "n_components": "auto"}, "prior == 'row' with n_components"),
        ({"standardize": "yes"}, "standardize == 'yes'; accepted are 'auto', True, False"),
        ({"callback": print, "random_state": -1}, "random_state == -1; accepted"),
        ({"callback": []}, r"callback == \[\]; accepted are None and a function"),
    ],
)
def test_bad_parameters_are_named(wine, parameters, match):
    X, y = wine
    model = BSDR(**parameters)
    with pytest.raises((ValueError, TypeError), match=match):
        model.fit(X, y)
    assert not hasattr(model, "components_")


def test_bad_data_are_named(wine):
    X, y = wine
    with pytest.raises(ValueError, match="1 class"):
        BSDR().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="no variation"):
        BSDR().fit(np.ones_like(X), y)
    with pytest.raises(ValueError, match="infinity"):
        BSDR().fit(np.where(X > 13, np.inf, X), y)
    with pytest.raises(ValueError, match="rows"):
        BSDR().fit(X, y[:-1])
    with pytest.raises(ValueError, match="sparse X of more features than rows"):
        BSDR(prior="entry").fit(sparse.random_array((20, 50), density=0.1), np.arange(20) % 2)


@pytest.mark.parametrize("constant", [7.0, 0.1, -1e-7])
@pytest.mark.parametrize("prior", ["entry", "column", "row"])
def test_constant_and_duplicate_columns_are_harmless(wine, constant, prior):
    """The mean of 178 times 0.1 is not 0.1 to the last bit, but the column does not vary."""
    X, y = wine
    padded = np.column_stack([X, np.full(len(y), constant), X[:, 0]])
    model = fit(padded, y, prior=prior)
    assert model.score(padded, y) > 0.9
    assert_array_equal(model.components_[:, 13], 0)
    assert np.diff(model.objective_).min() > -1e-8
    moved = padded + 1e-9 * (np.arange(15) == 13)
    assert_array_equal(model.predict_proba(moved), model.predict_proba(padded))
    assert_array_equal(model.posterior(moved).covariance, model.posterior(padded).covariance)


def test_weight_priors_hold_the_classifier(wine):
    """A prior that is sure of large precisions leaves nothing of weights and biases."""
    X, y = wine
    held = {"weight_prior": (1e8, 1.0), "proba": "plug-in"}
    model = fit(X, np.minimum(y, 1), n_components=1, max_iter=5, **held)
    assert max(np.abs(model.weights_).max(), np.abs(model.bias_).max()) < 1e-3
    assert_allclose(model.predict_proba(X), 0.5, atol=1e-3)


def test_one_label_per_class_says_nothing_but_the_share_of_each():
    X, y = load_iris(return_X_y=True)
    rows = [0, 50, 100]
    with pytest.warns(UserWarning, match="null solution"):
        model = BSDR(proba="plug-in", random_state=0).fit(X[rows], y[rows])
    assert_allclose(model.predict_proba(X), 1 / 3, atol=1e-4)


def _planted(n_labels, seed=0):
    """Five classes on the first columns of ten, some rows of each and many unseen."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(5), 60)
    X = 2.5 * np.eye(5, 10)[y] + rng.standard_normal((300, 10))
    return X[: 5 * n_labels], y[: 5 * n_labels], X[150:], y[150:]


def _loss(model, X, y):
    return -np.mean(np.log(model.predict_proba(X)[np.arange(len(y)), y]))


@pytest.mark.one_sample("of two labels a class the head makes something in two samples of three")
def test_a_head_tells_classes_where_few_labels_leave_the_null_solution():
    X, y, unseen, truth = _planted(2)
    with pytest.warns(UserWarning, match="null solution"):
        model = BSDR(4, random_state=0).fit(X, y)
    assert model.class_head_.say == 2 / (2 + 2)
    assert model.score(unseen, truth) > 0.5
    assert _loss(model, unseen, truth) < np.log(5) - 0.3


def test_probabilities_are_the_mean_of_the_model_and_of_its_head(wine):
    X, y = wine
    model = fit(X, y)
    own = fit(X, y, proba="plug-in").predict_proba(X)
    head = fit_head(model.transform(X), y)
    of_head = softmax(model.transform(X) @ head.coef + head.intercept, axis=1)
    doubt = 0.5 / (0.5 + len(y))
    expected = (1 - doubt) * (own + of_head) / 2 + doubt * np.bincount(y) / len(y)
    assert_allclose(model.predict_proba(X), expected, rtol=1e-5)


def test_labels_that_mean_nothing_are_hardly_believed_in_most_draws():
    losses = {"auto": [], "plug-in": []}
    for seed in range(7):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((250, 40)), np.arange(250) % 5
        for proba, found in losses.items():
            model = fit(X[:50], y[:50], n_components=4, proba=proba, max_iter=10)
            found.append(_loss(model, X[50:], y[50:]) - np.log(5))
    assert np.median(losses["plug-in"]) > 0.1
    assert np.median(losses["auto"]) < 0.1


def test_folds_of_few_labels_hide_each_row_once(wine):
    X, y = wine
    outputs = ClassOutputs(y[::12], 3)
    problem, settings = Problem(as_data(X[::12]), outputs), BSDR()._settings(13)
    found = bsdr_fit(problem, settings, iterate)
    folds = held_out(problem, settings, found)
    hidden = np.concatenate([fold.hidden_labels for fold in folds])
    assert sorted(hidden) == sorted(y[::12])
    for fold in folds:
        assert len(fold.labels) + len(fold.hidden_labels) == len(y[::12])
        assert_allclose(np.exp(fold.odds).sum(axis=1), 1, rtol=1e-6)
    many = Problem(as_data(X), ClassOutputs(y, 3))
    assert held_out(many, settings, bsdr_fit(many, settings, iterate)) == []


def test_the_model_alone_has_no_head(wine):
    X, y = wine
    several = np.column_stack([y == 0, y == 1]).astype(int)
    assert fit(X, y, proba="integral").class_head_ is None
    assert fit(X, y, solver="paper", max_iter=5).class_head_ is None
    assert fit(X, several).class_head_ is None


@pytest.fixture(scope="module")
def drawn(wine):
    X, y = wine
    settings = {
        "n_chains": 2,
        "n_draws": 60,
        "n_warmup": 30,
        "latent_noise": 0.1,
        "random_state": 0,
    }
    with pytest.warns(ConvergenceWarning, match="the chains have not mixed: largest R-hat"):
        return BSDR(inference="gibbs", **settings).fit(X[::2], y[::2])


def test_draws_have_chains_and_predict(wine, drawn):
    X, y = wine
    assert drawn.draws_["projection"].shape == (2, 60, 2, 13)
    assert drawn.draws_["weights"].shape == (2, 60, 2, 3)
    assert drawn.rhat_["log_joint"].shape == () and drawn.ess_["score_spread"].shape == (2,)
    assert drawn.score(X[1::2], y[1::2]) > 0.93
    assert_allclose(drawn.predict_proba(X).sum(axis=1), 1)


def test_aligned_draws_agree_with_their_mean(wine, drawn):
    """Without alignment, signs and rotations would cancel in the mean."""
    rows = wine[0] - drawn.mean_
    P = drawn.draws_["projection"].reshape(-1, 2, 13)
    Z = np.einsum("lqd,nd->lnq", P, rows).reshape(len(P), -1)
    mean = drawn.transform(wine[0]).ravel()
    cosine = Z @ mean / np.linalg.norm(Z, axis=1) / np.linalg.norm(mean)
    assert np.min(cosine) > 0.3
    assert np.mean(cosine) > 0.8


def test_gibbs_posterior_has_draws_and_noise(wine, drawn):
    X, _ = wine
    mean, covariance = drawn.posterior(X[:4])
    assert_allclose(mean, drawn.transform(X[:4]))
    P = drawn.draws_["projection"].reshape(-1, 2, 13)
    Z = np.einsum("lqd,nd->lnq", P, X[:4] - drawn.mean_)
    assert_allclose(covariance[1], np.cov(Z[:, 1].T, ddof=0) + drawn.latent_noise_**2 * np.eye(2))


def test_counting_noise_twice_flattens_probabilities(wine, drawn):
    """Erratum E-G13-8: drawing t and adding u again doubles the noise of the scores."""
    X, y = wine
    right = drawn.predict_proba(X)
    rng = np.random.default_rng(0)
    V, b = drawn.draws_["weights"].reshape(-1, 2, 3), drawn.draws_["bias"].reshape(-1, 3)
    once, twice = np.zeros_like(right), np.zeros_like(right)
    for P, v, shift in zip(drawn.draws_["projection"].reshape(-1, 2, 13), V, b, strict=True):
        for _ in range(20):
            Z = (X - drawn.mean_) @ P.T + drawn.latent_noise_ * rng.standard_normal((len(X), 2))
            T = Z @ v + shift + rng.standard_normal((len(X), 3))
            once[np.arange(len(X)), T.argmax(axis=1)] += 1
            T = T + rng.standard_normal(T.shape)
            twice[np.arange(len(X)), T.argmax(axis=1)] += 1
    once, twice = once / once.sum(axis=1)[:, None], twice / twice.sum(axis=1)[:, None]
    assert np.abs(once - right).mean() < 0.01
    rows = np.arange(len(y))
    assert twice[rows, y].mean() < right[rows, y].mean() - 0.005


class Recorder(np.random.Generator):
    """A generator that keeps the first of the normal numbers that each call gave."""

    seen: ClassVar[list] = []

    def standard_normal(self, *arguments, **keywords):
        x = super().standard_normal(*arguments, **keywords)
        self.seen.append(float(np.ravel(x)[0]))
        return x


def test_chains_do_not_draw_the_numbers_of_the_starts_again(wine, monkeypatch):
    X, y = wine
    monkeypatch.setattr(Recorder, "seen", [])
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Recorder(np.random.PCG64(seed)))
    fit(X, y, inference="gibbs", n_chains=2, n_draws=4, n_warmup=1, max_iter=2)
    assert len(set(Recorder.seen)) == len(Recorder.seen) > 50


def test_callback_sees_and_ends_the_rounds_of_gibbs_sampling(wine):
    X, y = wine
    seen = []

    def watch(n_iter, state, objective):
        seen.append((n_iter, objective))
        return n_iter >= 9

    settings = {"n_chains": 2, "n_draws": 50, "n_warmup": 1, "max_iter": 3, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BSDR(inference="gibbs", callback=watch, **settings).fit(X, y)
    assert [n_iter for n_iter, _ in seen] == list(range(1, 10))
    assert model.draws_["log_joint"].shape == (2, 5)
    assert_allclose(seen[-1][1], model.draws_["log_joint"][0, -1])


def test_a_checkpoint_leads_to_the_same_draws(wine, tmp_path):
    """It watches the variational fit, not the draws, which go on with the same numbers."""
    settings = {"n_components": 1, "n_chains": 2, "n_draws": 4, "n_warmup": 1, "max_iter": 6}
    plain = fit(*wine, inference="gibbs", **settings)
    watch = Checkpoint(tmp_path / "fit", every=4)
    first, resumed = (fit(*wine, inference="gibbs", callback=watch, **settings) for _ in range(2))
    for model in (first, resumed):
        assert model.objective_ == plain.objective_
        assert_array_equal(model.draws_["projection"], plain.draws_["projection"])


class ArvizOne:
    """ArviZ 1.x takes groups as one dictionary."""

    __version__ = "1.3.0"

    @staticmethod
    def from_dict(data, *, coords=None, dims=None):
        return data


class ArvizZero:
    """ArviZ 0.x takes groups as keywords."""

    __version__ = "0.23.4"

    @staticmethod
    def from_dict(posterior=None, *, coords=None, dims=None):
        return {"posterior": posterior}


@pytest.mark.parametrize("arviz", [ArvizZero, ArvizOne])
def test_draws_go_to_both_generations_of_arviz(drawn, monkeypatch, arviz):
    monkeypatch.setitem(sys.modules, "arviz", arviz)
    assert set(drawn.to_arviz()["posterior"]) == set(drawn.draws_)


@pytest.mark.slow
def test_the_arviz_at_hand_takes_the_draws(drawn):
    pytest.importorskip("arviz")
    assert drawn.to_arviz()["posterior"]["projection"].shape == (2, 60, 2, 13)


def test_variational_fits_have_no_draws(wine):
    X, y = wine
    with pytest.raises(ValueError, match="inference == 'variational'; to_arviz needs 'gibbs'"):
        fit(X, y, max_iter=3).to_arviz()


def test_rows_without_a_label_are_told_at_the_line_of_the_fit():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="no label for 10 of 150 rows") as told:
        BSDR().fit(X, np.where(np.arange(150) < 10, -1, y))
    assert told[0].filename == __file__
