"""Probabilistic dimensionality reduction that uses what you know."""

from importlib import import_module

__version__ = "0.1.0"

# Public names are imported when first used, so that `import gnomon` costs next to nothing.
_HOMES: dict[str, str] = {
    "Links": "gnomon.estimators.links",
    "LabelledOnly": "gnomon.estimators.labelled",
    "SemiSupervisedSplit": "gnomon.estimators.selection",
    "labelled_scorer": "gnomon.estimators.labelled",
    "load": "gnomon.tools.modelfile",
    "save": "gnomon.tools.modelfile",
    "PPCA": "gnomon.estimators.ppca",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'gnomon' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted([*globals(), *_HOMES])
