"""The automatic choice of the strength of supervision, by what labelled rows say of each other.

Candidates are s = 0 and a grid of s, on a small and on a large pool.

    loss          of rows that lose their label, see supervision_trials
    criterion     loss relative to that of s = 0, a quarter of its standard error, and the
                  disagreement with the consensus of all candidates on unlabelled rows
    guard         where neither s = 0 is beaten nor chance, the weakest supervision is taken

Labels of test rows are never seen: unlabelled rows enter by their x only.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.completion import TINY
from gnomon.models.supervision import Pool, coordinates, label_block
from gnomon.models.supervision_trials import (
    Candidate,
    class_distances,
    class_losses,
    distinct_rows,
    draw_splits,
    embed,
    number_losses,
    thinned,
    tuned,
)

STRENGTHS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
SMALL_POOL = 40
ERROR_WEIGHT = 0.25
STAGE_ONE_VOTE = 0.5
BEATS_PCA, BEATS_CHANCE = 1.0, 2.0
# Fewer rows with numbers say nothing of rows left out.
LEAST_NUMBERS = 5
MOST_UNLABELLED = 4000


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


def choose(pool: Pool, Y, observed, q, codes, rng) -> Choice:
    """The strength and pool for q components; codes are class numbers, -1 unlabelled, or None."""
    labelled = thinned(distinct_rows(pool, Y, observed, codes), rng)
    if not _can_be_tried(labelled):
        return Choice(0.0, len(pool.variances))
    candidates = grid(len(pool.variances), q)
    fits = tuned(labelled, candidates)
    splits = draw_splits(labelled.codes, q, rng)
    if not labelled.are_classes:
        losses, chance = number_losses(pool, labelled, splits, candidates, q, fits)
        return decide(candidates, losses, chance, np.zeros(len(candidates)))
    losses = class_losses(pool, labelled, splits, candidates, q, fits)
    chance = np.concatenate([np.full(len(x.held), np.log(len(x.classes))) for x in splits])
    rows, weights = _unlabelled(pool, observed, len(labelled.F), rng)
    votes, completed = vote(pool, labelled, coordinates(pool, rows), candidates, q, fits)
    return decide(candidates, losses, chance, consensus(votes, completed, weights))


def _can_be_tried(labelled):
    """Two classes with two rows each, or a few rows with numbers."""
    counts = np.bincount(labelled.codes, minlength=1)
    return np.sum(counts >= 2) >= 2 if labelled.are_classes else counts[0] >= LEAST_NUMBERS


def grid(size, q) -> list[Candidate]:
    """No supervision, then every strength on the small and on the large pool."""
    pools = sorted({min(size, max(SMALL_POOL, 2 * q)), size})
    return [Candidate(size, 0.0)] + [Candidate(p, s) for p in pools for s in STRENGTHS]


def _unlabelled(pool, observed, n_labelled, rng):
    """Rows without label and their weights, so many that distances to labelled rows stay cheap."""
    weights = np.ones(len(observed)) if pool.weights is None else pool.weights
    rows = np.flatnonzero(~observed.any(axis=1) & (weights > 0))
    most = min(MOST_UNLABELLED, max(500, 2_000_000 // n_labelled))
    rows = rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
    return rows, weights[rows]


def vote(pool, labelled, F, candidates, q, fits):
    """Class of each unlabelled row F by each candidate's nearest label, and by stage 1."""
    order = np.argsort(labelled.codes, kind="stable")
    blocks = {p: label_block(fit, pool.variances[:p]) for p, fit in fits.items()}
    T1 = embed(pool, labelled.F[order], candidates, blocks, q)
    T = embed(pool, F, candidates, blocks, q)
    near = [class_distances(*pair, labelled.codes[order]) for pair in zip(T, T1, strict=True)]
    return np.argmin(near, axis=2), _stage_one_votes(fits[max(fits)], labelled, F)


def _stage_one_votes(fit, labelled, F):
    """Class whose code is nearest to the completed label."""
    _, first = np.unique(labelled.codes, return_index=True)
    codes = labelled.Y[first]
    predicted = fit.offset + F[:, : len(fit.B)] @ fit.B
    return np.argmin(np.sum(codes**2, axis=1) - 2 * predicted @ codes.T, axis=1)


def consensus(votes, completed, weights) -> np.ndarray:
    """Mean disagreement of each candidate's votes with the average of all and of stage 1."""
    if not len(weights):
        return np.zeros(len(votes))
    share = np.mean(votes[:, None] == votes[None], axis=1)
    share = (share + STAGE_ONE_VOTE * (votes == completed)) / (1 + STAGE_ONE_VOTE)
    return 1 - np.average(share, axis=1, weights=weights)


def decide(candidates, losses, chance, disagreement) -> Choice:
    """The candidate of least criterion, or the weakest one where the evidence is thin."""
    level = max(losses[0].mean(), TINY)
    relative, error = _mean_and_error((losses - losses[0]) / level)
    criterion = relative + ERROR_WEIGHT * error + disagreement
    best = int(np.argmin(criterion))
    above, above_error = _mean_and_error(chance - losses[best])
    beats_pca = -relative[best] > BEATS_PCA * error[best]
    trusted = bool(best == 0 or beats_pca or above > BEATS_CHANCE * above_error)
    chosen = candidates[best if trusted else 1]
    s, sizes = (np.array([getattr(c, name) for c in candidates]) for name in ("s", "pool"))
    curve = Curve(s, sizes, losses.mean(axis=1), relative, error, disagreement, criterion)
    return Choice(float(chosen.s), int(chosen.pool), not trusted, curve)


def _mean_and_error(values):
    return values.mean(axis=-1), values.std(axis=-1) / np.sqrt(values.shape[-1])
