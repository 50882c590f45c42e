"""The audit of installed packages, on advisories that are made here."""

import json
import runpy
import zipfile
from pathlib import Path

import pytest

audit = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "audit.py"))


def advisory(*events, versions=(), name="Some.Package", **more):
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    package = {"name": name, "ecosystem": "PyPI"}
    part = {"package": package, "ranges": ranges, "versions": list(versions)}
    return {"id": "PYSEC-1", "affected": [part]} | more


SINCE, FIXED = {"introduced": "1.2"}, {"fixed": "1.10"}


@pytest.mark.parametrize(
    ("version", "events", "found"),
    [
        ("1.1", (SINCE, FIXED), False),
        ("1.2", (SINCE, FIXED), True),
        ("1.9", (SINCE, FIXED), True),
        ("1.10", (SINCE, FIXED), False),
        ("0.1", ({"introduced": "0"},), True),
        ("2.0", ({"introduced": "0"}, {"last_affected": "2.0"}), True),
        ("2.1", ({"introduced": "0"}, {"last_affected": "2.0"}), False),
        ("3.0", (SINCE, FIXED, {"introduced": "2.5"}), True),
        ("2.0", (SINCE, FIXED, {"introduced": "2.5"}), False),
    ],
)
def test_a_version_is_affected_from_its_hole_to_the_mending(version, events, found):
    for order in (events, events[::-1]):
        spoken = audit["affects"](advisory(*order), {"some-package": version})
        assert spoken == ([f"Some.Package {version}"] if found else [])


def test_versions_are_also_named_one_by_one():
    listed = advisory(versions=["1.0", "1.1"])
    assert audit["affects"](listed, {"some-package": "1.1"})
    assert not audit["affects"](listed, {"some-package": "1.2"})
    assert not audit["affects"](listed, {"other": "1.1"})
    assert not audit["affects"](listed | {"withdrawn": "2020-01-01"}, {"some-package": "1.1"})


@pytest.mark.parametrize("form", ["archive", "folder"])
def test_a_copy_of_the_advisories_is_read(form, tmp_path, monkeypatch, capsys):
    name, version = next(iter(audit["installed"]().items()))
    text = json.dumps(advisory(versions=[version], name=name, summary="a hole"))
    if form == "folder":
        (tmp_path / "a.json").write_text(text)
        path = tmp_path
    else:
        path = tmp_path / "all.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.json", text)
    monkeypatch.setenv("ADVISORIES", str(path))
    assert audit["main"]() == 1
    said = capsys.readouterr().out
    assert f"{name} {version}: PYSEC-1 a hole" in said
    assert "1 advisories, 1 of them on installed versions" in said


def test_without_a_copy_it_says_that_nothing_was_looked_for(monkeypatch, capsys):
    monkeypatch.delenv("ADVISORIES", raising=False)
    audit["main"]()
    assert "known vulnerabilities were not looked for" in capsys.readouterr().out
