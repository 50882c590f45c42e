import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

pytest.importorskip("pyarrow")
from gnomon.exceptions import TableError
from gnomon.linalg import data, threads
from gnomon.tools import modelfile, recipe, tables
from gnomon.tools.recipe import Recipe, apply, gap_counts, plan
from gnomon.tools.tables import open_table


@pytest.fixture
def table(tmp_path):
    def write(text, name="t.csv"):
        path = tmp_path / name
        path.write_text(text)
        return open_table(path)

    return write


ROWS = "a,kind,when,one,none,free\n" + "".join(
    f"{a},{k},{w},7,,text {i}\n"
    for i, (a, k, w) in enumerate(
        zip([1, 2, "", 4] * 20, "xxyz" * 20, ["2020-01-01", "2020-02-01"] * 40, strict=True)
    )
)


def test_columns_become_features_by_the_stated_rule(table):
    rule = plan(table(ROWS))
    assert rule.names == ["a", "kind=y", "kind=z", "when"]
    X = apply(rule, table(ROWS))
    assert_allclose(np.nanmean(X, axis=0), 0, atol=1e-12)
    assert_allclose(np.nanvar(X, axis=0), [1, 0.5, 0.5, 1])
    assert_array_equal(np.isnan(X).sum(axis=0), [20, 0, 0, 0])


def test_useless_columns_are_left_out_by_name(table):
    left = plan(table(ROWS)).left_out
    assert left["one"] == "has only one value"
    assert left["none"] == "is empty"
    assert left["free"].startswith("has more than 50")


def test_batches_give_what_the_whole_gives(table, monkeypatch):
    whole_rule = plan(table(ROWS))
    whole = apply(whole_rule, table(ROWS))
    monkeypatch.setattr(tables, "STREAM_ABOVE", 10)
    monkeypatch.setattr(tables, "BATCH_BYTES", 700)
    pieces = table(ROWS)
    assert sum(1 for _ in pieces.batches()) > 2
    rule = plan(pieces)
    X = apply(rule, pieces)
    assert rule.names == whole_rule.names
    assert isinstance(X, np.memmap)
    assert_allclose(X, whole, rtol=1e-5, atol=1e-6)


def test_notes_of_batches_come_in_the_order_of_the_rows(table, monkeypatch):
    rule = plan(table("kind,n\nx,1\ny,2\nx,4\n"))
    monkeypatch.setattr(tables, "STREAM_ABOVE", 10)
    monkeypatch.setattr(tables, "BATCH_BYTES", 100)
    monkeypatch.setattr(threads, "n_threads", lambda: 3)
    pieces = table("kind,n\n" + "".join(f"new{i // 20:02d},{i}\n" for i in range(400)))
    said: list[str] = []
    X = apply(rule, pieces, said.append)
    assert len(said) > 5
    first = [note.split("'kind' has ")[1][:7] for note in said]
    assert first == sorted(first)
    assert np.isnan(X[:, 0]).all()
    assert (np.diff(X[:, 1]) > 0).all()


@pytest.mark.parametrize("size", [10**9, 200])
def test_the_rule_keeps_what_was_seen(table, monkeypatch, size):
    """Whole and in pieces: ranges, whether all were whole, whether they were true or false."""
    monkeypatch.setattr(tables, "STREAM_ABOVE", size)
    monkeypatch.setattr(tables, "BATCH_BYTES", size)
    lines = [
        f"{i % 7},{i / 4},{i % 2 == 0},2020-01-{i % 20 + 1:02d},{'xy'[i % 2]}" for i in range(40)
    ]
    rule = plan(table("n,a,wet,day,kind\n" + "\n".join(lines) + "\n"))
    seen = {f.column: (f.low, f.high, f.whole, f.boolean) for f in rule.features}
    assert seen["n"] == (0, 6, True, False)
    assert seen["a"] == (0, 9.75, False, False)
    assert seen["wet"] == (0, 1, True, True)
    assert seen["day"] == (18262, 18281, True, False)
    assert seen["kind"] == (-np.inf, np.inf, False, False)


def test_the_rule_of_a_matrix_keeps_what_was_seen(tmp_path):
    np.savez(tmp_path / "t.npz", X=[[1.0, 0.5], [np.nan, 2.0], [4.0, 1.0]])
    for scale in ("none", "standard"):
        rule = plan(open_table(tmp_path / "t.npz"), scale=scale)
        assert rule.matrix_low.tolist() == [1, 0.5]
        assert rule.matrix_high.tolist() == [4, 2]
        assert rule.matrix_whole.tolist() == [True, False]


def test_the_spread_of_far_numbers_keeps_its_digits(table, monkeypatch):
    text = "a\n" + "".join(f"{1_000_000_000 + i % 10}\n" for i in range(1000))
    monkeypatch.setattr(tables, "STREAM_ABOVE", 10)
    monkeypatch.setattr(tables, "BATCH_BYTES", 1000)
    (feature,) = plan(table(text)).features
    assert_allclose(feature.scale, np.std(np.arange(10)), rtol=1e-9)


