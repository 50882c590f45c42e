"""The charts of a report: where their marks lie, and that nothing runs or is cut off."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("markupsafe")
from gnomon.tools.report import charts
from gnomon.tools.report.charts import Frame


def lengths(chart):
    return [float(width) for width in re.findall(r'<rect[^>]*width="([\d.]+)"', chart)]


def centres(chart, axis):
    return [float(value) for value in re.findall(rf'<circle[^>]*c{axis}="([\d.]+)"', chart)]


def texts(chart):
    """Place, anchor and letters of every text."""
    found = re.findall(r'<text x="([-\d.]+)"[^>]*anchor="(\w+)"[^>]*>([^<]*)<', chart)
    return [(float(x), anchor, text) for x, anchor, text in found]


def test_bars_are_as_long_as_their_values():
    chart = charts.draw_bars(["a", "b"], [1.0, 4.0], ["1", "4"])
    assert_allclose(lengths(chart)[1] / lengths(chart)[0], 4)
    pale = charts.draw_bars(["a"], [1.0], ["1"], pale=[2.0])
    assert_allclose(lengths(pale), [300, 150])


def test_the_text_of_the_longest_bar_has_room():
    chart = charts.draw_bars(["a"], [1.0], ["4,981 + 47,123"])
    (_, _, _), (x, anchor, text) = texts(chart)
    assert anchor == "start"
    assert x + 8 * len(text) < charts.WIDTH


def test_names_are_escaped_and_cut_in_the_middle():
    chart = charts.draw_bars(["<script>" * 5], [1.0], ["<b>"])
    assert "<script>" not in chart
    assert "&lt;b&gt;" in chart
    name = charts.short("a rather long name of measurement 12")
    assert name == "a rather …rement 12"
    assert len(name) == charts.MOST_LETTERS
    assert charts.short("plain") == "plain"


def test_a_curve_marks_the_chosen_number():
    chart = charts.draw_curve([1, 2, 3], [0.0, 1.0, 2.0], [0.5, 0.5, 0.5], 2)
    heights = centres(chart, "y")
    assert_allclose(heights[0] - heights[1], heights[1] - heights[2], atol=0.11)
    marked = re.findall(r'<circle class="fill" cx="([\d.]+)"', chart)
    assert [float(x) for x in marked] == centres(chart, "x")[1:2]


@pytest.mark.parametrize("mean", [0.98, 1.0])
def test_an_axis_of_shares_ends_at_one(mean):
    chart = charts.draw_curve([2, 3], [0.9, mean], [0.05, 0.1], 3, highest=1.0)
    numbers = [float(t) for x, anchor, t in texts(chart) if anchor == "end" and t != "dimensions"]
    assert max(numbers) == 1.0
    ends = re.findall(r"V([\d.]+)", chart)
    assert min(map(float, ends)) == charts.PLOT_TOP


@pytest.mark.parametrize("low", [-123456.7, -1.5e9, 1e-7, 0.0])
def test_the_numbers_beside_a_line_are_not_cut(low):
    chart = charts.draw_line(low + np.array([0.0, 1.0, 2.0]) * max(abs(low), 1e-8) / 1e3, "step")
    beside = [(x, t) for x, anchor, t in texts(chart) if anchor == "end" and t != "step"]
    assert len(beside) >= 2
    # In the type that a phone has, a digit is nine units wide.
    assert all(x - 9 * len(t) >= 0 for x, t in beside)


def test_a_line_goes_from_its_lowest_to_its_highest_value():
    chart = charts.draw_line([3.0, 1.0, 2.0], "step")
    points = re.search(r'class="line" d="M([^"]+)"', chart)[1].split("L")
    y = [float(point.split()[1]) for point in points]
    assert y[1] == max(y) and y[0] == min(y)
    assert_allclose(y[2], (y[0] + y[1]) / 2, atol=0.1)


def test_intervals_are_placed_between_the_bounds():
    rows = [("m", 0.5, 0.25, 0.75), ("a name " * 20, 0.0, None, None), ("t", 1.0, None, None)]
    chart = charts.draw_intervals(rows, 0.0, 1.0)
    middle, left, right = centres(chart, "x")
    assert_allclose(middle, (left + right) / 2)
    assert chart.count("whisker") == 1
    assert re.findall(r'<circle class="(\w+)"', chart) == ["fill", "grey", "grey"]
    # In the type that a phone has, a letter is nine units wide.
    assert all(x + 9 * len(t) < charts.WIDTH for x, anchor, t in texts(chart) if anchor == "start")


def test_signed_bars_start_at_zero_and_go_both_ways():
    rows = [("a", 2.0, 1.0, 3.0), ("<b>", -1.0, None, None)]
    chart = charts.draw_signed("title", rows, (-2.0, 4.0))
    assert_allclose(lengths(chart)[0] / lengths(chart)[1], 2, rtol=0.01)
    assert re.findall(r'<rect class="(\w+)"', chart) == ["fill", "below"]
    starts = [float(x) for x in re.findall(r'<rect[^>]* x="([\d.]+)"', chart)]
    assert_allclose(starts[1] + lengths(chart)[1], starts[0], atol=0.11)
    assert chart.count('class="ink"') == 1
    assert "<b>" not in chart


def test_places_in_a_frame_are_linear_or_those_of_roots():
    frame = Frame((0, 4), (0, 4), ("x", "y"), 300)
    assert_allclose(frame.across(2), (frame.across(0) + frame.across(4)) / 2)
    assert_allclose(frame.up(1), (3 * frame.up(0) + frame.up(4)) / 4)
    root = frame._replace(root=True)
    assert_allclose(root.across(1), (root.across(0) + root.across(4)) / 2)
    assert frame.across(9) == frame.across(4)


def test_ticks_are_round_numbers_inside_the_bounds():
    assert charts._ticks(0, 1, 4) == [(0, "0.0"), (0.5, "0.5"), (1, "1.0")]
    assert [text for _, text in charts._ticks(400, 995, 6)] == [f"{n}00" for n in range(4, 10)]
    assert [value for value, _ in charts._ticks(0, 36, 6, root=True)] == [0, 1, 4, 9, 16, 25, 36]
    assert charts.bounds_of([np.nan]) == (-0.05, 1.05)
    assert charts.bounds_of([2.0, 2.0]) == (1.5, 2.5)


def test_a_line_along_a_scale_goes_by_its_numbers():
    numbers = np.array([500.0, 450.0, 400.0])
    values = np.array([3.0, 2.0, 1.0])
    chart = charts.draw_along("z1", numbers, "nm", values, values - 1, values + 1, (0.0, 4.0))
    points = re.search(r'class="line" d="M([^"]+)"', chart)[1].split("L")
    x, y = np.array([[float(v) for v in point.split()] for point in points]).T
    assert np.all(np.diff(x) > 0) and np.all(np.diff(y) < 0)
    assert len(re.findall(r"V[\d.]+", chart)) == 3
