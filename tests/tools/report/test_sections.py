"""What the sections of a report say, and the charts they draw."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
from gnomon.tools.compare.scoring import Score
from gnomon.tools.dimension import DimensionChoice, DimensionRow
from gnomon.tools.report import page, sections


def lengths(chart):
    return [float(width) for width in re.findall(r'<rect[^>]*width="([\d.]+)"', chart)]


def centres(chart, axis):
    return [float(value) for value in re.findall(rf'<circle[^>]*c{axis}="([\d.]+)"', chart)]


def test_bars_are_as_long_as_their_values():
    chart = sections.draw_bars(["a", "b"], [1.0, 4.0], ["1", "4"])
    assert_allclose(lengths(chart)[1] / lengths(chart)[0], 4)
    pale = sections.draw_bars(["a"], [1.0], ["1"], pale=[2.0])
    assert_allclose(lengths(pale), [300, 150])


def test_names_are_escaped_and_cut():
    chart = sections.draw_bars(["<script>" * 5], [1.0], ["<b>"])
    assert "<script>" not in chart
    assert "&lt;b&gt;" in chart
    assert "…" in chart


def test_a_curve_marks_the_chosen_number():
    chart = sections.draw_curve([1, 2, 3], [0.0, 1.0, 2.0], [0.5, 0.5, 0.5], 2)
    heights = centres(chart, "y")
    assert_allclose(heights[0] - heights[1], heights[1] - heights[2], atol=0.11)
    marked = re.findall(r'<circle class="fill" cx="([\d.]+)"', chart)
    assert [float(x) for x in marked] == centres(chart, "x")[1:2]


def test_a_line_goes_from_its_lowest_to_its_highest_value():
    points = re.search(r'points="([^"]+)"', sections.draw_line([3.0, 1.0, 2.0], "step"))[1]
    y = [float(point.split(",")[1]) for point in points.split()]
    assert y[1] == max(y) == sections.PLOT_BOTTOM
    assert y[0] == min(y)


def test_intervals_are_placed_between_the_bounds():
    chart = sections.draw_intervals([("m", 0.5, 0.25, 0.75), ("c", 0.0, None, None)], 0.0, 1.0)
    left, right = sections.LEFT, sections.WIDTH - sections.RIGHT
    assert centres(chart, "x") == [(left + right) / 2, left]
    assert chart.count("whisker") == 1


@pytest.mark.parametrize("control, said", [(0.3, "is there."), (0.85, "do not read the classes")])
def test_the_verdict_is_that_of_the_control(control, said):
    subject = SimpleNamespace(score=Score("accuracy", 0.9, 0.8, 0.95, 45, control, 0.4))
    section = sections.score(subject)
    assert "the 95 % interval is 0.800 to 0.950 (45 rows)" in section["sentence"]
    assert said in section["sentence"]
    assert section["method"].startswith("Cross-validation over the labelled rows")


def test_a_likelihood_has_no_control():
    subject = SimpleNamespace(score=Score("log likelihood per row", -3.0, -3.5, -2.5, 45))
    section = sections.score(subject)
    assert "permuted" not in section["sentence"]
    assert section["method"] == "Cross-validation."
    assert sections.score(SimpleNamespace(score=None)) is None


def test_labels_are_counted_with_the_predicted_ones_beside_them(make_subject):
    subject = make_subject()
    section = sections.labels(subject)
    given = subject.ready.y[subject.labelled]
    names, counts = np.unique(given.astype(str), return_counts=True)
    assert section["sentence"].startswith(f"{len(given)} of 90 rows have a label; lighter:")
    extra = [int((subject.predicted[~subject.labelled] == name).sum()) for name in names]
    for count, more in zip(counts, extra, strict=True):
        assert f"{count} + {more}" in section["chart"]


def test_doubtful_labels_are_those_that_the_model_would_change(make_subject):
    subject = make_subject()
    assert sections.doubtful(subject) is None
    first, second = np.flatnonzero(subject.labelled)[:2]
    y = subject.ready.y.copy()
    y[[first, second]] = ["b" if y[i] == "a" else "a" for i in (first, second)]
    subject.ready = subject.ready._replace(y=y)
    found = {row["index"]: row["cells"] for row in sections.doubtful(subject)["rows"]}
    assert found.keys() == {first, second}
    for i, (given, likely, _) in found.items():
        assert given == y[i]
        assert likely.startswith(f"{subject.predicted[i]} (")


def test_loadings_are_those_of_the_model_with_their_deviations(make_subject):
    subject = make_subject()
    components = subject.model.components_
    section = sections.loadings(subject)
    for row in section["rows"]:
        j = subject.ready.recipe.names.index(row["name"])
        assert [cell["text"] for cell in row["cells"]] == [f"{v:.2f}" for v in components[:, j]]
        assert {cell["title"] for cell in row["cells"]} == {""}
    subject.model.loadings_sd_ = np.full(components.shape, 0.25)
    assert sections.loadings(subject)["rows"][0]["cells"][1]["title"] == "± 0.250"
    del subject.model.loadings_sd_


def test_axes_carry_a_share_of_features_and_target():
    model = SimpleNamespace(input_share_=[0.5, 0.25], target_share_=[0.1, 0.8])
    figure = sections._relevance(SimpleNamespace(model=model))
    assert_allclose(np.array(lengths(figure["svg"])) / 300 * 0.8, [0.5, 0.1, 0.25, 0.8], atol=0.01)
    assert "z2, target" in figure["svg"]
    bsdr = SimpleNamespace(model=SimpleNamespace(relevance_=np.array([3.0, 1.0])))
    assert "Relevance of each axis" in sections._relevance(bsdr)["text"]


def test_the_choice_of_the_dimension_is_drawn():
    rows = [DimensionRow("SPPCA", q, 0.1 * q, 0.05) for q in (2, 3, 5)]
    choice = DimensionChoice(rows, {"SPPCA": 3}, "accuracy")
    figure = sections._dimension(SimpleNamespace(choice=choice, Z=np.zeros((4, 3))))
    assert figure["text"].startswith("Accuracy on held-out rows, with one standard deviation")
    assert len(centres(figure["svg"], "x")) == 3


def test_gaps_of_a_drawn_sample_are_those_of_the_table(make_subject, monkeypatch):
    whole = make_subject()
    monkeypatch.setattr(page, "MOST_POINTS", 30)
    what = (whole.model, whole.table, whole.ready, whole.asked, whole.X)
    drawn = page.Subject.of(*what, note=lambda text: None)
    assert len(drawn.Z) == 30
    total = int(np.isnan(whole.X).sum())
    (gaps,) = [chart for chart in sections.figures(drawn) if chart["key"] == "gaps"]
    assert gaps["text"] == f"{total} cells are empty, in 3 columns."
    assert (f"{total / (90 * 3):.1%}", "of the cells are gaps") in sections.facts(drawn)
