from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits, load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import BSDR, PPCA
from gnomon.displays import LoadingsDisplay
from gnomon.displays.loadings import placed_apart


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return make_pipeline(StandardScaler(), PPCA(n_components=3)).fit(X), X, y


def test_the_heat_map_shows_the_strongest_features_by_name(wine):
    model, X, _ = wine
    display = LoadingsDisplay.from_estimator(model, n_features=6)
    loadings = model[-1].components_
    strongest = np.argsort(-np.abs(loadings).max(axis=0))[:6]
    assert set(display.shown_) == set(strongest)
    shown = display.ax_.images[0].get_array()
    assert_allclose(shown, loadings[:, display.shown_].T)
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == list(X.columns[display.shown_])


def test_the_heat_map_is_symmetric_about_zero(wine):
    image = LoadingsDisplay.from_estimator(wine[0]).ax_.images[0]
    low, high = image.get_clim()
    assert low == -high == -np.abs(image.get_array()).max()


def test_top_loadings_are_ranked_with_their_intervals(rng):
    loadings, sd = rng.normal(size=(2, 9)), rng.uniform(0.1, 0.2, size=(2, 9))
    display = LoadingsDisplay(loadings, sd=sd).plot(kind="top", component=1, n_features=4)
    order = np.argsort(-np.abs(loadings[1]))[:4]
    assert display.shown_.tolist() == order.tolist()
    stems, dots, bars = display.ax_.collections
    assert_allclose(dots.get_offsets()[:, 0], loadings[1, order])
    assert_allclose([s[1, 0] for s in stems.get_segments()], loadings[1, order])
    lengths = [np.ptp(segment[:, 0]) for segment in bars.get_segments()]
    assert_allclose(lengths, 2 * 1.96 * sd[1, order])


def test_intervals_from_resampled_rows_are_those_of_repeated_samples(rng):
    W = np.array([[2.0, 1.0, 0.5, 0.0]])

    def sample():
        return rng.normal(size=(200, 1)) @ W + 0.7 * rng.normal(size=(200, 4))

    fits = [PPCA(1).fit(sample()).components_ for _ in range(100)]
    expected = np.std([fit * np.sign(fit[0, 0]) for fit in fits], axis=0)
    X = sample()
    model = PPCA(1).fit(X)
    display = LoadingsDisplay.from_estimator(model, X, n_bootstrap=100, kind="top")
    assert_allclose(display.sd, expected, rtol=0.35)


def test_turned_axes_are_no_uncertainty(rng):
    X = rng.normal(size=(300, 2)) @ (10 * np.eye(2, 5)) + 0.1 * rng.normal(size=(300, 5))
    model = PPCA(2).fit(X)
    display = LoadingsDisplay.from_estimator(model, X, n_bootstrap=10, kind="top")
    assert display.sd.max() < 2


def test_resampling_needs_rows(wine):
    with pytest.raises(ValueError, match="pass X"):
        LoadingsDisplay.from_estimator(wine[0], n_bootstrap=5)


def test_resampling_needs_a_number_of_components(rng):
    X = rng.normal(size=(30, 1)) @ rng.normal(size=(1, 6)) + rng.normal(size=(30, 6))
    model = PPCA(n_components="auto", random_state=0).fit(X)
    model.components_ = np.ones((5, 6))
    with pytest.raises(ValueError, match="n_components as a number"):
        LoadingsDisplay.from_estimator(model, X, n_bootstrap=2)


def test_a_posterior_of_the_loadings_gives_the_intervals():
    X, y = load_wine(return_X_y=True)
    model = BSDR(n_components=2, random_state=0).fit(StandardScaler().fit_transform(X), y)
    display = LoadingsDisplay.from_estimator(model, kind="top", component=1)
    _, dots, bars = display.ax_.collections
    assert_allclose(dots.get_offsets()[:, 0], model.components_[1, display.shown_])
    lengths = [np.ptp(segment[:, 0]) for segment in bars.get_segments()]
    assert_allclose(lengths, 2 * 1.96 * model.loadings_sd_[1, display.shown_])


def test_top_loadings_without_intervals_say_nothing_of_them(wine):
    display = LoadingsDisplay.from_estimator(wine[0], kind="top")
    assert "interval" not in display.ax_.get_xlabel()


