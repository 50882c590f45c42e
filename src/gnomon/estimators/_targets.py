"""What y holds, which rows are labelled, and y as columns of numbers and back.

One rule for all: what kind y is follows from its type and values (`kind_of`). Unlabelled is -1 or
None for classes, NaN for numbers and for entries of a matrix of outputs; what is missing in a
pandas series or masked in an array is unlabelled too. Where -1 and 1 are the only labels, they
are two classes and -1 is one of them.

Classes become orthonormal contrasts, numbers are standardised, 0/1 indicators stay. A mask
says which entries are known.
"""

import warnings
from decimal import Decimal
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import column_or_1d

from gnomon.estimators._door import count, in_reach
from gnomon.linalg.standardize import varies

KINDS = ("classes", "numeric", "multilabel")
# The mark of a row without class, as in scikit-learn.
UNLABELLED = -1
# Whole numbers stored as floats are classes if there are few of them, measurements otherwise; of
# integers, more than so many are classes with a warning.
MOST_FLOAT_CLASSES = 20
# Noise of an output in units of its spread, below which a prediction need not be told.
LEAST_NOISE = 1e-6
NO_CLASSES, NONE = np.empty(0), np.array(None)


def kind_of(y) -> str:
    """What y holds: "classes", "numeric" or "multilabel".

    Strings, integers, booleans and categories are classes. Floats are numbers, unless they are
    whole and at most 20 different ones. A matrix is multilabel where all its entries are 0, 1
    or missing, and numeric otherwise.
    """
    if str(getattr(y, "dtype", "")) == "category":
        return "classes"
    y = as_array(y)
    if y.ndim == 2 and y.shape[1] > 1:
        values = as_floats(y)
        return "multilabel" if np.isin(values[np.isfinite(values)], (0, 1)).all() else "numeric"
    known = _known_values(y.ravel())
    return "numeric" if known.dtype.kind == "f" and not _are_class_numbers(known) else "classes"


def labelled_rows(y, kind="auto", classes=()) -> np.ndarray:
    """Mask of the rows of y that have a label; in a matrix, of those without a gap.

    ``kind`` says what y holds where it is known. Where -1 is one of ``classes``, those of a
    fit, it is a label here as well.
    """
    kind = kind_of(y) if kind == "auto" else kind
    if kind == "classes":
        return ~_is_unlabelled(as_array(y).ravel(), classes)
    values = as_floats(y)
    return ~np.isnan(values.reshape(len(values), -1)).any(axis=1)


def permuted_labels(y, rng, labelled=None) -> np.ndarray:
    """A copy of y with its labels permuted among the labelled rows; unlabelled rows stay so.

    The control of every supervised fit: what it finds with these labels is not there. The mask
    ``labelled`` is for a y whose labelled rows are known.
    """
    y = np.array(as_array(y))
    rows = np.flatnonzero(labelled_rows(y) if labelled is None else labelled)
    y[rows] = y[rng.permutation(rows)]
    return y


def plain_labels(y) -> np.ndarray:
    """Labels without gaps in the plainest dtype, so that scikit-learn knows them for classes."""
    if y.dtype == object:
        y = np.array(y.tolist())
    whole = y.dtype.kind == "f" and y.ndim == 1 and kind_of(y) == "classes"
    return y.astype(int) if whole else y


class Classes(NamedTuple):
    """Class names in sorted order, and per row the number of its class, -1 where unlabelled."""

    names: np.ndarray
    labels: np.ndarray

    @property
    def labelled(self) -> np.ndarray:
        """Mask of the rows with a label."""
        return self.labels >= 0


def read_classes(y, n_samples, classes=()) -> Classes:
    """Labels of any dtype as `Classes`; -1, None and NaN mark unlabelled rows.

    Where -1 is one of ``classes``, those of a fit, it is a label here as well.
    """
    y = _as_labels(y)
    _check_rows(y, n_samples)
    missing = _is_unlabelled(y, classes)
    labels = np.full(n_samples, UNLABELLED)
    names, labels[~missing] = _unique(y[~missing])
    return Classes(_known_values(names), labels)


