"""DCA-GM against brute force, finite differences, and the printed forms that fail."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import multivariate_normal, ortho_group

from gnomon.linalg.data import Matrix
from gnomon.models.dcagm import alternation, rows
from gnomon.models.dcagm.alternation import (
    PRIOR_SCALE,
    SHRINKAGE,
    Model,
    data_terms,
    em_moments,
    em_step,
    line_search,
    objective,
    prior_of,
    scaled,
    step,
)
from gnomon.models.dcagm.mixture import (
    class_densities,
    log_joint,
    moved,
    row_gradient,
    whiten,
)
from gnomon.models.dcagm.rows import WRONG_MEMBERS, Sample, arrange
from gnomon.models.dcagm.start import start_at

n, d, q = 60, 5, 2
MODEL = Model(q, chunk_weight=0.7, unlabelled_weight=0.3, em_weight=0.5, ridge=0.4)


def brute_densities(mixture, Z):
    """p(z, c) by classes and rows, the obvious way."""
    out = np.zeros((len(mixture.alpha), len(Z)))
    for g, c in enumerate(mixture.class_of):
        covariance = mixture.covariances[mixture.covariance_of[g]]
        density = multivariate_normal(mixture.means[g], covariance)
        out[c] += mixture.alpha[c] * mixture.beta[g] * density.pdf(Z)
    return out


def log_prior(mixture, prior):
    """Log density of the covariances under the pseudo-points, less a constant."""
    values = [
        np.linalg.slogdet(S)[1] + np.trace(np.linalg.solve(S, prior.covariance))
        for S in mixture.covariances
    ]
    return -0.5 * prior.points * sum(values)


def numeric(f, x, h=1e-6):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        out[i] = (f(up) - f(down)) / (2 * h)
    return out


def relative_error(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def value_at(P, mixture, rows, model=MODEL):
    return objective(P, rows.project(P), mixture, rows, model).value


def gradient_at(P, mixture, rows, model=MODEL):
    slope = objective(P, rows.project(P), mixture, rows, model)
    return rows.by_columns(slope.by_Z) + slope.by_P


def test_objective_is_the_sum_of_its_terms_computed_row_by_row(sample, make_mixture, rng):
    mixture, P = make_mixture(), rng.standard_normal((d, q))
    X, labels, chunks, w = sample.X.X, sample.labels, sample.chunks, sample.weights
    K = P.T @ ((X.T * w) @ X / w.sum() + SHRINKAGE * np.eye(d)) @ P
    values, U = np.linalg.eigh(K)
    A = P @ (U / np.sqrt(values)) @ U.T
    p = brute_densities(mixture, X @ A)
    given = p / p.sum(axis=0)
    expected = -MODEL.ridge / 2 * np.sum(A**2)
    expected += sum(w[i] * np.log(given[labels[i], i]) for i in range(n) if labels[i] >= 0)
    expected += MODEL.unlabelled_weight * sum(
        w[i] * np.log(p[:, i].sum()) for i in range(n) if labels[i] < 0
    )
    for g in range(5):
        own = np.flatnonzero(chunks == g)
        reported = (1 - WRONG_MEMBERS) * given[:, own] + WRONG_MEMBERS / len(given)
        expected += MODEL.chunk_weight * np.log(np.prod(reported ** w[own], axis=1).sum())
    assert_allclose(value_at(P, mixture, arrange(sample)), expected, rtol=1e-10)


ONE_TERM = {
    "labelled": {},
    "chunks": {"chunk_weight": 0.7},
    "unlabelled": {"unlabelled_weight": 0.3},
    "ridge": {"ridge": 0.4},
    "all": MODEL._asdict(),
}


@pytest.mark.parametrize("as_printed", [False, True], ids=["invariant", "paper"])
@pytest.mark.parametrize("per_gaussian", [False, True])
@pytest.mark.parametrize("term", ONE_TERM)
def test_gradient_of_each_term_equals_central_differences(
    sample, make_mixture, rng, term, per_gaussian, as_printed
):
    none = MODEL._replace(chunk_weight=0.0, unlabelled_weight=0.0, ridge=0.0)
    model = none._replace(**ONE_TERM[term])._replace(as_printed=as_printed)
    mixture, rows = make_mixture(per_gaussian), arrange(sample)
    for _ in range(4):
        P = rng.standard_normal((d, q))
        expected = numeric(lambda P: value_at(P, mixture, rows, model), P)
        assert relative_error(gradient_at(P, mixture, rows, model), expected) < 1e-6


def test_gradient_of_pairs_apart_equals_central_differences(sample, make_mixture, rng):
    """Also where a row is in several pairs, has a label, or is in a chunk."""
    A = np.triu(rng.random((n, n)) < 0.1, 1).astype(float)
    apart = sample._replace(apart=sparse.csr_array(A + A.T))
    model = MODEL._replace(unlabelled_weight=0.0, ridge=0.0)
    mixture, rows = make_mixture(), arrange(apart)
    P = rng.standard_normal((d, q))
    expected = numeric(lambda P: value_at(P, mixture, rows, model), P)
    assert relative_error(gradient_at(P, mixture, rows, model), expected) < 1e-6
    assert value_at(P, mixture, rows, model) < value_at(P, mixture, arrange(sample), model)


def test_printed_equation_8_is_not_the_gradient(sample, make_mixture, rng):
    """E-PGK07-2: p(Ax, c) stands where p(c, k | Ax) belongs."""
    mixture, P, nothing = make_mixture(), rng.standard_normal((d, q)), np.full(n, -1)
    rows = arrange(sample._replace(labels=nothing, chunks=nothing))
    model = Model(q, 0.0, 1.0, 0.0, 0.0, as_printed=True)
    p = brute_densities(mixture, rows.project(P))

    def printed():
        """-sum over g and i of p(z_i, c) Sigma^-1 (z_i - mu_g) x_i' as in (8)."""
        by_Z = np.zeros((n, q))
        for g, c in enumerate(mixture.class_of):
            S = mixture.covariances[mixture.covariance_of[g]]
            away = np.linalg.solve(S, (rows.project(P) - mixture.means[g]).T).T
            by_Z -= (rows.weights * p[c])[:, None] * away
        return rows.by_columns(by_Z)

    def log_density(P):
        return rows.weights @ np.log(brute_densities(mixture, rows.project(P)).sum(axis=0))

    expected = numeric(log_density, P)
    assert_allclose(value_at(P, mixture, rows, model), log_density(P))
    assert relative_error(gradient_at(P, mixture, rows, model), expected) < 1e-6
    assert relative_error(printed(), expected) > 0.5


