"""A model of the shell in Python: the same table, the same answers."""

import csv
import json
import pickle
import runpy
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("typer")
from pyarrow import parquet

import gnomon
from gnomon.exceptions import TableError
from gnomon.tools import cli, prepare
from gnomon.tools.choose_model import choose_model
from gnomon.tools.tables import open_table


def shell(*words):
    with mock.patch.object(sys, "argv", ["gnomon", *map(str, words), "--quiet"]):
        try:
            cli.main()
        except SystemExit as end:
            assert not end.code


def messy(n=60):
    """Numbers, whole numbers, truth, categories, dates and gaps in all of them."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=n)
    columns = {
        "name": [f"r{i}" for i in range(n)],
        "size": z + rng.normal(size=n) / 5,
        "count": np.rint(9 + 3 * z),
        "wet": pd.array(z > 0, dtype="boolean"),
        "site": pd.Series(np.where(z > 0.4, "hill", "vale"), dtype=object),
        "day": pd.Timestamp("2021-03-04") + pd.to_timedelta(np.rint(20 * z), unit="D"),
        "kind": pd.Series(np.where(z > 0, "x", "y"), dtype=object),
        "price": 3 * z + rng.normal(size=n),
    }
    frame = pd.DataFrame(columns)
    for i, name in enumerate(["size", "count", "wet", "site", "day", "kind", "price"]):
        frame.loc[4 * i : 4 * i + 1, name] = None
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The table in two formats, and models of it."""
    folder = tmp_path_factory.mktemp("fits")
    frame = messy()
    frame.to_csv(folder / "t.csv", index=False)
    frame.astype({"count": "Int64", "site": "category"}).to_parquet(folder / "t.parquet")
    options = ("--id", "name", "-k", "2", "--out")
    shell("fit", folder / "t.csv", "--ignore", "kind", *options, folder / "plain-csv")
    fit(folder, "classes-csv", target="kind")
    fit(folder, "classes-parquet", target="kind")
    fit(folder, "numeric-csv", target="price", ignore=("kind",))
    fit(folder, "several-csv", target=("price", "size"), ignore=("kind",))
    fit(folder, "bsdr-csv", target="kind", model="bsdr")
    return folder


def fit(folder, name, **asked):
    """The file of a fit without its report."""
    table = open_table(folder / f"t.{name.rpartition('-')[2]}")
    asked = prepare.Question(id="name", components=2, **asked)
    ready = prepare.prepare(table, asked, str)
    model = choose_model(asked, ready, str).model
    X = prepare.fill_gaps(model, ready.X, ready.recipe, str)
    (folder / name).mkdir()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "y has no label")
        model.fit(X, ready.y)
    prepare.save_fit(model, folder / name / "model.gnomon", ready, asked)


def load(folder, name):
    return gnomon.load(folder / name / "model.gnomon")


def written(folder, command, name, table):
    """What the shell writes, as columns."""
    out = folder / "out.parquet"
    shell(command, folder / name / "model.gnomon", table, "--out", out)
    return parquet.read_table(out)


MODELS = ["classes-csv", "classes-parquet", "plain-csv", "numeric-csv", "bsdr-csv"]


def forms(folder):
    """The table in every form that a person may have it in."""
    frame = messy()
    return {
        "csv": folder / "t.csv",
        "parquet": str(folder / "t.parquet"),
        "pandas": frame,
        "pandas from csv": pd.read_csv(folder / "t.csv"),
        "pandas nullable": frame.convert_dtypes(),
        "pandas arrow": frame.convert_dtypes(dtype_backend="pyarrow"),
        "pandas categories": frame.astype({"site": "category", "kind": "category"}),
        "pandas turned": frame[frame.columns[::-1]].assign(other=[object()] * len(frame)),
        "polars": pl.from_pandas(frame),
        "polars from csv": pl.read_csv(folder / "t.csv"),
        "polars categories": pl.from_pandas(frame).with_columns(
            pl.col("site").cast(pl.Categorical), pl.col("day").cast(pl.Date)
        ),
        "polars enumeration": pl.from_pandas(frame).with_columns(
            pl.col("site").cast(pl.Enum(["vale", "hill"])), pl.col("day").cast(pl.Datetime("ms"))
        ),
        "pyarrow": pa.Table.from_pandas(frame),
    }


