"""Trials of candidate strengths of supervision: rows lose their labels and must find them again.

splits     half of the classes lose some rows each, and these compete among those classes:
           otherwise the classes short of labels gather near the origin, where a badly
           predicted row also lies, and it is right for the wrong reason
classes    log loss of the nearest labelled row of each class
numbers    squared error of a regression on the components
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.completion import TINY, Completion, complete, recomplete
from gnomon.models.supervision import Pool, coordinates, label_block, labelled_rows
from gnomon.models.supervision_maps import Maps, at, embed, maps

SPLITS = 10
FOLDS = 10
# Up to so many classes compete all together: a contest of three is too easy to rank maps.
FEW_CLASSES, LEAST_CONTEST = 6, 4
WIDTHS = 2.0 ** np.arange(-4, 7)
# A regression on few rows needs some penalty, and no single row may decide.
REGRESSION_PENALTY = 0.01
LARGEST_ERROR = 9.0
MOST_LABELLED = 2000
# Squared distances of less than this share of the largest are rounding.
ROUNDING = 1e-9


class Labelled(NamedTuple):
    """Distinct labelled rows in an order of their own: coordinates, outputs, weights, classes.

    Classes are numbered by their first rows; ``names`` has their numbers outside.
    """

    F: np.ndarray
    Y: np.ndarray
    observed: np.ndarray
    weights: np.ndarray
    codes: np.ndarray
    are_classes: bool
    names: np.ndarray

    def rows(self, index) -> "Labelled":
        """Some of the rows."""
        F, Y, observed, weights, codes = (part[index] for part in self[:5])
        return Labelled(F, Y, observed, weights, codes, self.are_classes, self.names)

    def arguments(self, size):
        """What stage 1 takes, on a pool of the given size."""
        codes = self.codes if self.are_classes else None
        return {
            "F": self.F[:, :size],
            "Y": self.Y,
            "observed": self.observed,
            "weights": self.weights,
            "codes": codes,
        }


class Split(NamedTuple):
    """Rows that keep their label, rows that lose it, and the classes that compete for these."""

    kept: np.ndarray
    held: np.ndarray
    classes: np.ndarray


def distinct_rows(pool: Pool, Y, observed, codes) -> Labelled:
    """Labelled rows, equal ones merged and their weights added, in an order of their own.

    So weights count as repeated rows, and neither the order of rows nor the names of the
    classes decide which rows a split holds out. Equal rows also tell nothing of each other.
    """
    rows, weights = labelled_rows(pool, observed)
    F = coordinates(pool, rows)
    sizes = np.einsum("ij,ij->i", F, F)
    order = np.argsort(sizes, kind="stable")
    F, sizes, weights, rows = F[order], sizes[order], weights[order], rows[order]
    same = _same_as_before(F, sizes, np.where(observed[rows], Y[rows], np.inf))
    group = np.cumsum(np.r_[0, ~same]) if len(rows) else rows
    first = np.flatnonzero(np.diff(group, prepend=-1))
    rows = rows[first]
    outside = np.zeros(len(rows), dtype=int) if codes is None else codes[rows]
    names, numbers = _by_appearance(outside)
    sums = np.bincount(group, weights)
    return Labelled(F[first], Y[rows], observed[rows], sums, numbers, codes is not None, names)


def _same_as_before(F, sizes, outputs):
    """Whether each row but the first equals the one before it; sizes are ascending."""
    most = max(F.max(initial=0), -F.min(initial=0))
    # Equal rows have equal sizes, and few others have: only those are compared.
    close = np.diff(sizes) <= 1e-8 * F.shape[1] * most**2
    after = np.flatnonzero(close) + 1
    distance = np.max(np.abs(F[after] - F[after - 1]), axis=1, initial=0)
    equal = np.all(outputs[after] == outputs[after - 1], axis=1)
    close[after - 1] = (distance <= 1e-9 * most) & equal
    return close


def _by_appearance(codes):
    """Classes in the order in which they first appear, and the place of each row's class."""
    names, first, number = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return names[order], np.argsort(order)[number]


def thinned(labelled, rng) -> Labelled:
    """At most MOST_LABELLED rows, classes thinned alike, the rare ones last."""
    n = len(labelled.F)
    if n <= MOST_LABELLED:
        return labelled
    shuffled = rng.permutation(n)
    rank = np.empty(n)
    rank[shuffled] = _rank_in_class(labelled.codes[shuffled])
    rows = np.sort(np.argsort(rank, kind="stable")[:MOST_LABELLED])
    return labelled.rows(rows)


