"""The automatic choice of the strength of supervision, by what labelled rows say of each other.

Candidates are s = 0 and some strengths, on few and on all principal directions.

    loss          of rows that lose their label, relative to s = 0; see `trials`
    evidence      stage 1 finds the labels of rows left out better than chance, or the best
                  candidate beats s = 0 on them by twice its error, or unlabelled rows show
                  clusters that the labels tell apart; otherwise s = 0
    votes         every map votes for the class of its nearest labelled row, and stage 1 for the
                  nearest code vector. With the leading class and weight share^8 an unlabelled
                  row takes part in stage 1, and the maps of that vote again: pseudo-labels. A
                  candidate should agree with what is so completed

Labels of test rows are never seen: unlabelled rows enter by their x only.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import row_slices
from gnomon.models.strength.closed_form import (
    Learnt,
    PrincipalSpace,
    coordinates,
    weights_of,
)
from gnomon.models.strength.clusters import cluster_shares
from gnomon.models.strength.completion import Outputs, Votes, complete_with_votes, for_new_rows
from gnomon.models.strength.rule import RULE, TINY
from gnomon.models.strength.trials import (
    Candidate,
    Completions,
    Contest,
    Labelled,
    capped_errors,
    class_losses,
    column_variances,
    distinct_rows,
    embed,
    number_losses,
    run_trials,
    thinned,
    tuned,
    with_ones,
)


class Curve(NamedTuple):
    """One entry per candidate: strength, number of directions (pool), loss relative to s = 0.

    Then the error of the loss, the disagreement with the votes, and the criterion that decided.
    """

    s: np.ndarray
    pool: np.ndarray
    loss: np.ndarray
    error: np.ndarray
    disagreement: np.ndarray
    criterion: np.ndarray


class Choice(NamedTuple):
    """Chosen strength and number of directions, what decided, and votes that take part.

    ``learnt`` is stage 1 on these directions, where all labelled rows took part in it.
    """

    s: float
    n_directions: int
    curve: Curve | None = None
    votes: Votes | None = None
    learnt: Learnt | None = None


class Unlabelled(NamedTuple):
    """Rows without a label: their numbers and weights; F holds the labelled rows, then these.

    ``short`` is F in single precision, of entries about one, and ``plain`` the votes of the map
    without supervision. ``group`` numbers those that vote together, the members of a chunk, and
    all others alone.
    """

    rows: np.ndarray
    weights: np.ndarray
    F: np.ndarray
    short: np.ndarray
    plain: np.ndarray
    group: np.ndarray | None = None


def choose(
    space: PrincipalSpace, outputs: Outputs, q, rng, before: Candidate | None = None
) -> Choice:
    """The strength and number of directions for q components.

    Those of a fit ``before`` stay unless others are clearly better: labels that are added one by
    one would otherwise turn the map with each of them.
    """
    everyone = distinct_rows(space, outputs)
    labelled = thinned(everyone, rng)
    if not _can_be_tried(labelled):
        return Choice(0.0, len(space.variances))
    contest = Contest(space, labelled, q, before)
    fits = tuned(contest)
    if outputs.labels is None:
        choice = _by_numbers(contest, fits, rng)
    else:
        choice = _by_classes(contest, fits, outputs, rng)
    if labelled is everyone:
        F, known, weights, _ = labelled
        p = choice.n_directions
        fit = for_new_rows(fits[p], F[:, :p], known, weights, space.variances[:p])
        return choice._replace(learnt=Learnt(fit, known, weights))
    # What has been thinned is fitted again with all labelled rows.
    votes = None if choice.votes is None else choice.votes._replace(fit=None)
    return choice._replace(votes=votes)


def _can_be_tried(labelled):
    """Two classes with two rows each, or a few rows with numbers."""
    counts = np.bincount(labelled.labels, minlength=1)
    if labelled.outputs.labels is None:
        return counts[0] >= RULE.least_numbers
    return np.sum(counts >= 2) >= 2


def _by_numbers(contest, fits, rng):
    """The choice for numbers, by trials alone."""
    trials = run_trials(contest, fits, rng)
    loss, error = relative_losses(*number_losses(contest, trials), _lost_rows(trials))
    found = left_out_gain(fits, contest.labelled) > RULE.finds_labels
    return _first_choice(contest, loss, error, np.zeros(len(loss)), found)


def _by_classes(contest, fits, outputs, rng):
    """The choice for classes: trials, votes, and a second round where there is a case for it."""
    trials = run_trials(contest, fits, rng)
    loss, error = relative_losses(*class_losses(contest, trials), _lost_rows(trials))
    unlabelled = _unlabelled(contest, outputs, rng)
    votes = votes_of(contest, unlabelled, fits)
    share = vote_shares(votes, stage_one_votes(contest, unlabelled, fits), unlabelled.group)
    apart = disagreement(votes, share, unlabelled.weights)
    alone = left_out_evidence(fits, contest.labelled)
    found = alone > RULE.finds_labels
    found = found or trial_evidence(contest.labelled, trials) > RULE.finds_in_trials
    first = _first_choice(contest, loss, error, apart, found)
    if not len(unlabelled.rows):
        return first
    weights = np.append(contest.labelled.weights, unlabelled.weights)
    clusters = cluster_shares(unlabelled.F, contest.labelled.labels, weights)
    if clusters is not None:
        share = clusters[len(contest.labelled.F) :]
    elif first.s == 0 and alone <= RULE.finds_surely:
        return first
    return second_round(contest, unlabelled, share, first)


def _lost_rows(trials):
    return np.concatenate([trial.lost for trial in trials])


def relative_losses(losses, chance, rows) -> tuple[np.ndarray, np.ndarray]:
    """Loss of every candidate relative to that of s = 0, and its standard error.

    The mean is over trials, the error over distinct rows, as a row may lose its label twice.
    """
    losses = np.minimum(losses, RULE.largest_loss * chance)
    level = max(losses[0].mean(), RULE.least_level * chance.mean(), TINY)
    gains = (losses - losses[0]) / level
    _, row, counts = np.unique(rows, return_inverse=True, return_counts=True)
    means = np.array([np.bincount(row, gain) / counts for gain in gains])
    return gains.mean(axis=1), means.std(axis=1) / np.sqrt(max(len(counts) - 1, 1))


def _first_choice(contest, loss, error, apart, finds_labels) -> Choice:
    """The candidate of least criterion, or none where the evidence is thin."""
    criterion = loss + RULE.caution * (error + apart)
    best = _least(contest, criterion, error)
    trusted = finds_labels or -loss[best] > RULE.beats_pca * error[best]
    chosen = contest.candidates[best if trusted else 0]
    sizes, s = np.array(contest.candidates).T
    curve = Curve(s, sizes.astype(int), loss, error, apart, criterion)
    return Choice(chosen.s, chosen.n_directions, curve)


def _unlabelled(contest, outputs, rng) -> Unlabelled:
    """Rows without a label, so many that their distances to the labelled ones stay cheap."""
    space, labelled = contest.space, contest.labelled
    weights = weights_of(space, len(outputs.Y))
    rows = np.flatnonzero(~outputs.observed.T.any(axis=0) & (weights > 0))
    most = min(RULE.most_unlabelled, RULE.most_distances // len(labelled.F))
    rows = rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
    F = np.vstack([labelled.F, coordinates(space, rows)])
    # Which row is nearest is seen in single precision as well, in half the time.
    short = (F / np.sqrt(space.total)).astype(np.float32)
    plain = _nearest_labels(labelled, short[:, : contest.q])
    group = _voting_together(outputs.chunks, rows)
    return Unlabelled(rows, weights[rows], F, short, plain, group)


def _nearest_labels(labelled, T):
    """Class of the nearest labelled row; T holds the labelled rows and then the others."""
    n = len(labelled.labels)
    return labelled.labels[nearest(T[n:], T[:n])]


def _voting_together(chunks, rows):
    """A number for each chunk and for each row in none; None where there are no chunks."""
    if chunks is None:
        return None
    alone = np.where(chunks[rows] < 0, chunks.max() + 1 + np.arange(len(rows)), chunks[rows])
    return np.unique(alone, return_inverse=True)[1]


def votes_of(contest: Contest, unlabelled: Unlabelled, fits: Completions) -> np.ndarray:
    """Class (candidates, n) of rows by the nearest labelled row in each candidate's map."""
    maps = embed(contest, unlabelled.short, fits)[1:]
    return np.array([unlabelled.plain, *(_nearest_labels(contest.labelled, T) for T in maps)])


