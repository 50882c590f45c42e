import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.displays import OverviewDisplay


def test_gaps_are_counted_cell_by_cell(rng):
    X = np.where(rng.random((30, 7)) < 0.2, np.nan, 1.0)
    display = OverviewDisplay.from_data(X)
    assert display.gaps.share == np.isnan(X).mean()
    assert_allclose(display.axes_[0].images[0].get_array(), np.isnan(X))


def test_gaps_of_large_data_are_shares_of_blocks(rng):
    X = np.where(rng.random((1000, 200)) < 0.3, np.nan, 1.0)
    grid = OverviewDisplay.from_data(X).gaps.grid
    assert grid.shape == (80, 80)
    assert abs(grid.mean() - np.isnan(X).mean()) < 0.01
    assert_allclose(grid[0, 0], np.isnan(X[:12, :2]).mean())


def test_none_is_a_gap_among_mixed_columns():
    X = np.array([["red", 1.0], [None, np.nan], ["blue", 2.0]], dtype=object)
    assert_allclose(OverviewDisplay.from_data(X).gaps.grid, [[0, 0], [1, 1], [0, 0]])


def test_sparse_data_have_no_gaps():
    display = OverviewDisplay.from_data(sparse.eye_array(5).tocsr())
    assert display.gaps.share == 0 and display.gaps.shape == (5, 5)


def test_labels_are_counted_by_class():
    y = np.array(["b", "a", "b", None, None, None], dtype=object)
    display = OverviewDisplay.from_data(np.zeros((6, 2)), y)
    panel = display.axes_[1]
    assert [bar.get_width() for bar in panel.patches] == [1, 2, 3]
    assert [text.get_text() for text in panel.get_yticklabels()] == ["a", "b", "unlabelled"]
    assert panel.get_title() == "3 of 6 labelled (50%)"


def test_of_many_classes_every_bar_but_not_every_name_is_drawn(rng):
    y = np.append(np.repeat(np.arange(100), 2), [-1, -1, -1])
    panel = OverviewDisplay.from_data(np.zeros((203, 2)), y).axes_[1]
    assert [bar.get_width() for bar in panel.patches] == [2] * 100
    names = [text.get_text() for text in panel.get_yticklabels()]
    assert names == [str(c) for c in range(0, 100, 6)]
    assert panel.get_title() == "200 of 203 labelled (99%)"


def test_numbers_become_a_histogram():
    y = np.array([0.5, 1.5, 2.5, np.nan])
    panel = OverviewDisplay.from_data(np.zeros((4, 2)), y).axes_[1]
    assert sum(bar.get_height() for bar in panel.patches) == 3


def test_links_are_counted_with_those_within_a_class():
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    adjacency = sparse.coo_array((np.ones(4), pairs.T), shape=(5, 5))
    y = np.array([0, 0, 1, 1, -1])
    display = OverviewDisplay.from_data(np.zeros((5, 2)), y, links=adjacency)
    assert display.degrees.degrees.tolist() == [1, 2, 2, 2, 1]
    assert_allclose(display.degrees.within, 2 / 3)
    assert [bar.get_height() for bar in display.axes_[2].patches] == [0, 2, 3]
    assert display.axes_[2].get_title() == "4 links, 67% within a class"


def test_parts_that_are_absent_have_no_panel():
    assert len(OverviewDisplay.from_data(np.zeros((4, 2))).axes_) == 1


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        OverviewDisplay().plot()
