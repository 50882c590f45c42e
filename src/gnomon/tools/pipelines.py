"""scikit-learn's classes that a model file may hold, and what each may have in it.

A file names a class; only those of `ALLOWED` are built. Their parameters are plain values, their
fitted attributes those that are listed, each checked: what a wrong one would do is up to loops
that trust them. The same checks hold when a file is written and when it is read.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from gnomon.exceptions import ModelFileError

WAY_OUT = (
    "save the gnomon model in it alone, or keep the whole by joblib at your own risk, since that "
    "runs code when it loads"
)
# How many processes work is up to the machine that loads, and so is a memory of stop words.
NOT_KEPT = ("n_jobs", "_stop_words_id")
OUTPUTS = ("default", "pandas", "polars")
INSTEAD = ("drop", "passthrough", None)


class Allowed(NamedTuple):
    """Where a class is, the checks of its fitted attributes, and what its parameters may be."""

    home: str
    attributes: Mapping[str, Callable] = MappingProxyType({})
    parameters: Mapping[str, Callable] = MappingProxyType({})


def find_class(name) -> type:
    """The class of scikit-learn with this name, which is on the list."""
    return getattr(import_module(ALLOWED[name].home), name)


def parts(model, where):
    """Parameters and fitted attributes of an estimator as a file keeps them, checked."""
    params = model.get_params(deep=False)
    kept = {key: value for key, value in vars(model).items() if key not in (*params, *NOT_KEPT)}
    kept = {key: _whole_numbers(value) for key, value in kept.items() if key != "_skl_callbacks"}
    params |= dict.fromkeys(NOT_KEPT[:1], None) if "n_jobs" in params else {}
    check(type(model), params, kept, where)
    return params, kept


def _whole_numbers(value):
    """A vocabulary with Python's integers: NumPy's would be an array each."""
    if isinstance(value, dict) and all(isinstance(entry, np.integer) for entry in value.values()):
        return {key: int(entry) for key, entry in value.items()}
    return value


def build(cls, params, attributes):
    """The fitted estimator of checked parameters and attributes."""
    check(cls, params, attributes, f"the file's {cls.__name__}")
    model = cls(**params)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def check(cls, params, attributes, where):
    """Raise where a parameter or an attribute is not one that the class may have in a file."""
    allowed = ALLOWED[cls.__name__]
    defaults = {key: value.default for key, value in signature(cls).parameters.items()}
    for name, value in params.items():
        if name not in defaults:
            raise ModelFileError(f"{where} has {name!r}, which is no parameter of {cls.__name__}")
        accepts = (
            allowed.parameters.get(name) or PARAMETERS.get(name) or _plain_like(defaults[name])
        )
        if not accepts(value):
            raise ModelFileError(f"{where}.{name} is {_shown(value)}, {_refused(name)}")
    _check_attributes(cls.__name__, attributes, where)


def _check_attributes(name, attributes, where):
    known = COMMON | ALLOWED[name].attributes
    for key, value in attributes.items():
        if key not in known:
            raise ModelFileError(
                f"{where} has {key!r}, which is no fitted attribute of {name} that a model file "
                f"holds; {WAY_OUT}"
            )
        if not known[key](value, attributes):
            raise ModelFileError(f"{where}.{key} is {_shown(value)}, which no fitted {name} has")


def _refused(name):
    return f"which a model file does not hold as {name}; {WAY_OUT}"


def _shown(value):
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    return repr(value)[:80]


# Parameters


def _one_of(*values):
    return lambda value: any(value is v or (isinstance(v, str) and value == v) for v in values)


def _plain_like(default):
    """Plain values; for a switch, True or False."""
    return (lambda v: isinstance(v, bool)) if isinstance(default, bool) else is_plain


def is_plain(value) -> bool:
    """Whether a value is made of numbers, texts, None, types of numbers and arrays of these."""
    if isinstance(value, list | tuple):
        return all(is_plain(part) for part in value)
    if isinstance(value, dict):
        return is_plain([*value.keys(), *value.values()])
    if isinstance(value, type):
        return issubclass(value, np.generic | float | int | str)
    return value is None or isinstance(
        value, bool | int | float | str | np.generic | np.ndarray | np.dtype | slice
    )


def _is_step(value):
    """An estimator, which the file could only have from the list, or a word instead of one."""
    return isinstance(value, BaseEstimator) or _one_of(*INSTEAD)(value)


def _are_steps(value):
    """Names with estimators, and with columns where they are for some."""
    return isinstance(value, list) and all(_is_entry(entry) for entry in value)


def _is_entry(entry):
    if not isinstance(entry, tuple) or len(entry) not in (2, 3) or not isinstance(entry[0], str):
        return False
    return _is_step(entry[1]) and all(_are_columns(columns) for columns in entry[2:])


def _are_columns(value):
    """Names, numbers, a mask or a slice; a function would be code."""
    many = isinstance(value, list | np.ndarray)
    kinds = str | bool | int | np.integer | np.bool_
    return isinstance(value, kinds | slice) or (many and all(isinstance(v, kinds) for v in value))


# By name, in whichever class: what would take a function or a path takes its default.
PARAMETERS = {
    "steps": _are_steps,
    "transformers": _are_steps,
    "transformer_list": _are_steps,
    "remainder": _is_step,
    "memory": _one_of(None),
    "n_jobs": _one_of(None),
    "tokenizer": _one_of(None),
    "preprocessor": _one_of(None),
    "analyzer": _one_of("word", "char", "char_wb"),
    "input": _one_of("content"),
    "feature_name_combiner": _one_of("concat"),
    "random_state": lambda value: value is None or isinstance(value, int | np.integer),
}


# Fitted attributes: each check takes the value and all attributes of the estimator.


def _flag(value, _):
    return isinstance(value, bool | np.bool_)


def _text(value, _):
    return isinstance(value, str)


def _count(value, _):
    return isinstance(value, int | np.integer) and value >= 0


def _numbers(value, _):
    return np.ndim(value) <= 1 and np.asarray(value).dtype.kind in "biuf"


def _is_array(value, kinds="biuf"):
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds


def _per_feature(value, fitted):
    return value is None or (_is_array(value) and value.shape == (fitted.get("n_features_in_"),))


def _fillings(value, fitted):
    return _is_array(value, "biufUO") and value.shape == (fitted.get("n_features_in_"),)


def _directions(value, fitted):
    return _is_array(value) and value.ndim == 2 and value.shape[1] == fitted.get("n_features_in_")


def _names(value, fitted):
    right = _is_array(value, "UO") and value.ndim == 1 and all(isinstance(v, str) for v in value)
    return right and len(value) == fitted.get("n_features_in_", len(value))


def _any_names(value, _):
    return _names(value, {})


def _type(value, _):
    return isinstance(value, np.dtype) and value.kind in "biufUO"


def _plain_output(value, _):
    known = isinstance(value, dict) and set(value) == {"transform"}
    return known and value["transform"] in OUTPUTS


def _is_a(name):
    return lambda value, _: type(value).__name__ == name and isinstance(value, BaseEstimator)


def _vocabulary(value, _):
    """Words with the numbers from 0 on, each once: SciPy's loops trust them as columns."""
    if not isinstance(value, dict) or not all(isinstance(word, str) for word in value):
        return False
    numbers = list(value.values())
    return all(type(n) is int for n in numbers) and sorted(numbers) == list(range(len(numbers)))