def likelihood_and_prior(mixture, Z, rows):
    prior = prior_of(Z, rows, MODEL)
    return em_step(mixture, Z, rows, MODEL)[1] + log_prior(mixture, prior)


@pytest.mark.parametrize("per_gaussian", [False, True])
def test_em_never_descends_with_chunks(sample, make_mixture, per_gaussian):
    rows, mixture, history = arrange(sample), make_mixture(per_gaussian), []
    Z = rows.project(np.eye(d, q))
    for _ in range(300):
        history.append(likelihood_and_prior(mixture, Z, rows))
        mixture, _ = em_step(mixture, Z, rows, MODEL)
    assert np.diff(history).min() > -1e-10
    assert history[-1] > history[0] + 1


def test_em_likelihood_is_the_one_computed_row_by_row(sample, make_mixture):
    mixture, rows = make_mixture(), arrange(sample)
    labels, chunks, w = sample.labels, sample.chunks, sample.weights
    p = brute_densities(mixture, sample.X.X[:, :2])
    expected = sum(w[i] * np.log(p[labels[i], i]) for i in range(n) if labels[i] >= 0)
    alone = (labels < 0) & (chunks < 0)
    expected += MODEL.em_weight * w[alone] @ np.log(p[:, alone].sum(axis=0))
    for g in range(5):
        own = np.flatnonzero(chunks == g)
        members = (1 - WRONG_MEMBERS) * p[:, own] / mixture.alpha[:, None]
        given = np.prod((members + WRONG_MEMBERS * p[:, own].sum(axis=0)) ** w[own], axis=1)
        expected += MODEL.em_weight * np.log(mixture.alpha @ given)
    assert_allclose(em_step(mixture, rows.project(np.eye(d, q)), rows, MODEL)[1], expected)


