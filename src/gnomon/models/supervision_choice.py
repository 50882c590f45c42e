"""The automatic choice of the strength of supervision, by what labelled rows say of each other.

Candidates are s = 0 and a grid of s, on a small and on a large pool.

    evidence      stage 1 finds the labels of rows left out better than chance, or the best
                  candidate beats s = 0 on them by twice its error; otherwise s = 0
    loss          of rows that lose their label, see supervision_trials, relative to s = 0
    votes         unlabelled rows take part with the class on which the candidates agree, see
                  supervision_votes; a candidate should agree with what is so completed

Labels of test rows are never seen: unlabelled rows enter by their x only.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.completion import TINY
from gnomon.models.supervision import Pool, coordinates
from gnomon.models.supervision_maps import Candidate
from gnomon.models.supervision_trials import (
    class_losses,
    distinct_rows,
    draw_splits,
    number_losses,
    thinned,
    trial_fits,
    tuned,
)
from gnomon.models.supervision_votes import (
    Ballot,
    Votes,
    elect,
    held_out_evidence,
    left_out_evidence,
    left_out_gain,
    shares,
    stage_one_votes,
    votes_of,
)

STRENGTHS = (0.1, 0.25, 0.5, 0.9, 0.99)
SMALL_POOL = 40
# Losses count relative to that of s = 0, or to this share of chance's where s = 0 is faultless;
# none counts more than so many times chance's.
LEAST_LEVEL, LARGEST_LOSS = 0.2, 3.0
ERROR_WEIGHT = 0.25
FIRST_DISAGREEMENT, LOSS_AFTER_VOTES = 0.25, 0.5
FINDS_LABELS, FINDS_IN_TRIALS, BEATS_PCA = 1.8, 2.7, 2.0
# Labels found so surely are heeded even where the trials, which lack some of them, prefer s = 0.
FINDS_SURELY = 3.5
# Fewer rows with numbers say nothing of rows left out.
LEAST_NUMBERS = 5
MOST_UNLABELLED = 1500


class Curve(NamedTuple):
    """One entry per candidate: strength, pool, loss relative to s = 0, its error, what decided."""

    s: np.ndarray
    pool: np.ndarray
    loss: np.ndarray
    error: np.ndarray
    disagreement: np.ndarray
    criterion: np.ndarray


class Choice(NamedTuple):
    """Chosen strength and size of the pool, what decided, and unlabelled rows that take part.

    ``guarded`` says that evidence was too thin for the candidate of least criterion.
    """

    s: float
    pool: int
    guarded: bool = False
    curve: Curve | None = None
    votes: Votes | None = None


class Trial(NamedTuple):
    """Loss of every candidate relative to that of s = 0, and its standard error."""

    loss: np.ndarray
    error: np.ndarray


def choose(pool: Pool, Y, observed, q, codes, rng) -> Choice:
    """The strength and pool for q components; codes are class numbers, -1 unlabelled, or None."""
    everyone = distinct_rows(pool, Y, observed, codes)
    labelled = thinned(everyone, rng)
    if not _can_be_tried(labelled):
        return Choice(0.0, len(pool.variances))
    candidates = grid(len(pool.variances), q)
    fits = tuned(labelled, candidates)
    splits = draw_splits(labelled.codes, q, rng)
    held = np.concatenate([split.held for split in splits])
    trials = trial_fits(labelled, splits, fits)
    if not labelled.are_classes:
        losses, chance = number_losses(pool, labelled, splits, candidates, q, trials)
        found = left_out_gain(fits, labelled) > FINDS_LABELS
        nobody = np.zeros(len(candidates))
        return _choice(candidates, relative_losses(losses, chance, held), nobody, found)
    losses = class_losses(pool, labelled, splits, candidates, q, trials)
    chance = np.concatenate([np.full(len(x.held), np.log(len(x.classes))) for x in splits])
    ballot = _ballot(pool, observed, len(labelled.F), rng)
    apart, share = _first_votes(pool, labelled, ballot, candidates, q, fits)
    alone = left_out_evidence(fits, labelled)
    found = alone > FINDS_LABELS or held_out_evidence(labelled, splits, trials) > FINDS_IN_TRIALS
    first = _choice(candidates, relative_losses(losses, chance, held), apart, found)
    if not len(ballot.rows) or (first.s == 0 and alone <= FINDS_SURELY):
        return first
    elected, share, fits = elect(pool, labelled, ballot, candidates, q, share)
    votes = votes_of(pool, labelled, ballot.F, candidates, q, fits)
    choice = _after_votes(first, candidates, disagreement(votes, share, ballot.weights))
    if choice.s == 0:
        return choice
    # What has been thinned is fitted again with all labelled rows.
    fit = fits[choice.pool] if labelled is everyone else None
    return choice._replace(votes=elected._replace(fit=fit))


def _first_votes(pool, labelled, ballot, candidates, q, fits):
    """Disagreement of every candidate with all, and the shares of the votes."""
    votes = votes_of(pool, labelled, ballot.F, candidates, q, fits)
    share = shares(votes, stage_one_votes(fits, labelled, ballot.F), labelled.codes.max() + 1)
    return disagreement(votes, share, ballot.weights), share


def _can_be_tried(labelled):
    """Two classes with two rows each, or a few rows with numbers."""
    counts = np.bincount(labelled.codes, minlength=1)
    return np.sum(counts >= 2) >= 2 if labelled.are_classes else counts[0] >= LEAST_NUMBERS


def grid(size, q) -> list[Candidate]:
    """No supervision, then every strength on the small and on the large pool."""
    pools = sorted({min(size, max(SMALL_POOL, 2 * q)), size})
    return [Candidate(size, 0.0)] + [Candidate(p, s) for p in pools for s in STRENGTHS]


def _ballot(pool, observed, n_labelled, rng) -> Ballot:
    """Unlabelled rows, so many that their distances to the labelled ones stay cheap."""
    weights = np.ones(len(observed)) if pool.weights is None else pool.weights
    rows = np.flatnonzero(~observed.any(axis=1) & (weights > 0))
    most = min(MOST_UNLABELLED, max(500, 2_000_000 // n_labelled))
    rows = rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
    return Ballot(rows, coordinates(pool, rows), weights[rows])


def relative_losses(losses, chance, held) -> Trial:
    """Mean over trials; its error over distinct rows, as a row is held out more than once."""
    losses = np.minimum(losses, LARGEST_LOSS * chance)
    gains = (losses - losses[0]) / max(losses[0].mean(), LEAST_LEVEL * chance.mean(), TINY)
    _, row, counts = np.unique(held, return_inverse=True, return_counts=True)
    means = np.array([np.bincount(row, gain) / counts for gain in gains])
    return Trial(gains.mean(axis=1), means.std(axis=1) / np.sqrt(max(len(counts) - 1, 1)))


def disagreement(votes, share, weights) -> np.ndarray:
    """Mean share of the votes that each candidate's own votes do not have."""
    if not len(weights):
        return np.zeros(len(votes))
    return np.array([1 - np.average(share[np.arange(len(v)), v], weights=weights) for v in votes])