def _rank_in_class(codes):
    """How many rows of its class come before each row."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    rank = np.empty(len(codes), dtype=int)
    rank[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    return rank


def draw_splits(codes, q, rng) -> list[Split]:
    """Ten folds for few classes and enough components, half-class splits otherwise.

    Numbers are one class of all rows.
    """
    counts = np.bincount(codes)
    if len(counts) <= FEW_CLASSES and q >= len(counts) - 1:
        return _plain_folds(codes, rng)
    return _half_class_splits(codes, np.flatnonzero(counts >= 2), rng)


def _plain_folds(codes, rng):
    """Folds over which the rows of a class are spread; a class keeps a row in each."""
    n = len(codes)
    shuffled = rng.permutation(n)
    fold = np.empty(n, dtype=int)
    fold[shuffled] = (_rank_in_class(codes[shuffled]) + rng.integers(FOLDS)) % FOLDS
    fold[np.bincount(codes)[codes] < 2] = -1
    every = np.arange(codes.max() + 1)
    held = [np.flatnonzero(fold == f) for f in range(FOLDS)]
    return [Split(np.flatnonzero(fold != f), held[f], every) for f in range(FOLDS) if len(held[f])]


def _half_class_splits(codes, able, rng):
    """Splits in which half of the classes, in rotation, lose a fifth of their rows each."""
    half = max(min(len(able), LEAST_CONTEST), len(able) // 2)
    queue = np.concatenate([rng.permutation(able) for _ in range(2 + SPLITS * half // len(able))])
    splits = []
    for k in range(SPLITS):
        classes = np.unique(queue[k * half : (k + 1) * half])
        held = np.concatenate([_some_rows(codes, c, rng) for c in classes])
        kept = np.setdiff1d(np.arange(len(codes)), held)
        splits.append(Split(kept, held, classes))
    return splits


def _some_rows(codes, c, rng):
    rows = np.flatnonzero(codes == c)
    return rng.choice(rows, max(1, len(rows) // 5), replace=False)


def tuned(labelled, candidates) -> dict[int, Completion]:
    """Stage 1 on each pool, its penalty tuned on all labelled rows."""
    return {p: complete(**labelled.arguments(p)) for p in {c.pool for c in candidates}}


def trial_fits(labelled, splits, fits) -> list[dict[int, Completion]]:
    """Stage 1 on each pool without the held rows of each split, at the penalties of ``fits``."""
    parts = [labelled.rows(split.kept) for split in splits]
    return [
        {p: recomplete(**kept.arguments(p), penalty=fit.penalty) for p, fit in fits.items()}
        for kept in parts
    ]


def trial_maps(pool, trials, candidates, q) -> list[Maps]:
    """The maps of all candidates, stacked over the trials of `trial_fits`."""
    blocks = {
        p: np.stack([label_block(trial[p], pool.variances[:p]) for trial in trials])
        for p in trials[0]
    }
    return maps(pool, candidates, blocks, q)


def class_losses(pool, labelled, splits, candidates, q, trials) -> np.ndarray:
    """Log losses (candidates, held rows) of finding the class again."""
    codes = labelled.codes
    stacked, D = trial_maps(pool, trials, candidates, q), []
    for k, split in enumerate(splits):
        kept = split.kept[np.argsort(codes[split.kept], kind="stable")]
        T = embed(labelled.F, at(stacked, k), len(candidates), q)
        near = class_distances(T[:, split.held], T[:, kept], codes[kept])
        near[:, :, np.setdiff1d(codes, split.classes)] = np.inf
        D.append(near)
    truth = np.concatenate([codes[split.held] for split in splits])
    return soft_losses(np.concatenate(D, axis=1), truth)


def number_losses(pool, labelled, splits, candidates, q, trials):
    """Squared errors (candidates, held rows) of a regression on T, and those of the mean.

    In units of each column's variance; an outlying row counts as three deviations.
    """
    variance = np.maximum(column_variances(labelled), TINY)
    nothing = np.zeros((len(labelled.F), 1))
    stacked = trial_maps(pool, trials, candidates, q)
    losses, chance = [], []
    for k, split in enumerate(splits):
        kept, held = labelled.rows(split.kept), labelled.rows(split.held)
        T = embed(labelled.F, at(stacked, k), len(candidates), q)
        errors = [_regression_errors(t, kept, held, split, variance) for t in (*T, nothing)]
        losses.append(np.array(errors[:-1]))
        chance.append(errors[-1])
    return np.concatenate(losses, axis=1), np.concatenate(chance)


def column_variances(labelled) -> np.ndarray:
    """Variance of every output over the rows that have it."""
    seen = labelled.weights[:, None] * labelled.observed
    total = np.maximum(seen.sum(axis=0), TINY)
    mean = np.sum(seen * labelled.Y, axis=0) / total
    return np.sum(seen * (labelled.Y - mean) ** 2, axis=0) / total


def _regression_errors(T, kept, held, split, variance):
    penalty = np.full(kept.Y.shape[1], REGRESSION_PENALTY)
    fit = recomplete(T[split.kept], kept.Y, kept.observed, kept.weights, penalty)
    errors = (held.Y - fit.offset - T[split.held] @ fit.B) ** 2 / variance
    errors = np.where(held.observed, np.minimum(errors, LARGEST_ERROR), 0.0)
    return errors.sum(axis=1) / held.observed.sum(axis=1)


def class_distances(A, B, codes) -> np.ndarray:
    """Squared distances (..., m, classes) of rows A to the nearest row of B in each class.

    The rows of B are sorted by class.
    """
    D = np.sum(A**2, axis=-1)[..., None] + np.sum(B**2, axis=-1)[..., None, :]
    D -= 2 * A @ np.swapaxes(B, -1, -2)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    return np.maximum(np.minimum.reduceat(D, starts, axis=-1), 0.0)


def soft_losses(D, truth) -> np.ndarray:
    """Log loss (candidates, held) of p(c) ~ exp(-d_c / 2 h m), h the best common width."""
    nearest = D.min(axis=2)
    # Rows that repeat are near but for rounding, which is no width.
    largest = np.where(np.isfinite(D), D, 0.0).max(axis=(1, 2))
    scale = np.maximum(np.median(nearest, axis=1), np.maximum(ROUNDING * largest, TINY))
    D = (D - nearest[:, :, None]) / scale[:, None, None]
    losses = np.array([_log_losses(-D / (2 * width), truth) for width in WIDTHS])
    best = np.argmin(losses.mean(axis=2), axis=0)
    return losses[best, np.arange(len(best))]


def _log_losses(E, truth):
    return np.log(np.sum(np.exp(E), axis=2)) - E[:, np.arange(len(truth)), truth]
