"""From the columns of a table to the matrix of a model, by a rule that is kept with the model.

    numbers     centred, divided by their standard deviation (matrices: as they are)
    dates       as days, then as numbers
    categories  an indicator per level but the most frequent one (all would sum to a constant),
                centred, those of a column together of variance one
    gaps        stay gaps; a level that was not there at the fit is a gap

Columns with one value, without values, or with too many levels are left out and named.
"""

import tempfile
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from gnomon.estimators import count
from gnomon.exceptions import TableError
from gnomon.linalg.data import row_slices
from gnomon.linalg.threads import in_order
from gnomon.tools.tables import NUMBER, Table, as_numbers, as_texts, column_kind

# A text column with more levels is names or prose: an indicator for each would drown the rest.
MAX_LEVELS = 50
SCALES = ("auto", "standard", "none")
# Numbers that people write where they have no value, in answers and measurements.
CODES = (-1, *(sign * code for code in (9, 99, 999, 9999) for sign in (-1, 1)))
# A code is at least so many usual steps, and so large a part of the range, from the other numbers.
CODE_STEPS, CODE_PART = 3, 0.1
# Times of the day are counted in hours, up to so many.
HOURS = 24
# With fewer columns a table of names and numbers is no table of samples, as genes have it.
SAMPLES = 10


