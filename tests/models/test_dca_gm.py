"""DCA-GM against brute force, finite differences, and the printed forms that fail."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, ortho_group

from gnomon.inference.search import line_search
from gnomon.linalg.data import Matrix
from gnomon.models import dca_gm
from gnomon.models.dca_gm import Settings, em_step, objective
from gnomon.stats import class_terms as terms
from gnomon.stats import known_rows
from gnomon.stats.known_rows import arrange
from gnomon.stats.mixture import Mixture, by_class, forms, log_joint, log_prior, moved

SETTINGS = Settings(
    chunk_weight=0.7,
    unlabelled_weight=0.3,
    em_weight=0.5,
    ridge=0.4,
    shrinkage=1e-2,
    prior_count=4.0,
    prior_scale=0.05,
)
n, d, q = 60, 5, 2


@pytest.fixture
def sample(rng):
    """Rows of three classes with unequal weights: 20 labelled, 16 in chunks, 24 alone."""
    classes = rng.integers(3, size=n)
    X = rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((3, d))[classes]
    X -= X.mean(axis=0)
    codes = np.where(np.arange(n) < 20, classes, -1)
    codes[:3] = [0, 1, 2]
    chunks = np.full(n, -1)
    chunks[24:40] = np.sort(np.r_[np.arange(5), np.arange(5), np.arange(5), 0])
    weights = rng.uniform(0.5, 2, size=n)
    return X, arrange(codes, chunks, weights), codes, chunks


def some_mixture(rng, per_gaussian=False, sizes=(2, 1, 3)):
    owner = np.repeat(np.arange(len(sizes)), sizes)
    form = forms(owner, per_gaussian)
    m, roots = len(owner), rng.standard_normal((form.max() + 1, q, q))
    beta = rng.uniform(0.2, 1, m)
    return Mixture(
        owner,
        form,
        rng.dirichlet(np.ones(len(sizes))),
        beta / np.bincount(owner, beta)[owner],
        rng.standard_normal((m, q)),
        roots @ roots.swapaxes(1, 2) + 0.5 * np.eye(q),
    )


def brute_densities(mixture, Z):
    """p(z, c) by classes and rows, the obvious way."""
    out = np.zeros((len(mixture.alpha), len(Z)))
    for g, c in enumerate(mixture.owner):
        density = multivariate_normal(mixture.means[g], mixture.covariances[mixture.form[g]])
        out[c] += mixture.alpha[c] * mixture.beta[g] * density.pdf(Z)
    return out


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


def projected_gradient(X, rows, mixture, settings):
    """J as a function of P, and its gradient with one product with X."""

    def value(P):
        return objective(rows.sort(X @ P), P.T @ P, mixture, rows, settings).value

    def gradient(P):
        slope = objective(rows.sort(X @ P), P.T @ P, mixture, rows, settings)
        return X.T @ rows.restore(slope.by_Z) + 2 * P @ slope.by_G

    return value, gradient


def test_objective_is_the_sum_of_its_terms_computed_row_by_row(sample, rng):
    X, rows, codes, chunks = sample
    mixture, P = some_mixture(rng), rng.standard_normal((d, q))
    settings = SETTINGS
    w = rows.restore(rows.weights)
    K = P.T @ ((X.T * w) @ X / w.sum() + settings.shrinkage * np.eye(d)) @ P
    values, U = np.linalg.eigh(K)
    A = P @ (U / np.sqrt(values)) @ U.T
    p = brute_densities(mixture, X @ A)
    given = p / p.sum(axis=0)
    expected = -settings.ridge / 2 * np.sum(A**2)
    expected += sum(w[i] * np.log(given[codes[i], i]) for i in range(n) if codes[i] >= 0)
    expected += settings.unlabelled_weight * sum(
        w[i] * np.log(p[:, i].sum()) for i in range(n) if codes[i] < 0
    )
    for g in range(5):
        own = np.flatnonzero(chunks == g)
        expected += settings.chunk_weight * np.log(np.prod(given[:, own] ** w[own], axis=1).sum())
    value, _ = projected_gradient(X, rows, mixture, settings)
    assert_allclose(value(P), expected, rtol=1e-10)


ONE_TERM = {
    "labelled": {},
    "chunks": {"chunk_weight": 0.7},
    "unlabelled": {"unlabelled_weight": 0.3},
    "ridge": {"ridge": 0.4},
    "all": SETTINGS._asdict(),
}


@pytest.mark.parametrize("as_printed", [False, True], ids=["invariant", "paper"])
@pytest.mark.parametrize("per_gaussian", [False, True])
@pytest.mark.parametrize("term", ONE_TERM)
def test_gradient_of_each_term_equals_central_differences(
    sample, rng, term, per_gaussian, as_printed
):
    X, rows, _, _ = sample
    none = SETTINGS._replace(chunk_weight=0.0, unlabelled_weight=0.0, ridge=0.0)
    settings = none._replace(**ONE_TERM[term])._replace(as_printed=as_printed)
    mixture = some_mixture(rng, per_gaussian)
    value, gradient = projected_gradient(X, rows, mixture, settings)
    for _ in range(4):
        P = rng.standard_normal((d, q))
        assert relative_error(gradient(P), numeric(value, P)) < 1e-6


def class_gradient(rng, term):
    """Error of the parts a term returns against differences by the log densities."""
    L = rng.standard_normal((3, 12))
    return relative_error(term(L).parts, numeric(lambda L: term(L).value, L))


STARTS = np.array([0, 3, 4, 9])


@pytest.mark.parametrize(
    "term",
    [
        lambda L: terms.label_given_row(L, np.arange(12) % 3, np.arange(1, 13) / 7),
        lambda L: terms.label_and_row(L, np.arange(12) % 3, np.arange(1, 13) / 7),
        lambda L: terms.row(L, np.arange(1, 13) / 7),
        lambda L: terms.chunk_given_rows(L, STARTS, np.arange(1, 13) / 7),
        lambda L: terms.chunk_of_rows(L, STARTS, np.arange(1, 13) / 7, np.log([0.5, 0.2, 0.3])),
        lambda L: terms.chunk_ratio(L, STARTS, np.arange(1, 13) / 7, np.log([0.5, 0.2, 0.3])),
    ],
    ids=["conditional", "joint", "row", "chunk", "chunk in EM", "ratio"],
)
def test_parts_are_derivatives_by_the_log_densities(rng, term):
    assert class_gradient(rng, term) < 1e-7


def test_printed_equation_8_is_not_the_gradient(sample, rng):
    """E-PGK07-2: p(Ax, c) stands where p(c, k | Ax) belongs."""
    X, _, _, _ = sample
    mixture, P = some_mixture(rng), rng.standard_normal((d, q))

    def log_density(P):
        return np.log(brute_densities(mixture, X @ P).sum(axis=0)).sum()

    def gradient(weights):
        """-sum of weights[g, i] Sigma^-1 (z_i - mu_g) x_i' as in (8)."""
        out = np.zeros((d, q))
        for g, s in enumerate(mixture.form):
            away = np.linalg.solve(mixture.covariances[s], (X @ P - mixture.means[g]).T).T
            out -= X.T @ (weights[g][:, None] * away)
        return out

    p = brute_densities(mixture, X @ P)
    joint = log_joint(mixture, X @ P)
    right = np.exp(joint - np.log(p.sum(axis=0)))
    printed = p[mixture.owner]
    expected = numeric(log_density, P)
    assert relative_error(gradient(right), expected) < 1e-6
    assert relative_error(gradient(printed), expected) > 0.5


