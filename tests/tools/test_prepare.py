"""What a question makes of a table."""

from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet

import gnomon
from gnomon.exceptions import ModelFileError, TableError
from gnomon.tools import tables
from gnomon.tools.prepare import (
    Question,
    load_fit,
    named_rows,
    prepare,
    prepare_again,
    read_question,
    save_fit,
    without_gaps,
)
from gnomon.tools.tables import open_table

ASKED = Question(target="y")


@pytest.fixture
def table(tmp_path):
    def write(y, path=tmp_path / "t.parquet"):
        columns = {"a": pa.array(np.sin(np.arange(len(y)))), "b": pa.array(np.arange(len(y)) % 7)}
        parquet.write_table(pa.table(columns | {"y": y}), path)
        return open_table(path)

    return write


def read(table, asked=ASKED):
    notes: list[str] = []
    return prepare(table, asked, notes.append), notes


COLUMNS = {
    "integers": (pa.array([i % 25 for i in range(60)]), "classes"),
    "integers with gaps": (pa.array([None if i % 3 else i % 9 for i in range(60)]), "classes"),
    "small integers": (pa.array([i % 3 for i in range(60)], pa.uint8()), "classes"),
    "truth": (pa.array([i % 2 == 0 for i in range(60)]), "classes"),
    "texts": (pa.array(["xyz"[i % 3] for i in range(60)]), "classes"),
    "categories": (pa.array(["xyz"[i % 3] for i in range(60)]).dictionary_encode(), "classes"),
    "numbered categories": (pa.array([i % 30 for i in range(60)]).dictionary_encode(), "classes"),
    "dates": (pa.array([i % 3 for i in range(60)], pa.date32()), "classes"),
    "few whole floats": (pa.array([float(i % 20) for i in range(60)]), "classes"),
    "many whole floats": (pa.array([float(i % 21) for i in range(60)]), "numeric"),
    "fractions": (pa.array([i % 5 + 0.5 for i in range(60)]), "numeric"),
    "decimals": (pa.array([Decimal(f"{i % 5}.25") for i in range(60)]), "numeric"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_holds_what_it_would_hold_in_python(table, name):
    column, kind = COLUMNS[name]
    ready, _ = read(table(column))
    assert ready.kind == kind
    known = np.flatnonzero(np.array(column.is_valid()))
    assert np.flatnonzero(ready.labelled).tolist() == known.tolist()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([i % 25 for i in range(60)], "has 25 different whole numbers in 60 rows"),
        ([i % 8 for i in range(12)], "has 8 different whole numbers in 12 rows"),
        ([float(i % 12) for i in range(20)], "has 12 different whole numbers in 20 rows"),
    ],
)
def test_numbers_that_are_taken_for_many_classes_are_noted_with_the_way_out(table, values, said):
    _, (note,) = read(table(pa.array(values)))
    assert note.startswith(f"the target 'y' {said}, taken for classes")
    assert note.endswith("say --task numeric")
    ready, notes = read(table(pa.array(values)), ASKED._replace(task="numeric"))
    assert ready.kind == "numeric"
    assert_allclose(ready.y, values)
    assert notes == []
    assert read(table(pa.array(values)), ASKED._replace(task="classes"))[1] == []


def test_few_classes_that_repeat_need_no_note(table):
    assert read(table(pa.array([i % 20 for i in range(60)])))[1] == []
    assert read(table(pa.array([f"name {i % 30}" for i in range(60)])))[1] == []


@pytest.mark.parametrize("values", [list(range(60)), [f"name {i}" for i in range(60)]])
def test_values_that_hardly_repeat_are_refused_with_the_way_out(table, values):
    expected = (
        "has 60 different values in 60 rows; it looks like a name, not like classes; "
        "if they are numbers, say --task numeric"
    )
    with pytest.raises(TableError, match=expected):
        read(table(pa.array(values)))


def test_half_as_many_values_as_rows_are_still_classes(table):
    assert read(table(pa.array([i % 30 for i in range(60)])))[0].kind == "classes"
    with pytest.raises(TableError, match="looks like a name"):
        read(table(pa.array([i % 31 for i in range(60)])))


