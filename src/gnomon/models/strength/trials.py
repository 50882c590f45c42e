"""Trials of candidate strengths of supervision: rows lose their labels and must find them again.

splits     half of the classes lose some rows each, and these compete among those classes:
           otherwise the classes short of labels gather near the origin, where a badly
           predicted row also lies, and it is right for the wrong reason
maps       a candidate is a strength s on some leading directions; the maps T = F R of all
           strengths are found at once
classes    log loss of the nearest labelled row of each class
numbers    squared error of a regression on the components
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from gnomon.models.strength.closed_form import (
    PrincipalSpace,
    coordinates,
    labelled_rows,
)
from gnomon.models.strength.completion import (
    Completion,
    Outputs,
    complete,
    recomplete,
)
from gnomon.models.strength.rule import RULE, TINY


class Labelled(NamedTuple):
    """Distinct labelled rows in an order of their own: coordinates, outputs, weights.

    Classes are numbered by their first rows; ``names`` has their numbers outside.
    """

    F: np.ndarray
    outputs: Outputs
    weights: np.ndarray
    names: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """Class number of every row; numbers are one class of all rows."""
        labels = self.outputs.labels
        return np.zeros(len(self.F), dtype=int) if labels is None else labels

    def rows(self, index) -> "Labelled":
        """Some of the rows."""
        return Labelled(self.F[index], self.outputs.rows(index), self.weights[index], self.names)


class Candidate(NamedTuple):
    """A strength on some leading directions of the principal space."""

    n_directions: int
    s: float


class Contest(NamedTuple):
    """A principal space, the labelled rows that judge the candidates in it, how many components.

    ``before`` is the candidate that an earlier fit chose, None where there is none.
    """

    space: PrincipalSpace
    labelled: Labelled
    q: int
    before: Candidate | None = None

    @property
    def sizes(self) -> list[int]:
        """Few and all of the directions, ascending."""
        size = len(self.space.variances)
        few = max(RULE.few_directions, RULE.few_directions_per_component * self.q)
        return sorted({min(size, few), size})

    @property
    def candidates(self) -> list[Candidate]:
        """No supervision, then every strength on each number of directions."""
        none = Candidate(self.sizes[-1], 0.0)
        return [none] + [Candidate(p, s) for p in self.sizes for s in RULE.strengths]


# Stage 1 for each number of directions of a contest.
Completions = dict[int, Completion]


class Trial(NamedTuple):
    """Rows that keep their label, rows that lose it, and the classes that compete for these.

    ``fits`` are stage 1 without the rows that lose their label.
    """

    kept: np.ndarray
    lost: np.ndarray
    classes: np.ndarray
    fits: Completions | None = None


def distinct_rows(space: PrincipalSpace, outputs: Outputs) -> Labelled:
    """Labelled rows, equal ones merged and their weights added, in an order of their own.

    So weights count as repeated rows, and neither the order of rows nor the names of the
    classes decide which rows a split takes. Equal rows also tell nothing of each other.
    """
    rows, weights = labelled_rows(space, outputs.observed)
    F = coordinates(space, rows)
    sizes = np.einsum("ij,ij->i", F, F)
    order = np.argsort(sizes, kind="stable")
    F, sizes, weights, rows = F[order], sizes[order], weights[order], rows[order]
    Y, observed, labels, _ = outputs.rows(rows)
    same = _same_as_before(F, sizes, np.where(observed, Y, np.inf))
    group = np.cumsum(np.r_[0, ~same]) if len(rows) else rows
    first = np.flatnonzero(np.diff(group, prepend=-1))
    known, names = Outputs(Y[first], observed[first]), np.zeros(1, dtype=int)
    if labels is not None:
        names, numbers = _by_appearance(labels[first])
        known = known._replace(labels=numbers)
    return Labelled(F[first], known, np.bincount(group, weights), names)


def _same_as_before(F, sizes, outputs):
    """Whether each row but the first equals the one before it; sizes are ascending."""
    most = max(F.max(initial=0), -F.min(initial=0))
    # Equal rows have equal sizes, and few others have: only those are compared.
    close = np.diff(sizes) <= 2 * RULE.rounding * F.shape[1] * most**2
    after = np.flatnonzero(close) + 1
    distance = np.max(np.abs(F[after] - F[after - 1]), axis=1, initial=0)
    equal = np.all(outputs[after] == outputs[after - 1], axis=1)
    close[after - 1] = (distance <= RULE.rounding * most) & equal
    return close


def _by_appearance(labels):
    """Classes in the order in which they first appear, and the place of each row's class."""
    names, first, number = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return names[order], np.argsort(order)[number]