def keep_rows(classes: Classes, mask) -> Classes:
    """The classes of some rows; names none of these rows has are left out."""
    labels = classes.labels[mask]
    known = labels >= 0
    used, labels[known] = np.unique(labels[known], return_inverse=True)
    return Classes(classes.names[used], labels)


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
    """Orthonormal columns (C, C - 1) orthogonal to the constant; row c is the code of class c.

    One-hot columns sum to a constant, so their noise variance could run to zero. All
    codings of this kind differ by a rotation, so the order of the classes does not matter.
    """
    eye = np.eye(n_classes)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n_classes), eye[:, :-1]]))
    return Q[:, 1:]


class Coding(NamedTuple):
    """How outputs became columns: y = center + scale * column, or contrasts of the classes."""

    kind: str
    classes: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    one_column: bool


class Targets(NamedTuple):
    """Columns Y (n, c), zero where not observed, the mask of observed entries, the coding.

    ``labels`` holds the class number of every row, -1 where unlabelled; None without classes.
    """

    Y: np.ndarray
    observed: np.ndarray
    coding: Coding
    labels: np.ndarray | None = None


def read_targets(y, n_samples, target="auto", weights=None) -> Targets:
    """Outputs of the kind asked for, or of the kind they are, as columns."""
    if y is None:
        return _no_targets(n_samples)
    kind = kind_of(y) if target == "auto" else target
    if kind == "classes":
        classes = read_classes(y, n_samples)
        if target == "auto":
            _warn_of_numbers(classes.names)
        return _contrast_targets(classes) if len(classes.names) else _no_targets(n_samples)
    values, one_column = _as_columns(y, n_samples)
    if kind == "multilabel":
        _check_indicators(values)
    observed = np.isfinite(values)
    if not observed.any():
        return _no_targets(n_samples)
    _check_observed(observed)
    center = _observed_means(values, observed, weights)
    scale = np.ones_like(center)
    if kind == "numeric":
        center, scale = _units(values, observed, weights, center)
    coding = Coding(kind, NO_CLASSES, center, scale, one_column)
    return Targets(_standardise(values, coding), observed, coding)


def no_coding() -> Coding:
    """Nothing is known of y."""
    return Coding("none", NO_CLASSES, np.zeros(0), np.ones(0), True)


def columns_of(y, n_samples, target, before: Coding) -> tuple[np.ndarray, np.ndarray, Coding]:
    """Y as plain columns, indicators of classes or numbers as they are; rows that have them.

    The kind, and classes besides those of y, are those of the coding ``before``, where it has any.
    """
    if y is None:
        width = len(before.classes) if before.kind == "classes" else len(before.center)
        return np.zeros((n_samples, width)), np.zeros(n_samples, dtype=bool), before
    kind = kind_of(y) if target == "auto" else target
    kind = kind if before.kind == "none" else before.kind
    return (_indicators if kind == "classes" else _numbers)(y, n_samples, kind, before)


def _indicators(y, n_samples, kind, before):
    classes = _after(read_classes(y, n_samples, before.classes), before.classes)
    names = classes.names
    if len(before.classes):
        names = np.unique(np.concatenate([before.classes, names]))
    if not len(names):
        return columns_of(None, n_samples, kind, before)
    labels, columns = _known_labels(classes, names), np.zeros((n_samples, len(names)))
    columns[np.flatnonzero(labels >= 0), labels[labels >= 0]] = 1.0
    width = len(names) - 1
    coding = Coding("classes", names, np.zeros(width), np.ones(width), True)
    return columns, labels >= 0, coding


def _after(classes, before):
    """The classes of a part after others, where -1 means what it meant before."""
    signs, names = UNLABELLED in before.tolist(), classes.names.tolist()
    if signs and not set(names) <= {UNLABELLED, 1}:
        raise ValueError(
            f"y has the classes {names}, and -1 and 1 alone before, which were taken for two "
            "classes; mark unlabelled rows with None where parts may have such labels alone"
        )
    if signs or not len(before) or UNLABELLED not in names:
        return classes
    return keep_rows(
        classes._replace(labels=np.where(classes.labels == 0, UNLABELLED, classes.labels)),
        slice(None),
    )


