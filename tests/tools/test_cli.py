"""The command line as a person uses it."""

import html
import json
import os
import re
import subprocess
import sys
from datetime import datetime, timedelta
from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
from pyarrow import csv, parquet
from typer.testing import CliRunner

from gnomon.exceptions import TableError
from gnomon.tools import commands, modelfile, prepare, tables, write
from gnomon.tools.cli import app

import messy

KINDS = np.array(["setosa", "versicolor", "virginica"], dtype=object)


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def fails(*arguments):
    """The one line that a wrong call prints."""
    (line,) = run(*arguments, code=1).stderr.splitlines()[-1:]
    assert line.startswith("gnomon: ")
    return line


@pytest.fixture(scope="module")
def iris():
    """Iris with few labels, gaps, a name for each flower, a date and a constant."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    X = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    labels = np.where(rng.random(len(y)) < 0.7, None, KINDS[y])
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    columns = dict(zip(names, X.T, strict=True))
    columns["species"] = labels
    columns["flower"] = [f"flower {i}" for i in range(len(y))]
    columns["picked"] = np.datetime64("2020-01-01") + rng.integers(0, 100, len(y))
    columns["soil"] = rng.choice(["sand", "clay", "loam"], len(y))
    columns["planet"] = ["earth"] * len(y)
    return pa.table({name: pa.array(v, from_pandas=True) for name, v in columns.items()})


@pytest.fixture
def table(iris, tmp_path):
    csv.write_csv(iris, tmp_path / "iris.csv")
    parquet.write_table(iris, tmp_path / "iris.parquet")
    return tmp_path / "iris.csv"


@pytest.fixture
def text(tmp_path):
    def write(content, name="t.csv"):
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


def rows(path):
    return csv.read_csv(path).to_pydict()


FIT = ("--id", "flower", "--ignore", "species", "--components", "2")


@pytest.fixture
def model(table, tmp_path):
    run("fit", table, *FIT, "--out", tmp_path / "out")
    return tmp_path / "out" / "model.gnomon"


def test_help_imports_neither_sklearn_nor_tables_nor_plots():
    code = (
        "import sys; sys.argv = ['gnomon', '--help']\n"
        "from gnomon.tools.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'sklearn', 'scipy', 'numpy', 'pandas', 'pyarrow', 'matplotlib', 'jinja2'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "Fit a model to a table" in found.stdout


def test_the_command_without_its_packages_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; import gnomon.tools.cli"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 1
    assert found.stderr.strip() == (
        "gnomon: the command needs more: pip install 'gnomon-learn[cli]', or '.[cli]' in a clone"
    )


def test_python_runs_the_command_as_a_module():
    command = [sys.executable, "-m", "gnomon", "--version"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.stdout.startswith("gnomon "), found.stderr


@pytest.mark.parametrize(
    "command",
    ["fit", "transform", "predict", "impute", "compare", "report", "inspect", "demo"],
)
def test_every_command_explains_itself_with_an_example(command):
    assert f"gnomon {command}" in run(command, "--help").stdout


def test_fit_writes_embedding_model_and_report(table, tmp_path):
    result = run("fit", table, *FIT, "--out", tmp_path / "out")
    embedding = rows(tmp_path / "out" / "embedding.csv")
    assert list(embedding) == ["row", "z1", "z2", "sd1", "sd2"]
    assert embedding["row"][:2] == ["flower 0", "flower 1"]
    assert min(embedding["sd1"]) > 0
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    assert "left out: 'planet' has only one value" in result.stderr
    assert "PPCA, 2 dimensions" in result.stdout


def test_csv_and_parquet_give_the_same_model(table, tmp_path):
    for suffix in ("csv", "parquet"):
        run("fit", table.with_suffix(f".{suffix}"), *FIT, "--out", tmp_path / suffix)
    files = [modelfile.read(tmp_path / s / "model.gnomon") for s in ("csv", "parquet")]
    first, second = (file.document["model"] for file in files)
    assert first == second
    for name, array in files[0].arrays.items():
        assert array.tobytes() == files[1].arrays[name].tobytes()
    rules = [{k: v for k, v in file.notes.items() if k not in ("fit", "reading")} for file in files]
    assert str(rules[0]) == str(rules[1])
    assert [file.notes["reading"] for file in files] == [{"separator": ","}, {}]


def test_parquet_in_parquet_out(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = table.with_suffix(".parquet")
    run("fit", table, *TARGET, "--out", "o")
    assert {path.name for path in (tmp_path / "o").iterdir()} == {
        "model.gnomon",
        "embedding.parquet",
        "predictions.parquet",
        "report.html",
    }
    for command, ending in (("transform", "embedding"), ("predict", "predictions")):
        run(command, "o/model.gnomon", table)
        assert parquet.read_table(f"iris-{ending}.parquet").num_rows == 150
    run("impute", "o/model.gnomon", table)
    assert parquet.read_table("iris-filled.parquet")["petal width"].null_count == 0
    run("transform", "o/model.gnomon", table, "--out", "z.csv")
    assert len(rows("z.csv")["z1"]) == 150


def test_a_fit_without_out_takes_a_folder_that_is_named_after_the_table(
    table, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run("fit", table, *FIT)
    assert (tmp_path / "iris-map" / "model.gnomon").exists()
    run("fit", table, *FIT)  # what gnomon wrote may be written over


def test_a_folder_with_something_else_is_left_alone_unless_it_is_named(
    table, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "iris-map").mkdir()
    (tmp_path / "iris-map" / "embedding.csv").write_text("mine")
    line = fails("fit", table, *FIT)
    assert "iris-map holds something else than a result of gnomon fit" in line
    assert "--out" in line
    assert (tmp_path / "iris-map" / "embedding.csv").read_text() == "mine"
    run("fit", table, *FIT, "--out", "iris-map")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,4\n3,7\n")
    (tmp_path / "t-map").write_text("a file")
    assert "t-map is a file; a folder is wanted, name one with --out" in fails("fit", "t.csv")


@pytest.mark.parametrize("command", ["fit", "compare", "report", "transform", "impute"])
def test_a_place_that_cannot_be_is_told_before_the_work(
    command, model, table, tmp_path, monkeypatch
):
    for work in ("_prepared", "_score_again", "_write"):
        monkeypatch.setattr(commands, work, mock.Mock(side_effect=AssertionError("worked")))
    (tmp_path / "f").write_text("a file")
    words = {"fit": [table, *FIT], "compare": [table, "--target", "species"]}
    line = fails(command, *words.get(command, [model, table]), "--out", tmp_path / "f" / "x.csv")
    assert re.search(r"f (is a file|is not there)", line)


def test_a_folder_that_may_not_be_written_to_is_refused(table, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    line = fails("fit", table, *FIT, "--out", tmp_path / "o")
    assert f"the folder {tmp_path} may not be written to; name another with --out" in line
    assert not (tmp_path / "o").exists()


def test_a_second_fit_leaves_nothing_of_the_first(table, tmp_path):
    run("fit", table, *TARGET, "--out", tmp_path / "o")
    (tmp_path / "o" / "mine.txt").write_text("mine")
    assert (tmp_path / "o" / "predictions.csv").exists()
    run("fit", table.with_suffix(".parquet"), *FIT, "--out", tmp_path / "o")
    assert {path.name for path in (tmp_path / "o").iterdir()} == {
        "mine.txt",
        "model.gnomon",
        "embedding.parquet",
        "report.html",
    }


def test_one_of_a_thing_is_said_in_the_singular(tmp_path, text):
    lines = [f"{i % 2 * 4 + i % 3},{i % 5}" for i in range(40)]
    said = run("fit", text("x,k\n" + "\n".join(lines)), "-k", "1", "--out", tmp_path / "o")
    assert "PPCA, 1 dimension\n" in said.stdout
    assert "<b>1</b><span>dimension</span>" in (tmp_path / "o" / "report.html").read_text()
    path = text("x,k\n5,\n0,1\n", "gap.csv")
    said = run("impute", tmp_path / "o" / "model.gnomon", path, "--out", tmp_path / "f.csv")
    assert "1 gap filled" in said.stderr


def test_transform_gives_what_fit_gave(model, table):
    out = model.parent / "again.csv"
    run("transform", model, table.with_suffix(".parquet"), "--out", out)
    first, again = rows(model.parent / "embedding.csv"), rows(out)
    for name in first:
        if name != "row":
            assert_allclose(again[name], first[name], rtol=1e-12)


def test_transform_writes_to_the_screen(model, table):
    assert run("transform", model, table, "--out", "-").stdout.startswith('"row","z1"')


def test_results_can_be_parquet(model, table, tmp_path):
    run("transform", model, table, "--out", tmp_path / "z.parquet")
    assert parquet.read_table(tmp_path / "z.parquet").num_rows == 150


def test_impute_fills_gaps_and_keeps_the_rest(model, table, tmp_path):
    run("impute", model, table, "--out", tmp_path / "full.csv")
    before, after = rows(table), rows(tmp_path / "full.csv")
    known = [v is not None for v in before["petal length"]]
    assert not all(known)
    assert None not in after["petal length"]
    pairs = zip(before["petal length"], after["petal length"], known, strict=True)
    assert all(a == b for b, a, seen in pairs if seen)
    sd = after["petal length (sd)"]
    assert [v is None for v in sd] == known
    # Filled values are nearer to the truth than the mean of the column is.
    truth = load_iris().data[:, 2]
    gaps = ~np.array(known)
    error = np.abs(np.array(after["petal length"])[gaps] - truth[gaps]).mean()
    assert error < 0.75 * np.abs(truth[gaps] - truth.mean()).mean()


def test_cells_that_csv_cannot_hold_are_named(tmp_path):
    columns = {"a": [1.0, 2.0, 4.0, None], "b": [3.0, 1.0, 2.0, 5.0], "c": [[1], [2], [3], [4]]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    run("fit", tmp_path / "t.parquet", "-k", "1", "--out", tmp_path / "o")
    options = (tmp_path / "o" / "model.gnomon", tmp_path / "t.parquet", "--out")
    line = fails("impute", *options, tmp_path / "f.csv")
    assert "column 'c' holds list" in line
    assert line.endswith("which csv cannot; write parquet")
    run("impute", *options, tmp_path / "f.parquet")


@pytest.mark.parametrize(
    "style",
    [
        *("%d/%m/%Y", "%d.%m.%y", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"),
        *("%m/%d/%Y %H:%M", "%Y-%m-%d %H:%M:%S.500", "%Y-%m-%dT%H:%M:%S+05:30"),
        *("%H:%M", "%H:%M:%S"),
    ],
)
def test_a_gap_among_dates_is_filled_in_their_style(tmp_path, rng, style):
    days = datetime(2021, 8, 17, 8, 30) + rng.normal(size=30) * timedelta(days=40)
    cells = [day.strftime(style) for day in days]
    cells[3] = ""
    start = datetime(2021, 8, 17)
    numbers = [f"{(day - start) / timedelta(days=1):.3f}" for day in days]
    path, filled = tmp_path / "t.csv", tmp_path / "f.csv"
    lines = ["a,b,when", *map(",".join, zip(numbers, numbers[::-1], cells, strict=True))]
    path.write_text("\n".join(lines))
    run("fit", path, "-k", "1", "--out", tmp_path / "o")
    run("impute", tmp_path / "o" / "model.gnomon", path, "--out", filled)
    found = [line.split(",")[2].strip('"') for line in filled.read_text().splitlines()[1:]]
    assert re.fullmatch(re.sub(r"\d", r"\\d", re.escape(cells[0])), found.pop(3))
    assert found == [*cells[:3], *cells[4:]]
    run("transform", tmp_path / "o" / "model.gnomon", filled, "--out", tmp_path / "z.csv")


def test_a_filled_table_has_the_encoding_in_which_it_was_read(tmp_path, rng):
    x = rng.normal(size=30)
    cells = [[f"{a:.2f}", f"{2 * a:.2f}", "süß" if a > 0 else "saß"] for a in x]
    cells[3][1] = cells[5][2] = ""
    path, filled = tmp_path / "t.csv", tmp_path / "f.csv"
    lines = ["x,Größe,Säure", *(",".join(row) for row in cells)]
    path.write_text("\n".join(lines), encoding="latin-1")
    run("fit", path, "--encoding", "latin-1", "-k", "1", "--out", tmp_path / "o")
    run("impute", tmp_path / "o" / "model.gnomon", path, "--out", filled)
    assert "süß" in filled.read_text(encoding="latin-1")
    run("transform", tmp_path / "o" / "model.gnomon", filled, "--out", tmp_path / "z.csv")
    with pytest.raises(TableError, match="'Ω' cannot be written in latin-1"):
        write.write_batches(filled, [{"x": ["Ω"]}], encoding="latin-1")


def test_a_table_that_was_turned_is_filled_as_it_lies(tmp_path, rng):
    z = rng.normal(size=12)
    cells = {f"G{j}": [f"{a:.2f}" for a in j * z + rng.normal(size=12)] for j in range(5)}
    cells["tissue"] = ["a" if a > 0 else "b" for a in z]
    cells["G3"][4] = cells["tissue"][7] = ""
    cells["G1"][0] = "7.50"
    lines = ["gene," + ",".join(f"S{i}" for i in range(12))]
    lines += [",".join([name, *row]) for name, row in cells.items()]
    path, filled = tmp_path / "t.csv", tmp_path / "f.csv"
    path.write_text("\n".join(lines))
    run("fit", path, "--transpose", "-k", "1", "--out", tmp_path / "o")
    run("impute", tmp_path / "o" / "model.gnomon", path, "--out", filled)
    found = [line.replace('"', "").split(",") for line in filled.read_text().splitlines()]
    names = ["gene", "G0", "G1", "G2", "G3", "G3 (sd)", "G4", "tissue", "tissue (share)"]
    assert [row[0] for row in found] == names
    assert found[0] == lines[0].split(",")
    assert found[2] == ["G1", *cells["G1"]]
    assert float(found[4][5]) and float(found[5][5])
    assert found[7][8] in ("a", "b")
    run("transform", tmp_path / "o" / "model.gnomon", filled, "--out", tmp_path / "z.csv")


def test_impute_fills_categories_and_dates(tmp_path, text):
    lines = [f"{i % 2 * 4 + i % 3},{'ab'[i % 2]},2020-01-{1 + i % 2 * 20:02d}" for i in range(40)]
    run("fit", text("x,k,d\n" + "\n".join(lines)), "-k", "1", "--out", tmp_path / "o")
    path = text("x,k,d\n5,,\n0,,\n", "gaps.csv")
    run("impute", tmp_path / "o" / "model.gnomon", path, "--out", tmp_path / "f.csv")
    filled = rows(tmp_path / "f.csv")
    assert filled["k"] == ["b", "a"]
    assert filled["d"][0] > filled["d"][1]


OWN_UNITS = "x,n,wet,day,k\n" + "".join(
    f"{i % 2 * 4 + i % 3},{i % 2 * 9 + i % 3},{'False,True'.split(',')[i % 2]},"
    f"2020-01-{1 + i % 2 * 20 + i % 3:02d},{'ab'[i % 2]}\n"
    for i in range(40)
)


@pytest.fixture
def own_units(tmp_path, text):
    """A model of whole numbers, truth, dates and texts, and a table with gaps in all of them."""
    run("fit", text(OWN_UNITS), "-k", "1", "--out", tmp_path / "o")
    gaps = text("x,n,wet,day,k,free\n5,,,,,=1\n0,,,,,-\n,8,true,2020-01-22,b,x\n", "gaps.csv")
    return tmp_path / "o" / "model.gnomon", gaps


def test_impute_writes_in_the_units_of_the_table(own_units, tmp_path):
    found = run("impute", *own_units, "--out", tmp_path / "f.csv")
    assert "9 gaps filled" in found.stderr
    lines = (tmp_path / "f.csv").read_text().splitlines()
    filled = rows(tmp_path / "f.csv")
    names = ["x", "n", "wet", "day"]
    assert list(filled) == [
        *(part for name in names for part in (name, f"{name} (sd)")),
        *("k", "k (share)", "free"),
    ]
    assert all(isinstance(value, int) for value in filled["n"] + filled["x"])
    assert filled["wet"] == [True, False, True]
    assert filled["k"] == ["b", "a", "b"]
    assert "2020-01-" in lines[1]
    assert ":" not in lines[1]
    # What was not to be filled stays to the letter, also what a spreadsheet would run.
    assert filled["free"] == ["=1", "-", "x"]


def test_impute_that_is_refused_does_not_say_that_gaps_are_filled(own_units, tmp_path):
    model, gaps = own_units
    taken = tmp_path / "taken.csv"
    taken.write_text(gaps.read_text().replace("free", "x (sd)"))
    places = ((gaps, gaps), (taken, tmp_path / "f.csv"), (gaps, tmp_path / "none" / "f.csv"))
    for path, out in places:
        assert "gaps filled" not in run("impute", model, path, "--out", out, code=1).stderr


def test_impute_stays_within_what_was_seen_unless_asked(own_units, tmp_path, text):
    model, _ = own_units
    far = text("x,n,wet,day,k\n60,,,,b\n", "far.csv")
    run("impute", model, far, "--out", tmp_path / "f.csv")
    run("impute", model, far, "--beyond-range", "--out", tmp_path / "g.csv")
    within, beyond = rows(tmp_path / "f.csv"), rows(tmp_path / "g.csv")
    assert within["n"] == [11]
    assert str(within["day"][0]) == "2020-01-23"
    assert beyond["n"][0] > 11
    assert beyond["wet"] == [True]
    assert beyond["day"][0] > within["day"][0]


def test_inspect_says_what_is_in_a_file(model):
    said = run("inspect", model, "--json").stdout
    assert json.loads(said)["model"] == "PPCA"


def test_report_can_be_made_later(model, table, tmp_path):
    run("report", model, table, "--out", tmp_path / "later.html")
    assert "flower 17" in (tmp_path / "later.html").read_text()


@pytest.fixture(scope="module")
def laid_out(iris, tmp_path_factory):
    """A fit with a layout by neighbours, and its table."""
    folder = tmp_path_factory.mktemp("layout")
    csv.write_csv(iris, folder / "iris.csv")
    options = ["--target", "species", "--id", "flower", "--layout", "neighbours"]
    result = run("fit", folder / "iris.csv", *options, "--out", folder / "map")
    return folder, result


def test_a_layout_has_more_dimensions_than_the_plane_unless_they_are_given(laid_out):
    folder, result = laid_out
    model = prepare.load_fit(folder / "map" / "model.gnomon")
    assert "dimensions were taken, which the layout shows together" in result.stderr
    assert model.layout.n_features_in_ == model.model.n_components > 2


def test_new_rows_are_placed_on_the_layout_of_the_fit(laid_out, tmp_path):
    folder, _ = laid_out
    file = folder / "map" / "model.gnomon"
    run("transform", file, folder / "iris.csv", "--out", tmp_path / "again.csv")
    names = ["layout1", "layout2"]
    fitted, again = (
        csv.read_csv(path).select(names).to_pandas().to_numpy()
        for path in (folder / "map" / "embedding.csv", tmp_path / "again.csv")
    )
    assert_allclose(again, fitted, atol=1e-6)
    model = modelfile.load(file)
    assert_allclose(model.layout.transform(model.transform(folder / "iris.csv")), fitted, atol=1e-6)


def test_a_report_of_new_rows_has_the_layout_of_the_fit_or_one_of_its_own(laid_out, tmp_path):
    folder, _ = laid_out
    file, table = folder / "map" / "model.gnomon", folder / "iris.csv"
    expected = {
        (): f"gnomon.load({str(file)!r}).layout.transform(Z)",
        ("--layout", "neighbours"): f"gnomon.load({str(file)!r}).layout.transform(Z)",
        ("--layout", "axes"): None,
    }
    for options, code in expected.items():
        run("report", file, table, *options, "--out", tmp_path / "r.html")
        page = html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
        assert ("P = gnomon" in page) == (code is not None)
        assert code is None or code in page


def test_a_model_without_a_layout_can_be_reported_with_one(model, table, tmp_path):
    run("report", model, table, "--layout", "neighbours", "--out", tmp_path / "r.html")
    page = html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "P = gnomon.NeighbourLayout().fit_transform(Z)" in page


@pytest.mark.parametrize("command", ["fit", "report"])
def test_a_layout_that_there_is_not_is_named(model, table, command):
    words = ["fit", table] if command == "fit" else ["report", model, table]
    line = fails(*words, "--layout", "umap")
    assert "--layout 'umap'; accepted are axes, neighbours" in line


def test_json_is_all_that_is_printed(table, tmp_path):
    result = run("fit", table, *FIT, "--out", tmp_path / "o", "--json")
    said = json.loads(result.stdout)
    assert result.stderr == ""
    assert said["model"] == "PPCA"
    assert said["rows"] == 150
    assert len(said["files"]) == 3
    assert any("planet" in note for note in said["notes"])


def test_quiet_says_nothing(table, tmp_path):
    result = run("fit", table, *FIT, "--out", tmp_path / "o", "--quiet")
    assert result.output == ""


def test_cells_that_a_spreadsheet_would_run_are_quoted(text, tmp_path):
    path = text("name,a,b\n=1+1,1,2\n@x,2,1\nok,4,3\n-1,5,3\n-1+1,5,4\n")
    run("fit", path, "--id", "name", "-k", "1", "--out", tmp_path / "o")
    names = ["'=1+1", "'@x", "ok", "-1", "'-1+1"]
    assert rows(tmp_path / "o" / "embedding.csv")["row"] == names


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        ("", (), "is empty; a header and rows are wanted"),
        ("a,b\n", (), "has a header but no rows"),
        ("a,a\n1,2\n", (), "has the column 'a' more than once; rename one of them"),
        ("a,b\n1,2\n3\n", (), "Expected 2 columns, got 1"),
        ("a,b\n1,x\n2,y\n", ("--target", "c"), "no target 'c'; it has 'a', 'b'"),
        ("price,b\n1,x\n2,y\n", ("--target", "prise"), "did you mean 'price'?"),
        ("a,b\n1,x\n2,x\n", ("--target", "b"), "has only one value, 'x'"),
        ("a,b\n1,\n2,\n", ("--target", "b"), "has no value"),
        ("a,b\n1,2\n2,3\n", ("--id", "z"), "has no id 'z'"),
        ("a,b\n1,2\n2,3\n", ("--ignore", "z"), "has no column 'z'"),
        ("a\n1\n1\n", (), "'a' has only one value"),
        ("a,b\n1,2\n2,inf\n", (), "column 'b' has 1 infinite value; a number"),
        ("a,b\n1,2\n2,3\n", ("--components", "two"), "--components 'two'; a number or auto"),
        ("a,b\n1,2\n2,4\n3,7\n", ("--components", "0"), "n_components == 0"),
        ("a,b\n1,2\n2,4\n3,7\n", ("--model", "pca"), "--model 'pca'; accepted are auto, ppca"),
        ("a,b\n1,2\n2,4\n3,7\n", ("--model", "dcagm"), "name their column with --target"),
        ("a,b\n1,2\n2,4\n3,7\n", ("--task", "guess"), "--task 'guess'; accepted are auto"),
        ("a,b\n1,2\n2,4\n3,7\n", ("--scale", "log"), "--scale 'log'; accepted are auto"),
        ("a,b\n1,2\n2,4\n3,7\n", ("--supervision", "1", "-m", "ppca"), "not for ppca"),
        ("a,b\n1,2\n2,4\n3,7\n", ("--links", "nowhere.csv"), "no file nowhere.csv"),
        (
            "a,b\n1,2\n2,4\n3,7\n",
            ("--chunks", "b", "-m", "ppca"),
            "for dcagm, sppca, kernel-sppca, not",
        ),
        ("a,b\n1,2\n2,4\n3,7\n", ("--separator", ";;"), "';;'; one character is wanted"),
        (
            "a,b\n1.5,2\n2,3\n3,5\n4,4\n",
            ("-t", "a", "-m", "dcagm"),
            "dcagm predicts classes; 'a' holds numbers",
        ),
    ],
)
def test_each_mistake_is_one_sentence(text, tmp_path, content, options, sentence):
    assert sentence in fails("fit", text(content), *options, "--out", tmp_path / "o")


def test_a_name_for_every_row_is_no_target(text, tmp_path):
    path = text("a,b\n" + "".join(f"{i},name {i}\n" for i in range(60)))
    line = fails("fit", path, "--target", "b", "--out", tmp_path / "o")
    assert "looks like a name, not like classes" in line


def test_bytes_that_are_no_text_are_named(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,caf\xe9\n2,x\n")
    line = fails("fit", tmp_path / "t.csv", "--out", tmp_path / "o")
    assert "is not UTF-8 in column 'b'; say --encoding latin-1" in line
    run("fit", tmp_path / "t.csv", "--encoding", "latin-1", "-k", "1", "--out", tmp_path / "o")


def test_a_folder_that_is_not_there_is_named(model, table, tmp_path):
    line = fails("transform", model, table, "--out", tmp_path / "none" / "z.csv")
    assert line.endswith("none is not there")


def test_missing_and_foreign_files_are_named(tmp_path, table, text):
    assert "there is no file" in fails("fit", tmp_path / "no.csv", "--out", tmp_path / "o")
    assert "no such file" in fails("inspect", tmp_path / "no.gnomon")
    assert "is not a gnomon model file" in fails("transform", table, table)
    assert "--out" in fails("fit", table, *FIT, "--out", text("x", "file"))


def test_a_model_saved_in_python_has_no_rule_for_tables(tmp_path, table):
    import gnomon

    path = gnomon.save(gnomon.PPCA(n_components=1), tmp_path / "m.gnomon")
    assert "without a rule for tables" in fails("transform", path, table)


@pytest.mark.parametrize("notes", [{"recipe": 1}, {"recipe": {"features": [{}]}, "question": {}}])
def test_a_forged_rule_for_tables_is_refused(tmp_path, table, notes):
    import gnomon

    path = gnomon.save(gnomon.PPCA(n_components=1), tmp_path / "m.gnomon", notes=notes)
    assert "a rule for tables that cannot be read" in fails("transform", path, table)


def test_a_model_without_predictions_says_so(model, table):
    assert "PPCA predicts nothing; fit a model with --target" in fails("predict", model, table)


def test_a_table_without_the_columns_of_the_model_is_named(model, text):
    path = text("sepal length\n1\n")
    assert "has no column 'sepal width', which the model" in fails("transform", model, path)


def test_debug_shows_the_traceback(tmp_path):
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "no"), "--debug"])
    assert isinstance(result.exception, FileNotFoundError)


def test_an_unexpected_fault_asks_for_a_report(monkeypatch, table):
    def broken(*args, **options):
        raise KeyError("oops")

    monkeypatch.setattr(commands, "inspect", broken)
    assert "this should not happen (KeyError: 'oops'); run again with --debug" in fails(
        "inspect", table
    )


def test_an_interruption_names_what_is_kept(monkeypatch, table, tmp_path):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "held_out", interrupted)
    result = run("fit", table, *FIT, "--out", tmp_path / "o", code=130)
    assert "interrupted; kept: " in result.stderr
    assert (tmp_path / "o" / "model.gnomon").exists()
    assert (tmp_path / "o" / "embedding.csv").exists()
    assert not (tmp_path / "o" / "report.html").exists()


def test_a_large_table_is_fitted_from_batches(table, tmp_path, monkeypatch):
    run("fit", table, *FIT, "--out", tmp_path / "whole")
    monkeypatch.setattr(tables, "STREAM_ABOVE", 100)
    monkeypatch.setattr(tables, "BATCH_BYTES", 2000)
    run("fit", table, *FIT, "--out", tmp_path / "parts")
    whole = rows(tmp_path / "whole" / "embedding.csv")
    parts = rows(tmp_path / "parts" / "embedding.csv")
    assert_allclose(parts["z1"], whole["z1"], rtol=1e-3, atol=1e-3)


def test_matrices_are_fitted_and_read_again(tmp_path, rng):
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(40, 6))
    np.savez(tmp_path / "t.npz", X=X)
    run("fit", tmp_path / "t.npz", "-k", "2", "--out", tmp_path / "o")
    model = tmp_path / "o" / "model.gnomon"
    run("transform", model, tmp_path / "t.npz", "--out", tmp_path / "z.csv")
    assert rows(tmp_path / "z.csv")["z1"] == rows(tmp_path / "o" / "embedding.csv")["z1"]
    X[0, 0] = np.nan
    np.savez(tmp_path / "g.npz", X=X)
    run("impute", model, tmp_path / "g.npz", "--out", tmp_path / "f.csv")
    assert rows(tmp_path / "f.csv")["x1 (sd)"][1] is None


TARGET = ("--id", "flower", "--target", "species", "--ignore", "picked", "--components", "2")


@pytest.fixture
def labelled_model(table, tmp_path):
    run("fit", table, *TARGET, "--out", tmp_path / "sup")
    return tmp_path / "sup" / "model.gnomon"


def test_a_target_gives_predictions_for_the_rows_without_one(labelled_model, table):
    predictions = rows(labelled_model.parent / "predictions.csv")
    species = rows(table)["species"]
    assert predictions["row"] == [f"flower {i}" for i, v in enumerate(species) if not v]
    names = [f"p({kind})" for kind in KINDS]
    assert_allclose(np.sum([predictions[name] for name in names], axis=0), 1)
    numbers = [int(row.split()[1]) for row in predictions["row"]]
    truth = KINDS[load_iris().target[numbers]]
    assert (np.array(predictions["predicted"]) == truth).mean() > 0.85


def test_predict_gives_what_fit_gave(labelled_model, table, tmp_path):
    run("predict", labelled_model, table, "--out", tmp_path / "p.csv")
    again, first = rows(tmp_path / "p.csv"), rows(labelled_model.parent / "predictions.csv")
    known = dict(zip(again["row"], again["predicted"], strict=True))
    assert [known[row] for row in first["row"]] == first["predicted"]


def test_the_score_is_held_out_and_has_a_control(table, tmp_path):
    said = json.loads(run("fit", table, *TARGET, "--out", tmp_path / "o", "--json").stdout)
    assert said["model"] == "SPPCA"
    score, near = said["held out"], said["on the map"]
    assert score["of"] == "the model's prediction"
    assert near["of"].startswith("nearest labelled rows on the map (all ")
    for figure in (score, near):
        assert figure["low"] < figure["value"] <= figure["high"]
        assert max(figure["control"], figure["baseline"]) < figure["low"]
    report = (tmp_path / "o" / "report.html").read_text()
    assert "Nearest labelled rows on the map" in report


def test_a_number_of_dimensions_that_was_chosen_is_said_with_its_reason(table, tmp_path):
    words = ("fit", table, *TARGET[:-2], "--out", tmp_path / "o", "--json")
    said = json.loads(run(*words).stdout)
    (note,) = [note for note in said["notes"] if "taken" in note]
    assert note.startswith(f"{said['dimensions']} dimension")
    assert "by the accuracy of rows held out" in note


@pytest.mark.parametrize("command", ["fit", "report", "compare"])
def test_every_command_that_takes_long_ends_in_time(command, table, labelled_model, tmp_path):
    """With no time at all there is still an answer, and it says what is missing."""
    words = {
        "fit": ("fit", table, *TARGET, "--out", tmp_path / "o"),
        "report": ("report", labelled_model, table, "--out", tmp_path / "r.html"),
        "compare": ("compare", table, *TARGET),
    }[command]
    said = json.loads(run(*words, "--time-limit", "0.000001", "--json").stdout)
    if command == "compare":
        assert said["recommendation"].startswith("Nothing could be scored")
    else:
        assert said["held out"] is None
        assert any("time limit of 1e-06 s" in note for note in said["notes"])


def test_a_time_limit_is_a_number_of_seconds(table, tmp_path):
    words = ("fit", table, *TARGET, "--out", tmp_path / "o", "--time-limit", "0")
    assert "--time-limit 0; a number of seconds above 0 is wanted" in fails(*words)


def test_labels_that_mean_nothing_score_like_guessing(tmp_path, text, rng):
    lines = [f"{a:.3f},{b:.3f},{rng.choice(['x', 'y'])}" for a, b in rng.normal(size=(60, 2))]
    path = text("a,b,kind\n" + "\n".join(lines))
    said = run("fit", path, "--target", "kind", "-k", "1", "--out", tmp_path / "o", "--json")
    score = json.loads(said.stdout)["held out"]
    assert score["low"] < score["control"] + 0.15
    report = (tmp_path / "o" / "report.html").read_text()
    assert "not better than guessing" in report


def test_a_value_can_mean_unlabelled(text, tmp_path):
    lines = [
        f"{i % 2 + i / 50},{i % 3},{['p', 'q'][i % 2] if i % 4 < 2 else '?'}" for i in range(40)
    ]
    path = text("a,b,kind\n" + "\n".join(lines))
    options = ("--target", "kind", "--unlabelled", "?", "-k", "1")
    said = json.loads(run("fit", path, *options, "--out", tmp_path / "o", "--json").stdout)
    assert said["labelled"] == 20
    assert set(rows(tmp_path / "o" / "predictions.csv")["predicted"]) <= {"p", "q"}


def test_a_numeric_target_is_predicted_as_numbers(table, tmp_path):
    options = ("--target", "petal width", "--ignore", "species", "--id", "flower", "-k", "2")
    said = json.loads(run("fit", table, *options, "--out", tmp_path / "o", "--json").stdout)
    assert said["held out"]["name"] == "R²"
    assert said["held out"]["value"] > 0.8
    gaps = [row for row, v in enumerate(rows(table)["petal width"]) if v is None]
    predicted = rows(tmp_path / "o" / "predictions.csv")["predicted"]
    truth = load_iris().data[gaps, 3]
    # One in four gaps may be of a flower unlike its kind.
    assert np.median(np.abs(np.array(predicted) - truth)) < 0.4


@pytest.mark.parametrize("name", ["bsdr", "dcagm"])
def test_every_model_takes_gaps(table, tmp_path, name):
    result = run("fit", table, *TARGET, "--model", name, "--out", tmp_path / "o")
    assert "filled" not in result.stderr
    assert "Gaps stayed gaps" in (tmp_path / "o" / "report.html").read_text()
    run("transform", tmp_path / "o" / "model.gnomon", table, "--out", tmp_path / "z.csv")
    first = rows(tmp_path / "o" / "embedding.csv")["z1"]
    assert_allclose(rows(tmp_path / "z.csv")["z1"], first, rtol=1e-12)


def test_a_gap_is_filled_alike_whatever_rows_are_beside_it(tmp_path, text, rng):
    lines = [
        f"{a + 3 * (i % 2):.3f},{b:.3f},{'xy'[i % 2]}"
        for i, (a, b) in enumerate(rng.normal(size=(40, 2)))
    ]
    train, new = text("a,b,kind\n" + "\n".join(lines)), "a,b\n,1\n"
    run("fit", train, "-t", "kind", "-m", "bsdr", "-k", "1", "--out", tmp_path / "o")
    model, found = tmp_path / "o" / "model.gnomon", []
    for i, content in enumerate((new, new + "50,1\n")):
        path = text(content, f"{i}.csv")
        run("predict", model, path, "--out", tmp_path / f"p{i}.csv")
        found.append(rows(tmp_path / f"p{i}.csv")["probability"][0])
    assert_allclose(found[0], found[1], rtol=1e-9)


SEEDS_ELSEWHERE = "the code runs in a process of its own, whose generators have the usual seeds"


def snippet(page):
    """The code that a report hands out; only public names are in it."""
    text = html.unescape(page.read_text())
    code = re.search(r"import gnomon\n.*?transform\([^\n]*\)\n", text, re.S)[0]
    assert "gnomon.tools" not in code
    return code


def coordinates(code, folder):
    """What the code makes, in a process of its own."""
    code += "import numpy\nnumpy.save('z.npy', Z)\n"
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return np.load(folder / "z.npy")


def check_snippet(folder, dimensions):
    embedding = rows(folder / "embedding.csv")
    expected = np.column_stack([embedding[f"z{j + 1}"] for j in range(dimensions)])
    assert_allclose(coordinates(snippet(folder / "report.html"), folder), expected, rtol=1e-9)


@pytest.mark.one_sample(SEEDS_ELSEWHERE)
@pytest.mark.parametrize(
    "options",
    [
        ("--ignore", "species", "--scale", "none"),
        ("--target", "species", "--ignore", "picked"),
        ("--target", "petal width", "--ignore", "species", "--task", "numeric", "--seed", "3"),
        ("--target", "species", "--unlabelled", "virginica", "--supervision", "0.3"),
    ],
    ids=lambda options: " ".join(options),
)
def test_the_code_of_the_report_makes_the_coordinates_again(table, tmp_path, options):
    run("fit", table, "--id", "flower", "-k", "2", *options, "--out", tmp_path / "o")
    check_snippet(tmp_path / "o", 2)


def test_the_code_reads_the_file_and_fills_gaps_as_they_were(tmp_path, text, rng):
    lines = [
        f"{a + 3 * (i % 2):.3f};{'' if i % 7 == 0 else round(b, 3)};{'xy'[i % 2]}".replace(".", ",")
        for i, (a, b) in enumerate(rng.normal(size=(40, 2)))
    ]
    path = text("a;b;kind\n" + "\n".join(lines))
    options = ("-t", "kind", "-m", "bsdr", "-k", "1", "--decimal", ",", "--separator", ";")
    run("fit", path, *options, "--out", tmp_path / "o")
    check_snippet(tmp_path / "o", 1)


@pytest.mark.one_sample(SEEDS_ELSEWHERE)
def test_the_code_of_a_linked_model_makes_its_coordinates(tmp_path, text, rng):
    lines = [f"n{i},{a:.3f},{b:.3f}" for i, (a, b) in enumerate(rng.normal(size=(30, 2)))]
    path = text("node,a,b\n" + "\n".join(lines))
    edges = text("from,to\n" + "".join(f"n{i},n{i + 2}\n" for i in range(28)), "edges.csv")
    run("fit", path, "--id", "node", "--links", edges, "-k", "1", "--out", tmp_path / "o")
    check_snippet(tmp_path / "o", 1)
    alone = "# Each row alone: gnomon transform with --links"
    for links, told in (("--links", edges), True), ((), False):
        report = ("report", tmp_path / "o" / "model.gnomon", path, *links)
        run(*report, "--out", tmp_path / "r.html")
        assert (alone in (tmp_path / "r.html").read_text()) == told


@pytest.mark.one_sample(SEEDS_ELSEWHERE)
def test_the_code_of_a_model_with_chunks_makes_its_coordinates(tmp_path, text, rng):
    """Rows with a label are in chunks too, which the permuted labels of the control contradict."""
    lines = [
        f"{a + 3 * (i % 2):.3f},{b:.3f},{'xy'[i % 2] if i < 20 else ''},lot {i % 8}"
        for i, (a, b) in enumerate(rng.normal(size=(60, 2)))
    ]
    path = text("a,b,kind,lot\n" + "\n".join(lines))
    run("fit", path, "-t", "kind", "--chunks", "lot", "-k", "1", "--out", tmp_path / "o")
    check_snippet(tmp_path / "o", 1)


def test_the_code_of_a_matrix_makes_its_coordinates(tmp_path, rng):
    X = rng.normal(size=(40, 6)) * np.arange(1, 7)
    np.savez(tmp_path / "t.npz", X=X, y=np.arange(40) % 2)
    options = ("-t", "target", "--scale", "standard", "-k", "2")
    run("fit", tmp_path / "t.npz", *options, "--out", tmp_path / "o")
    check_snippet(tmp_path / "o", 2)


@pytest.mark.parametrize("name", ["sppca", "bsdr"])
def test_the_code_of_a_later_report_places_the_rows_by_the_model(table, tmp_path, name):
    """On another table than that of the fit, whose scale is the model's."""
    run("fit", table, *TARGET, "-m", name, "--out", tmp_path / "o")
    model, new = tmp_path / "o" / "model.gnomon", tmp_path / "new.csv"
    csv.write_csv(csv.read_csv(table).slice(10, 25), new)
    run("report", model, new, "--out", tmp_path / "o" / "report.html")
    run("transform", model, new, "--out", tmp_path / "o" / "embedding.csv")
    code = snippet(tmp_path / "o" / "report.html")
    assert f"gnomon.load({str(model)!r})\nZ = model.transform({str(new)!r})" in code
    check_snippet(tmp_path / "o", 2)