@pytest.mark.filterwarnings("ignore:BSDR takes no gaps")
@pytest.mark.parametrize("name", MODELS)
def test_every_form_of_the_table_gives_what_the_shell_gives(folder, name):
    model = load(folder, name)
    embedding = written(folder, "transform", name, folder / "t.csv").to_pandas()
    expected = embedding[["z1", "z2"]].to_numpy()
    for form, table in forms(folder).items():
        Z = model.transform(table)
        assert type(Z) is np.ndarray
        assert_allclose(Z, expected, rtol=1e-12, atol=1e-12, err_msg=form)


@pytest.mark.filterwarnings("ignore:BSDR takes no gaps")
@pytest.mark.parametrize("name", ["classes-csv", "numeric-csv", "bsdr-csv"])
def test_predictions_are_those_of_the_shell(folder, name):
    model = load(folder, name)
    expected = written(folder, "predict", name, folder / "t.csv").to_pandas()
    for table in forms(folder).values():
        found = model.predict(table)
        if name == "numeric-csv":
            assert_allclose(found, expected["predicted"], rtol=1e-12)
            continue
        assert found.tolist() == expected["predicted"].tolist()
        proba = expected[[f"p({level})" for level in model.classes_]]
        assert_allclose(model.predict_proba(table), proba, rtol=1e-12, atol=1e-12)


def test_deviations_and_names_are_those_of_the_model(folder):
    model = load(folder, "plain-csv")
    embedding = written(folder, "transform", "plain-csv", folder / "t.csv").to_pandas()
    sd = np.sqrt(np.diagonal(model.posterior(messy()).covariance, axis1=1, axis2=2))
    assert_allclose(sd, embedding[["sd1", "sd2"]], rtol=1e-12)
    assert model.get_feature_names_out().tolist() == ["ppca0", "ppca1"]


def test_options_go_to_the_model(folder):
    model = load(folder, "numeric-csv")
    X = gnomon.read_table(folder / "t.csv", model=folder / "numeric-csv" / "model.gnomon").X
    found = model.predict(messy(), return_std=True)
    for part, expected in zip(found, model.model.predict(X, return_std=True), strict=True):
        assert_allclose(part, expected, rtol=1e-12)


def test_several_targets_are_predicted_and_scored(folder):
    model, frame = load(folder, "several-csv"), messy()
    expected = written(folder, "predict", "several-csv", folder / "t.csv").to_pandas()
    assert_allclose(
        model.predict(frame), expected[["predicted price", "predicted size"]], rtol=1e-12
    )
    assert repr(model).startswith("TableModel(SPPCA for 'price', 'size', of the columns 'count'")
    assert model.score(frame) == model.score(folder / "t.csv") <= 1


def test_it_has_what_its_model_has(folder):
    plain, classes = load(folder, "plain-csv"), load(folder, "classes-csv")
    numeric, bsdr = load(folder, "numeric-csv"), load(folder, "bsdr-csv")
    assert not hasattr(plain, "predict")
    assert not hasattr(plain, "predict_proba")
    assert not hasattr(plain, "classes_")
    assert hasattr(classes, "predict_proba")
    assert hasattr(numeric, "predict")
    assert not hasattr(bsdr, "impute")


@pytest.mark.filterwarnings("ignore:BSDR takes no gaps")
def test_the_score_is_that_of_the_target_in_the_table(folder):
    frame, model = messy(), load(folder, "bsdr-csv")
    known = frame["kind"].notna()
    right = model.predict(frame)[known] == frame["kind"][known]
    assert_allclose(model.score(frame), right.mean())
    assert_allclose(model.score(folder / "t.csv"), right.mean())
    with pytest.raises(TableError, match="the table has no target 'kind' to score by"):
        model.score(frame.drop(columns="kind"))
    plain = load(folder, "plain-csv")
    X = gnomon.read_table(folder / "t.csv", model=folder / "plain-csv" / "model.gnomon").X
    assert plain.score(frame) == plain.model.score(X)


