"""Every public estimator, found by the public names: a new model is tested without a new test."""

import inspect
import re
import warnings

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

import gnomon

# Options of a constructor that say what y holds; every other one is varied.
ABOUT_Y = {"target"}
# Fewer draws than a user would take; what is asked of them here needs no more.
SMALL = {"n_chains": 2, "n_draws": 50, "n_warmup": 20}
LINKED = ("PRPCA",)
# t-SNE of a map is a picture of it and no model: a rounding may lay it out in another way.
PICTURES = ("NeighbourLayout",)
# Options that are read only with these values of others.
OF_LIKELIHOOD, OF_PAPER = {"supervision": "likelihood"}, {"relation": "paper"}
READ_WITH = {
    "SPPCA": dict.fromkeys(("solver", "noise", "target_mean", "likelihood"), OF_LIKELIHOOD),
    "PRPCA": dict.fromkeys(("solver", "projection", "prior"), OF_PAPER)
    | {"n_components": OF_PAPER | {"prior": "ard"}},
}


def constructors() -> list[type]:
    """The public classes that fit and need no argument to be made."""
    found = [getattr(gnomon, name) for name in gnomon.__all__ if name not in PICTURES]
    return [kind for kind in found if isinstance(kind, type) and _is_estimator(kind)]


def _is_estimator(kind):
    parameters = inspect.signature(kind).parameters.values()
    return issubclass(kind, BaseEstimator) and all(p.default is not p.empty for p in parameters)


def make(kind, **parameters):
    """An estimator with a seed, and few draws."""
    known = inspect.signature(kind).parameters
    chosen = {"random_state": 0, **SMALL, **parameters}
    return kind(**{name: value for name, value in chosen.items() if name in known})


def options(kind) -> dict[str, list[str]]:
    """The words that each parameter accepts, as the docstring of the class lists them."""
    found = re.findall(r"^    (\w+) : (.*)$", inspect.getdoc(kind).replace("\n", "\n    "), re.M)
    known = inspect.signature(kind).parameters
    words = {name: re.findall(r'"(\w+)"', text) for name, text in found if name in known}
    return {name: ws for name, ws in words.items() if ws and name not in ABOUT_Y}


def variants(kind) -> dict[str, dict]:
    """Parameters by name: the default, and every option in turn."""
    found: dict[str, dict] = {kind.__name__: {}}
    needed = READ_WITH.get(kind.__name__, {})
    for name, words in options(kind).items():
        default = inspect.signature(kind).parameters[name].default
        for word in set(words) - {default}:
            chosen = needed.get(name, {}) | {name: word}
            found[", ".join([kind.__name__, *(f"{k}={v}" for k, v in chosen.items())])] = chosen
    return dict(sorted(found.items()))


DEFAULTS = {kind.__name__: make(kind) for kind in constructors()}
VARIANTS = {
    name: make(kind, **parameters)
    for kind in constructors()
    for name, parameters in variants(kind).items()
}


def rows(n=45, d=5, n_classes=3, seed=0):
    """Rows X around the centres of their classes, and the classes."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % n_classes
    centres = rng.normal(size=(n_classes, d))
    while n_classes == 3 and d > 3 and nearly_on_a_line(centres):
        centres = rng.normal(size=(n_classes, d))
    return 3 * centres[classes] + rng.normal(size=(n, d)), classes


def nearly_on_a_line(centres):
    """Whether one axis tells the three classes apart, so that the second of a map is of noise."""
    return np.linalg.svd(centres - centres.mean(axis=0), compute_uv=False)[1] < 1.2


def outputs(model, X, classes) -> dict:
    """What ``fit`` of this model takes besides X."""
    if type(model).__name__ in LINKED:
        return {"links": ring(len(X))}
    if is_regressor(model):
        return {"y": X @ np.linspace(-1, 1, X.shape[1]) + 0.1 * np.sin(np.arange(len(X)))}
    takes = "y" in inspect.signature(model.fit).parameters
    return {"y": classes} if takes else {}


def ring(n):
    """Every node linked with the next one of its class."""
    ahead = (np.arange(n) + 3) % n
    return sparse.csr_array((np.ones(n), (np.arange(n), ahead)), shape=(n, n))


def fit(model, X, known):
    """The model fitted, silently: warnings are for people."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, **known)


def outcome(model, X) -> np.ndarray:
    """What the model says of rows, free of the signs and of the turn of axes."""
    if hasattr(model, "transform"):
        Z = np.asarray(model.transform(X), dtype=float)
        return Z @ Z.T
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


def span(model, X) -> np.ndarray:
    """The projection on the span of the coordinates of rows, or of the outcome there is."""
    values = model.transform(X) if hasattr(model, "transform") else outcome(model, X)
    U, lengths, _ = np.linalg.svd(values, full_matrices=False)
    U = U[:, lengths > 1e-3 * lengths[0]]  # a component that was left out ends at up to 1e-4
    return U @ U.T


def gap(found, expected) -> float:
    """Relative difference of two outcomes."""
    return float(np.linalg.norm(found - expected) / (np.linalg.norm(expected) or 1.0))


def fit_and_say(name) -> np.ndarray:
    """The outcome of a default estimator on planted rows, in whatever process this runs."""
    X, classes = rows()
    model = clone(DEFAULTS[name])
    return outcome(fit(model, X, outputs(model, X, classes)), X)