def test_the_code_of_a_later_report_reads_a_table_of_another_kind(table, tmp_path):
    run("fit", table, *TARGET, "--out", tmp_path / "o")
    model, new = tmp_path / "o" / "model.gnomon", tmp_path / "new.csv"
    separated = csv.WriteOptions(delimiter="|")
    csv.write_csv(csv.read_csv(table).slice(10, 25), new, separated)
    reading = ("--separator", "|")
    run("report", model, new, *reading, "--out", tmp_path / "o" / "report.html")
    run("transform", model, new, *reading, "--out", tmp_path / "o" / "embedding.csv")
    check_snippet(tmp_path / "o", 2)


def test_the_code_of_a_comparison_has_public_names_only(table):
    options = ("--target", "species", "--ignore", "picked", "--id", "flower", "--components", "2")
    said = json.loads(run("compare", table, *options, "--models", "PLS", "--json").stdout)
    assert "from gnomon.peers import PLSDiscriminant" in said["code"]
    assert "gnomon.tools" not in said["code"]


@pytest.mark.parametrize("kind", ["auto", "numeric"])
def test_integers_are_classes_unless_the_task_is_numeric(text, tmp_path, rng, kind):
    lines = [f"{a:.3f},{b:.3f},{i % 30}" for i, (a, b) in enumerate(rng.normal(size=(90, 2)))]
    path = text("a,b,age\n" + "\n".join(lines))
    options = ("-t", "age", "--task", kind, "-k", "1", "--json")
    said = json.loads(run("fit", path, *options, "--out", tmp_path / "o").stdout)
    noted = any("30 different whole numbers in 90 rows" in note for note in said["notes"])
    assert noted == (kind == "auto")
    assert said["held out"]["name"] == {"auto": "accuracy", "numeric": "R²"}[kind]