@pytest.mark.parametrize(
    "words, values",
    [
        (("0.50", "1.50"), (0.5, 1.5)),
        (("1e3", "2e3"), (1000, 2000)),
        (("TRUE", "FALSE"), (True, False)),
        (("2021-01-01", "2021-01-02"), pd.to_datetime(["2021-01-01", "2021-01-02"])),
    ],
)
def test_labels_are_classes_by_their_values(tmp_path, rng, words, values):
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    side = (frame["a"] > 0).astype(int)
    path = tmp_path / "t.csv"
    frame.assign(y=np.array(words)[side]).to_csv(path, index=False)
    shell("fit", path, "-t", "y", "--task", "classes", "-k", "2", "--out", tmp_path / "o")
    model = gnomon.load(tmp_path / "o" / "model.gnomon")
    frame["y"] = np.array(values)[side]
    frame.to_parquet(tmp_path / "t.parquet")
    assert model.score(path) > 0.8
    assert model.score(frame) == model.score(tmp_path / "t.parquet") == model.score(path)


def test_a_score_needs_a_label_that_is_a_class(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame["y"] = np.where(frame["a"] > 0, "01", "02")
    frame.to_csv(tmp_path / "t.csv", index=False)
    shell("fit", tmp_path / "t.csv", "-t", "y", "-k", "2", "--out", tmp_path / "o")
    model = gnomon.load(tmp_path / "o" / "model.gnomon")
    numbers = frame.assign(y=frame["y"].astype(int))
    said = (
        r"'y' of the table: none of the labels \('1', '2'\) is a class of the model \('01', '02'\)"
    )
    with pytest.raises(TableError, match=said):
        model.score(numbers)
    some = frame.assign(y=frame["y"].where(frame.index > 0, "3"))
    assert 0.8 < model.score(some) < 1


def test_gaps_that_a_model_does_not_take_are_filled_and_warned_of(folder):
    model = load(folder, "bsdr-csv")
    model.transform(messy())
    # As those of early files, which have not learnt to fill gaps.
    model.model.filling_ = None
    with pytest.warns(
        UserWarning, match="BSDR takes no gaps; .* filled with column means"
    ) as caught:
        model.transform(messy())
    assert caught[0].filename == __file__


def test_a_level_that_was_not_there_is_warned_of(folder):
    frame = messy()
    frame.loc[20, "site"] = "moon"
    with pytest.warns(UserWarning, match="has 'moon', not there at the fit; read as a gap"):
        load(folder, "plain-csv").transform(frame)


def test_it_says_what_it_is(folder):
    assert repr(load(folder, "classes-csv")) == (
        "TableModel(SPPCA for 'kind', of the columns "
        "'size', 'count', 'wet', 'site', 'day', 'price')"
    )
    model = load(folder, "plain-csv")
    assert type(model.model) is gnomon.PPCA
    assert model.question.id == "name"
    assert model.recipe.features[0].column == "size"


def test_it_survives_pickles_and_files(folder, tmp_path):
    model, table = load(folder, "classes-csv"), messy()
    expected = model.transform(table)
    assert (pickle.loads(pickle.dumps(model)).transform(table) == expected).all()
    path = gnomon.save(model, tmp_path / "again.gnomon")
    assert path.read_bytes() == (folder / "classes-csv" / "model.gnomon").read_bytes()
    more = gnomon.load(gnomon.save(model, path, notes={"seen": "today"}))
    assert more.notes["seen"] == "today"
    assert (more.transform(table) == expected).all()


@pytest.mark.parametrize(
    "table",
    [np.ones((3, 6)), sparse.eye_array(6).tocsr(), [[1.0] * 6], pl.LazyFrame({"size": [1]}), 3],
    ids=lambda table: type(table).__name__,
)
def test_what_is_no_table_is_refused_with_the_way_out(folder, table):
    model = load(folder, "plain-csv")
    with pytest.raises(TableError, match=r"take \.model, which takes gnomon\.read_table") as error:
        model.transform(table)
    if isinstance(table, np.ndarray):
        assert "not an array of shape (3, 6)" in str(error.value)


def test_a_missing_column_is_named(folder):
    model = load(folder, "plain-csv")
    for table in (messy(), pl.from_pandas(messy()), pa.Table.from_pandas(messy())):
        names = (
            [name for name in table if name != "wet"] if isinstance(table, pd.DataFrame) else None
        )
        less = table[names] if names else table.drop(["wet"])
        with pytest.raises(TableError, match="the table has no column 'wet', which the model"):
            model.transform(less)


def test_texts_where_numbers_were_are_named(folder):
    frame = messy().assign(size="tall")
    with pytest.raises(TableError, match=r"column 'size' holds .* the model was fitted on numbers"):
        load(folder, "plain-csv").transform(frame)


def test_columns_that_cannot_be_read_are_named(folder):
    model = load(folder, "plain-csv")
    with pytest.raises(TableError, match="column 'size' of the table cannot be read"):
        model.transform(messy().assign(size=[object()] * 60))
    twice = pd.concat([messy(), messy()[["size"]]], axis=1)
    with pytest.raises(TableError, match="column 'size' of the table cannot be read"):
        model.transform(twice)
    with pytest.raises(TableError, match="the table has no rows"):
        model.transform(messy().iloc[:0])


@pytest.mark.parametrize(
    "form", ["{:02}:15", "2021-03-{:02}T10:00Z", "2021-03-{:02} 10:00:00.500", "{:02}.03.2021"]
)
def test_texts_of_times_in_a_frame_are_read_as_in_a_file(tmp_path, form):
    frame = pd.DataFrame({"a": np.arange(12.0) ** 2})
    frame["when"] = [None if i == 3 else form.format(1 + i) for i in range(12)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    shell("fit", tmp_path / "t.csv", "-k", "1", "--out", tmp_path)
    model = gnomon.load(tmp_path / "model.gnomon")
    assert [feature.kind for feature in model.recipe.features] == ["number", "date"]
    for table in (frame, pl.from_pandas(frame)):
        assert_allclose(model.transform(table), model.transform(tmp_path / "t.csv"))
    with pytest.raises(TableError, match="column 'when' holds texts as 'soon'"):
        model.transform(frame.assign(when="soon"))


def test_a_model_of_a_table_with_an_index_takes_tables_with_and_without_it(tmp_path):
    frame = messy()[["size", "price", "kind"]].fillna({"size": 0.5, "price": 1.5})
    frame = frame.sample(frac=0.9, random_state=0)
    frame.to_csv(tmp_path / "index.csv")
    frame.to_parquet(tmp_path / "index.parquet")
    frame.to_csv(tmp_path / "plain.csv", index=False)
    for suffix, name in (("csv", "column 1"), ("parquet", "__index_level_0__")):
        out = tmp_path / suffix
        shell("fit", tmp_path / f"index.{suffix}", "-t", "kind", "-k", "2", "--out", out)
        model = gnomon.load(out / "model.gnomon")
        assert model.question.id == name
        wanted = model.transform(tmp_path / f"index.{suffix}")
        plain = pd.read_csv(tmp_path / "plain.csv")
        for table in (tmp_path / "plain.csv", plain, frame, pd.read_csv(tmp_path / "index.csv")):
            assert_allclose(model.transform(table), wanted)
            assert model.score(table) > 0.5
        shell("predict", out / "model.gnomon", tmp_path / "plain.csv", "--out", out / "p.csv")
        shell("report", out / "model.gnomon", tmp_path / "plain.csv", "--out", out / "r.html")


def test_numbered_columns_and_blanks_around_names_are_found(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    pd.DataFrame(X).to_csv(tmp_path / "t.csv", index=False)
    shell("fit", tmp_path / "t.csv", "-k", "1", "--out", tmp_path / "o")
    model = load(tmp_path, "o")
    expected = model.transform(tmp_path / "t.csv")
    assert_allclose(model.transform(pd.DataFrame(X)), expected, rtol=1e-12)
    named = pd.DataFrame(X, columns=[" 0", "1 ", "2"])
    assert_allclose(model.transform(named), expected, rtol=1e-12)


@pytest.mark.parametrize("scale", ["none", "standard"])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_matrices_are_taken_by_their_path_or_their_names(tmp_path, scale, is_sparse):
    X = np.random.default_rng(0).poisson(1.0, size=(40, 5)) * np.arange(1.0, 6.0)
    path = tmp_path / "t.npz"
    if is_sparse:
        sparse.save_npz(path, sparse.csr_array(X))
    else:
        np.savez(path, X=X)
    shell("fit", path, "-k", "2", "--scale", scale, "--out", tmp_path / "o")
    model = load(tmp_path, "o")
    found = written(tmp_path, "transform", "o", path).to_pandas()[["z1", "z2"]]
    assert_allclose(model.transform(path), found, rtol=1e-12, atol=1e-12)
    if not is_sparse:
        frame = pd.DataFrame(X, columns=[f"x{j + 1}" for j in range(5)])
        assert_allclose(model.transform(frame), found, rtol=1e-12, atol=1e-12)
        with pytest.raises(TableError, match="has no column 'x3'"):
            model.transform(frame.drop(columns="x3"))


GERMAN = "maß;menge;tag;ort\n" + "".join(
    f"{f'{z:.3f}'.replace('.', ',') if i % 9 else 'n.d.'};"
    f"{99 if i % 11 == 5 else round(9 + 4 * z)};{15 + i % 14:02d}.03.2021;{'ab'[z > 0]}\n"
    for i, z in enumerate(np.sin(np.arange(50) * 1.3).tolist())
)


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A model of a table with decimal commas, words, codes and dates with the day first."""
    folder = tmp_path_factory.mktemp("german")
    (folder / "t.csv").write_text(GERMAN, encoding="latin-1")
    options = ("--encoding", "latin-1", "--na", "menge=99", "-k", "1", "--out", folder / "o")
    shell("fit", folder / "t.csv", *options)
    return folder


@pytest.mark.parametrize("form", ["path", "pandas", "polars", "pyarrow"])
def test_tables_are_read_as_that_of_the_fit_was(german, form):
    """Also a frame with the same texts in it: commas, words and codes mean what they meant."""
    model = load(german, "o")
    assert [f.kind for f in model.recipe.features] == ["number", "number", "date", "category"]
    frame = pd.read_csv(german / "t.csv", sep=";", encoding="latin-1", dtype={"menge": int})
    forms = {"path": german / "t.csv", "pandas": frame, "polars": pl.from_pandas(frame)}
    table = (forms | {"pyarrow": pa.Table.from_pandas(frame)})[form]
    expected = written(german, "transform", "o", german / "t.csv").to_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Z, filled = model.transform(table), model.impute(table)
    assert_allclose(Z[:, 0], expected["z1"], rtol=1e-12, atol=1e-12)
    amounts = [int(value) for value in filled["menge"]] if form == "pandas" else None
    assert amounts is None or max(amounts) <= 13
    if form == "pandas":
        assert filled["maß"].dtype == float
        assert filled["tag"].dtype == frame["tag"].dtype
        assert filled["menge"].dtype == int


GOLDEN = Path(__file__).parent / "golden"
FITS = sorted((GOLDEN / "fits").glob("*.gnomon"))


@pytest.mark.filterwarnings("ignore:BSDR takes no gaps")
@pytest.mark.parametrize("path", FITS, ids=lambda path: path.stem)
def test_files_of_earlier_fits_take_their_tables(path):
    """What the shell of an earlier release wrote, and what it answered then."""
    table, *_ = runpy.run_path(str(GOLDEN / "make_fits.py"))["ASKED"][path.stem.rpartition("-")[0]]
    model = gnomon.load(path)
    answers = json.loads(path.with_suffix(".json").read_text())
    Z = model.transform(path.with_name(table))
    expected = [answers["transform"][f"z{j + 1}"] for j in range(Z.shape[1])]
    assert_allclose(Z, np.array(expected, dtype=float).T, rtol=1e-9, atol=1e-12)
    if "predict" in answers:
        texts = np.array(answers["predict"]["predicted"])
        found = model.predict(path.with_name(table))
        same = found.astype(str) == texts if found.dtype == object else None
        assert same.all() if same is not None else np.allclose(found, texts.astype(float))


def test_early_files_fill_gaps_without_a_range():
    """They do not know what was seen, but the columns of the table have their types."""
    folder = GOLDEN / "fits"
    model = gnomon.load(folder / "flowers-plain-format2.gnomon")
    filled = model.impute(folder / "flowers.csv")
    with (folder / "flowers.csv").open(newline="") as file:
        assert list(filled) == next(csv.reader(file))
    assert filled.drop(columns="kind").notna().all(axis=None)
    assert filled["wet"].dtype == bool
    assert filled["count"].dtype == int
    assert (filled["day"].dt.normalize() == filled["day"]).all()
    matrix = gnomon.load(folder / "matrix-classes-format2.gnomon")
    assert matrix.impute(folder / "matrix.npz").notna().all(axis=None)
