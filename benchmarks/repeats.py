"""Run the tests again and again with other seeds and in other orders, and count what ever fails.

    python benchmarks/repeats.py --runs 20           20 more runs, to results/repeats.json
    python benchmarks/repeats.py --runs 20 models    the tests of one folder or file
    python benchmarks/repeats.py --again             every test that ever failed, alone
    python benchmarks/repeats.py --runs 2 --slow     the slow tests, which the others leave out

In each run hypothesis draws other data, which the push suite holds fixed; names have other hashes;
files, and the tests in each, come in another order. Every generator that is made from a whole
number, in a test or in the library, draws other numbers too, except with ``--same-seeds``; fits
without a random state have other draws in every run anyway. A test with the mark ``one_sample`` is
a statement about its own sample: generators draw there what they always draw, all else differs.

The record has a part for each state of the code, in order, and is written after every run: seeds go
on from the last one of these tests, so that twenty runs may be made in pieces. A test that failed
holds again after twenty runs of a later state without a failure.
"""

import argparse
import hashlib
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
RUN = "REPEATS_RUN"  # tells processes that a test spawns which seeds they have
DEFAULT_RNG = np.random.default_rng
FOLDERS = ("linalg", "stats", "inference", "models", "estimators", "displays", "tools")


@contextmanager
def other_seeds(run):
    """Generators that are made from whole numbers draw other numbers, the same in all of a run."""

    def default_rng(seed=None):
        return DEFAULT_RNG([int(seed), run] if isinstance(seed, int | np.integer) else seed)

    with generators(default_rng, str(run)):
        yield


@contextmanager
def generators(made, run):
    """Generators as another function makes them, here and in processes that are spawned."""
    before = np.random.default_rng, os.environ.get(RUN, "")
    np.random.default_rng, os.environ[RUN] = made, run
    try:
        yield
    finally:
        np.random.default_rng, os.environ[RUN] = before


class Other:
    """A plugin of pytest: another order, other data of hypothesis, and the names of what failed."""

    def __init__(self, seed, only):
        self.seed, self.only, self.failed, self.ran, self.kept = seed, only, set(), set(), {}

    def pytest_collection_modifyitems(self, items):
        from hypothesis import settings

        if self.only:  # with the parameters of each, or of all
            names = [(item.nodeid, item.nodeid.split("[")[0]) for item in items]
            items[:] = [i for i, own in zip(items, names, strict=True) if self.only & {*own}]
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

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        mark = item.get_closest_marker("one_sample")
        if mark is None:
            return (yield)
        self.kept[item.nodeid] = mark.args[0]
        with generators(DEFAULT_RNG, ""):
            return (yield)

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            self.ran.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)


def run_once(seed, names, out, same_seeds, slow):
    """One run of folders, files or single tests in this process; its outcome goes to a file."""
    only = {name for name in names if "::" in name}
    plugin = Other(seed, only)
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", f"--hypothesis-seed={seed}"]
    options += ["-m", "slow"] if slow else ["-m", "slow or not slow"] if only else []
    with nullcontext() if same_seeds else other_seeds(seed):
        pytest.main([*options, *sorted({n.split("::")[0] for n in names})], plugins=[plugin])
    found = {"failed": sorted(plugin.failed), "ran": sorted(plugin.ran), "kept": plugin.kept}
    Path(out).write_text(json.dumps(found))


def run_apart(seed, names, out, same_seeds, slow):
    """One run in a process of its own, which says what it says to a file beside the outcome."""
    command = [sys.executable, str(SCRIPT), "--once", str(seed), "--out", str(out), *names]
    command += ["--same-seeds"] if same_seeds else []
    command += ["--slow"] if slow else []
    out.unlink(missing_ok=True)
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    with out.with_suffix(f".{seed}.log").open("w") as said:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=said, check=False)
    return json.loads(out.read_text())


def main():
    """Repeat the tests of some folders, each run noted when it is done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="or files, or single tests")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, help="seed of the first run")
    parser.add_argument("--same-seeds", action="store_true", help="tests keep theirs")
    parser.add_argument("--again", action="store_true", help="what failed in these folders, alone")
    parser.add_argument("--slow", action="store_true", help="those with the mark slow, alone")
    parser.add_argument("--once", type=int)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "repeats.json")
    options = parser.parse_args()
    if options.once is not None:
        given = options.out, options.same_seeds, options.slow
        return run_once(options.once, options.folders, *given)
    options.out.parent.mkdir(exist_ok=True)
    for folder in options.folders:
        names = ever_failed(folder) if options.again else [f"tests/{folder}"]
        repeat(folder, names, options) if names else None


def repeat(folder, names, options):
    """Runs with seeds that these tests have not had."""
    what = f"{folder}: what ever failed" if options.again else folder
    what += ": slow" if options.slow else ""
    first = next_seed(folder) if options.first is None else options.first
    seeds = "of hypothesis" if options.same_seeds else "all"
    for seed in range(first, first + options.runs):
        state = state_of_the_code(folder)
        found = run_apart(seed, names, options.out, options.same_seeds, options.slow)
        print(seed, len(found["ran"]), found["failed"], flush=True)
        key = {"what": what, "seeds": seeds, "code": state}
        note(key, seed, found, names if options.again or options.slow else None)


def state_of_the_code(folder):
    """A short name of what the library and these tests are now."""
    tests = ROOT / "tests" / folder.split("::")[0]
    found = [*(ROOT / "src").rglob("*.py"), *tests.rglob("*.py"), ROOT / "tests" / "conftest.py"]
    files = sorted([*found, tests] if tests.is_file() else found)
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def read_record():
    """What is known so far, oldest first."""
    path = ROOT / "benchmarks" / "results" / "repeats.json"
    return json.loads(path.read_text()) if path.exists() else {"parts": []}


def ever_failed(folder):
    """Tests of a folder that failed in any run, as the record has them."""
    failed = {name for part in read_record()["parts"] for name in part["failed"]}
    return sorted(name for name in failed if name.startswith(f"tests/{folder}"))


def next_seed(folder):
    """One more than any seed that tests of this folder had."""
    parts = [part for part in read_record()["parts"] if part["what"].startswith(folder)]
    return 1 + max((part["last_seed"] for part in parts), default=0)


def note(key, seed, found, names):
    """Add a run to those of the same tests and the same code."""
    import measure

    record = read_record()
    same = [part for part in record["parts"] if key.items() <= part.items()]
    if not same:
        same = [key | {"runs": 0, "tests": 0, "last_seed": 0, "failed": {}}]
        record["parts"] += same
    part = same[-1]
    part |= {"runs": part["runs"] + 1, "tests": len(found["ran"]), "last_seed": seed}
    part |= {"one_sample": dict(sorted(found["kept"].items()))}
    if names is not None:
        part |= {"names": found["ran"], "gone": sorted(set(names) - set(found["ran"]))}
    for name in found["failed"]:
        part["failed"][name] = part["failed"].get(name, 0) + 1
    record["machine"] = measure.machine()
    path = measure.RESULTS / "repeats.json"
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__mp_main__" and os.environ.get(RUN):
    spawned = other_seeds(int(os.environ[RUN]))
    spawned.__enter__()
if __name__ == "__main__":
    main()