def test_ratio_3_is_no_probability_and_grows_without_bound():
    """E-PGK07-1: far classes, a chunk of three."""
    L = np.log(np.array([[0.5, 0.5, 0.5], [1e-30, 1e-30, 1e-30]]))
    chunk, weights = np.array([0]), np.ones(3)
    assert_allclose(np.exp(terms.chunk_ratio(L, chunk, weights, np.log([0.5, 0.5])).value), 4)
    rare = L + np.log([[0.002], [1.998]])
    value = np.exp(terms.chunk_ratio(rare, chunk, weights, np.log([0.001, 0.999])).value)
    assert_allclose(value, 1e6)
    assert np.exp(terms.chunk_given_rows(rare, chunk, weights).value) <= 1


def test_chunk_of_one_is_an_unlabelled_row(rng):
    L, w = rng.standard_normal((3, 7)), np.ones(7)
    chunks = terms.chunk_of_rows(L, np.arange(7), w, np.log([0.2, 0.3, 0.5]))
    rows = terms.row(L, w)
    for a, b in zip(chunks, rows, strict=True):
        assert_allclose(a, b, rtol=1e-14)
    assert abs(terms.chunk_given_rows(L, np.arange(7), w).value) < 1e-14


def test_chunks_of_one_do_not_change_the_arrangement(sample):
    _, rows, codes, chunks = sample
    ones = chunks.copy()
    ones[50:] = 100 + np.arange(10)
    again = arrange(codes, ones, rows.restore(rows.weights))
    assert np.array_equal(again.order, rows.order)
    assert len(again.blocks) == len(rows.blocks)


