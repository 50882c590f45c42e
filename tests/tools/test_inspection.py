"""What a model file says of itself, to people and to programs."""

import json
import shlex
from datetime import datetime

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import gnomon
from gnomon.tools import modelfile
from gnomon.tools.cli import app

HEADER = "name,size,soil,picked,planet,note,kind"


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def said(path, *options):
    """The names and texts that `gnomon inspect` prints, continued lines joined by newlines."""
    found: dict[str, list[str]] = {}
    name = ""
    lines = run("inspect", path, *options).splitlines()
    width = len(lines[0]) - len(lines[0].removeprefix("model").lstrip())
    for line in lines:
        name = line[:width].strip() or name
        found.setdefault(name, []).append(line[width:])
    return {name: "\n".join(texts) for name, texts in found.items()}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of a table with columns of every kind, in a folder with a blank in its name."""
    folder = tmp_path_factory.mktemp("a table")
    rng = np.random.default_rng(0)
    lines = [HEADER]
    for i, value in enumerate(rng.normal(size=30).round(3)):
        kind = "xy"[i % 2] if i < 11 else ""
        lines.append(
            f"row {i},{value + 3 * (i % 2)},{'sand clay loam'.split()[i % 3]},"
            f"2020-01-{i % 28 + 1:02d},earth,{i},{kind}"
        )
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    options = ("--target", "kind", "--id", "name", "--ignore", "note", "-k", "1")
    run("fit", folder / "t.csv", *options, "--out", folder / "my map")
    return folder / "my map" / "model.gnomon"


def test_a_person_reads_what_the_model_is_and_what_it_was_fitted_to(model):
    text = said(model)
    first, second = text["model"].splitlines()
    assert first == "SPPCA: a map of 1 dimension from 4 features, for the classes 'kind'"
    assert second == gnomon.SPPCA.__doc__.splitlines()[0]
    assert text["rows"] == "30, 11 labelled: 'x' 6, 'y' 5"
    assert text["held out"].startswith("the model's prediction: accuracy ")
    assert text["fitted"].endswith("UTC to 't.csv'")
    assert "divided by their standard deviations" in text["reads"]
    assert text["versions"].startswith(f"gnomon {gnomon.__version__}, numpy ")


def test_a_person_reads_what_becomes_of_each_column(model):
    assert said(model)["columns"].splitlines() == [
        "'kind': target",
        "'name': names of the rows",
        "'size': number",
        "'soil': category of 3 levels, 'clay', 'loam', 'sand'",
        "'picked': date",
        "'note': left out, by --ignore",
        "'planet': left out, has only one value",
    ]


def test_the_commands_that_it_names_run(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("size,soil,picked\n1,sand,2020-02-01\n,clay,2020-01-07\n")
    commands = [shlex.split(line, comments=True) for line in said(model)["use it"].splitlines()]
    assert [words[1] for words in commands] == ["transform", "predict", "impute", "report"]
    for words in commands:
        run(*words[1:])
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".html"}


def test_what_few_ask_for_is_behind_an_option(model):
    short, whole = said(model), said(model, "--details")
    technical = {"parameters", "attributes", "arrays", "format", "checksum"}
    assert set(whole) - set(short) == technical
    assert whole["checksum"] == "right"
    assert "n_components=1" in whole["parameters"]
    assert "components_" in whole["attributes"]


def test_programs_get_all_of_it_as_values(model):
    values = json.loads(run("inspect", model, "--json"))
    assert (values["model"], values["dimensions"], values["features"]) == ("SPPCA", 1, 4)
    assert (values["rows"], values["labelled"], values["target"]) == (30, 11, "kind")
    assert values["classes"] == {"x": 6, "y": 5}
    assert values["table"] == "t.csv"
    age = datetime.now().astimezone() - datetime.fromisoformat(values["date"])
    assert 0 <= age.total_seconds() < 86_400
    score = values["held out"]
    assert score["low"] <= score["value"] <= score["high"]
    assert {c["use"] for c in values["columns"]} >= {"number", "date", "category", "left out"}
    assert values["checksum"] == "right"
    assert values["parameters"]["n_components"] == 1


def test_a_model_saved_in_python_says_how_it_is_used_there(tmp_path, rng):
    model = gnomon.PPCA(n_components=2).fit(rng.normal(size=(20, 3)))
    path = gnomon.save(model, tmp_path / "m.gnomon")
    text = said(path)
    assert text["model"].splitlines()[0] == "PPCA: a map of 2 dimensions from 3 features"
    assert text["use it"].startswith(f"model = gnomon.load({str(path)!r})")
    assert not {"rows", "fitted", "columns", "reads", "held out"} & set(text)
    assert json.loads(run("inspect", path, "--json"))["columns"] is None


def test_a_pipeline_is_named_by_its_steps(tmp_path, rng):
    pipeline = make_pipeline(StandardScaler(), "passthrough", gnomon.PPCA(1))
    path = gnomon.save(pipeline.fit(rng.normal(size=(9, 3))), tmp_path / "m.gnomon")
    text = said(path, "--details")
    assert text["model"] == "Pipeline: StandardScaler, passthrough, PPCA"
    assert text["use it"].endswith("it takes what it was fitted on")
    assert "steps" not in text["parameters"]


def test_a_file_without_facts_of_its_fit_is_read(model, tmp_path):
    """As the first versions wrote them."""
    file = modelfile.read(model)
    notes = {name: part for name, part in file.notes.items() if name != "fit"}
    path = modelfile.save(file.model(), tmp_path / "old.gnomon", notes=notes)
    text = said(path)
    assert "'size': number" in text["columns"]
    assert not {"rows", "fitted", "held out"} & set(text)


def test_how_the_table_is_read_is_said(model, tmp_path):
    file = modelfile.read(model)
    notes = file.notes | {"reading": {"separator": ";", "decimal": ","}}
    path = modelfile.save(file.model(), tmp_path / "m.gnomon", notes=notes)
    assert "separator ';', decimal ','; numbers" in said(path)["reads"]


def test_of_many_columns_and_levels_the_first_are_shown(tmp_path, rng):
    X = rng.normal(size=(30, 24)).round(3)
    lines = [",".join([f"c{j}" for j in range(24)] + ["k"])]
    lines += [",".join([*map(str, row), f"k{i % 10}"]) for i, row in enumerate(X)]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    run("fit", tmp_path / "wide.csv", "-k", "1", "--out", tmp_path / "o")
    path = tmp_path / "o" / "model.gnomon"
    assert said(path)["columns"].splitlines()[-2:] == [
        "'c19': number",
        "and 5 more, with --details",
    ]
    last = said(path, "--details")["columns"].splitlines()[-1]
    assert last.startswith("'k': category of 10 levels, 'k0', ")
    assert last.endswith("'k7' and 2 more")


def test_a_matrix_has_columns_too(tmp_path, rng):
    np.savez(tmp_path / "t.npz", X=rng.normal(size=(20, 2)))
    run("fit", tmp_path / "t.npz", "-k", "1", "--out", tmp_path / "o")
    text = said(tmp_path / "o" / "model.gnomon")
    assert text["columns"] == "'x1': number\n'x2': number"
    assert text["reads"] == "a matrix; numbers are not scaled"


def test_signs_that_a_terminal_would_obey_are_not_printed(tmp_path):
    notes = {"fit": {"date": "2026-01-01T00:00:00+00:00", "table": "x\x1b[2J\nrows 1", "rows": 3}}
    path = modelfile.save(gnomon.PPCA(1, solver="\x1b[2J"), tmp_path / "m.gnomon", notes=notes)
    text = run("inspect", path, "--details")
    assert "\x1b" not in text
    assert "rows 1" not in text.splitlines()


@pytest.mark.parametrize("fit", [1, {"rows": "many"}, {"rows": 3, "score": {"name": "x"}}])
def test_facts_that_are_none_are_refused_in_a_sentence(tmp_path, fit):
    path = gnomon.save(gnomon.PPCA(n_components=1), tmp_path / "m.gnomon", notes={"fit": fit})
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exit_code == 1
    assert "is damaged: " in result.stderr
    assert "should not happen" not in result.stderr
