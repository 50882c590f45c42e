"""Unlabelled rows that take part in stage 1 with the class on which many maps agree.

Every map votes for the class of its nearest labelled row, and stage 1 for the nearest code. The
share of votes q_n of the leading class is the confidence in a row; it enters stage 1 with weight
q_n^8, so that rows without near unanimity hardly count. The maps of that second stage 1 vote
again. Labels of test rows are never seen.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.completion import TINY, Completion, complete
from gnomon.models.supervision import Pool, label_block
from gnomon.models.supervision_maps import embed, maps
from gnomon.models.supervision_trials import LARGEST_ERROR, Labelled, column_variances

STAGE_ONE_VOTE = 0.5
CONFIDENCE_POWER = 8


class Votes(NamedTuple):
    """Unlabelled rows (m,) with their class number, its code (m, c) and what they weigh.

    ``fit`` is stage 1 that they complete, where all labelled rows took part in it.
    """

    rows: np.ndarray
    codes: np.ndarray
    Y: np.ndarray
    weights: np.ndarray
    fit: Completion | None = None


class Ballot(NamedTuple):
    """Unlabelled rows: their numbers, coordinates F and weights."""

    rows: np.ndarray
    F: np.ndarray
    weights: np.ndarray


def votes_of(pool: Pool, labelled: Labelled, F, candidates, q, fits) -> np.ndarray:
    """Class (candidates, n) of rows F by the nearest labelled row in each candidate's map."""
    blocks = {p: label_block(fit, pool.variances[:p]) for p, fit in fits.items()}
    found = maps(pool, candidates, blocks, q)
    T1, T = (embed(rows, found, len(candidates), q) for rows in (labelled.F, F))
    near = [nearest(*pair) for pair in zip(T, T1, strict=True)]
    return labelled.codes[np.array(near)]


def shares(votes, stage_one, n_classes) -> np.ndarray:
    """Share of the votes (n, classes) that each class has, stage 1 counting for half a jury."""
    share = np.mean(votes[:, :, None] == np.arange(n_classes), axis=0)
    share += STAGE_ONE_VOTE * (stage_one[:, None] == np.arange(n_classes))
    return share / (1 + STAGE_ONE_VOTE)


def stage_one_votes(fits, labelled: Labelled, F) -> np.ndarray:
    """Class whose code is nearest to the completed label, on the large pool."""
    fit = fits[max(fits)]
    return nearest(fit.offset + F[:, : len(fit.B)] @ fit.B, class_codes(labelled))


def nearest(A, B) -> np.ndarray:
    """Number of the row of B (m, c) nearest to each row of A."""
    D = A @ (-2 * B.T)
    D += np.sum(B**2, axis=1)
    return np.argmin(D, axis=1)


def class_codes(labelled: Labelled) -> np.ndarray:
    """Code of every class, as its rows have it."""
    _, first = np.unique(labelled.codes, return_index=True)
    return labelled.Y[first]


def elect(pool: Pool, labelled: Labelled, ballot: Ballot, candidates, q, share):
    """Votes after a second round among maps that the first one's ``share`` has completed.

    Also the shares of that round, and stage 1 that its votes complete on each pool.
    """
    jury = [candidate for candidate in candidates if candidate.s > 0]
    F = np.vstack([labelled.F, ballot.F])
    rows = {p: np.ascontiguousarray(F[:, :p]) for p in {candidate.pool for candidate in jury}}
    fits = {p: _second_completion(labelled, ballot, share, F) for p, F in rows.items()}
    cast = votes_of(pool, labelled, ballot.F, jury, q, fits)
    share = shares(cast, stage_one_votes(fits, labelled, ballot.F), share.shape[1])
    fits = {p: _second_completion(labelled, ballot, share, F) for p, F in rows.items()}
    winners, weights = np.argmax(share, axis=1), np.max(share, axis=1) ** CONFIDENCE_POWER
    Y = class_codes(labelled)[winners]
    return Votes(ballot.rows, labelled.names[winners], Y, weights), share, fits


def _second_completion(labelled, ballot, share, F) -> Completion:
    """Stage 1 on the labelled rows and on the ballot, the rows F, by the shares of the votes."""
    winners, confidence = np.argmax(share, axis=1), np.max(share, axis=1)
    return complete(
        F,
        np.vstack([labelled.Y, class_codes(labelled)[winners]]),
        np.ones((len(labelled.F) + len(ballot.F), labelled.Y.shape[1]), dtype=bool),
        np.concatenate([labelled.weights, ballot.weights * confidence**CONFIDENCE_POWER]),
        np.concatenate([labelled.codes, winners]),
        np.concatenate([labelled.weights, ballot.weights]),
    )


def left_out_evidence(fits, labelled: Labelled) -> float:
    """Standard score of the classes that stage 1 finds for rows left out, against chance.

    Classes count the same; the better of the pools is taken.
    """
    codes, counts = class_codes(labelled), np.bincount(labelled.codes)
    chance = 1 / len(counts)
    error = np.sqrt(chance * (1 - chance) * np.sum(1 / counts)) / len(counts)
    scores = []
    for fit in fits.values():
        hits = nearest(labelled.Y - fit.residuals, codes) == labelled.codes
        rate = np.mean(np.bincount(labelled.codes, hits) / counts)
        scores.append((rate - chance) / error)
    return float(max(scores))


def held_out_evidence(labelled: Labelled, splits, trials) -> float:
    """The same for rows that lose their labels in trials, against the classes they compete with.

    Leaving out one of two labels of a class weakens that class alone; here all competitors are
    equally short of labels, so that few labels can tell. Repeats of a row are averaged.
    """
    codes = class_codes(labelled)
    held = np.concatenate([split.held for split in splits])
    chance = np.concatenate([np.full(len(x.held), 1 / len(x.classes)) for x in splits])
    _, row, counts = np.unique(held, return_inverse=True, return_counts=True)
    error = np.sqrt(chance.mean() * (1 - chance.mean()) / len(counts))
    scores = []
    for p in trials[0]:
        pairs = zip(splits, trials, strict=True)
        hits = np.concatenate([_found(labelled, split, codes, fit[p]) for split, fit in pairs])
        rates = np.bincount(row, hits - chance) / counts
        scores.append(rates.mean() / max(error, TINY))
    return float(max(scores))


def _found(labelled, split, codes, fit):
    """Whether stage 1 without the held rows finds the class of each of them."""
    predicted = fit.offset + labelled.F[split.held, : len(fit.B)] @ fit.B
    found = split.classes[nearest(predicted, codes[split.classes])]
    return found == labelled.codes[split.held]


def left_out_gain(fits, labelled: Labelled) -> float:
    """Standard score by which stage 1 predicts numbers of rows left out better than their mean.

    Squared errors in units of each column's variance, none above nine; the better pool is taken.
    """
    seen, n = labelled.observed, len(labelled.F)
    counts = np.maximum(seen.sum(axis=0), 2)
    variance = np.maximum(column_variances(labelled), TINY)
    away = labelled.Y - np.sum(labelled.Y * seen, axis=0) / counts
    chance = _capped(away * counts / (counts - 1), seen, variance)
    scores = []
    for fit in fits.values():
        gain = chance - _capped(fit.residuals, seen, variance)
        scores.append(gain.mean() / max(gain.std() / np.sqrt(max(n - 1, 1)), TINY))
    return float(max(scores))


def _capped(E, seen, variance):
    """Mean over the outputs seen of each row's squared errors."""
    squares = np.where(seen, np.minimum(E**2 / variance, LARGEST_ERROR), 0.0)
    return squares.sum(axis=1) / seen.sum(axis=1)
