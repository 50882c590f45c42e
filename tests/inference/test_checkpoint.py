import os
import resource
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gnomon import PPCA
from gnomon.datasets import make_subspace, remove_entries
from gnomon.inference import checkpoint
from gnomon.inference.callbacks import Checkpoint, Progress
from gnomon.stats.gaussian import View


@pytest.fixture
def X():
    return remove_entries(make_subspace(80, 8, 2).X, 0.2)


class StopAt(Checkpoint):
    def __init__(self, path, n):
        super().__init__(path, every=1)
        self.n = n

    def __call__(self, n_iter, state, objective):
        super().__call__(n_iter, state, objective)
        return n_iter == self.n


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n", [1, 3, 7])
def test_a_resumed_fit_equals_an_uninterrupted_one_to_the_bit(X, tmp_path, n):
    path = tmp_path / "fit.npz"
    whole = PPCA(2, tol=1e-12).fit(X)
    PPCA(2, tol=1e-12, callback=StopAt(path, n)).fit(X)
    resumed = PPCA(2, tol=1e-12, callback=Checkpoint(path)).fit(X)
    assert_array_equal(resumed.components_, whole.components_)
    assert resumed.noise_variance_ == whole.noise_variance_
    assert resumed.objective_ == whole.objective_


def test_a_checkpoint_of_other_data_is_refused(X, tmp_path):
    path = tmp_path / "fit.npz"
    PPCA(2, callback=Checkpoint(path, every=1)).fit(X)
    with pytest.raises(ValueError, match=r"fit\.npz.*other data"):
        PPCA(2, callback=Checkpoint(path)).fit(X + 1)
    with pytest.raises(ValueError, match=r"fit\.npz.*other data"):
        PPCA(2, tol=1e-3, callback=Checkpoint(path)).fit(X)


STATE = (View(np.arange(6.0).reshape(3, 2), 0.5), np.array([1.0]))


def test_a_state_comes_back_with_its_types(tmp_path):
    checkpoint.save(tmp_path / "s", STATE, [1.0, 2.0], "mark")
    state, objective = checkpoint.load(tmp_path / "s", STATE, "mark")
    assert isinstance(state[0], View)
    assert_array_equal(state[0].W, STATE[0].W)
    assert state[0].sigma2 == 0.5
    assert isinstance(state[0].sigma2, float)
    assert objective == [1.0, 2.0]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_cut_file_is_refused(tmp_path, share):
    path = tmp_path / "s"
    checkpoint.save(path, STATE, [1.0], "mark")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="damaged"):
        checkpoint.load(path, STATE, "mark")


def test_a_flipped_byte_is_refused_or_harmless(tmp_path):
    path = tmp_path / "s"
    checkpoint.save(path, STATE, [1.0], "mark")
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(len(content), size=300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(damaged))
        try:
            state, objective = checkpoint.load(path, STATE, "mark")
        except ValueError:
            continue
        assert_array_equal(state[0].W, STATE[0].W)
        assert objective == [1.0]


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "s"
    checkpoint.save(path, STATE, [1.0], "mark")
    before = path.read_bytes()

    def fail(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        checkpoint.save(path, STATE, [1.0, 2.0], "mark")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


# NumPy before 2.2 leaves its archive open after a failed write; its destructor then complains.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_limit_on_file_size_leaves_the_old_file(tmp_path):
    path = tmp_path / "s"
    checkpoint.save(path, STATE, [1.0], "mark")
    before = path.read_bytes()
    large = (View(np.zeros((4000, 20)), 0.5), np.array([1.0]))
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, old[1]))
        with pytest.raises(OSError):
            checkpoint.save(path, large, [1.0], "mark")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def save_and_be_killed(path, state, moment):
    """A save in a child that is killed before its n-th call of a function that reaches the disk."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    calls = iter(range(10**6))

    def killing(function):
        def call(*args, **kwargs):
            if next(calls) == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    for name in ("write_array", "_write_array"):
        if hasattr(np.lib.format, name):
            setattr(np.lib.format, name, killing(getattr(np.lib.format, name)))
    os.fsync, os.replace, os.chmod = killing(os.fsync), killing(os.replace), killing(os.chmod)
    try:
        checkpoint.save(path, state, [1.0, 2.0], "mark")
    finally:
        os._exit(0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_kill_while_a_checkpoint_is_written_leaves_the_old_one_or_the_new_one(tmp_path):
    path, new = tmp_path / "s", (View(np.ones((300, 20)), 0.25), np.array([2.0]))
    checkpoint.save(path, STATE, [1.0], "mark")
    old, kills = path.read_bytes(), 0
    while save_and_be_killed(path, new, kills) == -signal.SIGKILL:
        if path.read_bytes() != old:
            state, objective = checkpoint.load(path, new, "mark")
            assert_array_equal(state[0].W, new[0].W)
            assert objective == [1.0, 2.0]
            path.write_bytes(old)
        kills += 1
    assert kills > 4
    assert checkpoint.load(path, new, "mark").objective == [1.0, 2.0]


SCRIPT = """
    import sys, time
    import numpy as np
    from gnomon import PPCA
    from gnomon.datasets import make_subspace, remove_entries
    from gnomon.inference.callbacks import Checkpoint

    class Slow(Checkpoint):
        def __call__(self, n_iter, state, objective):
            super().__call__(n_iter, state, objective)
            time.sleep(0.005)

    X = remove_entries(make_subspace(200, 12, 3).X, 0.2)
    model = PPCA(3, tol=1e-13, callback=Slow(sys.argv[1], every=1)).fit(X)
    np.savez(sys.argv[2], W=model.components_, s=model.noise_variance_)
"""


@pytest.mark.slow
def test_killed_fits_resume_to_the_bit(tmp_path):
    script = tmp_path / "fit.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def run(name):
        command = [sys.executable, str(script), str(tmp_path / name), str(tmp_path / f"{name}.out")]
        return subprocess.Popen(command)

    assert run("whole").wait() == 0
    expected = np.load(tmp_path / "whole.out.npz")
    rng = np.random.default_rng(0)
    for trial in range(10):
        name = f"killed{trial}"
        for _ in range(3):
            process = run(name)
            try:
                process.wait(timeout=float(rng.uniform(1.0, 2.0)))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        assert run(name).wait() == 0
        actual = np.load(tmp_path / f"{name}.out.npz")
        assert_array_equal(actual["W"], expected["W"])
        assert actual["s"] == expected["s"]


@pytest.mark.parametrize("watcher", [lambda every: Checkpoint("fit.npz", every=every), Progress])
@pytest.mark.parametrize("every", [0, -1, 2.5, "ten", None, True])
def test_a_number_of_iterations_between_two_calls_is_whole_and_positive(watcher, every):
    with pytest.raises(ValueError, match=r"every == .*; accepted are integers >= 1"):
        watcher(every)