def _numbers(y, n_samples, kind, before):
    values, one_column = _as_columns(y, n_samples)
    if kind == "multilabel":
        _check_indicators(values)
    if before.kind != "none" and values.shape[1] != len(before.center):
        outputs = count(values.shape[1], "output")
        raise ValueError(f"y has {outputs}; accepted are {len(before.center)}")
    seen = np.isfinite(values)
    if not np.array_equal(seen.any(axis=1), seen.all(axis=1)):
        raise ValueError(
            "y has rows with some outputs missing; partial_fit keeps moments, not rows: accepted "
            "are rows with all outputs or with none"
        )
    width = values.shape[1]
    coding = Coding(kind, NO_CLASSES, np.zeros(width), np.ones(width), one_column)
    return np.where(seen, values, 0.0), seen.all(axis=1), coding


def settled(coding: Coding, mean, sd) -> Coding:
    """The coding of `columns_of` with the units of outputs of these means and deviations."""
    if coding.kind == "multilabel":
        return coding._replace(center=mean)
    if coding.kind != "numeric":
        return coding
    scale = np.where(varies(sd, mean), sd, 1.0)
    _check_range(scale)
    return coding._replace(center=mean, scale=scale)


def _warn_of_numbers(names):
    """Warn of so many integers that they may be measurements."""
    if names.dtype.kind in "iu" and len(names) > MOST_FLOAT_CLASSES:
        warnings.warn(
            f"y has {len(names)} different integers, which are taken for classes; if they are "
            'measurements, set target="numeric" or pass floats, if not, target="classes"',
            stacklevel=2,
        )


def read_like(y, n_samples, coding: Coding) -> tuple[np.ndarray, np.ndarray]:
    """New y as columns and mask, in the coding of the fit."""
    if coding.kind == "none":
        raise ValueError("y is given, but the model was fitted without outputs; pass y=None")
    if coding.kind == "classes":
        labels = _known_labels(read_classes(y, n_samples, coding.classes), coding.classes)
        return _contrast_columns(labels, len(coding.classes))
    values, _ = _as_columns(y, n_samples)
    if values.shape[1] != len(coding.center):
        outputs = count(values.shape[1], "output")
        raise ValueError(f"y has {outputs}; accepted are {len(coding.center)}")
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


def as_array(y) -> np.ndarray:
    """Y as a plain array; what is masked, or missing in a series, becomes NaN or None."""
    y = in_reach(y)
    if isinstance(y, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(y)
        return y.filled(np.nan) if y.dtype.kind == "f" else np.where(masked, NONE, y.data)
    if hasattr(y, "toarray"):
        return y.toarray()
    # Types of pandas that know missing values turn integers into floats beside them.
    y = y.astype(object) if hasattr(getattr(y, "dtype", None), "na_value") else y
    y = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return _without_decimals(y) if y.dtype == object else y


def _without_decimals(y):
    """Decimal numbers, as databases give them, as floats."""
    if Decimal not in set(map(type, y.ravel().tolist())):
        return y
    flat = [float(value) if isinstance(value, Decimal) else value for value in y.ravel()]
    return np.array(flat, dtype=object).reshape(y.shape)


def as_floats(y) -> np.ndarray:
    """Y as floats of the same shape, NaN where it is missing."""
    y = as_array(y)
    if y.ndim not in (1, 2):
        raise ValueError(f"y has {y.ndim} dimensions; accepted are a vector or a matrix")
    if y.dtype.kind == "c":
        raise ValueError("y has complex values; accepted are real numbers, NaN where missing")
    if y.dtype.kind in "mM":
        # As floats they would be counts of a unit that nobody asked for, and NaT the least one.
        raise ValueError("y has dates or times; accepted are numbers, as days since one of them")
    if y.dtype.kind == "O":
        flat = [np.nan if _is_absent(value) else value for value in y.ravel()]
        y = np.array(flat, dtype=object).reshape(y.shape)
    try:
        return y.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "y has entries that are not numbers; numeric outputs are numbers, NaN where missing, "
            "and texts are classes in one column"
        ) from error