def _categories(value, fitted):
    right = isinstance(value, list) and len(value) == fitted.get("n_features_in_")
    return right and all(_is_array(levels, "biufUOM") and levels.ndim == 1 for levels in value)


def _arrays_or_none(value, fitted):
    """For each feature the numbers of some of its levels, or None."""
    if not isinstance(value, list) or len(value) != fitted.get("n_features_in_"):
        return False
    return all(v is None or (_is_array(v, "iu") and v.ndim == 1) for v in value)


def _groups(value, fitted):
    """For each feature the group of each level, or None; groups are counted from 0."""
    if not _arrays_or_none(value, fitted):
        return False
    pairs = zip(value, fitted["categories_"], strict=True)
    return all(g is None or (len(g) == len(levels) and g.min() >= 0) for g, levels in pairs)


def _widths(fitted):
    """How many indicators the levels of each feature have before one is dropped."""
    groups = (
        fitted.get("_default_to_infrequent_mappings") if fitted["_infrequent_enabled"] else None
    )
    pairs = zip(fitted["categories_"], groups or [None] * len(fitted["categories_"]), strict=True)
    return [len(levels) if group is None else int(group.max()) + 1 for levels, group in pairs]


def _dropped(value, fitted):
    """For each feature the place of the indicator that is dropped, or None."""
    if value is None:
        return True
    if not _is_array(value, "iuO") or value.shape != (fitted.get("n_features_in_"),):
        return False
    return all(d is None or (_count(d, None) and d < len(c)) for d, c in _levels(value, fitted))


def _levels(value, fitted):
    return zip(value, fitted["categories_"], strict=True)


