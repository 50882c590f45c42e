import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import BSDR
from gnomon.displays import RelevanceDisplay
from gnomon.displays.relevance import explained_shares, target_columns


def heights(bars):
    return [bar.get_height() for bar in bars]


def test_shares_are_those_of_a_regression_on_one_component(rng):
    X, Z = rng.normal(size=(40, 5)) + 7, rng.normal(size=(40, 2)) - 3
    fits = [LinearRegression().fit(Z[:, [j]], X).predict(Z[:, [j]]) for j in range(2)]
    expected = [fit.var(axis=0).sum() / X.var(axis=0).sum() for fit in fits]
    assert_allclose(explained_shares(X, Z), expected)


def test_shares_leave_gaps_out_pair_by_pair(rng):
    X, Z = rng.normal(size=(40, 1)), rng.normal(size=(40, 1))
    X[:15] = np.nan
    assert_allclose(explained_shares(X, Z), explained_shares(X[15:], Z[15:]))


def test_shares_of_sparse_rows_are_the_same(rng):
    X, Z = rng.poisson(0.5, size=(30, 6)).astype(float), rng.normal(size=(30, 2))
    assert_allclose(explained_shares(sparse.csr_array(X), Z), explained_shares(X, Z))


def test_shares_of_principal_components_are_their_variance_ratios():
    X = load_wine().data
    pca = PCA(4).fit(X)
    display = RelevanceDisplay.from_estimator(pca, X)
    assert_allclose(heights(display.bars_["X"]), pca.explained_variance_ratio_)


def test_a_perfect_component_explains_all_of_y():
    y = np.repeat([0.0, 1.0, np.nan], 4)
    Z = np.nan_to_num(y)[:, None]
    assert_allclose(explained_shares(target_columns(y, 12), Z), [1.0])


def test_class_names_become_indicators_with_gaps():
    columns = target_columns(np.array(["a", "b", None], dtype=object), 3)
    assert_allclose(columns, [[1, 0], [0, 1], [np.nan, np.nan]])


def test_automatic_relevance_shows_what_was_dropped(rng):
    X = rng.normal(size=(120, 6))
    y = (X[:, 0] + 0.3 * rng.normal(size=120) > 0).astype(int)
    model = BSDR(n_components="auto", random_state=0).fit(X, y)
    display = RelevanceDisplay.from_estimator(model, X, y)
    expected = model.relevance_ / model.relevance_.max()
    assert_allclose(heights(display.bars_["relevance"]), expected)
    hatched = [bar.get_hatch() is not None for bar in display.bars_["relevance"]]
    assert_allclose(hatched, ~model.kept_)
    assert len(display.bars_["X"]) == len(model.relevance_)


def test_pipelines_and_labels_are_drawn():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), PCA(3)).fit(X)
    display = RelevanceDisplay.from_estimator(model, X, y)
    assert_allclose(heights(display.bars_["X"]), model[-1].explained_variance_ratio_)
    assert len(display.bars_["y"]) == 3
    assert len(display.ax_.get_legend().get_texts()) == 2


def test_dropped_components_are_hatched_and_counted():
    display = RelevanceDisplay(relevance=[4.0, 2.0, 0.1], kept=[True, True, False]).plot()
    bars = display.bars_["relevance"]
    assert_allclose(heights(bars), [1.0, 0.5, 0.025])
    assert [bar.get_hatch() for bar in bars] == [None, None, "////"]
    assert_allclose(bars[2].get_facecolor()[:3], to_rgb("white"))
    assert "2 of 3 kept" in display.ax_.get_xlabel()
    assert display.ax_.get_ylabel() == "relative relevance"


def test_dropped_components_explain_nothing():
    display = RelevanceDisplay(shares_x=[0.5], relevance=[4.0, 0.1], kept=[True, False]).plot()
    assert_allclose(heights(display.bars_["X"]), [0.5, 0.0])


def test_the_threshold_is_a_line_on_the_same_scale():
    display = RelevanceDisplay(relevance=[4.0, 1.0], threshold=2.0).plot()
    assert display.ax_.lines[0].get_ydata()[0] == 0.5


def test_long_spectra_are_cut():
    display = RelevanceDisplay(shares_x=np.ones(100) / 100).plot(max_components=10)
    assert len(display.bars_["X"]) == 10


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="nothing to draw"):
        RelevanceDisplay().plot()