def thinned(labelled: Labelled, rng) -> Labelled:
    """A bounded number of rows, classes thinned alike, the rare ones last."""
    n = len(labelled.F)
    if n <= RULE.most_labelled:
        return labelled
    shuffled = rng.permutation(n)
    rank = np.empty(n)
    rank[shuffled] = _rank_in_class(labelled.labels[shuffled])
    rows = np.sort(np.argsort(rank, kind="stable")[: RULE.most_labelled])
    return labelled.rows(rows)


def _rank_in_class(labels):
    """How many rows of its class come before each row."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    rank = np.empty(len(labels), dtype=int)
    rank[order] = np.arange(len(labels)) - np.repeat(starts, np.diff(np.r_[starts, len(labels)]))
    return rank


def draw_splits(labels, q, rng) -> list[Trial]:
    """Plain folds for few classes and enough components, half-class splits otherwise.

    Numbers are one class of all rows.
    """
    counts = np.bincount(labels)
    if len(counts) <= RULE.few_classes and q >= len(counts) - 1:
        return _plain_folds(labels, rng)
    return _half_class_splits(labels, np.flatnonzero(counts >= 2), rng)


def _plain_folds(labels, rng):
    """Folds that share the rows of every class; a class keeps a row in each."""
    n, n_folds = len(labels), RULE.n_trials
    shuffled = rng.permutation(n)
    fold = np.empty(n, dtype=int)
    fold[shuffled] = (_rank_in_class(labels[shuffled]) + rng.integers(n_folds)) % n_folds
    fold[np.bincount(labels)[labels] < 2] = -1
    every = np.arange(labels.max() + 1)
    lost = [np.flatnonzero(fold == f) for f in range(n_folds)]
    folds = [f for f in range(n_folds) if len(lost[f])]
    return [Trial(np.flatnonzero(fold != f), lost[f], every) for f in folds]


def _half_class_splits(labels, able, rng):
    """Splits in which half of the classes, in rotation, lose some of their rows each."""
    half = max(min(len(able), RULE.least_contest), len(able) // 2)
    rounds = 2 + RULE.n_trials * half // len(able)
    queue = np.concatenate([rng.permutation(able) for _ in range(rounds)])
    splits = []
    for k in range(RULE.n_trials):
        classes = np.unique(queue[k * half : (k + 1) * half])
        lost = np.concatenate([_some_rows(labels, c, rng) for c in classes])
        splits.append(Trial(_others(lost, len(labels)), lost, classes))
    return splits


def _others(some, n):
    """Numbers below n that are none of some."""
    others = np.ones(n, dtype=bool)
    others[some] = False
    return np.flatnonzero(others)


def _some_rows(labels, c, rng):
    rows = np.flatnonzero(labels == c)
    return rng.choice(rows, max(1, len(rows) // RULE.one_row_of), replace=False)


def tuned(contest: Contest) -> Completions:
    """Stage 1 with its penalty tuned on all labelled rows."""
    (F, outputs, weights, _), variances = contest.labelled, contest.space.variances
    return {p: complete(F[:, :p], outputs, weights, variances=variances[:p]) for p in contest.sizes}


def run_trials(contest: Contest, fits: Completions, rng) -> list[Trial]:
    """Trials with stage 1 fitted at the penalties of ``fits``."""
    splits = draw_splits(contest.labelled.labels, contest.q, rng)
    return [split._replace(fits=_fits_without(contest, split, fits)) for split in splits]


def _fits_without(contest, split, fits):
    F, outputs, weights, _ = contest.labelled.rows(split.kept)
    return {p: recomplete(F[:, :p], outputs, weights, fit.penalty) for p, fit in fits.items()}


def class_losses(contest: Contest, trials) -> tuple[np.ndarray, np.ndarray]:
    """Log losses (candidates, rows that lose their label) of finding the class; those of chance."""
    labels, distances = contest.labelled.labels, []
    for trial, R in zip(trials, maps_of(contest, [trial.fits for trial in trials]), strict=True):
        T = mapped(contest, contest.labelled.F, R)
        kept = trial.kept[np.argsort(labels[trial.kept], kind="stable")]
        near = class_distances(T[:, trial.lost], T[:, kept], labels[kept])
        near[:, :, _others(trial.classes, near.shape[2])] = np.inf
        distances.append(near)
    truth = np.concatenate([labels[trial.lost] for trial in trials])
    chance = np.concatenate([np.full(len(x.lost), np.log(len(x.classes))) for x in trials])
    return soft_losses(np.concatenate(distances, axis=1), truth), chance


def number_losses(contest: Contest, trials) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors (candidates, rows that lose theirs) of a regression on T; of the mean alone.

    In units of each column's variance; an outlying row counts as three deviations.
    """
    labelled, losses = contest.labelled, []
    variance = np.maximum(column_variances(labelled), TINY)
    nothing = np.zeros((len(labelled.F), 1))
    for trial, R in zip(trials, maps_of(contest, [trial.fits for trial in trials]), strict=True):
        kept, lost = labelled.rows(trial.kept), labelled.outputs.rows(trial.lost)
        maps = (*mapped(contest, labelled.F, R), nothing)
        pairs = [(T[trial.kept], T[trial.lost]) for T in maps]
        losses.append([_regression_errors(kept, lost, *pair, variance) for pair in pairs])
    together = np.concatenate(losses, axis=1)
    return together[:-1], together[-1]


