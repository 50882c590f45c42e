import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import PPCA, SPPCA
from gnomon.displays import DimensionDisplay, SupervisionDisplay


def line_data(container):
    return container.lines[0].get_data()


def bar_lengths(container):
    return [np.ptp(segment[:, 1]) for segment in container.lines[2][0].get_segments()]


def test_means_bars_and_choice_are_drawn():
    display = DimensionDisplay([1, 2, 4], [0.2, 0.9, 0.5], sds=[0.1, 0.2, 0.3], chosen=2).plot()
    (container,) = display.lines_.values()
    assert_allclose(line_data(container), [[1, 2, 4], [0.2, 0.9, 0.5]])
    assert_allclose(bar_lengths(container), [0.2, 0.4, 0.6])
    ring = display.ax_.lines[-1]
    assert_allclose(ring.get_data(), [[2], [0.9]])


def test_several_models_have_a_line_each():
    means = {"PPCA": [0.1, 0.2], "SPPCA": [0.3, 0.4]}
    display = SupervisionDisplay([0, 1], means, chosen={"SPPCA": 1}).plot()
    assert list(display.lines_) == ["PPCA", "SPPCA"]
    assert len(display.ax_.get_legend().get_texts()) == 2


def test_an_automatic_dimension_shows_its_criterion(rng):
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(80, 6))
    model = PPCA(n_components="auto", random_state=0).fit(X)
    display = DimensionDisplay.from_estimator(model)
    (container,) = display.lines_.values()
    assert_allclose(line_data(container)[0], model.criterion_["n_components"])
    assert_allclose(line_data(container)[1], model.criterion_["mean"])
    assert display.ax_.lines[-1].get_xdata()[0] == model.n_components_


def test_a_fixed_dimension_has_no_criterion():
    with pytest.raises(ValueError, match="n_components='auto'"):
        DimensionDisplay.from_estimator(PPCA(1).fit(np.eye(4)))


def test_a_grid_search_shows_the_best_over_other_settings():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(PCA(), LinearDiscriminantAnalysis(solver="lsqr"))
    grid = {
        "pca__n_components": [1, 3],
        "lineardiscriminantanalysis__shrinkage": [0.9, 0.0],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    display = DimensionDisplay.from_search(search)
    (container,) = display.lines_.values()
    scores = np.asarray(search.cv_results_["mean_test_score"])
    sizes = np.asarray(search.cv_results_["param_pca__n_components"], dtype=int)
    best = [scores[sizes == q].max() for q in (1, 3)]
    assert_allclose(line_data(container), [[1, 3], best])
    winner = search.cv_results_["std_test_score"][search.best_index_] / np.sqrt(3)
    at = [1, 3].index(search.best_params_["pca__n_components"])
    assert_allclose(bar_lengths(container)[at], 2 * winner)


class _Tried(BaseEstimator):
    """Stands for a fit that has tried strengths 0, 0.5 and 1 with two numbers of directions."""

    def fit(self, X=None, y=None):
        self.supervision_ = 0.5
        self.supervision_curve_ = {
            "s": np.array([0, 0.5, 1, 0.5, 1]),
            "pool": np.array([150, 40, 40, 150, 150]),
            "loss": np.array([0, -0.1, 0.2, -0.3, 0.1]),
            "error": np.array([0, 0.01, 0.02, 0.03, 0.04]),
            "criterion": np.array([0, -0.1, 0.2, -0.3, 0.1]),
        }
        return self


def test_the_strengths_tried_have_a_line_for_each_number_of_directions():
    display = SupervisionDisplay.from_estimator(_Tried().fit())
    small, large = display.lines_["40 directions"], display.lines_["150 directions"]
    assert_allclose(line_data(small), [[0, 0.5, 1], [0, -0.1, 0.2]])
    assert_allclose(line_data(large), [[0, 0.5, 1], [0, -0.3, 0.1]])
    assert_allclose(bar_lengths(large), [0, 0.06, 0.08])
    assert_allclose(display.ax_.lines[-1].get_data(), [[0.5], [-0.3]])


def test_an_automatic_strength_shows_what_it_tried():
    X, y = load_wine(return_X_y=True)
    y[np.random.default_rng(0).random(len(y)) < 0.8] = -1
    model = make_pipeline(StandardScaler(), SPPCA(n_components=2)).fit(X, y)
    display = SupervisionDisplay.from_estimator(model)
    strengths = np.unique(model[-1].supervision_curve_["s"])
    for line in display.lines_.values():
        assert_allclose(line_data(line)[0], strengths)
        assert line_data(line)[1][0] == 0
    assert display.ax_.lines[-1].get_xdata()[0] == model[-1].supervision_


def test_a_stated_strength_has_no_curve():
    with pytest.raises(ValueError, match="supervision='auto'"):
        SupervisionDisplay.from_estimator(PPCA(1).fit(np.eye(4)))


def test_a_search_without_the_setting_is_refused():
    X, y = load_wine(return_X_y=True)
    grid = {"shrinkage": [0.1, 0.2]}
    search = GridSearchCV(LinearDiscriminantAnalysis(solver="lsqr"), grid, cv=2).fit(X, y)
    with pytest.raises(ValueError, match="that end with 'supervision'"):
        SupervisionDisplay.from_search(search)