def test_one_label_a_class_is_enough_to_fit_but_not_to_score(text, tmp_path, rng):
    lines = [
        f"{a:.3f},{b:.3f},{'xy'[i] if i < 2 else ''}"
        for i, (a, b) in enumerate(rng.normal(size=(12, 2)))
    ]
    path = text("a,b,kind\n" + "\n".join(lines))
    result = run("fit", path, "-t", "kind", "-k", "1", "--out", tmp_path / "o")
    assert "too few labelled rows to hold some out" in result.stderr
    assert "held out" not in result.stdout


@pytest.mark.parametrize("label", ["", "x"])
def test_a_report_needs_no_variety_of_labels(text, tmp_path, rng, label):
    values = rng.normal(size=(12, 2)).round(3).tolist()
    train = text("a,b,kind\n" + "\n".join(f"{a},{b},{'xy'[a > 0]}" for a, b in values))
    run("fit", train, "-t", "kind", "-k", "1", "--out", tmp_path / "o")
    new = text("a,b,kind\n" + "\n".join(f"{a},{b},{label}" for a, b in values), "new.csv")
    run("report", tmp_path / "o" / "model.gnomon", new, "--out", tmp_path / "r.html")


@pytest.fixture
def two_sides(text, tmp_path, rng):
    """A model of two classes, and a function that writes its rows anew and reports on them."""
    values = rng.normal(size=(40, 3)).round(3).tolist()
    cells = [[f"{a}", f"{b}", f"{c}", "pq"[a > 0]] for a, b, c in values]

    def path(change=lambda row: row, name="t.csv"):
        return text("\n".join(["a,b,c,side", *(",".join(change(row)) for row in cells)]), name)

    run("fit", path(), "-t", "side", "-k", "2", "--out", tmp_path / "o")
    model, out = tmp_path / "o" / "model.gnomon", tmp_path / "r.html"

    def reported(change, *options):
        said = run("report", model, path(change, "new.csv"), "--out", out, "--json", *options)
        return json.loads(said.stdout), out.read_text()

    return model, reported


