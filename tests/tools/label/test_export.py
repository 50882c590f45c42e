"""What a session leaves: a table with labels, times and origins; a model; a report."""

import csv
import json

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
pytest.importorskip("safetensors")
import gnomon
from gnomon.exceptions import TableError
from gnomon.tools.label.export import export
from gnomon.tools.label.rows import from_arrays
from gnomon.tools.label.run import open_session


@pytest.fixture
def session(write_table, open_rows, tmp_path):
    path, truth = write_table(tmp_path)
    opened = open_session(open_rows(path), tmp_path / "out")
    for row in range(20, 40):
        origin = "suggestion" if row % 2 else "person"
        opened.act({"do": "label", "rows": [row], "name": str(truth[row]), "origin": origin})
    opened.act({"do": "label", "rows": [41], "name": "cow"})
    opened.act({"do": "undo"})
    opened.act({"do": "together", "rows": [50, 53]})
    known = opened.record
    opened.state = opened.learner.update(known.labels, known.chunks)
    yield opened
    opened.close()


@pytest.fixture
def written(session):
    return {path.name: path for path in export(session)}


def test_the_labels_stand_beside_the_columns_of_the_table(written, session):
    with written["labels.csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        *("name", "u", "v", "w", "kind", "kind: time", "kind: origin", "kind: together")
    ]
    assert len(rows) == 90
    assert (rows[0]["kind"], rows[0]["kind: origin"], rows[0]["kind: time"]) == ("ant", "table", "")
    assert (rows[21]["kind"], rows[21]["kind: origin"]) == ("ant", "suggestion")
    assert (rows[22]["kind"], rows[22]["kind: origin"]) == ("bee", "person")
    assert rows[22]["kind: time"].startswith("20")
    assert (rows[41]["kind"], rows[41]["kind: origin"]) == ("", "")
    assert rows[50]["kind: together"] == rows[53]["kind: together"] != ""


def test_the_columns_of_the_table_stay_to_the_letter(written, tmp_path):
    cells = []
    for path in (tmp_path / "table.csv", written["labels.csv"]):
        with path.open(newline="") as file:
            cells.append(
                [[row[n] for n in ("name", "u", "v", "w")] for row in csv.DictReader(file)]
            )
    assert cells[0] == cells[1]


def test_the_model_predicts_names_and_takes_the_table(written, session, tmp_path):
    model = gnomon.load(written["model.gnomon"])
    assert set(model.classes_) == {"ant", "bee", "cow"}
    truth = np.array(["ant", "bee", "cow"])[np.arange(90) % 3]
    assert np.mean(model.predict(tmp_path / "table.csv") == truth) > 0.8


def test_the_report_is_of_this_model_and_its_code_runs(written):
    text = written["report.html"].read_text(encoding="utf-8")
    payload = text.partition('id="payload">')[2].partition("</script>")[0]
    values = json.loads(payload)
    assert values["n"] == 90
    assert values["columns"][0]["levels"] == ["ant", "bee", "cow"]
    assert "gnomon.load(" in text


def test_without_a_label_there_is_nothing_to_write(tmp_path, rng):
    session = open_session(from_arrays(rng.normal(size=(20, 3))), tmp_path / "out")
    with pytest.raises(TableError, match="no label yet"):
        export(session)
    session.close()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_of_a_matrix_leave_their_names_and_labels(tmp_path, rng, kind):
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 5)) + 3 * y[:, None]
    rows = from_arrays(kind(X), np.where(np.arange(40) < 12, y, -1), ids=[f"r{i}" for i in y])
    session = open_session(rows, tmp_path / "out")
    labels, model, report = export(session)
    session.close()
    with labels.open(newline="") as file:
        first = next(csv.DictReader(file))
    assert first == {"row": "r0", "label": "0", "label: time": "", "label: origin": "table"}
    found = gnomon.load(model).model
    assert np.mean(found.predict(kind(X)).astype(int) == y) > 0.8
    assert "model.transform(X)" in report.read_text(encoding="utf-8")


def test_one_class_alone_is_a_map_of_the_rows(tmp_path, rng):
    rows = from_arrays(rng.normal(size=(20, 3)), ["a", "a", *[None] * 18])
    session = open_session(rows, tmp_path / "out")
    files = export(session)
    session.close()
    assert [path.name for path in files] == ["labels.csv", "model.gnomon", "report.html"]


@pytest.mark.filterwarnings("ignore:DCAGM takes no gaps")
@pytest.mark.filterwarnings("ignore:BSDR found the null solution")  # of the first three labels
@pytest.mark.parametrize("model", ["DCAGM", "KernelSPPCA", "BSDR"])
def test_another_model_is_written_as_well(write_table, open_rows, tmp_path, model):
    path, truth = write_table(tmp_path)
    session = open_session(open_rows(path), tmp_path / "out", model=model)
    for row in range(20, 40):
        session.act({"do": "label", "rows": [row], "name": str(truth[row])})
    session.act({"do": "together", "rows": [50, 53]})
    session.state = session.learner.update(session.record.labels, session.record.chunks)
    file = export(session)[1]
    session.close()
    found = gnomon.load(file)
    assert type(found.model).__name__ == model
    assert np.mean(found.predict(path) == truth) > 0.8
