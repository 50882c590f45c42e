import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.baselines.collapsing import MCML, collapse_loss
from benchmarks.baselines.graph import GraphRegularisation, plsi_phits, spectral
from benchmarks.baselines.linkcontent import link_content_factors, loss
from benchmarks.baselines.maxmin import MMDA
from benchmarks.baselines.neighbourhood import LPP, NPE
from benchmarks.baselines.relevant import LDARCA, RCA, within_covariance


@pytest.mark.parametrize("method", [RCA, LDARCA, LPP, NPE, MCML])
def test_iris_is_told_apart_in_two_dimensions(method):
    X, y = load_iris(return_X_y=True)
    Z = method(2).fit(X, y).transform(X)
    score = KNeighborsClassifier(1).fit(Z[::2], y[::2]).score(Z[1::2], y[1::2])
    assert score > 0.85


@pytest.mark.parametrize("method", [RCA, LDARCA])
def test_relevant_components_have_unit_spread_within_classes(method):
    X, y = load_iris(return_X_y=True)
    Z = method(2).fit(X, y).transform(X)
    assert_allclose(within_covariance(Z, y, shrinkage=0), np.eye(2), atol=0.01)


def test_more_axes_than_classes_are_padded():
    X, y = load_iris(return_X_y=True)
    assert LDARCA(3).fit(X, y).transform(X).shape == (150, 3)


def test_gradient_of_the_collapse_is_that_of_differences(rng):
    X, y = rng.standard_normal((12, 3)), np.repeat([0, 1, 2], 4)
    same = (y[:, None] == y).astype(float)
    np.fill_diagonal(same, 0)
    same /= same.sum(axis=1, keepdims=True)
    A = rng.standard_normal((3, 3))
    numeric = approx_fprime(A.ravel(), lambda a: collapse_loss(a.reshape(3, 3), X, same)[0], 1e-6)
    assert_allclose(collapse_loss(A, X, same)[1].ravel(), numeric, atol=1e-4)


def test_gradient_of_the_factorisation_is_that_of_differences(rng):
    A = sparse.csr_array((rng.random((6, 6)) > 0.6).astype(float))
    X = sparse.csr_array(rng.random((6, 4)))
    Z, U, V = rng.standard_normal((6, 2)), rng.standard_normal((2, 2)), rng.standard_normal((4, 2))
    _, (by_Z, by_U, by_V) = loss(Z, U, V, A, X, 0.7, 0.1)
    by_difference = approx_fprime(
        Z.ravel(), lambda z: loss(z.reshape(6, 2), U, V, A, X, 0.7, 0.1)[0], 1e-7
    )
    assert_allclose(by_Z.ravel(), by_difference, atol=1e-3)
    by_difference = approx_fprime(
        U.ravel(), lambda u: loss(Z, u.reshape(2, 2), V, A, X, 0.7, 0.1)[0], 1e-7
    )
    assert_allclose(by_U.ravel(), by_difference, atol=1e-3)
    by_difference = approx_fprime(
        V.ravel(), lambda v: loss(Z, U, v.reshape(4, 2), A, X, 0.7, 0.1)[0], 1e-7
    )
    assert_allclose(by_V.ravel(), by_difference, atol=1e-3)


def test_the_factorisation_loss_is_that_of_dense_matrices(rng):
    A, X = (rng.random((6, 6)) > 0.6).astype(float), rng.random((6, 4))
    Z, U, V = rng.standard_normal((6, 2)), rng.standard_normal((2, 2)), rng.standard_normal((4, 2))
    value, _ = loss(Z, U, V, sparse.csr_array(A), sparse.csr_array(X), 0.7, 0)
    dense = np.sum((A - Z @ U @ Z.T) ** 2) + 0.7 * np.sum((X - Z @ V.T) ** 2)
    assert_allclose(value, dense - np.sum(A**2) - 0.7 * np.sum(X**2))


def test_linked_communities_are_told_apart_without_content(rng):
    y = np.repeat([0, 1], 20)
    A = (rng.random((40, 40)) < np.where(y[:, None] == y, 0.5, 0.05)).astype(float)
    A = sparse.csr_array(np.maximum(A, A.T))
    Z = link_content_factors(A, sparse.csr_array(rng.random((40, 10))), 2, weight=0.01)
    assert KNeighborsClassifier(3).fit(Z[::2], y[::2]).score(Z[1::2], y[1::2]) > 0.9


def test_the_nearest_two_means_are_farther_apart_than_by_lda(rng):
    pytest.importorskip("cvxpy")
    means = np.array([[0, 0], [0, 3], [0, 6], [60, 3]], dtype=float)
    y = np.repeat(np.arange(4), 50)
    X = means[y] + 0.5 * rng.standard_normal((200, 2))

    def nearest_means(method):
        Z = method(1).fit(X, y).transform(X)
        centres = np.array([Z[y == c].mean(axis=0) for c in range(4)])
        i, j = np.triu_indices(4, 1)
        return np.linalg.norm(centres[i] - centres[j], axis=1).min()

    assert nearest_means(MMDA) > 2 * nearest_means(LDARCA)


def test_rivals_that_use_links_tell_two_groups_apart():
    n = 20
    group = np.repeat([0, 1], n)
    rng = np.random.default_rng(0)
    close = rng.random((2 * n, 2 * n)) < np.where(group[:, None] == group, 0.4, 0.02)
    A = sparse.csr_array(np.triu(close, 1) + np.triu(close, 1).T.astype(float))
    X = sparse.csr_array((rng.random((2 * n, 12)) < 0.3).astype(float))
    shown = np.r_[0:4, n : n + 4]
    model = GraphRegularisation(A).fit(shown[:, None], group[shown])
    assert np.mean(model.predict(np.arange(2 * n)[:, None]) == group) > 0.9
    axis = spectral(A, 1)[:, 0]
    assert abs(np.corrcoef(axis, group)[0, 1]) > 0.8
    shares = plsi_phits(A, X, 2)
    assert_allclose(shares.sum(axis=1), 1)
    assert abs(np.corrcoef(shares[:, 0], group)[0, 1]) > 0.5
