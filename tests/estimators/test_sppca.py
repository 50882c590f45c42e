import warnings

import numpy as np
import pytest
from every import rows
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.stats import entropy, multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import PPCA, SPPCA, KernelSPPCA
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Matrix
from gnomon.models.strength import choice
from gnomon.models.strength.rule import RULE

LIKELIHOOD = {"supervision": "likelihood"}
WARNS = pytest.mark.one_sample("two components may explain one of three outputs wholly, and warn")
ROUTES = [{"supervision": 0.5}, LIKELIHOOD, {"solver": "dual", **LIKELIHOOD}]


@pytest.fixture
def wine():
    """Standardised wine with eight labels of each class, and all labels."""
    X, truth = load_wine(return_X_y=True)
    y = np.full(len(truth), -1)
    for name in range(3):
        rows = np.flatnonzero(truth == name)[:8]
        y[rows] = name
    return StandardScaler().fit_transform(X), y, truth


@pytest.fixture
def outputs(rng):
    """Three numeric outputs with gaps, of rows with gaps."""
    Z = rng.normal(size=(120, 2))
    X = Z @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(120, 8)) + 5
    Y = (Z @ rng.normal(size=(2, 3)) + 0.4 * rng.normal(size=(120, 3))) * [1, 10, 100] + 7
    seen = Y.copy()
    seen[rng.random(Y.shape) < 0.3] = np.nan
    seen[40:] = np.nan
    gappy = X.copy()
    gappy[rng.random(X.shape) < 0.15] = np.nan
    return X, gappy, Y, seen


def gram(model):
    return model.components_.T @ model.components_


def joint_gaussian(model):
    """Mean and covariance of [x, coded y] by the fitted parameters, dense."""
    W = np.vstack([model.components_.T, model.target_components_.T])
    noise = np.concatenate(
        [np.full(model.n_features_in_, model.noise_variance_), model.target_noise_variance_]
    )
    return np.concatenate([model.mean_, model.target_mean_]), W @ W.T + np.diag(noise)


def coded(model, Y):
    return (Y - model.target_coding_.center) / model.target_coding_.scale


# Routes and limits.


@pytest.mark.parametrize("solver", ["dual", "subspace"])
def test_routes_reach_one_maximum(rng, solver):
    Z = rng.normal(size=(300, 3)) * [3, 2, 1]
    X = Z @ rng.normal(size=(3, 90)) + 0.5 * rng.normal(size=(300, 90))
    y = np.where(np.arange(300) < 60, Z[:, 2] > 0, -1).astype(int)
    settings = {"n_components": 3, **LIKELIHOOD, "tol": 1e-11}
    moments = SPPCA(solver="moments", **settings).fit(X, y)
    other = SPPCA(solver=solver, **settings).fit(X, y)
    assert_allclose(other.log_likelihood_, moments.log_likelihood_, rtol=1e-9)
    assert_allclose(gram(other), gram(moments), atol=1e-4 * np.abs(gram(moments)).max())
    assert_allclose(other.transform(X), moments.transform(X), atol=1e-3)


def test_em_of_the_paper_reaches_the_same_likelihood(wine):
    X, y, _ = wine
    fast = SPPCA(2, target_mean="labelled", **LIKELIHOOD).fit(X, y)
    slow = SPPCA(2, solver="em", max_iter=5000, tol=1e-10, **LIKELIHOOD).fit(X, y)
    assert_allclose(slow.log_likelihood_, fast.log_likelihood_, rtol=1e-6)
    assert slow.n_iter_ > 3 * fast.n_iter_


@pytest.mark.parametrize("y", [None, np.full(178, -1), np.full(178, np.nan)])
def test_without_labels_it_is_ppca(wine, y):
    X, _, _ = wine
    reference = PPCA(3).fit(X)
    model = SPPCA(3, **LIKELIHOOD).fit(X, y)
    assert_allclose(gram(model), gram(reference), atol=1e-8)
    assert_allclose(model.transform(X), reference.transform(X), atol=1e-6)
    assert_allclose(model.score(X), reference.score(X), rtol=1e-10)


def test_supervision_zero_is_pca(wine):
    X, y, _ = wine
    expected = PCA(3).fit_transform(X)
    actual = SPPCA(3, supervision=0).fit(X, y).transform(X)
    assert_allclose(np.abs(actual), np.abs(expected), atol=1e-8)


def test_supervision_grows_the_share_of_the_outputs(wine):
    X, y, _ = wine
    models = [SPPCA(2, supervision=s).fit(X, y) for s in (0, 0.5, 0.9, 1)]
    assert np.all(np.diff([model.target_share_.sum() for model in models]) > 0)
    assert np.all(np.diff([model.input_share_.sum() for model in models]) < 0)


