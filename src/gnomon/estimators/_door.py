"""The door: what users pass, checked once, as what the layers below take.

Every error names the argument, its value and what is accepted.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted, check_random_state, validate_data

from gnomon.linalg.blocks import KEPT_ENTRIES
from gnomon.linalg.data import Data, Matrix, column_sums, has_gaps
from gnomon.linalg.distributed import from_dask, is_dask, lazily, with_lengths
from gnomon.linalg.foreign import in_form_of, in_memory, opened
from gnomon.models.gaussian import filling

FLOATS = (np.float64, np.float32)
# The mark of a row in no chunk.
NO_CHUNK = -1
# Labelled rows by which the mean of what gaps hide is taken: so many that it is known.
MOST_SEEN = 20_000
Method = TypeVar("Method", bound=Callable[..., Any])


class TakesRows:
    """What X a model takes: sparse, both float types, NaN if ``_takes_gaps``; when it is fitted."""

    _takes_gaps = False
    _kept_last = "converged_"

    def __sklearn_is_fitted__(self):
        """Whether a fit came to its end; one that failed leaves a model that is not fitted."""
        return hasattr(self, self._kept_last)

    def _read(self, X):
        """Rows for a fitted model."""
        check_is_fitted(self)
        return read_data(self, X, fitting=False, allow_nan=self._takes_gaps)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_gaps
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class FillsGaps(TakesRows):
    """A model that knows no density of x: its gaps are filled by ``filling_``, PPCA of the rows."""

    _takes_gaps = True
    # Rows in blocks that are too many to keep are filled each time they are read.
    _fits_gaps_in_blocks = True
    filling_: Any

    def __sklearn_tags__(self):
        """NaN is taken unless the fit met rows from which filling cannot be learnt."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan &= self._can_fill() or not self.__sklearn_is_fitted__()
        return tags

    def _filled(self, X):
        """Rows with their gaps at their means given the rest of the row."""
        return filling.fill(self._filling(), X) if has_gaps(X) else X

    def _some_labelled(self, X, labelled):
        """Labelled rows as they were given, a part of many: for what their gaps hide on average."""
        rows = np.flatnonzero(labelled)
        return take_rows(X, rows[:: 1 + len(rows) // MOST_SEEN])

    def _filling(self):
        if not self._can_fill():
            raise ValueError(
                "X has missing values, and the model was fitted to sparse rows or rows in blocks, "
                "from which it did not learn to fill them; fit it to an array"
            )
        return self.filling_

    def _can_fill(self):
        return getattr(self, "filling_", None) is not None


def read_data(
    estimator, X, *, fitting, allow_nan=True, accept_sparse=True, min_samples=1, look=True
):
    """X as a float array, a CSR or CSC array, or the `Data` that it is; NaN where allowed.

    Masked entries of a masked array are missing values. A fit begins here: what an earlier one
    left is forgotten, so that a fit that fails leaves no mixture of two. A fit that asks first
    whether X has gaps, and so refuses infinity, need not ``look`` for it here: a pass over X.
    """
    if fitting:
        forget_fit(estimator)
    X = X if _is_here(X) else _read_elsewhere(estimator, X, fitting)
    if isinstance(X, Data):
        return _read_operator(estimator, X, fitting, allow_nan)
    _refuse_dates(X)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float), np.nan)
    X = validate_data(
        estimator,
        X,
        reset=fitting,
        accept_sparse=("csr", "csc") if accept_sparse else False,
        dtype=FLOATS,
        ensure_all_finite=_finite_check(X, allow_nan, look),
        ensure_min_samples=min_samples,
    )
    if sparse.issparse(X) and allow_nan and np.isnan(X.data).any():  # type: ignore[attr-defined]
        raise ValueError(
            "Input X contains NaN and is sparse; missing values are accepted in dense X only"
        )
    if fitting and min_samples > 1 and isinstance(X, np.ndarray):
        _refuse_equal_rows(X)
    return X


def _refuse_dates(X):
    """Raise for dates, of which NaT would become the number -9.2e18."""
    types = getattr(X, "dtypes", [getattr(X, "dtype", None)])
    if any(getattr(kind, "kind", "") in ("m", "M") for kind in np.ravel(types)):
        raise ValueError("X has dates or times; accepted are numbers, as days since one of them")


