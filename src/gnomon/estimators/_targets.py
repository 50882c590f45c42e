"""From y to numbers and back.

Unlabelled is -1 or None for classes, NaN for numbers and for entries of a matrix of outputs.
Where -1 and 1 are the only labels, they are two classes and -1 is one of them.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import column_or_1d

UNLABELLED = -1
# Whole numbers stored as floats are classes if there are few of them, measurements otherwise.
MOST_FLOAT_CLASSES = 20


class Classes(NamedTuple):
    """Class names in sorted order, and per row the number of its class, -1 where unlabelled."""

    names: np.ndarray
    codes: np.ndarray

    @property
    def labelled(self) -> np.ndarray:
        """Mask of the rows with a label."""
        return self.codes >= 0


def encode_classes(y, n_samples) -> Classes:
    """Labels of any dtype as `Classes`; -1, None and NaN mark unlabelled rows."""
    y = _as_labels(y)
    if y.shape[0] != n_samples:
        raise ValueError(f"y has {y.shape[0]} rows, X has {n_samples}; both must be equal")
    missing = _is_unlabelled(y)
    codes = np.full(n_samples, UNLABELLED)
    names, codes[~missing] = _unique(y[~missing])
    return Classes(_as_numbers_again(names), codes)


def keep_rows(classes: Classes, mask) -> Classes:
    """The classes of some rows; names none of these rows has are left out."""
    codes = classes.codes[mask]
    labelled = codes >= 0
    used, codes[labelled] = np.unique(codes[labelled], return_inverse=True)
    return Classes(classes.names[used], codes)


def labelled_rows(y) -> np.ndarray:
    """Mask of the rows of y that have a label; in a matrix, of those without a gap.

    Numbers with fractions are measurements, so -1 is a value among them and NaN the gap.
    """
    y = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        return ~np.isnan(y.astype(float)).any(axis=1)
    y = y.ravel()
    if y.dtype.kind == "f":
        finite = y[np.isfinite(y)]
        if np.any(finite != np.floor(finite)):
            return ~np.isnan(y)
    return ~_is_unlabelled(y)


def has_classes(y) -> bool:
    """Whether y, without gaps, holds classes: one column, no fractions, few values if floats."""
    y = np.asarray(y)
    if y.ndim != 1:
        return False
    if y.dtype.kind != "f":
        return True
    return bool(np.all(y == np.floor(y))) and len(np.unique(y)) <= MOST_FLOAT_CLASSES


def plain_labels(y) -> np.ndarray:
    """Labels without gaps in the plainest dtype, so that scikit-learn knows them for classes."""
    if y.dtype == object:
        return np.array(y.tolist())
    return y.astype(int) if y.dtype.kind == "f" and has_classes(y) else y


def require_targets(y, owner):
    """Raise where there is no y at all."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None")


def require_classes(classes: Classes, owner, at_least=2):
    """Raise where fewer than ``at_least`` classes have a label."""
    if len(classes.names) < at_least:
        raise ValueError(
            f"y has {len(classes.names)} class with labelled rows; {owner} needs at least "
            f"{at_least} classes (-1 and None mark unlabelled rows)"
        )


def contrasts(n_classes) -> np.ndarray:
    """Orthonormal columns (C, C - 1) orthogonal to the constant; row c codes class c.

    One-hot columns sum to a constant, so their noise variance could run to zero. All
    codings of this kind differ by a rotation, so the order of the classes does not matter.
    """
    eye = np.eye(n_classes)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n_classes), eye[:, :-1]]))
    return Q[:, 1:]


def _as_labels(y):
    if isinstance(y, np.ma.MaskedArray):
        raise ValueError("y is a masked array; mark unlabelled rows with -1, None or NaN")
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    y = np.asarray(y)
    if y.ndim == 0:
        raise ValueError(f"y should be a 1d array, got {y!r} instead")
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "c":
        raise ValueError("y has complex values; accepted are labels, -1 for unlabelled rows")
    if y.dtype.kind == "f":
        _check_whole_numbers(y)
    if y.dtype.kind in "US" and "-1" in y and len(np.unique(y)) > 1:
        raise ValueError(
            "y has the string '-1' among strings; mark unlabelled rows with None "
            "or the number -1 in an array of dtype object"
        )
    return y


def _as_numbers_again(names):
    """Numbers and booleans that stood among None as such, so that scikit-learn knows them."""
    if names.dtype != object or not all(isinstance(name, Real | np.bool_) for name in names):
        return names
    return np.array(names.tolist())


def _check_whole_numbers(y):
    if np.isinf(y).any():
        raise ValueError("Input y contains infinity; accepted are labels, -1 or NaN for unlabelled")
    finite = y[np.isfinite(y)]
    if np.any(finite != np.floor(finite)):
        raise ValueError(
            "Unknown label type: y has fractions, classes are wanted; "
            "use a model for numeric outputs, or pass whole numbers or strings"
        )


def _is_unlabelled(y):
    if y.dtype.kind in "iuf":
        missing = np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)
        return missing if _is_signed(y[~missing]) else missing | (y == UNLABELLED)
    if y.dtype.kind != "O":
        return np.zeros(len(y), dtype=bool)
    return np.array([_entry_is_missing(value) for value in y], dtype=bool)


def _is_signed(y):
    """Whether y is the usual coding of two classes by -1 and 1, where -1 is a class."""
    return np.array_equal(np.unique(y), [-1, 1])


def _entry_is_missing(value):
    if isinstance(value, str | bool):
        return False
    return is_absent(value) or value == UNLABELLED


def is_absent(value) -> bool:
    """Whether it is None, NaN, or the missing value of pandas, which refuses comparison."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _unique(y):
    try:
        return np.unique(y, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in y})
        raise TypeError(
            f"Label types in y must be uniform, or sortable with each other; got {kinds}"
        ) from error