def test_few_labels_hardly_turn_the_likelihood():
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.arange(len(X)) < 100, truth, -1)
    pca = PCA(5).fit(X).components_.T
    angles = [
        np.degrees(subspace_angles(SPPCA(5, **settings).fit(X, y).components_.T, pca).max())
        for settings in (LIKELIHOOD, {"supervision": 0.9})
    ]
    assert angles[0] < 5
    assert angles[1] > 20


def test_auto_keeps_what_it_tried(wine):
    X, y, truth = wine
    model = SPPCA(2).fit(X, y)
    assert 0 <= model.supervision_ <= 1
    assert model.supervision_ in model.supervision_curve_["s"]
    assert np.mean(model.predict(X) == truth) > 0.85


def test_all_labelled_takes_the_better_of_two_maxima():
    X, y = load_iris(return_X_y=True)
    best = SPPCA(2, **LIKELIHOOD).fit(X, y)
    em = SPPCA(2, solver="em", max_iter=5000, **LIKELIHOOD).fit(X, y)
    assert best.log_likelihood_ >= em.log_likelihood_ - 1e-6


def test_renaming_classes_changes_nothing(wine):
    X, y, _ = wine
    names = np.array(["c", "a", "b", -1], dtype=object)[y]
    for settings in ({}, LIKELIHOOD):
        a, b = SPPCA(2, **settings).fit(X, y), SPPCA(2, **settings).fit(X, names)
        assert_allclose(b.transform(X), a.transform(X), atol=1e-6)
        assert_array_equal(b.predict(X), np.array(["c", "a", "b"])[a.predict(X)])


@pytest.mark.parametrize("settings", [{"supervision": 0.5}, LIKELIHOOD])
def test_shift_and_scale_of_x_do_not_matter(wine, settings):
    X, y, _ = wine
    model = SPPCA(2, **settings).fit(X, y)
    far = SPPCA(2, **settings).fit(1e-3 * X + 1e5, y)
    assert_allclose(far.predict_proba(1e-3 * X + 1e5), model.predict_proba(X), atol=1e-3)


# What a fitted model says, against dense Gaussians.


@WARNS
def test_posterior_and_prediction_are_conditional_gaussians(outputs):
    X, gappy, _, seen = outputs
    model = SPPCA(2, noise="per_output", **LIKELIHOOD).fit(gappy, seen)
    mean, C = joint_gaussian(model)
    W = np.vstack([model.components_.T, model.target_components_.T])
    rows = np.hstack([gappy, coded(model, seen)])
    given_y = model.posterior(gappy, seen)
    given_x = model.predict_distribution(gappy)
    scale = model.target_coding_.scale
    for n in (0, 1, 2, 50):
        o = np.isfinite(rows[n])
        gain = W[o].T @ np.linalg.inv(C[np.ix_(o, o)])
        assert_allclose(given_y.mean[n], gain @ (rows[n] - mean)[o], atol=1e-8)
        assert_allclose(given_y.covariance[n], np.eye(2) - gain @ W[o], atol=1e-8)
        o[8:] = False
        B = C[8:][:, o] @ np.linalg.inv(C[np.ix_(o, o)])
        expected = model.target_coding_.center + scale * (mean[8:] + B @ (rows[n] - mean)[o])
        covariance = (C[8:, 8:] - B @ C[o][:, 8:]) * np.outer(scale, scale)
        assert_allclose(given_x.mean[n], expected, rtol=1e-7)
        assert_allclose(given_x.covariance[n], covariance, rtol=1e-6)
    assert_allclose(model.predict(X), model.predict_distribution(X).mean)
    assert_allclose(model.transform(gappy), model.posterior(gappy).mean, atol=1e-8)


@pytest.mark.parametrize("with_gaps", [False, True])
def test_score_samples_is_the_joint_density(outputs, with_gaps):
    X, gappy, _, seen = outputs
    X = gappy if with_gaps else X
    model = SPPCA(2, **LIKELIHOOD).fit(X, seen)
    mean, C = joint_gaussian(model)
    rows = np.hstack([X, coded(model, seen)])
    expected = []
    for row, y in zip(rows, seen, strict=True):
        o = np.isfinite(row)
        density = multivariate_normal(mean[o], C[np.ix_(o, o)]).logpdf(row[o])
        expected.append(density - np.isfinite(y) @ np.log(model.target_coding_.scale))
    densities = model.score_samples(X, seen)
    assert_allclose(densities, expected, rtol=1e-7)
    total = np.sum(densities) + np.sum(np.isfinite(seen) @ np.log(model.target_coding_.scale))
    assert_allclose(total, model.log_likelihood_, rtol=1e-6)