def test_the_report_of_another_table_is_of_the_saved_model(two_sides, tmp_path):
    """With its two classes exchanged a fit of the new table is right where the model is wrong."""
    model, reported = two_sides
    said, page = reported(lambda row: [*row[:-1], "qp"[row[-1] == "q"]])
    figure = said["on this table"]
    assert said["held out"] is None
    assert figure["of"] == "the saved model's prediction"
    assert figure["value"] == modelfile.load(model).score(tmp_path / "new.csv") < 0.2
    assert any("is not the one of the fit" in note for note in said["notes"])
    assert "The saved model&#39;s prediction: on this table the accuracy is 0." in page
    assert "every row by the saved model" in page
    assert "not seen" not in page


def test_a_report_says_where_no_label_is_a_class(two_sides):
    said, _ = two_sides[1](lambda row: [*row[:-1], "r"])
    assert said["on this table"]["value"] == 0
    assert any("('r') is a class of the model ('p', 'q')" in note for note in said["notes"])


def test_the_report_of_the_table_of_the_fit_is_of_rows_held_out(two_sides):
    said, page = two_sides[1](lambda row: row)
    assert said["held out"]["of"] == "the model's prediction"
    assert "on this table" not in said
    assert "every row by a fit that had not seen it" in page


def test_a_table_with_an_empty_column_has_a_report(two_sides):
    said, _ = two_sides[1](lambda row: [row[0], "", *row[2:]])
    assert said["on this table"]["value"] > 0.8


