"""Outputs of every kind as columns of numbers, and back.

Classes become orthonormal contrasts, numbers are standardised, 0/1 indicators stay. A mask
says which entries are known: -1 or None hides the class of a row, NaN an entry of a matrix.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.estimators._targets import UNLABELLED, contrasts, encode_classes, has_classes, is_absent

KINDS = ("auto", "classes", "numeric", "multilabel")
NO_CLASSES = np.empty(0)


class Coding(NamedTuple):
    """How outputs became columns: y = center + scale * column, or contrasts of the classes."""

    kind: str
    classes: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    one_column: bool


class Targets(NamedTuple):
    """Columns Y (n, c), zero where not observed, the mask of observed entries, the coding.

    ``codes`` holds the class number of every row, -1 where unlabelled; None without classes.
    """

    Y: np.ndarray
    observed: np.ndarray
    coding: Coding
    codes: np.ndarray | None = None


def encode_targets(y, n_samples, target="auto", weights=None) -> Targets:
    """Classes as orthonormal contrasts, numbers standardised, indicators as they are.

    Detected by type: strings, integers, booleans and categories are classes; floats are
    numbers, unless they are few whole numbers that repeat; a matrix is multilabel where all
    its entries are 0, 1 or NaN, and numeric otherwise.
    """
    if y is None:
        return _no_targets(n_samples)
    kind = _detect_kind(y) if target == "auto" else target
    if kind == "classes":
        classes = encode_classes(y, n_samples)
        return _encode_contrasts(classes) if len(classes.names) else _no_targets(n_samples)
    values, one_column = _as_numbers(y, n_samples)
    if kind == "multilabel":
        _check_indicators(values)
    observed = np.isfinite(values)
    if not observed.any():
        return _no_targets(n_samples)
    center = _observed_means(values, observed, weights)
    scale = np.ones_like(center)
    if kind == "numeric":
        spread = np.sqrt(_observed_means((values - center) ** 2, observed, weights))
        scale = np.where(spread > 0, spread, 1.0)
    coding = Coding(kind, NO_CLASSES, center, scale, one_column)
    return Targets(_standardise(values, coding), observed, coding)


def encode_like(y, n_samples, coding: Coding) -> tuple[np.ndarray, np.ndarray]:
    """New y as columns and mask, in the coding of the fit."""
    if coding.kind == "none":
        raise ValueError("y is given, but the model was fitted without outputs; pass y=None")
    if coding.kind == "classes":
        codes = _known_codes(encode_classes(y, n_samples), coding.classes)
        return _contrast_columns(codes, len(coding.classes))
    values, _ = _as_numbers(y, n_samples)
    if values.shape[1] != len(coding.center):
        raise ValueError(f"y has {values.shape[1]} outputs; accepted are {len(coding.center)}")
    return _standardise(values, coding), np.isfinite(values)


def decode_scores(columns, coding: Coding) -> np.ndarray:
    """Predicted columns in the user's units: a score per class, or values of the outputs."""
    if coding.kind == "classes":
        n_classes = len(coding.classes)
        return columns @ contrasts(n_classes).T + 1.0 / n_classes
    return coding.center + coding.scale * columns


def decode_predictions(columns, coding: Coding) -> np.ndarray:
    """Predicted columns as class names, 0/1 indicators or numbers, in the shape of y."""
    scores = decode_scores(columns, coding)
    if coding.kind == "classes":
        return coding.classes[np.argmax(scores, axis=1)]
    if coding.kind == "multilabel":
        scores = (scores > 0.5).astype(int)
    return scores[:, 0] if coding.one_column else scores


def _no_targets(n_samples):
    nothing = np.zeros((n_samples, 0))
    coding = Coding("none", NO_CLASSES, np.zeros(0), np.ones(0), True)
    return Targets(nothing, nothing.astype(bool), coding)


