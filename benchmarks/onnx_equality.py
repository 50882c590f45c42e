"""Whether onnxruntime says of rows what the models say: the largest differences.

    python benchmarks/onnx_equality.py

Every linear model in every form of its output, on data that come with scikit-learn. The half of
the rows that a model is fitted to is not the half that is compared.
"""

import warnings

import numpy as np
import onnxruntime
from sklearn.datasets import load_breast_cancer, load_diabetes, load_linnerud, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import BSDR, DCAGM, PPCA, PRPCA, SPPCA, BSDRRegressor, Links, to_onnx

import measure

WINE, CULTIVARS = load_wine(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
EXERCISES = load_linnerud(return_X_y=True)
NAMES = np.array(["one", "two", "three"])[CULTIVARS]
LABELS = np.column_stack([CULTIVARS == 0, WINE[:, 0] > 13]).astype(float)
CASES = {
    "PPCA": (PPCA(2), (WINE, None)),
    "PRPCA": (PRPCA(2), (WINE, None)),
    "SPPCA, three classes": (SPPCA(2), (WINE, NAMES)),
    "SPPCA, two classes": (SPPCA(2), CANCER),
    "SPPCA, likelihood": (SPPCA(2, supervision="likelihood"), (WINE, NAMES)),
    "SPPCA, two labels": (SPPCA(2), (WINE, LABELS)),
    "SPPCA, a number": (SPPCA(2, target="numeric"), DIABETES),
    "SPPCA, three numbers": (SPPCA(2), EXERCISES),
    "DCAGM, three classes": (DCAGM(2), (WINE, NAMES)),
    "DCAGM, two classes": (DCAGM(2), CANCER),
    "BSDR, three classes": (BSDR(2), (WINE, NAMES)),
    "BSDR, two classes": (BSDR(1), CANCER),
    "BSDR, two labels": (BSDR(2), (WINE, LABELS)),
    "BSDRRegressor, a number": (BSDRRegressor(2), DIABETES),
    "BSDRRegressor, three numbers": (BSDRRegressor(2), EXERCISES),
}


def fitted(model, X, y):
    """The model after a scaler; links, where it takes them, are a chain of the rows."""
    links = {}
    if isinstance(model, PRPCA):
        links = {"prpca__links": Links.from_edges([(i, i + 1) for i in range(len(X) - 1)])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # iterations may run out: the comparison is the same
        return make_pipeline(StandardScaler(), model).fit(X, y, **links)


def said(model, X):
    """What the graph of a model says of rows, by the names of its outputs."""
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def differences(model, X):
    """Largest differences of coordinates, probabilities and predictions.

    Predicted numbers differ in units of their spread, predicted classes in the share of rows.
    """
    graph = said(model, X)
    cells = [largest(graph["coordinates"], model.transform(X)), "", ""]
    if "probabilities" in graph and hasattr(model, "predict_proba"):
        cells[1] = largest(graph["probabilities"], model.predict_proba(X))
    if "prediction" in graph:
        own = model.predict(X)
        if own.dtype.kind == "f":
            cells[2] = largest(graph["prediction"] / own.std(0), own / own.std(0))
        else:
            cells[2] = f"{np.mean(graph['prediction'] != own):.0%}"
    return cells


def largest(ours, theirs):
    return f"{np.abs(ours - theirs).max():.0e}"


def main():
    rows = []
    for name, (model, (X, y)) in CASES.items():
        order = np.random.default_rng(0).permutation(len(X))
        seen, unseen = np.array_split(order, 2)
        pipeline = fitted(model, X[seen], None if y is None else y[seen])
        rows.append([name, *differences(pipeline, X[unseen])])
    measure.write(
        "onnx_equality",
        "Models beside their ONNX graphs: the largest difference over unseen rows",
        ["model after a scaler", "coordinates", "probabilities", "predictions"],
        rows,
        [
            f"onnxruntime {onnxruntime.__version__}. Numbers differ in units of their spread, "
            "classes in the share of rows."
        ],
    )


if __name__ == "__main__":
    main()