@pytest.mark.parametrize("value", ["1e-320", "1e200"])
def test_numbers_out_of_range_are_left_out(table, value):
    rule = plan(table(f"a,b\n{value},1\n0,2\n0,4\n"))
    assert rule.names == ["b"]
    assert "leave the range of numbers" in rule.left_out["a"]


def test_a_rule_survives_a_model_file(table, tmp_path):
    import gnomon

    rule = plan(table(ROWS))
    X = apply(rule, table(ROWS))
    model = gnomon.PPCA(n_components=1).fit(X)
    path = modelfile.save(model, tmp_path / "m", notes={"recipe": rule.to_notes()})
    back = Recipe.from_notes(modelfile.read(path).notes["recipe"])
    assert_array_equal(apply(back, table(ROWS)), X)


def test_an_unknown_level_is_a_gap_and_said(table):
    said = []
    X = apply(plan(table(ROWS)), table("a,kind,when\n1,new,2020-01-01\n"), said.append)
    assert np.isnan(X[0, 1:3]).all()
    assert "'new', not there at the fit" in said[0]


def test_texts_among_numbers_are_told_in_one_note_with_the_option(table):
    notes = []
    rows = "".join(f"{i},{'broken' if i == 3 else i},{'lost' if i == 5 else i}\n" for i in range(9))
    plan(table("a,b,c\n" + rows), report=notes.append)
    (note,) = notes
    assert "'b' has 'broken'; 'c' has 'lost'" in note
    assert "say --na b=broken" in note


def test_texts_that_are_no_numbers_are_no_doubt(table):
    notes = []
    plan(table("a,b\n1a,1\n2b,2\n3,4\n4b,3\n"), report=notes.append)
    assert notes == []


def test_a_missing_column_is_named(table):
    with pytest.raises(TableError, match="no column 'kind', which the model was fitted on"):
        apply(plan(table(ROWS)), table("a,when\n1,2020-01-01\n"))


def test_text_where_numbers_were_is_named(table):
    with pytest.raises(TableError, match=r"column 'a' holds texts as 'lots'.*--na WORD"):
        apply(plan(table(ROWS)), table("a,kind,when\nlots,x,2020-01-01\n"))


CELLS = {
    "number": ["1.5", "2", "7"],
    "date": ["2020-01-01", "2020-02-01", "2020-02-03"],
    "time": ["08:30", "09:45", "23:00"],
}


@pytest.mark.parametrize("fitted", CELLS)
@pytest.mark.parametrize("found", CELLS)
def test_a_column_that_changed_its_kind_is_named(table, fitted, found):
    rule = plan(table("\n".join(["a", *CELLS[fitted]])))
    other = table("\n".join(["a", *CELLS[found]]))
    if found == fitted:
        assert np.isfinite(apply(rule, other)).all()
        return
    with pytest.raises(TableError, match=f"'a' holds {found}s; the model was fitted on {fitted}s"):
        apply(rule, other)


@pytest.mark.parametrize("fitted", CELLS)
def test_a_column_without_values_is_all_gaps_for_every_kind(table, fitted):
    rule = plan(table("\n".join(["a,b", *(f"{cell},1" for cell in CELLS[fitted])])))
    assert np.isnan(apply(rule, table("a,b\n,1\n,2\n"))).all()


def test_infinite_values_are_named(table):
    with pytest.raises(TableError, match="column 'a' has 1 infinite value"):
        plan(table("a,b\n1,2\ninf,3\n"))


def test_a_table_without_a_useful_column_is_refused(table):
    with pytest.raises(TableError, match="no column to fit: 'a' has only one value"):
        plan(table("a\n1\n1\n"))


@pytest.mark.parametrize("dense", [True, False])
def test_matrices_stay_as_they_are_unless_asked(tmp_path, rng, dense):
    X = rng.poisson(1, size=(9, 3)) * np.array([1.0, 10.0, 100.0])
    if dense:
        np.savez(tmp_path / "t.npz", X=X)
    else:
        sparse.save_npz(tmp_path / "t.npz", sparse.csr_array(X))
    data = open_table(tmp_path / "t.npz")
    same = apply(plan(data), data)
    assert_array_equal(same if dense else same.toarray(), X)
    scaled = apply(plan(data, scale="standard"), data)
    assert sparse.issparse(scaled) is not dense
    assert_allclose((scaled if dense else scaled.toarray()).std(axis=0), 1)


def test_a_matrix_with_an_empty_column_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=[[1.0, np.nan], [2.0, np.nan]])
    with pytest.raises(TableError, match="no value in column 'x2'"):
        plan(open_table(tmp_path / "t.npz"))


def test_a_matrix_of_another_width_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)))
    np.savez(tmp_path / "b.npz", X=np.ones((3, 4)))
    with pytest.raises(TableError, match="4 columns; the model was fitted on 2"):
        apply(plan(open_table(tmp_path / "a.npz")), open_table(tmp_path / "b.npz"))