@WARNS
def test_impute_fills_both_sides(outputs):
    X, gappy, Y, seen = outputs
    model = SPPCA(2, noise="per_output", **LIKELIHOOD).fit(gappy, seen)
    filled, values, deviations, spread = model.impute(gappy, seen, return_std=True)
    assert_allclose(filled[~np.isnan(gappy)], gappy[~np.isnan(gappy)])
    assert_array_equal(np.isnan(seen), spread > 0)
    error = (values - Y)[np.isnan(seen)] / spread[np.isnan(seen)]
    # Four standard errors of a mean of 144 squares, and some more for a fit to 40 labelled rows.
    assert 0.5 < np.mean(error**2) < 1.7
    error = (filled - X)[np.isnan(gappy)] / deviations[np.isnan(gappy)]
    assert 0.5 < np.mean(error**2) < 1.5


def test_impute_gives_classes_to_unlabelled_rows(wine):
    X, y, truth = wine
    model = SPPCA(2).fit(X, y)
    filled, labels = model.impute(X, y)
    assert_array_equal(filled, X)
    assert_array_equal(labels[y >= 0], y[y >= 0])
    assert np.mean(labels == truth) > 0.85


@pytest.mark.parametrize("settings", [{"supervision": 0.5}, LIKELIHOOD])
def test_draws_have_the_moments_of_the_model(settings):
    X, y = load_diabetes(return_X_y=True)
    model = SPPCA(3, target="numeric", **settings).fit(X, y)
    drawn, values = model.sample(40_000, return_y=True, random_state=0)
    assert drawn.shape == (40_000, 10) and values.shape == (40_000,)
    assert_allclose(np.cov(drawn.T), model.get_covariance(), atol=2e-4)
    residual = values - model.predict(drawn)
    expected = model.predict_distribution(drawn[:1]).covariance[0, 0, 0]
    assert_allclose(residual.var(), expected, rtol=0.05)


@pytest.mark.parametrize("settings", [{"supervision": 0.5}, LIKELIHOOD])
@pytest.mark.parametrize("scale", ["latent", "energy"])
def test_scales_are_one_model(wine, settings, scale):
    X, y, _ = wine
    model = SPPCA(2, scale=scale, **settings).fit(X, y)
    latent = SPPCA(2, scale="latent", **settings).fit(X, y).posterior(X, y)
    T, given = model.transform(X), model.posterior(X, y)
    assert_allclose(model.posterior(X).mean, T, atol=1e-10)
    assert_allclose(given.mean * model.latent_scale_, latent.mean, atol=1e-10)
    squares = np.outer(model.latent_scale_, model.latent_scale_)
    assert_allclose(given.covariance * squares, latent.covariance, atol=1e-10)
    back = model.mean_ + T * model.latent_scale_ @ model.components_
    assert_allclose(model.inverse_transform(T), back)


@pytest.mark.parametrize("scale", ["latent", "energy"])
@pytest.mark.parametrize("supervision", ["likelihood", 0.5, 1.0])
def test_the_posterior_has_the_scale_of_the_coordinates_with_gaps(outputs, supervision, scale):
    _, gappy, _, seen = outputs
    model = SPPCA(2, supervision=supervision, scale=scale).fit(gappy, seen[:, :1])
    found = model.posterior(gappy)
    assert_allclose(found.mean, model.transform(gappy), atol=1e-8)
    assert np.all(np.linalg.eigvalsh(found.covariance) > -1e-12)


def test_a_known_label_moves_the_completed_posterior_towards_it(wine):
    X, y, truth = wine
    model = SPPCA(2, supervision=0.9, scale="latent").fit(X, y)
    without, known = model.posterior(X), model.posterior(X, truth)

    def overlap(mean):
        centres = np.array([mean[truth == k].mean(axis=0) for k in range(3)])
        return np.var(mean - centres[truth]) / np.var(centres)

    assert overlap(known.mean) < overlap(without.mean)
    assert_allclose(model.posterior(X, np.full(len(X), -1)).mean, without.mean)


def test_probabilities_are_calibrated_on_planted_classes(rng):
    X = rng.normal(size=(4000, 5))
    truth = (X[:, 0] + 0.8 * rng.normal(size=4000) > 0).astype(int)
    y = np.where(np.arange(4000) < 1000, truth, -1)
    P = SPPCA(2, supervision=0.9).fit(X, y).predict_proba(X)
    assert_allclose(P.sum(axis=1), 1)
    sure = P.max(axis=1) > 0.9
    assert np.mean(P.argmax(axis=1)[sure] == truth[sure]) > 0.85


# Outputs of every kind.


def test_multilabel_with_gaps(rng):
    Z = rng.normal(size=(200, 2))
    X = Z @ rng.normal(size=(2, 6)) + 0.2 * rng.normal(size=(200, 6))
    truth = (Z @ rng.normal(size=(2, 4)) > 0).astype(float)
    y = truth.copy()
    y[rng.random(y.shape) < 0.3] = np.nan
    for settings in ({}, LIKELIHOOD):
        model = SPPCA(2, **settings).fit(X, y)
        assert model.target_coding_.kind == "multilabel"
        predicted = model.predict(X)
        assert predicted.shape == (200, 4) and set(np.unique(predicted)) <= {0, 1}
        assert np.mean(predicted == truth) > 0.8
        assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("settings", [{}, LIKELIHOOD])
