"""Names are text, cells that nobody asked to change stay as they are, and inputs are not lost."""

import csv
import json
import os
import re

import numpy as np
import pytest

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
from pyarrow import parquet
from typer.testing import CliRunner

from gnomon.exceptions import TableError
from gnomon.tools import modelfile, write
from gnomon.tools.cli import app
from gnomon.tools.tables import open_table


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def cells(path, separator=","):
    with open(path, newline="") as file:
        return list(csv.reader(file, delimiter=separator))


def columns_of(path, separator=","):
    header, *rows = cells(path, separator)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def table_of(path, columns, separator=","):
    with open(path, "w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(
            [list(columns), *zip(*columns.values(), strict=True)]
        )
    return path


@pytest.fixture
def numbers(rng):
    X = rng.standard_normal((24, 2)) @ rng.standard_normal((2, 3)) + 5
    X += 0.1 * rng.standard_normal(X.shape)
    return {f"x{j}": [f"{v:.3f}" for v in X[:, j]] for j in range(3)}


@pytest.mark.parametrize("classes", [("01", "1"), ("NA", "asia"), ("true", "True")])
@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_classes_and_names_of_rows_are_texts(tmp_path, numbers, suffix, classes):
    if suffix == ".xlsx":
        pytest.importorskip("python_calamine")
    ids = [f"{10**19 + i}" for i in range(24)]
    kind = [classes[i % 2] for i in range(24)]
    columns = numbers | {"id": ids, "kind": kind}
    path = tmp_path / f"t{suffix}"
    if suffix == ".csv":
        table_of(path, columns)
    else:
        from test_formats import write_xlsx

        write_xlsx(path, {"a": [list(columns), *map(list, zip(*columns.values(), strict=True))]})
    out = tmp_path / "o"
    result = run("fit", path, "--id", "id", "-t", "kind", "-k", "2", "-o", out, "--json")
    known = json.loads(result.stdout)
    assert known["labelled"] == 24
    told = any(
        "'NA', a class; if it means no label, say --unlabelled NA" in n for n in known["notes"]
    )
    assert told == ("NA" in classes)
    written = columns_of(out / "embedding.csv")
    assert list(written["row"]) == ids
    assert list(written["kind"]) == kind
    assert modelfile.load(out / "model.gnomon").classes_.tolist() == sorted(classes)


def test_words_for_no_value_are_no_class_where_that_is_said(tmp_path, numbers):
    kind = [("a", "b", "NA")[i % 3] for i in range(24)]
    path = table_of(tmp_path / "t.csv", numbers | {"kind": kind})
    for words in (("--unlabelled", "NA"), ("--na", "NA"), ("--na", "kind=NA")):
        result = run("fit", path, "-t", "kind", "-k", "1", "-o", tmp_path / "o", "--json", *words)
        assert json.loads(result.stdout)["labelled"] == 16


def test_words_for_no_value_among_numbers_are_no_class(tmp_path, numbers):
    kind = [("1", "2", "NA")[i % 3] for i in range(24)]
    path = table_of(tmp_path / "t.csv", numbers | {"kind": kind})
    result = run("fit", path, "-t", "kind", "-k", "1", "-o", tmp_path / "o", "--json")
    assert json.loads(result.stdout)["labelled"] == 16


def test_whole_numbers_with_a_point_are_classes_without_it(tmp_path, numbers):
    kind = [("1.0", "2.0", "")[i % 3] for i in range(24)]
    path = table_of(tmp_path / "t.csv", numbers | {"kind": kind})
    run("fit", path, "-t", "kind", "-k", "1", "-o", tmp_path / "o")
    assert modelfile.load(tmp_path / "o" / "model.gnomon").classes_.tolist() == ["1", "2"]


def test_links_and_groups_go_by_the_texts_of_names(tmp_path, numbers):
    ids = [f"{i % 12:0{2 + i // 12}d}" for i in range(24)]
    group = ["01" if i < 2 else "1" if i < 4 else "NA" if i < 6 else "" for i in range(24)]
    path = table_of(tmp_path / "t.csv", numbers | {"id": ids, "group": group})
    from gnomon.tools.prepare import Question, prepare

    links = table_of(tmp_path / "links.csv", {"a": ["00", "000"], "b": ["01", "001"]})
    ready = prepare(open_table(path), Question(id="id", chunks="group", links=links), print)
    assert set(zip(*ready.links.adjacency.nonzero(), strict=True)) == {
        (0, 1),
        (1, 0),
        (12, 13),
        (13, 12),
    }
    assert ready.chunks.tolist()[:7] == [0, 0, 1, 1, -1, -1, -1]


def test_the_names_of_a_turned_table_are_texts(tmp_path):
    (tmp_path / "t.csv").write_text("gene,01,1\n007,1.5,2\n7,3,1e2\nkind,01,1\n")
    table = open_table(tmp_path / "t.csv", transpose=True)
    assert table.names == ["sample", "007", "7", "kind"]
    assert table.labels("sample").tolist() == ["01", "1"]
    assert table.labels("kind").tolist() == ["01", "1"]


def test_columns_without_a_name_are_read_as_written(tmp_path):
    (tmp_path / "t.csv").write_text(",,b \n01,1,2\n1,02,\n")
    table = open_table(tmp_path / "t.csv")
    assert table.labels("column 1").tolist() == ["01", "1"]
    assert table.labels("column 2").tolist() == ["1", "02"]
    assert table.labels("b").tolist() == ["2", None]


