"""Distances within the map and from it, their limits, and what each column adds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import DCAGM, PPCA, PRPCA, SPPCA, outlier_contributions, outliers


def planted(rng, n, d=8, q=2, noise=0.5):
    return rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) + noise * rng.normal(size=(n, d))


def brute_force(model, x):
    """T² and Q of one row by the covariance of its scores on the map, from what it observes."""
    seen = ~np.isnan(x)
    W, r = model.components_.T[seen], (x - model.mean_)[seen]
    U = np.linalg.svd(W, full_matrices=False)[0]
    C = W @ W.T + model.noise_variance_ * np.eye(seen.sum())
    t = U.T @ r
    across = np.sum((r - U @ t) ** 2)
    q, d = model.components_.shape
    return t @ np.linalg.solve(U.T @ C @ U, t), across * (d - q) / max(seen.sum() - q, 1)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("supervised", [False, True])
def test_distances_are_those_of_the_scores_and_of_the_rest(rng, gaps, supervised):
    X = planted(rng, 40)
    y = (X[:, 0] > 0).astype(int)
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    model = SPPCA(2, supervision=0.6).fit(X, y) if supervised else PPCA(2).fit(X)
    found = outliers(model, X)
    assert_allclose(found.t2, [brute_force(model, x)[0] for x in X])
    # A row with as many values as components has nothing left.
    assert_allclose(found.q, [brute_force(model, x)[1] for x in X], atol=1e-12)
    assert_allclose(found.log_density, model.score_samples(X))


def test_the_log_density_is_made_of_both_distances(rng):
    X = planted(rng, 40)
    model = PPCA(3).fit(X)
    found = outliers(model, X)
    distance = found.t2 + found.q / model.noise_variance_
    assert_allclose(np.ptp(found.log_density + distance / 2), 0, atol=1e-9)


def test_t2_is_that_of_principal_components(rng):
    X = planted(rng, 40)
    centred = X - X.mean(axis=0)
    U, _, _ = np.linalg.svd(centred, full_matrices=False)
    assert_allclose(outliers(PPCA(2).fit(X), X).t2, 40 * np.sum(U[:, :2] ** 2, axis=1))


@pytest.mark.one_sample("the share beyond a limit of 1,500 rows moves by a sixth")
@pytest.mark.parametrize("scales", [np.ones(12), np.linspace(0.2, 1, 12)])
def test_few_usual_rows_lie_beyond_the_limits(rng, scales):
    W = rng.normal(size=(3, 12))
    draw = lambda n: rng.normal(size=(n, 3)) @ W + scales * rng.normal(size=(n, 12))  # noqa: E731
    X, new = draw(1500), draw(20_000)
    found = outliers(PPCA(3).fit(X), new, reference=X)
    for distances, limits in ((found.t2, found.t2_limit), (found.q, found.q_limit)):
        rates = [np.mean(distances > limit) for limit in limits]
        assert_allclose(rates, [0.05, 0.01], rtol=0.3)


def test_outliers_among_the_rows_hardly_move_the_limit(rng):
    X = planted(rng, 400)
    model = PPCA(2).fit(X)
    plain = outliers(model, X).q_limit
    X[:20] += 20 * rng.normal(size=(20, 8))
    found = outliers(model, X)
    assert_allclose(found.q_limit, plain, rtol=0.25)
    assert np.all(found.q[:20] > found.q_limit[1])


def test_gaps_do_not_make_a_row_unusual(rng):
    X = planted(rng, 1000)
    model = PPCA(2).fit(X)
    part = X.copy()
    part[rng.random(X.shape) < 0.3] = np.nan
    found = outliers(model, part, reference=X)
    assert np.mean(found.t2 > found.t2_limit[0]) < 0.08
    assert np.mean(found.q > found.q_limit[0]) < 0.12


def test_a_row_with_no_more_entries_than_dimensions_has_no_distance_from_the_map(rng):
    X = planted(rng, 40)
    model = PPCA(2).fit(X)
    X[0, 2:] = X[1] = np.nan
    found = outliers(model, X)
    assert_allclose(found.q[:2], 0, atol=1e-12)
    assert found.t2[1] == 0 and np.isfinite(found.t2[0])


@pytest.mark.parametrize("name", ["t2", "q"])
def test_contributions_add_up_to_the_distance(rng, name):
    X = planted(rng, 40)
    model = SPPCA(2, supervision=0.5).fit(X, X[:, 0])
    parts = getattr(outlier_contributions(model, X), name)
    assert_allclose(parts.sum(axis=1), getattr(outliers(model, X), name))


def test_the_column_that_is_wrong_contributes_most_and_gaps_nothing(rng):
    X = planted(rng, 60)
    model = PPCA(2).fit(X)
    # The map follows a column the less, the shorter its row of loadings.
    wrong, _, gap, *_ = np.argsort(np.linalg.norm(model.components_, axis=0))
    row = X[:1].copy()
    row[0, wrong] += 5
    row[0, gap] = np.nan
    parts = outlier_contributions(model, row).q[0]
    assert parts.argmax() == wrong
    assert parts[gap] == 0


def test_pipelines_and_sparse_rows_are_taken(rng):
    X = planted(rng, 40)
    X[X < 0] = 0
    pipeline = make_pipeline(StandardScaler(with_mean=False), PPCA(2)).fit(X)
    found = outliers(pipeline, sparse.csr_array(X))
    assert_allclose(found.q, outliers(pipeline[-1], pipeline[0].transform(X)).q)
    parts = outlier_contributions(pipeline, sparse.csr_array(X))
    assert_allclose(parts.q.sum(axis=1), found.q)


def test_new_rows_are_judged_by_the_reference(rng):
    X = planted(rng, 60)
    model = PPCA(2).fit(X)
    with pytest.raises(ValueError, match="reference has 1 rows; limits need at least 10"):
        outliers(model, X[:1])
    alone = outliers(model, X[:1], reference=X)
    assert_allclose(alone.q_limit, outliers(model, X).q_limit)
    assert_allclose(alone.t2, outliers(model, X).t2[:1])


@pytest.mark.parametrize("model", [DCAGM(), PRPCA()])
def test_other_models_are_refused(rng, model):
    X = planted(rng, 20)
    model = model.fit(X, np.arange(20) % 2) if isinstance(model, DCAGM) else model.fit(X)
    with pytest.raises(TypeError, match="accepted are PPCA and SPPCA"):
        outliers(model, X)


def test_levels_are_probabilities(rng):
    X = planted(rng, 20)
    with pytest.raises(ValueError, match="levels == 95"):
        outliers(PPCA(2).fit(X), X, levels=(95,))


def test_a_pipeline_of_several_steps_is_judged_by_its_last(rng):
    X = rng.standard_normal((60, 5))
    pipeline = make_pipeline(StandardScaler(), StandardScaler(), PPCA(2)).fit(X)
    rows = pipeline[:-1].transform(X)
    found, expected = outliers(pipeline, X), outliers(pipeline[-1], rows)
    assert_allclose(found.t2, expected.t2)
    assert_allclose(found.q, expected.q)
