"""The fit of DCA-GM on its own: what it ends with, in which units, and what it says of itself."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gnomon import DCAGM
from gnomon.inference.loop import iterate
from gnomon.linalg.data import Matrix
from gnomon.models.dcagm import alternation, few
from gnomon.models.dcagm import fit as family
from gnomon.models.dcagm.alternation import Model, State
from gnomon.models.dcagm.fit import Problem, Settings, fit
from gnomon.models.dcagm.mixture import class_covariances, class_densities, log_joint, whiten
from gnomon.models.dcagm.rows import arrange

MODEL = Model(2, chunk_weight=0.1, unlabelled_weight=0.01, em_weight=0.3, ridge=3.0)


@pytest.fixture
def settings(rng):
    return Settings(
        MODEL,
        choose=(),
        standardize=True,
        metric="within",
        batch_size=None,
        n_init=1,
        max_iter=100,
        tol=1e-3,
        rng=rng,
    )


@pytest.fixture
def problem(rng):
    """Three classes of two clusters in columns of any scale; some labels, some chunks, weights."""
    y = rng.integers(3, size=150)
    X = rng.standard_normal((150, 6))
    X[:, :3] += 2 * rng.standard_normal((2, 3, 3))[rng.integers(2, size=150), y]
    labels, chunks = np.where(np.arange(150) < 60, y, -1), np.full(150, -1)
    chunks[60:100][np.argsort(y[60:100])] = np.arange(40) // 4
    X = 3 + X * 10.0 ** np.arange(-3, 3)
    return Problem(Matrix(X), labels, chunks, rng.uniform(0.5, 2, 150), [2, 2, 2])


def coordinates(fitted, X):
    return (X - fitted.mean) @ fitted.components.T


def posteriors(fitted, X):
    L, _ = class_densities(whiten(fitted.mixture), coordinates(fitted, X))
    return np.exp(L - np.logaddexp.reduce(L, axis=0))


def test_the_estimator_keeps_what_the_fit_gives(problem, settings):
    fitted = fit(problem, settings, iterate)
    model = DCAGM().fit(
        problem.X.X, problem.labels, chunks=problem.chunks, sample_weight=problem.weights
    )
    assert_array_equal(model.mean_, fitted.mean)
    assert_array_equal(model.components_, fitted.components)
    assert_array_equal(model.covariances_, fitted.mixture.covariances[[0, 0, 1, 1, 2, 2]])
    assert_array_equal(model.density_quantiles_, fitted.density_quantiles)
    assert model.objective_ == fitted.run.objective and model.converged_


def test_without_em_the_objective_never_falls(problem, settings, monkeypatch):
    monkeypatch.setattr(alternation, "N_EM", 0)
    run = fit(problem, settings._replace(tol=1e-6), iterate).run
    assert run.converged and len(run.objective) > 5
    assert np.diff(run.objective).min() >= 0
    assert run.objective[-1] > run.objective[0] + 0.05  # usually by several


def test_one_gaussian_per_class_and_all_labels_end_in_class_moments(problem, settings, monkeypatch):
    """EM has a closed form there: at the projection found the classifier is QDA with priors."""
    monkeypatch.setattr(alternation, "PRIOR_SCALE", 1e-12)
    y, w = np.arange(150) % 3, np.ones(150)
    X = problem.X.X + 0.5 * y[:, None] * problem.X.X.std(axis=0)
    given = problem._replace(X=Matrix(X), labels=y, weights=w, n_gaussians=[1, 1, 1])
    fitted = fit(given, settings, iterate)
    Z = coordinates(fitted, X)
    assert_allclose(fitted.mixture.alpha, [1 / 3, 1 / 3, 1 / 3])
    for c in range(3):
        assert_allclose(fitted.mixture.means[c], Z[y == c].mean(axis=0), atol=1e-8)
        # The four pseudo-points have next to no variance, and count.
        expected = np.cov(Z[y == c].T, bias=True) * 50 / 54
        assert_allclose(fitted.mixture.covariances[c], expected, rtol=1e-8, atol=1e-8)


def test_coordinates_are_those_that_the_metric_names(problem, settings):
    X, w = problem.X.X, problem.weights
    within, raw = (fit(problem, settings._replace(metric=m), iterate) for m in ("within", "raw"))
    average = np.tensordot(within.mixture.alpha, class_covariances(within.mixture), 1)
    assert_allclose(average, np.eye(2), atol=1e-10)
    Z = coordinates(within, X)
    S = (Z.T * w) @ Z / w.sum()
    assert S[0, 0] > S[1, 1] and abs(S[0, 1]) < 0.01
    Z = coordinates(raw, X)
    assert_allclose((Z.T * w) @ Z / w.sum(), np.eye(2), atol=0.02)
    assert_allclose(posteriors(within, X), posteriors(raw, X), atol=1e-8)


def test_density_quantiles_are_those_of_labelled_rows(problem, settings):
    fitted = fit(problem, settings, iterate)
    Z = coordinates(fitted, problem.X.X[:60])
    values = np.logaddexp.reduce(log_joint(whiten(fitted.mixture), Z), axis=0)
    order = np.argsort(values)
    below = np.cumsum(problem.weights[:60][order]) / problem.weights[:60].sum()
    expected = values[order][np.searchsorted(below, [0.0, 0.25, 0.5, 0.75])]
    assert_allclose(fitted.density_quantiles[[0, 250, 500, 750]], expected)
    assert_allclose(fitted.density_quantiles[1000], values.max())


def test_wide_rows_give_the_same_in_the_basis_of_their_span(settings, rng, monkeypatch):
    y = np.repeat([0, 1], 15)
    X = rng.standard_normal((30, 50)) + y[:, None]
    none = np.full(30, -1)
    wide = Problem(Matrix(X), np.where(np.arange(30) % 3, y, -1), none, np.ones(30), [1, 1])
    monkeypatch.setattr(few, "MOST_FEW", 0)
    short = fit(wide, settings, iterate)
    assert family.short_basis(Matrix(X - X.mean(axis=0)), 2).T.shape == (30, 29)
    monkeypatch.setattr(family, "short_basis", lambda X, q: None)
    long = fit(wide, settings, iterate)
    assert_allclose(short.components, long.components, atol=1e-6 * np.abs(long.components).max())


def test_a_fit_that_did_not_converge_says_so_and_does_not_warn(problem, settings):
    run = fit(problem, settings._replace(max_iter=2, tol=0.0), iterate).run
    assert not run.converged and len(run.objective) == 2


def test_the_best_of_several_starts_is_kept(problem, settings):
    runs = []

    def loop(method, **limits):
        runs.append(iterate(method, **limits))
        return runs[-1]

    chosen = fit(problem, settings._replace(n_init=3), loop).run
    tops = [max(run.objective) for run in runs]
    assert len(set(tops)) == 3
    assert chosen.objective == runs[int(np.argmax(tops))].objective


@pytest.mark.parametrize("batch_size", [None, 40])
def test_who_watches_sees_the_state_of_the_model(problem, settings, batch_size):
    seen = []
    loop = partial(iterate, callback=lambda n_iter, state, objective: seen.append(state))
    run = fit(problem, settings._replace(batch_size=batch_size, max_iter=3, tol=0.0), loop).run
    assert len(seen) in (2, 3)  # batches may end by themselves
    for state in seen:
        assert isinstance(state, State)
        assert state.P.shape == (6, 2) and len(state.mixture.means) == 6
    assert run.state.Z.shape == (150, 2)


def test_batches_end_with_em_on_all_rows(sample, settings):
    ended = []

    def loop(method, **limits):
        ended.append(iterate(method, **limits))
        return ended[0]

    run = family.solve(sample, settings._replace(batch_size=20, max_iter=2, tol=0.0), loop)
    rows, (P, _, mixture, *_) = arrange(sample), ended[0].state
    expected = alternation.state_at(P, rows.project(P), mixture, rows, MODEL)
    assert_array_equal(run.state.P, expected.P)
    assert_array_equal(run.state.mixture.means, expected.mixture.means)
    assert np.abs(run.state.mixture.means - mixture.means).max() > 1e-3


def test_weights_are_chosen_where_asked(problem, settings, monkeypatch):
    monkeypatch.setitem(family.choose_weights.__globals__["GRIDS"], "chunk_weight", (0.1, 1.0))
    fitted = fit(problem, settings._replace(choose=("chunk_weight",), tol=0.1), iterate)
    scores = fitted.weight_scores["chunk_weight"]
    assert_array_equal(scores["values"], [0.1, 1.0])
    assert fitted.model.chunk_weight in (0.1, 1.0)
    fixed = settings._replace(model=fitted.model, tol=0.1)
    assert_array_equal(fit(problem, fixed, iterate).components, fitted.components)


def test_each_gaussian_may_have_its_own_covariance(problem, settings):
    own = settings._replace(model=MODEL._replace(per_gaussian=True))
    fitted = fit(problem, own, iterate)
    assert fitted.mixture.covariances.shape == (6, 2, 2)
    pairs = fitted.mixture.covariances.reshape(3, 2, 2, 2)
    assert np.abs(pairs[:, 0] - pairs[:, 1]).min(axis=(1, 2)).max() > 0.01


def test_rows_without_variation_are_refused(problem, settings):
    # The mean of a constant column such as 0.1 need not be it to the last bit.
    same = problem._replace(X=Matrix(np.full((150, 6), 0.1)))
    with pytest.raises(ValueError, match="no variation"):
        fit(same, settings, iterate)


def test_as_printed_the_start_is_lda_and_rca_and_the_end_is_the_last_state(problem, settings):
    """Section 4 of the paper: coordinates begin with unit covariance within the classes."""
    problem = problem._replace(chunks=np.full(150, -1), weights=np.ones(150))
    printed = settings._replace(model=MODEL._replace(as_printed=True, em_weight=1.0), max_iter=4)
    seen = []

    def loop(method, **limits):
        seen.append(method.start)
        return iterate(method, callback=lambda n_iter, state, _: seen.append(state), **limits)

    found = fit(problem, printed, loop)
    assert all(isinstance(state, State) for state in seen)
    assert found.run.state is seen[-1]
    groups = seen[0].Z[: np.sum(problem.labels >= 0)]
    labels = np.sort(problem.labels[problem.labels >= 0])
    away = np.concatenate([groups[labels == c] - groups[labels == c].mean(0) for c in range(3)])
    assert_allclose(away.T @ away / (len(away) - 3), np.eye(2), atol=0.1)