def test_a_table_is_read_for_the_task_of_the_fit(text, tmp_path, rng):
    """A target of numbers stays one where the new table happens to have whole ones."""
    values = rng.normal(size=(30, 2)).round(3).tolist()
    train = text("a,b,t\n" + "\n".join(f"{a},{b},{a + b:.3f}" for a, b in values))
    run("fit", train, "-t", "t", "-k", "1", "--out", tmp_path / "o")
    new = text("a,b,t\n" + "\n".join(f"{a},{b},{round(a)}" for a, b in values), "new.csv")
    said = run("report", tmp_path / "o" / "model.gnomon", new, "--out", tmp_path / "r.html")
    assert "R²" in said.stdout


def test_chunks_are_used_by_sppca_and_dcagm(text, tmp_path, rng):
    codes = np.arange(60) % 2
    lines = [
        f"{a + 3 * c:.3f},{b:.3f},{'xy'[c] if i < 10 else ''},{i // 4 * 2 + c if i >= 10 else ''}"
        for i, (c, (a, b)) in enumerate(zip(codes, rng.normal(size=(60, 2)), strict=True))
    ]
    path = text("a,b,kind,batch\n" + "\n".join(lines))
    options = ("--target", "kind", "--chunks", "batch", "-k", "1")
    said = json.loads(run("fit", path, *options, "--out", tmp_path / "o", "--json").stdout)
    assert said["model"] == "SPPCA"
    options = (*options, "-m", "dcagm", "--out", tmp_path / "o", "--json")
    assert json.loads(run("fit", path, *options).stdout)["model"] == "DCAGM"


