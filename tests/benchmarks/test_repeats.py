"""Tests that are repeated have other seeds, but for those that speak of one sample."""

import json
import subprocess
import sys
from pathlib import Path

REPEATS = Path(__file__).parents[2] / "benchmarks" / "repeats.py"
TESTS = """
import numpy as np
import pytest

USUAL = 0.6369616873214543  # what a generator made from 0 draws first

def test_other_draws():
    assert np.random.default_rng(0).random() != USUAL

@pytest.mark.one_sample("its reason")
def test_its_own_draws():
    assert np.random.default_rng(0).random() == USUAL

def test_fails():
    assert np.random.default_rng(0).random() == USUAL
"""


def test_a_statement_about_one_sample_keeps_its_seeds(tmp_path):
    tests, out = tmp_path / "test_draws.py", tmp_path / "out.json"
    tests.write_text(TESTS)
    command = [sys.executable, str(REPEATS), "--once", "3", "--out", str(out), str(tests)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    found = json.loads(out.read_text())
    names = {key: [name.split("::")[1] for name in found[key]] for key in found}
    assert len(names["ran"]) == 3
    assert names["failed"] == ["test_fails"]
    assert names["kept"] == ["test_its_own_draws"]
    assert list(found["kept"].values()) == ["its reason"]


def test_slow_tests_are_repeated_when_asked_for_or_named(tmp_path):
    tests, out = tmp_path / "test_draws.py", tmp_path / "out.json"
    tests.write_text("import pytest\n\n@pytest.mark.slow\ndef test_long():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -m 'not slow'\nmarkers = slow\n")
    given = {
        "no": [tests.name],
        "asked": ["--slow", tests.name],
        "named": [f"{tests.name}::test_long"],
    }
    ran = {}
    for case, names in given.items():
        command = [sys.executable, str(REPEATS), "--once", "3", "--out", str(out), *names]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        ran[case] = len(json.loads(out.read_text())["ran"])
    assert ran == {"no": 0, "asked": 1, "named": 1}