def test_minus_one_is_a_number_where_the_task_is_numeric(table):
    column = pa.array([i % 5 - 1 for i in range(60)])
    ready, _ = read(table(column), ASKED._replace(task="numeric"))
    assert ready.labelled.all()
    assert ready.y.min() == -1


@pytest.mark.parametrize("columns", [("y",), ("y", "z")])
def test_a_target_of_large_whole_numbers_keeps_them(tmp_path, columns):
    values = 1e19 * (1 + np.arange(60) % 30)
    (tmp_path / "t.csv").write_text(
        "a,y,z\n" + "".join(f"{np.sin(i)},{v:.3e},{v:.0f}\n" for i, v in enumerate(values))
    )
    ready, _ = read(open_table(tmp_path / "t.csv"), Question(target=columns, task="numeric"))
    assert_allclose(ready.y.T, np.broadcast_to(values, ready.y.T.shape), rtol=1e-15)


def test_a_value_can_mean_no_label(table):
    column = pa.array([-9.0 if i % 2 else i % 4 + 0.5 for i in range(60)])
    ready, _ = read(table(column), ASKED._replace(unlabelled="-9"))
    assert ready.labelled.sum() == 30
    assert np.isnan(ready.y[1])


def test_a_word_for_no_label_that_no_cell_has_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "a,y,z\n" + "".join(f"{i},{(-9.0, 0.5, 'NA', 1.25)[i % 4]},{i}\n" for i in range(9))
    )
    for word in ("-9", "-9.0", "NA", " "):
        assert read(open_table(path), ASKED._replace(unlabelled=word))[1] == []
    for columns in ("y", ("z", "y")):
        asked = Question(target=columns, unlabelled="-99")
        assert read(open_table(path), asked)[1] == [
            "--unlabelled -99: the target has no such cell, so that no label is left out by it"
        ]