def test_numbers_are_predicted_in_their_units(settings):
    X, y = load_diabetes(return_X_y=True)
    part = y.copy()
    part[100:] = np.nan
    model = SPPCA(2, **settings).fit(X, part)
    assert model.target_coding_.kind == "numeric"
    assert np.corrcoef(model.predict(X[100:]), y[100:])[0, 1] > 0.5
    assert abs(model.predict(X).mean() - y.mean()) < 20


def test_units_of_numeric_outputs_do_not_matter():
    X, y = load_diabetes(return_X_y=True)
    y = y + 0.5
    for settings in ({"supervision": 0.5}, LIKELIHOOD):
        a, b = (SPPCA(2, **settings).fit(X, v) for v in (y, 1000 * y - 3))
        assert_allclose(b.transform(X), a.transform(X), atol=1e-6)
        assert_allclose(b.predict(X), 1000 * a.predict(X) - 3, rtol=1e-5)


@pytest.mark.parametrize(
    ("y", "kind"),
    [
        (["a", "b", None, "a"], "classes"),
        ([0, 1, -1, 1], "classes"),
        ([True, False, True, False], "classes"),
        ([0.0, 1.0, 0.0, 1.0], "classes"),
        ([0.5, 1.0, np.nan, 2.0], "numeric"),
        ([[1, 0], [0, 1], [1, 1], [0, 0]], "multilabel"),
        ([[1.0, np.nan], [0, 1], [1, 1], [0, 0]], "multilabel"),
        ([[1.5, 0], [0, 1], [1, 1], [0, 0]], "numeric"),
        (sparse.csr_array([[1, 0], [0, 1], [1, 1], [0, 0]]), "multilabel"),
        (np.ma.masked_invalid([0.5, 1.0, np.nan, 2.0]), "numeric"),
    ],
)
def test_outputs_are_known_by_their_type(rng, y, kind):
    model = SPPCA(1, supervision=0.5).fit(rng.normal(size=(4, 3)), y)
    assert model.target_coding_.kind == kind
    assert hasattr(model, "classes_") == (kind == "classes")


@pytest.mark.parametrize(
    ("y", "settings", "message"),
    [
        ([0, 1, 2], {}, "y has 3 rows"),
        ([0.5, np.inf, 1, 2], {}, "infinity"),
        ([[0.5, np.inf]] * 4, {}, "infinity"),
        (["a", "b", "c", "d"], {"target": "numeric"}, "not numbers"),
        ([[0.5, 1]] * 4, {"target": "multilabel"}, "0, 1 and NaN"),
        ([1 + 1j] * 4, {"target": "numeric"}, "complex"),
        (np.zeros((4, 1, 1)), {"target": "numeric"}, "dimensions"),
        (None, {"supervision": 1.5}, "supervision == 1.5"),
        (None, {"supervision": "strong"}, r"supervision == 'strong'; .* numbers in \[0, 1\]"),
        (None, {"supervision": None}, "supervision == None"),
        (None, {"target": "labels"}, "target == 'labels'"),
        (None, {"noise": "none"}, "noise == 'none'"),
        (None, {"noise": (1, -1)}, "noise == -1"),
        (None, {"scale": "big"}, "scale == 'big'"),
        (None, {"prior": -1}, "prior == -1"),
        (None, {"n_components": 5}, "n_components == 5"),
        (None, {"solver": "em", "noise": 0.5, **LIKELIHOOD}, "solver == 'em'"),
    ],
)
def test_errors_name_the_argument(rng, y, settings, message):
    model = SPPCA(**{"n_components": 1, **settings})
    with pytest.raises(ValueError, match=message):
        model.fit(rng.normal(size=(4, 3)), y)
    assert not hasattr(model, "components_")


def test_new_outputs_must_be_like_those_of_the_fit(wine):
    X, y, _ = wine
    model = SPPCA(2, supervision=0.5).fit(X, y)
    with pytest.raises(ValueError, match="classes \\[7\\]"):
        model.posterior(X[:1], [7])
    with pytest.raises(ValueError, match="without outputs"):
        SPPCA(2).fit(X).predict(X)
    with pytest.raises(ValueError, match="without outputs"):
        SPPCA(2).fit(X).posterior(X, y)


def test_one_class_or_one_label_each_still_fits(wine):
    X, _, truth = wine
    single = np.where(truth == 0, 0, -1)
    assert set(SPPCA(2).fit(X, single).predict(X)) == {0}
    once = np.full(len(X), -1)
    once[[0, 70, 150]] = [0, 1, 2]
    model = SPPCA(2).fit(X, once)
    assert model.supervision_ == 0


