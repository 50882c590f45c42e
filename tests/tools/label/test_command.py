"""The command ``gnomon label``: what it refuses before a page is opened."""

import pytest

pytest.importorskip("typer")
pytest.importorskip("starlette")
from typer.testing import CliRunner

from gnomon.tools.cli import app


@pytest.fixture
def run(write_table, tmp_path, monkeypatch):
    write_table(tmp_path)
    monkeypatch.chdir(tmp_path)

    def command(*words):
        return CliRunner().invoke(app, ["label", "table.csv", "--no-browser", *words])

    return command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "kind", "--image", "photo"], "no image column 'photo'"),
        (["--target", "kind", "--text", "names"], "did you mean 'name'?"),
        (["--target", "kind", "--id", "who"], "no id 'who'"),
        (["--target", "kind", "--classes", "a,,b"], "a class without a name"),
        (["--target", "kind", "--scale", "big"], "--scale 'big'"),
        (["--target", "kind", "--out", "table.csv"], "is a file"),
        (
            ["--target", "kind", "--model", "ppca"],
            "--model 'ppca'; accepted are auto, sppca, kernel-sppca, dcagm, bsdr",
        ),
        ([], "--target"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(run, words, said):
    result = run(*words)
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_number_that_marks_rows_without_a_label_is_asked_about(run, tmp_path):
    path = tmp_path / "table.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:10], *(line + '"-1"' for line in lines[10:])]) + "\n")
    result = run("--target", "kind")
    assert "'kind' has cells -1; say --unlabelled=-1" in result.output


def test_the_folder_of_another_table_is_refused(run, tmp_path):
    folder = tmp_path / "table-labels"
    folder.mkdir()
    head = '{"gnomon":"labels","format":1,"target":"kind","rows":7,"content":"x"}\n'
    (folder / "journal.jsonl").write_text(head)
    result = run("--target", "kind")
    assert result.exit_code == 1
    assert "other rows (rows, content differ); name another folder with --out" in result.output
