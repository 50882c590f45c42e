"""Products of parts of the rows on several threads, with the results of one.

NumPy and SciPy let other threads run while they multiply. Parts are those of one thread, and
what they give comes back in their order, so that sums have the same digits whatever the number
of threads. BLAS has one thread meanwhile: a thread of ours for each core is enough. The caller
works too, on parts that nobody has begun: others need time to wake, and may wait for a core.

Threads are as many as the process may use (affinity and the limits of a container, by joblib),
and as BLAS was allowed: whoever limits BLAS, as joblib does for its workers, limits these. They
serve one caller at a time; another one, of a pool of its own, works on its own thread. Where
other programs have the cores, a caller may wait longer for parts that others have begun than it
would have worked on them: it then works alone for a while.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from time import perf_counter
from typing import Any

from joblib import cpu_count

from gnomon.linalg.solve import one_thread

# Multiplications from which other threads are woken: fewer take about as long as waking them.
LEAST_WORK = 2**23
# Threads rest for so many times as long as a call has lost by them, so that asking them again costs
# a twentieth at most. With one of two cores busy KernelSPPCA of 200,000 rows with landmarks takes
# 1.05 to 1.15 of one thread's time without rest, 1.03 with; a quiet machine is as fast as before.
REST = 20


class _Threads:
    """Threads that wait for work, made when there is some."""

    def __init__(self):
        self.taken = Lock()
        self.rest_until = 0.0
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
    rests, account = perf_counter() < threads.rest_until, _Account()
    if size == 1 or rests or not threads.taken.acquire(blocking=False):
        yield from map(function, parts)
        return
    try:
        with one_thread:
            yield from _ahead(threads.pool(size - 1).submit, function, parts, 2 * size, account)
    finally:
        threads.rest_until = account.rest_until()
        threads.taken.release()


class _Account:
    """What a caller wins and loses by other threads: parts, and seconds."""

    def __init__(self):
        self.parts, self.own = 0, 0
        self.worked, self.waited = 0.0, 0.0

    def do(self, function, part) -> Future:
        """A part done on this thread."""
        before = perf_counter()
        future = _done(function, part)
        self.own, self.worked = self.own + 1, self.worked + perf_counter() - before
        return future

    def wait(self, future):
        """Stand still until another thread has done its part."""
        before = perf_counter()
        wait([future])
        self.waited += perf_counter() - before

    def rest_until(self) -> float:
        """When to ask threads again: later where the caller would have been sooner done alone."""
        if not self.own:
            return 0.0
        alone = (self.parts - self.own) * self.worked / self.own
        return perf_counter() + REST * max(self.waited - alone, 0.0)


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


def _ahead(submit, function, parts, most, account):
    """Results in order, with at most so many parts begun and not yet taken."""
    waiting: deque = deque()
    for part in parts:
        waiting.append([submit(function, part), part])
        if len(waiting) > most:
            yield _first(waiting, function, account)
    while waiting:
        yield _first(waiting, function, account)


def _first(waiting, function, account):
    """The first result; until it is there the caller does parts that no thread has begun."""
    while not waiting[0][0].done():
        own = next((task for task in waiting if task[0].cancel()), None)
        if own is None:
            account.wait(waiting[0][0])
        else:
            own[0] = account.do(function, own[1])
    account.parts += 1
    return waiting.popleft()[0].result()


def _done(function, part):
    """A part done on this thread; an error waits for its turn."""
    future: Future = Future()
    try:
        future.set_result(function(part))
    except Exception as error:
        future.set_exception(error)
    return future
