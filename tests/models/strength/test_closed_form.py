import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.models.strength import closed_form
from gnomon.models.strength.closed_form import (
    assemble,
    coordinates,
    in_latent_scale,
    labelled_rows,
    principal_space,
    supervise,
    truncated,
)
from gnomon.models.strength.completion import Outputs, Votes, complete
from gnomon.stats.gaussian import log_density

n, d, q, classes = 60, 9, 4, 4


def contrasts(count):
    Q, _ = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, :-1]]))
    return Q[:, 1:]


@pytest.fixture
def sample(rng):
    labels = np.arange(n) % classes
    X = rng.standard_normal((n, d)) * np.linspace(3, 0.5, d)
    X[:, -3:] += 1.5 * rng.standard_normal((classes, 3))[labels]
    labels = np.where(rng.random(n) < 0.5, labels, -1)
    return X, labels


def outputs(labels, code=None):
    code = contrasts(classes) if code is None else code
    observed = np.repeat((labels >= 0)[:, None], code.shape[1], axis=1)
    return Outputs(np.where(observed, code[labels], 0.0), observed, labels)


def space_of(X):
    return principal_space(*center(Matrix(X)), 150, np.random.default_rng(0))


def problem(X, labels, code=None):
    """Principal space and outputs of the sample."""
    return space_of(X), outputs(labels, code)


def completed(space, known):
    rows, weights = labelled_rows(space, known.observed)
    return complete(coordinates(space, rows), known.rows(rows), weights)


def embedding(X, labels, s, q=q, code=None):
    found = supervise(*problem(X, labels, code), q, s)
    return (X - X.mean(axis=0)) @ found.projection


def distances(T):
    return np.linalg.norm(T[:, None] - T[None], axis=2)


def test_no_supervision_is_pca(sample):
    X, labels = sample
    Xc = X - X.mean(axis=0)
    U, sizes, _ = np.linalg.svd(Xc, full_matrices=False)
    components = U[:, :q] * sizes[:q]
    T = embedding(X, labels, 0.0)
    assert_allclose(np.abs(T), np.abs(components), rtol=1e-9, atol=1e-9)


def test_no_supervision_is_probabilistic_pca(sample):
    X, labels = sample
    found = supervise(*problem(X, labels), q, 0.0)
    values, V = np.linalg.eigh(np.cov(X.T, bias=True))
    noise = values[:-q].mean()
    W = V[:, -q:] * np.sqrt(values[-q:] - noise)
    assert_allclose(found.state.sigma2, noise)
    assert_allclose(found.state.W @ found.state.W.T, W @ W.T, atol=1e-9)
    # E[z | x] of PPCA, and the covariance that goes with it.
    posterior = np.linalg.solve(
        found.state.W.T @ found.state.W + noise * np.eye(q), found.state.W.T
    )
    assert_allclose(found.projection * found.latent_scale, posterior.T, atol=1e-9)
    assert_allclose(
        found.latent_covariance,
        noise * np.linalg.inv(found.state.W.T @ found.state.W + noise * np.eye(q)),
        atol=1e-9,
    )


def test_full_supervision_has_one_direction_per_output(sample):
    X, labels = sample
    found = supervise(*problem(X, labels), 6, 1.0)
    active = np.linalg.norm(found.projection, axis=0) > 1e-8
    assert_allclose(active, [True] * (classes - 1) + [False] * (7 - classes))
    assert_allclose(found.target_share.sum(), 1)


def test_full_supervision_keeps_the_distances_of_the_completed_labels(sample):
    X, labels = sample
    basis, known = problem(X, labels)
    found = supervise(basis, known, classes - 1, 1.0)
    completed_labels = (X - X.mean(axis=0)) @ found.outputs.coef @ found.whitener
    T = (X - X.mean(axis=0)) @ found.projection
    ratio = distances(T)[0, 1:] / distances(completed_labels)[0, 1:]
    assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("s", [0.1, 0.5, 0.9])
def test_it_is_pca_of_the_joint_rows(sample, s):
    X, labels = sample
    basis, known = problem(X, labels)
    found = supervise(basis, known, q, s)
    Xc = X - X.mean(axis=0)
    C = Xc @ found.outputs.coef @ found.whitener
    tx, tc = np.sum(Xc**2) / n, np.sum(C**2) / n
    joint = np.hstack([np.sqrt((1 - s) / tx) * Xc, np.sqrt(s / tc) * C])
    U, sizes, _ = np.linalg.svd(joint, full_matrices=False)
    T = Xc @ found.projection
    assert_allclose(np.abs(T), np.abs(np.sqrt(tx) * U[:, :q] * sizes[:q]), atol=1e-8)
    assert_allclose((1 - s) * found.input_share + s * found.target_share, sizes[:q] ** 2 / n)


