"""Six tables as people have them, each through every command; the figures are right."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
from pyarrow import csv
from typer.testing import CliRunner

import gnomon
from gnomon.tools.cli import app
from gnomon.tools.tables import as_numbers, open_table

import messy

SMALL = {
    "clinic": {"n": 120},
    "genes": {"n_genes": 60, "n_samples": 40},
    "wine": {"n": 90},
    "survey": {"n": 120},
    "spectra": {"n": 60, "n_wavelengths": 40},
    "sensors": {"n": 600, "n_columns": 8},
}


def run(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result


def options_of(truth):
    """What a person types: the target, and how the table is read where it cannot be seen."""
    targets = [truth["target"]] if isinstance(truth["target"], str) else truth["target"]
    typed = [part for name in targets for part in ("--target", name)]
    for option, value in truth["options"].items():
        if option == "na":
            typed += [part for word in value for part in ("--na", word)]
        else:
            typed += [f"--{option}"] if value is True else [f"--{option}", value]
    return typed


OF_ONE_SAMPLE = {
    "sensors": pytest.mark.one_sample("bounds from sixteen labels move by .2, as the rows fall")
}
PERSONS = [pytest.param(name, marks=OF_ONE_SAMPLE.get(name, ())) for name in messy.TABLES]


@pytest.fixture(scope="module", params=PERSONS)
def person(request, tmp_path_factory):
    """A table, the truth about it, and the folder of its map."""
    folder = tmp_path_factory.mktemp(request.param)
    path, truth = messy.TABLES[request.param](folder, **SMALL[request.param])
    out = folder / "map"
    result = run("fit", path, *options_of(truth), "-k", "2", "--out", out, "--json")
    return path, truth, out, json.loads(result.stdout)


def predicted_columns(table, truth):
    names = [truth["target"]] if isinstance(truth["target"], str) else truth["target"]
    several = len(names) > 1
    return np.column_stack([table[f"predicted {n}" if several else "predicted"] for n in names])


def test_the_fit_finds_what_is_there(person):
    _, truth, out, said = person
    known = truth["labelled"]
    whole = known.all(axis=1) if known.ndim == 2 else known
    assert said["rows"] == len(truth["ids"])
    assert said["labelled"] == whole.sum()
    assert said["held out"]["low"] > said["held out"]["baseline"]
    predicted = csv.read_csv(out / "predictions.csv").to_pydict()
    rows = np.flatnonzero(~whole)
    assert [str(name) for name in predicted["row"]] == [str(truth["ids"][i]) for i in rows]
    found = predicted_columns(predicted, truth)
    if truth["kind"] == "classes":
        assert np.mean(found[:, 0] == truth["y"][rows]) > said["held out"]["baseline"]
        return
    for j, name in enumerate(truth["target"]):
        hidden = ~known[rows, j]
        away = np.abs(found[hidden, j] - truth["y"][rows, j][hidden])
        assert np.mean(away < 1.96 * np.array(predicted[f"sd {name}"])[hidden]) > 0.7


def test_later_commands_read_the_table_without_being_told_how(person, tmp_path):
    path, _, out, _ = person
    model = out / "model.gnomon"
    run("transform", model, path, "--out", tmp_path / "z.csv")
    placed = csv.read_csv(tmp_path / "z.csv").to_pydict()
    expected = csv.read_csv(out / "embedding.csv").to_pydict()
    assert_allclose(placed["z1"], expected["z1"], rtol=1e-9, atol=1e-9)
    run("predict", model, path, "--out", tmp_path / "p.csv")
    assert csv.read_csv(tmp_path / "p.csv").num_rows == len(placed["z1"])
    run("report", model, path, "--out", tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size > 1e4
    assert "SPPCA" in run("inspect", model).stdout


@pytest.mark.filterwarnings("ignore:limits among numbers")
def test_python_gives_what_the_shell_gives(person):
    path, _, out, _ = person
    table_model = gnomon.load(out / "model.gnomon")
    expected = csv.read_csv(out / "embedding.csv").to_pydict()
    assert_allclose(table_model.transform(path)[:, 0], expected["z1"], rtol=1e-12, atol=1e-12)


def test_gaps_are_filled_in_the_units_of_the_table(person, tmp_path):
    path, truth, out, _ = person
    run("impute", out / "model.gnomon", path, "--out", tmp_path / "filled.csv")
    # What had a value is as it was, so that the table is read as the given one is.
    given = {"na", "encoding", "transpose"} & truth["options"].keys()
    options = {name: truth["options"][name] for name in given}
    filled = open_table(tmp_path / "filled.csv", **options)
    for name, values in truth["values"].items():
        column, gaps = as_numbers(filled.column(name)), np.isnan(values)
        assert_allclose(column[~gaps], values[~gaps], rtol=1e-9)
        if gaps.any():
            low, high = np.nanmin(values), np.nanmax(values)
            assert np.all((column[gaps] >= low - 1e-9) & (column[gaps] <= high + 1e-9))


def test_a_comparison_ends_and_says_what_it_rests_on(person):
    path, truth, _, _ = person
    asked = [path, *options_of(truth), "--models", "PCA,SPPCA", "-k", "2"]
    said = json.loads(run("compare", *asked, "--json").stdout)
    low, high = said["expected"]["low"], said["expected"]["high"]
    assert low < high
    assert said["recommendation"]
