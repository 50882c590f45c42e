import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import BSDRRegressor


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:BSDRRegressor found the null solution:UserWarning")
@parametrize_with_checks([BSDRRegressor(max_iter=5), BSDRRegressor("auto", max_iter=5)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def reduced_rank(rng, n=80, d=10, outputs=8, rank=2):
    X = rng.standard_normal((n + 500, d))
    W = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, outputs))
    Y = X @ W + 3.0 * rng.standard_normal((n + 500, outputs)) + 5.0
    return X[:n], Y[:n], X[n:], Y[n:]


def fit(X, Y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return BSDRRegressor(random_state=0, **parameters).fit(X, Y)


def test_low_rank_beats_least_squares(rng):
    X, Y, X_new, Y_new = reduced_rank(rng)
    model = fit(X, Y, n_components=2)
    plain = LinearRegression().fit(X, Y)
    assert r2_score(Y_new, model.predict(X_new)) > r2_score(Y_new, plain.predict(X_new))
    assert np.diff(model.objective_).min() > -1e-8


@pytest.mark.parametrize("draw", range(4))
def test_the_rank_is_found(draw):
    X, Y, *_ = reduced_rank(np.random.default_rng(draw), n=300)
    assert fit(X, Y, n_components="auto").n_components_ == 2


def test_standard_deviations_are_those_of_new_residuals(rng):
    X, Y, X_new, Y_new = reduced_rank(rng, n=200)
    mean, std = fit(X, Y, n_components=2).predict(X_new, return_std=True)
    assert_allclose(np.std((Y_new - mean) / std), 1.0, atol=0.1)


def test_gaps_in_the_outputs_are_bridged(rng):
    X, Y, X_new, Y_new = reduced_rank(rng, n=200)
    holes = rng.random(Y.shape) < 0.3
    holes[:, 0] &= ~holes.all(axis=1)  # a row without outputs is left out, with a warning
    gaps = np.where(holes, np.nan, Y)
    model = fit(X, gaps, n_components=2)
    full = fit(X, Y, n_components=2)
    assert np.diff(model.objective_).min() > -1e-8
    score = r2_score(Y_new, model.predict(X_new))
    assert score > r2_score(Y_new, full.predict(X_new)) - 0.1


def test_rows_without_outputs_are_left_out(rng):
    X, Y, *_ = reduced_rank(rng)
    hidden = Y.copy()
    hidden[:5] = np.nan
    with pytest.warns(UserWarning, match="no label for 5 of 80 rows"):
        model = BSDRRegressor(random_state=0, max_iter=300, tol=1e-3).fit(X, hidden)
    same = fit(X[5:], Y[5:], max_iter=300, tol=1e-3)
    assert_allclose(model.predict(X), same.predict(X), rtol=1e-4, atol=1e-6)


def test_units_of_the_outputs_do_not_matter(rng):
    X, Y, *_ = reduced_rank(rng)
    scale = 10.0 ** np.arange(-4, 4)
    assert_allclose(
        fit(X, Y * scale).predict(X), fit(X, Y).predict(X) * scale, rtol=1e-4, atol=1e-8
    )


def test_one_output_has_one_dimension(rng):
    X, Y, *_ = reduced_rank(rng)
    mean, std = fit(X, Y[:, 0], n_components=1).predict(X, return_std=True)
    assert mean.shape == std.shape == (80,)


def test_a_constant_output_is_predicted(rng):
    X, Y, *_ = reduced_rank(rng)
    model = fit(X, np.column_stack([Y[:, 0], np.full(80, 4.0)]), n_components=1)
    assert_allclose(model.predict(X)[:, 1], 4.0, atol=1e-6)


@pytest.mark.parametrize("prior", ["entry", "column", "row"])
def test_a_constant_column_is_left_out(rng, prior):
    """The mean of 80 times 0.1 is not 0.1 to the last bit, but the column does not vary."""
    X, Y, *_ = reduced_rank(rng)
    padded = np.column_stack([X, np.full(80, 0.1)])
    model = fit(padded, Y, prior=prior)
    assert_array_equal(model.components_[:, 10], 0)
    assert np.diff(model.objective_).min() > -1e-8
    moved = padded + 1e-9 * (np.arange(11) == 10)
    before, after = (model.predict(x, return_std=True) for x in (padded, moved))
    assert_array_equal(after, before)


def test_bad_outputs_are_named(rng):
    X, *_ = reduced_rank(rng)
    with pytest.raises(ValueError, match="y has no known value"):
        BSDRRegressor().fit(X, np.full(80, np.nan))
    with pytest.raises(ValueError, match="infinity"):
        BSDRRegressor().fit(X, np.full(80, np.inf))


def test_gibbs_draws_numbers(rng):
    X, Y, X_new, Y_new = reduced_rank(rng)
    Y[3, 2] = np.nan
    model = fit(X, Y, inference="gibbs", n_chains=1, n_draws=100, n_warmup=50)
    mean, std = model.predict(X_new, return_std=True)
    assert model.draws_["noise_variance"].shape == (1, 100, 8)
    assert r2_score(Y_new, mean) > 0.3
    assert_allclose(np.std((Y_new - mean) / std), 1.0, atol=0.15)


def test_draws_of_numbers_have_the_moments_of_their_products(rng):
    """Scales of projection and weights are known by their product, not each on its own."""
    X, Y, X_new, _ = reduced_rank(rng)
    model = fit(X, Y, inference="gibbs", n_chains=2, n_draws=30, n_warmup=20)
    mean, std = model.predict(X_new[:3], return_std=True)
    draws = {name: value.reshape(60, *value.shape[2:]) for name, value in model.draws_.items()}
    Z = np.einsum("nd,kqd->knq", X_new[:3] - model.mean_, draws["projection"])
    each = Z @ draws["weights"] + draws["bias"][:, None]
    assert_allclose(mean, model.target_mean_ + model.target_scale_ * each.mean(axis=0))
    latent = model.latent_noise**2 * np.mean(np.sum(draws["weights"] ** 2, axis=1), axis=0)
    variance = model.target_scale_**2 * (each.var(axis=0) + latent) + model.noise_variance_
    assert_allclose(std, np.sqrt(variance))
    assert_allclose(model.predict(X_new[:3]), mean)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_stops_the_fit(rng):
    X = rng.standard_normal((40, 4))
    model = BSDRRegressor(callback=lambda n_iter, *_: n_iter == 2).fit(X, X[:, 0])
    assert model.n_iter_ == 2
