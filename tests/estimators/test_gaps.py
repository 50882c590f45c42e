"""Missing values in X for the models that have no density of x: filled, and not forgotten."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from gnomon import BSDR, DCAGM, PPCA, SPPCA, BSDRRegressor, KernelSPPCA, MultinomialProbit
from gnomon.models.gaussian import filling, patterns

N, D = 400, 12


def sample(seed):
    """Rows of rank three in their own units, complete and with 30 % of gaps; classes, numbers."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(N, 3))
    X = (z @ rng.normal(size=(3, D)) + 0.4 * rng.normal(size=(N, D))) * 10.0 ** rng.integers(
        -2, 3, D
    )
    classes = np.argmax(z @ np.array([[2.0, 0, -2], [0, 2, -1], [0, 0, 0]]), axis=1)
    numbers = z @ np.array([3.0, -2.0, 1.0]) + 0.5 * rng.normal(size=N)
    return X, np.where(rng.random(X.shape) < 0.3, np.nan, X), classes, numbers


@pytest.mark.filterwarnings("ignore:the chains have not mixed")
@pytest.mark.parametrize(
    "model", [KernelSPPCA(2), BSDR(2, inference="gibbs", n_draws=20)], ids=["kernel", "gibbs"]
)
def test_what_is_said_of_a_row_does_not_depend_on_those_beside_it(model):
    _, X, y, _ = sample(0)
    model.fit(X[:150], y[:150])
    chances, spread = model.predict_proba(X[150:170]), model.posterior(X[150:170]).covariance
    for i in range(20):
        row = X[150 + i : 151 + i]
        assert_allclose(model.predict_proba(row)[0], chances[i], atol=1e-9)
        assert_allclose(model.posterior(row).covariance[0], spread[i], rtol=1e-6)


@pytest.fixture(scope="module")
def planted():
    return sample(0)


CLASSIFIERS = {
    "BSDR": BSDR(2, random_state=0),
    "BSDR, integral": BSDR(2, proba="integral", random_state=0),
    "BSDR, column": BSDR(2, prior="column", random_state=0),
    "MultinomialProbit": MultinomialProbit(),
    "DCAGM": DCAGM(2, random_state=0),
}
# With little latent noise the projection is known well, and what a posterior gains is of the gaps.
MAPS = {
    "BSDR": BSDR(2, latent_noise=0.1, random_state=0),
    "BSDR, column": BSDR(2, prior="column", latent_noise=0.1, random_state=0),
    "DCAGM": CLASSIFIERS["DCAGM"],
}


def with_means(X):
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def with_gaps_and_with_means(name, X, y):
    """Fits to half the rows, as they are and filled, each with the other half."""
    for rows in (X, with_means(X)):
        yield clone(CLASSIFIERS[name]).fit(rows[:200], y[:200]), rows[200:]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_are_told_apart_better_than_with_column_means(planted, name):
    _, X, y, _ = planted
    losses = [
        -np.mean(np.log(model.predict_proba(rows)[np.arange(200), y[200:]]))
        for model, rows in with_gaps_and_with_means(name, X, y)
    ]
    assert losses[0] < losses[1]


@pytest.mark.one_sample("of 200 rows .08 more are right on average, give or take .04")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_more_classes_are_found_than_with_column_means(name):
    _, X, y, _ = sample(0)
    found, plain = (m.score(rows, y[200:]) for m, rows in with_gaps_and_with_means(name, X, y))
    assert found > plain + 0.02


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_gaps_make_predictions_less_sure(planted, name):
    X, _, y, _ = planted
    model = clone(CLASSIFIERS[name]).fit(X, y)
    # Two columns of rank three: the class is open. With a third of the columns gone, rank three
    # is known nearly as well as before, and a mean may fall on either side.
    few = np.where(np.arange(D) < 2, X, np.nan)
    sure, less = model.predict_proba(X), model.predict_proba(few)
    assert less.max(axis=1).mean() < sure.max(axis=1).mean() - 0.01
    assert_allclose(less.sum(axis=1), 1)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_complete_rows_are_seen_as_if_alone(planted, name):
    X, holed, y, _ = planted
    model = clone(CLASSIFIERS[name]).fit(X, y)
    both = np.vstack([X[:5], holed[:5]])
    assert_allclose(model.predict_proba(both)[:5], model.predict_proba(X[:5]), rtol=1e-9)