def stage_one_votes(contest: Contest, unlabelled: Unlabelled, fits: Completions) -> np.ndarray:
    """Whether a class (n, classes) has the code vector nearest to the completed label."""
    fit, vectors = fits[contest.sizes[-1]], code_vectors(contest.labelled)
    F = unlabelled.F[len(contest.labelled.F) :]
    return nearest(fit.offset + F @ fit.B, vectors)[:, None] == np.arange(len(vectors))


def vote_shares(votes, stage_one, group=None) -> np.ndarray:
    """Share of the votes (n, classes) that each class has, stage 1 counting as half of the maps.

    Rows of a group share theirs.
    """
    share = np.mean(votes[:, :, None] == np.arange(stage_one.shape[1]), axis=0)
    share = (share + RULE.weight_of_stage_one * stage_one) / (1 + RULE.weight_of_stage_one)
    if group is None:
        return share
    sums = np.zeros((group.max(initial=-1) + 1, share.shape[1]))
    np.add.at(sums, group, share)
    return (sums / np.bincount(group)[:, None])[group]


def nearest(A, B) -> np.ndarray:
    """Number of the row of B (m, c) nearest to each row of A."""
    # The lengths of B in the product, and few rows at a time: distances stay in the cache.
    A, weights = with_ones(A), np.vstack([-2 * B.T, np.sum(B**2, axis=1)])
    found = [np.argmin(A[rows] @ weights, axis=1) for rows in row_slices((len(A), len(B)))]
    return np.concatenate(found) if found else np.empty(0, dtype=int)