def test_counting_rows_of_chunks_in_the_class_weights_descends(sample, make_mixture):
    """E-PGK07-3: from an EM optimum, alpha by rows loses likelihood."""
    chunks = np.where(np.arange(n) < 40, sample.chunks, 50)
    rows = arrange(sample._replace(chunks=chunks, weights=np.ones(n)))
    Z, mixture = rows.project(np.eye(d, q)), make_mixture()
    for _ in range(300):
        mixture, _ = em_step(mixture, Z, rows, MODEL)
    best = likelihood_and_prior(mixture, Z, rows)
    moments, _ = em_moments(mixture, Z, rows, MODEL)
    by_rows = np.bincount(mixture.class_of, moments.gaussians)
    counted = mixture._replace(alpha=by_rows / by_rows.sum())
    assert likelihood_and_prior(counted, Z, rows) < best - 0.01


def test_paper_objective_has_no_maximum_and_the_invariant_one_does_not_move(
    sample, make_mixture, rng
):
    """E-PGK07-4: shrinking the subspace with its mixture raises (2) for ever."""
    P, mixture, rows = rng.standard_normal((d, q)), make_mixture(), arrange(sample)
    printed = MODEL._replace(as_printed=True, chunk_weight=0.0, ridge=0.1)
    values = []
    for scale in (1.0, 1e-2, 1e-4, 1e-8):
        M = scale * np.eye(q)
        values.append(value_at(P @ M, moved(mixture, M), rows, printed))
        assert_allclose(value_at(P @ M, mixture, rows), value_at(P, mixture, rows))
    assert np.all(np.diff(values) > 10)


def test_one_direction_collapses_under_the_paper_objective_only(sample):
    X, rows = sample.X.X, arrange(sample)
    steps = {}  # until one direction has a tenth of the spread of the other; how soon is chance
    for as_printed, most in ((True, 1000), (False, 120)):
        model = MODEL._replace(as_printed=as_printed, unlabelled_weight=1.0, ridge=1e-3)
        state = start_at(X.T @ X[:, :q] / n, rows, sample.class_of, model)
        for steps[as_printed] in range(most):
            state, _ = step(state, rows, model)
            largest, least = np.linalg.svd(X @ state.P, compute_uv=False)
            if least < 0.1 * largest:
                break
    assert least > 0.8 * largest  # of the last
    assert steps[True] < 999
    assert steps[False] == 119


def test_objective_and_classes_do_not_depend_on_the_coordinates(sample, make_mixture, rng):
    P, mixture, rows = rng.standard_normal((d, q)), make_mixture(), arrange(sample)
    B = P @ rng.standard_normal((q, q))
    PT, ZT = scaled(P, rows.project(P), rows, MODEL)
    BT, ZB = scaled(B, rows.project(B), rows, MODEL)
    turn = np.linalg.lstsq(PT, BT, rcond=None)[0]
    assert_allclose(turn @ turn.T, np.eye(q), atol=1e-10)
    turned = moved(mixture, turn)
    assert_allclose(value_at(B, turned, rows), value_at(P, mixture, rows), rtol=1e-10)
    L, _ = class_densities(whiten(mixture), ZT)
    L_there, _ = class_densities(whiten(turned), ZB)
    assert_allclose(L_there - L_there[0], L - L[0], atol=1e-8)


