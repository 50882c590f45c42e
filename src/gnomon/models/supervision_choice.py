"""The automatic choice of the strength of supervision, by what labelled rows say of each other.

Candidates are s = 0 and a grid of s, on a small and on a large pool. Rows lose their labels, the
map is fitted without them, and they must find their class (or their numbers) again.

    splits        half of the classes lose some rows each, and these compete among those classes:
                  otherwise the classes short of labels gather near the origin, where a badly
                  predicted row also lies, and it is right for the wrong reason
    loss          log loss of the nearest labelled row of each class
    criterion     loss relative to that of s = 0, a quarter of its standard error, and the
                  disagreement with the consensus of all candidates on unlabelled rows
    guard         where neither s = 0 is beaten nor chance, the weakest supervision is taken

Labels of test rows are never seen: unlabelled rows enter by their x only.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.completion import Completion, class_weights, complete, recomplete
from gnomon.models.supervision import (
    Pool,
    coordinates,
    directions,
    label_block,
    labelled_rows,
)

STRENGTHS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
SMALL_POOL = 40
SPLITS = 20
FOLDS = 10
# Up to so many classes compete all together: a contest of three is too easy to rank maps.
FEW_CLASSES = 6
WIDTHS = 2.0 ** np.arange(-4, 7)
ERROR_WEIGHT = 0.25
STAGE_ONE_VOTE = 0.5
BEATS_PCA, BEATS_CHANCE = 1.0, 2.0
MOST_LABELLED, MOST_UNLABELLED = 2000, 4000


class Curve(NamedTuple):
    """One entry per candidate: its strength and pool, mean loss, gain, and what decided."""

    s: np.ndarray
    pool: np.ndarray
    loss: np.ndarray
    relative: np.ndarray
    error: np.ndarray
    disagreement: np.ndarray
    criterion: np.ndarray


class Choice(NamedTuple):
    """Chosen strength and size of the pool; whether the guard chose; the curve, if there is one."""

    s: float
    pool: int
    guarded: bool = False
    curve: Curve | None = None


class Labelled(NamedTuple):
    """Distinct labelled rows in an order of their own: coordinates, outputs, weights, classes."""

    F: np.ndarray
    Y: np.ndarray
    observed: np.ndarray
    weights: np.ndarray
    codes: np.ndarray | None


class Split(NamedTuple):
    """Rows that keep their label, rows that lose it, and the classes that compete for these."""

    kept: np.ndarray
    held: np.ndarray
    classes: np.ndarray


class Candidate(NamedTuple):
    """A strength on a pool of leading directions."""

    pool: int
    s: float


def choose(pool: Pool, Y, observed, q, codes, rng) -> Choice:
    """The strength and pool for q components; codes are class numbers, -1 unlabelled, or None."""
    labelled = distinct_rows(pool, Y, observed, codes)
    size = len(pool.variances)
    if codes is None or np.sum(np.bincount(labelled.codes, minlength=2) >= 2) < 2:
        return Choice(0.0, size)
    labelled = _fewer(labelled, rng)
    candidates = grid(size, q)
    splits = class_splits(labelled.codes, q, rng)
    losses = soft_losses(*held_out_distances(pool, labelled, splits, candidates, q))
    F = coordinates(pool, _unlabelled(pool, observed, len(labelled.F), rng))
    disagreement = consensus(pool, labelled, F, candidates, q)
    return decide(candidates, losses, disagreement, np.mean([len(x.classes) for x in splits]))


def grid(size, q) -> list[Candidate]:
    """No supervision, then every strength on the small and on the large pool."""
    pools = sorted({min(size, max(SMALL_POOL, 2 * q)), size})
    return [Candidate(size, 0.0)] + [Candidate(p, s) for p in pools for s in STRENGTHS]


def distinct_rows(pool: Pool, Y, observed, codes) -> Labelled:
    """Labelled rows, equal ones merged and their weights added, in an order of their own.

    So weights count as repeated rows, and neither the order of rows nor the names of the
    classes decide which rows a split holds out. Equal rows also tell nothing of each other.
    """
    rows, weights = labelled_rows(pool, observed)
    F = coordinates(pool, rows)
    order = np.argsort(np.sum(F**2, axis=1), kind="stable")
    F, weights, rows = F[order], weights[order], rows[order]
    outputs = np.where(observed[rows], Y[rows], np.inf)
    close = np.max(np.abs(np.diff(F, axis=0)), axis=1, initial=0) <= 1e-9 * np.abs(F).max(initial=0)
    same = close & np.all(outputs[1:] == outputs[:-1], axis=1)
    group = np.cumsum(np.r_[0, ~same]) if len(rows) else rows
    first = np.flatnonzero(np.diff(group, prepend=-1))
    rows = rows[first]
    numbers = None if codes is None else _by_appearance(codes[rows])
    return Labelled(F[first], Y[rows], observed[rows], np.bincount(group, weights), numbers)


def _by_appearance(codes):
    """Classes numbered in the order in which they first appear."""
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


def _fewer(labelled, rng):
    """At most MOST_LABELLED rows, classes thinned alike, the rare ones last."""
    n = len(labelled.F)
    if n <= MOST_LABELLED:
        return labelled
    shuffled = rng.permutation(n)
    rank = np.empty(n)
    rank[shuffled] = _rank_in_class(labelled.codes[shuffled])
    rows = np.sort(np.argsort(rank, kind="stable")[:MOST_LABELLED])
    return Labelled(*[part[rows] for part in labelled])


def _rank_in_class(codes):
    """How many rows of its class come before each row."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    rank = np.empty(len(codes), dtype=int)
    rank[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    return rank


def class_splits(codes, q, rng) -> list[Split]:
    """Ten folds twice for few classes and enough components, half-class splits otherwise."""
    counts = np.bincount(codes)
    if len(counts) <= FEW_CLASSES and q >= len(counts) - 1:
        return _plain_folds(codes, rng) + _plain_folds(codes, rng)
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
    half = max(2, len(able) // 2)
    queue = np.concatenate([rng.permutation(able) for _ in range(1 + SPLITS * half // len(able))])
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


def held_out_distances(pool, labelled, splits, candidates, q):
    """Squared distances (candidates, held, classes) to the nearest row of each class, and truth.

    A class that does not compete is infinitely far.
    """
    penalties = _penalties(labelled, candidates)
    D = [_split_distances(pool, labelled, split, candidates, q, penalties) for split in splits]
    return np.concatenate(D, axis=1), np.concatenate([labelled.codes[x.held] for x in splits])


def _penalties(labelled, candidates):
    """Stage 1's penalty on each pool, tuned once on all labelled rows."""
    pools = {candidate.pool for candidate in candidates}
    return {p: float(_completion(labelled, p).penalty[0]) for p in pools}


def _completion(labelled, p) -> Completion:
    F, Y, observed, weights, codes = labelled
    return complete(F[:, :p], Y, observed, weights, codes)


def _split_distances(pool, labelled, split, candidates, q, penalties):
    codes = labelled.codes
    kept = split.kept[np.argsort(codes[split.kept], kind="stable")]
    blocks = {}
    for p, penalty in penalties.items():
        weights = labelled.weights[kept]
        balanced = class_weights(codes[kept], weights)
        fit = recomplete(labelled.F[kept, :p], labelled.Y[kept], weights, balanced, penalty)
        blocks[p] = label_block(fit, pool.variances[:p])
    closed = np.setdiff1d(np.arange(codes.max() + 1), split.classes)
    D = np.empty((len(candidates), len(split.held), codes.max() + 1))
    for i, candidate in enumerate(candidates):
        T = embed(pool, labelled.F, candidate, blocks[candidate.pool], q)
        D[i] = class_distances(T[split.held], T[kept], codes[kept])
    D[:, :, closed] = np.inf
    return D


def embed(pool, F, candidate, G, q):
    """Rows F of the pool in the map of a candidate with label block G."""
    p, s = candidate
    if s == 0:
        return F[:, :q]
    return F[:, :p] @ directions(pool.variances[:p], pool.total, G, q, s).R


def class_distances(A, B, codes):
    """Squared distances (m, classes) of rows A to the nearest row of B in each class.

    The rows of B are sorted by class.
    """
    D = np.sum(A**2, axis=1)[:, None] + np.sum(B**2, axis=1) - 2 * A @ B.T
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    return np.maximum(np.minimum.reduceat(D, starts, axis=1), 0.0)


def soft_losses(D, truth) -> np.ndarray:
    """Log loss (candidates, held) of p(c) ~ exp(-d_c / 2 h m), h the best common width."""
    nearest = D.min(axis=2)
    scale = np.maximum(np.median(nearest, axis=1), np.finfo(float).tiny)
    D = (D - nearest[:, :, None]) / scale[:, None, None]
    losses = []
    for width in WIDTHS:
        E = -D / (2 * width)
        losses.append(np.log(np.sum(np.exp(E), axis=2)) - E[:, np.arange(len(truth)), truth])
    losses = np.array(losses)
    best = np.argmin(losses.mean(axis=2), axis=0)
    return losses[best, np.arange(len(best))]


def _unlabelled(pool, observed, n_labelled, rng):
    """Rows without label, so many that their distances to the labelled ones stay cheap."""
    weights = np.ones(len(observed)) if pool.weights is None else pool.weights
    rows = np.flatnonzero(~observed.any(axis=1) & (weights > 0))
    most = min(MOST_UNLABELLED, max(500, 2_000_000 // n_labelled))
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def consensus(pool, labelled, F, candidates, q) -> np.ndarray:
    """Share of unlabelled rows F on which each candidate's nearest label is not the consensus."""
    if not len(F):
        return np.zeros(len(candidates))
    order = np.argsort(labelled.codes, kind="stable")
    codes, n_classes = labelled.codes[order], labelled.codes.max() + 1
    fits = {p: _completion(labelled, p) for p in {c.pool for c in candidates}}
    votes = np.empty((len(candidates), len(F)), dtype=int)
    for i, candidate in enumerate(candidates):
        G = label_block(fits[candidate.pool], pool.variances[: candidate.pool])
        T, T1 = (embed(pool, rows, candidate, G, q) for rows in (F, labelled.F[order]))
        votes[i] = np.argmin(class_distances(T, T1, codes), axis=1)
    share = np.mean([np.eye(n_classes)[vote] for vote in votes], axis=0)
    share += STAGE_ONE_VOTE * np.eye(n_classes)[_stage_one_votes(fits, labelled, F)]
    share /= 1 + STAGE_ONE_VOTE
    return 1 - np.mean(share[np.arange(len(F)), votes], axis=1)


def _stage_one_votes(fits, labelled, F):
    """Class whose code is nearest to the completed label, on the large pool."""
    size = max(fits)
    _, first = np.unique(labelled.codes, return_index=True)
    codes = labelled.Y[first]
    predicted = fits[size].offset + F[:, :size] @ fits[size].B
    return np.argmin(np.sum(codes**2, axis=1) - 2 * predicted @ codes.T, axis=1)


def decide(candidates, losses, disagreement, n_competing) -> Choice:
    """The candidate of least criterion, or the weakest one where the evidence is thin."""
    level = max(losses[0].mean(), np.finfo(float).tiny)
    gains = (losses - losses[0]) / level
    count = losses.shape[1]
    relative, error = gains.mean(axis=1), gains.std(axis=1) / np.sqrt(count)
    criterion = relative + ERROR_WEIGHT * error + disagreement
    best = int(np.argmin(criterion))
    chance_error = losses[best].std() / np.sqrt(count)
    trusted = best == 0 or (
        -relative[best] > BEATS_PCA * error[best]
        or np.log(n_competing) - losses[best].mean() > BEATS_CHANCE * chance_error
    )
    s, sizes = (np.array([getattr(c, name) for c in candidates]) for name in ("s", "pool"))
    mean = losses.mean(axis=1)
    curve = Curve(s, sizes, mean, relative, error, disagreement, criterion)
    chosen = candidates[best] if trusted else candidates[1]
    return Choice(float(chosen.s), int(chosen.pool), not trusted, curve)