def _finite_check(X, allow_nan, look):
    """What scikit-learn shall look for, which takes it two passes."""
    if _is_seen_finite(X) if look else isinstance(X, np.ndarray):
        return False
    return "allow-nan" if allow_nan else True


def _is_seen_finite(X):
    """Whether an array is finite by sums of its columns, sooner than scikit-learn's own look."""
    if not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype in FLOATS):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isfinite(column_sums(X)).all())


def _refuse_equal_rows(X):
    """Raise where no row differs: their mean may round, so that differences seem to be left."""
    if (X[0] == X[-1]).all() and (X == X[0]).all():
        raise ValueError("X has no variation: all rows are equal; accepted are rows that differ")


def forget_fit(estimator):
    """Drop all fitted attributes, whose names end in an underscore."""
    fitted = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
    for name in fitted:
        delattr(estimator, name)


def _is_here(X):
    """Whether it is an array in memory, as nearly always."""
    return isinstance(X, np.ndarray) or sparse.issparse(X)


def in_reach(values) -> Any:
    """What there is one of for every row, in memory; it may be dask's or another library's."""
    return values if _is_here(values) else in_memory(values)


def divisible(X) -> Any:
    """Rows that can be counted and cut: an array, also of dask, a data frame or `Data`."""
    if _is_here(X):
        return X
    return with_lengths(X) if is_dask(X) else opened(X)


def _read_elsewhere(estimator, X, fitting):
    """Rows of dask or of another library by their products; names of columns that they have."""
    if not is_dask(X):
        return opened(X)
    rows = from_dask(X)
    if hasattr(X, "columns"):
        names = X.dtypes.to_frame().T
        validate_data(estimator, names, reset=fitting, skip_check_array=True)
    return rows


def _read_operator(estimator, X, fitting, allow_nan):
    if fitting:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return _read_gaps(estimator, X, fitting, allow_nan) if X.has_gaps else X


def _read_gaps(estimator, X, fitting, allow_nan):
    """Rows in blocks that have gaps: in memory where they are few, else where a fit takes them."""
    if not allow_nan:
        raise ValueError("Input X contains NaN.")
    kept = X.kept_in_memory()
    if isinstance(kept, Matrix):
        return kept.X
    if fitting and getattr(estimator, "_fits_gaps_in_blocks", False):
        return X
    raise ValueError(
        f"X has missing values and {count(X.shape[0] * X.shape[1], 'entry', 'entries')} in blocks, "
        f"{KEPT_ENTRIES:,} of which are kept in memory; with more, missing values are accepted in "
        "fit by all models but PPCA and PRPCA with a prior, PRPCA with relation='learnt' or "
        "solver='em' and SPPCA with a probit likelihood, and after it by gnomon.transform_blocks. "
        "Fit PPCA to the rows, fill each block by its impute and give the filled blocks to "
        "gnomon.from_loaders"
    )


def by_rows(method: Method) -> Method:
    """A method of rows X, each of which it places by itself, for rows wherever they are.

    Of rows of dask it gives dask arrays that are not computed, of an array of another library one
    of that library; the method itself sees neither.
    """
    return _for_rows(method, opened)


def in_memory_by_rows(method: Method) -> Method:
    """The same where the method needs the rows themselves, and not only their products."""
    return _for_rows(method, in_memory)


def _for_rows(method: Method, read) -> Method:
    @wraps(method)
    def called(self, X, *args, **known):
        if _is_here(X):
            return method(self, X, *args, **known)
        if not is_dask(X):
            return in_form_of(X, method(self, read(X), *args, **known))
        given = signature(method).bind(self, X, *args, **known).arguments
        return _lazily(self, method.__name__, X, dict(list(given.items())[2:]))

    return cast(Method, called)


def _lazily(model, name, X, known):
    """The method for every chunk, not computed; outputs of the rows are cut as these are."""
    check_is_fitted(model)
    for argument in ("links", "sample_index"):
        if known.get(argument) is not None and not isinstance(known[argument], str):
            raise ValueError(
                f"X is a dask {type(X).__name__} and {argument} is given: rows that are linked "
                "are placed together; accepted is X in memory, X.compute()"
            )
    y = in_reach(known.pop("y", None))
    of_rows = () if y is None else (y.to_numpy() if hasattr(y, "to_numpy") else y,)
    return lazily(_OfRows(model, name, known), X, *of_rows)


