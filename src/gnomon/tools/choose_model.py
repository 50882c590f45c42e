"""The model that a question asks for, its number of dimensions, and what its fit takes."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

import gnomon
from gnomon.exceptions import TableError
from gnomon.linalg.data import has_gaps
from gnomon.tools.compare.scoring import LARGE
from gnomon.tools.dimension import DimensionChoice
from gnomon.tools.prepare import PreparedTable, Question, without_gaps

MODELS = {
    "ppca": "PPCA",
    "sppca": "SPPCA",
    "kernel-sppca": "KernelSPPCA",
    "prpca": "PRPCA",
    "dcagm": "DCAGM",
    "bsdr": "BSDR",
}
# Models that choose their own number of dimensions.
OWN_CHOICE = ("ppca", "bsdr")
# Sizes that are tried for the others; a picture has two dimensions at least.
SIZES = (2, 3, 5, 8, 13)
# What is taken for a table that is too large to try sizes on.
MOST_COMPONENTS = 10
# Entries of a table whose products take less time than starting threads for them.
SMALL = 1e6


class ChosenModel(NamedTuple):
    """An estimator, not fitted, and how its number of dimensions was chosen, if it was."""

    model: Any
    choice: DimensionChoice | None


def choose_model(asked: Question, ready: PreparedTable, note, *, progress=False) -> ChosenModel:
    """The estimator that the question asks for, or the one for what is known of the table."""
    name = _name(asked, ready)
    _check(name, asked, ready)
    public = "BSDRRegressor" if name == "bsdr" and ready.kind == "numeric" else MODELS[name]
    cls = getattr(gnomon, public)
    components, choice = asked.components, None
    own = name in OWN_CHOICE and np.prod(ready.X.shape) <= LARGE
    if components == "auto" and not own:
        components, choice = _dimension(public, ready, note, progress)
    asked = asked._replace(components=components)
    return ChosenModel(cls(**_parameters(cls, asked, name, ready.kind)), choice)


def _name(asked, ready):
    if asked.model != "auto":
        return asked.model.lower()
    if ready.links is not None:
        return "prpca"
    if ready.chunks is not None:
        return "dcagm"
    return "ppca" if ready.y is None else "sppca"


def _check(name, asked, ready):
    if name not in MODELS:
        raise TableError(f"--model {name!r}; accepted are auto, {', '.join(MODELS)}")
    if name in ("dcagm", "bsdr") and ready.y is None:
        raise TableError(f"--model {name} learns from labels; name their column with --target")
    if name == "dcagm" and ready.kind == "numeric":
        raise TableError(f"--model dcagm predicts classes; {asked.target!r} holds numbers")
    for option, only in (("links", "prpca"), ("chunks", "dcagm")):
        if getattr(asked, option) is not None and name != only:
            raise TableError(f"--{option} is for {only}, not for {name}")


def _dimension(public, ready, note, progress):
    """The number of dimensions that predicts held-out labels best, or a stated guess."""
    n, d = ready.X.shape
    guess = max(1, min(MOST_COMPONENTS, d - 1, n - 1))
    if n * d > LARGE:
        note(f"the table is large, so {guess} dimensions were taken; say --components to change it")
        return guess, None
    if ready.y is None:
        model = gnomon.PPCA(n_components="auto", random_state=0).fit(ready.X)
        return model.n_components_, None
    sizes = [size for size in SIZES if size < min(n // 2, d)] or [1]
    options = {"models": [public], "n_components": sizes, "progress": progress}
    try:
        choice = gnomon.choose_dimension(ready.X, ready.y, target=ready.kind, **options)
    except ValueError as error:
        size = min(2, guess)
        note(f"{size} dimensions were taken; they could not be chosen: {error}")
        return size, None
    return choice.chosen.get(public, min(2, guess)), choice


def _parameters(cls, asked, name, kind):
    known = cls().get_params()
    wanted = {"n_components": asked.components, "random_state": asked.seed}
    if kind is not None:
        wanted["target"] = kind
    if asked.supervision is not None:
        if "supervision" not in known:
            raise TableError(f"--supervision is for sppca and kernel-sppca, not for {name}")
        wanted["supervision"] = asked.supervision
    return {key: value for key, value in wanted.items() if key in known}


def limit_threads(X):
    """One thread for products with a small X, from now on: starting more takes longer."""
    if np.prod(X.shape) <= SMALL:
        threadpool_limits(1, user_api="blas")


def fill_gaps(model, X, recipe, note):
    """X as the model takes it: one that takes no gaps gets column means of the fit, and a note."""
    if get_tags(model).input_tags.allow_nan or not has_gaps(X):
        return X
    gaps = int(np.isnan(X).sum())
    note(f"{type(model).__name__} takes no gaps; {gaps} were filled with column means")
    return without_gaps(X, recipe)


def extra_inputs(model, ready: PreparedTable) -> dict:
    """What else the model's fit takes of this table."""
    more = {}
    if ready.links is not None and type(model).__name__ == "PRPCA":
        more["links"] = ready.links
    if ready.chunks is not None and type(model).__name__ == "DCAGM":
        more["chunks"] = ready.chunks
    return more
