from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import multivariate_normal

from gnomon.datasets import remove_entries
from gnomon.inference.loop import iterate
from gnomon.models.sppca import predict
from gnomon.models.sppca.fit import Problem, Settings, fit
from gnomon.stats.gaussian import variance_of_t

n, d, c, q = 40, 6, 3, 2


@pytest.fixture
def model(gappy):
    X, Y, observed = gappy
    settings = Settings(q, noise="per_output", scale="energy")
    return fit(Problem(X + 3, Y, observed), settings, iterate)


@pytest.fixture(params=[False, True], ids=["complete", "gaps"])
def X(request, gappy):
    return remove_entries(gappy[0] + 3, 0.3) if request.param else gappy[0] + 3


def joint(model):
    """Mean and covariance of [x, y, z], dense."""
    W, sigma2, W_y, sigma2_y, mean_y = model.state
    L = np.vstack([W, W_y, np.eye(q)])
    noise = np.concatenate([np.full(d, sigma2), sigma2_y, np.zeros(q)])
    return np.concatenate([model.mean, mean_y, np.zeros(q)]), L @ L.T + np.diag(noise)


def conditional(model, row, wanted):
    """Mean and covariance of the wanted columns given those of the row that are not NaN."""
    mean, C = joint(model)
    o = np.flatnonzero(np.isfinite(row))
    gain = np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, wanted)]).T
    covariance = C[np.ix_(wanted, wanted)] - gain @ C[np.ix_(o, wanted)]
    return mean[wanted] + gain @ (row[o] - mean[o]), covariance


def rows_given(X, Y=None, observed=None):
    """Rows [x, y, z] with NaN where nothing is known."""
    Y = np.full((len(X), c), np.nan) if Y is None else np.where(observed, Y, np.nan)
    return np.hstack([X, Y, np.full((len(X), q), np.nan)])


OUTPUTS, LATENT = np.arange(d, d + c), np.arange(d + c, d + c + q)


def test_outputs_are_the_conditional_of_the_joint_gaussian(model, X):
    given = predict.placed(model, X)[0]
    for i, row in enumerate(rows_given(X)):
        mean, covariance = conditional(model, row, OUTPUTS)
        assert_allclose(given.mean[i], mean, atol=1e-9)
        assert_allclose(given.covariances[given.pattern[i]], covariance, atol=1e-9)


def test_the_posterior_is_the_conditional_of_the_joint_gaussian(model, X, gappy):
    _, Y, observed = gappy
    means, covariances = predict.posterior(model, X, Y, observed)
    scale = model.latent_scale
    for i, row in enumerate(rows_given(X, Y, observed)):
        mean, covariance = conditional(model, row, LATENT)
        assert_allclose(means[i] * scale, mean, atol=1e-9)
        assert_allclose(covariances[i] * np.outer(scale, scale), covariance, atol=1e-9)


def test_coordinates_are_the_means_given_x_alone(model, X):
    nothing = np.zeros((n, c))
    means, _ = predict.posterior(model, X, nothing, nothing > 0)
    assert_allclose(predict.coordinates(model, X), means, atol=1e-9)
    if not np.isnan(X).any():
        assert_allclose(predict.coordinates(model, sparse.csr_array(X)), means, atol=1e-9)
    single = predict.coordinates(model, X.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, means, atol=1e-4)


def test_the_density_of_outputs_is_that_of_those_seen(model, X, gappy):
    _, Y, observed = gappy
    actual = predict.log_density(predict.placed(model, X)[0], Y, observed)
    for i, row in enumerate(rows_given(X)):
        mean, covariance = conditional(model, row, OUTPUTS)
        o = observed[i]
        expected = (
            multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(Y[i, o]) if o.any() else 0
        )
        assert_allclose(actual[i], expected, atol=1e-8)


