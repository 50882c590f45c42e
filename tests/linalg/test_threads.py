import threading
import time

import numpy as np
import pytest
from joblib import Parallel, cpu_count, delayed
from scipy import sparse
from threadpoolctl import threadpool_limits

from gnomon.linalg import data, sparse_products, threads
from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.linalg.solve import one_thread


@pytest.fixture
def many_parts(monkeypatch):
    """Small products are shared between threads too."""
    monkeypatch.setattr(threads, "LEAST_WORK", 0)
    monkeypatch.setattr(data, "RUN_ENTRIES", 700)
    monkeypatch.setattr(sparse_products, "SHARED_FROM", 50)
    monkeypatch.setattr(sparse_products, "PARTS", 5)
    monkeypatch.setattr(sparse_products, "SUMS", 3)


def with_threads(monkeypatch, size, function):
    monkeypatch.setattr(threads, "n_threads", lambda: size)
    return function()


def products(X, rng):
    """All that a model asks of rows."""
    B, Z = rng.standard_normal((X.shape[1], 6)), rng.standard_normal((X.shape[0], 40))
    return X.gram(), X @ B, X.T @ Z[:, :6], X.T @ Z


def rows_of(kind, rng):
    X = 3 + rng.standard_normal((500, 40))
    weights = rng.random(500) + 0.5
    thin = sparse.random_array((500, 40), density=0.1, rng=rng)
    return {
        "dense": lambda: center(Matrix(X.astype(np.float32)))[1],
        "far": lambda: center(Matrix(X + 1e6))[1],
        "weighted": lambda: center(Weighted(Matrix(X), weights))[1],
        "csr": lambda: Matrix(thin.tocsr()),
        "csc": lambda: center(Matrix(thin.tocsc()))[1],
    }[kind]


@pytest.mark.parametrize("kind", ["dense", "far", "weighted", "csr", "csc"])
def test_the_number_of_threads_changes_no_digit(kind, many_parts, monkeypatch):
    make = rows_of(kind, np.random.default_rng(0))
    runs = [
        with_threads(monkeypatch, size, lambda: products(make(), np.random.default_rng(1)))
        for size in (1, 2, 3)
    ]
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["dense", "far", "weighted", "csr", "csc"])
def test_products_of_threads_are_those_of_the_whole(kind, many_parts, monkeypatch):
    X = rows_of(kind, np.random.default_rng(0))()
    dense = np.concatenate(list(X.dense_blocks())).astype(float)
    found = with_threads(monkeypatch, 3, lambda: products(X, np.random.default_rng(1)))
    expected = products(Matrix(dense), np.random.default_rng(1))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3 if kind == "dense" else 1e-8)


def test_results_come_in_order_from_several_threads(many_parts, monkeypatch):
    meeting = threading.Barrier(3, timeout=10)

    def work(k):
        meeting.wait()
        return k, threading.get_ident()

    run = lambda: list(threads.in_order(work, range(9), 1))  # noqa: E731
    found = with_threads(monkeypatch, 3, run)
    assert [k for k, _ in found] == list(range(9))
    assert len({who for _, who in found}) == 3
    assert threading.get_ident() in {who for _, who in found}


def test_work_within_work_stays_on_its_thread(many_parts, monkeypatch):
    def within(k):
        here = threading.get_ident()
        return {who == here for who in threads.in_order(lambda _: threading.get_ident(), "abc", 1)}

    found = with_threads(monkeypatch, 2, lambda: list(threads.in_order(within, range(4), 1)))
    assert found == [{True}] * 4


def test_an_error_reaches_the_caller_and_frees_the_threads(many_parts, monkeypatch):
    def fail(k):
        raise ValueError(f"part {k}")

    def run():
        with pytest.raises(ValueError, match="part 0"):
            list(threads.in_order(fail, range(5), 1))
        assert not threads._threads.taken.locked()
        return list(threads.in_order(str, range(3), 1))

    assert with_threads(monkeypatch, 2, run) == ["0", "1", "2"]


def test_parts_are_taken_as_they_are_needed(many_parts, monkeypatch):
    taken = []

    def parts():
        for k in range(50):
            taken.append((k, threading.current_thread() is threading.main_thread()))
            yield k

    def first_few():
        results = threads.in_order(str, parts(), 1)
        found = [next(results) for _ in range(3)]
        results.close()
        return found

    assert with_threads(monkeypatch, 2, first_few) == ["0", "1", "2"]
    assert len(taken) < 10
    assert all(on_main for _, on_main in taken)


def test_a_fork_makes_threads_of_its_own(many_parts, monkeypatch):
    with_threads(monkeypatch, 2, lambda: list(threads.in_order(str, range(3), 1)))
    before = threads._threads
    before.taken.acquire()
    threads._forget_threads()
    assert threads._threads is not before
    assert with_threads(monkeypatch, 2, lambda: list(threads.in_order(str, "ab", 1))) == ["a", "b"]


def test_threads_are_as_many_as_blas_was_allowed():
    with threadpool_limits(1, user_api="blas"):
        assert threads.n_threads() == 1
    free = threads.n_threads()
    with one_thread:
        assert threads.n_threads() == free
    assert 1 <= free <= cpu_count()


@pytest.mark.slow
def test_a_worker_of_joblib_has_its_share():
    shares = Parallel(n_jobs=2)(delayed(threads.n_threads)() for _ in range(2))
    assert all(share <= max(1, cpu_count() // 2) for share in shares)


def test_a_caller_with_threads_of_its_own_gets_no_more(many_parts, monkeypatch):
    def names():
        def who(_):
            time.sleep(0.01)
            return threading.current_thread().name

        return set(threads.in_order(who, range(8), 1.0))

    assert with_threads(monkeypatch, 2, names) != {threading.current_thread().name}
    with threads.no_more_threads():
        assert names() == {threading.current_thread().name}
    assert names() != {threading.current_thread().name}


@pytest.mark.parametrize("k", [3, 23, 24, 30, 61])
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_of_any_width_are_those_of_scipy(k, kind, order, many_parts, rng):
    X = sparse.random_array((500, 40), density=0.1, rng=rng, format=kind)
    products = sparse_products.SparseProducts(X)
    B, Z = (np.asarray(rng.standard_normal((m, k)), order=order) for m in X.shape[::-1])
    np.testing.assert_allclose(products.product(B), X @ B, atol=1e-12)
    np.testing.assert_allclose(products.transposed_product(Z), X.T @ Z, atol=1e-12)


@pytest.mark.parametrize(("k", "most"), [(24, 16), (30, 16), (150, 16), (61, 32), (5, 16)])
def test_columns_are_shared_in_whole_lanes(k, most):
    groups = sparse_products._narrow(k, most)
    sizes = [len(range(k)[group]) for group in groups]
    assert sum(sizes) == k and max(sizes) <= most
    assert all(size % sparse_products.LANES == 0 for size in sizes[:-1])


def test_parts_of_sparse_rows_are_no_copies(many_parts):
    X = sparse.random_array((500, 40), density=0.1, rng=np.random.default_rng(0)).tocsr()
    products = sparse_products.SparseProducts(X)
    for _, part in [*products._parts, *products._summands]:
        assert np.shares_memory(part.data, X.data)
        assert np.shares_memory(part.indices, X.indices)
    assert (len(products._parts), len(products._summands)) == (5, 3)
