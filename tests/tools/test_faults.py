"""Signals, full disks and kills while the command line works: what was there stays whole."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

# Runs the command line; SIGNAL comes when the function NAME of the commands is called.
SIGNALLED = """
import os, sys, threading
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
