import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.models import supervision
from gnomon.models.supervision import assemble, completed, pool, supervise, truncated
from gnomon.stats.gaussian import log_density

n, d, q, classes = 60, 9, 4, 4


def contrasts(count):
    Q, _ = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, :-1]]))
    return Q[:, 1:]


@pytest.fixture
def sample(rng):
    codes = np.arange(n) % classes
    X = rng.standard_normal((n, d)) * np.linspace(3, 0.5, d)
    X[:, -3:] += 1.5 * rng.standard_normal((classes, 3))[codes]
    codes = np.where(rng.random(n) < 0.5, codes, -1)
    return X, codes


def problem(X, codes, code=None):
    """Pool, outputs and mask of the sample."""
    code = contrasts(classes) if code is None else code
    observed = np.repeat((codes >= 0)[:, None], code.shape[1], axis=1)
    _, Xc = center(Matrix(X))
    return pool(Xc, 150, np.random.default_rng(0)), np.where(observed, code[codes], 0.0), observed


def embedding(X, codes, s, q=q, code=None):
    basis, Y, observed = problem(X, codes, code)
    found = supervise(basis, Y, observed, q, s, codes)
    return (X - X.mean(axis=0)) @ found.projection


def distances(T):
    return np.linalg.norm(T[:, None] - T[None], axis=2)


def test_no_supervision_is_pca(sample):
    X, codes = sample
    Xc = X - X.mean(axis=0)
    U, sizes, _ = np.linalg.svd(Xc, full_matrices=False)
    scores = U[:, :q] * sizes[:q]
    T = embedding(X, codes, 0.0)
    assert_allclose(np.abs(T), np.abs(scores), rtol=1e-9, atol=1e-9)


def test_no_supervision_is_probabilistic_pca(sample):
    X, codes = sample
    found = supervise(*problem(X, codes), q, 0.0, codes)
    values, V = np.linalg.eigh(np.cov(X.T, bias=True))
    noise = values[:-q].mean()
    W = V[:, -q:] * np.sqrt(values[-q:] - noise)
    assert_allclose(found.sigma2, noise)
    assert_allclose(found.W @ found.W.T, W @ W.T, atol=1e-9)
    # E[z | x] of PPCA, and the covariance that goes with it.
    posterior = np.linalg.solve(found.W.T @ found.W + noise * np.eye(q), found.W.T)
    assert_allclose(found.projection * found.latent, posterior.T, atol=1e-9)
    assert_allclose(
        found.covariance, noise * np.linalg.inv(found.W.T @ found.W + noise * np.eye(q)), atol=1e-9
    )


def test_full_supervision_has_one_direction_per_output(sample):
    X, codes = sample
    found = supervise(*problem(X, codes), 6, 1.0, codes)
    active = np.linalg.norm(found.projection, axis=0) > 1e-8
    assert_allclose(active, [True] * (classes - 1) + [False] * (7 - classes))
    assert_allclose(found.y_share.sum(), 1)


def test_full_supervision_keeps_the_distances_of_the_completed_labels(sample):
    X, codes = sample
    basis, Y, observed = problem(X, codes)
    found = supervise(basis, Y, observed, classes - 1, 1.0, codes)
    completed_labels = (X - X.mean(axis=0)) @ found.coef @ found.whitener
    T = (X - X.mean(axis=0)) @ found.projection
    ratio = distances(T)[0, 1:] / distances(completed_labels)[0, 1:]
    assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("s", [0.1, 0.5, 0.9])
def test_it_is_pca_of_the_joint_rows(sample, s):
    X, codes = sample
    basis, Y, observed = problem(X, codes)
    found = supervise(basis, Y, observed, q, s, codes)
    Xc = X - X.mean(axis=0)
    C = Xc @ found.coef @ found.whitener
    tx, tc = np.sum(Xc**2) / n, np.sum(C**2) / n
    joint = np.hstack([np.sqrt((1 - s) / tx) * Xc, np.sqrt(s / tc) * C])
    U, sizes, _ = np.linalg.svd(joint, full_matrices=False)
    T = Xc @ found.projection
    assert_allclose(np.abs(T), np.abs(np.sqrt(tx) * U[:, :q] * sizes[:q]), atol=1e-8)
    assert_allclose((1 - s) * found.x_share + s * found.y_share, sizes[:q] ** 2 / n)