def test_each_accepted_step_of_the_projection_ascends(sample, rng, monkeypatch):
    rows = arrange(sample)
    state = start_at(rng.standard_normal((d, q)), rows, sample.class_of, MODEL)
    monkeypatch.setattr(alternation, "N_EM", 0)
    history = []
    for _ in range(30):
        state, value = step(state, rows, MODEL)
        history.append(value)
    assert np.diff(history).min() >= -1e-14 * abs(history[-1])
    assert_allclose(state.Z, rows.project(state.P), atol=1e-8)
    S = rows.covariance(state.Z) + SHRINKAGE * state.P.T @ state.P
    assert_allclose(S, np.eye(q), atol=1e-8)


@pytest.mark.parametrize("as_printed", [False, True])
def test_slope_along_a_direction_is_that_of_the_objective(sample, rng, monkeypatch, as_printed):
    tried = []

    def search(along, value, slope, guess):
        tried.append((along, value, slope))
        return guess

    monkeypatch.setattr(alternation, "line_search", search)
    rows, model = arrange(sample), MODEL._replace(as_printed=as_printed)
    state = start_at(rng.standard_normal((d, q)), rows, sample.class_of, model)
    step(step(state, rows, model)[0], rows, model)
    for along, value, slope in tried:
        assert_allclose(along(0.0), (value, slope))
        for t in (1e-3, 0.01):
            expected = (along(t + 1e-7)[0] - along(t - 1e-7)[0]) / 2e-7
            assert_allclose(along(t)[1], expected, rtol=1e-5, atol=1e-5)


def test_a_vanished_direction_still_has_a_prior(sample):
    """As printed the prior follows the rows, and stays positive definite where they do not vary."""
    rows = arrange(sample)
    Z = rows.project(np.eye(d, q)) * [1.0, 0.0]
    prior = prior_of(Z, rows, MODEL._replace(as_printed=True))
    assert prior.points == 1e-3
    assert_allclose(prior.covariance[0, 0], rows.covariance(Z)[0, 0], rtol=1e-6)
    assert_allclose(prior.covariance[1, 1] / prior.covariance[0, 0], 1e-8)
    invariant = prior_of(Z, rows, MODEL)
    assert invariant.points == 4
    assert_allclose(invariant.covariance, PRIOR_SCALE * np.eye(2))


def test_blocks_of_rows_do_not_change_the_values(sample, make_mixture, monkeypatch):
    mixture, whole = make_mixture(), arrange(sample)
    Z = whole.project(np.eye(d, q))
    value, gradient = data_terms(mixture, Z, whole, MODEL)
    moments, likelihood = em_moments(mixture, Z, whole, MODEL)
    monkeypatch.setattr(rows, "BLOCK_ROWS", 7)
    cut = arrange(sample)
    assert len(cut.blocks) > 6
    # Small blocks hold one class each, of which EM takes the Gaussians alone.
    assert {block.only for block in cut.blocks if isinstance(block, rows.Labelled)} == {0, 1, 2}
    again, cut_gradient = data_terms(mixture, cut.project(np.eye(d, q)), cut, MODEL)
    assert_allclose(again, value)
    assert_allclose(cut.restore(cut_gradient), whole.restore(gradient))
    cut_moments, cut_likelihood = em_moments(mixture, Z, cut, MODEL)
    assert_allclose(cut_likelihood, likelihood)
    for ours, expected in zip(cut_moments, moments, strict=True):
        assert_allclose(ours, expected, atol=1e-12)


def test_planted_subspace_is_found(rng):
    """Classes differ in two of eight directions; the others are wider and say nothing."""
    truth = ortho_group.rvs(8, random_state=1)[:, :2]
    y = rng.integers(3, size=600)
    centres = 4 * np.array([[0, 1], [1, -0.5], [-1, -0.5]])
    X = 3 * rng.standard_normal((600, 8))
    X += (centres[y] + rng.standard_normal((600, 2)) - X @ truth) @ truth.T
    X -= X.mean(axis=0)
    labels, nothing = np.where(rng.random(600) < 0.3, y, -1), np.full(600, -1)
    rows = arrange(Sample(Matrix(X), labels, nothing, np.ones(600), np.arange(3), 8.0))
    state = start_at(rng.standard_normal((8, 2)), rows, np.arange(3), MODEL)
    for _ in range(40):
        state, _ = step(state, rows, MODEL)
    cosines = np.linalg.svd(np.linalg.qr(state.P)[0].T @ truth, compute_uv=False)
    assert cosines.min() > 0.97