def test_the_most_frequent_level_is_the_reference():
    tally = recipe.Tally("text")
    tally.levels, tally.n = {"b": 5, "a": 3, "c": 2}, 10
    assert tally.feature("k", True).names == ["k=a", "k=c"]


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_constant_column_of_a_matrix_is_not_blown_up(tmp_path, make):
    """The mean of many 0.1 is not 0.1 to the last bit."""
    X = np.column_stack([np.full(1001, 0.1), np.arange(1001.0)])
    if make is np.asarray:
        np.savez(tmp_path / "t.npz", X=X)
    else:
        sparse.save_npz(tmp_path / "t.npz", make(X))
    rule = plan(open_table(tmp_path / "t.npz"), scale="standard")
    assert_allclose(rule.matrix_scale, [1, X[:, 1].std()])


@pytest.mark.parametrize(
    ("others", "codes"),
    [
        ([1, 2, 3, 4, 5] * 4, {9: 2, 99: 3}),
        (list(range(20, 80)), {99: 2}),
        ([0.5, 1.5, 2.5, 7.25], {-99: 2, 999: 2}),
        (list(range(20, 80, 2)), {-1: 2}),
    ],
)
def test_codes_far_from_the_numbers_are_found(others, codes):
    values = [code for code, count in codes.items() for _ in range(count)]
    assert recipe.codes_among(np.array([*values, *others], dtype=float)) == codes


@pytest.mark.parametrize(
    "values",
    [
        list(range(90, 100)) * 2,  # 99 is next to others
        [1, 2, 3, 4, 99],  # once
        [-1, -1, 0, 1, 2, 3],  # a step away
        [-1, 1] * 5,  # two classes
        [0, 50, 98, 99, 99],
        [*np.arange(0, 95, 0.5), 99, 99],  # the end of a range
        [9, 9, 9, 9],
    ],
)
def test_numbers_near_the_others_are_no_codes(values):
    assert recipe.codes_among(np.array(values, dtype=float)) == {}


def test_codes_are_told_in_one_note_and_not_changed(table):
    rows = "".join(f"{99 if i % 9 == 0 else i % 5},{9999 if i > 17 else i}\n" for i in range(20))
    notes = []
    text = table("a,b\n" + rows)
    (feature, _) = plan(text, report=notes.append).features
    (note,) = notes
    assert "'a' has 99 in 3 cells; 'b' has 9999 in 2 cells" in note
    assert "say --na a=99" in note
    assert feature.center > 10


def test_columns_left_out_are_told_once_by_reason():
    many = f"has more than {recipe.MAX_LEVELS} different texts"
    left = {"a": "is empty", "b": many, "c": "is empty"}
    text = recipe.left_out_text(left)
    assert text.startswith(f"left out: 'a', 'c' are empty; 'b' {many}; --id takes")
    assert "--ignore" in text
    assert "--id" not in recipe.left_out_text({"a": "is empty"})


def test_many_alike_columns_with_names_before_them_suggest_to_transpose(table, rng):
    X = rng.normal(rng.normal(8, 2, (60, 1)), 0.5, (60, 12))
    header = "gene," + ",".join(f"s{j}" for j in range(12)) + "\n"
    rows = [f"g{i}," + ",".join(map(str, row)) for i, row in enumerate(X)]
    notes = []
    plan(table(header + "\n".join(rows) + "\n"), report=notes.append)
    assert "--transpose" in notes[0]
    notes = []
    plan(table(header + "\n".join(rows[:50]) + "\n"), report=notes.append)
    assert notes == []
    units = X * 10.0 ** np.arange(12)
    rows = [f"g{i}," + ",".join(map(str, row)) for i, row in enumerate(units)]
    notes = []
    plan(table(header + "\n".join(rows) + "\n"), report=notes.append)
    assert notes == []


def test_a_table_whose_rows_have_other_kinds_suggests_to_transpose(table):
    rows = "".join(f"g{i},{i + 0.5},{i + 0.25}\n" for i in range(60))
    with pytest.raises(TableError, match="if its features are rows, say --transpose"):
        plan(table("gene,s1,s2\ntissue,x,y\n" + rows))


def test_gaps_are_counted_in_cells_of_the_table(table, monkeypatch):
    t = table("a,soil,b\n1,sand,1\n,clay,2\n3,loam,3\n,peat,4\n4,,6\n")
    rule = plan(t)
    X = apply(rule, t)
    assert int(np.isnan(X).sum()) == 5
    assert gap_counts(rule, X) == {"a": 2, "soil": 1}
    assert gap_counts(rule, X[:4]) == {"a": 2}
    many = np.repeat(X, 100, axis=0)
    monkeypatch.setattr(data, "BLOCK_ENTRIES", 7)
    assert gap_counts(rule, many) == {"a": 200, "soil": 100}


def test_a_sparse_matrix_has_no_gaps():
    rule = Recipe([], ["u", "v"], None, None, {}, False)
    assert gap_counts(rule, sparse.csr_array(np.eye(2))) == {}
    assert gap_counts(rule, np.array([[1.0, np.nan]])) == {"v": 1}
