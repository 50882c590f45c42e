"""A fit that fails, and data at the edge of what numbers can hold, for every public estimator."""

import numpy as np
import pytest
from every import DEFAULTS, VARIANTS, fit, gap, outcome, outputs, rows
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from gnomon import from_loaders
from gnomon.inference.callbacks import Checkpoint

X, CLASSES = rows()
EQUAL = np.ones((len(X), 4))
OF_ROWS = ("transform", "posterior", "predict", "predict_proba", "score_samples", "impute")
OF_NOTHING = ("sample", "get_covariance", "get_precision", "get_feature_names_out", "get_support")


def uses(model):
    """What can be asked of a fitted model, as functions without arguments."""
    for name in OF_ROWS:
        if hasattr(model, name):
            yield name, lambda name=name: getattr(model, name)(X)
    for name in OF_NOTHING:
        if hasattr(model, name):
            yield name, lambda name=name: getattr(model, name)()
    if hasattr(model, "score"):
        yield "score", lambda: model.score(X, CLASSES)


@pytest.mark.parametrize("fitted_before", [False, True])
@pytest.mark.parametrize("name", DEFAULTS)
def test_a_fit_that_fails_leaves_a_model_that_is_not_fitted(name, fitted_before):
    model = clone(DEFAULTS[name])
    if fitted_before:
        fit(model, X, outputs(model, X, CLASSES))
    with pytest.raises(ValueError):
        fit(model, EQUAL, outputs(model, X, CLASSES))
    for use, ask in uses(model):
        with pytest.raises(NotFittedError):
            ask()
            pytest.fail(f"{use} has an answer")


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_fit_forgets_the_one_before(name):
    model = clone(DEFAULTS[name])
    fit(model, X, outputs(model, X, CLASSES))
    fit(model, X[:, 1:], outputs(model, X[:, 1:], CLASSES))
    fresh = fit(clone(DEFAULTS[name]), X[:, 1:], outputs(model, X[:, 1:], CLASSES))
    assert sorted(vars(model)) == sorted(vars(fresh))
    np.testing.assert_array_equal(outcome(model, X[:, 1:]), outcome(fresh, X[:, 1:]))


# Other data than those of a checkpoint


class CutError(Exception):
    pass


class Cut(Checkpoint):
    """Ends the fit after its second file."""

    def __call__(self, n_iter, state, objective):
        super().__call__(n_iter, state, objective)
        if n_iter == 2:
            raise CutError


def takes_checkpoint(name):
    """Whether a fit can be cut and gone on with: not one of several, nor draws."""
    single = "n_components=auto" not in name and "gibbs" not in name
    return single and "callback" in VARIANTS[name].get_params()


def cut_fit(model, path, data, known):
    """Whether a fit left a file; some have their answer before a second iteration."""
    model = clone(model).set_params(callback=Cut(path, every=1))
    if "tol" in model.get_params():
        model.set_params(tol=0.0)
    with pytest.raises(CutError):
        fit(model, data, known)
    return model.set_params(callback=Checkpoint(path, every=1))


def changes(model, known):
    """Other data: an entry, two rows in another order, other outputs or links of these."""
    order = np.arange(len(X))
    order[:2] = 1, 0
    other = X.copy()
    other[0, 0] += 1e-9
    yield other, known
    yield X[order], known
    if hasattr(model, "predict"):
        yield X, {"y": known["y"][order]}
        yield X[order], {"y": known["y"][order]}
    if "links" in known:
        weights = known["links"].copy()
        weights.data[0] = 0.9
        yield X, {"links": weights}


@pytest.mark.parametrize("name", [n for n in VARIANTS if takes_checkpoint(n)])
def test_a_checkpoint_of_other_rows_outputs_or_links_is_refused(name, tmp_path):
    model, path = VARIANTS[name], tmp_path / "fit.npz"
    known = outputs(model, X, CLASSES)
    try:
        resumed = cut_fit(model, path, X, known)
    except pytest.fail.Exception:
        pytest.skip("it has a closed form, or ends before its second iteration")
    for data, what in changes(model, known):
        with pytest.raises(ValueError, match="belongs to other data"):
            fit(resumed, data, what)


