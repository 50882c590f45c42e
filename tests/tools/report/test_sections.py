"""What the sections of a report say of the fit."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
from gnomon.tools.compare.held_out import Score
from gnomon.tools.compare.standing import Row
from gnomon.tools.dimension import DimensionChoice, DimensionRow
from gnomon.tools.report import page, sections


def lengths(chart):
    return [float(width) for width in re.findall(r'<rect[^>]*width="([\d.]+)"', chart)]


def centres(chart, axis):
    return [float(value) for value in re.findall(rf'<circle[^>]*c{axis}="([\d.]+)"', chart)]


@pytest.mark.parametrize(
    "control, guess, said",
    [
        (0.3, 0.4, "what it sees in the labels is there."),
        (0.85, 0.4, "do not read the labels off this picture"),
        (0.3, 0.85, "A constant guess reaches 0.850: this is not better than guessing."),
    ],
)
def test_the_verdict_is_that_of_the_control_and_of_the_guess(control, guess, said):
    subject = SimpleNamespace(
        model=None, score=Score("accuracy", 0.9, 0.8, 0.95, 45, control, guess)
    )
    section = sections.score(subject)
    assert "the 95 % interval is 0.800 to 0.950 (45 rows)" in section["sentence"]
    assert said in section["sentence"]
    assert section["method"].startswith("Cross-validation over the labelled rows")


def test_the_section_says_where_the_model_finds_nothing():
    found = Score("accuracy", 0.9, 0.8, 0.95, 45, 0.3, 0.4)
    for doubt, said in [(0.99, True), (0.01, False)]:
        model = SimpleNamespace(class_doubt_=doubt)
        sentence = sections.score(SimpleNamespace(model=model, score=found))["sentence"]
        assert ("nearly these shares" in sentence) is said


def test_the_picture_has_a_figure_of_its_own():
    near = Score("accuracy", 0.6, 0.5, 0.7, 45, 0.2, 0.4, of="nearest labelled rows on the map")
    found = Score("accuracy", 0.9, 0.8, 0.95, 45, 0.3, 0.4, more=(near,))
    section = sections.score(SimpleNamespace(model=None, score=found))
    assert "The model's prediction: on rows not seen the accuracy is 0.900" in section["sentence"]
    assert "Nearest labelled rows on the map: on rows not seen the accuracy" in section["sentence"]
    assert section["chart"].count("whisker") == 2


def test_numbers_are_given_in_their_units_output_by_output():
    fat = Score("R²", 0.7, 0.6, 0.8, 45, 0.0, -0.01, of="fat", rmse=(1.25, 1.0, 1.5))
    section = sections.score(SimpleNamespace(model=None, score=fat))
    assert "root mean squared error is 1.25 (1 to 1.5)" in section["sentence"]
    both = Score("R²", 0.5, 0.4, 0.6, 45, 0.0, -0.01, parts=(fat, fat._replace(of="ash")))
    chart = sections.score(SimpleNamespace(model=None, score=both))["chart"]
    assert "fat" in chart
    assert "ash" in chart


def test_a_likelihood_has_no_control():
    subject = SimpleNamespace(
        model=None, score=Score("log likelihood per row", -3.0, -3.5, -2.5, 45)
    )
    section = sections.score(subject)
    assert "permuted" not in section["sentence"]
    assert section["method"] == "Cross-validation."
    assert sections.score(SimpleNamespace(model=None, score=None)) is None


def test_labels_are_counted_with_the_predicted_ones_beside_them(make_subject):
    subject = make_subject()
    card = sections.labels(subject)
    given = subject.ready.y[subject.labelled]
    names, counts = np.unique(given.astype(str), return_counts=True)
    assert card.text.startswith(f"{len(given)} of 90 rows have a label; lighter:")
    extra = [int((subject.predicted[~subject.labelled] == name).sum()) for name in names]
    for count, more in zip(counts, extra, strict=True):
        assert f"{count} + {more}" in card.charts[0]


def test_nothing_is_said_of_rows_without_a_label_where_all_have_one(make_subject):
    subject = make_subject()
    subject.ready = subject.ready._replace(y=np.array(["a", "b", "c"] * 30, dtype=object))
    subject.__dict__.pop("labelled", None)
    card = sections.labels(subject)
    assert card.text == "90 of 90 rows have a label."
    assert "pale" not in card.charts[0]


def test_rows_that_stand_for_most_rows_in_doubt_are_worth_a_label(make_subject):
    subject = make_subject()
    card = sections.next_labels(subject)
    assert min(float(row.cells[-2]) for row in card.rows) >= 0.01
    assert all(row.cells[-1].startswith("stands for") for row in card.rows)
    assert not subject.labelled[[row.at for row in card.rows]].any()


def test_rows_without_any_value_are_not_worth_a_label(make_subject):
    subject = make_subject()
    first = sections.next_labels(subject).rows[0].at
    X = subject.ready.X.copy()
    X[first] = np.nan
    subject.ready = subject.ready._replace(X=X)
    assert first not in [row.at for row in sections.next_labels(subject).rows]


def test_where_nothing_is_uncertain_no_row_is_worth_a_label(make_subject):
    subject = make_subject()
    subject.proba = np.eye(3)[np.arange(90) % 3]
    card = sections.next_labels(subject)
    assert card.rows == ()
    assert card.text.startswith("The model is sure of every row without a label")


@pytest.mark.one_sample("in other samples the model may doubt a label that is right")
def test_doubtful_labels_are_those_that_the_model_would_change(make_subject):
    subject = make_subject()
    assert sections.doubtful(subject) is None
    first, second = np.flatnonzero(subject.labelled)[:2]
    y = subject.ready.y.copy()
    y[[first, second]] = ["b" if y[i] == "a" else "a" for i in (first, second)]
    subject.ready = subject.ready._replace(y=y)
    found = {row.at: row.cells for row in sections.doubtful(subject).rows}
    assert found.keys() == {first, second}
    for i, (given, likely, _) in found.items():
        assert given == y[i]
        assert likely.startswith(f"{subject.predicted[i]} (")


def compared(model, q, score, chosen, **more):
    known = {"n_rows": 50, "n_splits": 5, "control": 0.3, "seconds": 1.0} | more
    return Row(model, q, score, score - 0.1, score + 0.1, chosen=chosen, **known)


def test_the_whole_comparison_is_shown_the_chosen_first():
    rows = [
        compared("SPPCA", 2, 0.8, False),
        compared("SPPCA", 5, 0.9, True, mark="best", own=0.95),
        compared("PCA", 2, 0.6, True),
        compared("PCA", 5, 0.5, False, control=np.nan),
    ]
    result = SimpleNamespace(rows=rows, measure="accuracy", evaluator="nearest")
    result.recommendation = "Take SPPCA."
    card = sections.comparison(result)
    assert card.text == "Take SPPCA."
    found = [(row.name, row.cells[0], row.cells[1]) for row in card.rows]
    expected = [("SPPCA", "5", "0.900"), ("PCA", "2", "0.600")]
    expected += [("SPPCA", "2", "0.800"), ("PCA", "5", "0.500")]
    assert found == expected
    assert card.rows[0].cells[2:5] == ("0.800 to 1.000", "0.950", "0.300")
    assert card.rows[3].cells[3:5] == ("", "")
    assert sections.comparison(None) is None


def test_loadings_are_those_of_the_model_with_their_deviations(make_subject):
    subject = make_subject()
    components = subject.model.components_
    card = sections.loadings(subject)
    assert len(card.charts) == 2
    for chart, row in zip(card.charts, components, strict=True):
        order = np.argsort(-np.abs(row))
        names = [subject.ready.recipe.names[j] for j in order]
        drawn = re.findall(r"<title>(\w+): ([-\d.]+)</title>", chart)
        assert [name for name, _ in drawn] == names
        assert_allclose([float(v) for _, v in drawn], row[order], rtol=0.01)
        assert 'class="ink"' not in chart
    subject.model.loadings_sd_ = np.full(components.shape, 0.25)
    card = sections.loadings(subject)
    assert card.charts[0].count('class="ink"') == 3
    assert "95 % intervals" in card.hint
    del subject.model.loadings_sd_


def test_loadings_along_a_scale_are_lines(rng):
    names = [f"wl_{n}" for n in range(400, 500, 5)]
    model = SimpleNamespace(components_=rng.normal(size=(3, 20)))
    ready = SimpleNamespace(recipe=SimpleNamespace(names=names))
    card = sections.loadings(SimpleNamespace(model=model, ready=ready))
    assert len(card.charts) == 3
    assert "along their scale" in card.hint
    assert all(">wl<" in chart and "<rect" not in chart for chart in card.charts)


def test_axes_carry_a_share_of_features_and_target():
    model = SimpleNamespace(input_share_=[0.5, 0.25], target_share_=[0.1, 0.8])
    card = sections._relevance(SimpleNamespace(model=model))
    (chart,) = card.charts
    assert_allclose(np.array(lengths(chart)) / 300 * 0.8, [0.5, 0.1, 0.25, 0.8], atol=0.01)
    assert "z2, target" in chart
    bsdr = SimpleNamespace(model=SimpleNamespace(relevance_=np.array([3.0, 1.0])))
    assert "Relevance of each axis" in sections._relevance(bsdr).hint


@pytest.mark.parametrize("criterion, highest", [("accuracy", 1.0), ("log likelihood", None)])
def test_the_choice_of_the_dimension_is_drawn(criterion, highest):
    rows = [DimensionRow("SPPCA", q, 0.8 + 0.04 * q, 0.1) for q in (2, 3, 5)]
    choice = DimensionChoice(rows, {"SPPCA": 3}, criterion)
    card = sections._dimension(SimpleNamespace(choice=choice, Z=np.zeros((4, 3))))
    said = f"{criterion.capitalize()} on held-out rows, with one standard deviation"
    assert card.hint.startswith(said)
    assert len(centres(card.charts[0], "x")) == 3
    numbers = [float(t) for t in re.findall(r'"end" class="soft">([\d.]+)<', card.charts[0])]
    assert (max(numbers) <= 1) == (highest is not None)


def test_every_card_has_a_key_of_its_own(make_subject):
    subject = make_subject()
    keys = [card.key for card in sections.cards(subject)]
    assert len(keys) == len(set(keys))
    assert {"labels", "distinguishing", "loadings", "outliers", "next", "gaps"} <= set(keys)


def test_gaps_of_a_drawn_sample_are_those_of_the_table(make_subject, monkeypatch):
    whole = make_subject()
    monkeypatch.setattr(page, "MOST_POINTS", 30)
    what = (whole.model, whole.table, whole.ready, whole.asked, whole.X)
    drawn = page.Subject.of(*what, note=lambda text: None)
    assert len(drawn.Z) == 30
    total, columns = int(np.isnan(whole.X).sum()), int(np.isnan(whole.X).any(axis=0).sum())
    assert sections._gaps(drawn).hint == f"{total} cells are empty, in {columns} columns."
    assert (f"{total / (90 * 3):.1%}", "of the cells are gaps") in sections.facts(drawn)