@pytest.mark.parametrize("s", [0.3, 0.8])
def test_em_at_tied_noise_reaches_the_closed_form(sample, s):
    """Theorem 2 of [YYTKW06] on the completed rows, its noises in the ratio that s states."""
    X, labels = sample
    basis, known = problem(X, labels)
    found = supervise(basis, known, q, s)
    Xc = X - X.mean(axis=0)
    C = Xc @ found.outputs.coef @ found.whitener
    tx, tc = np.sum(Xc**2) / n, np.sum(C**2) / n
    scale = np.sqrt(((1 - s) / s) * (tc / tx))
    D = np.hstack([Xc, C / scale])
    W = np.random.default_rng(1).standard_normal((D.shape[1], q))
    noise, trace = 1.0, []
    for _ in range(3000):
        W, noise, objective = tied_em_step(D, W, noise)
        trace.append(objective)
    assert np.diff(trace).min() > -1e-8
    own = np.vstack([found.state.W, found.state.W_y / scale])
    assert_allclose(W @ W.T, own @ own.T, rtol=1e-4, atol=1e-5)
    assert_allclose(noise, found.state.sigma2_y[0] / scale**2, rtol=1e-6)
    A = np.eye(q) + own.T @ own / noise
    assert_allclose(found.latent_covariance, np.linalg.inv(A), atol=1e-6)
    assert_allclose(
        Xc @ found.projection * found.latent_scale,
        np.linalg.solve(A, own.T @ D.T / noise).T,
        atol=1e-6,
    )


def tied_em_step(D, W, noise):
    """One EM step of probabilistic PCA on rows D, and the log likelihood it started from."""
    size = D.shape[1]
    M = W.T @ W + noise * np.eye(W.shape[1])
    cov = W @ W.T + noise * np.eye(size)
    S = D.T @ D / len(D)
    objective = -0.5 * len(D) * (np.linalg.slogdet(cov)[1] + np.trace(np.linalg.solve(cov, S)))
    Z = np.linalg.solve(M, W.T @ D.T).T
    ZZ = Z.T @ Z + len(D) * noise * np.linalg.inv(M)
    W = np.linalg.solve(ZZ, Z.T @ D).T
    return W, (np.sum(D**2) - np.sum(W * (D.T @ Z))) / D.size, objective


def test_the_share_of_x_falls_and_that_of_the_labels_rises_with_supervision(sample):
    X, labels = sample
    basis, known = problem(X, labels)
    fits = [supervise(basis, known, 2, s) for s in np.linspace(0, 1, 11)]
    assert np.all(np.diff([fit.input_share.sum() for fit in fits]) <= 1e-10)
    assert np.all(np.diff([fit.target_share.sum() for fit in fits]) >= -1e-10)


def test_renaming_classes_changes_nothing(sample):
    X, labels = sample
    renamed = np.where(labels >= 0, np.array([2, 0, 3, 1])[labels], -1)
    T, again = embedding(X, labels, 0.7), embedding(X, renamed, 0.7)
    assert_allclose(distances(T), distances(again), atol=1e-9)


def test_scale_and_shift_change_nothing_but_the_scale(sample):
    X, labels = sample
    T = embedding(X, labels, 0.7)
    assert_allclose(embedding(100 * X + 1e4, labels, 0.7), 100 * T, atol=1e-6)
    scaled = embedding(X, labels, 0.7, code=7 * contrasts(classes) + 3)
    assert_allclose(distances(scaled), distances(T), atol=1e-9)


@pytest.mark.parametrize("s", [0.0, 0.8, 1.0])
def test_noise_of_x_is_the_most_likely_one_for_the_loadings(sample, s):
    X, labels = sample
    found = supervise(*problem(X, labels), q, s)
    _, Xc = center(Matrix(X))

    def density(sigma2):
        return log_density(Xc, found.state.W, sigma2).sum()

    noise = found.state.sigma2
    assert density(noise) > max(density(noise * f) for f in (0.999, 1.001))


def test_prediction_is_centred_on_all_rows(sample):
    X, labels = sample
    basis, known = problem(X, labels)
    found = supervise(basis, known, q, 0.5)
    labelled = labels >= 0
    predicted = found.outputs.offset + (X - X.mean(axis=0)) @ found.outputs.coef
    stage = completed(basis, known)
    F = (X - X.mean(axis=0))[labelled] @ basis.axes
    assert_allclose(predicted[labelled], stage.offset + F @ stage.B, atol=1e-9)


def test_without_labels_it_is_pca(sample):
    X, labels = sample
    assert_allclose(embedding(X, np.full(n, -1), 0.9), embedding(X, labels, 0.0), atol=1e-9)


def test_weights_count_as_repeated_rows(sample, rng):
    X, labels = sample
    counts = rng.integers(0, 4, n)
    again = np.repeat(np.arange(n), counts)
    space = principal_space(*center(Weighted(Matrix(X), counts)), 150, rng)
    weighted = supervise(space, outputs(labels), q, 0.6)
    repeated = supervise(*problem(X[again], labels[again]), q, 0.6)
    assert_allclose(weighted.projection, repeated.projection, atol=1e-8)
    assert_allclose(weighted.state.sigma2, repeated.state.sigma2)