def column_variances(labelled: Labelled) -> np.ndarray:
    """Variance of every output over the rows that have it."""
    Y, observed, *_ = labelled.outputs
    seen = labelled.weights[:, None] * observed
    total = np.maximum(seen.sum(axis=0), TINY)
    mean = np.sum(seen * Y, axis=0) / total
    return np.sum(seen * (Y - mean) ** 2, axis=0) / total


def capped_errors(E, observed, variance) -> np.ndarray:
    """Mean over the outputs of a row of squared errors in variances, none above a limit."""
    squares = np.where(observed, np.minimum(E**2 / variance, RULE.largest_error), 0.0)
    return squares.sum(axis=1) / observed.sum(axis=1)


def _regression_errors(kept, lost, T, T_lost, variance):
    """Errors of the outputs of lost rows, regressed on T of the kept ones."""
    penalty = np.full(lost.Y.shape[1], RULE.regression_penalty)
    fit = recomplete(T, kept.outputs, kept.weights, penalty)
    return capped_errors(lost.Y - fit.offset - T_lost @ fit.B, lost.observed, variance)


def class_distances(A, B, labels) -> np.ndarray:
    """Squared distances (..., m, classes) of rows A to the nearest row of B in each class.

    The rows of B are sorted by class.
    """
    lengths = np.sum(B**2, axis=-1)[..., None]
    # Less the squared lengths of A, which are the same for all rows of B.
    D = np.concatenate([-2 * B, lengths], axis=-1) @ np.swapaxes(with_ones(A), -1, -2)
    edges = np.searchsorted(labels, np.arange(labels[-1] + 1))
    nearest = np.swapaxes(np.minimum.reduceat(D, edges, axis=-2), -1, -2)
    return np.maximum(nearest + np.sum(A**2, axis=-1)[..., None], 0.0)


def with_ones(A) -> np.ndarray:
    """A (..., m, q) with a last column of ones."""
    return np.concatenate([A, np.ones((*A.shape[:-1], 1), A.dtype)], axis=-1)


def soft_losses(D, truth) -> np.ndarray:
    """Log loss (candidates, rows) of p(c) ~ exp(-d_c / 2 h m), h the best common width."""
    nearest = D.min(axis=2)
    # Rows that repeat are near but for rounding, which is no width.
    largest = np.where(np.isfinite(D), D, 0.0).max(axis=(1, 2))
    scale = np.maximum(np.median(nearest, axis=1), np.maximum(RULE.rounding * largest, TINY))
    D = (D - nearest[:, :, None]) / scale[:, None, None]
    losses = np.array(list(_losses_by_width(D, truth)))
    best = np.argmin(losses.mean(axis=2), axis=0)
    return losses[best, np.arange(len(best))]