def code_vectors(labelled: Labelled) -> np.ndarray:
    """Code vector of every class, as its rows have it."""
    _, first = np.unique(labelled.labels, return_index=True)
    return labelled.outputs.Y[first]


def disagreement(votes, share, weights) -> np.ndarray:
    """Mean share of the votes that each candidate's own votes do not have."""
    if not len(weights):
        return np.zeros(len(votes))
    return np.array([1 - np.average(share[np.arange(len(v)), v], weights=weights) for v in votes])


def second_round(contest: Contest, unlabelled: Unlabelled, share, first: Choice) -> Choice:
    """The choice among maps that the first votes have completed, and the votes of these maps.

    The candidate is taken whose map, fitted with the votes, agrees most with them; losses count.
    """
    labelled = contest.labelled
    fits = _fits_with(contest, unlabelled, _voted(labelled, unlabelled, share))
    # The map without supervision is completed by nothing, and has had its vote.
    votes = votes_of(contest, unlabelled, fits)[1:]
    share = vote_shares(votes, stage_one_votes(contest, unlabelled, fits), unlabelled.group)
    voted = _voted(labelled, unlabelled, share)
    fits = _fits_with(contest, unlabelled, voted)
    apart = disagreement(votes_of(contest, unlabelled, fits), share, unlabelled.weights)
    chosen, curve = _after_votes(contest, first, apart)
    voted = voted._replace(labels=labelled.names[voted.labels], fit=fits[chosen.n_directions])
    return Choice(chosen.s, chosen.n_directions, curve, voted if chosen.s > 0 else None)


def _voted(labelled, unlabelled, share) -> Votes:
    """The leading class of every unlabelled row, which counts by a power of its share of votes."""
    winners, weights = np.argmax(share, axis=1), np.max(share, axis=1) ** RULE.confidence_power
    return Votes(unlabelled.rows, winners, code_vectors(labelled)[winners], weights)


