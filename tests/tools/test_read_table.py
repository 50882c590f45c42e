"""`gnomon.read_table` gives in Python what the command line fits."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("pyarrow")
import gnomon
from gnomon.exceptions import TableError
from gnomon.tools import modelfile
from gnomon.tools.prepare import Question, save_fit

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
    with pytest.warns(UserWarning, match="column 'c' has only one value; left out") as caught:
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