# Degenerate noise, weights, gaps.


def test_an_output_that_does_not_vary_has_no_loadings():
    """Rounding gave it some, and what was made of them was 1e28 in one sample."""
    X, _ = rows(seed=105)
    model = SPPCA(2, target="numeric", noise=1.0, **LIKELIHOOD).fit(X, np.zeros(len(X)))
    assert_array_equal(model.predict(X), 0)
    with pytest.warns(ConvergenceWarning, match="explains all variance of y"):
        model.set_params(noise="learn").fit(X, np.zeros(len(X)))
    assert_array_equal(model.predict(X), 0)


def test_floors_are_reported():
    X, truth = load_wine(return_X_y=True)
    y = np.full(len(truth), -1)
    y[[0, 1, 70, 71, 150, 151]] = truth[[0, 1, 70, 71, 150, 151]]
    with pytest.warns(ConvergenceWarning, match="variance of y"):
        model = SPPCA(6, **LIKELIHOOD).fit(StandardScaler().fit_transform(X), y)
    assert np.all(np.diff(model.objective_) >= -1e-9 * np.abs(model.objective_[:-1]))


@pytest.mark.parametrize(
    "noise", ["learn", pytest.param("per_output", marks=WARNS), 0.3, (0.5, 0.2)], ids=str
)
@pytest.mark.parametrize("prior", [0, 2.0])
def test_no_gaps_in_a_gappy_fit_change_nothing(outputs, noise, prior):
    X, _, _, seen = outputs
    settings = {"noise": noise, "prior": prior, "tol": 1e-11, "max_iter": 3000, **LIKELIHOOD}
    exact = SPPCA(2, **settings).fit(X, seen)
    # A row without any observed input says nothing about x, but makes the fit treat gaps.
    rows = np.vstack([X, np.full(8, np.nan)])
    gappy = SPPCA(2, **settings).fit(rows, np.vstack([seen, np.full(3, np.nan)]))
    assert_allclose(gappy.log_likelihood_, exact.log_likelihood_, rtol=1e-7)
    expected = exact.predict(X)
    assert np.all(np.abs(gappy.predict(X) - expected) < 1e-3 * expected.std(axis=0))


@pytest.mark.parametrize("settings", [{}, {"supervision": 0.5}, LIKELIHOOD])
def test_gaps_in_x_cost_little(wine, settings, rng):
    X, y, truth = wine
    gappy = X.copy()
    gappy[rng.random(X.shape) < 0.1] = np.nan
    model = SPPCA(2, **settings).fit(gappy, y)
    assert np.mean(model.predict(gappy) == truth) > 0.85
    complete = ~np.isnan(gappy).any(axis=1)
    assert_allclose(model.transform(gappy)[complete], model.transform(X)[complete])


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.5, 0.99, "auto"])
def test_planted_noise_and_subspace_are_found_with_gaps(rng, strength):
    Z, W = rng.normal(size=(3000, 2)), 3 * np.linalg.qr(rng.normal(size=(10, 2)))[0].T
    X = Z @ W + 0.5 * rng.normal(size=(3000, 10)) + 3
    X[rng.random(X.shape) < 0.3] = np.nan
    y = np.where(np.arange(3000) < 200, (Z[:, 0] > 0) + 2 * (Z[:, 1] > 0), -1)
    model = SPPCA(2, supervision=strength).fit(X, y)
    # Four standard errors: a variance of 21,000 entries seen, less two coordinates of a row.
    assert_allclose(model.noise_variance_, 0.25, rtol=4 * np.sqrt(2 / (21_000 - 6_000)))
    assert np.rad2deg(subspace_angles(model.components_.T, W.T).max()) < 2
    assert np.all(np.diff(model.objective_) >= -1e-10 * np.abs(model.objective_[:-1]))
    assert model.converged_


def test_no_supervision_with_gaps_is_ppca(wine, rng):
    X, y, _ = wine
    X[rng.random(X.shape) < 0.2] = np.nan
    model = SPPCA(3, supervision=0, tol=1e-10, max_iter=5000).fit(X, y)
    reference = PPCA(3, tol=1e-10, max_iter=5000).fit(X)
    assert_allclose(gram(model), gram(reference), atol=1e-5)
    assert_allclose(model.noise_variance_, reference.noise_variance_, rtol=1e-6)
    z = model.posterior(X).mean * model.latent_scale_
    assert_allclose(z, reference.posterior(X).mean, atol=1e-4)
    assert_allclose(model.objective_[-1], reference.log_likelihood_, rtol=1e-8)


