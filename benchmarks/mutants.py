"""Break the code one line at a time and see whether the tests notice.

    python benchmarks/mutants.py --number 200 --seed 0      draw and run; goes on where it stopped
    python benchmarks/mutants.py --report                   what was caught, and what survived

A mutant is one change of one line of `models`, `stats`, `linalg`, `inference` or `estimators`: a
sign, a factor, a number by one, a comparison, a word of logic. It is caught where a test fails or
does not end. The tests of the same file run first, then those of its folder, then those of the
estimators that stand on it, until one fails. Each mutant is a line of the file of results, so that
a run may be stopped and begun again at any time.
"""

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
LAYERS = ("models", "stats", "linalg", "inference", "estimators")
RESULTS = ROOT / "benchmarks" / "results" / "mutants.jsonl"
# Seconds after which tests of a mutant do not end: the slowest folder takes a tenth of them.
LIMIT = 1200
# Tests that see every estimator, by properties that no single file has.
OF_ALL = ("test_properties.py", "test_failures.py", "test_contract.py")
# Estimators that stand on a family; a family of that name is its own.
USERS = {
    "gaussian": ("ppca", "sppca", "prpca"),
    "sppca": ("sppca", "kernel_sppca"),
    "strength": ("sppca", "kernel_sppca"),
    "relational": ("prpca",),
    "bsdr": ("bsdr", "bsdr_regressor", "probit"),
}

OPERATORS = {
    ast.Add: ("+", "-", "sign"),
    ast.Sub: ("-", "+", "sign"),
    ast.Mult: ("*", "/", "factor"),
    ast.Div: ("/", "*", "factor"),
    ast.Lt: ("<", "<=", "comparison"),
    ast.LtE: ("<=", "<", "comparison"),
    ast.Gt: (">", ">=", "comparison"),
    ast.GtE: (">=", ">", "comparison"),
    ast.Eq: ("==", "!=", "comparison"),
    ast.NotEq: ("!=", "==", "comparison"),
    ast.And: ("and", "or", "logic"),
    ast.Or: ("or", "and", "logic"),
}


class Mutant(NamedTuple):
    """A change of one place of a file, by its offsets in the text."""

    file: str
    line: int
    start: int
    stop: int
    new: str
    kind: str

    @property
    def key(self) -> str:
        """By which a result is known again."""
        return f"{self.file}:{self.line}:{self.start}:{self.new}"


def sites(path) -> list[Mutant]:
    """Every change that could be made in a file."""
    text, name = path.read_text(), path.relative_to(ROOT).as_posix()
    starts = np.cumsum([0] + [len(line) for line in text.splitlines(keepends=True)])
    found = []
    for node in ast.walk(ast.parse(text)):
        for (left, right), (old, new, kind) in _between(node):
            begin, end = starts[left[0] - 1] + left[1], starts[right[0] - 1] + right[1]
            place = text.find(old, begin, end)
            if place >= 0 and text[begin:place].strip(" ()\n") == "":
                line = text.count("\n", 0, place) + 1
                found.append(Mutant(name, line, place, place + len(old), new, kind))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            begin = int(starts[node.lineno - 1] + node.col_offset)
            end = int(starts[node.end_lineno - 1] + node.end_col_offset)
            whole = isinstance(node.value, int)
            new = str(node.value + 1) if whole else repr(node.value * 2 or 1.0)
            kind = "off by one" if whole else "factor"
            found.append(Mutant(name, node.lineno, begin, end, new, kind))
    return found


