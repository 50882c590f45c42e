"""Run the tests again and again with other seeds and in other orders, and count what ever fails.

    python benchmarks/repeats.py --runs 20           to results/repeats.json
    python benchmarks/repeats.py --runs 20 models    the tests of one folder or file

In each run hypothesis draws other data, which the push suite holds fixed; names have other hashes;
files, and the tests in each, come in another order. Every generator that is made from a whole
number, in a test or in the library, draws other numbers too, except with ``--same-seeds``; fits
without a random state have other draws in every run anyway.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve()
ROOT = SCRIPT.parents[1]
FOLDERS = ("linalg", "stats", "inference", "models", "estimators", "displays", "tools")


@contextmanager
def other_seeds(run):
    """Generators that are made from whole numbers draw other numbers, the same in all of a run."""
    made = np.random.default_rng

    def default_rng(seed=None):
        return made([int(seed), run] if isinstance(seed, int | np.integer) else seed)

    np.random.default_rng = default_rng
    try:
        yield
    finally:
        np.random.default_rng = made


class Other:
    """A plugin of pytest: another order, other data of hypothesis, and the names of what failed."""

    def __init__(self, seed):
        self.seed, self.failed, self.count = seed, set(), 0

    def pytest_collection_modifyitems(self, items):
        from hypothesis import settings

        chance, files = random.Random(self.seed), {}  # noqa: S311  no secret
        for item in items:
            files.setdefault(item.nodeid.split("::")[0], []).append(item)
            given = getattr(item.obj, "_hypothesis_internal_use_settings", None)
            if given is not None:
                item.obj._hypothesis_internal_use_settings = settings(given, derandomize=False)
        groups = list(files.values())
        for group in (groups, *groups):
            chance.shuffle(group)
        items[:] = [item for group in groups for item in group]

    def pytest_runtest_logreport(self, report):
        self.count += report.when == "call"
        if report.failed:
            self.failed.add(report.nodeid)


def run_once(seed, paths, out, same_seeds):
    """One run in this process; its outcome goes to a file."""
    plugin = Other(seed)
    options = ["-q", "--tb=line", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
    with nullcontext() if same_seeds else other_seeds(seed):
        pytest.main([*options, *paths], plugins=[plugin])
    Path(out).write_text(json.dumps({"failed": sorted(plugin.failed), "count": plugin.count}))


def repeat(paths, seeds, out, same_seeds) -> tuple[list[str], int]:
    """What failed in any run, each in a process of its own, and how many tests a run has."""
    failed, count = {}, 0
    for seed in seeds:
        command = [sys.executable, str(SCRIPT), "--once", str(seed), "--out", str(out), *paths]
        command += ["--same-seeds"] if same_seeds else []
        out.unlink(missing_ok=True)
        environment = os.environ | {"PYTHONHASHSEED": str(seed)}
        subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
        found = json.loads(out.read_text())
        count = found["count"]
        for name in found["failed"]:
            failed[name] = failed.get(name, 0) + 1
        print(seed, count, found["failed"], flush=True)
    return [f"{name} ({times})" for name, times in sorted(failed.items())], count


def main():
    """Repeat the tests of some folders, each noted when its runs are done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="seed of the first run")
    parser.add_argument("--same-seeds", action="store_true", help="tests keep theirs")
    parser.add_argument("--once", type=int)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "repeats.json")
    options = parser.parse_args()
    if options.once is not None:
        return run_once(options.once, options.folders, options.out, options.same_seeds)
    options.out.parent.mkdir(exist_ok=True)
    seeds = range(options.first, options.first + options.runs)
    for folder in options.folders:
        found = repeat([f"tests/{folder}"], seeds, options.out, options.same_seeds)
        note(folder, options.runs, *found)


def note(what, runs, failed, count):
    """Keep what was found of some tests beside what is known of others."""
    import measure

    path = measure.RESULTS / "repeats.json"
    record = json.loads(path.read_text()) if path.exists() else {"parts": []}
    parts = {part["what"]: part for part in record["parts"]}
    parts[what] = {"what": what, "runs": runs, "tests": count, "failed": failed}
    record = {"machine": measure.machine(), "parts": [parts[key] for key in sorted(parts)]}
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