@pytest.mark.parametrize("y", [None, np.full(178, -1)])
def test_without_labels_it_is_ppca_with_gaps_too(wine, rng, y):
    X, _, _ = wine
    X[rng.random(X.shape) < 0.1] = np.nan
    model, reference = SPPCA(3).fit(X, y), PPCA(3).fit(X)
    assert_allclose(model.noise_variance_, reference.noise_variance_, rtol=1e-3)
    assert_allclose(gram(model), gram(reference), atol=1e-2)


def test_the_labelled_mean_is_kept_with_gaps(outputs):
    _, gappy, _, seen = outputs
    free = SPPCA(2, tol=1e-10, **LIKELIHOOD).fit(gappy, seen)
    held = SPPCA(2, tol=1e-10, target_mean="labelled", **LIKELIHOOD).fit(gappy, seen)
    # The coding centres every output on the rows that have it.
    assert_allclose(held.target_mean_, 0, atol=1e-12)
    assert np.abs(free.target_mean_).max() > 0.01
    assert np.all(np.diff(held.objective_) >= -1e-10 * np.abs(held.objective_[:-1]))
    assert held.log_likelihood_ < free.log_likelihood_ < held.log_likelihood_ + 10


@pytest.mark.parametrize("supervision", ["likelihood", 0.5])
def test_weights_count_as_repetition_with_gaps(outputs, rng, supervision):
    _, gappy, _, seen = outputs
    weights = rng.integers(0, 3, size=len(seen))
    repeated = gappy.repeat(weights, axis=0), seen.repeat(weights, axis=0)
    model = SPPCA(2, tol=1e-11, supervision=supervision, max_iter=2000)
    a = clone(model).fit(gappy, seen, sample_weight=weights)
    b = clone(model).fit(*repeated)
    assert_allclose(gram(a), gram(b), atol=1e-5)


@pytest.mark.parametrize("solver", ["moments", "subspace", "em"])
def test_scikit_learn_callbacks_see_every_route(iteration_count, rng, solver):
    X = rng.normal(size=(150, 120)) * 0.9 ** np.arange(120)
    y = np.where(np.arange(150) < 30, np.arange(150) % 3, -1)
    model = SPPCA(2, solver=solver, **LIKELIHOOD).set_callbacks(iteration_count).fit(X, y)
    # Where the objective has settled a loop ends before it calls back.
    assert iteration_count.seen in (model.n_iter_ - 1, model.n_iter_)


def test_a_callback_stops_the_fit(wine):
    X, y, _ = wine
    seen = []

    def stop(n_iter, state, objective):
        seen.append(objective)
        return n_iter == 2

    with pytest.warns(ConvergenceWarning):
        model = SPPCA(2, callback=stop, **LIKELIHOOD).fit(X, y)
    assert model.objective_ == seen and not model.converged_


# Storage and company.


@pytest.mark.parametrize("settings", [{}, LIKELIHOOD])
def test_sparse_is_dense(rng, settings):
    X = sparse.random_array((150, 30), density=0.2, rng=rng)
    y = np.where(np.arange(150) < 50, np.arange(150) % 3, -1)
    dense = SPPCA(3, **settings).fit(X.toarray(), y)
    for form in (X.tocsr(), X.tocsc()):
        model = SPPCA(3, **settings).fit(form, y)
        assert_allclose(model.transform(form), dense.transform(X.toarray()), atol=1e-10)
        assert_allclose(model.predict_proba(form), dense.predict_proba(X.toarray()), atol=1e-10)


@pytest.mark.parametrize("settings", ROUTES, ids=str)
def test_blocks_are_dense(wine, settings):
    X, y, _ = wine
    parts = Blocks([Matrix(X[:50]), Matrix(sparse.csr_array(X[50:51])), Matrix(X[51:])])
    whole, cut = SPPCA(2, **settings).fit(X, y), SPPCA(2, **settings).fit(parts, y)
    assert_allclose(cut.transform(parts), whole.transform(X), atol=1e-9)
    assert_array_equal(cut.predict(parts), whole.predict(X))


@pytest.mark.parametrize("settings", [{"supervision": 0.5}, LIKELIHOOD])
def test_float32_stays_and_agrees(wine, settings):
    X, y, _ = wine
    single, double = (SPPCA(2, **settings).fit(X.astype(t), y) for t in (np.float32, float))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(single.transform(X), double.transform(X), atol=1e-3)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_in_and_out(wine, library):
    frames = pytest.importorskip(library)
    X, y, _ = wine
    frame = frames.DataFrame({f"f{j}": X[:, j] for j in range(X.shape[1])})
    labels = frames.Series(y)
    model = SPPCA(2, supervision=0.5).set_output(transform=library).fit(frame, labels)
    out = model.transform(frame)
    assert isinstance(out, frames.DataFrame)
    assert list(out.columns) == ["sppca0", "sppca1"]
    assert_allclose(out.to_numpy(), SPPCA(2, supervision=0.5).fit(X, y).transform(X))
    # scikit-learn 1.8 does not read the names of a polars frame.
    names = getattr(model, "feature_names_in_", frame.columns)
    assert list(names) == list(frame.columns)


