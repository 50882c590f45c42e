"""Every linear model says the same as an ONNX graph, run by onnxruntime."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_wine
from sklearn.decomposition import KernelPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from gnomon import BSDR, DCAGM, PPCA, PRPCA, SPPCA, BSDRRegressor, KernelSPPCA, Links, to_onnx
from gnomon.datasets import make_linked

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

X, Y = load_wine(return_X_y=True)
WORDS = np.array(["one", "two", "three"])[Y]
NUMBERS = load_diabetes(return_X_y=True)
PARTLY = np.where(np.arange(len(Y)) % 3 == 0, Y, -1)
SEVERAL = np.column_stack([Y == 0, Y == 1]).astype(float)
FEW = {"max_iter": 5, "tol": 0.1, "random_state": 0}


def scaled(model):
    return make_pipeline(StandardScaler(), model)


def run(model, rows, dtype="float64"):
    """Outputs of the graph of a model, by name."""
    session = onnxruntime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows.astype(dtype)}), strict=True))


CASES = {
    "PPCA": (PPCA(3), X, None),
    "PPCA in a pipeline": (scaled(PPCA(3)), X, None),
    "SPPCA, classes": (scaled(SPPCA(2)), X, PARTLY),
    "SPPCA, words": (scaled(SPPCA(2)), X, WORDS),
    "SPPCA, likelihood": (scaled(SPPCA(2, supervision="likelihood")), X, Y),
    "SPPCA, no outputs": (SPPCA(2), X, None),
    "SPPCA, a number": (SPPCA(2, target="numeric"), *NUMBERS),
    "SPPCA, two numbers": (SPPCA(2), NUMBERS[0], np.column_stack([NUMBERS[1], -NUMBERS[1]])),
    "SPPCA, several labels": (scaled(SPPCA(2)), X, SEVERAL),
    "DCAGM": (DCAGM(2, n_gaussians=2), X, PARTLY),
    "DCAGM, a covariance each": (DCAGM(2, covariance="gaussian"), X, WORDS),
    "BSDR, classes": (BSDR(2, **FEW), X, WORDS),
    "BSDR, two classes": (BSDR(1, **FEW), X[:130], Y[:130]),
    "BSDR, several labels": (BSDR(2, **FEW), X, SEVERAL),
    "BSDRRegressor": (BSDRRegressor(2, **FEW), *NUMBERS),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_graph_says_what_the_model_says(name):
    model, rows, y = CASES[name]
    model.fit(rows, y)
    found = run(model, rows)
    assert_allclose(found["coordinates"], model.transform(rows), rtol=1e-5, atol=1e-5)
    if "probabilities" in found and hasattr(model, "predict_proba"):
        assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-5)
    if y is not None:
        predicted = model.predict(rows)
        if predicted.dtype.kind == "f":
            assert_allclose(found["prediction"], predicted, rtol=1e-5)
        else:
            assert_array_equal(found["prediction"], predicted)


@pytest.mark.parametrize("factor", [0.125, 0.5])
def test_odds_that_are_half_believed_are_so_in_a_graph(factor):
    model = DCAGM(2).fit(X, PARTLY)
    before = model.predict_proba(X)
    model.class_sharpness_ = factor
    assert np.abs(model.predict_proba(X) - before).max() > 0.1
    assert_allclose(run(model, X)["probabilities"], model.predict_proba(X), atol=1e-5)


def test_rows_may_be_of_single_precision():
    model = scaled(SPPCA(2)).fit(X, Y)
    found = run(model, X, "float32")
    assert found["coordinates"].dtype == np.float32
    assert_allclose(found["coordinates"], model.transform(X), rtol=1e-4, atol=1e-4)


def test_content_of_linked_rows_has_a_graph():
    links = Links.from_edges([(i, i + 1) for i in range(len(X) - 1)])
    model = PRPCA(2).fit(X, links=links)
    assert_allclose(run(model, X)["coordinates"], model.transform(X), rtol=1e-5, atol=1e-5)


def test_a_graph_is_written_to_a_file(tmp_path):
    import onnx

    model = PPCA(2).fit(X)
    written = to_onnx(model, tmp_path / "map.onnx")
    assert onnx.load(tmp_path / "map.onnx") == written


def test_what_is_not_affine_is_refused():
    with pytest.raises(ValueError, match="model ends in KernelSPPCA; accepted are PPCA, PRPCA"):
        to_onnx(KernelSPPCA(2).fit(X[:40], Y[:40]))
    with pytest.raises(ValueError, match="the step 'kernelpca' of model is not known as affine"):
        to_onnx(make_pipeline(StandardScaler(), KernelPCA(3), PPCA(2)).fit(X))


def test_probabilities_of_scores_are_refused():
    model = SPPCA(2, supervision="likelihood", likelihood="probit").fit(X, Y)
    with pytest.raises(ValueError, match="model has a probit likelihood"):
        to_onnx(model)


def test_a_scaler_that_clips_is_refused():
    with pytest.raises(ValueError, match="the step 'minmaxscaler'"):
        to_onnx(make_pipeline(MinMaxScaler(clip=True), PPCA(2)).fit(X))


def test_links_are_refused_where_a_model_uses_them():
    sample = make_linked(120, random_state=0)
    labels = np.where(np.arange(120) % 2 == 0, sample.y, -1)
    model = SPPCA(2).fit(sample.X, labels, links=Links(sample.adjacency))
    assert model.links_used_
    with pytest.raises(ValueError, match="model uses links"):
        to_onnx(model)


def test_draws_are_refused():
    model = BSDR(1, inference="gibbs", n_draws=4, n_warmup=1, n_chains=1, **FEW)
    with pytest.warns(UserWarning):
        model.fit(X[:130], Y[:130])
    with pytest.raises(ValueError, match="inference='gibbs'"):
        to_onnx(model)


def test_booleans_are_classes_of_a_graph_and_dates_are_refused():
    model = SPPCA(2).fit(X, Y > 0)
    named = run(model, X)["prediction"]
    assert named.dtype == bool
    assert_array_equal(named, model.predict(X))
    days = np.array(["2021-01-01", "2021-01-02", "2021-01-03"], dtype="M8[D]")[Y]
    with pytest.raises(ValueError, match="accepted are texts, numbers and booleans"):
        to_onnx(SPPCA(2).fit(X, days))
