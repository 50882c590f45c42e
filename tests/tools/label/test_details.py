"""What the card of a row says: values beside what is usual, neighbours, images."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

pytest.importorskip("pyarrow")
from gnomon.tools.label.details import details, typical
from gnomon.tools.label.run import open_session


def test_what_is_typical_is_the_weighted_mean_of_what_is_known(rng):
    X, P = rng.normal(size=(30, 4)), rng.dirichlet([1, 1, 1], 30)
    X[rng.random(X.shape) < 0.2] = np.nan
    found = typical(X, P)
    for c in range(3):
        for j in range(4):
            known = ~np.isnan(X[:, j])
            mean = np.average(X[known, j], weights=P[known, c])
            variance = np.average((X[known, j] - mean) ** 2, weights=P[known, c])
            assert_allclose(found.mean[c, j], mean, rtol=1e-10)
            assert_allclose(found.sd[c, j], np.sqrt(variance), rtol=1e-8)


def test_a_sparse_matrix_has_the_same(rng):
    X, P = rng.poisson(0.4, size=(30, 5)).astype(float), rng.dirichlet([1, 1], 30)
    for dense, other in zip(typical(X, P), typical(sparse.csr_array(X), P), strict=True):
        assert_allclose(dense, other, atol=1e-12)


@pytest.fixture
def session(write_table, open_rows, tmp_path):
    n = 90
    site = [["north", "south"][i % 2] for i in range(n)]
    text = [f"about row {i}" for i in range(n)]
    path, _ = write_table(tmp_path, site=site, note=text)
    opened = open_session(open_rows(path, text="note"), tmp_path / "out")
    yield opened
    opened.close()


def card(session, row, P=None):
    state = session.state
    found = typical(session.rows.X, state.probabilities if P is None else P)
    return details(session.rows, state, session.record.labels, row, found)


def test_values_are_in_the_units_of_the_table(session, tmp_path):
    lines = (tmp_path / "table.csv").read_text().splitlines()
    row = lines[1 + 7].split(",")
    columns = {column["name"]: column for column in card(session, 7)["columns"]}
    assert_allclose(columns["v"]["value"], float(row[4]), atol=1e-6)
    assert columns["site"]["value"] == row[1].strip('"')


def test_the_text_of_a_row_is_on_its_card_and_no_column_of_the_model(session):
    found = card(session, 7)
    assert found["text"] == "about row 7"
    assert "note" not in {column["name"] for column in found["columns"]}


def test_columns_that_tell_the_likely_classes_apart_come_first(session):
    truth = np.eye(3)[np.arange(90) % 3]
    state = session.state._replace(probabilities=truth * 0.9 + 0.1 / 3)
    found = details(session.rows, state, session.record.labels, 10, typical(session.rows.X, truth))
    # Row 10 is of the second kind, which is high in v where the others are not.
    assert found["classes"][0] == 1
    assert found["columns"][0]["name"] in ("u", "v")
    usual = next(c for c in found["columns"] if c["name"] == "v")["usual"]
    assert usual[0][0] > usual[1][0] + 2


def test_the_nearest_labelled_rows_are_those_of_the_map(session):
    Z, known = session.state.coordinates, np.flatnonzero(session.record.labels >= 0)
    away = np.linalg.norm(Z[known] - Z[50], axis=1)
    nearest = [item["row"] for item in card(session, 50)["nearest"]]
    assert nearest == known[np.argsort(away)].tolist()


@pytest.fixture
def with_images(write_table, open_rows, tmp_path):
    folder = tmp_path / "tables"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / "note.txt").write_text("no image")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "inner.png").symlink_to(folder / "inside" / "a.png")
    (folder / "out").symlink_to(tmp_path)
    names = ["inside/a.png", "../secret.png", "link.png", "inner.png", "out/secret.png"]
    names += [str(tmp_path / "secret.png"), "note.txt", "none.png", "inside", "a\x00b.png", ""]
    names += ["inside/../../secret.png", "file:///etc/passwd", "https://example.org/a.png"]
    path, _ = write_table(folder, photo=[*names, *["none.png"] * (90 - len(names))])
    return open_rows(path, image="photo"), names


def test_images_come_from_their_folder_alone_after_links_are_followed(with_images):
    rows, names = with_images
    served = {name for i, name in enumerate(names) if rows.image(i) is not None}
    assert served == {"inside/a.png", "inner.png"}
    assert rows.image(0).name == "a.png"


def test_another_folder_for_images_can_be_named(with_images, open_rows, tmp_path):
    path = tmp_path / "tables" / "table.csv"
    rows = open_rows(path, image="photo", image_folder=tmp_path / "tables" / "inside")
    assert [i for i in range(90) if rows.image(i)] == []
    assert os.path.samefile(rows.image_folder, tmp_path / "tables" / "inside")