def _choice(candidates, trial, apart, finds_labels=False) -> Choice:
    """The candidate of least criterion, or none where the evidence is thin."""
    criterion = trial.loss + ERROR_WEIGHT * trial.error + FIRST_DISAGREEMENT * apart
    best = int(np.argmin(criterion))
    beats_pca = -trial.loss[best] > BEATS_PCA * trial.error[best]
    trusted = bool(best == 0 or finds_labels or beats_pca)
    s, sizes = (np.array([getattr(c, name) for c in candidates]) for name in ("s", "pool"))
    curve = Curve(s, sizes, trial.loss, trial.error, apart, criterion)
    chosen = candidates[best if trusted else 0]
    return Choice(float(chosen.s), int(chosen.pool), not trusted, curve)


def _after_votes(first, candidates, apart) -> Choice:
    """The candidate whose map, fitted with the votes, agrees most with them; losses count too."""
    loss = first.curve.loss + ERROR_WEIGHT * first.curve.error
    criterion = LOSS_AFTER_VOTES * loss + apart
    # Without supervision the votes change nothing; the first round has mostly ruled it out.
    possible = np.where((np.arange(len(criterion)) > 0) | (first.s == 0), criterion, np.inf)
    chosen = candidates[int(np.argmin(possible))]
    curve = first.curve._replace(disagreement=apart, criterion=criterion)
    return Choice(float(chosen.s), int(chosen.pool), False, curve)
