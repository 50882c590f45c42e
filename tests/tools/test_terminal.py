"""What reaches a terminal: no sign that it obeys, no line that is forged, nothing that it lacks."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from typer.testing import CliRunner

import gnomon
from gnomon.exceptions import ModelFileError, visible
from gnomon.tools import modelfile
from gnomon.tools.cli import app

# A colour, a title, a carriage return, a byte of its own kind of control, and words backwards.
EVIL = "a\x1b[2J\x1b]0;title\x07\r\x9b31m\u202eb"
FORGED = "a\nchecksum verified\n\x1b[32mright"


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.output + result.stderr


def is_harmless(text):
    return not any(sign in text for sign in "\x1b\x07\r\x9b\u202e")


def test_signs_that_a_terminal_obeys_are_shown_as_another():
    assert is_harmless(visible(EVIL))
    assert visible("a b\u00a0é\n", keep="\n") == "a b\u00a0é\n"
    assert visible("a\nb") == "a\ufffdb"


def notes_of(text):
    """Notes in which every text is a foreign one."""
    feature = {"column": text, "kind": "number", "levels": [], "center": np.zeros(1)}
    feature |= {"scale": np.ones(1), "low": 0.0, "high": 1.0, "whole": False, "boolean": False}
    recipe = {"features": [feature], "matrix_names": [], "matrix_center": None}
    recipe |= {"matrix_scale": None, "left_out": {text: f"is {text}"}, "scaled": True}
    recipe |= {"matrix_low": None, "matrix_high": None, "matrix_whole": None}
    asked = {"target": text, "task": text, "id": text, "ignore": (text,)}
    fit = {"table": text, "rows": 3, "date": "2020-01-01T00:00:00+00:00", "classes": {text: 3}}
    return {"recipe": recipe, "question": asked, "reading": {"encoding": text, text: 1}, "fit": fit}


def forged_file(path, text):
    model = gnomon.PPCA(1).fit(np.random.default_rng(0).standard_normal((9, 2)))
    model.stray_ = text
    modelfile.save(model, path, notes=notes_of(text))
    document = modelfile.read(path, lambda file: file.document)
    document["versions"] = {"gnomon": text, text: "1"}
    document["model"]["attributes"] |= {text: text}
    document["model"]["params"] |= {"n_components": text}
    arrays = modelfile.read(path, lambda file: file.arrays)
    path.write_bytes(modelfile._pack(json.dumps(document), arrays))


@pytest.mark.parametrize("text", [EVIL, FORGED])
@pytest.mark.parametrize("options", [(), ("--details",), ("--json",)])
def test_what_a_model_file_says_of_itself_does_nothing_to_a_terminal(tmp_path, text, options):
    forged_file(tmp_path / "m.gnomon", text)
    printed = run("inspect", tmp_path / "m.gnomon", *options)
    assert is_harmless(printed)
    assert not any(line.startswith("checksum verified") for line in printed.splitlines())


def test_names_of_files_that_are_no_models_do_nothing_to_a_terminal(tmp_path):
    forged_file(tmp_path / "m.gnomon", EVIL)
    content = (tmp_path / "m.gnomon").read_bytes()
    (tmp_path / "cut.gnomon").write_bytes(content.replace(b'"F64"', b'"\\u0'))
    with pytest.raises(ModelFileError) as caught:
        modelfile.load(tmp_path / "cut.gnomon")
    assert is_harmless(str(caught.value))
    assert is_harmless(run("transform", tmp_path / "m.gnomon", tmp_path / "t.csv", code=1))


@pytest.mark.parametrize(
    "content",
    [
        f"a,b\n1,2\n3,4,{EVIL}\n",
        f"a,{EVIL}\n1,2\n3,4\n5,7\n",
        f"a,b\n1,{EVIL}\n2,x\n3,y\n",
        f"a,b,{EVIL}\n1,2,1\n2,3,1\n3,5,1\n",
    ],
)
def test_cells_and_names_of_a_table_do_nothing_to_a_terminal(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content.encode())
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), "-o", str(tmp_path / "o")])
    assert is_harmless(result.output + result.stderr)
    result = CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), "-t", "zz"])
    assert result.exit_code == 1
    assert is_harmless(result.output + result.stderr)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = X @ [1.0, 2.0, 0.5] + 0.1 * rng.standard_normal(40)
    lines = [",".join(f"{v:.3f}" for v in row) for row in np.column_stack([X, y])]
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_text("höhe,b,c,größe\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_terminal_without_a_sign_gets_its_nearest_one(numbers, tmp_path):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "gnomon", "fit", str(numbers), "-t", "größe", "-k", "1"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "o")], capture_output=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert b"R2" in done.stdout
    assert (tmp_path / "o" / "report.html").exists()