def test_pandas_missing_values(wine):
    pandas = pytest.importorskip("pandas")
    X, y, _ = wine
    labels = pandas.Series(y, dtype="Int64").where(pandas.Series(y) >= 0)
    names = pandas.Series(np.array(["a", "b", "c"])[y], dtype="category")
    names[y < 0] = None
    expected = SPPCA(2, supervision=0.5).fit(X, y).transform(X)
    for form in (labels, names):
        assert_allclose(SPPCA(2, supervision=0.5).fit(X, form).transform(X), expected)


def test_pipeline_and_search():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    pipeline = make_pipeline(
        StandardScaler(), SPPCA(5, supervision=0.9), LogisticRegression(max_iter=1000)
    )
    search = GridSearchCV(pipeline, {"sppca__supervision": [0, 0.9]}, cv=3).fit(X, y)
    assert search.best_params_["sppca__supervision"] == 0.9
    assert clone(search.best_estimator_).get_params()["sppca__n_components"] == 5


def test_search_by_likelihood(wine):
    X, _, truth = wine
    folds = StratifiedKFold(3, shuffle=True, random_state=0)

    def density(model, X, y):
        return model.score_samples(X, y).mean()

    sizes = {"n_components": [1, 2, 3]}
    search = GridSearchCV(SPPCA(**LIKELIHOOD), sizes, cv=folds, scoring=density).fit(X, truth)
    assert_array_equal(np.diff(search.cv_results_["mean_test_score"]) > 0, True)


def test_two_fits_agree(wine):
    X, y, _ = wine
    assert_array_equal(SPPCA(2).fit(X, y).transform(X), SPPCA(2).fit(X, y).transform(X))


def test_no_warning_on_plain_data(wine):
    X, y, _ = wine
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SPPCA(2).fit(X, y)
        SPPCA(2, **LIKELIHOOD).fit(X, y)


# Data that go wrong elsewhere.


def planted(rng, n=80):
    Z = rng.normal(size=(n, 2)) * [3, 2]
    X = Z @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(n, 6))
    return X, np.where(np.arange(n) < 40, (Z[:, 1] > 0).astype(int), -1)


def span(model):
    Q, _ = np.linalg.qr(model.projection_)
    return Q @ Q.T


@pytest.mark.parametrize("settings", ROUTES, ids=str)
@pytest.mark.parametrize(
    "distort",
    [
        lambda X: X + 1e8,
        lambda X: X + 1e7 * np.arange(6),
        lambda X: X * 1e-100,
        lambda X: X * 1e100,
        lambda X: np.asfortranarray(X),
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.astype(">f8"),
    ],
    ids=["offset", "offsets", "tiny", "huge", "fortran", "strided", "big-endian"],
)
def test_the_span_survives(rng, settings, distort):
    X, y = planted(rng)
    expected = span(SPPCA(2, **settings).fit(X, y))
    actual = span(SPPCA(2, **settings).fit(distort(X), y))
    assert_allclose(actual, expected, atol=1e-3)


@pytest.mark.parametrize("settings", ROUTES, ids=str)
def test_constant_and_repeated_columns_are_harmless(rng, settings):
    X, y = planted(rng)
    wide = np.column_stack([X, np.ones(len(X)), X[:, 0]])
    model = SPPCA(2, **settings).fit(wide, y)
    assert_allclose(model.projection_[6], 0, atol=1e-8)
    assert_allclose(model.projection_[7], model.projection_[0], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:n_components == ")
@pytest.mark.parametrize("settings", ROUTES, ids=str)
def test_rank_below_the_components_is_explained_whole(rng, settings):
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 6))
    model = SPPCA(4, **settings).fit(X, np.arange(30) % 3 - 1)
    assert_allclose(model.inverse_transform(model.transform(X)), X, atol=0.05)
    assert model.score(X) > PPCA(1).fit(X).score(X)


@pytest.mark.parametrize("settings", ROUTES, ids=str)
@pytest.mark.parametrize("X", [np.ones((6, 3)), np.zeros((6, 3))], ids=["ones", "zeros"])
def test_rows_all_equal_are_refused(settings, X):
    with pytest.raises(ValueError, match="X has"):
        SPPCA(1, **settings).fit(X, [0, 0, 1, 1, -1, -1])


