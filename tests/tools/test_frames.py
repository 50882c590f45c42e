"""Gaps of data frames filled in their own units and types."""

import datetime
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
from pyarrow import parquet

import gnomon
from gnomon.exceptions import TableError
from gnomon.tools.prepare import Question, prepare, save_fit
from gnomon.tools.tables import open_table

N = 40
Z = np.sin(np.arange(N) * 1.7)
DAY = datetime.datetime(2021, 3, 4)


def values(name):
    """Columns that follow one hidden number, of every type that a table may have."""
    whole = [round(10 + 8 * z) for z in Z]
    return {
        "float": pa.array(5 + 2 * Z),
        "small float": pa.array(5 + 2 * Z, pa.float32()),
        "whole float": pa.array([float(v) for v in whole]),
        "int": pa.array(whole, pa.int64()),
        "uint8": pa.array(whole, pa.uint8()),
        "decimal": pa.array([Decimal(f"{v}.25") for v in whole]),
        "bool": pa.array([bool(z > 0) for z in Z]),
        "text": pa.array(["high" if z > 0 else "low" for z in Z]),
        "category": pa.array(["high" if z > 0 else "low" for z in Z]).dictionary_encode(),
        "date": pa.array([(DAY + datetime.timedelta(days=v)).date() for v in whole]),
        "midnight": pa.array([DAY + datetime.timedelta(days=v) for v in whole], pa.timestamp("ns")),
        "stamp": pa.array(
            [DAY + datetime.timedelta(hours=7.5 * v) for v in whole], pa.timestamp("us", "UTC")
        ),
        "span": pa.array([datetime.timedelta(hours=v) for v in whole], pa.duration("ms")),
        "time": pa.array([datetime.time(v, 30) for v in whole], pa.time64("us")),
    }[name]


TYPES = ["float", "small float", "whole float", "int", "uint8", "decimal", "bool", "text"]
TYPES += ["category", "date", "midnight", "stamp", "span", "time"]
GAPS = np.arange(N) % 9 == 4


def with_gaps(column):
    """The column with a tenth of its cells empty."""
    kind = column.type
    cells = [None if gap else cell for cell, gap in zip(column.to_pylist(), GAPS, strict=True)]
    return pa.array(cells, kind)


@pytest.fixture
def fitted(tmp_path):
    """A model of a table with one column that has gaps, and the table."""

    def fit(column, **more):
        noise = np.cos(np.arange(N)) / 20
        names = [f"r{i}" for i in range(N)]
        table = pa.table({"name": names, "a": Z + noise, "x": column, "b": 3 * Z - noise})
        for name, extra in more.items():
            table = table.append_column(name, extra)
        parquet.write_table(table, tmp_path / "t.parquet")
        asked = Question(id="name", ignore=tuple(more))
        ready = prepare(open_table(tmp_path / "t.parquet"), asked, print)
        model = gnomon.PPCA(1).fit(ready.X)
        path = save_fit(model, tmp_path / "m.gnomon", ready, asked)
        return gnomon.load(path), table

    return fit


@pytest.mark.parametrize("name", TYPES)
def test_pyarrow_tables_keep_the_type_and_what_was_there(fitted, name):
    model, table = fitted(with_gaps(values(name)))
    filled = model.impute(table)
    assert filled.schema == table.schema
    assert filled["x"].null_count == 0
    for other in ("name", "a", "b"):
        assert filled[other].equals(table[other])
    before, after = table["x"].to_pylist(), filled["x"].to_pylist()
    assert [a for a, gap in zip(after, GAPS, strict=True) if not gap] == [
        b for b in before if b is not None
    ]


@pytest.mark.parametrize("name", TYPES)
def test_fillings_are_near_the_truth(fitted, name):
    """Each follows the hidden number, so that a wrong unit would be far off."""
    truth = values(name)
    model, table = fitted(with_gaps(truth))
    filled = model.impute(table)["x"]
    if name in ("text", "category", "bool"):
        assert filled.to_pylist() == truth.to_pylist()
        return
    from gnomon.tools.tables import as_numbers

    found, expected = as_numbers(filled), as_numbers(pa.chunked_array([truth]))
    assert np.abs(found - expected).max() < 0.2 * np.ptp(expected)


