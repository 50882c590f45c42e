import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from gnomon.exceptions import NumericalError
from gnomon.linalg.data import Matrix
from gnomon.linalg.kernels import default_gamma, exact_map, features, nystrom_map


@pytest.fixture
def rows(rng):
    return rng.standard_normal((30, 3)), rng.standard_normal((5, 3))


def centred(K, of_rows):
    """Kernel K (m, n) of points with rows, both less the mean of the rows in feature space."""
    means = of_rows.mean(axis=0)
    return K - means - K.mean(axis=1, keepdims=True) + means.mean()


def test_features_have_the_centred_kernel_as_products(rows):
    X, new = rows
    K, K_new = rbf_kernel(X), rbf_kernel(new, X)
    found, energies = exact_map(K)
    F, F_new = features(found, K), features(found, K_new)
    assert_allclose(F @ F.T, centred(K, K), atol=1e-8)
    assert_allclose(F_new @ F.T, centred(K_new, K), atol=1e-8)
    assert_allclose(F, found.basis * energies, atol=1e-7)
    assert_allclose(F.T @ F, np.diag(energies), atol=1e-8)


def test_features_are_centred_on_the_rows(rows):
    X, _ = rows
    K = rbf_kernel(X) + 100
    found, _ = exact_map(K)
    assert_allclose(features(found, K).mean(axis=0), 0, atol=1e-6)


def test_landmarks_that_are_all_rows_are_exact(rows):
    X, new = rows
    K, K_new = rbf_kernel(X), rbf_kernel(new, X)
    found = nystrom_map(K, K)
    F, F_new = features(found, K), features(found, K_new)
    assert_allclose(F @ F.T, centred(K, K), atol=1e-7)
    assert_allclose(F_new @ F.T, centred(K_new, K), atol=1e-7)


def test_few_landmarks_suffice_for_a_smooth_kernel(rng):
    X = rng.standard_normal((200, 2))
    K = rbf_kernel(X, gamma=0.1)
    F = features(nystrom_map(K[:40, :40], K[:, :40]), K[:, :40])
    assert_allclose(F @ F.T, centred(K, K), atol=0.05)


def test_negative_directions_are_left_out(rng):
    Q, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    K = (Q * np.r_[5.0, 3.0, -2.0, np.zeros(5)]) @ Q.T
    _, energies = exact_map(K)
    assert np.all(energies > 0)


def test_rows_that_are_all_equal_are_refused():
    with pytest.raises(NumericalError, match="no energy"):
        exact_map(np.ones((6, 6)))


def test_rbf_width_is_one_over_the_mean_squared_distance(rows):
    X, _ = rows
    D = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    assert_allclose(default_gamma("rbf", Matrix(X)), 1 / D.mean())
    assert_allclose(default_gamma("rbf", Matrix(sparse.csr_array(X))), 1 / D.mean())


def test_laplacian_width_is_one_over_the_mean_absolute_distance(rows):
    X, _ = rows
    K = laplacian_kernel(X, gamma=1.0)
    assert_allclose(default_gamma("laplacian", Matrix(X)), -1 / np.log(K).mean())


def test_polynomials_take_the_length_of_the_rows(rows):
    X, _ = rows
    assert_allclose(default_gamma("poly", Matrix(X)), 1 / np.sum(X**2, axis=1).mean())
    assert default_gamma("rbf", Matrix(np.ones((4, 2)))) == 1.0