def test_links_are_used_by_prpca(text, tmp_path, rng):
    side = np.arange(40) % 2
    lines = [
        f"n{i},{a + 2 * s:.3f},{b:.3f},{c:.3f}"
        for i, (s, (a, b, c)) in enumerate(zip(side, rng.normal(size=(40, 3)), strict=True))
    ]
    path = text("node,a,b,c\n" + "\n".join(lines))
    edges = text("from,to\n" + "".join(f"n{i},n{i + 2}\n" for i in range(38)), "edges.csv")
    options = ("--id", "node", "--links", edges, "-k", "2")
    said = json.loads(run("fit", path, *options, "--out", tmp_path / "o", "--json").stdout)
    assert said["model"] == "PRPCA"
    run("transform", tmp_path / "o" / "model.gnomon", path, "--out", tmp_path / "z.csv")
    own = text("from,to,w\nn1,n2,1\nn3,n3,2\nn4,n5,3\n", "own.csv")
    said = run("fit", path, "--id", "node", "--links", own, "-k", "2", "--out", tmp_path / "o")
    assert "note: 1 link of a row with itself in" in said.stderr
    wrong = text("from,to\nn1,nobody\n", "wrong.csv")
    line = fails("fit", path, "--id", "node", "--links", wrong, "--out", tmp_path / "o")
    assert "links 'nobody', which is no row of the table" in line
    wrong = text("from,to,weight\nn1,n2,heavy\n", "wrong.csv")
    line = fails("fit", path, "--id", "node", "--links", wrong, "--out", tmp_path / "o")
    assert "wrong.csv: column 'weight' holds string; weights of links are numbers" in line


def test_links_to_a_model_without_them_are_refused(text, tmp_path):
    path, edges = text("a,b\n1,2\n2,4\n3,7\n"), text("from,to\n1,2\n", "edges.csv")
    line = fails("fit", path, "-m", "ppca", "--links", edges, "--out", tmp_path / "o")
    assert "--links is for prpca, sppca, kernel-sppca, not for ppca" in line


def test_compare_recommends_and_writes_its_table(table, tmp_path):
    options = ("--target", "species", "--ignore", "picked", "--id", "flower")
    few = ("--models", "PCA,LDA", "--components", "1,2", "--out", tmp_path / "c")
    said = run("compare", table, *options, *few).stdout
    assert "Use " in said
    compared = rows(tmp_path / "c" / "comparison.csv")
    assert set(compared["model"]) == {"PCA", "LDA"}
    said = json.loads(run("compare", table, *options, *few, "--json").stdout)
    assert said["recommendation"].startswith("Use ")
    assert "fit" in said["code"]
    assert "name its column with --target" in fails("compare", table)


def test_the_number_of_dimensions_is_chosen_and_shown(table, tmp_path):
    options = ("--id", "flower", "--target", "species", "--ignore", "picked")
    run("fit", table, *options, "--out", tmp_path / "o")
    assert "How many dimensions" in (tmp_path / "o" / "report.html").read_text()


def test_every_command_reads_csv_and_parquet_alike(labelled_model, model, table, tmp_path):
    compared = ("--target", "species", "--ignore", "picked", "--id", "flower", "--models", "PCA")
    written = {}
    for suffix in ("csv", "parquet"):
        source, folder = table.with_suffix(f".{suffix}"), tmp_path / f"from {suffix}"
        folder.mkdir()
        run("transform", model, source, "--out", folder / "z.csv")
        run("predict", labelled_model, source, "--out", folder / "p.csv")
        run("impute", model, source, "--out", folder / "i.csv")
        run("compare", source, *compared, "--components", "2", "--out", folder)
        run("report", labelled_model, source, "--out", folder / "r.html")
        assert (folder / "r.html").stat().st_size > 10_000
        written[suffix] = {name: rows(folder / name) for name in ("z.csv", "p.csv", "i.csv")}
        score = rows(folder / "comparison.csv")
        written[suffix]["c"] = {"model": score["model"], "n_components": score["n_components"]}
    assert written["csv"] == written["parquet"]


INTERRUPTED = """
import os, signal, sys, threading

# What a shell runs in the background ignores this signal, and so would this process after it.
signal.signal(signal.SIGINT, signal.default_int_handler)
from gnomon.tools import commands
from gnomon.tools.cli import main

def slow(*args, **options):
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(30)

commands.held_out = slow
sys.argv = ["gnomon", *sys.argv[1:]]
main()
"""


def test_ctrl_c_keeps_what_is_done_and_says_where(table, tmp_path):
    out = tmp_path / "kept"
    command = [sys.executable, "-c", INTERRUPTED, "fit", str(table), *FIT, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 130
    assert "interrupted; kept: " in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in out.iterdir()} >= {"model.gnomon", "embedding.csv"}


