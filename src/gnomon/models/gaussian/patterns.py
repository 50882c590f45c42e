"""Rows sorted by which of their entries are observed: what all fits with gaps work on.

Rows of one pattern share their posterior covariance, and a likelihood sees them by their number,
mean and scatter alone.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gnomon.linalg.blocks import KEPT_ENTRIES
from gnomon.linalg.data import as_data, check_columns, check_spread, larger, placed
from gnomon.linalg.threads import in_order
from gnomon.stats.gaussian import NOISE_FLOOR

# Rows that are sorted by their patterns at a time where all do not fit in memory.
PART_ROWS = 8192
# Rows of a pattern, per column, from which fewer stand for them; above so many columns a scatter
# costs more than the iterations that it spares.
CONDENSED_FROM, MOST_CONDENSED = 3, 200


class Patterns(NamedTuple):
    """Rows sorted by which entries they observe.

    X holds the rows less ``shift``, zero in the gaps; pattern p is rows starts[p] to
    starts[p + 1] and observes the columns where observed[p] is one; ``order`` are the places of
    the rows before sorting, ``floors`` the least noise variances that a fit may take.
    """

    X: np.ndarray
    observed: np.ndarray
    starts: np.ndarray
    order: np.ndarray
    weights: np.ndarray
    groups: np.ndarray
    shift: np.ndarray
    floors: np.ndarray


class Parts(NamedTuple):
    """Rows that do not fit in memory together, in runs that become `Patterns` each time anew.

    ``rows()`` gives the runs, NaN for gaps, with their weights. Sums over the observed entries,
    less the shift: how many a column has (d,), of their squares (d,), and of all rows, zero in
    the gaps, the sum (d,) and the squares (d, d).
    """

    rows: Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]
    shape: tuple[int, int]
    n: float
    counts: np.ndarray
    squares: np.ndarray
    sums: np.ndarray
    gram: np.ndarray
    groups: np.ndarray
    shift: np.ndarray
    floors: np.ndarray


Table = Patterns | Parts


def each(data: Table) -> Iterator[Patterns]:
    """The patterns of all rows, or of one run after another."""
    return over_parts(lambda patterns: patterns, data)


def over_parts(function: Callable[[Patterns], Any], data: Table) -> Iterator[Any]:
    """What a function gives for the patterns of all rows, or of each run in order, by threads."""
    if isinstance(data, Patterns):
        yield function(data)
        return

    def of_run(run):
        rows, weights = run
        return function(group_rows(rows, data.groups, weights, data.shift))

    yield from in_order(of_run, data.rows(), np.inf)


def in_parts(X, weights=None, beside=None, groups=None) -> Parts:
    """Rows as `Parts`, in two passes over them.

    ``beside`` is a function that gives further columns of a slice of rows, and their number.
    """
    X = as_data(X)
    weights = np.ones(X.shape[0]) if weights is None else weights
    more, n_more = (None, 0) if beside is None else beside
    rows, width = partial(_runs, X, weights, more), X.shape[1] + n_more
    groups = np.zeros(width, dtype=int) if groups is None else groups
    counts, sums = np.zeros(width), np.zeros(width)
    for run, own in rows():
        seen = ~np.isnan(run)
        counts += own @ seen
        sums += own @ np.where(seen, run, 0.0)
    _check_counts(counts[: X.shape[1]])
    shift = sums / np.maximum(counts, np.finfo(float).tiny)
    sums, gram = np.zeros(width), np.zeros((width, width))
    for run, own in rows():
        filled = np.where(np.isnan(run), 0.0, run - shift)
        sums += own @ filled
        gram += (own[:, None] * filled).T @ filled
    about = (X.shape[0], width), float(weights.sum()), counts, np.diagonal(gram).copy()
    data = Parts(rows, *about, sums, gram, groups, shift, np.zeros(groups.max() + 1))
    return data._replace(floors=NOISE_FLOOR * variances(data))


def _runs(X, weights, beside):
    for rows, run in placed(larger(X.dense_blocks(), PART_ROWS)):
        run = run.astype(float)
        yield run if beside is None else np.hstack([run, beside(rows)]), weights[rows]


def _check_counts(counts):
    if not counts.all():
        check_columns(np.where(counts > 0, 0.0, np.nan)[None])


def group_rows(X, groups, weights=None, shift=None) -> Patterns:
    """X (n, d) with NaN for gaps as `Patterns`; ``shift`` defaults to the observed means."""
    mask = ~np.isnan(X)
    order, starts = _sorted_by_pattern(mask)
    weights = np.ones(len(X)) if weights is None else weights
    if shift is None:
        shift = _observed_means(X, mask, weights)
    filled = np.where(mask, X - shift, 0.0)[order]
    observed, floors = mask[order[starts[:-1]]].astype(float), np.zeros(groups.max() + 1)
    data = Patterns(filled, observed, starts, order, weights[order], groups, shift, floors)
    return data._replace(floors=NOISE_FLOOR * variances(data))


def _sorted_by_pattern(mask):
    """Rows in an order in which equal ones are together, the most frequent first; their starts."""
    code = np.zeros(len(mask), dtype=np.int64)
    for k in range(0, mask.shape[1], 64):
        words = np.zeros((len(mask), 8), dtype=np.uint8)
        packed = np.packbits(mask[:, k : k + 64], axis=1)
        words[:, : packed.shape[1]] = packed
        word = words.view(np.uint64).ravel()
        if k > 0 or mask.shape[1] > 64:
            _, word = np.unique(word, return_inverse=True)  # type: ignore[assignment]
            _, word = np.unique(code * (word.max() + 1) + word, return_inverse=True)  # type: ignore[assignment]
        code = word  # type: ignore[assignment]
    order = np.argsort(code)
    starts = np.flatnonzero(np.append(True, np.diff(code[order]) != 0))
    counts = np.diff(starts, append=len(order))
    largest = np.argsort(-counts, kind="stable")
    ends = np.cumsum(counts[largest])
    places = np.repeat(starts[largest] - ends + counts[largest], counts[largest])
    return order[places + np.arange(len(order))], np.append(0, ends)


def inputs(X, weights=None) -> Patterns:
    """Rows of an array whose columns share one noise variance, refused where none vary."""
    check_columns(X)
    data = alike(X, weights)
    check_spread(squared_norm(data))
    return data


def alike(X, weights=None) -> Patterns:
    """Rows of an array whose columns share one noise variance."""
    return group_rows(X.astype(float), np.zeros(X.shape[1], dtype=int), weights)


def inputs_of_any_number(X, weights=None) -> Table:
    """The same of rows that may be too many to sort at once, for EM, which takes both."""
    if not too_many(X):
        return inputs(X, weights)
    data = in_parts(X, weights)
    check_spread(squared_norm(data))
    return data


def too_many(X: Any) -> bool:
    """Whether rows are worked on in parts."""
    return X.shape[0] * X.shape[1] > KEPT_ENTRIES


def select(data: Patterns, mask) -> Patterns:
    """The rows that a mask, in the order before sorting, selects; the noise floors are kept."""
    kept = mask[data.order]
    places = np.cumsum(mask) - 1
    counts = np.add.reduceat(kept, data.starts[:-1])
    return data._replace(
        X=data.X[kept],
        observed=data.observed[counts > 0],
        starts=np.concatenate([[0], np.cumsum(counts[counts > 0])]),
        order=places[data.order[kept]],
        weights=data.weights[kept],
    )


def with_rows(data: Patterns, X, weights) -> Patterns:
    """The same and further rows (p, d), NaN for gaps, at the end, each a pattern of its own."""
    mask = ~np.isnan(X)
    n, p = len(data.X), len(X)
    return data._replace(
        X=np.concatenate([data.X, np.where(mask, X - data.shift, 0.0)]),
        observed=np.concatenate([data.observed, mask.astype(float)]),
        starts=np.append(data.starts, n + 1 + np.arange(p)),
        order=np.append(data.order, n + np.arange(p)),
        weights=np.append(data.weights, weights),
    )


def condensed(data: Any) -> Any:
    """Patterns of few rows each with the same likelihood at every state, for iterations.

    It sees rows of one pattern by their number, mean and scatter S = R'R alone, so that
    mean +- r_i sqrt(k / n), i = 1, ..., k, can stand for any number n of them.
    """
    if isinstance(data, Parts):
        return data
    n_columns = data.X.shape[1]
    counts = np.diff(data.starts)
    many = int(np.argmin(np.append(counts > CONDENSED_FROM * n_columns, False)))
    if many == 0 or n_columns > MOST_CONDENSED:
        return data
    few = [_condensed_rows(data, p) for p in range(many)]
    rest = data.starts[many]
    X = np.concatenate([*(rows for rows, _ in few), data.X[rest:]])
    weights = np.concatenate([*(weights for _, weights in few), data.weights[rest:]])
    counts[:many] = [len(rows) for rows, _ in few]
    starts = np.append(0, np.cumsum(counts))
    return data._replace(X=X, weights=weights, starts=starts, order=np.arange(len(X)))


def _condensed_rows(data, p):
    """Rows that stand for those of a pattern, and their weights."""
    seen = np.flatnonzero(data.observed[p])
    rows = slice(data.starts[p], data.starts[p + 1])
    X, weights = data.X[rows][:, seen], data.weights[rows]
    n, k = max(weights.sum(), np.finfo(float).tiny), max(len(seen), 1)
    mean = weights @ X / n
    X = X - mean
    values, vectors = np.linalg.eigh((weights[:, None] * X).T @ X)
    away = np.sqrt(np.maximum(values, 0.0) * k / n)[:, None] * vectors.T
    few = np.zeros((2 * k, data.X.shape[1]))
    few[:, seen] = np.concatenate([mean + away, mean - away]) if len(seen) else 0.0
    return few, np.full(2 * k, n / (2 * k))


def group_sizes(data: Table) -> np.ndarray:
    """Number of observed entries of each group of columns (g,), by weight."""
    if isinstance(data, Parts):
        return np.bincount(data.groups, data.counts)
    counts = np.add.reduceat(data.weights, data.starts[:-1]) @ data.observed
    return np.bincount(data.groups, counts)


def column_squares(data: Table) -> np.ndarray:
    """Sum of the squared deviations of the observed entries of each column (d,), by weight."""
    return data.squares if isinstance(data, Parts) else data.weights @ data.X**2


def n_observed(data: Table) -> float:
    """Number of observed entries, by weight."""
    return float(group_sizes(data).sum())


def variances(data: Table) -> np.ndarray:
    """Mean squared deviation of the observed entries of each group of columns (g,), by weight."""
    squares = np.bincount(data.groups, column_squares(data))
    return squares / np.maximum(group_sizes(data), 1)


def units(data: Table) -> np.ndarray:
    """A standard deviation for each column (d,), that of its group; one where nothing varies."""
    found = np.sqrt(variances(data))[data.groups]
    return np.where(found > 0, found, 1.0)


def total_weight(data: Table) -> float:
    """Number of rows, by weight."""
    return data.n if isinstance(data, Parts) else float(data.weights.sum())


def squared_norm(data: Table) -> float:
    """Sum of the squared deviations of the observed entries, by weight."""
    return float(column_squares(data).sum())


def _observed_means(X, mask, weights):
    return (weights @ np.where(mask, X, 0.0)) / np.maximum(weights @ mask, np.finfo(float).tiny)