class Feature(NamedTuple):
    """How one column becomes one or more columns of the matrix, and what it held at the fit."""

    column: str
    kind: str
    levels: list[str]
    center: np.ndarray
    scale: np.ndarray
    low: float = -np.inf
    high: float = np.inf
    whole: bool = False
    boolean: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the columns it becomes."""
        levels = [f"{self.column}={level}" for level in self.levels[1:]]
        return levels if self.kind == "category" else [self.column]


class Recipe(NamedTuple):
    """All features, or the scaling of a matrix; what was left out, and why."""

    features: list[Feature]
    matrix_names: list[str]
    matrix_center: Any
    matrix_scale: Any
    left_out: dict[str, str]
    scaled: bool
    matrix_low: Any = None
    matrix_high: Any = None
    matrix_whole: Any = None

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix."""
        return self.matrix_names or [name for f in self.features for name in f.names]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the table that it takes."""
        return self.matrix_names or [feature.column for feature in self.features]

    def to_notes(self) -> dict:
        """As plain values, for a model file."""
        return self._asdict() | {"features": [f._asdict() for f in self.features]}

    @property
    def means(self):
        """Means of the columns of the matrix at the fit, None where they are not known."""
        raw = self.matrix_names and self.matrix_scale is None
        return self.matrix_center if raw else np.zeros(len(self.names))

    @classmethod
    def from_notes(cls, notes) -> "Recipe":
        """From what `to_notes` returned, or a ValueError where it is no rule."""
        recipe = cls(**notes | {"features": [Feature(**f) for f in notes["features"]]})
        if not (all(map(_is_feature, recipe.features)) and _is_rule(recipe)):
            raise ValueError("these notes are no rule for tables")
        return recipe


def _is_feature(feature):
    """Whether what a file has for a feature is of the kinds that `Tally.feature` gives."""
    texts = [feature.column, feature.kind, *feature.levels]
    flags = isinstance(feature.whole, bool) and isinstance(feature.boolean, bool)
    bounds = isinstance(feature.low, float) and isinstance(feature.high, float)
    known = feature.kind in ("number", "date", "category") and isinstance(feature.levels, list)
    width = len(feature.names)
    scaling = _are_numbers(feature.center, width) and _are_numbers(feature.scale, width)
    return known and flags and bounds and scaling and all(isinstance(t, str) for t in texts)


def _is_rule(recipe):
    width = len(recipe.matrix_names)
    names = isinstance(recipe.matrix_names, list) and isinstance(recipe.left_out, dict)
    texts = [*recipe.matrix_names, *recipe.left_out, *recipe.left_out.values()]
    of_matrix = (recipe.matrix_center, recipe.matrix_scale, recipe.matrix_low, recipe.matrix_high)
    arrays = [part for part in (*of_matrix, recipe.matrix_whole) if part is not None]
    numbers = all(_are_numbers(array, width) for array in arrays)
    seen = {part is None for part in (*of_matrix[2:], recipe.matrix_whole)}
    return names and numbers and len(seen) == 1 and all(isinstance(text, str) for text in texts)


def _are_numbers(array, width):
    return isinstance(array, np.ndarray) and array.dtype.kind in "bf" and array.shape == (width,)


class Tally:
    """Count, mean, sum of squares and levels of a column, batch by batch."""

    def __init__(self, kind):
        self.kind = kind
        self.n, self.mean, self.m2 = 0, 0.0, 0.0
        self.low, self.high = np.inf, -np.inf
        self.whole, self.boolean = True, True
        self.levels: dict[str, int] = {}
        self.codes: dict[float, int] = {}

    def add(self, column, where):
        """Take in a part of the column."""
        if self.kind == "text":
            self._add_texts(as_texts(column))
        elif self.kind != "other":
            self.boolean &= str(column.type) == "bool"
            self._add_numbers(_finite(as_numbers(column), where))

    def _add_texts(self, values):
        present = np.array([value for value in values if value is not None], dtype=object)
        self.n += len(present)
        if len(self.levels) <= MAX_LEVELS:
            for level, count in zip(*np.unique(present, return_counts=True), strict=True):
                self.levels[level] = self.levels.get(level, 0) + int(count)

    def _add_numbers(self, values):
        values = values[~np.isnan(values)]
        if len(values) == 0:
            return
        if self.kind == "number" and {values.min(), values.max()} & set(CODES):
            for code, count in codes_among(values).items():
                self.codes[code] = self.codes.get(code, 0) + count
        # Two means with their sums of squares merge without loss of digits [Chan et al. 1979].
        n, mean = len(values), values.mean()
        total, shift = self.n + n, mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            self.m2 += ((values - mean) ** 2).sum() + np.square(shift) * self.n * n / total
        self.mean += shift * n / total
        self.n = total
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        self.whole &= bool((values == np.rint(values)).all())

    def fault(self) -> str | None:
        """Why the column is of no use, if so."""
        if self.kind == "other":
            return "holds neither numbers nor text"
        if self.n == 0:
            return "is empty"
        if len(self.levels) > MAX_LEVELS:
            return _many_levels()
        if len(self.levels) == 1 or self.low == self.high:
            return "has only one value"
        if not self.levels and not 0 < self.m2 < np.inf:
            return "has numbers whose squares leave the range of numbers"
        return None

    def doubt(self) -> list[str]:
        """The texts that make texts of a column where most of them are numbers."""
        odd = [level for level in self.levels if not NUMBER.fullmatch(level)]
        return odd if 2 * len(odd) < len(self.levels) else []

    def feature(self, name, scaled) -> Feature:
        """The rule for this column."""
        if self.kind == "text":
            levels = sorted(self.levels, key=lambda level: (-self.levels[level], level))
            p = np.array([self.levels[level] for level in levels[1:]]) / self.n
            sd = np.sqrt(p * (1 - p) * len(p)) if scaled else np.ones(len(p))
            return Feature(name, "category", levels, p, sd)
        sd = np.sqrt(self.m2 / self.n) if scaled else 1.0  # type: ignore[assignment]
        seen = (float(self.low), float(self.high), self.whole, self.boolean)
        return Feature(name, self.kind, [], np.array([self.mean]), np.array([sd]), *seen)


def plan(table: Table, *, ignore=(), scale="auto", report=lambda text: None) -> Recipe:
    """The rule for a table, from one pass over it; ``ignore`` are columns with another role."""
    for name in ignore:
        table.check(name)
    if table.features:
        return _plan_matrix(table, scale == "standard")
    others = set(ignore)
    names = [name for name in table.names if name not in others]
    tallies = _tallied(table, names)
    for tell in (_tell_doubts, _tell_codes):
        tell(tallies, report)
    if len(names) >= SAMPLES and not table.streamed:
        from gnomon.tools.transpose import tell_if_alike

        tell_if_alike(table, tallies, report)
    faults = {name: tally.fault() for name, tally in tallies.items()}
    scaled = scale != "none"
    features = [tallies[name].feature(name, scaled) for name in names if not faults[name]]
    left_out = {name: fault for name, fault in faults.items() if fault}
    if not features:
        raise TableError(
            f"{table.path} has no column to fit{_because(left_out)}; "
            "columns of numbers or of a few categories are wanted; "
            "if its features are rows, say --transpose"
        )
    return Recipe(features, [], None, None, left_out, scaled)


def codes_among(values) -> dict[float, int]:
    """Codes that occur more than once at the ends of numbers, far from all others, with counts."""
    distinct, counts = np.unique(values, return_counts=True)
    found = {}
    end = _coded_end(distinct, counts)
    while end is not None:
        found[float(distinct[end])] = int(counts[end])
        distinct, counts = np.delete(distinct, end), np.delete(counts, end)
        end = _coded_end(distinct, counts)
    return found


def _coded_end(distinct, counts):
    """The place of a code among sorted numbers, first or last; None where there is none."""
    for end, others in ((-1, distinct[:-1]), (0, distinct[1:])):
        if len(others) < 3 or counts[end] < 2 or distinct[end] not in CODES:
            continue
        distance = np.abs(others - distinct[end]).min()
        if distance >= max(CODE_STEPS * np.median(np.diff(others)), CODE_PART * np.ptp(others)):
            return end
    return None


def _tell_doubts(tallies, report):
    odd = {name: texts for name, tally in tallies.items() if (texts := tally.doubt())}
    if odd:
        name, texts = next(iter(odd.items()))
        report(
            f"texts among numbers: {_listed({n: f'has {_some(t)}' for n, t in odd.items()})}; read "
            f"as texts; if such a text means no value, say --na {name}={min(texts)}"
        )


def _tell_codes(tallies, report):
    coded = {name: tally.codes for name, tally in tallies.items() if tally.codes}
    if coded:
        told = {
            name: "has " + " and ".join(f"{code:g} in {n} cells" for code, n in codes.items())
            for name, codes in coded.items()
        }
        name, codes = next(iter(coded.items()))
        options = " ".join(f"--na {name}={code:g}" for code in codes)
        report(
            f"numbers far from the others, which may mean that there is no value: {_listed(told)}; "
            f"read as numbers; if they mean none, say {options}, or --na without a column for all"
        )


def _listed(told, most=3):
    shown = "; ".join(f"{name!r} {text}" for name, text in list(told.items())[:most])
    return shown + (f"; and {count(len(told) - most, 'more column')}" if len(told) > most else "")


def _tallied(table, names):
    tallies: dict[str, Tally] = {}
    for batch in table.batches():
        for name in names:
            kind = column_kind(batch.columns[name])
            if name not in tallies or tallies[name].kind == "empty":
                tallies[name] = Tally(kind)
            tallies[name].add(batch.columns[name], f"{table.path}: column {name!r}")
    return tallies


def apply(recipe: Recipe, table: Table, report=lambda text: None):
    """The matrix of a table: dense with NaN in the gaps, sparse, or mapped from a file."""
    if recipe.matrix_names:
        return _apply_matrix(recipe, table)
    names = set(table.names)
    for feature in recipe.features:
        if feature.column not in names:
            raise TableError(
                f"{table.path} has no column {feature.column!r}, which the model was fitted on"
            )
    rows = partial(_rows, recipe, table.path)
    if not table.streamed:
        (batch,) = table.batches()
        return _told(rows(batch), report)
    rows = partial(rows, dtype=np.float32)
    parts = in_order(rows, table.batches(), work=np.inf)
    return _mapped((_told(part, report) for part in parts), len(recipe.names))


def _rows(recipe, path, batch, dtype=float):
    """The rows of a batch, and what is to be said of them."""
    X = np.empty((batch.n_rows, len(recipe.names)), dtype=dtype)
    notes: list[str] = []
    start = 0
    for feature in recipe.features:
        stop = start + len(feature.names)
        where = f"{path}: column {feature.column!r}"
        raw = _raw(feature, batch.columns[feature.column], where, notes.append)
        X[:, start:stop] = (raw - feature.center) / feature.scale
        start = stop
    return X, notes


def _told(rows_and_notes, report):
    """The rows, when what is to be said of them has been said."""
    rows, notes = rows_and_notes
    for note in notes:
        report(note)
    return rows


def _raw(feature, column, where, report):
    """Numbers as one column, categories as indicators."""
    if feature.kind == "category":
        return _indicators(feature, as_texts(column), where, report)
    if column_kind(column) in ("text", "other"):
        raise TableError(
            f"{where} holds texts as {_first_text(column)!r}; the model was fitted on "
            f"{feature.kind}s; if they mean no value, say --na WORD"
        )
    found, fitted = _found_and_fitted(feature, column)
    if found not in (fitted, "empty"):
        raise TableError(f"{where} holds {found}s; the model was fitted on {fitted}s")
    return _finite(as_numbers(column), where)[:, None]


def _found_and_fitted(feature, column):
    """The kind of a column, and that of the fit, of which times are known by a range of hours.

    Durations may have any range, and early files know none.
    """
    kind = str(column.type)
    found = "time" if kind.startswith(("time32", "time64")) else column_kind(column)
    of_a_day = feature.kind == "date" and 0 <= feature.low and feature.high <= HOURS
    fitted = "time" if of_a_day else feature.kind
    is_open = kind.startswith("duration") or np.isinf(feature.high)
    return found, found if is_open and {found, fitted} == {"date", "time"} else fitted


def _first_text(column):
    """The first text of a column that is no number."""
    texts = [text for text in as_texts(column) if text is not None]
    return next((text for text in texts if not NUMBER.fullmatch(text)), texts[0])


def gap_counts(recipe: Recipe, X) -> dict[str, int]:
    """Number of empty cells in each column of the table that has any, from its matrix."""
    if not isinstance(X, np.ndarray):
        return {}
    widths = [] if recipe.matrix_names else [len(feature.names) for feature in recipe.features]
    # All indicators of a category are gaps where its cell is empty: the first one tells.
    first = np.cumsum([0, *widths[:-1]]) if widths else np.arange(X.shape[1])
    counts = sum(np.isnan(X[rows][:, first]).sum(axis=0) for rows in row_slices(X.shape))
    return {name: int(n) for name, n in zip(recipe.columns, counts, strict=True) if n}


def _indicators(feature, texts, where, report):
    places = {level: i for i, level in enumerate(feature.levels)}
    numbers = np.array([places.get(text, -1) for text in texts])
    new = {text for text in texts[numbers < 0] if text is not None}
    if new:
        report(f"{where} has {_some(new)}, not there at the fit; read as a gap")
    raw = (numbers[:, None] == np.arange(1, len(places))).astype(float)
    raw[numbers < 0] = np.nan
    return raw


def indicators_of(feature: Feature, columns) -> np.ndarray:
    """The indicators of all levels of a category from its columns in the matrix."""
    others = columns * feature.scale + feature.center
    return np.column_stack([1 - others.sum(axis=1), others])


def _finite(values, where):
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise TableError(
            f"{where} has {count(infinite, 'infinite value')}; a number or an empty cell is wanted"
        )
    return values


def _mapped(parts, width):
    """Rows in a temporary file, float32, that goes away with the array."""
    n_rows = 0
    with tempfile.TemporaryFile(prefix="gnomon-") as file:
        for part in parts:
            file.write(part)
            n_rows += len(part)
        file.flush()
        return np.memmap(file, dtype=np.float32, mode="r", shape=(n_rows, width))


def _plan_matrix(table, scaled):
    (batch,) = table.batches()
    X = batch.matrix
    if not sparse.issparse(X) and np.isnan(X).all(axis=0).any():
        empty = table.features[int(np.argmax(np.isnan(X).all(axis=0)))]
        raise TableError(f"{table.path} has no value in column {empty!r}; leave such columns out")
    rule = Recipe([], list(table.features), None, None, {}, scaled)
    if sparse.issparse(X):
        return rule._replace(matrix_scale=_sparse_scale(X)) if scaled else rule
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    whole = np.all(np.isnan(X) | (np.rint(X) == X), axis=0)
    seen = {"matrix_low": low, "matrix_high": high, "matrix_whole": whole}
    rule = rule._replace(matrix_center=np.nanmean(X, axis=0), **seen)
    if not scaled:
        return rule
    return rule._replace(matrix_scale=_scale(low, high, np.nanvar(X, axis=0)))


def _sparse_scale(X):
    low, high = X.min(axis=0).toarray(), X.max(axis=0).toarray()
    return _scale(low.ravel(), high.ravel(), mean_variance_axis(X, axis=0)[1])


def _scale(low, high, variance):
    """The mean of a constant column rounds, so that its variance need not be zero."""
    return np.where(low < high, np.sqrt(variance), 1.0)


def _apply_matrix(recipe, table):
    (batch,) = table.batches()
    X = batch.matrix
    if X is None or X.shape[1] != len(recipe.matrix_names):
        width = len(table.features)
        raise TableError(
            f"{table.path} has a matrix of {count(width, 'column')}; "
            f"the model was fitted on {len(recipe.matrix_names)}"
        )
    if recipe.matrix_scale is None:
        return X
    if sparse.issparse(X):
        return sparse.csr_array(X @ sparse.diags_array(1 / recipe.matrix_scale))  # type: ignore[operator]
    return (X - recipe.matrix_center) / recipe.matrix_scale


def _many_levels():
    return f"has more than {MAX_LEVELS} different texts"


def left_out_text(left_out) -> str:
    """Which columns were left out, by reason, and what can be said about it."""
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    told = []
    for reason, names in reasons.items():
        verb, rest = reason.split(" ", 1)
        verb = {"is": "are", "has": "have", "holds": "hold"}[verb] if len(names) > 1 else verb
        told.append(f"{_some(names, 5, 'column')} {verb} {rest}")
    names_rows = "--id takes texts as the names of the rows; " if _many_levels() in reasons else ""
    return (
        f"left out: {'; '.join(told)}; {names_rows}--ignore leaves a column out without this note"
    )


def _because(left_out):
    if not left_out:
        return ""
    return ": " + ", ".join(f"{name!r} {fault}" for name, fault in list(left_out.items())[:3])


def _some(texts, most=3, kind="text"):
    shown = ", ".join(repr(text) for text in sorted(texts)[:most])
    return shown + (f" and {count(len(texts) - most, f'more {kind}')}" if len(texts) > most else "")