def test_random_labels_of_noise_separate_nothing():
    errors, gaps = [], []
    for seed in range(7):
        rng = np.random.default_rng(seed)
        X, truth = rng.normal(size=(300, 50)), rng.integers(3, size=300)
        y = np.where(np.arange(300) < 60, truth, -1)
        T = SPPCA(2).fit(X, y).transform(X)
        nearest = KNeighborsClassifier(1).fit(T[:60], y[:60])
        errors.append(nearest.score(T[60:], truth[60:]) - 1 / 3)
        centres = np.array([T[:60][y[:60] == k].mean(axis=0) for k in range(3)])
        within = T[:60] - centres[y[:60]]
        gaps.append(
            np.sum((centres - centres.mean(axis=0)) ** 2) / np.mean(np.sum(within**2, axis=1))
        )
    assert abs(np.mean(errors)) < 4 * np.sqrt(2 / 9 / (7 * 240))
    # Some strength is chosen in up to 8 of 100 draws; at full strength each has a gap of 3.
    assert np.median(gaps) < 1


def test_all_rows_equal_and_labelled_are_refused():
    """Enough labelled rows for their moments to be formed."""
    X, y = np.ones((60, 4)), np.arange(60) % 3
    with pytest.raises(ValueError, match="X has no variation"):
        SPPCA(2, supervision="likelihood").fit(X, y)


@pytest.mark.parametrize("supervision", [0.5, "likelihood"])
def test_a_single_class_is_predicted_with_gaps_too(rng, supervision):
    X = rng.standard_normal((9, 4))
    X[0, 0] = np.nan
    model = SPPCA(2, supervision=supervision).fit(X, np.full(9, "a"))
    assert_array_equal(model.predict(X), np.full(9, "a"))


@pytest.mark.parametrize("labels", [2, 5])
@pytest.mark.parametrize("model", [SPPCA(5), KernelSPPCA(5)], ids=str)
def test_probabilities_from_few_labels_hold_on_unseen_rows(model, labels):
    """Means of three draws: the loss is what the probabilities say it is, and so is the accuracy.

    Without widening and head the losses with two labels are 1.3 and 2.1, and the gaps up to .17.
    """
    X, truth = load_digits(return_X_y=True)
    losses, surprises, gaps = [], [], []
    for draw in range(3):
        rng = np.random.default_rng(draw)
        train, test = np.split(rng.permutation(len(truth)), [1000])
        y = np.full(1000, -1)
        for c in range(10):
            y[np.flatnonzero(truth[train] == c)[:labels]] = c
        P = clone(model).fit(X[train], y).predict_proba(X[test])
        losses.append(log_loss(truth[test], P))
        surprises.append(losses[-1] - np.mean(entropy(P, axis=1)))
        gaps.append(P.max(axis=1).mean() - np.mean(P.argmax(axis=1) == truth[test]))
    assert np.mean(losses) < (1.1 if labels == 2 else 0.65)
    assert np.mean(surprises) < 0.25
    assert abs(np.mean(gaps)) < 0.15


@pytest.mark.parametrize("seed", [6, 53, 100])
def test_at_full_strength_the_posterior_given_y_is_the_limit_of_strengths_below(seed):
    """Of two of these samples rounding leaves a noise that is next to nothing, of one none."""
    y = np.arange(60) % 3
    X = np.random.default_rng(seed).standard_normal((60, 6)) + 2 * np.eye(6)[y]
    below, full = (SPPCA(2, supervision=s).fit(X, y).posterior(X, y) for s in (1 - 1e-7, 1.0))
    assert_allclose(full.mean, below.mean, atol=1e-4)
    assert_allclose(full.covariance, 0, atol=1e-12)


def test_a_warm_start_keeps_the_strength_of_the_fit_before(wine, monkeypatch):
    X, labels, _ = wine
    # Which of them another beats clearly is a matter of the trials.
    monkeypatch.setattr(choice, "RULE", RULE._replace(reluctance=1e9))
    free = SPPCA().fit(X, labels).supervision_
    warm = SPPCA(warm_start=True).fit(X, labels)
    assert warm.supervision_ == free
    for kept in (0.25, 0.5, 0.9):
        warm.supervision_ = kept
        assert warm.fit(X, labels).supervision_ == kept
    warm.set_params(warm_start=False)
    assert warm.fit(X, labels).supervision_ == free


@pytest.mark.parametrize("estimator", [SPPCA, KernelSPPCA])
def test_weights_are_repetitions_where_unlabelled_rows_show_clusters(estimator):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = 3 * rng.normal(size=(3, 5))[y] + rng.normal(size=(60, 5))
    X = np.hstack([X, np.random.default_rng(5).normal(size=(60, 80))])
    for seed in (3, 4, 21):
        rng = np.random.default_rng(seed)
        weights = rng.integers(1, 4, 60)
        again, known = np.repeat(np.arange(60), weights), np.where(rng.random(60) < 0.4, y, -1)
        weighted = estimator(2).fit(X, known, sample_weight=weights)
        repeated = estimator(2).fit(X[again], known[again])
        assert weighted.supervision_ == repeated.supervision_
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