def test_outputs_are_filled_by_their_means_given_the_others(model, X, gappy):
    _, Y, observed = gappy
    values, deviations = predict.fill(predict.placed(model, X)[0], Y, observed)
    assert_allclose(values[observed], Y[observed])
    assert np.all(deviations[observed] == 0)
    for i, row in enumerate(rows_given(X, Y, observed)):
        unseen = OUTPUTS[~observed[i]]
        mean, covariance = conditional(model, row, unseen)
        assert_allclose(values[i, ~observed[i]], mean, atol=1e-8)
        assert_allclose(deviations[i, ~observed[i]] ** 2, np.diag(covariance), atol=1e-8)


def test_log_odds_are_densities_of_the_code_vectors(model, X, rng):
    code_vectors = rng.normal(size=(4, c))
    given = predict.placed(model, X)[0]
    log_odds = predict.class_log_odds(*given, code_vectors)
    for i in range(n):
        density = multivariate_normal(given.mean[i], given.covariances[given.pattern[i]])
        expected = density.logpdf(code_vectors)
        assert_allclose(log_odds[i] - log_odds[i, 0], expected - expected[0], atol=1e-8)


def test_a_known_output_moves_the_completed_posterior_by_its_surprise(model, gappy):
    X, Y, _ = gappy
    X, nothing = X + 3, np.zeros((n, c), dtype=bool)
    without, covariances = predict.completed_posterior(model, X, Y, nothing)
    assert_allclose(without, predict.coordinates(model, X))
    scale = model.latent_scale
    assert_allclose(covariances[0] * np.outer(scale, scale), model.latent_covariance)
    known, _ = predict.completed_posterior(model, X, Y, ~nothing)
    surprise = Y - predict.placed(model, X)[0].mean
    W_y = model.state.W_y / model.state.sigma2_y[:, None]
    assert_allclose((known - without) * scale, surprise @ W_y @ model.latent_covariance, atol=1e-9)


def test_the_widening_is_what_residuals_show_over_what_the_model_says(model, X, gappy):
    _, Y, observed = gappy
    given = predict.placed(model, X)[0]
    found = predict.widening(given, Y, observed, np.ones(n), q)
    for k in range(c):
        seen = observed[:, k]
        freedom = seen.sum() - q - 1
        shown = np.sum((Y - given.mean)[seen, k] ** 2) / freedom * variance_of_t(freedom)
        said = given.covariances[given.pattern][seen, k, k].mean()
        assert_allclose(found[k], shown / said)


def test_an_output_that_no_row_has_is_not_widened(model, X, gappy):
    nothing = np.zeros((n, c), dtype=bool)
    given = predict.placed(model, X)[0]
    assert_allclose(predict.widening(given, gappy[1], nothing, np.ones(n), q), 1)


def test_an_axis_without_variance_is_not_stretched():
    model = SimpleNamespace(latent_scale=np.array([2.0, 0.0]))
    assert_allclose(predict._stretch(model), [0.5, 1.0])


def test_classes_have_their_share_times_the_density_of_x_given_their_code(model, X):
    """By the joint Gaussian, whose density of x given y is that of [x, y] less that of y."""
    rng = np.random.default_rng(3)
    codes, shares = rng.normal(size=(4, c)), np.array([0.6, 0.3, 0.09, 0.01])
    (mean, C), state = joint(model), model.state
    odds = predict.class_log_odds(*predict.placed(model, X)[0], codes)
    odds += predict.bayes_odds(shares, state.mean_y, state.W_y, state.sigma2_y, codes)
    of_y = multivariate_normal(mean[OUTPUTS], C[np.ix_(OUTPUTS, OUTPUTS)])
    for i, row in enumerate(X):
        seen = np.append(np.flatnonzero(np.isfinite(row)), OUTPUTS)
        both = np.column_stack([np.tile(row[seen[:-c]], (4, 1)), codes])
        of_both = multivariate_normal(mean[seen], C[np.ix_(seen, seen)])
        exact = np.log(shares) + of_both.logpdf(both) - of_y.logpdf(codes)
        assert_allclose(odds[i] - odds[i, 0], exact - exact[0], atol=1e-8)
