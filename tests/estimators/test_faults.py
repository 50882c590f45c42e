"""Processes that are killed, forked or spawned, threads and lost workers, for every estimator."""

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from every import DEFAULTS, VARIANTS, fit, fit_and_say, outcome, outputs, rows
from numpy.testing import assert_array_equal
from sklearn.base import clone

from gnomon.inference.callbacks import Checkpoint

X, CLASSES = rows()
# A child of a process with threads of BLAS is warned of by later versions of Python.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def takes_checkpoint(name):
    """Whether a fit can be cut and gone on with: not one of several, nor draws."""
    single = "n_components=auto" not in name and "gibbs" not in name
    return single and "callback" in VARIANTS[name].get_params()


ITERATIVE = [name for name in VARIANTS if takes_checkpoint(name)]


class Slow(Checkpoint):
    """Leaves a killer time to strike at any moment of a short fit, also between two files."""

    def __call__(self, n_iter, state, objective):
        super().__call__(n_iter, state, objective)
        time.sleep(0.002)


def checkpointed(name, path, kind=Checkpoint):
    """A fit that takes many iterations and writes a file at each of them."""
    model = clone(VARIANTS[name]).set_params(callback=kind(path, every=1), max_iter=60)
    return model.set_params(tol=1e-12) if model.get_params().get("tol") is not None else model


def killed_fit(name, path, moment):
    """A fit in a process of its own that is killed after so many seconds, if it takes as long."""
    child = os.fork()
    if child == 0:
        try:
            model = checkpointed(name, path, Slow)
            fit(model, X, outputs(model, X, CLASSES))
        finally:
            os._exit(0)
    threading.Event().wait(moment)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def hold_to_kills(name, path, rng, times):
    whole = checkpointed(name, path)
    began = time.monotonic()
    fit(whole, X, outputs(whole, X, CLASSES))
    if not path.exists():
        pytest.skip("it has a closed form, or ends with its first iteration")
    lasts = time.monotonic() - began + 0.002 * whole.n_iter_
    path.unlink()
    for _ in range(times):
        killed_fit(name, path, rng.uniform(0, lasts))
        left = [p.name for p in path.parent.iterdir()]
        rest = checkpointed(name, path)
        fit(rest, X, outputs(rest, X, CLASSES))
        assert rest.objective_ == whole.objective_
        assert_array_equal(outcome(rest, X), outcome(whole, X))
        path.unlink()
        for leftover in left:
            path.with_name(leftover).unlink(missing_ok=True)


@pytest.mark.parametrize("name", ITERATIVE)
def test_a_fit_killed_at_some_moment_goes_on_to_the_same_bits(name, tmp_path):
    hold_to_kills(name, tmp_path / "fit.npz", np.random.default_rng(0), times=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ITERATIVE)
def test_a_fit_killed_at_any_moment_goes_on_to_the_same_bits(name, tmp_path):
    hold_to_kills(name, tmp_path / "fit.npz", np.random.default_rng(1), times=20)


@pytest.mark.parametrize("name", DEFAULTS)
def test_eight_threads_say_the_same_to_the_bit(name):
    model = clone(DEFAULTS[name])
    fit(model, X, outputs(model, X, CLASSES))
    expected = outcome(model, X)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: outcome(model, X), range(64)):
            assert_array_equal(found, expected)


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_other_processes_say_the_same_to_the_bit(way):
    with ProcessPoolExecutor(1, mp_context=get_context(way)) as pool:
        for name, found in zip(DEFAULTS, pool.map(fit_and_say, DEFAULTS), strict=True):
            assert_array_equal(found, fit_and_say(name))
