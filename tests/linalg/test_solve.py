from threading import Barrier, Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_info, threadpool_limits

from gnomon.exceptions import NumericalError
from gnomon.linalg.solve import (
    Cholesky,
    above_rounding,
    fix_signs,
    gaussian_log_odds,
    inverse_with_log_det,
    one_thread,
    preconditioned_solution,
    ranks_of_rows,
    stacked_covariances,
)


def test_it_solves_and_knows_the_determinant(rng):
    B = rng.normal(size=(6, 4))
    A = B.T @ B
    factor = Cholesky(A)
    assert_allclose(A @ factor.solve(np.eye(4)), np.eye(4), atol=1e-10)
    assert_allclose(factor.logdet(), np.linalg.slogdet(A)[1])
    assert_allclose(factor.L @ factor.L.T, A)
    b = rng.normal(size=(4, 2))
    assert_allclose(np.sum(factor.half_solve(b) ** 2, axis=0), np.diag(b.T @ np.linalg.inv(A) @ b))


def test_a_matrix_that_is_not_positive_definite_is_an_error():
    with pytest.raises(NumericalError, match="positive definite"):
        Cholesky(np.diag([1.0, -1.0]))


def test_preconditioned_solution_solves_for_a_matrix(rng):
    A, B = (
        M @ M.T + np.eye(len(M)) for M in (rng.standard_normal((6, 6)), rng.standard_normal((2, 2)))
    )
    R = rng.standard_normal((6, 2))
    X = preconditioned_solution(
        lambda X: A @ X @ B, R, np.zeros_like(R), lambda R: R / np.diag(A)[:, None], 50, 1e-12
    )
    assert_allclose(A @ X @ B, R, atol=1e-8)


def test_signs_are_fixed_by_the_largest_entry(rng):
    V = rng.normal(size=(9, 4))
    fixed = fix_signs(V)
    assert_allclose(fixed, fix_signs(-V))
    assert np.all(fixed[np.argmax(np.abs(fixed), axis=0), np.arange(4)] > 0)


def test_the_rank_of_a_gram_matrix_is_found(rng):
    F = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 12))
    assert above_rounding(np.linalg.eigvalsh(F.T @ F)).sum() == 4
    G = F.astype(np.float32)
    values = np.linalg.eigvalsh((G.T @ G).astype(float))
    assert above_rounding(values, np.float32).sum() == 4


def test_no_energy_has_no_rank():
    assert above_rounding(np.zeros(3)).sum() == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_sums_round_more(rng, dtype):
    """Centred rows span one direction less than there are rows."""
    for _ in range(50):
        X = rng.standard_normal((6, 400)).astype(dtype)
        X -= X.mean(axis=0)
        values = np.linalg.eigvalsh((X @ X.T).astype(float))
        assert above_rounding(values, dtype, 400).sum() == 5


def test_log_odds_of_points_are_differences_of_log_densities(rng):
    A = rng.normal(size=(3, 5))
    C, points, means = A @ A.T, rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
    odds = gaussian_log_odds(means, C, points)
    dense = np.array([[multivariate_normal(m, C).logpdf(c) for c in points] for m in means])
    assert_allclose(odds - odds[:, :1], dense - dense[:, :1], atol=1e-9)


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_small_algebra_runs_on_one_thread_and_what_was_set_comes_back():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with one_thread, one_thread:
            assert blas_threads() == {1}
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError), one_thread:
            1 / 0  # noqa: B018
        assert blas_threads() == before


def test_the_last_of_several_threads_sets_the_number_back():
    together, seen = Barrier(4), []

    @one_thread
    def work():
        together.wait()
        seen.append(blas_threads())
        together.wait()

    before = blas_threads()
    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before
    assert seen == [{1}] * 4


@pytest.mark.parametrize("size", [1, 4, 9, 10, 23])
@pytest.mark.parametrize("n_matrices", [2, 40, 700])
def test_stacked_covariances_are_inverses(n_matrices, size, rng):
    B = rng.normal(size=(n_matrices, size, size + 2))
    A = np.eye(size) + B @ np.swapaxes(B, 1, 2)
    inverses, log_dets = stacked_covariances(A)
    assert_allclose(inverses @ A, np.broadcast_to(np.eye(size), A.shape), atol=1e-10)
    assert_allclose(log_dets, -np.linalg.slogdet(A)[1])


@pytest.mark.parametrize("size", [3, 12])
def test_a_stack_with_a_matrix_that_is_not_positive_definite_is_refused(size):
    A = np.tile(np.eye(size), (50, 1, 1))
    A[31, -1, -1] = -1.0
    with pytest.raises(NumericalError, match="positive definite"):
        stacked_covariances(A)


def test_an_inverse_comes_with_its_log_determinant(rng):
    A = rng.standard_normal((9, 5))
    inverse, log_det = inverse_with_log_det(A.T @ A)
    assert_allclose(inverse, np.linalg.inv(A.T @ A))
    assert_allclose(log_det, np.linalg.slogdet(A.T @ A)[1])
    with pytest.raises(NumericalError, match="positive definite"):
        inverse_with_log_det(A @ A.T - np.eye(9))


def test_ranks_know_no_unit_and_no_rounding(rng):
    values = rng.normal(size=30)
    for unit in (1e-12, 1.0, 1e12):
        ranks = ranks_of_rows(unit * np.r_[values, np.nextafter(values[:5], 9)])
        assert_array_equal(ranks[:30], np.argsort(np.argsort(values)))
        assert_array_equal(ranks[30:], ranks[:5])


def test_the_last_key_ranks_first():
    assert_array_equal(ranks_of_rows([3.0, 1.0, 2.0, 1.0], [0.0, 1.0, 0.0, 1.0]), [1, 2, 0, 2])