def test_the_biplot_has_points_and_arrows(wine):
    model, X, y = wine
    display = LoadingsDisplay.from_estimator(model, X, y, kind="biplot", n_features=5)
    drawn = np.vstack([group.get_offsets() for group in display.ax_.collections])
    order = np.argsort(y.to_numpy(), kind="stable")
    assert_allclose(drawn, model.transform(X)[order, :2])
    tips = np.array([note.xy for note in display.ax_.texts if not note.get_text()])
    expected = model[-1].components_[:2, display.shown_].T
    assert len(tips) == 5
    assert_allclose(tips / np.hypot(*tips[0]), expected / np.hypot(*expected[0]))


def test_a_biplot_of_many_classes_has_a_short_legend(rng):
    Z, y = rng.normal(size=(120, 2)), np.arange(120) % 60
    display = LoadingsDisplay(np.eye(2), embedding=Z, y=y).plot(kind="biplot")
    assert display.ax_.get_legend().get_texts()[-1].get_text() == "... and 29 more"


def overlap(a, b):
    """How deep two boxes lie in each other, zero where they do not."""
    return max(min(a.x1 - b.x0, b.x1 - a.x0, a.y1 - b.y0, b.y1 - a.y0), 0)


@pytest.mark.parametrize("dpi", [100, 200])
def test_names_on_a_biplot_are_at_their_arrows_and_do_not_overlap(rng, dpi):
    angles = np.r_[np.full(4, 0.01) * np.arange(4), rng.uniform(0, 6.3, size=14)]
    loadings = np.array([np.cos(angles), np.sin(angles)]) * rng.uniform(0.5, 1, size=18)
    names = [f"feature number {j}" for j in range(18)]
    display = LoadingsDisplay(loadings, feature_names=names, embedding=rng.normal(size=(40, 2)))
    display.plot(kind="biplot")
    display.figure_.set_dpi(dpi)
    display.figure_.canvas.draw()
    texts = [text for text in display.ax_.texts if text.get_text()]
    boxes = [Text.get_window_extent(text) for text in texts]
    # Of 100 draws three had names that touch, by 4 dots at most: lines are 11 high.
    assert max(overlap(a, b) for a, b in combinations(boxes, 2)) < 0.06 * dpi
    tips = display.ax_.transData.transform([text.xy for text in texts])
    for tip, box in zip(tips, boxes, strict=True):
        away = np.maximum(np.maximum([box.x0, box.y0] - tip, tip - [box.x1, box.y1]), 0)
        assert np.hypot(*away) < 9 * box.height


def test_a_lone_name_stands_beyond_the_tip_of_its_arrow():
    (offset,) = placed_apart([[5.0, 5.0]], [[1.0, 0.0]], np.array([[30.0, 10.0]]))
    assert_allclose(offset, [17, 0])


def test_the_biplot_needs_points(wine):
    with pytest.raises(ValueError, match="pass X"):
        LoadingsDisplay.from_estimator(wine[0], kind="biplot")


def test_images_have_the_shape_of_the_data():
    model = PPCA(n_components=7).fit(load_digits().data)
    display = LoadingsDisplay.from_estimator(model, kind="images")
    shown = [panel.images[0].get_array() for panel in display.axes_ if panel.images]
    assert len(shown) == 7
    assert_allclose(shown[3].ravel(), model.components_[3])
    assert shown[0].shape == (8, 8)


def test_images_are_drawn_in_the_place_of_axes():
    figure, axes = plt.subplots(1, 2)
    display = LoadingsDisplay(np.ones((2, 6))).plot(axes[1], kind="images", image_shape=(2, 3))
    assert display.figure_ is figure
    assert display.axes_[0].images[0].get_array().shape == (2, 3)


def test_a_wrong_image_shape_is_refused():
    with pytest.raises(ValueError, match="its product must be 6"):
        LoadingsDisplay(np.ones((2, 6))).plot(kind="images", image_shape=(2, 2))


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind == 'pie'"):
        LoadingsDisplay(np.ones((2, 6))).plot(kind="pie")


def test_an_estimator_without_components_is_refused():
    model = KNeighborsClassifier().fit(np.eye(6), np.arange(6) % 2)
    with pytest.raises(TypeError, match="no components_"):
        LoadingsDisplay.from_estimator(model)
