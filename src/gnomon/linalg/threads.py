"""Products of parts of the rows on several threads, with the results of one.

NumPy and SciPy let other threads run while they multiply. Parts are those of one thread, and
what they give comes back in their order, so that sums have the same digits whatever the number
of threads. BLAS has one thread meanwhile: a thread of ours for each core is enough. The caller
works too, on parts that nobody has begun: others need time to wake, and may wait for a core.

Threads are as many as the process may use (affinity and the limits of a container, by joblib),
and as BLAS was allowed: whoever limits BLAS, as joblib does for its workers, limits these. They
serve one caller at a time; another one, of a pool of its own, works on its own thread.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from joblib import cpu_count

from gnomon.linalg.solve import one_thread

# Multiplications from which other threads are woken: fewer take about as long as waking them.
LEAST_WORK = 2**23


class _Threads:
    """Threads that wait for work, made when there is some."""

    def __init__(self):
        self.taken = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._size = 0

    def pool(self, size) -> ThreadPoolExecutor:
        """So many threads."""
        if self._pool is None or self._size != size:
            if self._pool is not None:
                self._pool.shutdown(wait=False)
            self._pool, self._size = ThreadPoolExecutor(size, "gnomon"), size
        return self._pool


_threads = _Threads()


def _forget_threads():
    """In a fork there are no threads but the one that forked."""
    global _threads
    _threads = _Threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def n_threads() -> int:
    """Threads that products may have: cores of the process, and what BLAS was allowed."""
    return max(1, min(_cores(*_affinity()), one_thread.allowed()))


def _affinity():
    """The cores that this process is bound to, where the system tells."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else ()


@lru_cache(maxsize=8)
def _cores(*affinity):
    # A container's limits are read from files, which takes as long as a small product.
    return cpu_count()


def in_order(function: Callable, parts: Iterable, work: float) -> Iterator[Any]:
    """``function(part)`` for every part, in their order; ``work`` is their multiplications.

    Parts are taken as they are needed, on the thread of the caller.
    """
    several = not isinstance(parts, Sized) or len(parts) > 1
    size, threads = n_threads() if work >= LEAST_WORK and several else 1, _threads
    if size == 1 or not threads.taken.acquire(blocking=False):
        yield from map(function, parts)
        return
    try:
        with one_thread:
            yield from _ahead(threads.pool(size - 1).submit, function, parts, 2 * size)
    finally:
        threads.taken.release()


@contextmanager
def no_more_threads():
    """Products on the threads that ask for them, for a caller that has threads of its own."""
    threads = _threads
    taken = threads.taken.acquire(blocking=False)
    try:
        with one_thread:
            yield
    finally:
        if taken:
            threads.taken.release()


def _ahead(submit, function, parts, most):
    """Results in order, with at most so many parts begun and not yet taken."""
    waiting: deque = deque()
    for part in parts:
        waiting.append([submit(function, part), part])
        if len(waiting) > most:
            yield _first(waiting, function)
    while waiting:
        yield _first(waiting, function)


def _first(waiting, function):
    """The first result; until it is there the caller does parts that no thread has begun."""
    while not waiting[0][0].done():
        own = next((task for task in waiting if task[0].cancel()), None)
        if own is None:
            break
        own[0] = _done(function, own[1])
    return waiting.popleft()[0].result()


def _done(function, part):
    """A part done on this thread; an error waits for its turn."""
    future: Future = Future()
    try:
        future.set_result(function(part))
    except Exception as error:
        future.set_exception(error)
    return future