def _indicator_counts(value, fitted):
    """As many indicators as there are: SciPy's loops trust the counts as columns."""
    widths, dropped = _widths(fitted), fitted["_drop_idx_after_grouping"]
    if dropped is not None:
        if any(d is not None and d >= w for d, w in zip(dropped, widths, strict=True)):
            return False
        widths = [w - (d is not None) for w, d in zip(widths, dropped, strict=True)]
    return isinstance(value, list) and value == widths and all(type(n) is int for n in value)


def _places(value, _):
    """For names, numbers or slices of columns."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        return False
    return all(_are_columns(columns) for columns in value.values())


def _missing_places(value, _):
    return isinstance(value, dict) and all(_count(n, _) for n in (*value, *value.values()))


COMMON = {
    "n_features_in_": _count,
    "feature_names_in_": _names,
    "_sklearn_output_config": _plain_output,
}
OF_WORDS = {"vocabulary_": _vocabulary, "fixed_vocabulary_": _flag}
OF_LEVELS = {
    "categories_": _categories,
    "_infrequent_enabled": _flag,
    "_infrequent_indices": _arrays_or_none,
    "_default_to_infrequent_mappings": _groups,
}
OF_DIRECTIONS = {
    "components_": _directions,
    "explained_variance_": _numbers,
    "explained_variance_ratio_": _numbers,
    "singular_values_": _numbers,
}
PREPROCESSING, TEXTS = "sklearn.preprocessing", "sklearn.feature_extraction.text"


def _scaler(*names):
    return Allowed(
        PREPROCESSING, dict.fromkeys(names, _per_feature) | {"n_samples_seen_": _numbers}
    )


ALLOWED = {
    "StandardScaler": _scaler("mean_", "var_", "scale_"),
    "MinMaxScaler": _scaler("min_", "scale_", "data_min_", "data_max_", "data_range_"),
    "MaxAbsScaler": _scaler("scale_", "max_abs_"),
    "RobustScaler": _scaler("center_", "scale_"),
    "Normalizer": Allowed(PREPROCESSING),
    "PowerTransformer": Allowed(
        PREPROCESSING, {"lambdas_": _per_feature, "_scaler": _is_a("StandardScaler")}
    ),
    "OneHotEncoder": Allowed(
        PREPROCESSING,
        OF_LEVELS
        | {"drop_idx_": _dropped, "_drop_idx_after_grouping": _dropped}
        | {"_n_features_outs": _indicator_counts},
    ),
    "OrdinalEncoder": Allowed(PREPROCESSING, OF_LEVELS | {"_missing_indices": _missing_places}),
    # The identity, as which a fitted ColumnTransformer keeps "passthrough".
    "FunctionTransformer": Allowed(
        PREPROCESSING,
        parameters={
            "func": _one_of(None),
            "inverse_func": _one_of(None),
            "kw_args": _one_of(None),
            "inv_kw_args": _one_of(None),
            "feature_names_out": _one_of(None, "one-to-one"),
        },
    ),
    "SimpleImputer": Allowed(
        "sklearn.impute",
        {
            "statistics_": _fillings,
            "indicator_": lambda value, _: value is None or _is_a("MissingIndicator")(value, _),
            "_fit_dtype": _type,
            "_fill_dtype": _type,
        },
    ),
    "MissingIndicator": Allowed(
        "sklearn.impute", {"features_": _numbers, "_n_features": _count, "_precomputed": _flag}
    ),
    "PCA": Allowed(
        "sklearn.decomposition",
        OF_DIRECTIONS
        | {"mean_": _per_feature, "noise_variance_": _numbers, "_fit_svd_solver": _text}
        | {"n_components_": _count, "n_samples_": _count},
    ),
    "TruncatedSVD": Allowed("sklearn.decomposition", OF_DIRECTIONS),
    "VarianceThreshold": Allowed("sklearn.feature_selection", {"variances_": _per_feature}),
    "CountVectorizer": Allowed(TEXTS, OF_WORDS),
    "TfidfTransformer": Allowed(TEXTS, {"idf_": _per_feature}),
    "TfidfVectorizer": Allowed(TEXTS, OF_WORDS | {"_tfidf": _is_a("TfidfTransformer")}),
    "ColumnTransformer": Allowed(
        "sklearn.compose",
        {
            "transformers_": lambda value, _: _are_steps(value),
            "_columns": lambda value, _: all(_are_columns(columns) for columns in value),
            "_transformer_to_input_indices": _places,
            "_remainder": lambda value, _: _is_entry(value),
            "sparse_output_": _flag,
            "output_indices_": _places,
            "_transformers_feature_names_out": _any_names,
        },
    ),
    "FeatureUnion": Allowed("sklearn.pipeline"),
    "Pipeline": Allowed("sklearn.pipeline"),
}