def _losses_by_width(D, truth):
    """Losses for every width from the widest: exponentials for half a width are squares."""
    far, P = D[:, np.arange(len(truth)), truth], np.exp(-D / (2 * RULE.widths[-1]))
    for width in RULE.widths[::-1]:
        yield np.log(P.sum(axis=-1)) + far / (2 * width)
        P *= P


def embed(contest: Contest, F, fits: Completions) -> np.ndarray:
    """Rows F in the maps of all candidates (candidates, n, q), given stage 1, in their dtype."""
    return mapped(contest, F, maps_of(contest, [fits])[0])


def maps_of(contest: Contest, fits: list[Completions]) -> list[list[np.ndarray]]:
    """For each of several stages 1 the maps (strengths, p, q) on each number p of directions."""
    space, by_size = contest.space, []
    for p in contest.sizes:
        blocks = [_label_root(found[p], space.variances[:p]) for found in fits]
        by_size.append(strength_maps(space, np.array(blocks), contest.q))
    return [list(maps) for maps in zip(*by_size, strict=True)]


def _label_root(completion, variances) -> np.ndarray:
    """A matrix (p, at most p) with the G G' of `label_block`, all of it that maps are made of."""
    root = np.linalg.cholesky(completion.covariance)
    G = np.sqrt(variances)[:, None] * solve_triangular(root, completion.B.T, lower=True).T
    return G if G.shape[1] <= len(G) else np.asarray(np.linalg.qr(G.T, mode="r")).T


def mapped(contest: Contest, F, maps) -> np.ndarray:
    """Rows F, without supervision and in the given maps (candidates, n, q), in their dtype."""
    n, T = len(F), [F[None, :, : contest.q]]
    for R in maps:
        p = R.shape[1]
        # One product for all strengths: narrow ones are slow.
        side_by_side = F[:, :p] @ np.swapaxes(R, 0, 1).reshape(p, -1).astype(F.dtype)
        T.append(np.swapaxes(side_by_side.reshape(n, len(R), -1), 0, 1))
    return np.concatenate(T)


def strength_maps(space: PrincipalSpace, G, q) -> np.ndarray:
    """The maps R (..., strengths, p, q) of `directions`, for all strengths and G (..., p, c).

    Eigenvectors come from the leading directions of x and of the label block, and one further
    step of the power method; distances are then right to about a hundredth.
    """
    s = np.array(RULE.strengths)[:, None, None]
    energy = np.maximum(np.sum(G**2, axis=(-1, -2)), TINY)[..., None, None, None]
    variances = space.variances[: G.shape[-2]]
    of_x, of_y = (1 - s) / space.total, s / energy
    Q = _leading_space(G, q + RULE.map_margin)[..., None, :, :]
    G, Q_t = G[..., None, :, :], np.swapaxes(Q, -1, -2)
    g = Q_t @ G
    A = of_x * ((Q_t * variances) @ Q) + of_y * (g @ np.swapaxes(g, -1, -2))
    values, U = np.linalg.eigh(A)
    values = np.maximum(values[..., None, : -q - 1 : -1], RULE.no_energy)
    U = Q @ U[..., : -q - 1 : -1]
    AU = of_x * variances[:, None] * U + of_y * (G @ (np.swapaxes(G, -1, -2) @ U))
    return np.sqrt(space.total / variances)[:, None] * AU / np.sqrt(values)


def _leading_space(G, m):
    """Orthonormal (..., p, at most 2m): the first m coordinates and the leading ones of G."""
    p, c = G.shape[-2:]
    if m + min(c, m) >= p:
        return np.eye(p)
    tail = G[..., m:, :]
    if c > m:
        tail = tail @ np.linalg.eigh(np.swapaxes(G, -1, -2) @ G)[1][..., : -m - 1 : -1]
    tail, _ = np.linalg.qr(tail)
    Q = np.zeros((*G.shape[:-1], m + tail.shape[-1]))
    Q[..., :m, :m] = np.eye(m)
    Q[..., m:, m:] = tail
    return Q