def _fits_with(contest, unlabelled, voted) -> Completions:
    """Stage 1 on labelled and voted rows."""
    _, outputs, weights, _ = contest.labelled
    rows, counts = {p: unlabelled.F[:, :p] for p in contest.sizes}, unlabelled.weights
    return {p: complete_with_votes(rows[p], outputs, weights, voted, counts) for p in rows}


def _after_votes(contest, first, apart):
    """The candidate whose map agrees most with the votes, losses counted too, and the curve."""
    loss = first.curve.loss + RULE.caution * first.curve.error
    criterion = RULE.loss_after_votes * loss + apart
    curve = first.curve._replace(disagreement=apart, criterion=criterion)
    # Without supervision the votes change nothing; the first round has mostly ruled it out.
    possible = np.where((curve.s > 0) | (first.s == 0), criterion, np.inf)
    best = _least(contest, possible, RULE.loss_after_votes * first.curve.error)
    return contest.candidates[best], curve


def _least(contest, criterion, error) -> int:
    """The candidate of least criterion, or the one before, unless that is clearly worse."""
    best = int(np.argmin(criterion))
    if contest.before not in contest.candidates:
        return best
    before = contest.candidates.index(contest.before)
    # Losses are relative to s = 0, which has no error of its own.
    apart = error[best] or error[before]
    return before if criterion[before] <= criterion[best] + RULE.reluctance * apart else best


def left_out_evidence(fits: Completions, labelled: Labelled) -> float:
    """Standard score of the classes that stage 1 finds for rows left out, against chance.

    Classes count the same; the better number of directions is taken.
    """
    labels, counts = labelled.labels, np.bincount(labelled.labels)
    chance = 1 / len(counts)
    error = np.sqrt(chance * (1 - chance) * np.sum(1 / counts)) / len(counts)
    evidence = []
    for fit in fits.values():
        hits = nearest(labelled.outputs.Y - fit.residuals, code_vectors(labelled)) == labels
        rate = np.mean(np.bincount(labels, hits) / counts)
        evidence.append((rate - chance) / error)
    return float(max(evidence))


def trial_evidence(labelled: Labelled, trials) -> float:
    """The same for rows that lose their labels in trials, against the classes they compete with.

    Leaving out one of two labels of a class weakens that class alone; here all competitors are
    equally short of labels, so that few labels can tell. Repeats of a row are averaged.
    """
    chance = np.concatenate([np.full(len(x.lost), 1 / len(x.classes)) for x in trials])
    _, row, counts = np.unique(_lost_rows(trials), return_inverse=True, return_counts=True)
    error = np.sqrt(chance.mean() * (1 - chance.mean()) / len(counts))
    evidence = []
    for p in trials[0].fits:
        hits = np.concatenate([_found(labelled, trial, p) for trial in trials])
        rates = np.bincount(row, hits - chance) / counts
        evidence.append(rates.mean() / max(error, TINY))
    return float(max(evidence))


def _found(labelled, trial, p):
    """Whether stage 1 without them finds the class of each row that lost its label."""
    fit, vectors = trial.fits[p], code_vectors(labelled)[trial.classes]
    predicted = fit.offset + labelled.F[trial.lost, :p] @ fit.B
    return trial.classes[nearest(predicted, vectors)] == labelled.labels[trial.lost]


def left_out_gain(fits: Completions, labelled: Labelled) -> float:
    """Standard score by which stage 1 predicts numbers of rows left out better than their mean.

    Squared errors in units of each column's variance, capped; the better number of directions.
    """
    Y, seen, *_ = labelled.outputs
    counts = np.maximum(seen.sum(axis=0), 2)
    variance = np.maximum(column_variances(labelled), TINY)
    away = Y - np.sum(Y * seen, axis=0) / counts
    chance = capped_errors(away * counts / (counts - 1), seen, variance)
    evidence = []
    for fit in fits.values():
        gain = chance - capped_errors(fit.residuals, seen, variance)
        error = gain.std() / np.sqrt(max(len(gain) - 1, 1))
        evidence.append(gain.mean() / max(error, TINY))
    return float(max(evidence))
