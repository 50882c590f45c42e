"""What a comparison says: words, code, a page and pictures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_iris

import gnomon


def test_the_code_refits_the_leader():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 3, y, -1)
    result = gnomon.compare(X, y, models=["LDA", "PCA"], n_components=2, cv=3)
    names = {"X": X, "y": y}
    exec(result.snippet(), names)
    assert_allclose(names["Z"], result.pipeline.fit(X, y).transform(X))


def test_the_code_of_a_linked_model_runs():
    rng, y = np.random.default_rng(0), np.arange(90) % 3
    X = rng.standard_normal((90, 12)) + 1.2 * np.eye(3, 12)[y]
    A = np.triu(rng.random((90, 90)) < np.where(y[:, None] == y, 0.15, 0.01), 1)
    A = A | A.T
    result = gnomon.compare(X, y, models=["PRPCA filter"], n_components=2, links=A, cv=3)
    names = {"X": X, "y": y, "links": gnomon.Links(A)}
    exec(result.snippet(), names)
    pipeline = result.pipeline
    expected = pipeline.fit_transform(X, model__links=gnomon.Links(A))
    assert_allclose(names["Z"], expected)


def test_the_table_becomes_a_data_frame_and_a_page():
    pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    result = gnomon.compare(X, y, models=["PCA", "LDA"], n_components=(1, 2), cv=2)
    frame = result.to_frame()
    assert len(frame) == 4
    assert frame.loc[0, "model"] == result.leader.model
    page = result._repr_html_()
    assert page.count("<tr") == 5
    assert f'bold"><td>{result.leader.model}</td>' in page
    assert repr(result) == str(result)
    assert repr(result).startswith(result.recommendation)


@pytest.fixture(scope="module")
def comparison():
    X, y = load_iris(return_X_y=True)
    settings = dict(n_components=(1, 2), cv=2, learning_curve=(2, 5))
    return gnomon.compare(X, y, models=["PCA", "LDA"], **settings)


@pytest.fixture
def plot(comparison):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield comparison.plot
    pyplot.close("all")


def test_the_figure_of_scores_has_a_line_for_each_model(comparison, plot):
    names = [label.get_text() for label in plot("scores").get_yticklabels()]
    assert {name.split(" ")[0] for name in names} == {"PCA", "LDA"}
    assert names[-1].startswith(comparison.leader.model)


@pytest.mark.parametrize("kind, at", [("dimension", [1, 2]), ("labels", [2, 5])])
def test_figures_of_curves_have_the_scores_of_each_model(comparison, plot, kind, at):
    rows = comparison.rows if kind == "dimension" else comparison.learning_curve
    field = "n_components" if kind == "dimension" else "labels"
    axes = plot(kind)
    for container in axes.containers:
        x, y = container[0].get_data()
        own = {getattr(r, field): r.score for r in rows if r.model == container.get_label()}
        assert list(x) == at
        assert_allclose(list(y), [own[value] for value in at])
    assert len(axes.containers) == 2


def test_the_figure_of_the_control_has_four_bars_a_model(comparison, plot):
    chosen = [row for row in comparison.rows if row.chosen]
    heights = [bar.get_height() for bar in plot("control").patches]
    fields = ("apparent", "score", "control_apparent", "control")
    assert_allclose(heights, [getattr(row, field) for field in fields for row in chosen])


def test_an_unknown_figure_is_refused(comparison):
    with pytest.raises(ValueError, match="kind == 'pie'; accepted are 'scores'"):
        comparison.plot("pie")


def test_a_comparison_without_a_learning_curve_says_so():
    X, y = load_iris(return_X_y=True)
    result = gnomon.compare(X, y, models=["PCA"], n_components=1, cv=2, control=False)
    with pytest.raises(ValueError, match="pass learning_curve to compare"):
        result.plot("labels")


@pytest.mark.parametrize("known", ["all", "some"])
def test_the_code_of_the_peer_of_our_own_runs(known):
    X, y = load_iris(return_X_y=True)
    y = y if known == "all" else np.where(np.arange(150) % 3, y, -1)
    result = gnomon.compare(X, y, models=["PLS"], n_components=2, cv=3)
    names = {"X": X, "y": y}
    exec(result.snippet(), names)
    assert "from gnomon.peers import PLSDiscriminant" in result.snippet()
    assert "gnomon.tools" not in result.snippet()
    assert_allclose(names["Z"], result.pipeline.fit(X, y).transform(X))


def test_the_code_takes_whole_numbers_for_numbers_where_that_was_said():
    """Integers are classes to a model that is not told otherwise."""
    X, y = load_diabetes(return_X_y=True)
    y = y.astype(int)
    result = gnomon.compare(X, y, models=["SPPCA"], n_components=1, cv=2, target="numeric")
    assert "target='numeric'" in result.snippet()
    names = {"X": X, "y": y}
    exec(result.snippet(), names)
    assert names["model"][-1].target_coding_.kind == "numeric"
    told = gnomon.compare(X, y.astype(float), models=["SPPCA"], n_components=1, cv=2)
    assert "target" not in told.snippet()
    assert_allclose(told.leader.score, result.leader.score)
