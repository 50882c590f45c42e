"""Fit a large csv file from the command line: time, and anonymous memory at its peak.

    python benchmarks/large_table.py [gigabytes] [folder]

Writes a table of planted structure of that size (2 by default) to the folder (a temporary one by
default), runs `gnomon fit` on it in a process of its own, and compares its memory with that of
reading the same file whole.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

import measure

COLUMNS, COMPONENTS, BLOCK = 40, 5, 50_000
READ_WHOLE = "import sys, pandas; pandas.read_csv(sys.argv[1])"
FIT = "import sys; sys.argv[0] = 'gnomon'; from gnomon.tools.cli import main; main()"


def write_table(path, size):
    """Rows of a five-dimensional structure in forty columns until the file has the size."""
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(COMPONENTS, COLUMNS))
    rows = 0
    with path.open("wb") as file:
        while file.tell() < size:
            X = rng.normal(size=(BLOCK, COMPONENTS)) @ loadings
            X += rng.normal(size=X.shape)
            table = pa.table({f"m{j}": X[:, j].round(5) for j in range(COLUMNS)})
            csv.write_csv(table, file, csv.WriteOptions(include_header=rows == 0))
            rows += BLOCK
    return rows


def run(*arguments):
    """Seconds and peak anonymous megabytes of a Python process."""
    start, peak = time.perf_counter(), 0
    process = subprocess.Popen([sys.executable, "-c", *arguments])
    while process.poll() is None:
        peak = max(peak, _anonymous(process.pid))
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"the process ended with {process.returncode}")
    return time.perf_counter() - start, peak


def _anonymous(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    kilobytes = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
    return int(kilobytes[0]) // 1024 if kilobytes else 0


def main():
    """Measure, print and keep."""
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        path = Path(folder) / "large.csv"
        n_rows = write_table(path, gigabytes * 1e9)
        size = f"{path.stat().st_size / 1e9:.2f} GB, {n_rows:,} rows x {COLUMNS}"
        out = str(Path(folder) / "out")
        options = ("--components", str(COMPONENTS), "--out", out, "--quiet")
        ours = run(FIT, "fit", str(path), *options)
        whole = run(READ_WHOLE, str(path))
    rows = [
        ["gnomon fit (read, fit, embedding, score, report)", size, *_cells(ours)],
        ["pandas.read_csv alone", size, *_cells(whole)],
        ["ratio of memory", "", "", f"{ours[1] / whole[1]:.2f}"],
    ]
    header = ["what", "file", "seconds", "peak anonymous MB"]
    measure.write("large_table", "A large csv file from the command line", header, rows)


def _cells(result):
    return [f"{result[0]:.0f}", f"{result[1]}"]


if __name__ == "__main__":
    main()