def _between(node):
    """Pairs of places around an operator, and what it would become."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield _gap(node.left, node.right), OPERATORS[type(node.op)]
    if isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield _gap(left, right), OPERATORS[type(node.op)]
    if isinstance(node, ast.Compare):
        places = [node.left, *node.comparators]
        for left, right, operator in zip(places, places[1:], node.ops, strict=False):
            if type(operator) in OPERATORS:
                yield _gap(left, right), OPERATORS[type(operator)]


def _gap(left, right):
    return (left.end_lineno, left.end_col_offset), (right.lineno, right.col_offset)


def draw(number, seed) -> list[Mutant]:
    """So many of all mutants there are, by chance."""
    every = [
        mutant
        for layer in LAYERS
        for path in sorted((ROOT / "src" / "gnomon" / layer).rglob("*.py"))
        for mutant in sites(path)
    ]
    chosen = np.random.default_rng(seed).permutation(len(every))[:number]
    return [every[i] for i in chosen]


def tests_of(file) -> list[list[str]]:
    """Tests of a file in turn: those of its name, of its folder, of what stands on it."""
    inside = Path(file).relative_to("src/gnomon")
    folder = ROOT / "tests" / inside.parent
    own = [folder / f"test_{inside.stem.lstrip('_')}.py"]
    if inside.parts[0] == "estimators":
        others = [ROOT / "tests" / "estimators" / name for name in OF_ALL]
    else:
        users = USERS.get(inside.parent.name, (inside.parent.name,))
        above = [ROOT / "tests" / "estimators" / f"test_{user}.py" for user in users]
        others = [folder, *above, *(ROOT / "tests" / "estimators" / name for name in OF_ALL)]
    turns = [own, *([path] for path in others)]
    return [[str(p) for p in turn if p.exists()] for turn in turns if any(p.exists() for p in turn)]


def run(mutant: Mutant, source: Path) -> str:
    """The test file that caught the mutant, "" where none did."""
    target = source / Path(mutant.file).relative_to("src")
    whole = target.read_text()
    target.write_text(whole[: mutant.start] + mutant.new + whole[mutant.stop :])
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        for turn in tests_of(mutant.file):
            try:
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                done = subprocess.run(
                    command + turn, cwd=ROOT, env=environment, timeout=LIMIT, **quiet
                )
            except subprocess.TimeoutExpired:
                return f"{turn[0]} (does not end)"
            if done.returncode not in (0, 5):
                return turn[0]
        return ""
    finally:
        target.write_text(whole)


def known_results() -> dict[str, dict]:
    """Results there are, by mutant."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {entry["key"]: entry for entry in map(json.loads, lines)}


def report():
    """Shares by kind, and the survivors."""
    entries = list(known_results().values())
    caught = [entry for entry in entries if entry["caught"]]
    print(f"{len(caught)} of {len(entries)} mutants were caught")
    for kind in sorted({entry["kind"] for entry in entries}):
        of_kind = [bool(entry["caught"]) for entry in entries if entry["kind"] == kind]
        print(f"  {kind:12} {sum(of_kind)} of {len(of_kind)}")
    for entry in entries:
        if not entry["caught"]:
            print(f"survived  {entry['file']}:{entry['line']}  {entry['was']}  ->  {entry['now']}")


def main():
    """Draw mutants and run those without a result, or report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        return report()
    RESULTS.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        done = known_results()
        for mutant in draw(options.number, options.seed):
            if mutant.key not in done:
                _note(mutant, run(mutant, source))
    report()


def _note(mutant, caught):
    """A line of the results, written at once."""
    text = (ROOT / mutant.file).read_text()
    was = text.splitlines()[mutant.line - 1].strip()
    changed = text[: mutant.start] + mutant.new + text[mutant.stop :]
    caught = caught.replace(f"{ROOT}/", "")
    entry = {"key": mutant.key, "file": mutant.file, "line": mutant.line, "kind": mutant.kind}
    entry |= {"was": was, "now": changed.splitlines()[mutant.line - 1].strip(), "caught": caught}
    with RESULTS.open("a") as file:
        file.write(json.dumps(entry) + "\n")
    print(f"{'caught' if caught else 'SURVIVED'}  {mutant.key}", flush=True)


if __name__ == "__main__":
    main()