def likelihood_and_prior(mixture, Z, rows, settings):
    prior = dca_gm.prior_of(Z, rows, settings)
    return em_step(mixture, Z, rows, settings)[1] + log_prior(mixture, prior)


@pytest.mark.parametrize("per_gaussian", [False, True])
def test_em_never_descends_with_chunks(sample, rng, per_gaussian):
    X, rows, _, _ = sample
    Z, mixture, history = rows.sort(X[:, :2]), some_mixture(rng, per_gaussian), []
    for _ in range(300):
        history.append(likelihood_and_prior(mixture, Z, rows, SETTINGS))
        mixture, _ = em_step(mixture, Z, rows, SETTINGS)
    assert np.diff(history).min() > -1e-10


def test_em_likelihood_is_the_one_computed_row_by_row(sample, rng):
    X, rows, codes, chunks = sample
    mixture = some_mixture(rng)
    settings = SETTINGS._replace(prior_count=0.0)
    Z, w = X[:, :2], rows.restore(rows.weights)
    p = brute_densities(mixture, Z)
    expected = sum(w[i] * np.log(p[codes[i], i]) for i in range(n) if codes[i] >= 0)
    alone = (codes < 0) & (chunks < 0)
    expected += settings.em_weight * w[alone] @ np.log(p[:, alone].sum(axis=0))
    for g in range(5):
        own = np.flatnonzero(chunks == g)
        given = np.prod((p[:, own] / mixture.alpha[:, None]) ** w[own], axis=1)
        expected += settings.em_weight * np.log(mixture.alpha @ given)
    assert_allclose(em_step(mixture, rows.sort(Z), rows, settings)[1], expected)


def test_counting_rows_of_chunks_in_the_class_weights_descends(sample, rng):
    """E-PGK07-3: from an EM optimum, alpha by rows loses likelihood."""
    X, _, codes, chunks = sample
    chunks = chunks.copy()
    chunks[40:] = 50
    rows = arrange(codes, chunks, np.ones(n))
    Z, mixture = rows.sort(X[:, :2]), some_mixture(rng)
    for _ in range(300):
        mixture, _ = em_step(mixture, Z, rows, SETTINGS)
    best = likelihood_and_prior(mixture, Z, rows, SETTINGS)
    moments, _ = dca_gm.em_moments(mixture, Z, rows, SETTINGS)
    by_rows = np.bincount(mixture.owner, moments.gaussians)
    counted = mixture._replace(alpha=by_rows / by_rows.sum())
    assert likelihood_and_prior(counted, Z, rows, SETTINGS) < best - 0.01


def test_paper_objective_has_no_maximum_and_the_invariant_one_does_not_move(sample, rng):
    """E-PGK07-4: shrinking the subspace with its mixture raises (2) for ever."""
    X, rows, _, _ = sample
    P, mixture = rng.standard_normal((d, q)), some_mixture(rng)
    printed = SETTINGS._replace(as_printed=True, chunk_weight=0.0, ridge=0.1)
    values = []
    for scale in (1.0, 1e-2, 1e-4, 1e-8):
        M = scale * np.eye(q)
        Z = rows.sort(X @ P @ M)
        G = M @ P.T @ P @ M
        values.append(objective(Z, G, moved(mixture, M), rows, printed).value)
        free = objective(Z, G, mixture, rows, SETTINGS).value
        assert_allclose(free, objective(rows.sort(X @ P), P.T @ P, mixture, rows, SETTINGS).value)
    assert np.all(np.diff(values) > 10)