@pytest.mark.parametrize("name", MAPS)
def test_what_gaps_add_to_a_posterior_covers_the_complete_row(name):
    shares = []
    for seed in range(4):
        X, holed, y, _ = sample(seed)
        model = clone(MAPS[name]).fit(X, y)
        whole, found = model.posterior(X), model.posterior(holed)
        assert_allclose(found.mean, model.transform(holed), atol=1e-9)
        rows = np.isnan(holed).any(axis=1)
        added = np.diagonal(found.covariance - whole.covariance, axis1=1, axis2=2)[rows]
        # Weights say more of a filled row, nearer the mean, which may be more than a small gap
        # adds.
        hit = np.abs(found.mean - whole.mean)[rows] < 1.96 * np.sqrt(np.maximum(added, 0.0))
        shares.append(hit.mean())
    # Of one sample it is within .03: its four hundred rows are filled by one model.
    assert 0.93 < np.mean(shares) < 0.97


@pytest.mark.parametrize("fitted_to_gaps", [False, True])
def test_numbers_of_rows_with_gaps_are_within_their_deviations(fitted_to_gaps):
    """As often as complete rows are, which with 200 of them is .96 to .98 of the time."""
    whole, found = [], []
    for seed in range(8):
        X, holed, _, y = sample(seed)
        model = BSDRRegressor(1, random_state=0).fit(X[:200], y[:200])
        whole.append(inside(model, X[200:], y[200:]))
        if fitted_to_gaps:
            model.fit(holed[:200], y[:200])
        found.append(inside(model, holed[200:], y[200:]))
    assert abs(np.mean(found) - np.mean(whole)) < 0.03


def inside(model, X, y):
    value, sd = model.predict(X, return_std=True)
    return np.mean(np.abs(value - y) < 1.96 * sd)


def test_numbers_are_found_better_than_with_column_means(planted):
    _, X, _, y = planted
    model, filled = BSDRRegressor(1, random_state=0).fit(X[:200], y[:200]), with_means(X)
    plain = BSDRRegressor(1, random_state=0).fit(filled[:200], y[:200])
    assert model.score(X[200:], y[200:]) > plain.score(filled[200:], y[200:]) + 0.02


def test_draws_and_the_mean_field_agree_on_what_gaps_add(planted):
    """Beyond the filled row: the complete one, farther out, has a spread of its own projection."""
    X, holed, y, _ = planted
    few = {"n_chains": 2, "n_draws": 300, "n_warmup": 100}
    options = {"n_components": 1, "latent_noise": 0.1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = BSDR(inference="gibbs", **few, **options).fit(X, y == 0)
    mean = BSDR(**options).fit(X, y == 0)
    rows = np.isnan(holed).any(axis=1)

    def added(model):
        filled = filling.fill(model.filling_, holed[rows])
        whole, found = model.posterior(filled), model.posterior(holed[rows])
        scale = model.transform(X[rows]).var()
        return (found.covariance - whole.covariance)[:, 0, 0] / scale

    a, b = added(drawn), added(mean)
    assert np.corrcoef(a, b)[0, 1] > 0.85
    # The mean field has too little spread of the projection, by which it sees gaps too.
    assert 0.8 < a.mean() / b.mean() < 2
    P = drawn.predict_proba(holed[rows])
    assert np.mean(P.argmax(axis=1) == (y == 0)[rows]) > 0.8


def test_a_fit_to_sparse_rows_fills_nothing_and_says_so(planted):
    X, holed, y, _ = planted
    model = BSDR(2, random_state=0).fit(sparse.csr_array(X), y)
    assert get_tags(BSDR()).input_tags.allow_nan
    assert not get_tags(model).input_tags.allow_nan
    with pytest.raises(ValueError, match="did not learn to fill them"):
        model.transform(holed)


@pytest.mark.parametrize(
    "model", [PPCA("auto"), PPCA(0.8), PPCA(2, prior="ard"), SPPCA(2), SPPCA(2, supervision=0.5)]
)
def test_an_array_of_more_entries_than_blocks_are_kept_has_every_fit(monkeypatch, model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(60, 6))
    y, X[rng.random(X.shape) < 0.1] = (X[:, 0] > 0).astype(int), np.nan
    expected = clone(model).fit(X, y).transform(X)
    monkeypatch.setattr(patterns, "KEPT_ENTRIES", 100)
    assert_allclose(clone(model).fit(X, y).transform(X), expected, atol=1e-4)