class _OfRows:
    """A method of a fitted model, to be called where rows are."""

    def __init__(self, model, name, known):
        self.model, self.name, self.known = model, name, known

    def __call__(self, X, *y):
        return getattr(self.model, self.name)(X, *y, **self.known)


def read_weights(sample_weight, n):
    """Weights as n non-negative floats with a positive sum, or None for equal weights."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight)
    weights = check_array(
        in_reach(sample_weight), ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}; accepted is ({n},)")
    if np.any(weights < 0):
        raise ValueError(f"sample_weight has the value {weights.min()}; accepted are numbers >= 0")
    if not weights.any():
        raise ValueError("sample_weight is zero in every row; accepted are weights with a sum > 0")
    return weights


def read_chunks(chunks, n_samples) -> np.ndarray:
    """Chunk numbers 0, 1, ... of the rows, -1 for rows in none; None is no chunk at all."""
    if chunks is None:
        return np.full(n_samples, NO_CHUNK)
    chunks = in_reach(chunks)
    chunks = chunks.to_numpy() if hasattr(chunks, "to_numpy") else np.asarray(chunks)
    if chunks.shape != (n_samples,):
        raise ValueError(
            f"chunks has shape {chunks.shape}; accepted is one id per row, ({n_samples},), "
            "-1 for none (chunks_from_pairs makes it of pairs)"
        )
    if chunks.dtype.kind == "f":
        if not np.all(chunks == np.floor(chunks)):
            raise ValueError("chunks has fractions, NaN or infinity; accepted are whole numbers")
        chunks = chunks.astype(int)
    if chunks.dtype.kind not in "iu":
        raise TypeError(f"chunks has dtype {chunks.dtype}; accepted are whole numbers, -1 for none")
    if chunks.dtype.kind == "i" and chunks.min() < NO_CHUNK:
        raise ValueError(f"chunks has the value {chunks.min()}; accepted are ids >= 0, -1 for none")
    inside = chunks != NO_CHUNK if chunks.dtype.kind == "i" else np.ones(n_samples, dtype=bool)
    numbers = np.full(n_samples, NO_CHUNK)
    numbers[inside] = np.unique(chunks[inside], return_inverse=True)[1]
    return numbers


def share_labels(labels, chunks, names) -> np.ndarray:
    """Class numbers with the label of one member of a chunk passed on to all of them."""
    inside = chunks != NO_CHUNK
    known = inside & (labels >= 0)
    if not known.any():
        return labels
    highest = np.full(chunks.max() + 1, -1)
    np.maximum.at(highest, chunks[known], labels[known])
    lowest = np.full(chunks.max() + 1, len(names))
    np.minimum.at(lowest, chunks[known], labels[known])
    clash = np.flatnonzero((highest >= 0) & (highest != lowest))
    if clash.size:
        members = np.flatnonzero(known & (chunks == clash[0]))
        different = sorted({str(names[label]) for label in labels[members]})
        raise ValueError(
            f"chunks puts rows {', '.join(map(str, members[:4]))} in one chunk, but y has the "
            f"labels {', '.join(different)} there; rows of a chunk must share a class"
        )
    out = labels.copy()
    out[inside] = highest[chunks[inside]]
    return out


def n_rows(X) -> int:
    """Number of rows of anything array-like, before it is checked."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def take_rows(X, keep):
    """Rows of any table, in memory or in blocks, that a mask or an index selects."""
    keep = np.asarray(keep)
    index = np.flatnonzero(keep) if keep.dtype == bool else keep
    if isinstance(X, Data):
        return np.concatenate(list(X.rows(index).dense_blocks()))
    if hasattr(X, "iloc"):
        return X.iloc[index]
    if sparse.issparse(X):
        return X.tocsr()[index]  # type: ignore[attr-defined]
    return X[index] if hasattr(X, "shape") else np.asarray(X)[index]