def test_one_direction_collapses_under_the_paper_objective_only(sample, rng):
    X, rows, _, _ = sample
    owner = np.repeat(np.arange(3), 2)
    spread = {}
    for as_printed in (True, False):
        settings = SETTINGS._replace(as_printed=as_printed, unlabelled_weight=1.0, ridge=1e-3)
        state = dca_gm.start(X.T @ X[:, :q] / n, Matrix(X), rows, owner, settings)
        step = partial(dca_gm.step, X=Matrix(X), rows=rows, settings=settings, search=line_search)
        for _ in range(60):
            state, _ = step(state)
        spread[as_printed] = np.linalg.svd(X @ state.P, compute_uv=False)[-1] / np.sqrt(n)
    assert spread[True] < 0.1
    assert spread[False] > 0.5


def test_objective_and_classes_do_not_depend_on_the_coordinates(sample, rng):
    X, rows, _, _ = sample
    P, mixture = rng.standard_normal((d, q)), some_mixture(rng)
    M = rng.standard_normal((q, q))
    T, _ = dca_gm.whitening(rows.sort(X @ P), P.T @ P, rows, SETTINGS)
    B = P @ M
    TB, _ = dca_gm.whitening(rows.sort(X @ B), B.T @ B, rows, SETTINGS)
    turn = np.linalg.lstsq(P @ T, B @ TB, rcond=None)[0]
    assert_allclose(turn @ turn.T, np.eye(q), atol=1e-10)
    turned = moved(mixture, turn)
    value, _ = projected_gradient(X, rows, mixture, SETTINGS)
    value_there, _ = projected_gradient(X, rows, turned, SETTINGS)
    assert_allclose(value_there(B), value(P), rtol=1e-10)
    L = by_class(mixture, log_joint(mixture, X @ P @ T))
    L_there = by_class(turned, log_joint(turned, X @ B @ TB))
    assert_allclose(L_there - L_there[0], L - L[0], atol=1e-8)


def test_each_accepted_step_of_the_projection_ascends(sample, rng):
    X, rows, _, _ = sample
    owner = np.repeat(np.arange(3), 2)
    state = dca_gm.start(rng.standard_normal((d, q)), Matrix(X), rows, owner, SETTINGS)
    step = partial(
        dca_gm.step, X=Matrix(X), rows=rows, settings=SETTINGS._replace(n_em=0), search=line_search
    )
    history = []
    for _ in range(30):
        state, value = step(state)
        history.append(value)
    assert np.diff(history).min() >= 0
    assert_allclose(state.Z, rows.sort(X @ state.P), atol=1e-8)


def test_blocks_of_rows_do_not_change_the_values(sample, rng, monkeypatch):
    X, rows, codes, chunks = sample
    mixture, Z = some_mixture(rng), X[:, :2]
    value, gradient = dca_gm.data_terms(mixture, rows.sort(Z), rows, SETTINGS)
    monkeypatch.setattr(known_rows, "BLOCK_ROWS", 7)
    cut = arrange(codes, chunks, rows.restore(rows.weights))
    assert len(cut.blocks) > 6
    again, cut_gradient = dca_gm.data_terms(mixture, cut.sort(Z), cut, SETTINGS)
    assert_allclose(again, value)
    assert_allclose(cut.restore(cut_gradient), rows.restore(gradient))


def test_planted_subspace_is_found(rng):
    """Classes differ in two of eight directions; the others are wider and say nothing."""
    truth = ortho_group.rvs(8, random_state=1)[:, :2]
    y = rng.integers(3, size=600)
    centres = 4 * np.array([[0, 1], [1, -0.5], [-1, -0.5]])
    X = 3 * rng.standard_normal((600, 8))
    X += (centres[y] + rng.standard_normal((600, 2)) - X @ truth) @ truth.T
    X -= X.mean(axis=0)
    rows = arrange(np.where(rng.random(600) < 0.3, y, -1), np.full(600, -1), np.ones(600))
    owner = np.arange(3)
    state = dca_gm.start(rng.standard_normal((8, 2)), Matrix(X), rows, owner, SETTINGS)
    for _ in range(40):
        state, _ = dca_gm.step(state, Matrix(X), rows, SETTINGS, line_search)
    cosines = np.linalg.svd(np.linalg.qr(state.P)[0].T @ truth, compute_uv=False)
    assert cosines.min() > 0.97
