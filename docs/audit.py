"""The installed packages against known vulnerabilities, without a network: ``make audit``.

Says which packages do not fit together (``pip check``), and, where ADVISORIES names a copy of the
advisories for PyPI that osv.dev publishes (``PyPI/all.zip``), which of them have known holes. It
says no more than the copy knows, and nothing of holes that nobody has reported.
"""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

from packaging.version import InvalidVersion, Version


def installed() -> dict[str, str]:
    """Versions by normalised names, those of this interpreter."""
    return {canonical(d.metadata["Name"]): d.version for d in distributions()}


def canonical(name) -> str:
    """A name as packages are compared by it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def advisories(path) -> Iterator[dict]:
    """The advisories of an archive, or of a folder of JSON files."""
    path = Path(path)
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            yield json.loads(file.read_text(encoding="utf-8"))
        return
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            yield json.loads(archive.read(name))


def affects(advisory, versions) -> list[str]:
    """The packages, with their versions, that an advisory speaks of."""
    if advisory.get("withdrawn"):
        return []
    found = []
    for part in advisory.get("affected", ()):
        package = part.get("package", {})
        version = versions.get(canonical(package.get("name", "")))
        if package.get("ecosystem") == "PyPI" and version and _is_affected(part, version):
            found.append(f"{package['name']} {version}")
    return found


def _is_affected(part, version):
    if version in part.get("versions", ()):
        return True
    ranges = [r["events"] for r in part.get("ranges", ()) if r.get("type") == "ECOSYSTEM"]
    return any(_is_within(events, Version(version)) for events in ranges)


def _is_within(events, version):
    """Whether a version is at or after one that brought the hole in, and before it was mended."""
    affected = False
    for event in sorted(events, key=_place):
        kind, value = next(iter(event.items()))
        if kind == "introduced" and version >= _version(value):
            affected = True
        if kind == "fixed" and version >= _version(value):
            affected = False
        if kind == "last_affected" and version > _version(value):
            affected = False
    return affected


def _place(event):
    return _version(next(iter(event.values())))


def _version(text):
    """A version; "0" is before all, and one of another kind is after all."""
    try:
        return Version("0.dev0" if text == "0" else text)
    except InvalidVersion:
        return Version("999999!0")


def main() -> int:
    """Print what was found; 1 where something was."""
    check = subprocess.run([sys.executable, "-m", "pip", "check", "--disable-pip-version-check"])
    versions, path = installed(), os.environ.get("ADVISORIES")
    print(f"{len(versions)} packages are installed")
    if not path:
        print("known vulnerabilities were not looked for: ADVISORIES names no copy of PyPI/all.zip")
        return check.returncode
    count = holes = 0
    for advisory in advisories(path):
        count += 1
        for package in affects(advisory, versions):
            holes += 1
            print(f"{package}: {advisory['id']} {advisory.get('summary', '')}")
    print(f"{count} advisories, {holes} of them on installed versions")
    return int(bool(check.returncode or holes))


if __name__ == "__main__":
    sys.exit(main())