def test_gradient_by_rows_is_that_of_the_log_joint(make_mixture, rng):
    mixture, Z, parts = make_mixture(True), rng.standard_normal((4, q)), rng.random((6, 4))
    white = whiten(mixture)
    expected = numeric(lambda Z: np.sum(parts * log_joint(white, Z)), Z)
    assert_allclose(row_gradient(white, parts, Z), expected, rtol=1e-6)


def peak(t):
    return -((t - 3.0) ** 2), -2 * (t - 3.0)


@pytest.mark.parametrize("guess", [1e-4, 0.1, 3.0, 50.0])
def test_line_search_finds_the_top_from_any_guess(guess):
    t = line_search(peak, *peak(0.0), guess)
    assert abs(peak(t)[1]) <= 0.4 * 6
    assert peak(t)[0] > peak(0.0)[0]


def test_line_search_steps_back_from_where_the_function_ends():
    def along(t):
        return (np.log1p(-t) + 3 * t, 3 - 1 / (1 - t)) if t < 1 else (np.nan, np.nan)

    t = line_search(along, 0.0, 2.0, 5.0)
    assert 0 < t < 1 and along(t)[0] > 0


def test_line_search_gives_no_length_where_nothing_rises():
    assert line_search(lambda t: (-t, -1.0), 0.0, 1.0, 1.0) == 0.0
    assert line_search(peak, 0.0, 0.0, 1.0) == 0.0


def cubic(t):
    """The value and the slope of a curve whose top is at 1 / 3."""
    return t - 2 * t**2 + t**3, 1 - 4 * t + 3 * t**2


@pytest.mark.parametrize("ends", [(0.0, 0.8), (0.8, 0.0)])
def test_between_two_ends_the_top_of_the_cubic_is_taken(ends):
    low, high = (alternation.Point(t, *cubic(t)) for t in ends)
    assert_allclose(alternation._between(low, high), 1 / 3)


@pytest.mark.parametrize("ends, kept", [((0.3333, 0.8), 0.1), ((0.8, 0.3333), 0.9)])
def test_a_top_at_an_end_is_kept_away_from_it(ends, kept):
    low, high = (alternation.Point(t, *cubic(t)) for t in ends)
    assert_allclose(alternation._between(low, high), low.t + kept * (high.t - low.t))


def test_line_search_goes_on_while_the_function_rises():
    """Four times as far each time; the ends of a bracket are set by a fall or by a slope down."""
    tried = []

    def gentle(t):
        tried.append(t)
        return 0.5 * t - t**2 / 400, 0.5 - t / 200

    assert line_search(gentle, *gentle(0.0), 1.0) == 64.0
    assert tried == [0.0, 1.0, 4.0, 16.0, 64.0]


@pytest.mark.parametrize(
    ("value", "rises"), [(np.inf, False), (np.nan, False), (0.5, False), (1.0, False), (1.1, True)]
)
def test_a_step_rises_enough_if_its_value_is_finite_and_higher(value, rises):
    start = alternation.Point(0.0, 1.0, 2.0)
    assert alternation._rises_enough(alternation.Point(0.5, value, 0.0), start) == rises


def test_rows_elsewhere_add_to_value_and_slope(rng):
    P, by_K = rng.standard_normal((4, 2)), np.eye(2)
    others = SimpleNamespace(
        covariance=2 * np.eye(4), gradient=np.ones((4, 2)), value=lambda P: float(P.sum())
    )
    before = alternation.Slope(1.5, np.zeros((3, 2)), np.zeros((4, 2)))
    found = alternation._with_others(before, P, by_K, others)
    assert_allclose(found.value, 1.5 + P.sum())
    assert_allclose(found.by_P, 4 * P + 1)