def count(n, one, many=None) -> str:
    """A number with its noun, as sentences have it: 1 row, 2,000 rows."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def check_dense(X):
    """Raise where X is not an array in memory, the only X that can have gaps."""
    if not isinstance(X, np.ndarray):
        kind = "sparse" if sparse.issparse(X) else "in blocks"
        raise TypeError(f"X is {kind}; impute accepts an array, where NaN marks missing values")


def check_integer(name, value, *, low, high=None, high_is=""):
    """Value as an int in [low, high]; ``high_is`` says in the error where the limit comes from."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}")
    if value < low or (high is not None and value > high):
        limit = f">= {low}" if high is None else f"from {low} to {high}{high_is}"
        raise ValueError(f"{name} == {value!r}; accepted are integers {limit}")
    return int(value)


def check_size(n_components, shape) -> int:
    """The number of components as an int, at most the least of rows and features."""
    high_is = f", the least of {count(shape[0], 'row')} and {count(shape[1], 'feature')}"
    return check_integer("n_components", n_components, low=1, high=min(shape), high_is=high_is)


def read_numbers(name, value, classes) -> list[int]:
    """An integer >= 1 for each class, from one for all, a dict by class or a sequence."""
    if isinstance(value, Integral):
        return [check_integer(name, value, low=1)] * len(classes)
    if isinstance(value, Mapping):
        missing = [c for c in classes if c not in value]
        if missing:
            raise ValueError(
                f"{name} has no number for class {missing[0]!r}; a dict must name every class of y"
            )
        value = [value[c] for c in classes]
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise TypeError(
            f"{name} must be an integer, a dict or a sequence of integers, got {value!r}"
        )
    if len(value) != len(classes):
        raise ValueError(
            f"{name} has {count(len(value), 'number')}; accepted is one for each class, "
            f"{len(classes)} in all"
        )
    return [check_integer(name, number, low=1) for number in value]


def check_real(name, value, *, low=-np.inf, high=np.inf, open_low=False):
    """Value as a float in [low, high], or in (low, high] if ``open_low``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}")
    below = value <= low if open_low else value < low
    if below or value > high or np.isnan(value):  # type: ignore[call-overload]
        bracket = "(" if open_low else "["
        raise ValueError(f"{name} == {value!r}; accepted are numbers in {bracket}{low}, {high}]")
    return float(value)


def check_strength(value):
    """The strength of supervision: a word or a number."""
    if value is None or (isinstance(value, str) and value not in ("auto", "likelihood")):
        raise ValueError(
            f"supervision == {value!r}; accepted are 'auto', 'likelihood' and numbers in [0, 1]"
        )
    if not isinstance(value, str):
        check_real("supervision", value, low=0, high=1)


def check_noise(noise):
    """The noise rule of SPPCA: a word, a ratio as a float, or a pair of levels."""
    if isinstance(noise, str):
        return check_option("noise", noise, ("learn", "per_output"))
    if isinstance(noise, tuple | list) and len(noise) == 2:
        return tuple(check_real("noise", level, low=0, open_low=True) for level in noise)
    return check_real("noise", noise, low=0, open_low=True)


def check_option(name, value, options):
    """Value if it is one of the options, and of its type: 1 is not True."""
    if not any(isinstance(value, type(option)) and value == option for option in options):
        raise ValueError(f"{name} == {value!r}; accepted are {', '.join(map(repr, options))}")
    return value


def check_prior(prior, n_components, solver):
    """None, or "ard" with what it goes with: a number of components or "auto", no EM."""
    if check_option("prior", prior, (None, "ard")) is None:
        return None
    if isinstance(n_components, Real) and not isinstance(n_components, Integral):
        raise ValueError(
            f"n_components == {n_components!r}; with prior='ard' accepted are integers >= 1, "
            "the most that there may be, and 'auto'"
        )
    if solver == "em":
        raise ValueError("solver == 'em' is for prior=None; prior='ard' has a maximum of its own")
    return prior


def generator(random_state) -> np.random.Generator:
    """A Generator from scikit-learn's random_state: an int, None, a RandomState or a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    try:
        state = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state == {random_state!r}; accepted are None, integers from 0 to 2**32 - 1, "
            "RandomState and Generator"
        ) from None
    if isinstance(random_state, Integral):
        return np.random.default_rng(int(random_state))
    return np.random.default_rng(state.randint(2**32, size=4))


def repeatable(random_state) -> np.random.Generator:
    """The same, but None stands for 0: chance only helps the fit, and two fits agree."""
    return generator(0 if random_state is None else random_state)
