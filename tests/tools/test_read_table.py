"""`gnomon.read_table` gives in Python what the command line fits."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("pyarrow")
import gnomon
from gnomon.exceptions import ModelFileError, TableError
from gnomon.tools import modelfile
from gnomon.tools.prepare import Question, save_fit

import messy

TEXT = "name;size;kind;batch\n" + "".join(
    f"n{i};{'' if i % 5 == 0 else i + 0.5};{'xy'[i % 2]};{i // 3 if i < 9 else ''}\n"
    for i in range(20)
).replace(".", ",")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "t.csv").write_text(TEXT)
    return tmp_path / "t.csv"


@pytest.fixture
def edges(tmp_path):
    (tmp_path / "e.csv").write_text("from,to\n" + "".join(f"n{i},n{i + 1}\n" for i in range(19)))
    return tmp_path / "e.csv"


def test_everything_that_is_asked_for_is_there(path, edges):
    table = gnomon.read_table(
        path, target="kind", id="name", chunks="batch", links=edges, decimal=","
    )
    assert table.kind == "classes"
    assert table.y[:3].tolist() == ["x", "y", "x"]
    assert table.ids[:2].tolist() == ["n0", "n1"]
    assert table.chunks[[0, 1, 2, 3, 10]].tolist() == [0, 0, 0, 1, -1]
    assert table.links.n_nodes == 20
    assert table.recipe.names == ["size"]
    known = ~np.isnan(table.X[:, 0])
    assert np.flatnonzero(~known).tolist() == [0, 5, 10, 15]
    assert_allclose([table.X[known].mean(), table.X[known].std()], [0, 1], atol=1e-12)


def test_what_is_not_asked_for_is_none(path):
    table = gnomon.read_table(path, decimal=",", ignore=["name", "batch", "kind"])
    assert (table.y, table.kind, table.chunks, table.links) == (None,) * 4
    assert table.ids.tolist() == list(range(1, 21))


def test_gaps_are_filled_with_the_mean_of_the_column(path):
    options = {"decimal": ",", "ignore": ["name", "batch"]}
    table = gnomon.read_table(path, target="kind", fill_gaps=True, **options)
    assert_allclose(table.X[[0, 5, 10, 15], 0], 0)


def test_columns_of_no_use_are_warned_of(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "".join(f"{i},{i % 3},7\n" for i in range(9)))
    with pytest.warns(UserWarning, match="left out: 'c' has only one value;") as caught:
        table = gnomon.read_table(path)
    assert caught[0].filename == __file__
    assert table.recipe.names == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "kin"}, "has no target 'kin' (did you mean 'kind'?)"),
        ({"target": "kind", "task": "numbers"}, "accepted are auto, classes, numeric"),
        ({"scale": "log"}, "accepted are auto, standard, none"),
    ],
)
def test_mistakes_are_table_errors(path, options, sentence):
    with pytest.raises(TableError) as error:
        gnomon.read_table(path, **options)
    assert sentence in str(error.value)


def test_a_table_is_read_for_a_model_as_its_own_was(path, tmp_path):
    options = {"decimal": ",", "ignore": ["name", "batch"]}
    table = gnomon.read_table(path, target="kind", **options)
    asked = Question(target="kind", ignore=("name", "batch"))
    model = gnomon.SPPCA(1, supervision=0.5).fit(table.X, table.y)
    save_fit(model, tmp_path / "m.gnomon", table, asked)
    new = tmp_path / "new.csv"
    new.write_text("kind,size\ny,100\n,200\nx,\n")
    read = gnomon.read_table(new, model=tmp_path / "m.gnomon")
    (feature,) = table.recipe.features
    assert_allclose(read.X[:2, 0], ([100, 200] - feature.center) / feature.scale)
    assert read.y.tolist() == ["y", None, "x"]
    filled = gnomon.read_table(new, model=tmp_path / "m.gnomon", fill_gaps=True)
    assert filled.X[2, 0] == 0
    back = gnomon.load(tmp_path / "m.gnomon")
    assert (back.model.transform(read.X) == model.transform(read.X)).all()
    assert (back.transform(new) == model.transform(read.X)).all()


def test_a_model_without_a_rule_for_tables_is_refused(path, tmp_path):
    modelfile.save(gnomon.PPCA(1), tmp_path / "m.gnomon")
    with pytest.raises(TableError, match="without a rule for tables"):
        gnomon.read_table(path, model=tmp_path / "m.gnomon")


def test_gnomon_is_whole_without_pyarrow(path):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from gnomon import *\n"
        "try:\n    read_table(sys.argv[1])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    how = "pip install 'gnomon-learn[cli]', or '.[cli]' in a clone"
    assert found.stdout == f"tables need pyarrow: {how}\n", found.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", messy.TABLES)
def test_messy_tables_are_read_right(name, tmp_path):
    size = {"genes": {"n_genes": 60}, "sensors": {"n": 500}}.get(name, {})
    path, truth = messy.TABLES[name](tmp_path, **size)
    table = gnomon.read_table(path, target=truth["target"], **truth["options"])
    features = {feature.column: feature for feature in table.recipe.features}
    columns = dict(zip(table.recipe.names, table.X.T, strict=True))
    for column, values in truth["values"].items():
        found = columns[column] * features[column].scale + features[column].center
        assert_allclose(found, values, rtol=1e-9, atol=1e-9, err_msg=column)
    for column, days in truth["dates"].items():
        found = columns[column] * features[column].scale + features[column].center
        assert_allclose(found, days.astype("M8[us]").astype(float) / 86_400e6, atol=1e-5)
    for column, texts in truth.get("categories", {}).items():
        assert set(features[column].levels) == set(texts)
    assert table.ids.tolist() == truth["ids"].tolist()
    assert list(table.recipe.left_out) == truth.get("left_out", [])
    assert table.kind == truth["kind"]
    gap = None if truth["kind"] == "classes" else np.nan
    assert_array_equal(table.y, np.where(truth["labelled"], truth["y"], gap))


def test_what_was_found_in_a_messy_table_is_warned_of(tmp_path):
    path, truth = messy.clinic(tmp_path)
    with pytest.warns(UserWarning) as caught:
        gnomon.read_table(path, target="diagnosis")
    said = [str(warning.message) for warning in caught]
    assert len(said) == 3
    assert f"'crp' has {truth['censored']['crp']} cells as '<0.5'" in said[0]
    assert "'patient' was taken for the names of the rows; say --id" in said[1]
    assert "'age' has 99 in 12 cells" in said[2]
    assert "--na age=99" in said[2]


def test_rows_with_a_name_are_not_named_by_another_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "".join(f"n{i},m{i},{i}\n" for i in range(12)))
    with pytest.warns(UserWarning, match="'a' was taken"):
        assert gnomon.read_table(path, ignore=["b"]).ids[0] == "n0"
    assert gnomon.read_table(path, id="b", ignore=["a"]).ids[0] == "m0"
    with pytest.warns(UserWarning, match="'b' was taken"):
        assert gnomon.read_table(path, ignore=["a"]).ids[0] == "m0"


@pytest.mark.filterwarnings("ignore")
def test_a_column_with_a_gap_names_no_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "".join(f"{f'n{i}' if i else ''},m{i},{i}\n" for i in range(12)))
    assert gnomon.read_table(path).ids[0] == "m0"


def test_texts_of_few_rows_are_categories(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\nx,1\ny,2\nz,4\n")
    assert gnomon.read_table(path).recipe.names == ["a=y", "a=z", "b"]


@pytest.mark.filterwarnings("ignore")
def test_a_model_remembers_how_its_table_is_read(tmp_path):
    path, _ = messy.wine(tmp_path)
    table = gnomon.read_table(path, target="Rebsorte", encoding="latin-1")
    model = gnomon.SPPCA(2, supervision=0.5).fit(table.X, table.y)
    question = Question(target="Rebsorte", id="Flasche")
    file = save_fit(model, tmp_path / "m.gnomon", table, question)
    again = gnomon.read_table(path, model=file)
    assert_allclose(again.X, table.X)
    assert again.ids.tolist() == table.ids.tolist()
    # One row, in which 1,234 alone could mean thousands, and the day could be the month.
    new = tmp_path / "new.csv"
    cells = ["W-1", "01.02.2022", "1,234", "1,5", "n.d.", "0,99", "20"]
    head = list(dict.fromkeys(path.read_text(encoding="latin-1").splitlines()[0].split(";")))[:-1]
    new.write_text(";".join(head) + "\n" + ";".join(cells) + "\n", encoding="latin-1")
    read = gnomon.read_table(new, model=file)
    features = {f.column: f for f in table.recipe.features}
    place = table.recipe.names.index("Säure")
    assert_allclose(read.X[0, place] * features["Säure"].scale + features["Säure"].center, 1.234)
    with pytest.raises(TableError, match="UTF-8"):
        gnomon.read_table(new, model=file, encoding="utf-8")


def test_a_level_that_is_a_word_stays_a_level_for_a_model(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("ward,x\n" + "".join(f"{'AB-'[i % 3]},{i}\n" for i in range(12)))
    table = gnomon.read_table(path)
    file = save_fit(gnomon.PPCA(1).fit(table.X), tmp_path / "m.gnomon", table, Question())
    (tmp_path / "new.csv").write_text("ward,x\n-,3\n")
    read = gnomon.read_table(tmp_path / "new.csv", model=file)
    assert_allclose(read.X, table.X[[2]] + [0, 0, (3 - 2) / table.recipe.features[1].scale[0]])


def test_a_file_without_a_reading_is_read_as_usual(tmp_path, path):
    table = gnomon.read_table(path, ignore=["name", "batch", "kind"], decimal=",")
    notes = {"recipe": table.recipe.to_notes(), "question": Question()._asdict()}
    file = modelfile.save(gnomon.PPCA(1).fit(table.X), tmp_path / "m.gnomon", notes=notes)
    with pytest.warns(UserWarning, match="decimal commas were found"):
        assert_allclose(gnomon.read_table(path, model=file).X, table.X)


@pytest.mark.parametrize(
    "reading",
    [{"encoding": 5}, {"na": [5]}, {"na": 5}, {"nonsense": 1}, {"transpose": "yes"}, 5],
)
def test_a_reading_of_another_kind_is_refused(tmp_path, path, reading):
    table = gnomon.read_table(path, ignore=["name", "batch", "kind"], decimal=",")
    notes = {"recipe": table.recipe.to_notes(), "question": Question()._asdict()}
    notes["reading"] = reading
    file = modelfile.save(gnomon.PPCA(1).fit(table.X), tmp_path / "m.gnomon", notes=notes)
    with pytest.raises(ModelFileError, match="rule for tables that cannot be read"):
        gnomon.read_table(path, model=file)
