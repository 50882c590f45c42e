"""Every public estimator survives a model file bit for bit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris

import gnomon
from gnomon.tools import modelfile

pytest.importorskip("safetensors")

# What wraps another estimator is not a model of its own.
WRAPPERS = {"LabelledOnly", "SemiSupervisedSplit"}


def estimators():
    for name in sorted(gnomon._HOMES):
        found = getattr(gnomon, name)
        if isinstance(found, type) and issubclass(found, BaseEstimator) and name not in WRAPPERS:
            yield name


VARIANTS = {
    "BSDR": [{}, {"prior": "column"}],
    "KernelSPPCA": [{}],
    "PPCA": [{}, {"n_components": "auto"}, {"solver": "em", "max_iter": 20}],
    "PRPCA": [{"relation": "paper"}, {"relation": "filter"}, {"relation": "learnt"}],
    "SPPCA": [{}, {"supervision": "likelihood"}],
}
CASES = [(name, options) for name in estimators() for options in VARIANTS.get(name, [{}])]
METHODS = ("transform", "predict", "predict_proba", "score_samples", "impute")


def fitted(name, options):
    X, y = load_iris(return_X_y=True)
    classes = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    targets = X[:, 3] if name.endswith("Regressor") else classes
    model = getattr(gnomon, name)(**options)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    more = {}
    if name == "PRPCA":
        pairs = np.column_stack([np.arange(149), np.arange(1, 150)])
        more["links"] = gnomon.Links.from_edges(pairs)
    return model.fit(X[:, :3], targets, **more), X[:, :3]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: str(value))
def test_a_model_comes_back_bit_for_bit(name, options, tmp_path):
    model, X = fitted(name, options)
    back = modelfile.load(modelfile.save(model, tmp_path / "m.gnomon"))
    assert type(back) is type(model)
    assert vars(back).keys() == vars(model).keys()
    assert repr(back.get_params()) == repr(model.get_params())
    for method in METHODS:
        if hasattr(model, method):
            assert_array_equal(getattr(back, method)(X), getattr(model, method)(X))
    again = modelfile.save(back, tmp_path / "again.gnomon")
    assert again.read_bytes() == (tmp_path / "m.gnomon").read_bytes()
