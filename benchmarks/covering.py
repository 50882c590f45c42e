"""Which tests run which lines, how long each takes, and the branches that no test takes.

    python benchmarks/covering.py --folder build/mutants           measure; goes on where it stopped
    python benchmarks/covering.py --folder build/mutants --report  to results/coverage.*

The tests of the push suite that mirror `models`, `stats`, `linalg`, `inference` and `estimators`
run file by file, each in a child of one process that has imported the libraries, on a copy of the
tree. `mutants.py` asks the result which tests can notice a changed line.
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import time
import traceback
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = ("models", "stats", "linalg", "inference", "estimators")
LIBRARIES = ("scipy.sparse.linalg", "sklearn.utils.estimator_checks", "pandas", "pytest")
OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=line"]
LEFT_OUT = (".git", ".venv*", "build", "_build", "gallery", "demo", ".*_cache", "__pycache__")


def copy_tree(folder, root=ROOT) -> Path:
    """The tree as it was when the first measurement began."""
    tree = Path(folder) / "tree"
    if not tree.exists():
        left_out = shutil.ignore_patterns(*LEFT_OUT) if root == ROOT else None
        shutil.copytree(root, tree, ignore=left_out)
    return tree


def import_libraries():
    """What every child would import again; of gnomon nothing, for a child may have another one."""
    for name in LIBRARIES:
        __import__(name)


def run_in_child(tree, job) -> int:
    """The exit status of a job in a child process that sees the copied tree alone."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        os.chdir(tree)
        os.environ |= {"PYTHONPATH": f"{tree}/src", "PYTHONDONTWRITEBYTECODE": "1"}
        said = os.open(tree.parent / "last.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.path.insert(0, f"{tree}/src")
        status = job()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def test_files(tree) -> list[str]:
    """The files that hold tests of the layers: their own, and the examples of docstrings."""
    own = [p for layer in LAYERS for p in sorted((tree / "tests" / layer).rglob("test_*.py"))]
    shown = [
        p
        for layer in LAYERS
        for p in sorted((tree / "src" / "gnomon" / layer).rglob("*.py"))
        if ">>>" in p.read_text()
    ]
    return [p.relative_to(tree).as_posix() for p in own + shown]


class Watch:
    """A plugin of pytest: the outcome, the seconds and the lines of each test."""

    def __init__(self, measured):
        self.measured, self.seconds, self.failed = measured, {}, set()

    def pytest_runtest_logstart(self, nodeid, location):
        self.measured.switch_context(nodeid)
        self.began = time.process_time()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] = time.process_time() - self.began
        if not report.passed:
            self.failed.add(report.nodeid)


def measure(file, tree, out):
    """Run a file of tests and keep what each test ran."""
    import coverage
    import pytest

    source = [f"{tree}/src/gnomon/{layer}" for layer in LAYERS]
    measured = coverage.Coverage(
        data_file=str(out.with_suffix(".coverage")), branch=True, source=source, config_file=False
    )
    sys.dont_write_bytecode = False
    measured.start()
    watch = Watch(measured)
    pytest.main([*OPTIONS, file], plugins=[watch])
    measured.stop()
    measured.save()
    lines = lines_by_test(measured.get_data(), tree)
    lines = {test: lines.get(test, {}) for test in set(watch.seconds) - watch.failed}
    found = {"hash": digest(tree / file), "seconds": watch.seconds, "lines": lines}
    found["failed"] = sorted(watch.failed)
    out.write_text(json.dumps(found))
    return 0


def lines_by_test(data, tree) -> dict[str, dict]:
    """By test and by file the numbers of the lines that were run."""
    lines = {}
    for path in data.measured_files():
        name = Path(path).relative_to(tree).as_posix()
        for number, tests in data.contexts_by_lineno(path).items():
            for test in tests:
                lines.setdefault(test, {}).setdefault(name, []).append(number)
    return lines


def digest(path) -> str:
    """By which a file that has changed is known."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def measure_all(folder, tree):
    """Measure every file of tests that has no result, or another one by now."""
    import_libraries()
    (folder / "lines").mkdir(parents=True, exist_ok=True)
    for file in test_files(tree):
        if not is_changed(folder, tree, file):
            continue
        out = result_of(folder, file)
        if run_in_child(tree, lambda file=file, out=out: measure(file, tree, out)):
            print(f"failed  {file}", flush=True)


def result_of(folder, file) -> Path:
    """Where the result of a file of tests is kept."""
    return Path(folder) / "lines" / (file.replace("/", ".") + ".json")


def is_changed(folder, tree, file) -> bool:
    """Whether a file of tests has no result, or that of another text."""
    out = result_of(folder, file)
    return not out.exists() or json.loads(out.read_text())["hash"] != digest(tree / file)


def known(folder) -> dict[str, dict]:
    """What was measured: by test its seconds and its lines."""
    return _known(tuple(sorted((Path(folder) / "lines").glob("*.json"))))


@lru_cache(1)
def _known(paths):
    tests = {}
    for path in paths:
        found = json.loads(path.read_text())
        for test, lines in found["lines"].items():
            lines = {file: set(numbers) for file, numbers in lines.items()}
            tests[test] = {"seconds": found["seconds"][test], "lines": lines}
    return tests


def report(folder, tree) -> dict[str, dict]:
    """Lines and branches by layer, of all tests together."""
    import coverage

    whole = coverage.Coverage(
        data_file=str(folder / "whole.coverage"), branch=True, config_file=False
    )
    whole.erase()
    whole.combine([str(p) for p in (folder / "lines").glob("*.coverage")], keep=True)
    out = folder / "coverage.json"
    whole.json_report(outfile=str(out), include=f"{tree}/src/*")
    files = json.loads(out.read_text())["files"]
    return {layer: _share(files, layer) for layer in LAYERS}


def _share(files, layer):
    """What is covered of a layer, with the places that no test reaches."""
    inside = {name: f for name, f in files.items() if f"/gnomon/{layer}/" in f"/{name}"}
    counts = [f["summary"] for f in inside.values()]
    missed = {
        name.split("src/gnomon/")[-1]: sorted({a if b < 0 else b for a, b in f["missing_branches"]})
        for name, f in inside.items()
        if f["missing_branches"]
    }
    taken, branches = (sum(c[k] for c in counts) for k in ("covered_branches", "num_branches"))
    run, lines = (sum(c[k] for c in counts) for k in ("covered_lines", "num_statements"))
    return {
        "lines": lines,
        "lines run": run,
        "branches": branches,
        "branches taken": taken,
        "missed": missed,
    }


def publish(shares):
    """Write the table of the layers, with the places that no test reaches."""
    from measure import write

    keys = ("lines", "lines run", "branches", "branches taken")
    rows = [[layer, *(share[key] for key in keys)] for layer, share in shares.items()]
    rows.append(["all", *(sum(row[i] for row in rows) for i in range(1, 5))])
    for row in rows:
        row.append(f"{100 * row[4] / row[3]:.1f} %" if row[3] else "none")
    notes = ["Lines to which no test takes a branch, by the tests of these layers alone:", ""]
    for share in shares.values():
        notes += [f"- `{n}`: {', '.join(map(str, at))}" for n, at in share["missed"].items()]
    header = ["layer", *keys, "share of branches"]
    write(
        "coverage", "Lines and branches that the push tests of five layers run", header, rows, notes
    )


def main():
    """Measure, or report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.report:
        return publish(report(folder, folder / "tree"))
    measure_all(folder, copy_tree(folder))


if __name__ == "__main__":
    main()
