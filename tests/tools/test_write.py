"""What is written is what the model says, part by part, and safe to open."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("pyarrow")
from pyarrow import csv, parquet

import gnomon
from gnomon.exceptions import TableError
from gnomon.linalg import threads
from gnomon.tools import write
from gnomon.tools.write import (
    embedding_batches,
    latent,
    named_after,
    place,
    prediction_batches,
    write_batches,
)

PARTS = [{"a": [1.5, 2.0], "b": ["x", None]}, {"a": [3.0], "b": ["=1+1"]}]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.tsv"])
def test_parts_become_one_file(tmp_path, name):
    path = write_batches(tmp_path / name, PARTS)
    if name.endswith("parquet"):
        found = parquet.read_table(path).to_pydict()
        assert found["b"] == ["x", None, "=1+1"]
    else:
        separator = "\t" if name.endswith("tsv") else ","
        found = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=separator)).to_pydict()
        assert found["b"] == ["x", "", "'=1+1"]
    assert found["a"] == [1.5, 2, 3]


def test_threads_write_parts_in_their_order(tmp_path, monkeypatch):
    parts = [
        {"row": np.arange(k, k + 3), "z": np.random.default_rng(k).random(3)} for k in range(9)
    ]
    written = []
    for size in (1, 3):
        monkeypatch.setattr(threads, "n_threads", lambda size=size: size)
        written.append(write_batches(tmp_path / f"{size}.csv", iter(parts)).read_bytes())
    assert written[0] == written[1]
    assert csv.read_csv(tmp_path / "3.csv")["row"].to_pylist() == [
        row for part in parts for row in part["row"]
    ]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(TableError, match="accepted are csv and parquet files"):
        write_batches(tmp_path / "t.xlsx", PARTS)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def fitted(rng):
    X = rng.normal(size=(50, 4))
    y = np.array(["a", "b"], dtype=object)[(X[:, 0] > 0).astype(int)]
    return gnomon.SPPCA(2, supervision=0.5).fit(X, y), X


def joined(batches):
    batches = list(batches)
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def test_the_embedding_is_written_in_parts(fitted, monkeypatch):
    model, X = fitted
    monkeypatch.setattr(write, "BATCH_ROWS", 17)
    batches = list(embedding_batches(model, X, np.arange(50), {"y": np.arange(50) * 2}))
    assert [len(batch["row"]) for batch in batches] == [17, 17, 16]
    found = joined(batches)
    assert list(found) == ["row", "z1", "z2", "sd1", "sd2", "y"]
    Z, covariance = latent(model, X)
    assert_allclose(found["z2"], Z[:, 1])
    assert_allclose(found["sd1"] ** 2, covariance[:, 0, 0])
    assert found["y"].tolist() == (found["row"] * 2).tolist()


def test_labels_that_begin_late_fit_into_one_parquet_file(fitted, monkeypatch, tmp_path):
    model, X = fitted
    monkeypatch.setattr(write, "BATCH_ROWS", 17)
    labels = np.array([None] * 40 + ["a"] * 10, dtype=object)
    batches = embedding_batches(model, X, np.arange(50), {"y": labels})
    path = write_batches(tmp_path / "z.parquet", batches)
    assert parquet.read_table(path)["y"].to_pylist() == labels.tolist()


@pytest.mark.parametrize(
    ("table", "result", "folder"),
    [
        ("a/t.csv", "t-filled.csv", "t-map"),
        ("t.v2.PARQUET", "t.v2-filled.parquet", "t.v2-map"),
        ("t.tsv.gz", "t-filled.csv", "t-map"),
        ("t.pq", "t-filled.parquet", "t-map"),
    ],
)
def test_results_are_named_after_the_table(table, result, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(named_after(Path(table), "filled")) == result
    assert str(place(Path(table))) == folder
    assert place(Path(table), "elsewhere") == Path("elsewhere")


def test_predictions_of_some_rows_have_the_probabilities_of_the_classes(fitted, monkeypatch):
    model, X = fitted
    monkeypatch.setattr(write, "BATCH_ROWS", 2)
    rows = np.array([3, 10, 11, 40, 41])
    found = joined(prediction_batches(model, X, np.arange(50), rows))
    assert found["row"].tolist() == rows.tolist()
    assert found["predicted"].tolist() == model.predict(X[rows]).tolist()
    assert_allclose(found["p(b)"], model.predict_proba(X[rows])[:, 1])
    assert_allclose(found["probability"], model.predict_proba(X[rows]).max(axis=1))


def test_predictions_of_numbers_have_standard_deviations(rng):
    X = rng.normal(size=(50, 4))
    model = gnomon.SPPCA(2, supervision=0.5).fit(X, X[:, 0] + 0.1 * rng.normal(size=50))
    found = joined(prediction_batches(model, X, np.arange(50), kind="numeric", names=("y",)))
    mean, std = model.predict(X, return_std=True)
    assert list(found) == ["row", "predicted", "sd"]
    assert_allclose(found["predicted"], mean)
    assert_allclose(found["sd"], std)


def test_several_targets_are_written_under_their_names(rng):
    X = rng.normal(size=(50, 4))
    model = gnomon.SPPCA(2, supervision=0.5).fit(X, (X[:, :2] > 0).astype(int))
    what = {"kind": "multilabel", "names": ("u", "v")}
    found = joined(prediction_batches(model, X, np.arange(50), **what))
    assert list(found) == ["row", "predicted u", "score u", "predicted v", "score v"]
    assert_allclose(found["predicted v"], found["score v"] > 0.5)