OTHERS = {
    "id": ["00001", "12345678901234567890"],
    "flag": ["True", "true"],
    "when": ["2020-01-01 00:00:00", "2020-01-01T01:00"],
    "word": ["NA", "=1+1"],
    "text": ['a "b", c', " padded "],
    "lines": ["one\ntwo", "-"],
}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_filling_gaps_changes_no_other_cell(tmp_path, numbers, separator):
    others = {name: [values[i % 2] for i in range(24)] for name, values in OTHERS.items()}
    numbers["x0"][3] = numbers["x0"][7] = ""
    numbers["x1"][5] = "NA"
    numbers["x1"][6] = "<4.5"
    path = table_of(tmp_path / "t.csv", numbers | others, separator)
    ignored = [part for name in others for part in ("--ignore", name)]
    run("fit", path, *ignored, "-k", "1", "-o", tmp_path / "o")
    out = tmp_path / "filled.csv"
    run("impute", tmp_path / "o" / "model.gnomon", path, "-o", out)
    after = columns_of(out, "," if separator == "\t" else separator)
    assert list(after) == ["x0", "x0 (sd)", "x1", "x1 (sd)", "x2", *others]
    assert {name: list(after[name]) for name in others} == others
    for name, gaps in {"x0": (3, 7), "x1": (5,), "x2": ()}.items():
        kept = [i for i in range(24) if i not in gaps]
        assert [after[name][i] for i in kept] == [numbers[name][i] for i in kept]
        assert all(float(after[name][i]) for i in gaps)


def test_fillings_have_the_style_of_their_column(tmp_path, numbers):
    comma = {name: [cell.replace(".", ",") for cell in column] for name, column in numbers.items()}
    comma["x0"][3] = ""
    comma["yes"] = [("TRUE", "FALSE")[i % 2] for i in range(23)] + [""]
    path = table_of(tmp_path / "t.csv", comma, ";")
    run("fit", path, "-k", "1", "-o", tmp_path / "o")
    run("impute", tmp_path / "o" / "model.gnomon", path, "-o", tmp_path / "f.csv")
    after = columns_of(tmp_path / "f.csv", ";")
    assert "," in after["x0"][3]
    assert re.fullmatch(r"\d+,\d+", after["x0 (sd)"][3]) and not after["x0 (sd)"][4]
    assert list(after["x2"]) == comma["x2"]
    assert set(after["yes"]) == {"TRUE", "FALSE"}


def test_columns_that_a_kind_would_change_are_texts_in_parquet(tmp_path, numbers):
    numbers["x0"][3] = ""
    ids = [f"{i:05d}" for i in range(24)]
    path = table_of(tmp_path / "t.csv", numbers | {"id": ids, "n": list(map(str, range(24)))})
    run("fit", path, "--id", "id", "--ignore", "n", "-k", "1", "-o", tmp_path / "o")
    run("impute", tmp_path / "o" / "model.gnomon", path, "-o", tmp_path / "f.parquet")
    table = parquet.read_table(tmp_path / "f.parquet")
    assert table.column("id").to_pylist() == ids
    assert table.column("n").to_pylist() == list(range(24))


@pytest.fixture
def fitted(tmp_path, numbers):
    numbers["x0"][3] = ""
    path = table_of(tmp_path / "t.csv", numbers)
    run("fit", path, "-k", "1", "-o", tmp_path / "o")
    return tmp_path / "o" / "model.gnomon", path


@pytest.mark.parametrize("command", ["transform", "impute", "report"])
@pytest.mark.parametrize("over", ["model", "table", "link"])
def test_no_file_that_is_read_is_overwritten(fitted, tmp_path, command, over):
    model, path = fitted
    link = tmp_path / "link.csv"
    os.symlink(path, link)
    before = model.read_bytes(), path.read_bytes()
    out = {"model": model, "table": path, "link": link}[over]
    line = run(command, model, path, "-o", out, code=1).stderr.splitlines()[-1]
    assert f"--out {out} is " in line
    assert line.endswith("which is read; name another one")
    assert (model.read_bytes(), path.read_bytes()) == before


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_no_table_is_overwritten_by_its_own_results(tmp_path, numbers, command):
    name = "embedding.csv" if command == "fit" else "comparison.csv"
    kind = [("a", "b")[i % 2] for i in range(24)]
    path = table_of(tmp_path / name, numbers | {"kind": kind})
    before = path.read_bytes()
    line = run(command, path, "-t", "kind", "-k", "1", "-o", tmp_path, code=1).stderr
    assert "which is read; name another one" in line
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["z1", "row", "sd1"])
def test_targets_with_the_names_of_coordinates_stand_beside_them(tmp_path, numbers, name):
    kind = [("a", "b")[i % 2] for i in range(24)]
    path = table_of(tmp_path / "t.csv", numbers | {name: kind})
    run("fit", path, "-t", name, "-k", "1", "-o", tmp_path / "o")
    after = columns_of(tmp_path / "o" / "embedding.csv")
    assert list(after) == ["row", "z1", "sd1", f"{name} (target)"]
    assert list(after[f"{name} (target)"]) == kind
    assert np.isfinite([float(v) for v in after["z1"]]).all()


def test_a_column_that_is_called_like_the_deviations_is_not_replaced(tmp_path, numbers):
    numbers["x0"][3] = ""
    path = table_of(tmp_path / "t.csv", numbers | {"x0 (sd)": ["7"] * 24})
    run("fit", path, "--ignore", "x0 (sd)", "-k", "1", "-o", tmp_path / "o")
    line = run("impute", tmp_path / "o" / "model.gnomon", path, "-o", tmp_path / "f.csv", code=1)
    assert "has a column 'x0 (sd)' already; rename it" in line.stderr
    assert not (tmp_path / "f.csv").exists()


def test_results_go_where_nothing_is_read(tmp_path):
    (tmp_path / "a").write_text("")
    write.check_apart(tmp_path / "b", tmp_path / "a", None)
    with pytest.raises(TableError):
        write.check_apart(tmp_path / "a", tmp_path / "b", tmp_path / "a")
