"""The model for what is known of a table, and its number of dimensions."""

import numpy as np
import pytest

pytest.importorskip("pyarrow")
import gnomon
from gnomon.exceptions import TableError
from gnomon.tools import choose_model as module
from gnomon.tools.choose_model import choose_model, extra_inputs
from gnomon.tools.prepare import PreparedTable, Question, fill_gaps
from gnomon.tools.recipe import Recipe

N = 60
CLASSES = np.array(["a", "b", None], dtype=object)[np.arange(N) % 3]
NUMBERS = np.where(np.arange(N) % 3, np.arange(N) % 4 - 1.0, np.nan)
CHUNKS = np.where(np.arange(N) < 20, 0, -1)
LINKS = gnomon.Links.from_edges([(i, i + 1) for i in range(N - 1)])


def ready(y=None, kind=None, chunks=None, links=None, d=4):
    X = np.random.default_rng(0).normal(size=(N, d)) + (np.arange(N) % 3 == 0)[:, None]
    recipe = Recipe([], [f"x{j}" for j in range(d)], np.arange(float(d)), None, {}, False)
    return PreparedTable(X, y, kind, np.arange(N), chunks, links, recipe)


def chosen(table, notes=None, **asked):
    said = [].append if notes is None else notes.append
    return choose_model(Question(**asked), table, said)


@pytest.mark.parametrize(
    ("table", "asked", "expected"),
    [
        (ready(), {}, "PPCA"),
        (ready(CLASSES, "classes"), {"components": 1}, "SPPCA"),
        (ready(links=LINKS), {"components": 1, "links": "e.csv"}, "PRPCA"),
        (ready(CLASSES, "classes", CHUNKS), {"components": 1, "chunks": "c"}, "SPPCA"),
        (ready(NUMBERS, "numeric"), {"model": "bsdr"}, "BSDRRegressor"),
        (ready(CLASSES, "classes"), {"model": "BSDR"}, "BSDR"),
    ],
)
def test_what_is_known_of_the_table_decides(table, asked, expected):
    model, choice = chosen(table, **asked)
    assert type(model).__name__ == expected
    assert choice is None


def test_the_options_become_parameters():
    model, _ = chosen(ready(NUMBERS, "numeric"), components=2, seed=7, supervision=0.25)
    assert (
        model.get_params()
        == gnomon.SPPCA(2, random_state=7, supervision=0.25, target="numeric").get_params()
    )


def test_a_layout_takes_ten_dimensions_where_there_are_so_many():
    notes: list = []
    model, choice = chosen(ready(CLASSES, "classes", d=20), notes, layout="neighbours")
    assert (model.n_components, choice) == (10, None)
    assert "10 dimensions were taken" in notes[0]
    few, _ = chosen(ready(CLASSES, "classes", d=4), layout="neighbours")
    assert few.n_components == 3
    given, _ = chosen(ready(CLASSES, "classes"), layout="neighbours", components=2)
    assert given.n_components == 2


@pytest.mark.parametrize(("y", "kind"), [(CLASSES, "classes"), (NUMBERS, "numeric")])
def test_sizes_are_tried_for_the_kind_of_the_target(y, kind):
    """Few whole numbers, told to be numbers, are scored as such."""
    model, choice = chosen(ready(y, kind))
    assert choice.criterion == {"classes": "accuracy", "numeric": "R2"}[kind]
    assert [row.n_components for row in choice.rows] == [2, 3]
    assert model.n_components == choice.chosen["SPPCA"]


def test_sizes_that_cannot_be_tried_are_guessed_and_said():
    y, notes = np.full(N, None, dtype=object), []
    y[:2] = "a", "b"
    model, choice = chosen(ready(y, "classes"), notes)
    assert (model.n_components, choice) == (2, None)
    assert notes == [
        "2 dimensions were taken, since the number could not be chosen: y has 2 labelled rows; "
        "at least 4 are needed to compare on"
    ]


def test_a_large_table_is_not_tried_on(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 100)
    notes: list[str] = []
    model, _ = chosen(ready(CLASSES, "classes"), notes)
    assert model.n_components == 3
    assert notes[0].startswith("the table is large, so 3 dimensions were taken")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"model": "pca"}, "--model 'pca'; accepted are auto, ppca"),
        ({"model": "dcagm"}, "--model dcagm learns from labels"),
        (
            {"model": "ppca", "links": "e.csv"},
            "--links is for prpca, sppca, kernel-sppca, not for ppca",
        ),
        ({"model": "ppca", "supervision": 0.5}, "--supervision is for sppca and kernel-sppca"),
    ],
)
def test_what_does_not_go_together_is_refused(asked, sentence):
    with pytest.raises(TableError, match=sentence):
        chosen(ready(), **asked)


def test_gaps_are_filled_for_a_model_that_takes_none():
    table, notes = ready(), []
    table.X[3, 2] = np.nan
    assert fill_gaps(gnomon.PPCA(), table.X, table.recipe, notes.append) is table.X
    assert fill_gaps(gnomon.BSDR(), table.X, table.recipe, notes.append) is table.X
    early = gnomon.BSDR(1, random_state=0).fit(np.eye(6), [0, 1] * 3)
    del early.filling_
    filled = fill_gaps(early, table.X, table.recipe, notes.append)
    assert filled[3, 2] == 2.0
    assert notes == ["BSDR takes no gaps; 1 was filled with column means"]


def test_the_fit_gets_what_the_model_takes():
    table = ready(CLASSES, "classes", CHUNKS, LINKS)
    assert extra_inputs(gnomon.PRPCA(relation="paper"), table) == {"links": LINKS}
    assert list(extra_inputs(gnomon.DCAGM(), table)) == ["chunks"]
    assert list(extra_inputs(gnomon.SPPCA(), table)) == ["links", "chunks"]
    assert extra_inputs(gnomon.BSDR(), table) == {}