@pytest.mark.parametrize("s", [0.3, 0.8])
def test_em_at_tied_noise_reaches_the_closed_form(sample, s):
    """Theorem 2 of [YYTKW06] on the completed rows, its noises in the ratio that s states."""
    X, codes = sample
    basis, Y, observed = problem(X, codes)
    found = supervise(basis, Y, observed, q, s, codes)
    Xc = X - X.mean(axis=0)
    C = Xc @ found.coef @ found.whitener
    tx, tc = np.sum(Xc**2) / n, np.sum(C**2) / n
    scale = np.sqrt(((1 - s) / s) * (tc / tx))
    D = np.hstack([Xc, C / scale])
    W = np.random.default_rng(1).standard_normal((D.shape[1], q))
    noise, trace = 1.0, []
    for _ in range(3000):
        W, noise, objective = tied_em_step(D, W, noise)
        trace.append(objective)
    assert np.diff(trace).min() > -1e-8
    own = np.vstack([found.W, found.W_y / scale])
    assert_allclose(W @ W.T, own @ own.T, rtol=1e-4, atol=1e-5)
    assert_allclose(noise, found.sigma2_y / scale**2, rtol=1e-6)
    A = np.eye(q) + own.T @ own / noise
    assert_allclose(found.covariance, np.linalg.inv(A), atol=1e-6)
    assert_allclose(
        Xc @ found.projection * found.latent, np.linalg.solve(A, own.T @ D.T / noise).T, atol=1e-6
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
    X, codes = sample
    basis, Y, observed = problem(X, codes)
    fits = [supervise(basis, Y, observed, 2, s, codes) for s in np.linspace(0, 1, 11)]
    assert np.all(np.diff([fit.x_share.sum() for fit in fits]) <= 1e-10)
    assert np.all(np.diff([fit.y_share.sum() for fit in fits]) >= -1e-10)


def test_renaming_classes_changes_nothing(sample):
    X, codes = sample
    renamed = np.where(codes >= 0, np.array([2, 0, 3, 1])[codes], -1)
    T, again = embedding(X, codes, 0.7), embedding(X, renamed, 0.7)
    assert_allclose(distances(T), distances(again), atol=1e-9)


def test_scale_and_shift_change_nothing_but_the_scale(sample):
    X, codes = sample
    T = embedding(X, codes, 0.7)
    assert_allclose(embedding(100 * X + 1e4, codes, 0.7), 100 * T, atol=1e-6)
    scaled = embedding(X, codes, 0.7, code=7 * contrasts(classes) + 3)
    assert_allclose(distances(scaled), distances(T), atol=1e-9)


@pytest.mark.parametrize("s", [0.0, 0.8, 1.0])
def test_noise_of_x_is_the_most_likely_one_for_the_loadings(sample, s):
    X, codes = sample
    found = supervise(*problem(X, codes), q, s, codes)
    _, Xc = center(Matrix(X))

    def density(sigma2):
        return log_density(Xc, found.W, sigma2).sum()

    assert density(found.sigma2) > max(density(found.sigma2 * f) for f in (0.999, 1.001))


def test_prediction_is_centred_on_all_rows(sample):
    X, codes = sample
    basis, Y, observed = problem(X, codes)
    found = supervise(basis, Y, observed, q, 0.5, codes)
    labelled = codes >= 0
    predicted = found.offset + (X - X.mean(axis=0)) @ found.coef
    stage = completed(basis, Y, observed, codes)
    F = (X - X.mean(axis=0))[labelled] @ basis.axes
    assert_allclose(predicted[labelled], stage.offset + F @ stage.B, atol=1e-9)


def test_without_labels_it_is_pca(sample):
    X, codes = sample
    assert_allclose(embedding(X, np.full(n, -1), 0.9), embedding(X, codes, 0.0), atol=1e-9)


def test_weights_count_as_repeated_rows(sample, rng):
    X, codes = sample
    counts = rng.integers(0, 4, n)
    again = np.repeat(np.arange(n), counts)
    _, Xc = center(Weighted(Matrix(X), counts))
    observed = np.repeat((codes >= 0)[:, None], classes - 1, axis=1)
    Y = np.where(observed, contrasts(classes)[codes], 0.0)
    weighted = supervise(pool(Xc, 150, rng), Y, observed, q, 0.6, codes)
    repeated = supervise(*problem(X[again], codes[again]), q, 0.6, codes[again])
    assert_allclose(weighted.projection, repeated.projection, atol=1e-8)
    assert_allclose(weighted.sigma2, repeated.sigma2)


def test_numbers_with_gaps(sample, rng):
    X, _ = sample
    Y = X[:, -2:] + 0.1 * rng.standard_normal((n, 2))
    observed = rng.random((n, 2)) < 0.6
    basis = problem(X, np.zeros(n, dtype=int))[0]
    found = supervise(basis, np.where(observed, Y, 0.0), observed, 2, 0.9)
    predicted = found.offset + (X - X.mean(axis=0)) @ found.coef
    for j in range(2):
        hidden = ~observed[:, j]
        assert np.corrcoef(predicted[hidden, j], Y[hidden, j])[0, 1] > 0.9


def test_sparse_rows_give_the_same(sample):
    X, codes = sample
    X = np.where(np.abs(X) > 1.5, X, 0.0)
    observed = np.repeat((codes >= 0)[:, None], classes - 1, axis=1)
    Y = np.where(observed, contrasts(classes)[codes], 0.0)
    fits = [
        supervise(
            pool(center(Matrix(rows))[1], 150, np.random.default_rng(0)), Y, observed, q, 0.5, codes
        )
        for rows in (X, sparse.csr_array(X))
    ]
    assert_allclose(fits[0].projection, fits[1].projection, atol=1e-9)


def test_more_components_than_directions_are_zero(rng):
    X = rng.standard_normal((20, 3))
    codes = np.arange(20) % classes
    found = supervise(*problem(X, codes), 5, 0.5, codes)
    assert found.projection.shape == (3, 5)
    assert not found.projection[:, 3:].any()
    assert np.isfinite(found.latent).all()


def test_a_truncated_pool_keeps_the_total(sample):
    X, codes = sample
    basis, Y, observed = problem(X, codes)
    small = truncated(basis, 5)
    found = assemble(small, completed(small, Y, observed, codes), 3, 0.5)
    assert small.total == basis.total
    outside = basis.variances[5:].sum() / d
    assert found.sigma2 > outside


def test_rows_that_are_all_equal_give_finite_numbers():
    basis, Y, observed = problem(np.ones((10, 3)), np.arange(10) % classes)
    found = supervise(basis, Y, observed, 2, 0.9, np.arange(10) % classes)
    assert np.isfinite(found.W).all()
    assert not (np.zeros((10, 3)) @ found.projection).any()
    assert np.isfinite(found.projection).all()


def test_a_pool_from_products_is_the_same(sample, monkeypatch):
    X, codes = sample
    exact, Y, observed = problem(X, codes)
    monkeypatch.setattr(supervision, "route", lambda X, size: "subspace")
    basis, _, _ = problem(X, codes)
    assert_allclose(basis.variances, exact.variances, rtol=1e-9)
    fits = [supervise(p, Y, observed, q, 0.5, codes).projection for p in (basis, exact)]
    assert_allclose(fits[0], fits[1], atol=1e-7)


def test_without_outputs_it_is_pca(sample):
    X, codes = sample
    basis, Y, observed = problem(X, codes)
    found = supervise(basis, Y[:, :0], observed[:, :0], q, 0.7)
    expected = supervise(basis, Y, observed, q, 0.0, codes)
    assert_allclose(found.projection, expected.projection)
    assert found.coef.shape == (d, 0)
    assert found.W_y.shape == (0, q)
    assert found.whitener.shape == (0, 0)


def test_a_part_of_very_many_labelled_rows_decides(sample, monkeypatch):
    X, codes = sample
    X, codes = np.tile(X, (40, 1)), np.tile(codes, 40)
    whole = embedding(X, codes, 0.5)
    monkeypatch.setattr(supervision, "MOST_ROWS", 300)
    basis, _, observed = problem(X, codes)
    rows, _ = supervision.labelled_rows(basis, observed)
    assert len(rows) == 300
    assert np.all(codes[rows] >= 0)
    part = embedding(X, codes, 0.5)
    assert_allclose(part @ part.T, whole @ whole.T, atol=0.1 * np.max(np.abs(whole @ whole.T)))
