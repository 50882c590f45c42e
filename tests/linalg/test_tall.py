import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gnomon.linalg import tall, threads
from gnomon.linalg.tall import Tall, inner, mixed


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    """Rows are cut and shared between threads also where they are few."""
    monkeypatch.setattr(tall, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(threads, "LEAST_WORK", 0)


@pytest.fixture
def grown(rng):
    """A matrix that came in three blocks, and the same as one array."""
    blocks = [rng.standard_normal((40, width)) for width in (3, 1, 2)]
    A = Tall(40)
    for block in blocks:
        A.append(block)
    return A, np.hstack(blocks)


def test_blocks_make_one_matrix(grown, rng):
    A, whole = grown
    B, M = rng.standard_normal((40, 4)), rng.standard_normal((6, 4))
    assert A.shape == whole.shape == (40, 6)
    assert Tall(40).shape == (40, 0)
    assert_allclose(inner(A, B), whole.T @ B, rtol=1e-12)
    assert_allclose(inner(A, B, B[:, :1]), whole.T @ np.hstack([B, B[:, :1]]), rtol=1e-12)
    assert_allclose(mixed(A, M), whole @ M, rtol=1e-12)


def test_a_mixture_less_another_plus_an_array(grown, rng):
    A, whole = grown
    other = rng.standard_normal((40, 5))
    M, C, more = (rng.standard_normal((k, 4)) for k in (6, 5, 40))
    found = mixed(A, M, less=(other, C), plus=more)
    assert_allclose(found, whole @ M - other @ C + more, rtol=1e-11)


def test_columns_are_replaced_by_mixtures_of_them(grown, rng):
    A, whole = grown
    M, B = rng.standard_normal((6, 2)), rng.standard_normal((40, 3))
    A.mix(M)
    assert A.shape == (40, 2)
    A.append(B)
    assert_allclose(mixed(A, np.eye(5)), np.hstack([whole @ M, B]), rtol=1e-12)


def test_single_precision_is_kept_and_added_up_in_double(rng):
    A, B = rng.standard_normal((2, 100_000, 2)).astype(np.float32)
    assert mixed(A, np.eye(2)).dtype == np.float32
    exact = A.astype(float).T @ B.astype(float)
    # Sums of 100,000 in single precision would be off by some 1e-3.
    assert_allclose(inner(A, B), exact, atol=2e-4)


def test_the_number_of_threads_changes_no_digit(grown, rng, monkeypatch):
    A, _ = grown
    B, M = rng.standard_normal((40, 4)), rng.standard_normal((6, 4))
    runs = []
    for size in (1, 2, 3):
        monkeypatch.setattr(threads, "n_threads", lambda size=size: size)
        runs.append((inner(A, B), mixed(A, M)))
    for run in runs[1:]:
        assert_array_equal(run[0], runs[0][0])
        assert_array_equal(run[1], runs[0][1])
