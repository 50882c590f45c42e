"""Signals, full disks and kills while the command line works: what was there stays whole."""

import contextlib
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from typer.testing import CliRunner

from gnomon.tools import modelfile
from gnomon.tools.cli import app

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

# Runs the command line; SIGNAL comes when the function NAME of the commands is called.
SIGNALLED = """
import os, signal, sys, threading

# What a shell runs in the background ignores this signal, and so would this process after it.
signal.signal(signal.SIGINT, signal.default_int_handler)
from gnomon.tools import commands
from gnomon.tools.cli import main

name, number = sys.argv[1], int(sys.argv[2])
whole = getattr(commands, name)

def signalled(*args, **options):
    os.kill(os.getpid(), number)
    threading.Event().wait(0.05)
    return whole(*args, **options)

setattr(commands, name, signalled)
sys.argv = ["gnomon", *sys.argv[3:]]
main()
"""


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    kind = np.where(X[:, 0] + 0.2 * rng.standard_normal(40) > 0, "up", "down")
    lines = [
        "a,b,c,d,kind",
        *(f"{','.join(f'{v:.3f}' for v in x)},{k}" for x, k in zip(X, kind, strict=True)),
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "t.csv"


def signalled(name, number, *arguments):
    command = [sys.executable, "-c", SIGNALLED, name, str(int(number)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_ends_a_fit_in_its_iterations(table, tmp_path, number, code, word):
    out = tmp_path / "out"
    done = signalled(
        "_watch", number, "fit", table, "-t", "kind", "-m", "bsdr", "-k", "2", "-o", out
    )
    assert done.returncode == code
    assert done.stderr.splitlines()[-1] == f"{word}; nothing was written"
    assert not out.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_model_is_written_keeps_it(table, tmp_path, number):
    out = tmp_path / "out"
    done = signalled("_score", number, "fit", table, "-t", "kind", "-k", "2", "-o", out)
    assert done.returncode == 128 + number
    assert "; kept: " in done.stderr
    assert {path.name for path in out.iterdir()} == {"model.gnomon", "embedding.csv"}


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.stderr.splitlines()[-1:]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@contextlib.contextmanager
def files_up_to(size):
    """No file grows beyond so many bytes, as if the disk were full."""
    resource = pytest.importorskip("resource")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


FIT = ("-t", "kind", "-m", "sppca", "-k", "1")


@pytest.fixture
def mapped(table):
    """A table with a gap and a row without label, and the folder of its map."""
    lines = table.read_text().splitlines()
    lines[3] = "," + lines[3].partition(",")[2]
    lines[5] = lines[5].rpartition(",")[0] + ","
    table.write_text("\n".join(lines) + "\n")
    run("fit", table, *FIT, "-o", table.parent / "o")
    return table, table.parent / "o"


def test_a_fit_that_cannot_write_leaves_all_that_was_there(mapped):
    table, out = mapped
    before = contents(out)
    assert set(before) == {"model.gnomon", "embedding.csv", "predictions.csv", "report.html"}
    table.write_text(table.read_text().replace("1.", "2."))
    with files_up_to(100):
        (line,) = run("fit", table, *FIT, "-o", out, code=1)
    assert line == f"gnomon: {out / 'model.gnomon'}: file too large"
    assert contents(out) == before


def test_each_file_of_a_fit_is_the_old_one_or_the_new_one(mapped, tmp_path):
    table, out = mapped
    before = contents(out)
    table.write_text(table.read_text().replace("1.", "2."))
    run("fit", table, *FIT, "-o", tmp_path / "new")
    after = contents(tmp_path / "new")
    with files_up_to(len(after["report.html"]) - 1):
        (line,) = run("fit", table, *FIT, "-o", out, code=1)
    assert line == f"gnomon: {out / 'report.html'}: file too large"
    found = contents(out)
    assert set(found) == set(before)
    assert found["report.html"] == before["report.html"]
    for name in ("embedding.csv", "predictions.csv"):
        assert found[name] == after[name]
    modelfile.load(out / "model.gnomon")


COMMANDS = {
    "transform": "f.csv",
    "predict": "f.parquet",
    "impute": "f.csv",
    "report": "f.html",
    "compare": "comparison.csv",
}


def arguments_of(command, mapped, out):
    table, folder = mapped
    if command == "compare":
        return (table, "-t", "kind", "-k", "1", "--models", "PCA", "-o", out.parent)
    return (folder / "model.gnomon", table, "-o", out)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_cannot_be_written_leaves_the_old_one(mapped, tmp_path, command):
    out = tmp_path / "place" / COMMANDS[command]
    out.parent.mkdir()
    out.write_bytes(b"old")
    with files_up_to(20):
        (line,) = run(command, *arguments_of(command, mapped, out), code=1)
    assert line.startswith("gnomon: ")
    assert "too large" in line
    assert contents(out.parent) == {out.name: b"old"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("command", ["transform", "impute", "report"])
def test_a_full_disk_is_one_sentence(mapped, tmp_path, command):
    out = tmp_path / COMMANDS[command]
    out.symlink_to("/dev/full")
    (line,) = run(command, *arguments_of(command, mapped, out), code=1)
    assert line.startswith("gnomon: ")
    assert "no space left on device" in line.lower()
    assert os.path.exists("/dev/full")


# Runs the command line; the process is killed at its n-th write to a disk.
KILLED = """
import os, signal, sys
from gnomon.tools.cli import main

moment, sync = int(sys.argv[1]), os.fsync
count = iter(range(10**6))

def killed(handle):
    if next(count) == moment:
        os.kill(os.getpid(), signal.SIGKILL)
    return sync(handle)

os.fsync = killed
sys.argv = ["gnomon", *sys.argv[2:]]
main()
"""


def check_killed(mapped, tmp_path, moment):
    table, out = mapped
    before = contents(out)
    table.write_text(table.read_text().replace("1.", "2."))
    run("fit", table, *FIT, "-o", tmp_path / "new")
    after = contents(tmp_path / "new")
    command = [sys.executable, "-c", KILLED, str(moment), "fit", str(table), *FIT, "-o", str(out)]
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL
    found = {name: text for name, text in contents(out).items() if not name.startswith(".")}
    assert set(found) == set(before)
    modelfile.load(out / "model.gnomon")
    for name in ("embedding.csv", "predictions.csv"):
        assert found[name] in (before[name], after[name])
    assert found["report.html"].endswith(b"</html>\n") or found["report.html"].endswith(b"</html>")
    for file in out.iterdir():
        os.utime(file, (0, 0))
    run("fit", table, *FIT, "-o", out)
    assert set(contents(out)) == set(before)


def test_a_kill_in_a_write_leaves_whole_files_and_nothing_for_long(mapped, tmp_path):
    check_killed(mapped, tmp_path, 2)


# A file and its folder are synchronised: twice for model, embedding, predictions, model again
# with its score, and report.
@pytest.mark.slow
@pytest.mark.parametrize("moment", range(9))
def test_a_kill_in_any_write_leaves_whole_files(mapped, tmp_path, moment):
    check_killed(mapped, tmp_path, moment)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_kill_in_the_write_of_any_command_leaves_the_old_file(mapped, tmp_path, command):
    out = tmp_path / "place" / COMMANDS[command]
    out.parent.mkdir()
    out.write_bytes(b"old")
    arguments = [str(a) for a in (command, *arguments_of(command, mapped, out))]
    done = subprocess.run([sys.executable, "-c", KILLED, "0", *arguments], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    (leftover,) = {*contents(out.parent)} - {out.name}
    assert out.read_bytes() == b"old" and leftover.startswith(f".{out.name}.")
    os.utime(out.parent / leftover, (0, 0))
    run(*arguments)
    assert out.name in contents(out.parent) and out.read_bytes() != b"old"
    assert leftover not in contents(out.parent)


@pytest.mark.slow
def test_a_kill_at_any_time_leaves_whole_files(mapped, tmp_path):
    table, out = mapped
    command = [sys.executable, "-m", "gnomon", "fit", str(table), *FIT, "-o", str(out)]
    chance = random.Random(0)
    for _ in range(20):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(chance.uniform(0.5, 6))
        process.kill()
        process.wait()
        modelfile.load(out / "model.gnomon")
        for name in ("embedding.csv", "predictions.csv"):
            assert len((out / name).read_text().splitlines()) == (41 if name[0] == "e" else 2)
    for file in out.iterdir():
        os.utime(file, (0, 0))
    run("fit", table, *FIT, "-o", out)
    assert not [name for name in contents(out) if name.startswith(".")]


@pytest.mark.slow
def test_a_disk_that_is_full_leaves_all_that_was_there(mapped, tmp_path):
    table, _ = mapped
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)])
    if made.returncode:
        pytest.skip("only root makes a small disk")
    try:
        run("fit", table, *FIT, "-o", tmp_path / "first")
        for name, content in contents(tmp_path / "first").items():
            (disk / name).write_bytes(content[:20_000])
        before = contents(disk)
        (disk / "ballast").write_bytes(bytes(256 * 1024 - sum(map(len, before.values())) - 24_000))
        (line,) = run("fit", table, *FIT, "-o", disk, code=1)
        assert line.endswith("no space left on device")
        found = contents(disk)
        assert found["report.html"] == before["report.html"]
        assert not [name for name in found if name.startswith(".")]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