def _is_absent(value):
    """Whether it is None, NaN, or the missing value of pandas, which refuses comparison."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _known_values(y):
    """The entries that are not missing; numbers and booleans that stood among None as such."""
    known = y[~_absent(y)]
    if known.dtype != object or not all(isinstance(value, Real | np.bool_) for value in known):
        return known
    return np.array(known.tolist()) if len(known) else known


def _types(y):
    return set(map(type, y.tolist()))


def _absent(y):
    """Mask of the entries that are None, NaN, NaT or the missing value of pandas."""
    if y.dtype.kind == "O":
        # Texts among None are the common case, and one comparison of all is ten times faster.
        if _types(y) <= {str, type(None)}:
            return np.equal(y, None).astype(bool)  # type: ignore[call-overload]
        return np.array([_is_absent(value) for value in y], dtype=bool)
    if y.dtype.kind in "mM":
        return np.isnat(y)
    return np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), dtype=bool)


def _are_class_numbers(known):
    """Whether floats number classes: there are some, all of them whole, few different ones."""
    return len(known) > 0 and _are_whole(known) and _n_different(known) <= MOST_FLOAT_CLASSES


def _are_whole(known):
    known = known[np.isfinite(known)]
    return np.array_equal(known, np.floor(known))


def _n_different(known):
    return len(np.unique(known[known != UNLABELLED]))


def _as_labels(y):
    y = as_array(y)
    if y.ndim == 0:
        raise ValueError(f"y should be a 1d array, got {y!r} instead")
    if y.dtype.kind == "c":
        raise ValueError("y has complex values; accepted are labels, -1 for unlabelled rows")
    y = column_or_1d(y, warn=True)
    if _known_values(y).dtype.kind == "f":
        _check_class_numbers(_known_values(y))
    _check_strings(_known_values(y))
    return y


def _check_strings(known):
    """Raise where a mark of unlabelled rows has become a string, as it does in a text file."""
    if known.dtype.kind not in "OUT":
        return
    strings = {value for value in known.tolist() if isinstance(value, str)}
    if "-1" in strings and not strings <= {"-1", "1"}:
        raise ValueError(
            "y has the string '-1' among strings; mark unlabelled rows with None "
            "or the number -1 in an array of dtype object"
        )


def _check_class_numbers(known):
    """Raise where floats are measurements."""
    if np.isinf(known).any():
        raise ValueError("Input y contains infinity; accepted are labels, -1 or NaN for unlabelled")
    if len(known) and not _are_class_numbers(known):
        many = f"{_n_different(known)} different numbers stored as floats"
        raise ValueError(
            f"Unknown label type: y has {many if _are_whole(known) else 'fractions'}, classes are "
            "wanted; use a model for numeric outputs, or pass integers or strings"
        )


def _is_unlabelled(y, classes=()):
    """Mask of the rows with None, NaN or -1, unless -1 is a class of y or one of ``classes``."""
    absent, known = _absent(y), _known_values(y)
    if _are_signs(known) or UNLABELLED in np.asarray(classes).tolist():
        return absent
    if y.dtype.kind == "O":
        if not any(issubclass(kind, Real) for kind in _types(y)):
            return absent
        return absent | [isinstance(value, Real) and value == UNLABELLED for value in y]
    return absent | (y == UNLABELLED) if y.dtype.kind in "iuf" else absent


def _are_signs(known):
    """Whether there are -1 and 1 and nothing else, for which a million rows need not be sorted."""
    if known.dtype.kind not in "iuf":
        return False
    low, high = known == UNLABELLED, known == 1
    return bool(low.any() and high.any() and (low | high).all())


def _unique(y):
    try:
        return np.unique(y, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in y})
        raise TypeError(
            f"Label types in y must be uniform, or sortable with each other; got {kinds}"
        ) from error


def _no_targets(n_samples):
    nothing = np.zeros((n_samples, 0))
    return Targets(nothing, nothing.astype(bool), no_coding())


def _check_rows(y, n_samples):
    if y.shape[0] != n_samples:
        raise ValueError(f"y has {count(y.shape[0], 'row')}, X has {n_samples}; both must be equal")


def _as_columns(y, n_samples):
    """Y as a float matrix with NaN where missing, and whether it was one column without name."""
    values = as_floats(y)
    one_column = values.ndim == 1
    values = values.reshape(len(values), -1)
    _check_rows(values, n_samples)
    if np.isinf(values).any():
        raise ValueError("Input y contains infinity; accepted are numbers, NaN where missing")
    return values, one_column


def _check_observed(observed):
    """Raise where an output has no known entry, of which a model could say nothing."""
    empty = np.flatnonzero(~observed.any(axis=0))
    if empty.size:
        raise ValueError(
            f"y has no known value in column {', '.join(map(str, empty[:5]))}; every output needs "
            "at least one, drop those without"
        )


def _check_range(scale):
    """Raise where variances of outputs would leave the range of numbers."""
    low, high = np.sqrt(np.finfo(float).tiny) / LEAST_NOISE, np.sqrt(np.finfo(float).max)
    beyond = np.flatnonzero((scale < low) | (scale > high))
    if beyond.size:
        raise ValueError(
            f"y varies by {scale[beyond[0]]:.3g} in column {beyond[0]}, and its squares leave the "
            "range of numbers; rescale y"
        )


def _check_indicators(values):
    if not np.isin(values[np.isfinite(values)], (0, 1)).all():
        raise ValueError("y has entries other than 0, 1 and NaN; target='multilabel' needs these")


def _contrast_targets(classes):
    n_classes = len(classes.names)
    width = n_classes - 1
    coding = Coding("classes", classes.names, np.zeros(width), np.ones(width), True)
    columns, observed = _contrast_columns(classes.labels, n_classes)
    return Targets(columns, observed, coding, classes.labels)


def _contrast_columns(labels, n_classes):
    known = labels >= 0
    columns = np.zeros((len(labels), n_classes - 1))
    columns[known] = contrasts(n_classes)[labels[known]]
    # A view of one column, in which `observed.T.any(axis=0)` takes a hundredth of the time.
    return columns, np.broadcast_to(known, columns.shape[::-1]).T


def _known_labels(classes, names):
    unknown = set(classes.names.tolist()) - set(names.tolist())
    if unknown:
        raise ValueError(f"y has classes {sorted(unknown, key=str)} that were not in the fit")
    position = {name: label for label, name in enumerate(names.tolist())}
    table = np.array([position[name] for name in classes.names.tolist()] + [UNLABELLED])
    return table[classes.labels]


def _units(values, observed, weights, mean):
    """Means and standard deviations of the outputs; of one that does not vary, its value and 1."""
    unit, residuals = _in_units(values - mean, observed)
    squares = _observed_means(residuals**2, observed, weights)
    about = squares - _observed_means(residuals, observed, weights) ** 2
    varying = varies(unit * np.sqrt(np.maximum(about, 0.0)), mean)
    scale = np.where(varying, unit * np.sqrt(squares), 1.0)
    _check_range(scale)
    first = values[np.argmax(observed, axis=0), np.arange(len(mean))]
    return np.where(varying, mean, first), scale


def _observed_means(values, observed, weights):
    weights = np.ones(len(values)) if weights is None else weights
    counts = np.maximum(weights @ observed, np.finfo(float).tiny)
    unit, values = _in_units(values, observed)
    return unit * (weights @ values / counts)


def _in_units(values, observed):
    """Powers of two (c,) near the largest entries, and entries over these, zero where unknown.

    So neither sums nor squares leave the range of numbers, and no digit is lost.
    """
    known = np.where(observed, values, 0.0)
    unit = np.ldexp(1.0, np.frexp(np.abs(known).max(axis=0, initial=0.0))[1] - 1)
    return unit, known / unit


def _standardise(values, coding):
    return np.where(np.isfinite(values), (values - coding.center) / coding.scale, 0.0)