@pytest.mark.parametrize("name", TYPES)
def test_pandas_frames_keep_their_types_and_index(fitted, name):
    model, table = fitted(with_gaps(values(name)))
    frame = table.to_pandas()
    frame.index = [f"i{i}" for i in range(N)]
    copy = frame.copy()
    filled = model.impute(frame)
    pd.testing.assert_frame_equal(frame, copy)
    assert filled["x"].notna().all()
    assert filled.index.equals(frame.index)
    pd.testing.assert_frame_equal(filled[["name", "a", "b"]], frame[["name", "a", "b"]])
    if frame["x"].dtype != object:
        assert filled["x"].dtype == frame["x"].dtype
        pd.testing.assert_series_equal(filled["x"][~GAPS], frame["x"][~GAPS])
    else:
        assert filled["x"][~GAPS].tolist() == frame["x"][~GAPS].tolist()


@pytest.mark.parametrize("name", TYPES)
def test_polars_frames_keep_their_types(fitted, name):
    model, table = fitted(with_gaps(values(name)))
    frame = pl.from_arrow(table)
    filled = model.impute(frame)
    assert filled.schema == frame.schema
    assert filled["x"].null_count() == 0
    assert filled.filter(~GAPS).equals(frame.filter(~GAPS))


def test_nullable_types_of_pandas_stay(fitted):
    for name, dtype in (("int", "Int64"), ("bool", "boolean"), ("float", "Float64")):
        model, table = fitted(with_gaps(values(name)))
        frame = table.to_pandas().astype({"x": dtype})
        filled = model.impute(frame)["x"]
        assert filled.dtype == dtype
        assert filled.notna().all()


def test_ordered_categories_stay_and_get_the_level_that_they_lack(fitted):
    model, table = fitted(with_gaps(values("text")))
    order = pd.CategoricalDtype(["low", "high"], ordered=True)
    frame = table.to_pandas().astype({"x": order})
    assert model.impute(frame)["x"].dtype == order
    less = frame.assign(x=frame["x"].where(frame["x"] == "low").cat.remove_categories("high"))
    assert model.impute(less)["x"].cat.categories.tolist() == ["low", "high"]
    enum = pl.from_arrow(table).with_columns(pl.col("x").cast(pl.Enum(["high", "low"])))
    assert model.impute(enum).schema["x"] == pl.Enum(["high", "low"])
    only = enum.with_columns(
        pl.when(pl.col("x") == "low").then(pl.lit("low")).cast(pl.Enum(["low"])).alias("x")
    )
    assert model.impute(only).schema["x"] == pl.Enum(["low", "high"])


def test_texts_of_dates_stay_texts(fitted):
    model, table = fitted(with_gaps(values("date")))
    texts = table.set_column(2, "x", table["x"].cast(pa.string()))
    expected = model.impute(table)["x"].cast(pa.string()).to_pylist()
    assert model.impute(texts)["x"].to_pylist() == expected
    assert model.impute(texts.to_pandas())["x"].tolist() == expected
    assert model.impute(pl.from_arrow(texts))["x"].to_list() == expected


def test_texts_of_stamps_keep_the_time_of_the_day(fitted):
    seconds = pa.array(np.rint(1.6e9 + 1e6 * Z).astype(int)).cast(pa.timestamp("s"))
    model, table = fitted(with_gaps(seconds))
    texts = table.set_column(2, "x", table["x"].cast(pa.string()))
    expected = model.impute(table)["x"].to_pylist()
    filled = model.impute(texts)["x"].to_pylist()
    assert [datetime.datetime.fromisoformat(cell) for cell in filled] == expected


def test_texts_of_whole_numbers_stay_texts(fitted):
    model, table = fitted(with_gaps(values("int")))
    texts = table.set_column(2, "x", table["x"].cast(pa.string()))
    expected = model.impute(table)["x"].cast(pa.string()).to_pylist()
    assert model.impute(texts)["x"].to_pylist() == expected


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_deviations_stand_beside_the_column(fitted, kind, tmp_path):
    model, table = fitted(with_gaps(values("int")), t=with_gaps(values("text")))
    frame = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}
    given = frame.get(kind, lambda: table)()
    filled = model.impute(given, return_std=True)
    names = filled.column_names if kind == "pyarrow" else list(filled.columns)
    assert names == ["name", "a", "x", "x (sd)", "b", "t"]
    sd = np.array(filled["x (sd)"].to_numpy(), dtype=float)
    assert (np.isnan(sd) == ~GAPS).all()
    (feature,) = (f for f in model.recipe.features if f.column == "x")
    X = gnomon.read_table(tmp_path / "t.parquet", model=tmp_path / "m.gnomon").X
    _, deviations = model.model.impute(X, return_std=True)
    assert_allclose(sd[GAPS], deviations[GAPS, 1] * feature.scale)


