"""The oldest version of every package that pyproject.toml allows, and tests with these.

    python docs/floors.py > floors.txt                as constraints for pip or uv
    python docs/floors.py --run floor                 the push suite in this environment, noted

What is promised is what users install; packages that only the tests need are held where newer
ones do not go with these.
`make test-versions` builds both environments and notes them in benchmarks/results/versions.json.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "versions.json"
# Of a requirement: its name, perhaps what is asked of it in brackets, and its least version.
REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(\[[^\]]*\])?>=([0-9.]+)$")
# Packages of the same time: newer ones warn in the oldest matplotlib, typer and scikit-learn, and
# data frames of polars have another protocol than that scikit-learn reads.
BESIDE = {"pyparsing": "3.2.0", "click": "8.2.1", "pytest": "8.4.0", "polars": "1.20.0"}
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|error)")


def floors(path=ROOT / "pyproject.toml") -> dict[str, str]:
    """Name to least version, of what is required and of every extra."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    asked = {one for each in lists for one in each if not one.startswith(project["name"])}
    found = [REQUIREMENT.match(one) for one in sorted(asked)]
    return {match[1]: match[3] for match in found if match}


def installed() -> dict[str, str]:
    """Versions here of the same packages."""
    found = {}
    for name in floors():
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def run(name) -> int:
    """The push suite with two workers; how it ended is noted under this name."""
    command = [sys.executable, "-m", "pytest", "-n", "2", "-q"]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=False)
    print(done.stdout)
    note(name, done.stdout)
    return done.returncode


def note(name, told):
    """The counts that pytest told of, with the versions of this environment."""
    last = told.strip().splitlines()[-1]
    record = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    record[name] = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "tests": {word: int(number) for number, word in COUNTS.findall(last)},
        "versions": installed(),
    }
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main():
    """Print one line for each package, or run the tests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", metavar="NAME", help="run the push suite and note it")
    options = parser.parse_args()
    if options.run:
        sys.exit(run(options.run))
    for name, least in (floors() | BESIDE).items():
        print(f"{name}=={least}")


if __name__ == "__main__":
    main()
