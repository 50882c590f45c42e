from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from gnomon.displays import style

# Full protanopia, deuteranopia and tritanopia in linear RGB, Machado et al. (2009).
SIMULATIONS = {
    "none": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)


def lab(colour, simulation):
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    seen = np.clip(np.asarray(simulation) @ linear, 0, 1)
    f = np.cbrt(TO_XYZ @ seen / WHITE)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", SIMULATIONS)
def test_colours_differ_for_every_kind_of_colour_blindness(kind):
    seen = [lab(colour, SIMULATIONS[kind]) for colour in (*style.PALETTE, style.GREY)]
    gaps = [np.linalg.norm(a - b) for a, b in combinations(seen, 2)]
    assert min(gaps) > 12


def test_colours_stand_out_from_white():
    assert max(lab(colour, np.eye(3))[0] for colour in style.PALETTE) < 75


def test_a_class_after_the_last_look_is_drawn_as_the_first_one():
    assert style.colour(style.N_LOOKS) == style.colour(0) == style.PALETTE[0]


def test_each_of_many_classes_has_its_own_look():
    looks = {(style.colour(c), style.marker(c)) for c in range(style.N_LOOKS)}
    assert len(looks) == style.N_LOOKS


def test_integers_are_classes_and_fractions_are_numbers():
    assert style.read_target([0, 1, -1], 3).classes.names.tolist() == [0, 1]
    assert style.read_target(np.array([0.5, np.nan, 2.0]), 3).labelled.tolist() == [1, 0, 1]


def test_integers_are_classes_however_many():
    assert len(style.read_target(np.arange(100), 100).classes.names) == 100


def test_none_marks_unlabelled_strings():
    target = style.read_target(np.array(["a", None, "b"], dtype=object), 3)
    assert target.labels.tolist() == [0, -1, 1]


def test_classes_keep_their_numbers_where_some_have_no_label():
    labels = style.labels_among(np.array([["c", "a"], ["b", "c"]]), ["b", "c"])
    assert labels.tolist() == [[1, 2], [0, 1]]


def test_labels_of_the_wrong_length_are_refused():
    with pytest.raises(ValueError, match="y has 2 rows"):
        style.read_target([0, 1], 3)


def test_a_matrix_of_labels_is_refused():
    with pytest.raises(ValueError, match="one column"):
        style.read_target(np.zeros((3, 2)), 3)


def test_panels_take_the_place_of_given_axes():
    figure, (_, right) = plt.subplots(1, 2)
    inner = style.panels(right, 2, 2, figsize=(4, 4))
    figure.canvas.draw()
    outer = right.get_position()
    assert all(outer.x0 - 1e-6 <= ax.get_position().x0 <= outer.x1 for ax in inner.ravel())


def test_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: .*gnomon-learn\[plot\]"):
        style.pyplot()