def _detect_kind(y):
    y = _array(y)
    if y.ndim == 2 and y.shape[1] > 1:
        values = _numbers(y)
        finite = values[np.isfinite(values)]
        return "multilabel" if np.isin(finite, (0, 1)).all() else "numeric"
    if y.dtype.kind != "f":
        return "classes"
    values = _numbers(y).ravel()
    values = values[np.isfinite(values) & (values != UNLABELLED)]
    repeated = 2 * len(np.unique(values)) <= len(values)
    return "classes" if len(values) and repeated and has_classes(values) else "numeric"


def _as_numbers(y, n_samples):
    """Y as a float matrix with NaN where missing, and whether it was one column without name."""
    values = _numbers(y)
    one_column = values.ndim == 1
    values = values.reshape(len(values), -1)
    if values.shape[0] != n_samples:
        raise ValueError(f"y has {values.shape[0]} rows, X has {n_samples}; both must be equal")
    if np.isinf(values).any():
        raise ValueError("Input y contains infinity; accepted are numbers, NaN where missing")
    return values, one_column


def _array(y):
    """Y as an array, masked where it is; a data frame or a sparse array becomes a plain one."""
    if isinstance(y, np.ma.MaskedArray):
        return y
    if sparse.issparse(y):
        return y.toarray()
    return np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)


def _numbers(y):
    y = _array(y)
    if isinstance(y, np.ma.MaskedArray):
        return np.ma.filled(y.astype(float), np.nan)
    if y.ndim not in (1, 2):
        raise ValueError(f"y has {y.ndim} dimensions; accepted are a vector or a matrix")
    if y.dtype.kind == "c":
        raise ValueError("y has complex values; accepted are real numbers, NaN where missing")
    if y.dtype.kind == "O":
        flat = [np.nan if is_absent(value) else value for value in y.ravel()]
        y = np.array(flat, dtype=object).reshape(y.shape)
    try:
        return y.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y has entries that are not numbers; numeric outputs are numbers, NaN where missing, "
            "and texts are classes in one column"
        ) from error


def _check_indicators(values):
    if not np.isin(values[np.isfinite(values)], (0, 1)).all():
        raise ValueError("y has entries other than 0, 1 and NaN; target='multilabel' needs these")


def _encode_contrasts(classes):
    n_classes = len(classes.names)
    width = max(n_classes - 1, 0)
    coding = Coding("classes", classes.names, np.zeros(width), np.ones(width), True)
    columns, observed = _contrast_columns(classes.codes, n_classes)
    return Targets(columns, observed, coding, classes.codes)


def _contrast_columns(codes, n_classes):
    known = codes >= 0
    columns = np.zeros((len(codes), max(n_classes - 1, 0)))
    if n_classes > 1:
        columns[known] = contrasts(n_classes)[codes[known]]
    return columns, np.repeat(known[:, None], columns.shape[1], axis=1)


def _known_codes(classes, names):
    unknown = set(classes.names.tolist()) - set(names.tolist())
    if unknown:
        raise ValueError(f"y has classes {sorted(unknown, key=str)} that were not in the fit")
    position = {name: code for code, name in enumerate(names.tolist())}
    table = np.array([position[name] for name in classes.names.tolist()] + [UNLABELLED])
    return table[classes.codes]


def _observed_means(values, observed, weights):
    weights = np.ones(len(values)) if weights is None else weights
    counts = np.maximum(weights @ observed, np.finfo(float).tiny)
    return weights @ np.where(observed, values, 0.0) / counts


def _standardise(values, coding):
    return np.where(np.isfinite(values), (values - coding.center) / coding.scale, 0.0)


def decode_covariance(covariances, coding: Coding) -> np.ndarray:
    """Covariances (P, c, c) of the columns in the user's units; for classes (P, C, C)."""
    if coding.kind == "classes":
        H = contrasts(len(coding.classes))
        return H @ covariances @ H.T
    return covariances * np.outer(coding.scale, coding.scale)


def restore(columns, observed, predicted, coding: Coding) -> np.ndarray:
    """Y in the user's form with its gaps filled: by predicted classes, or by the columns."""
    scores = decode_scores(columns, coding)
    if coding.kind == "classes":
        return np.where(observed.any(axis=1), coding.classes[np.argmax(scores, axis=1)], predicted)
    return scores[:, 0] if coding.one_column else scores
