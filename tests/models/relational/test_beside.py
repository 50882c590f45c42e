import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.linalg.data import Matrix, center
from gnomon.models.relational import beside
from gnomon.models.relational.posterior import Nodes

POWER = 2


def random_graph(n, degree, rng):
    A = np.triu(rng.random((n, n)) < degree / n, 1).astype(float)
    return sparse.csr_array(A + A.T)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    A = random_graph(30, 2, rng)
    return A, rng.normal(size=(30, 3)) @ rng.normal(size=(3, 5)) + rng.normal(size=(30, 5))


def parts_of(A, X, q=2):
    _, centered = center(Matrix(X))
    rng = np.random.default_rng(0)
    return beside.fit_parts(A, centered, centered.squared_norm, q, POWER, rng), centered


def joint(parts):
    return np.concatenate([parts.W, parts.V, parts.U])


def by_hand(A, X, factors):
    """Rows, t times the means of their neighbours, u times the rows smoothed, dense."""
    E, M = X - X.mean(axis=0), A.toarray() / np.maximum(A.sum(axis=1), 1)[:, None]
    loops = A.toarray() + np.eye(len(X))
    S = loops / np.sqrt(np.outer(loops.sum(axis=0), loops.sum(axis=1)))
    return np.hstack([E, factors[0] * M @ E, factors[1] * np.linalg.matrix_power(S, POWER) @ E])


def test_it_is_ppca_of_all_parts_and_what_links_tell_counts_half(rows):
    A, X = rows
    (parts, log_likelihood), centered = parts_of(A, X)
    Y = by_hand(A, X, parts.factors)
    own = np.sum(Y[:, :5] ** 2)
    assert_allclose([np.sum(Y[:, 5:10] ** 2), np.sum(Y[:, 10:] ** 2)], [own / 4, own / 4])
    values, vectors = np.linalg.eigh(Y.T @ Y / len(Y))
    sigma2 = values[:-2].mean()
    assert_allclose(parts.sigma2, sigma2)
    expected = (vectors[:, -2:] * (values[-2:] - sigma2)) @ vectors[:, -2:].T
    assert_allclose(joint(parts) @ joint(parts).T, expected, atol=1e-10)
    C = joint(parts) @ joint(parts).T + sigma2 * np.eye(15)
    dense = -0.5 * np.sum(Y * np.linalg.solve(C, Y.T).T)
    dense -= 0.5 * len(Y) * np.linalg.slogdet(2 * np.pi * C)[1]
    assert_allclose(log_likelihood, dense)
    assert_allclose(beside.log_density(parts, centered, A), dense)


def test_wide_rows_by_lanczos_have_the_same_loadings(monkeypatch):
    rng = np.random.default_rng(0)
    A, X = random_graph(60, 3, rng), rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40))
    X += 0.1 * rng.normal(size=X.shape)
    (parts, value), _ = parts_of(A, X)
    monkeypatch.setattr(beside.eigen, "suits_lanczos", lambda rows, q: True)
    (again, other), _ = parts_of(A, X)
    assert_allclose(joint(again) @ joint(again).T, joint(parts) @ joint(parts).T, atol=1e-6)
    assert_allclose([again.sigma2, other], [parts.sigma2, value], rtol=1e-6)


def test_the_embedding_is_the_conditional_mean_of_all_parts(rows):
    A, X = rows
    (parts, _), centered = parts_of(A, X)
    lonely = np.diff(A.indptr) == 0
    assert 0 < lonely.sum() < 30
    Z = beside.embed(parts, centered, Nodes(A, np.zeros((0, 4))))
    Y, L = by_hand(A, X, parts.factors), joint(parts)
    every = Y @ np.linalg.solve(L @ L.T + parts.sigma2 * np.eye(15), L)
    alone = Y[:, :5] @ np.linalg.solve(parts.W @ parts.W.T + parts.sigma2 * np.eye(5), parts.W)
    assert_allclose(Z[~lonely], every[~lonely], atol=1e-10)
    assert_allclose(Z[lonely], alone[lonely], atol=1e-10)


def test_new_rows_are_embedded_by_what_is_known_of_their_neighbours(rows):
    A, X = rows
    (parts, _), centered = parts_of(A, X)
    every = beside.embed(parts, centered, Nodes(A, np.zeros((0, 4))))
    known = beside.known_of(parts, centered.rows(np.arange(20)))
    new = beside.embed(parts, centered.rows(np.arange(20, 30)), Nodes(A, known))
    assert_allclose(new, every[20:], atol=1e-12)


def test_each_row_is_told_without_itself():
    rng = np.random.default_rng(1)
    F, B = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    F, B = F - F.mean(axis=0), B - B.mean(axis=0)
    F /= np.sqrt(np.mean(np.sum(F**2, axis=1)))
    expected = []
    for i in range(12):
        rest = np.arange(12) != i
        G = np.column_stack([np.ones(11), F[rest]])
        coefficients = np.linalg.solve(G.T @ G + np.diag([0, 1, 1, 1]), G.T @ B[rest])
        expected.append(np.sum((B[i] - np.append(1, F[i]) @ coefficients) ** 2))
    expected = np.array(expected) / np.mean(np.sum(B**2, axis=1))
    assert_allclose(beside._left_out_errors(F, B), expected)


def linked_kinds(n, rng, *, across):
    """Rows of six kinds in four communities; links join rows of a community, or of a kind of it."""
    kind, community = np.arange(n) % 6, np.arange(n) // 6 % 4
    wanted = np.equal.outer(community, community)
    if not across:
        wanted &= np.equal.outer(kind, kind)
    A = np.triu(rng.random((n, n)) < np.where(wanted, 0.25, 0.001), 1).astype(float)
    X = 2 * rng.normal(size=(6, 20))[kind] + rng.normal(size=(4, 20))[community]
    return X + rng.normal(size=(n, 20)), sparse.csr_array(A + A.T)


@pytest.mark.parametrize("across", [False, True])
def test_smoothing_tells_more_where_links_join_a_kind_and_less_where_they_do_not(across):
    rng = np.random.default_rng(0)
    X, A = linked_kinds(240, rng, across=across)
    told = beside.tell_content(A, center(Matrix(X))[1], 2, rng)
    assert not told.links_are_noise
    assert (told.smoothed < told.content) == (not across)


def test_permuted_links_are_nearly_always_noise():
    """One of 20 may tell more than its control by chance; were it a coin, ten would."""
    noise = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, A = linked_kinds(120, rng, across=seed % 2 == 0)
        order = rng.permutation(120)
        told = beside.tell_content(A[order][:, order], center(Matrix(X))[1], 2, rng)
        noise += told.links_are_noise
    assert noise >= 18


def test_content_that_tells_nothing_says_nothing_of_links():
    rng = np.random.default_rng(0)
    A = random_graph(100, 4, rng)
    told = beside.tell_content(A, center(Matrix(rng.normal(size=(100, 30))))[1], 2, rng)
    assert told.content > 1 and not told.links_are_noise and not told.smoothing_blurs


def test_few_columns_are_not_split():
    rng = np.random.default_rng(0)
    told = beside.tell_content(
        random_graph(60, 4, rng), center(Matrix(rng.normal(size=(60, 8))))[1], 2, rng
    )
    assert np.isnan(told.content) and told.links_are_noise and not told.smoothing_blurs