def test_categories_have_a_share_beside_them(fitted):
    model, table = fitted(with_gaps(values("text")))
    filled = model.impute(table, return_std=True)
    assert filled.column_names == ["name", "a", "x", "x (share)", "b"]
    share = filled["x (share)"].to_pylist()
    assert [value is None for value in share] == (~GAPS).tolist()
    assert all(0 <= value <= 1 for value in share if value is not None)


def test_a_name_that_is_taken_is_refused(fitted):
    model, table = fitted(with_gaps(values("int")))
    table = table.append_column("x (sd)", pa.array(Z))
    with pytest.raises(TableError, match=r"has a column 'x \(sd\)' already; rename it"):
        model.impute(table, return_std=True)
    assert model.impute(table).column_names == table.column_names


@pytest.mark.parametrize("name", ["float", "int", "date"])
def test_fillings_stay_within_what_was_seen_unless_asked(fitted, name):
    truth = values(name)
    model, _ = fitted(truth)
    far = pa.table({"a": [9.0, -9.0], "b": [27.0, -27.0], "x": pa.array([None, None], truth.type)})
    low, high = (f(truth.to_pylist()) for f in (min, max))
    assert model.impute(far)["x"].to_pylist() == [high, low]
    beyond = model.impute(far, within_range=False)["x"].to_pylist()
    assert beyond[0] > high
    assert beyond[1] < low


def test_truth_and_small_integers_never_leave_their_type(fitted):
    far = {"a": [9.0, -9.0], "b": [27.0, -27.0]}
    for name, expected in (("bool", [True, False]), ("uint8", None)):
        model, _ = fitted(values(name))
        table = pa.table(far | {"x": pa.array([None, None], values(name).type)})
        found = model.impute(table, within_range=False)["x"]
        assert found.type == values(name).type
        assert expected is None or found.to_pylist() == expected


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("int", pa.int64()),
        ("float", pa.float64()),
        ("bool", pa.bool_()),
        ("date", pa.date32()),
        ("stamp", pa.timestamp("us")),
        ("text", pa.string()),
    ],
)
def test_a_column_without_a_value_gets_the_type_of_the_fit(fitted, name, kind):
    model, table = fitted(values(name))
    empty = table.set_column(2, "x", pa.nulls(N))
    assert model.impute(empty)["x"].type == kind
    assert model.impute(empty.to_pandas())["x"].notna().all()


def test_a_level_that_the_fit_did_not_know_stays(fitted):
    model, table = fitted(with_gaps(values("text")))
    cells = ["moon", *table["x"].to_pylist()[1:]]
    with pytest.warns(UserWarning, match="'moon', not there at the fit"):
        filled = model.impute(table.set_column(2, "x", pa.array(cells)))
    assert filled["x"].to_pylist()[0] == "moon"


def test_a_path_gives_pandas(fitted, tmp_path):
    model, table = fitted(with_gaps(values("date")))
    filled = model.impute(tmp_path / "t.parquet")
    assert filled["x"].dtype.kind == "M"
    expected = pd.to_datetime(pd.Series(model.impute(table)["x"].to_pylist()))
    assert (filled["x"] == expected).all()


def test_matrices_stay_in_range_and_whole(tmp_path):
    X = np.column_stack([np.rint(9 + 9 * Z), Z, 3 * Z])
    np.savez(tmp_path / "t.npz", X=X)
    ready = prepare(open_table(tmp_path / "t.npz"), Question(scale="standard"), print)
    path = save_fit(gnomon.PPCA(1).fit(ready.X), tmp_path / "m.gnomon", ready, Question())
    model = gnomon.load(path)
    np.savez(tmp_path / "g.npz", X=[[np.nan, 5.0, 15.0], [np.nan, 0.35, 1.0], [1, 0, np.nan]])
    filled = model.impute(tmp_path / "g.npz", return_std=True)
    assert list(filled) == ["x1", "x1 (sd)", "x2", "x3", "x3 (sd)"]
    assert filled["x1"][0] == X[:, 0].max()
    assert filled["x1"][1] == round(filled["x1"][1])
    beyond = model.impute(tmp_path / "g.npz", within_range=False)
    assert beyond["x1"][0] > X[:, 0].max()
    assert_allclose(beyond["x3"][2], filled["x3"][2])
