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
    t = TO_XYZ @ seen / WHITE
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one, other):
    """The difference of two colours in CIELAB, Sharma, Wu and Dalal (2005)."""
    chroma = np.mean([np.hypot(*c[1:]) for c in (one, other)])
    grow = 1.5 - 0.5 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    (l1, a1, b1), (l2, a2, b2) = (c * [1, grow, 1] for c in (one, other))
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    hue = np.radians((h1 + turn / 2) % 360 if c1 * c2 else h1 + h2)
    light, chroma = (l1 + l2) / 2 - 50, (c1 + c2) / 2
    waves = ((1, 30, -0.17), (2, 0, 0.24), (3, -6, 0.32), (4, 63, -0.2))
    t = 1 + sum(k * np.cos(m * hue - np.radians(shift)) for m, shift, k in waves)
    dl = (l2 - l1) / (1 + 0.015 * light**2 / np.sqrt(20 + light**2))
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2) / (1 + 0.015 * chroma * t)
    blue = np.exp(-(((np.degrees(hue) - 275) / 25) ** 2))
    mixed = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(np.radians(60 * blue))
    return np.sqrt(dl**2 + dc**2 + dh**2 + mixed * dc * dh)


def test_differences_of_colours_are_those_of_the_paper():
    pairs = {
        2.0425: ([50, 2.6772, -79.7751], [50, 0, -82.7485]),
        22.8977: ([50, 2.5, 0], [61, -5, 29]),
        4.3065: ([50, 2.5, 0], [50, 0, -2.5]),
        1.2644: ([60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387]),
    }
    for expected, (one, other) in pairs.items():
        assert ciede2000(np.array(one), np.array(other)) == pytest.approx(expected, abs=1e-4)


def least_difference(colours, kind):
    seen = [lab(colour, SIMULATIONS[kind]) for colour in colours]
    return min(ciede2000(a, b) for a, b in combinations(seen, 2))


# A difference of 1 is just seen side by side; small points that lie apart need about ten.
@pytest.mark.parametrize("kind, first, all_twenty", [
    ("none", 18, 12), ("protan", 12, 9), ("deutan", 12, 9), ("tritan", 10, 7),
])  # fmt: skip
def test_colours_differ_for_every_kind_of_colour_blindness(kind, first, all_twenty):
    assert least_difference((*style.PALETTE[: style.PLAIN_COLOURS], style.GREY), kind) > first
    assert least_difference((*style.PALETTE, style.GREY), kind) > all_twenty


@pytest.mark.parametrize("kind, first, all_twenty", [
    ("none", 15, 10), ("protan", 10, 6), ("deutan", 10, 5), ("tritan", 8, 5),
])  # fmt: skip
def test_colours_differ_on_a_dark_page(kind, first, all_twenty):
    assert least_difference(style.ON_DARK[: style.PLAIN_COLOURS], kind) > first
    assert least_difference(style.ON_DARK, kind) > all_twenty


def test_colours_stand_out_from_their_page():
    assert max(lab(colour, np.eye(3))[0] for colour in style.PALETTE) < 77
    assert min(lab(colour, np.eye(3))[0] for colour in style.ON_DARK) > 40


def test_twenty_classes_have_a_colour_each():
    assert len({style.colour(c) for c in range(20)}) == 20
    assert len({style.marker(c) for c in range(20)}) == 2


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