def test_numbers_with_gaps(sample, rng):
    X, _ = sample
    Y = X[:, -2:] + 0.1 * rng.standard_normal((n, 2))
    observed = rng.random((n, 2)) < 0.6
    found = supervise(space_of(X), Outputs(np.where(observed, Y, 0.0), observed), 2, 0.9)
    predicted = found.outputs.offset + (X - X.mean(axis=0)) @ found.outputs.coef
    for j in range(2):
        hidden = ~observed[:, j]
        assert np.corrcoef(predicted[hidden, j], Y[hidden, j])[0, 1] > 0.9


def test_sparse_rows_give_the_same(sample):
    X, labels = sample
    X = np.where(np.abs(X) > 1.5, X, 0.0)
    fits = [supervise(*problem(rows, labels), q, 0.5) for rows in (X, sparse.csr_array(X))]
    assert_allclose(fits[0].projection, fits[1].projection, atol=1e-9)


def test_more_components_than_directions_are_zero(rng):
    X = rng.standard_normal((20, 3))
    labels = np.arange(20) % classes
    found = supervise(*problem(X, labels), 5, 0.5)
    assert found.projection.shape == (3, 5)
    assert not found.projection[:, 3:].any()
    assert not found.latent_scale[3:].any()
    assert np.all(found.latent_scale[:3] > 0)


def test_a_truncated_space_keeps_the_total(sample):
    X, labels = sample
    basis, known = problem(X, labels)
    small = truncated(basis, 5)
    found = assemble(small, completed(small, known), 3, 0.5)
    assert small.total == basis.total
    outside = basis.variances[5:].sum() / d
    assert found.state.sigma2 > outside


def test_rows_that_are_all_equal_have_loadings_of_next_to_nothing():
    basis, known = problem(np.ones((10, 3)), np.arange(10) % classes)
    found = supervise(basis, known, 2, 0.9)
    assert_allclose(found.state.W, 0, atol=1e-100)
    assert np.linalg.norm(found.projection, axis=0).max() <= 1 + 1e-12


def test_a_space_from_products_is_the_same(sample, monkeypatch):
    X, labels = sample
    exact, known = problem(X, labels)
    monkeypatch.setattr(closed_form, "route", lambda X, size: "subspace")
    basis = space_of(X)
    assert_allclose(basis.variances, exact.variances, rtol=1e-9)
    fits = [supervise(p, known, q, 0.5).projection for p in (basis, exact)]
    assert_allclose(fits[0], fits[1], atol=1e-7)


def test_without_outputs_it_is_pca(sample):
    X, labels = sample
    basis, known = problem(X, labels)
    found = supervise(basis, Outputs(known.Y[:, :0], known.observed[:, :0]), q, 0.7)
    expected = supervise(basis, known, q, 0.0)
    assert_allclose(found.projection, expected.projection)
    assert found.outputs.coef.shape == (d, 0)
    assert found.state.W_y.shape == (0, q)
    assert found.whitener.shape == (0, 0)


def test_a_part_of_very_many_labelled_rows_decides(sample, monkeypatch):
    X, labels = sample
    X, labels = np.tile(X, (40, 1)), np.tile(labels, 40)
    whole = embedding(X, labels, 0.5)
    monkeypatch.setattr(closed_form, "RULE", closed_form.RULE._replace(most_rows=300))
    basis, known = problem(X, labels)
    rows, _ = labelled_rows(basis, known.observed)
    assert len(rows) == 300
    assert np.all(labels[rows] >= 0)
    part = embedding(X, labels, 0.5)
    assert_allclose(part @ part.T, whole @ whole.T, atol=0.2 * np.max(np.abs(whole @ whole.T)))


def test_the_latent_scale_is_that_of_z(sample):
    X, labels = sample
    found = supervise(*problem(X, labels), q, 0.5)
    latent = in_latent_scale(found)
    assert_allclose(latent.projection, found.projection * found.latent_scale)
    assert_allclose(latent.latent_scale, 1)
    assert latent.state is found.state


def test_votes_that_were_not_fitted_are_fitted_with_all_labelled_rows(sample):
    X, labels = sample
    basis, known = problem(X, labels)
    rows = np.flatnonzero(labels < 0)[:6]
    winners = np.arange(6) % classes
    votes = Votes(rows, winners, contrasts(classes)[winners], np.ones(6))
    found = supervise(basis, known, q, 0.5, votes)
    more = labels.copy()
    more[rows] = winners
    expected = supervise(basis, outputs(more), q, 0.5)
    assert_allclose(found.projection, expected.projection, atol=1e-9)
    alone = supervise(basis, known, q, 0.5)
    assert_allclose(found.outputs.covariance, alone.outputs.covariance)


def test_rows_that_are_all_equal_have_one_direction(rng):
    space = principal_space(*center(Matrix(np.full((6, 4), 3.0))), 3, rng)
    assert space.axes.shape == (4, 1)
