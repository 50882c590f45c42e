"""Which model a question asks of a table, with how many dimensions, and what its fit takes."""

from typing import Any, NamedTuple

import numpy as np

import gnomon
from gnomon.estimators import LARGE, NEIGHBOURS, SIZE_OF_LARGE, SIZES, count
from gnomon.exceptions import TableError
from gnomon.tools.dimension import DimensionChoice
from gnomon.tools.prepare import PreparedTable, Question

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


# Models that take links beside a target.
LINKED = ("sppca", "kernel-sppca")


# Dimensions of a map that is laid out: a plane shows its neighbours, so it need not be small.
LAID_OUT = 10


class ChosenModel(NamedTuple):
    """An estimator, not fitted, and how its number of dimensions was chosen, if it was."""

    model: Any
    choice: DimensionChoice | None


def choose_model(asked: Question, ready: PreparedTable, note, **options) -> ChosenModel:
    """The estimator that the question asks for, or the one for what is known of the table.

    The options are those of `gnomon.choose_dimension`.
    """
    name = _name(asked, ready)
    _check(name, asked, ready)
    public = "BSDRRegressor" if name == "bsdr" and ready.kind == "numeric" else MODELS[name]
    cls = getattr(gnomon, public)
    components, choice = _for_layout(asked, name, ready, note), None
    own = name in OWN_CHOICE and np.prod(ready.X.shape) <= LARGE
    # By labels and links together a model of linked rows chooses for itself.
    own = own or (ready.links is not None and name in LINKED and ready.y is not None)
    if components == "auto" and not own:
        components, choice = _dimension(public, ready, note, {"progress": False} | options)
    asked = asked._replace(components=components)
    return ChosenModel(cls(**_parameters(cls, asked, name, ready.kind)), choice)


def _for_layout(asked, name, ready, note):
    """The number of dimensions asked for; for a layout more than a plane has."""
    if (asked.components, asked.layout) != ("auto", NEIGHBOURS) or name in OWN_CHOICE:
        return asked.components
    size = max(1, min(LAID_OUT, ready.X.shape[1] - 1, ready.X.shape[0] - 1))
    taken = count(size, "dimension was", "dimensions were")
    note(f"{taken} taken, which the layout shows together; say --components to change it")
    return size


def _name(asked, ready):
    if asked.model != "auto":
        return asked.model.lower()
    if ready.links is not None:
        return "prpca" if ready.y is None else "sppca"
    return "ppca" if ready.y is None else "sppca"


def _check(name, asked, ready):
    if name not in MODELS:
        raise TableError(f"--model {name!r}; accepted are auto, {', '.join(MODELS)}")
    if name in ("dcagm", "bsdr") and ready.y is None:
        raise TableError(f"--model {name} learns from labels; name their column with --target")
    if name == "dcagm" and ready.kind in ("numeric", "multilabel"):
        what = "numbers" if ready.kind == "numeric" else "yes and no"
        held = f"{', '.join(map(repr, asked.targets))} hold{'s' * (len(asked.targets) == 1)}"
        raise TableError(f"--model dcagm predicts classes; {held} {what}")
    judged = name in LINKED or asked.links == NEIGHBOURS
    if asked.links is not None and ready.y is None and judged:
        what = NEIGHBOURS if asked.links == NEIGHBOURS else f"with {name}"
        raise TableError(f"--links {what} needs a --target, by which links are judged")
    joined = LINKED if asked.links == NEIGHBOURS else ("prpca", *LINKED)
    for option, only in (("links", joined), ("chunks", ("dcagm", *LINKED))):
        if getattr(asked, option) is not None and name not in only:
            raise TableError(f"--{option} is for {', '.join(only)}, not for {name}")


def _dimension(public, ready, note, options):
    """The number of dimensions that predicts held-out labels best, or a stated guess."""
    n, d = ready.X.shape
    guess = max(1, min(SIZE_OF_LARGE, d - 1, n - 1))
    if n * d > LARGE:
        note(
            f"the table is large, so {count(guess, 'dimension was', 'dimensions were')} taken; "
            "say --components to change it"
        )
        return guess, None
    if ready.y is None:
        model = gnomon.PPCA(n_components="auto", random_state=0).fit(ready.X)
        return model.n_components_, None
    sizes = [size for size in SIZES if size < min(n // 2, d)] or [1]
    options |= {"models": [public], "n_components": sizes, "target": ready.kind}
    try:
        choice = gnomon.choose_dimension(ready.X, ready.y, **options)
    except ValueError as error:
        size = min(2, guess)
        taken = count(size, "dimension was", "dimensions were")
        note(f"{taken} taken, since the number could not be chosen: {error}")
        return size, None
    if not choice.chosen:
        taken = count(min(2, guess), "dimension was", "dimensions were")
        note(f"{taken} taken, since the time limit left no time to choose the number")
        return min(2, guess), None
    ((name, size),) = choice.chosen.items()
    taken = count(size, "dimension was", "dimensions were")
    note(f"{taken} taken, by the {choice.criterion} of rows held out: {choice.reasons[name]}")
    return size, choice


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


def extra_inputs(model, ready: PreparedTable) -> dict:
    """What else the model's fit takes of this table."""
    more = {}
    if ready.links is not None and type(model).__name__ in ("PRPCA", "SPPCA", "KernelSPPCA"):
        more["links"] = ready.links
    if ready.chunks is not None and type(model).__name__ in ("DCAGM", "SPPCA", "KernelSPPCA"):
        more["chunks"] = ready.chunks
    return more
