"""How the files of ``fits`` were made: what `gnomon fit` wrote with the second format.

    python tests/tools/golden/make_fits.py

Only run it for a new format, into new names: the old files stay as they are.
"""

import csv
import json
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np

from gnomon.tools import cli, modelfile

FOLDER = Path(__file__).parent / "fits"
# Of each file the table, and what is asked of it.
ASKED = {
    "flowers-plain": ("flowers.csv", "--id", "name", "--ignore", "kind", "-k", "2"),
    "flowers-classes": ("flowers.csv", "--id", "name", "-t", "kind", "-k", "2"),
    "flowers-bsdr": ("flowers.csv", "--id", "name", "-t", "kind", "-m", "bsdr", "-k", "1"),
    "flowers-numbers": ("flowers.csv", "--id", "name", "-t", "width", "-k", "1"),
    "matrix-classes": ("matrix.npz", "-t", "target", "--scale", "standard", "-k", "2"),
}


def write_tables():
    """Numbers, whole numbers, truth, categories, dates, and gaps, without random numbers."""
    with (FOLDER / "flowers.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "width", "count", "wet", "site", "day", "kind"])
        for i in range(36):
            row = [round(np.sin(i) + i % 3, 3), i * 7 % 11 + i % 3, i % 4 > 1, "pqr"[i * i % 3]]
            row += [f"2021-{1 + i % 3:02d}-{1 + i % 28:02d}", "abc"[i % 3] if i % 4 else ""]
            row[i % 5] = "" if i % 7 == 2 else row[i % 5]
            writer.writerow([f"row {i}", *row])
    i, j = np.mgrid[0:24, 0:4]
    X = np.sin(i * (j + 1) / 3.0) + (i % 3 == j) * 2.0
    X[5, 2] = np.nan
    np.savez(FOLDER / "matrix.npz", X=X, y=np.arange(24) % 3)


def run(*words):
    """A command of the shell."""
    with mock.patch.object(sys, "argv", ["gnomon", *map(str, words), "--quiet"]):
        try:
            cli.main()
        except SystemExit as end:
            if end.code:
                raise


def answers(model, table, folder):
    """What the commands write for the table: columns by name."""
    found = {}
    for command in ("transform", "predict"):
        out = Path(folder) / f"{command}.csv"
        try:
            run(command, model, table, "--out", out)
        except SystemExit:
            continue
        with out.open(newline="") as file:
            head, *rows = csv.reader(file)
        found[command] = dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))
    return found


def main():
    """A file and what the shell answers for its table, each."""
    FOLDER.mkdir(exist_ok=True)
    write_tables()
    for name, (table, *options) in ASKED.items():
        with tempfile.TemporaryDirectory() as folder:
            run("fit", FOLDER / table, *options, "--out", folder)
            content = (Path(folder) / "model.gnomon").read_bytes()
            stem = FOLDER / f"{name}-format{modelfile.FORMAT}"
            stem.with_suffix(".gnomon").write_bytes(content)
            found = answers(stem.with_suffix(".gnomon"), FOLDER / table, folder)
        stem.with_suffix(".json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
