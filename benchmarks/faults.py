"""Run every test of kills, signals, full disks, lost workers, threads and processes, and count.

python benchmarks/faults.py            the short ones and the long ones, to results/faults.*
"""

import sys
from collections import Counter
from pathlib import Path

import pytest

from measure import write

ROOT = Path(__file__).parents[1]
FILES = (
    "tests/estimators/test_faults.py",
    "tests/estimators/test_interrupts.py",
    "tests/estimators/test_cluster.py",
    "tests/inference/test_checkpoint.py",
    "tests/tools/test_faults.py",
)


class Count:
    """A plugin of pytest: outcomes by test function."""

    def __init__(self):
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.split("[")[0]
            self.outcomes.setdefault(name, Counter())[report.outcome] += 1


def main():
    """Run the files, short tests and long ones, and write the table."""
    count = Count()
    files = [str(ROOT / file) for file in FILES]
    options = ["-q", "-p", "no:cacheprovider", "-m", "slow or not slow", f"--rootdir={ROOT}"]
    status = pytest.main([*options, *sys.argv[1:], *files], plugins=[count])
    rows = [
        [name.split("::")[0], name.split("::test_")[1].replace("_", " ")]
        + [outcome[kind] for kind in ("passed", "skipped", "failed")]
        for name, outcome in count.outcomes.items()
    ]
    notes = [
        "A case is one estimator with one of its options, one command or one moment. A skipped",
        "case is a fit without a second iteration, so that nothing of it can be lost. Twenty kills",
        "of a fit are one case.",
    ]
    write(
        "faults",
        "Faults that were made to happen",
        ["file", "what holds", "passed", "skipped", "failed"],
        rows,
        notes,
    )
    return status


if __name__ == "__main__":
    sys.exit(main())