BLANKS = ["x", " ", "y", "", "\u00a0 ", "x", "y", None]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_blank_cells_are_no_label_no_level_and_no_name(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    cells = {"a": [1.5, 3, 2, 7, 5, 4, 6, 8], "y": BLANKS, "z": BLANKS, "n": BLANKS}
    if suffix == "csv":
        rows = zip(*cells.values(), strict=True)
        lines = (",".join("" if cell is None else str(cell) for cell in row) for row in rows)
        path.write_text("\n".join([",".join(cells), *lines]) + "\n")
    else:
        parquet.write_table(pa.table(cells), path)
    ready, _ = read(open_table(path), Question(target="y", id="n"))
    known = ["x", None, "y", None, None, "x", "y", None]
    assert ready.y.tolist() == known
    assert ready.ids.tolist() == [name or "" for name in known]
    assert ready.recipe.names == ["a", "z=y"]
    assert ready.gaps == {"z": 4}


@pytest.mark.parametrize("asked", [ASKED, Question(target=("y", "a")), Question(chunks="y")])
def test_a_column_without_texts_is_refused_by_its_name(table, asked):
    with pytest.raises(
        TableError, match=r"column 'y' of .* holds list<.*>; texts, numbers or dates"
    ):
        read(table(pa.array([[1, 2]] * 9)), asked)


def test_texts_are_no_numbers(table):
    with pytest.raises(TableError, match="the target 'y' is no number"):
        read(table(pa.array(["x", "y"] * 30)), ASKED._replace(task="numeric"))


def test_options_are_checked():
    asked = {"task": "numbers", "scale": "auto"}
    with pytest.raises(TableError, match="--task 'numbers'; accepted are auto, classes, numeric"):
        read_question(asked)
    assert read_question(asked | {"task": "numeric", "components": "3"}).components == 3


def test_gaps_get_the_means_of_the_fit(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n,4\n3,\n")
    ready, _ = read(open_table(path), Question())
    filled = without_gaps(ready.X, ready.recipe)
    assert filled[1, 0] == filled[2, 1] == 0
    assert without_gaps(filled, ready.recipe) is filled


@pytest.fixture
def saved(table, tmp_path):
    opened = table(pa.array(["xyz"[i % 3] for i in range(60)]))
    ready, _ = read(opened)
    model = gnomon.SPPCA(1, supervision=0.5).fit(ready.X, ready.y)
    return save_fit(model, tmp_path / "m.gnomon", ready, ASKED), ready


def test_a_saved_model_prepares_a_table_as_its_own(saved, table):
    path, ready = saved
    fitted = load_fit(path)
    again, asked = prepare_again(fitted, open_table(path.with_name("t.parquet")), print)
    assert (again.X == ready.X).all()
    assert (again.y == ready.y).all()
    assert asked.task == "classes"


def test_the_first_files_called_numeric_targets_numbers(saved, monkeypatch):
    path, ready = saved
    old = path.with_name("old.gnomon")
    question = ASKED._replace(task="numbers")
    assert load_fit(save_fit(gnomon.PPCA(1), old, ready._replace(kind=None), question)).asked == (
        ASKED._replace(task="numeric")
    )


def test_a_rule_of_another_width_than_the_model_is_refused(saved, tmp_path):
    _, ready = saved
    other = gnomon.PPCA(1).fit(np.random.default_rng(0).normal(size=(9, 3)))
    path = save_fit(other, tmp_path / "other.gnomon", ready, ASKED)
    with pytest.raises(ModelFileError, match="holds a rule for tables that cannot be read"):
        load_fit(path)


def test_a_rule_that_is_no_rule_is_refused(tmp_path):
    path = gnomon.save(gnomon.PPCA(1), tmp_path / "m.gnomon", notes={"recipe": {}})
    with pytest.raises(ModelFileError, match="holds a rule for tables that cannot be read"):
        load_fit(path)


@pytest.fixture
def several(tmp_path):
    def write(**columns):
        rows = len(next(iter(columns.values())))
        path = tmp_path / "several.parquet"
        parquet.write_table(pa.table({"a": np.sin(np.arange(rows)), **columns}), path)
        return open_table(path), Question(target=tuple(columns))

    return write


NUMBERS = {"u": [1.5, None, 3.0, 2.0], "v": [4, 5, None, 9]}
LABELS = {"u": ["yes", "No", None, "no"], "v": [True, False, True, None], "w": [0, 1, 1, 0]}


def test_several_numbers_are_a_column_each_with_gaps(several):
    ready, _ = read(*several(**NUMBERS))
    assert ready.kind == "numeric"
    assert_allclose(ready.y, [[1.5, 4], [np.nan, 5], [3, np.nan], [2, 9]])
    assert ready.recipe.names == ["a"]
    assert ready.labelled.tolist() == [True, False, False, True]


def test_yes_and_no_truth_and_indicators_are_labels(several):
    ready, _ = read(*several(**LABELS))
    assert ready.kind == "multilabel"
    nan = np.nan
    assert_allclose(ready.y, [[1, 1, 0], [0, 0, 1], [nan, 1, 1], [0, nan, 0]])


def test_indicators_are_numbers_where_that_is_said(several):
    table, asked = several(u=[0, 1, 1, 0], v=[1.5, 2.5, 3.5, 0.5])
    with pytest.raises(TableError, match="'u' holds yes and no, 'v' holds numbers"):
        read(table, asked)
    assert read(table, asked._replace(task="numeric"))[0].kind == "numeric"


def test_a_value_that_means_no_label_means_it_in_every_target(several):
    table, asked = several(u=[-9.0, 1.5, 3.0, 2.0], v=[4, -9, 7, 9])
    ready, _ = read(table, asked._replace(unlabelled="-9"))
    assert np.argwhere(np.isnan(ready.y)).tolist() == [[0, 0], [1, 1]]


def test_each_of_several_targets_must_vary_and_have_values(several):
    with pytest.raises(TableError, match=r"the target 'v' of .* has no value"):
        read(*several(u=[1.5, 2.0, 3.0], v=pa.array([None, None, None], pa.float64())))
    with pytest.raises(TableError, match=r"the target 'v' of .* has only one value"):
        read(*several(u=[1.5, 2.0, 3.0], v=[7.5, 7.5, None]))


@pytest.mark.parametrize("columns", [NUMBERS, LABELS], ids=["numbers", "labels"])
def test_several_targets_go_to_a_file_and_back(several, tmp_path, columns):
    table, asked = several(**columns)
    ready, _ = read(table, asked)
    model = gnomon.SPPCA(1, supervision=0.5, target=ready.kind).fit(ready.X, ready.y)
    saved = load_fit(save_fit(model, tmp_path / "m.gnomon", ready, asked))
    assert saved.asked.targets == tuple(columns)
    again, _ = prepare_again(saved, table, lambda text: None)
    assert again.kind == ready.kind
    assert_allclose(again.y, ready.y)


def test_the_target_of_a_question_is_none_one_or_several():
    asked = {"task": "auto", "scale": "auto"}
    for typed, kept in (
        (None, None),
        ([], None),
        ("a", "a"),
        (["a"], "a"),
        (["a", "b"], ("a", "b")),
    ):
        assert read_question(asked | {"target": typed}).target == kept
    assert Question().targets == ()
    assert Question(target="ab").targets == ("ab",)
    with pytest.raises(TableError, match="--target 'a' is given more than once"):
        read_question(asked | {"target": ["a", "b", "a"]})


def indexed(folder, suffix, index, header="", rows=12):
    """A table with an index as pandas writes it, beside a target that is sorted by it."""
    path = folder / f"t.{suffix}"
    a, y = np.sin(np.arange(rows)), ["x"] * (rows // 2) + ["y"] * (rows - rows // 2)
    if suffix == "csv":
        cells = zip(index, a, y, strict=True)
        path.write_text(f"{header},a,y\n" + "".join(f"{i},{v},{k}\n" for i, v, k in cells))
    else:
        parquet.write_table(pa.table({"a": a, "y": y, "__index_level_0__": index}), path)
    return open_table(path)


@pytest.mark.parametrize(
    ("suffix", "header", "name"),
    [
        ("csv", "", "column 1"),
        ("csv", '""', "column 1"),
        ("csv", "Unnamed: 0", "Unnamed: 0"),
        ("parquet", None, "__index_level_0__"),
    ],
)
def test_an_index_that_pandas_or_r_wrote_names_the_rows_and_is_no_feature(
    tmp_path, suffix, header, name
):
    index = [3, 1, 2, *range(4, 13)]
    table, notes = indexed(tmp_path, suffix, index, header), []
    asked = named_rows(table, ASKED, notes.append)
    ready = prepare(table, asked, notes.append)
    assert ready.recipe.names == ["a"]
    assert ready.ids.tolist() == [str(i) for i in index]
    assert notes == [
        f"{name!r} was taken for the names of the rows; say --id for another",
        f"{name!r} is an index, as pandas and R write it, no feature; if it is one, rename it",
    ]


def test_an_index_is_no_feature_where_rows_have_names_or_numbers(tmp_path, monkeypatch):
    for options in ({"id": "y"}, {"links": "links.csv"}):
        table = indexed(tmp_path, "csv", range(12))
        asked = named_rows(table, Question(**options), print)
        assert (asked.id, asked.ignore) == (options.get("id"), ("column 1",))
    asked = ASKED._replace(ignore=("column 1",))
    assert named_rows(table, asked, pytest.fail) == asked
    monkeypatch.setattr(tables, "STREAM_ABOVE", 10)
    table = indexed(tmp_path, "csv", range(12))
    assert table.streamed
    assert named_rows(table, ASKED, print) == asked


@pytest.mark.parametrize("index", [[1.5, *range(2, 13)], [1, *range(1, 12)], ["", *range(11)]])
def test_a_column_without_a_name_that_is_no_index_stays_a_feature(tmp_path, index):
    table = indexed(tmp_path, "csv", index)
    assert named_rows(table, ASKED, pytest.fail) == ASKED
    assert read(table)[0].recipe.names == ["column 1", "a"]


class Names(list):
    """Names of columns that count how often all of them are searched for one."""

    searched = 0

    def __contains__(self, name):
        self.searched += 1
        return super().__contains__(name)


def test_the_names_of_a_wide_table_are_not_searched_for_each_column(tmp_path):
    cells = [[f"{i * j % 7}.5" for j in range(60)] for i in range(12)]
    lines = [",".join(f"x{j}" for j in range(60)), *(",".join(row) for row in cells)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = open_table(tmp_path / "t.csv", na=("99", "x1=98"))
    table = table._replace(names=Names(table.names))
    prepare(table, named_rows(table, Question(), print), print)
    assert table.names.searched <= 2
