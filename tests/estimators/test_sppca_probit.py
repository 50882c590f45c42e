"""SPPCA(supervision="likelihood", likelihood="probit") as its users meet it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_iris

import gnomon
from gnomon import PPCA, SPPCA

X, TRUTH = load_iris(return_X_y=True)
FEW = np.where(np.arange(150) % 4 == 0, TRUTH, -1)
LABELS = np.column_stack([TRUTH == 0, TRUTH > 0, TRUTH == 2]).astype(float)
LABELS[1::3] = np.nan
LABELS[2::5, 1] = np.nan


def probit(n_components=2, **parameters):
    return SPPCA(n_components, supervision="likelihood", likelihood="probit", **parameters)


@pytest.fixture(scope="module")
def model():
    return probit().fit(X, FEW)


@pytest.fixture(scope="module")
def several():
    return probit().fit(X, LABELS)


def test_classes_are_found_and_probabilities_are_the_models_own(model):
    assert model.score(X, TRUTH) > 0.85
    assert model.class_head_ is None and model.likelihood_ == "probit"
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1)
    assert_allclose(model.predict_distribution(X).mean, P, atol=1e-12)


def test_strings_and_dtypes_are_as_in_any_other_fit():
    names = np.array(["a", "b", "c"], dtype=object)[TRUTH]
    names[FEW < 0] = None
    found = probit().fit(X.astype(np.float32), names)
    assert found.transform(X.astype(np.float32)).dtype == np.float32
    assert set(found.predict(X[:5])) == {"a"}


def test_a_sparse_table_is_the_dense_one(model):
    found = probit().fit(sparse.csr_array(X), FEW)
    assert_allclose(found.predict_proba(sparse.csr_array(X)), model.predict_proba(X), atol=1e-6)


def test_without_labels_it_is_ppca():
    found = probit().fit(X)
    reference = PPCA(2).fit(X)
    assert_allclose(found.get_covariance(), reference.get_covariance(), rtol=1e-4)
    assert found.transform(X).shape == (150, 2)
    assert len(found.posterior(X[:3]).mean) == 3


def test_one_class_says_nothing():
    found = probit().fit(X, np.where(FEW == 0, 0, -1))
    assert_allclose(found.predict_proba(X[:4]), 1)
    assert_allclose(found.get_covariance(), PPCA(2).fit(X).get_covariance(), rtol=1e-4)


def test_log_densities_add_the_probability_of_the_class(model):
    own = model.predict_proba(X)[np.arange(150), TRUTH]
    joint = model.score_samples(X, TRUTH) - model.score_samples(X)
    # Probabilities are divided by their sum, which EP misses by little.
    assert_allclose(joint, np.log(own), atol=0.05)
    unlabelled = model.score_samples(X, np.full(150, -1))
    assert_allclose(unlabelled, model.score_samples(X))


def test_a_class_moves_the_posterior_and_narrows_it(model):
    given_x, given_both = model.posterior(X), model.posterior(X, TRUTH)
    assert_allclose(given_x.mean, model.transform(X), atol=1e-8)
    volume = np.linalg.det(given_both.covariance) / np.linalg.det(given_x.covariance)
    assert np.all(volume < 1 + 1e-9) and volume.min() < 0.95
    some = model.posterior(X, FEW)
    assert_allclose(some.mean[FEW < 0], given_x.mean[FEW < 0])
    assert_allclose(some.mean[FEW >= 0], given_both.mean[FEW >= 0])


def test_the_posterior_follows_the_scale():
    latent, energy = (probit(scale=scale).fit(X, FEW) for scale in ("latent", "energy"))
    turned = energy.posterior(X[:9], TRUTH[:9]).mean * energy.latent_scale_
    assert_allclose(turned, latent.posterior(X[:9], TRUTH[:9]).mean, atol=1e-8)


def test_the_posterior_covers_planted_latent_variables():
    rng = np.random.default_rng(1)
    n, d, C = 1500, 5, 4
    Z, W, V = (rng.normal(size=size) for size in ((n, 2), (2, d), (2, C)))
    rows = Z @ W + rng.normal(size=(n, d))
    y = np.argmax(2 * Z @ V + rng.normal(size=(n, C)), axis=1)
    model = probit().fit(rows, y)
    U, _, Vt = np.linalg.svd(W @ model.components_.T)
    for known in (None, y):
        mean, covariance = model.posterior(rows, known)
        deviation = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        covered = np.mean(np.abs(Z @ U @ Vt - mean) < 1.96 * deviation)
        assert 0.93 < covered < 0.97


def test_probabilities_are_calibrated_on_planted_rows():
    rng = np.random.default_rng(2)
    n, d, C = 6000, 5, 3
    Z, W, V = (rng.normal(size=size) for size in ((n, 2), (2, d), (2, C)))
    rows = Z @ W + rng.normal(size=(n, d))
    y = np.argmax(2 * Z @ V + rng.normal(size=(n, C)), axis=1)
    P = probit().fit(rows[:3000], y[:3000]).predict_proba(rows[3000:])
    bins = np.minimum((P * 8).astype(int), 7)
    hit = y[3000:, None] == np.arange(C)
    for b in range(8):
        chosen = bins == b
        error = np.sqrt(0.25 / max(chosen.sum(), 1))
        assert abs(hit[chosen].mean() - P[chosen].mean()) < 4 * error


def test_gaps_of_new_rows_widen_what_is_said_of_them(model):
    holed = X[:40].copy()
    holed[:, 2:] = np.nan
    whole, P = model.predict_proba(X[:40]), model.predict_proba(holed)
    assert P.max(axis=1).mean() < whole.max(axis=1).mean()
    wide = model.posterior(holed, TRUTH[:40]).covariance
    assert np.all(np.linalg.det(wide) > np.linalg.det(model.posterior(X[:40]).covariance))


def test_gaps_of_the_fit_are_left_out_of_the_likelihood(model):
    rng, scores = np.random.default_rng(0), []
    for _ in range(3):
        holed = np.where(rng.random(X.shape) < 0.2, np.nan, X)
        holed[0] = X[0]
        found = probit().fit(holed, FEW)
        assert found.converged_ and np.min(np.diff(found.objective_)) > -1e-6
        scores.append(found.score(X, TRUTH))
    assert np.mean(scores) > 0.85
    several = probit().fit(holed, LABELS)
    assert np.mean((several.predict(X) == LABELS)[np.isfinite(LABELS)]) > 0.85


def test_several_labels_are_signs_of_scores(several):
    predicted = several.predict(X)
    assert predicted.shape == LABELS.shape and set(np.unique(predicted)) <= {0, 1}
    known = np.isfinite(LABELS)
    assert np.mean((predicted == LABELS)[known]) > 0.9
    distribution = several.predict_distribution(X[:5])
    assert np.all((distribution.mean >= 0) & (distribution.mean <= 1))
    assert_allclose(
        np.diagonal(distribution.covariance, axis1=1, axis2=2),
        distribution.mean * (1 - distribution.mean),
        atol=1e-12,
    )


def test_outputs_are_imputed_and_drawn(model, several):
    _, filled = model.impute(X, FEW)
    assert_allclose(filled[FEW >= 0], FEW[FEW >= 0])
    assert_allclose(filled[FEW < 0], model.predict(X)[FEW < 0])
    _, filled, _, deviations = several.impute(X, LABELS, return_std=True)
    known = np.isfinite(LABELS)
    assert_allclose(filled[known], LABELS[known])
    assert np.all((filled >= 0) & (filled <= 1)) and np.all(deviations[known] == 0)
    rows, drawn = model.sample(300, return_y=True, random_state=0)
    assert np.mean(model.predict(rows) == drawn) > 0.7
    _, drawn = several.sample(20, return_y=True, random_state=0)
    assert set(np.unique(drawn)) <= {0, 1}


@pytest.mark.parametrize("which", ["model", "several"])
def test_a_file_of_the_model_says_the_same(which, request, tmp_path):
    fitted = request.getfixturevalue(which)
    gnomon.save(fitted, tmp_path / "probit.gnomon")
    loaded = gnomon.load(tmp_path / "probit.gnomon")
    ours, theirs = (found.predict_distribution(X[:9]) for found in (fitted, loaded))
    assert_allclose(ours.mean, theirs.mean)
    assert_allclose(ours.covariance, theirs.covariance)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"likelihood": "logit"}, "likelihood == 'logit'; accepted are 'gaussian', 'probit'"),
        ({"supervision": "auto"}, "supervision == 'auto'; accepted .* is supervision='likelihood'"),
        ({"supervision": 0.5}, "supervision == 0.5; accepted"),
        ({"noise": "per_output"}, "noise == 'per_output'; accepted .* is noise='learn'"),
        ({"target_mean": "labelled"}, "target_mean == 'labelled'; accepted"),
        ({"solver": "em"}, "solver == 'em'.* accepted with a probit likelihood are 'auto'"),
    ],
)
def test_parameters_that_do_not_go_with_it_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SPPCA(2, **{"supervision": "likelihood", "likelihood": "probit", **parameters}).fit(X, FEW)


def test_a_fit_forgets_the_likelihood_of_the_one_before(model):
    again = probit().fit(X, FEW).set_params(supervision=0.5, likelihood="gaussian").fit(X, FEW)
    fresh = SPPCA(2, supervision=0.5).fit(X, FEW)
    assert_allclose(again.predict_proba(X), fresh.predict_proba(X))


def test_numbers_are_refused():
    with pytest.raises(ValueError, match="y holds numbers; accepted are classes and indicators"):
        probit().fit(X, X[:, 0] + 0.05)


@pytest.mark.parametrize("indicators", [False, True])
def test_a_row_far_from_all_others_is_told_and_spoils_no_other(indicators):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = 3 * rng.normal(size=(3, 5))[y] + rng.normal(size=(60, 5))
    known = np.eye(3)[y] if indicators else np.where(rng.random(60) < 0.4, y, -1)
    model = SPPCA(2, supervision="likelihood", likelihood="probit").fit(X, known)
    far, near = X[:4].copy(), model.predict_distribution(X[:4]).mean
    for value in (1e6, 1e10, 1e100):
        far[2, 0] = value
        mean, covariance = model.predict_distribution(far)
        assert np.isfinite(mean).all() and np.isfinite(covariance).all()
        assert_allclose(mean[[0, 1, 3]], near[[0, 1, 3]])
        nearer = model.predict_distribution(far * (1e4 / value)).mean[2]
        assert_allclose(mean[2], nearer, atol=1e-3)
