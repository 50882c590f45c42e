"""The oldest version of every package that pyproject.toml allows, as constraints for pip.

    python docs/floors.py > floors.txt
    pip install --constraint floors.txt ...

Packages that only the tests need are not held: what is promised is what users install.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Of a requirement: its name, perhaps what is asked of it in brackets, and its least version.
REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)(\[[^\]]*\])?>=([0-9.]+)$")


def floors(path=ROOT / "pyproject.toml") -> dict[str, str]:
    """Name to least version, of what is required and of every extra."""
    project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    asked = [one for each in lists for one in each if not one.startswith(project["name"])]
    found = [REQUIREMENT.match(one) for one in asked]
    return {match[1]: match[3] for match in found}


def main():
    """Print one line for each."""
    for name, version in sorted(floors().items()):
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
