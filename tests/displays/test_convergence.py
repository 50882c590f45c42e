import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from gnomon import PPCA
from gnomon.displays import ConvergenceDisplay


@pytest.fixture
def gaps(rng):
    X = rng.normal(size=(50, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_lines_are_the_objectives(gaps):
    models = [PPCA(q).fit(gaps) for q in (1, 2)]
    display = ConvergenceDisplay.from_estimator(models)
    assert list(display.lines_) == ["fit 1", "fit 2"]
    for line, model in zip(display.lines_.values(), models, strict=True):
        assert_allclose(line.get_ydata(), model.objective_)
        assert line.get_xdata()[-1] == model.n_iter_


def test_one_estimator_is_named_by_its_class(gaps):
    display = ConvergenceDisplay.from_estimator(PPCA(2).fit(gaps))
    assert list(display.lines_) == ["PPCA"]
    assert display.ax_.get_legend() is None


def test_the_end_is_open_where_it_did_not_converge():
    objectives = {"converged": [0.0, 1.0], "stopped": [0.0, 0.5]}
    display = ConvergenceDisplay(objectives, converged={"converged": True, "stopped": False}).plot()
    ends = [line for line in display.ax_.lines if line.get_marker() == "o"]
    assert to_rgba(ends[0].get_markerfacecolor()) != to_rgba("white")
    assert to_rgba(ends[1].get_markerfacecolor()) == to_rgba("white")


def test_the_gap_is_below_the_best_of_all():
    display = ConvergenceDisplay({"a": [-3.0, -2.0], "b": [-4.0, -1.0]}).plot(gap=True)
    assert_allclose(display.lines_["a"].get_ydata(), [2.0, 1.0])
    assert display.ax_.get_yscale() == "log"
    display.figure_.canvas.draw()


def test_an_estimator_without_iterations_is_refused():
    with pytest.raises(ValueError, match="no objective_"):
        ConvergenceDisplay.from_estimator(PCA(1).fit(np.eye(4)))
