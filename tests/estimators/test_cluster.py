"""Fits on clusters of dask: the same with any number of workers, and where workers are killed."""

import os
import signal
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import gnomon
from gnomon.linalg import blocks

da = pytest.importorskip("dask.array", reason="needs dask")
distributed = pytest.importorskip("distributed", reason="needs distributed")

N, D = 240, 8
RNG = np.random.default_rng(0)
CODES = np.arange(N) % 3
X = (3 * RNG.normal(size=(3, D)))[CODES] + RNG.normal(size=(N, D))
X = np.where(np.abs(X) > 1, X, 0.0)
SOME = np.where(np.arange(N) % 4, -1, CODES)
MODELS = {
    "PPCA": (gnomon.PPCA(2), None),
    "SPPCA": (gnomon.SPPCA(2), SOME),
    "SPPCA, likelihood": (gnomon.SPPCA(2, supervision="likelihood", tol=1e-10), SOME),
    "KernelSPPCA": (gnomon.KernelSPPCA(2, n_landmarks=30, random_state=0), SOME),
    "DCAGM": (gnomon.DCAGM(2, max_iter=3, random_state=0), SOME),
    "BSDR": (gnomon.BSDR(2, max_iter=2, random_state=0), CODES),
}
# Where a likelihood is flat, its maximum is open to the square root of what is left of it.
TOLERANCE = {"BSDR": 1e-6, "SPPCA, likelihood": 1e-6}


@pytest.fixture(autouse=True)
def rows_stay_where_they_are(monkeypatch):
    monkeypatch.setattr(blocks, "KEPT_ENTRIES", 0)


@contextmanager
def cluster(n_workers, processes):
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=processes, dashboard_address=":0"
        ) as workers,
        distributed.Client(workers),
    ):
        yield


def outcome(name, rows):
    model, y = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(rows, y).transform(X)


def hold(name, found, expected):
    size = np.abs(expected).max()
    assert_allclose(found, expected, rtol=0, atol=TOLERANCE.get(name, 1e-9) * size)


def kinds():
    dd, pandas = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    parts = da.from_array(X, chunks=(80, D))
    yield "array", parts
    yield "frame", dd.from_pandas(pandas.DataFrame(X), npartitions=3)
    yield "sparse chunks", parts.map_blocks(sparse.csr_array)


@pytest.mark.filterwarnings("ignore:.*feature names")
@pytest.mark.parametrize("name", MODELS)
def test_any_number_of_workers_gives_the_fit_in_memory(name):
    expected, rows = outcome(name, X), dict(kinds())
    by_threads = outcome(name, rows["array"])
    hold(name, by_threads, expected)
    for n_workers in (1, 2, 4):
        with cluster(n_workers, processes=False):
            assert_array_equal(outcome(name, rows["array"]), by_threads)
            if n_workers == 2:
                hold(name, outcome(name, rows["frame"].to_dask_array()), expected)
                hold(name, outcome(name, rows["sparse chunks"]), expected)


def deadly(folder, at):
    """Hands a chunk on; a worker that does so after n others is killed, one and no more."""

    # A function inside of another travels whole: workers need not import this module.
    def hand_on(chunk):
        before = len(os.listdir(folder))
        with open(os.path.join(folder, os.urandom(8).hex()), "w"):
            pass
        if before >= at:
            try:
                # Two workers may have counted the same.
                open(os.path.join(folder, "killed"), "x").close()
            except FileExistsError:
                return chunk
            os.kill(os.getpid(), signal.SIGKILL)
        return chunk

    return hand_on


def hold_to_a_kill(name, folder, at):
    rows = da.from_array(X, chunks=(20, D))
    expected = outcome(name, rows)
    killing = rows.map_blocks(deadly(str(folder), at), dtype=X.dtype, meta=np.empty((0, 0)))
    with cluster(2, processes=True):
        before = set(distributed.get_client().run(os.getpid).values())
        found = outcome(name, killing)
        after = set(distributed.get_client().run(os.getpid).values())
    assert len(os.listdir(folder)) > at
    assert before - after
    assert_array_equal(found, expected)


def test_a_worker_killed_in_the_middle_of_a_pass_changes_nothing(tmp_path):
    hold_to_a_kill("SPPCA", tmp_path, at=17)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_worker_killed_in_the_middle_changes_nothing_for_any_model(name, tmp_path):
    hold_to_a_kill(name, tmp_path, at=21)


@pytest.mark.slow
def test_rows_that_kill_every_worker_raise():
    import dask

    def kill(chunk):
        os.kill(os.getpid(), signal.SIGKILL)

    rows = da.from_array(X, chunks=(120, D)).map_blocks(kill, dtype=X.dtype, meta=np.empty((0, 0)))
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), cluster(1, processes=True):
        with pytest.raises(distributed.KilledWorker, match="died"):
            gnomon.PPCA(2).fit(rows)
