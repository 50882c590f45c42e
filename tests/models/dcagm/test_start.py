import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score

from gnomon.linalg.data import Matrix
from gnomon.models.dcagm import start
from gnomon.models.dcagm.alternation import Model
from gnomon.models.dcagm.rows import arrange
from gnomon.models.dcagm.start import Groups


@pytest.fixture
def classes(rng):
    y = rng.integers(4, size=120)
    X = rng.standard_normal((120, 6)) + 2 * rng.standard_normal((4, 6))[y]
    return X - X.mean(axis=0), y


def span(V):
    Q = np.linalg.qr(V)[0]
    return Q @ Q.T


def test_directions_are_those_of_lda(classes):
    X, y = classes
    V = start.discriminant_directions(Matrix(X), Groups(y, np.ones(120), 4), 3, 0.0)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    assert_allclose(span(V), span(lda.scalings_[:, :3]), atol=1e-8)


def test_directions_have_unit_within_class_covariance(classes):
    X, y = classes
    groups = Groups(y, np.ones(120), 4)
    V = start.discriminant_directions(Matrix(X), groups, 2, 0.1)
    S = start.within(Matrix(X), groups) + 0.1 * np.eye(6)
    assert_allclose(V.T @ S @ V, np.eye(2), atol=1e-8)


def test_chunks_count_in_the_within_covariance(classes):
    X, y = classes
    ids = np.where(np.arange(120) < 60, y, -1)
    ids[60:80] = 4 + np.repeat(np.arange(5), 4)
    S = start.within(Matrix(X), Groups(ids, np.ones(120), 4))
    total = sum((ids == g).sum() * np.cov(X[ids == g].T, bias=True) for g in range(9))
    assert_allclose(S, total / (80 - 9))


def test_products_give_what_the_matrix_gives(classes, monkeypatch):
    X, y = classes
    groups = Groups(y, np.linspace(0.5, 2, 120), 4)
    formed = start.padded_directions(Matrix(X), groups, 5, 0.1)
    monkeypatch.setattr(start, "MOST_COLUMNS", 0)
    by_products = start.padded_directions(Matrix(sparse.csr_array(X)), groups, 5, 0.1)
    assert_allclose(span(by_products[:, :3]), span(formed[:, :3]), atol=1e-6)
    assert_allclose(span(by_products), span(formed), atol=1e-6)


def test_padding_brings_new_directions(classes):
    X, y = classes
    V = start.padded_directions(Matrix(X), Groups(y, np.ones(120), 4), 6, 0.1)
    assert np.linalg.svd(V, compute_uv=False)[-1] > 1e-3


def test_clusters_of_repeated_rows_are_those_of_weighted_rows(rng):
    Z, w = rng.standard_normal((40, 2)), rng.integers(1, 4, size=40)
    repeated = start.clusters(np.repeat(Z, w, axis=0), np.ones(w.sum()), 3)
    weighted = start.clusters(Z, w.astype(float), 3)
    assert np.array_equal(repeated, np.repeat(weighted, w))


def test_clusters_part_what_is_apart(rng):
    Z = rng.standard_normal((60, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 20, axis=0)
    kinds = np.repeat([0, 1, 2], 20)
    assert adjusted_rand_score(start.clusters(Z, np.ones(60), 3), kinds) == 1
    # From random rows it may end with one of the three cut, and two in one; of 3,000 starts 7 left
    # a cluster without rows.
    found = [start.clusters(Z, np.ones(60), 3, np.random.default_rng(i)) for i in range(10)]
    assert sum(len(set(ids)) == 3 for ids in found) >= 8
    assert max(adjusted_rand_score(ids, kinds) for ids in found) == 1


def test_equal_rows_are_in_one_cluster():
    ids = start.clusters(np.ones((5, 2)), np.ones(5), 3)
    assert np.all(ids == ids[0]) and 0 <= ids[0] < 3


def test_groups_are_classes_and_chunks_of_two_or_more(sample):
    chunks = sample.chunks.copy()
    chunks[59] = 77
    groups = start.groups_of(sample._replace(chunks=chunks))
    assert_array_equal(groups.ids[:20], sample.labels[:20])
    assert_array_equal(groups.ids[24:40], 3 + sample.chunks[24:40])
    assert np.all(groups.ids[[20, 50, 59]] == -1) and groups.n_classes == 3


@pytest.mark.parametrize(("variance", "expected"), [(5.0, 0.01), (56.0, 2.0)])
def test_few_rows_in_groups_for_the_variance_shrink_the_start_much(sample, variance, expected):
    """36 rows in 8 groups leave 28 degrees of freedom."""
    sample = sample._replace(weights=np.ones(60), total_variance=variance)
    assert start.start_shrinkage(sample, start.groups_of(sample)) == expected


@pytest.mark.parametrize("per_gaussian", [False, True])
def test_first_mixture_is_that_of_clusters_in_classes(sample, per_gaussian):
    rows, model = arrange(sample), Model(2, 0.0, 0.0, 0.0, 0.0, per_gaussian)
    Z, w, known = rows.project(np.eye(5, 2)), rows.weights, rows.labels
    mixture = start.cluster_mixture(Z, rows, sample.class_of, model)
    assert len(mixture.covariances) == (6 if per_gaussian else 3)
    counts = np.bincount(known, w[:20])
    assert_allclose(mixture.alpha, counts / counts.sum())
    for c in range(3):
        own = np.flatnonzero(known == c)
        ids = start.clusters(Z[own], w[own], 2)
        means = [np.average(Z[own][ids == k], axis=0, weights=w[own][ids == k]) for k in (0, 1)]
        assert_allclose(mixture.means[mixture.class_of == c], means)


def test_a_gaussian_without_a_cluster_begins_at_the_mean_of_its_class(sample):
    """Equal rows are one cluster; the second Gaussian has none."""
    X, own = sample.X.X.copy(), sample.labels == 1
    X[own] = 7.0
    rows = arrange(sample._replace(X=Matrix(X)))
    model = Model(2, 0.0, 0.0, 0.0, 0.0)
    mixture = start.cluster_mixture(rows.project(np.eye(5, 2)), rows, sample.class_of, model)
    assert_allclose(mixture.means[2:4], 7.0)
    assert_allclose(np.sort(mixture.beta[2:4]), [0, 1])


def test_chance_changes_the_start_and_the_first_has_none(sample):
    rows, model = arrange(sample), Model(2, 0.1, 0.1, 0.3, 1.0)
    first, second = (start.start(sample, rows, model).P for _ in range(2))
    assert_array_equal(first, second)
    other = start.start(sample, rows, model, np.random.default_rng(0)).P
    assert np.abs(other - first).max() > 0.01


def test_means_on_a_line_have_one_direction(rng):
    y = np.arange(120) % 4
    X = np.zeros((120, 3))
    X[:, 0] = y + 0.1 * rng.standard_normal(120)
    groups = Groups(y, np.ones(120), 4)
    assert start.discriminant_directions(Matrix(X - X.mean(axis=0)), groups, 3, 0.1).shape == (3, 1)


def test_no_rows_have_no_clusters():
    assert start.clusters(np.zeros((0, 2)), np.zeros(0), 3).shape == (0,)