def test_a_checkpoint_of_other_weights_is_refused(tmp_path):
    model = DEFAULTS["PPCA"]
    resumed = cut_fit(clone(model).set_params(solver="em"), tmp_path / "fit.npz", X, {})
    with pytest.raises(ValueError, match="belongs to other data"):
        fit(resumed, X, {"sample_weight": 1.0 + CLASSES})


# Rows and outputs at the edge of what numbers can hold


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", DEFAULTS)
def test_rows_of_any_scale_give_their_map_or_a_clear_error(name, dtype):
    model, known = DEFAULTS[name], outputs(DEFAULTS[name], X, CLASSES)
    span = range(-36, 37, 9) if dtype == np.float32 else range(-300, 301, 50)
    safe = 12 if dtype == np.float32 else 150
    expected = normal(outcome(fit(clone(model), X.astype(dtype), known), X.astype(dtype)))
    for power in span:
        data = (X * 10.0**power).astype(dtype)
        try:
            with np.errstate(all="ignore"):
                found = normal(outcome(fit(clone(model), data, known), data))
        except ValueError as error:
            assert abs(power) > safe, f"1e{power} is within reach"
            assert "X" in str(error) and "rescale X" in str(error)
        else:
            # Where rounding alone decides where a fit ends, a few thousandths of the map are open.
            assert gap(found, expected) < 1e-2, f"another map at 1e{power}"


def normal(values):
    """An outcome in units of its own."""
    return values / np.abs(values).max()


@pytest.mark.parametrize("power", [-300, -200, -160, -100, 100, 150, 155, 200, 300])
@pytest.mark.parametrize("name", [n for n in DEFAULTS if not is_classifier(DEFAULTS[n])])
def test_outputs_of_any_scale_are_predicted_or_refused_in_clear_words(name, power):
    model = clone(DEFAULTS[name])
    if not hasattr(model, "predict"):
        pytest.skip("it predicts nothing")
    y, scale = X[:, 0] - X[:, 1] + 0.1 * X[:, 2], 10.0**power
    expected, spread = fit(model, X, {"y": y}).predict(X, return_std=True)
    try:
        found, deviations = fit(clone(model), X, {"y": scale * y}).predict(X, return_std=True)
    except ValueError as error:
        assert abs(power) > 150
        assert "y varies by" in str(error) and "rescale y" in str(error)
    else:
        assert_allclose(found / scale, expected, rtol=1e-3, atol=1e-3)
        assert_allclose(deviations / scale, spread, rtol=1e-3)


def predict_several(model):
    """Whether a fit takes several numbers a row."""
    return is_regressor(model) or "target" in model.get_params()


@pytest.mark.parametrize("name", [n for n in DEFAULTS if predict_several(DEFAULTS[n])])
@pytest.mark.parametrize("known", [X[:, 0], (X[:, 0] > 0).astype(float)])
def test_an_output_that_no_row_has_is_refused(name, known):
    Y = np.column_stack([known, np.full(len(X), np.nan)])
    with pytest.raises(ValueError, match="y has no known value in column 1"):
        fit(clone(DEFAULTS[name]), X, {"y": Y})


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0, 1e300])
@pytest.mark.parametrize("likelihood", [False, True])
@pytest.mark.parametrize("name", [n for n in DEFAULTS if predict_several(DEFAULTS[n])])
def test_an_output_that_does_not_vary_is_predicted_as_it_is(name, likelihood, value):
    model = clone(DEFAULTS[name])
    if "target" in model.get_params():
        model.set_params(target="numeric", supervision="likelihood" if likelihood else 0.5)
    assert_allclose(fit(model, X, {"y": np.full(len(X), value)}).predict(X), value, rtol=1e-12)


# Loaders


@pytest.mark.parametrize("later", [X[::-1], X + 1e-9, X[1:], X.astype(np.float32)])
@pytest.mark.parametrize("name", [n for n in DEFAULTS if n != "PRPCA"])
def test_a_loader_that_returns_other_rows_later_is_refused(name, later):
    calls = iter([X])
    data = from_loaders([lambda: next(calls, later)])
    with pytest.raises(ValueError, match=r"loaders\[0\] returns other rows"):
        fit(clone(DEFAULTS[name]), data, outputs(DEFAULTS[name], X, CLASSES))
