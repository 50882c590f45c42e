import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from gnomon.linalg.data import Matrix
from gnomon.stats import discriminant
from gnomon.stats.discriminant import Groups


@pytest.fixture
def sample(rng):
    y = rng.integers(4, size=120)
    X = rng.standard_normal((120, 6)) + 2 * rng.standard_normal((4, 6))[y]
    return X - X.mean(axis=0), y


def span(V):
    Q = np.linalg.qr(V)[0]
    return Q @ Q.T


def test_directions_are_those_of_lda(sample):
    X, y = sample
    V = discriminant.discriminant_directions(Matrix(X), Groups(y, np.ones(120), 4), 3, 0.0)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    assert_allclose(span(V), span(lda.scalings_[:, :3]), atol=1e-8)


def test_directions_have_unit_within_class_covariance(sample):
    X, y = sample
    groups = Groups(y, np.ones(120), 4)
    V = discriminant.discriminant_directions(Matrix(X), groups, 2, 0.1)
    S = discriminant.within(Matrix(X), groups) + 0.1 * np.eye(6)
    assert_allclose(V.T @ S @ V, np.eye(2), atol=1e-8)


def test_chunks_count_in_the_within_covariance(sample):
    X, y = sample
    ids = np.where(np.arange(120) < 60, y, -1)
    ids[60:80] = 4 + np.repeat(np.arange(5), 4)
    S = discriminant.within(Matrix(X), Groups(ids, np.ones(120), 4))
    total = sum((ids == g).sum() * np.cov(X[ids == g].T, bias=True) for g in range(9))
    assert_allclose(S, total / (80 - 9))


def test_products_give_what_the_matrix_gives(sample, monkeypatch):
    X, y = sample
    groups = Groups(y, np.linspace(0.5, 2, 120), 4)
    formed = discriminant.start_directions(Matrix(X), groups, 5, 0.1)
    monkeypatch.setattr(discriminant, "MOST_COLUMNS", 0)
    by_products = discriminant.start_directions(Matrix(sparse.csr_array(X)), groups, 5, 0.1)
    assert_allclose(span(by_products[:, :3]), span(formed[:, :3]), atol=1e-6)
    assert_allclose(span(by_products), span(formed), atol=1e-6)


def test_padding_brings_new_directions(sample):
    X, y = sample
    V = discriminant.start_directions(Matrix(X), Groups(y, np.ones(120), 4), 6, 0.1)
    assert np.linalg.svd(V, compute_uv=False)[-1] > 1e-3


def test_clusters_of_repeated_rows_are_those_of_weighted_rows(rng):
    Z, w = rng.standard_normal((40, 2)), rng.integers(1, 4, size=40)
    repeated = discriminant.clusters(np.repeat(Z, w, axis=0), np.ones(w.sum()), 3)
    weighted = discriminant.clusters(Z, w.astype(float), 3)
    assert np.array_equal(repeated, np.repeat(weighted, w))


def test_clusters_part_what_is_apart(rng):
    Z = rng.standard_normal((60, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0)
    for chance in (None, np.random.default_rng(3)):
        ids = discriminant.clusters(Z, np.ones(60), 3, chance)
        assert all(len(set(ids[i : i + 20])) == 1 for i in (0, 20, 40))
        assert len(set(ids)) == 3


def test_clusters_of_equal_rows_are_finite():
    ids = discriminant.clusters(np.ones((5, 2)), np.ones(5), 3)
    assert ids.min() >= 0 and ids.max() < 3