@pytest.mark.slow
def test_the_demo_shows_it_all(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    assert result.stdout.splitlines()[-1].split() == ["report", str(tmp_path / "demo/report.html")]
    assert "labels that were hidden" in result.stderr
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "Compared with other projections" in page
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written == {
        "wine.csv",
        "model.gnomon",
        "embedding.csv",
        "predictions.csv",
        "report.html",
    }


@pytest.fixture
def wine_model(tmp_path):
    """A fit of a table with decimal commas, latin-1 and dates, and the table."""
    path, _ = messy.wine(tmp_path, n=60)
    quick = ("-k", 2, "--supervision", 0.5)
    said = run("fit", path, "-t", "Rebsorte", "--encoding", "latin-1", *quick, "-o", tmp_path / "w")
    assert "note: decimal commas were found in 'Säure'" in said.stderr
    assert "note: 'Flasche' was taken for the names of the rows" in said.stderr
    return tmp_path / "w" / "model.gnomon", path


@pytest.mark.parametrize("command", ["transform", "predict", "impute", "report"])
def test_commands_on_a_model_need_no_options_of_reading(wine_model, command, tmp_path):
    out = tmp_path / ("out.html" if command == "report" else "out.csv")
    run(command, *wine_model, "--out", out)
    assert out.stat().st_size > 0
    if command == "transform":
        assert out.read_bytes().splitlines()[1:] == [
            line.rsplit(b",", 1)[0]
            for line in (tmp_path / "w" / "embedding.csv").read_bytes().splitlines()[1:]
        ]


def test_an_option_that_is_given_goes_before_what_a_model_remembers(wine_model):
    assert "UTF-8" in fails("transform", *wine_model, "--encoding", "utf-8")
    assert "holds texts" in fails("transform", *wine_model, "--decimal", ".")


def test_genes_as_rows_are_transposed(tmp_path):
    path, truth = messy.genes(tmp_path, n_genes=40, n_samples=30)
    options = ("-t", "tissue", "-k", 2, "--supervision", 0.5, "-o", tmp_path / "g")
    assert "say --transpose" in fails("fit", path, *options)
    run("fit", path, *options, "--transpose")
    run("predict", tmp_path / "g" / "model.gnomon", path, "--out", tmp_path / "p.csv")
    rows = csv.read_csv(tmp_path / "p.csv").column("row").to_pylist()
    assert rows == truth["ids"].tolist()


def test_options_of_reading_reach_the_table(tmp_path):
    path = tmp_path / "t.csv"
    cells = [
        f"{1 + i % 7}.000;{'bad' if i % 9 == 0 else i % 9};0{1 + i % 9}/04/2021" for i in range(30)
    ]
    path.write_text("\n".join(["a;b;day", *cells]) + "\n")
    options = ("--thousands", ".", "--na", "b=bad", "--na", "gone", "--monthfirst")
    run("fit", path, *options, "--censored", "gap", "-o", tmp_path / "m", "-k", 1)
    notes = modelfile.read(tmp_path / "m" / "model.gnomon").notes
    assert notes["reading"] == {
        "separator": ";",
        "decimal": ",",
        "thousands": ".",
        "na": ("b=bad", "gone"),
        "censored": "gap",
        "dayfirst": False,
    }
    means = {f["column"]: float(f["center"][0]) for f in notes["recipe"]["features"]}
    assert means["a"] > 1000
    assert set(means) == {"a", "b", "day"}


@pytest.fixture
def spectra(tmp_path):
    """Rows of light at some wavelengths, and three numbers, of which some are not measured."""
    rng = np.random.default_rng(0)
    amounts = rng.gamma(4, 0.25, (80, 3))
    peaks = np.exp(-((np.linspace(0, 1, 12) - np.array([[0.2], [0.5], [0.8]])) ** 2) / 0.02)
    light = amounts @ peaks + 0.02 * rng.standard_normal((80, 12))
    columns = {f"nm {700 + 10 * j}": light[:, j] for j in range(12)}
    measured = amounts + np.array([0.02, 0.1, 0.3]) * rng.standard_normal((80, 3))
    measured[50:] = np.nan
    measured[40:50, 1] = np.nan
    columns |= dict(zip(("fat", "water", "protein"), measured.T, strict=True))
    columns["ripe"] = np.where(amounts[:, 0] > 1, "yes", "no")
    columns["sweet"] = amounts[:, 1] > 1
    arrays = {name: pa.array(v, from_pandas=True) for name, v in columns.items()}
    csv.write_csv(pa.table(arrays), tmp_path / "spectra.csv")
    return tmp_path / "spectra.csv"


THREE = ("--target", "fat", "--target", "water", "--target", "protein")
LABELS = ("--target", "ripe", "--target", "sweet")


def test_no_target_of_several_is_a_feature(spectra, tmp_path):
    out, leave = tmp_path / "out", ("--ignore", "ripe", "--ignore", "sweet")
    run("fit", spectra, *THREE, *leave, "-k", "2", "--out", out)
    found = prepare.load_fit(out / "model.gnomon")
    assert found.recipe.names == [f"nm {700 + 10 * j}" for j in range(12)]
    assert found.asked.targets == ("fat", "water", "protein")
    assert found.model.target_coding_.center.shape == (3,)


@pytest.mark.parametrize("model", ["sppca", "kernel-sppca", "bsdr"])
def test_several_numbers_are_predicted_each_with_its_deviation(spectra, tmp_path, model):
    out, leave = tmp_path / "out", ("--ignore", "ripe", "--ignore", "sweet")
    run("fit", spectra, *THREE, *leave, "-k", "2", "-m", model, "--out", out)
    found = rows(out / "predictions.csv")
    names = [f"{part} {name}" for name in THREE[1::2] for part in ("predicted", "sd")]
    assert list(found) == ["row", *names]
    # Rows 41 to 50 lack one of three, those after all.
    assert found["row"] == list(range(41, 81))
    assert 0 < np.mean(found["sd fat"]) < np.mean(found["sd protein"])
    again = run("predict", out / "model.gnomon", spectra, "--out", tmp_path / "p.csv")
    assert "80" in again.stdout
    assert_allclose(rows(tmp_path / "p.csv")["sd water"][40:], found["sd water"])
    assert list(rows(out / "embedding.csv"))[-3:] == ["fat", "water", "protein"]


def test_one_number_is_predicted_with_its_deviation(spectra, tmp_path):
    leave = [part for name in ("water", "protein", "ripe", "sweet") for part in ("--ignore", name)]
    run("fit", spectra, "--target", "fat", *leave, "-k", "2", "--out", tmp_path / "out")
    assert list(rows(tmp_path / "out" / "predictions.csv")) == ["row", "predicted", "sd"]


@pytest.mark.parametrize("model", ["sppca", "kernel-sppca", "bsdr"])
def test_several_columns_of_yes_and_no_are_labels(spectra, tmp_path, model):
    text = spectra.read_text().splitlines()
    text[60:] = [line.rsplit(",", 2)[0] + ",," for line in text[60:]]
    spectra.write_text("\n".join(text))
    out = tmp_path / "out"
    leave = [part for name in THREE[1::2] for part in ("--ignore", name)]
    run("fit", spectra, *LABELS, *leave, "-k", "2", "-m", model, "--out", out)
    found = rows(out / "predictions.csv")
    score = {"sppca": ["score"], "kernel-sppca": [], "bsdr": ["probability"]}[model]
    parts = ("predicted", *score)
    assert list(found) == ["row", *(f"{p} {n}" for n in ("ripe", "sweet") for p in parts)]
    assert set(found["predicted ripe"]) <= {0, 1}
    for part in score:
        assert 0 <= min(found[f"{part} ripe"]) <= max(found[f"{part} ripe"]) <= 1


def test_every_command_takes_several_targets(spectra, tmp_path):
    out, leave = tmp_path / "out", ("--ignore", "ripe", "--ignore", "sweet")
    run("fit", spectra, *THREE, *leave, "--out", out)
    model = out / "model.gnomon"
    page = (out / "report.html").read_text()
    assert "targets &#39;fat&#39;, &#39;water&#39;, &#39;protein&#39;" in page
    run("report", model, spectra, "--out", tmp_path / "again.html")
    run("transform", model, spectra, "--out", tmp_path / "z.csv")
    assert "'fat', 'water', 'protein'" in run("inspect", model).stdout
    few = ("--components", "2", "--models", "PCA,SPPCA")
    assert "SPPCA" in run("compare", spectra, *THREE, *leave, *few).stdout


def test_the_code_of_the_report_reads_the_same_targets(spectra, tmp_path):
    out, leave = tmp_path / "out", ("--ignore", "ripe", "--ignore", "sweet")
    run("fit", spectra, *THREE, *leave, "-k", "2", "--out", out)
    page = (out / "report.html").read_text()
    code = html.unescape(re.search(r"import gnomon\n.*?\n</", page, re.S)[0])
    found: dict = {}
    exec(code.rpartition("\n")[0], found)
    assert found["table"].y.shape == (80, 3)
    assert_allclose(found["Z"][:, 0], rows(out / "embedding.csv")["z1"], atol=1e-6)


def test_a_table_without_one_of_the_targets_has_a_report(spectra, tmp_path):
    out, leave = tmp_path / "out", ("--ignore", "ripe", "--ignore", "sweet")
    run("fit", spectra, *THREE, *leave, "-k", "2", "--out", out)
    csv.write_csv(csv.read_csv(spectra).drop(["water"]), tmp_path / "less.csv")
    run("report", out / "model.gnomon", tmp_path / "less.csv", "--out", tmp_path / "less.html")


def test_targets_of_different_kinds_are_refused(spectra, text):
    out = ("--out", "nowhere")
    mixed = fails("fit", spectra, "--target", "fat", "--target", "ripe", *out)
    assert "of different kinds: 'fat' holds numbers, 'ripe' holds yes and no" in mixed
    assert "'fat' is given more than once" in fails("fit", spectra, *THREE, "-t", "fat", *out)
    classes = text(
        "a,b,c,d\n" + "\n".join(f"{i},{i % 3}.5,{'xyz'[i % 3]},{i * i}" for i in range(9))
    )
    refused = fails("fit", classes, "-t", "b", "-t", "c", *out)
    assert "the target 'c' holds classes; several targets are all numbers" in refused
    refused = fails("fit", classes, "-t", "b", "-t", "d", "--task", "classes", *out)
    assert "--task classes is for one target" in refused
    refused = fails("fit", spectra, "-t", "fat", "--task", "multilabel", *out)
    assert "--task multilabel is for several targets" in refused
    refused = fails("fit", spectra, "-t", "fat", "-t", "ripe", "--task", "multilabel", *out)
    assert "the target 'fat' has" in refused
    refused = fails("fit", spectra, *THREE, "-m", "dcagm", *out)
    assert "dcagm predicts classes; 'fat', 'water', 'protein' hold numbers" in refused


def test_a_gap_is_an_empty_cell_of_the_table(text, tmp_path):
    soils = ["sand", "clay", "loam", "peat", "rock"]
    lines = [f"{i % 7},{i * i % 11},{soils[i % 5]}" for i in range(40)]
    lines[3], lines[8] = "3,9,", "1,,"
    table, out = text("\n".join(["a,b,soil", *lines])), tmp_path / "out"
    run("fit", table, "-k", "2", "--out", out)
    page = (out / "report.html").read_text()
    assert "3 cells are empty, in 2 columns." in page
    assert "2.5%</" in page, "three of 120"
    notes = run("fit", table, "-t", "a", "-m", "kernel-sppca", "-k", "2", "--out", out).stderr
    assert "filled" not in notes
    run("fit", table, "-k", "2", "--out", out)
    filled = run("impute", out / "model.gnomon", table, "--out", tmp_path / "filled.csv")
    assert "3 gaps filled" in filled.stderr


@pytest.fixture
def linked(tmp_path):
    """Pages with noisy content, few labels, links mostly inside a class, and new pages."""
    rng = np.random.default_rng(0)
    labels = np.arange(150) % 3
    X = 6 * rng.standard_normal((150, 6)) + 4 * np.eye(6)[labels]
    pairs = rng.integers(150, size=(1800, 2))
    pairs = pairs[(labels[pairs[:, 0]] == labels[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])]
    names = [f"p{i}" for i in range(150)]
    kinds = KINDS[labels]
    rows = [[names[i], *map(str, X[i]), kinds[i] if i % 4 == 0 else ""] for i in range(150)]
    head = "page," + ",".join(f"w{j}" for j in range(6)) + ",kind"
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("\n".join([head, *(",".join(row) for row in rows[:120])]) + "\n")
    new.write_text("\n".join([head, *(",".join(row) for row in rows[120:])]) + "\n")
    inner = tmp_path / "links.csv"
    among = [f"p{a},p{b}" for a, b in pairs if max(a, b) < 120]
    inner.write_text("a,b\n" + "\n".join(among) + "\n")
    every = tmp_path / "every.csv"
    every.write_text("a,b\n" + "\n".join(f"p{a},p{b}" for a, b in pairs) + "\n")
    return old, new, inner, every, kinds


def test_labels_and_links_together_from_the_shell(linked, tmp_path):
    old, new, inner, every, kinds = linked
    out = tmp_path / "map"
    known = ["--target", "kind", "--id", "page"]
    result = run("fit", old, *known, "--links", inner, "--out", out)
    assert "by labels of rows held out" in result.stderr
    predicted = csv.read_csv(out / "predictions.csv").to_pydict()
    places = [int(name[1:]) for name in predicted["row"]]
    assert np.mean(np.array(predicted["predicted"]) == kinds[places]) > 0.9
    model = out / "model.gnomon"
    run("predict", model, new, "--links", every, "--out", tmp_path / "p.csv")
    found = csv.read_csv(tmp_path / "p.csv").to_pydict()
    assert np.mean(np.array(found["predicted"]) == kinds[120:]) > 0.85
    alone = run("predict", model, new, "--out", tmp_path / "alone.csv")
    assert "say --links" in alone.stderr
    run("transform", model, new, "--links", every, "--out", tmp_path / "z.csv")
    run("report", model, old, "--links", inner, "--out", tmp_path / "again.html")
    again = run("transform", model, old, "--links", inner, "--out", tmp_path / "same.csv")
    assert again.exit_code == 0
    z = csv.read_csv(tmp_path / "same.csv").to_pydict()["z1"]
    assert_allclose(z, csv.read_csv(out / "embedding.csv").to_pydict()["z1"], rtol=1e-9)


def test_a_model_of_links_is_scored_with_them_or_not_at_all(linked, tmp_path):
    old, _, inner, _, _ = linked
    known = ["--target", "kind", "--id", "page", "-m", "prpca", "-k", "2"]
    fitted = run("fit", old, *known, "--links", inner, "--out", tmp_path / "o", "--json")
    model, out = tmp_path / "o" / "model.gnomon", ("--out", tmp_path / "r.html", "--json")
    with_links = json.loads(run("report", model, old, "--links", inner, *out).stdout)
    alone = json.loads(run("report", model, old, *out).stdout)
    score = json.loads(fitted.stdout)["on the map"]
    assert score is not None
    assert with_links["on the map"] == score
    assert "on the map" not in alone
    assert any("for a report to score it" in note for note in alone["notes"])


def test_links_are_refused_where_they_have_no_place(linked, tmp_path):
    old, new, inner, every, _ = linked
    plain = tmp_path / "plain"
    run("fit", old, "--target", "kind", "--id", "page", "-k", "2", "--out", plain)
    line = fails("predict", plain / "model.gnomon", new, "--links", every)
    assert "the model was fitted without links" in line
    line = fails("fit", old, "--model", "sppca", "--id", "page", "--links", inner)
    assert "needs a --target" in line


@pytest.fixture
def clusters(tmp_path):
    """Rows of six clusters in three classes, in noise, few labels, one gap, and groups."""
    rng = np.random.default_rng(0)
    cluster = np.arange(240) % 6
    X = rng.standard_normal((240, 12)) + 1.6 * rng.standard_normal((6, 12))[cluster]
    kind = np.array(["a", "b", "c"])[cluster % 3]
    columns = {f"x{k}": X[:, k].round(3).astype(object) for k in range(12)}
    columns["x0"][5] = ""
    columns["kind"] = np.where(np.arange(240) < 30, kind, "")
    columns["group"] = [f"{k}{i // 80}" if 30 <= i < 60 else "" for i, k in enumerate(kind)]
    path = tmp_path / "clusters.csv"
    cells = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in cells)]
    path.write_text("\n".join(lines) + "\n")
    return path, kind


def test_the_graph_of_nearest_rows_from_the_shell(clusters, tmp_path):
    path, kind = clusters
    known = ("--target", "kind", "--links", "neighbours", "--chunks", "group", "-k", "2")
    out = tmp_path / "o"
    run("fit", path, *known, "--out", out)
    run("predict", out / "model.gnomon", path, "--out", tmp_path / "p.csv")
    assert np.mean(np.array(rows(tmp_path / "p.csv")["predicted"]) == kind) > 0.9
    run("report", out / "model.gnomon", path, "--out", tmp_path / "again.html")
    line = fails("fit", path, *known, "-m", "ppca", "--out", out)
    assert "--links is for sppca, kernel-sppca, not for ppca" in line
    line = fails("fit", path, "--links", "neighbours", "--out", out)
    assert "--links neighbours needs a --target" in line
