from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from gnomon.exceptions import NumericalError
from gnomon.linalg.blocks import Blocks, from_loaders
from gnomon.linalg.data import Matrix, Weighted
from gnomon.models import kernel as kernels
from gnomon.models.kernel import (
    choose_landmarks,
    default_gamma,
    exact_map,
    far_mean,
    features,
    fit_features,
    landmarks_and_gamma,
    map_features,
    nystrom_map,
)


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
    found, energies, _ = exact_map(K)
    F, F_new = features(found, K), features(found, K_new)
    assert_allclose(F @ F.T, centred(K, K), atol=1e-8)
    assert_allclose(F_new @ F.T, centred(K_new, K), atol=1e-8)
    assert_allclose(F, found.basis * energies, atol=1e-7)
    assert_allclose(F.T @ F, np.diag(energies), atol=1e-8)


def test_features_are_centred_on_the_rows(rows):
    X, _ = rows
    K = rbf_kernel(X) + 100
    found, *_ = exact_map(K)
    assert_allclose(features(found, K).mean(axis=0), 0, atol=1e-6)


def test_landmarks_that_are_all_rows_are_exact(rows):
    X, new = rows
    K, K_new = rbf_kernel(X), rbf_kernel(new, X)
    found = nystrom_map(K, K.mean(axis=0))
    F, F_new = features(found, K), features(found, K_new)
    assert_allclose(F @ F.T, centred(K, K), atol=1e-7)
    assert_allclose(F_new @ F.T, centred(K_new, K), atol=1e-7)


def test_few_landmarks_suffice_for_a_smooth_kernel(rng):
    X = rng.standard_normal((200, 2))
    K = rbf_kernel(X, gamma=0.1)
    F = features(nystrom_map(K[:40, :40], K[:, :40].mean(axis=0)), K[:, :40])
    # In all; a single row that is far from every landmark may be off by a tenth.
    error = np.linalg.norm(F @ F.T - centred(K, K))
    assert error < 0.01 * np.linalg.norm(centred(K, K))


def test_negative_directions_are_left_out(rng):
    Q, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    K = (Q * np.r_[5.0, 3.0, -2.0, np.zeros(5)]) @ Q.T
    found, energies, _ = exact_map(K)
    J = np.eye(8) - 1 / 8
    values = np.linalg.eigvalsh(J @ K @ J)[::-1]
    assert values[-1] < -1
    assert_allclose(energies, values[values > 1e-10])
    assert found.basis.shape == (8, len(energies))


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


def test_the_width_of_a_laplacian_is_that_of_rows_far_away(rows):
    X, _ = rows
    gamma = default_gamma("laplacian", Matrix(X))
    assert_allclose(default_gamma("laplacian", Matrix(X + 1e8)), gamma, rtol=1e-6)


def test_landmarks_are_all_rows_up_to_a_limit_and_some_beyond(rng, monkeypatch):
    assert choose_landmarks(30, None, rng).tolist() == list(range(30))
    assert choose_landmarks(30, 99, rng).tolist() == list(range(30))
    some = choose_landmarks(30, 7, rng)
    assert len(set(some)) == 7
    assert np.all(np.diff(some) > 0)
    monkeypatch.setattr(kernels, "MOST_EXACT", 20)
    monkeypatch.setattr(kernels, "LANDMARKS", 11)
    assert len(choose_landmarks(30, None, rng)) == 11
    assert len(choose_landmarks(20, None, rng)) == 20


def test_features_of_the_rows_are_those_of_their_map(rows):
    X, _ = rows
    K, some = rbf_kernel(X), np.array([2, 5, 11, 20])
    whole, part = fit_features(K, np.arange(30)), fit_features(K[:, some], some)
    assert_allclose(whole.F.X, features(whole.map, K), atol=1e-6)
    assert_allclose(np.sum(whole.F.X**2, axis=0), whole.energies)
    assert part.energies is None
    assert_allclose(part.F.X, features(part.map, K[:, some]))
    assert_allclose(part.F.X.mean(axis=0), 0, atol=1e-12)


def test_rows_far_from_the_origin_have_a_mean_to_be_taken_off(rows):
    X, _ = rows
    assert far_mean(Matrix(X + 1)) is None
    assert_allclose(far_mean(Matrix(X + 1e8)), X.mean(axis=0) + 1e8)
    assert_allclose(far_mean(Matrix(sparse.csr_array(X + 1e8))), X.mean(axis=0) + 1e8)
    assert far_mean(Matrix(sparse.csr_array(1e8 * np.eye(30)))) is None


def test_leading_features_are_those_of_all_and_the_energy_is_whole(rng):
    X = rng.normal(size=(40, 3))
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 6)
    everything, some = (fit_features(K, np.arange(40), most) for most in (None, 5))
    assert some.F.shape == (40, 5)
    assert_allclose(some.energies, everything.energies[:5])
    assert_allclose(some.F.X, everything.F.X[:, :5], atol=1e-9)
    assert_allclose(some.total, everything.total, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_features_that_are_found_anew_are_those_that_are_kept(rng, weighted):
    """In blocks and about the mean of the landmarks, with rows far from the origin."""
    X, index = rng.standard_normal((500, 4)) + 3, np.sort(rng.choice(500, 20, replace=False))
    w = rng.uniform(0.5, 2, 500) if weighted else None
    kept = fit_features(rbf(X, X[index]), index, weights=w)
    blocks = Blocks([Matrix(part) for part in np.split(X, [1, 8, 8, 300])])
    values = partial(rbf, B=X[index])
    anew = map_features(blocks, values, rbf(X[index], X[index]), w)
    assert_allclose(anew.map.offset, kept.map.offset, atol=1e-10)
    assert_allclose(anew.F.as_array(), kept.F.X, atol=1e-10)
    F = kept.F.X * (1 if w is None else np.sqrt(w)[:, None])
    assert_allclose(anew.F.gram(), F.T @ F, atol=1e-8)
    assert_allclose(anew.total, kept.total)
    B, Z = rng.standard_normal((kept.F.shape[1], 2)), rng.standard_normal((500, 2))
    assert_allclose(anew.F @ B, kept.F.X @ B, atol=1e-9)
    assert_allclose(anew.F.T @ Z, kept.F.X.T @ Z, atol=1e-9)
    assert_allclose(anew.F.rows([3, 400]).as_array(), kept.F.X[[3, 400]], atol=1e-10)


def test_landmarks_and_width_of_rows_in_blocks_come_in_one_pass(rng):
    X, index = 1e6 + rng.standard_normal((300, 3)), np.array([0, 7, 8, 250])
    w = rng.uniform(0.5, 2, 300)
    reads = []
    parts = [0, 1, 8, 8, 200, 300]
    loaders = [partial(lambda a, b: reads.append(a) or X[a:b], a, b) for a, b in pairwise(parts)]
    blocks = from_loaders(loaders)
    reads.clear()
    landmarks, gamma = landmarks_and_gamma(blocks, index, w)
    assert_allclose(landmarks, X[index])
    assert_allclose(gamma, default_gamma("rbf", Weighted(Matrix(X), w)), rtol=1e-8)
    assert reads == [0, 1, 8, 200]


def rbf(A, B):
    return np.exp(-np.sum((A[:, None] - B) ** 2, axis=2) / 8)


def test_values_beyond_the_range_of_numbers_are_named():
    with pytest.raises(NumericalError, match="values of the kernel leave the range of numbers"):
        kernels._positive(np.array([[1.0, np.inf], [np.inf, 1.0]]))
