"""How candidates stand: the table of their scores, who leads, who is as good, what chance does.

All of it rests on predictions for distinct held-out rows, pooled over splits, drawn again for
intervals. One split is no test: then nothing is marked.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gnomon.estimators import MARGIN, smallest_good
from gnomon.tools.compare.scoring import (
    Problem,
    constant_guess,
    interval,
    mean_score,
    measure,
    pool,
    resample,
    root_mean_square,
    row_sums,
    score_of_sums,
    wilson,
)
from gnomon.tools.compare.trials import Outcome, Trial, chosen_sizes, ended, pooled

# The usual level of a test: one false alarm in twenty.
LEVEL = 0.05
# Half the width of a 95 % interval, in standard errors.
WIDTH = 1.96
# A row and its nearest neighbour vouch for each other in different folds, so correct answers come
# in pairs: under no structure the variance of a mean over folds is up to twice that of free rows.
PAIRING = 2.0
# Scores are shares and means of them: differences below this are rounding.
ROUNDING = 1e-12
# Rows that are thought to be there besides, on which either of two models is right alone [BP12]:
# ten rows without a difference do not show that there is none.
PSEUDO_ROWS = 2
# These use labels and unlabelled rows, and hold up where labels are few. Others lead where they are
# better by a standard error: of 56 comparisons what leads is right in .899 of rows never shown,
# with half of it in .892, and KernelSPPCA always taken in .895; where labels are many it is small.
PREFERRED, PREFERENCE = ("SPPCA", "KernelSPPCA"), 1.0
# Of equal scores, of which few rows have many, that of the kernel leads: its maps err less
# (benchmarks/results/maps.md: .205 over 37 tasks, SPPCA .213).
AMONG_EQUALS = "KernelSPPCA"
# Shuffled labels are tried on as many splits as it takes to score this many rows, or each once.
CONTROL_ROWS = 200


class Row(NamedTuple):
    """A model with a number of components, and how it did on held-out rows.

    ``low`` and ``high`` are the 95 % interval of ``score``, on ``n_rows`` distinct rows; ``own``
    is the score of the model's own prediction; ``outputs`` has the score of each of several
    outputs, ``rmse`` the error of a single numeric one. ``difference`` is against the leader,
    with its own interval. ``apparent`` is the score on the rows the map was learnt from,
    ``control`` and ``control_apparent`` are the two where labels were shuffled. ``chosen`` rows
    stand for their model; the leader's ``mark`` is "best" or "leads", that of another "as good",
    "worse" or "open".
    """

    model: str
    n_components: int
    score: float
    low: float
    high: float
    n_rows: int
    n_splits: int
    chosen: bool = False
    mark: str = ""
    difference: float = np.nan
    difference_low: float = np.nan
    difference_high: float = np.nan
    own: float = np.nan
    rmse: float = np.nan
    outputs: tuple[float, ...] = ()
    apparent: float = np.nan
    control: float = np.nan
    control_apparent: float = np.nan
    seconds: float = np.nan
    memory_mb: float = np.nan

    @property
    def error(self) -> float:
        """Standard error of the score, from its interval."""
        return (self.high - self.low) / (2 * WIDTH)


class Standing(NamedTuple):
    """The table, the leader first; what to expect of it, with an interval; and the test.

    ``expected`` is the leader's score less what choosing the best of many adds to it.
    ``structure_p`` is NaN where there is no test. ``baseline`` is the score of a constant guess
    from the same splits.
    """

    rows: list[Row]
    expected: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    structure_p: float = np.nan
    baseline: float = np.nan

    @property
    def structure(self) -> bool | None:
        """Whether anything predicts y better than chance allows; None where there is no test."""
        return None if np.isnan(self.structure_p) else self.structure_p < LEVEL


def judge(problem: Problem, outcomes: Sequence[Outcome], splits, seed=0) -> Standing:
    """Everything that is said of outcomes on these splits."""
    real = ended(outcomes)
    if not real:
        return Standing([])
    sums = np.stack([pooled(own, splits) for own in real.values()], axis=1)
    rows = _rows(problem, real, sums, ended(outcomes, "permuted"), splits)
    lead, chosen = choose_leader(rows, [row.score for row in rows])
    rows = [row._replace(chosen=i in chosen) for i, row in enumerate(rows)]
    drawn = score_of_sums(problem.kind, resample(sums), len(sums)).mean(axis=-1)
    expected = _expected(problem.kind, rows, lead, drawn)
    p_value = np.nan
    if rows[lead].n_splits > 1:
        rows = _marked(lead, _against(lead, rows, drawn))
        p_value = structure_test(problem, _predictions(real, splits), np.random.default_rng(seed))
    first = rows[lead]
    rows.sort(key=lambda row: (row is not first, -row.score))
    return Standing(rows, expected, p_value, _baseline(problem, next(iter(real.values())), splits))


def _baseline(problem, outcomes, splits):
    """Score of a constant guess on the splits of these outcomes."""
    pairs = [splits[outcome.split] for outcome in outcomes]
    guesses = [
        constant_guess(problem.kind, problem.y[_known(problem, test)], len(test))
        for _, test in pairs
    ]
    rows = np.concatenate([test for _, test in pairs])
    sums = row_sums(problem, problem.y[rows], np.concatenate(guesses))
    return mean_score(problem.kind, pool(rows, sums)[1])


def _known(problem, test):
    """Labelled rows outside of the test rows."""
    return np.setdiff1d(np.flatnonzero(problem.labelled), test)


def _rows(problem, real, sums, control, splits):
    return [
        _row(problem, key, own, sums[:, i], control.get(key, []), splits)
        for i, (key, own) in enumerate(real.items())
    ]


def _row(problem, key, real, sums, control, splits):
    kind, several = problem.kind, sums.shape[1] > 1
    each = score_of_sums(kind, sums.sum(axis=0), len(sums))
    own = np.nan
    if all(outcome.own is not None for outcome in real):
        own = mean_score(kind, pooled(real, splits, "own"))
    # The first split is fitted under the memory meter, which slows it.
    timed = [outcome.seconds for outcome in real if np.isnan(outcome.memory)]
    return Row(  # type: ignore[call-arg, misc]
        *key,
        float(each.mean()),
        *interval(kind, sums),
        n_rows=len(sums),
        n_splits=len(real),
        own=own,
        rmse=root_mean_square(sums)[0] if kind == "numeric" and not several else np.nan,
        outputs=tuple(each.tolist()) if several else (),
        apparent=_mean(real, "apparent"),
        control=mean_score(kind, pooled(control, splits)) if control else np.nan,
        control_apparent=_mean(control, "apparent"),
        seconds=float(np.median(timed or [outcome.seconds for outcome in real])),
        memory_mb=_mean([o for o in real if not np.isnan(o.memory)], "memory"),
    )


def _mean(outcomes, field):
    return float(np.mean([getattr(o, field) for o in outcomes])) if outcomes else np.nan


def choose_leader(rows, scores) -> tuple[int, list[int]]:
    """The place of the leader, and those of the sizes that stand for their models.

    Each model stands by the smallest size that is as good as its best; of those the best leads,
    with a standard error in favour of the models that hold up with few labels, and the kernel
    among equals.
    """
    places: dict[str, dict[int, int]] = defaultdict(dict)
    for i, row in enumerate(rows):
        places[row.model][row.n_components] = i
    chosen = [own[smallest_good(own, [scores[i] for i in own.values()])] for own in places.values()]
    favour = [PREFERENCE * row.error if row.model in PREFERRED else 0.0 for row in rows]

    def standing(i):
        return scores[i] + favour[i], rows[i].model == AMONG_EQUALS

    return max(chosen, key=standing), chosen


def _expected(kind, rows, lead, drawn):
    """Score of the leader less its optimism, and an interval around that.

    The optimism of choosing is what the choice gains in rows drawn again over the same choice
    in all rows [ET93].
    """
    scores = np.array([row.score for row in rows])
    leads = [choose_leader(rows, again)[0] for again in drawn]
    optimism = np.nanmean(drawn[np.arange(len(drawn)), leads] - scores[leads])
    row, shift = rows[lead], max(0.0, float(optimism))
    value = row.score - shift
    if kind == "classes":
        return value, *wilson(max(value, 0.0) * row.n_rows, row.n_rows)
    return value, row.low - shift, row.high - shift


def _against(lead, rows, drawn):
    """Differences to the leader on the same rows, with 95 % intervals."""
    n = rows[lead].n_rows
    spread = np.nanstd(drawn - drawn[:, [lead]], axis=0)
    half = WIDTH * np.sqrt((n * spread) ** 2 + PSEUDO_ROWS) / (n + PSEUDO_ROWS)
    compared = []
    for row, width in zip(rows, half, strict=True):
        gap = row.score - rows[lead].score
        compared.append(
            row._replace(difference=gap, difference_low=gap - width, difference_high=gap + width)
        )
    return compared


def _marked(lead, rows):
    marks = [_mark(row) if row.chosen else "" for row in rows]
    won = all(mark in ("", "worse") for i, mark in enumerate(marks) if i != lead)
    marks[lead] = "best" if won else "leads"
    return [row._replace(mark=mark) for row, mark in zip(rows, marks, strict=True)]


def _mark(row):
    if row.difference_low > -MARGIN:
        return "as good"
    return "worse" if row.difference_high < 0 else "open"


def control_trials(problem, done, seed) -> list[Trial]:
    """Trials with shuffled labels of the size that stands for each model."""
    sizes = chosen_sizes(problem, done.outcomes, done.splits)
    before = np.cumsum([0, *(len(test) for _, test in done.splits)])
    return [
        Trial(candidate, (sizes[candidate.name],), index, train, test, "permuted", seed + index)
        for index, (train, test) in enumerate(done.splits)
        if before[index] < min(CONTROL_ROWS, problem.labelled.sum())
        for candidate in done.candidates
        if candidate.name in sizes
    ]


def _predictions(real, splits):
    """For each model and size its test rows, split after split, and what it predicts there."""
    groups = list(real.values())
    rows = np.concatenate([splits[outcome.split][1] for outcome in groups[0]])
    return rows, [np.concatenate([outcome.predicted for outcome in own]) for own in groups]


def structure_test(problem, predictions, rng, n_permutations=499) -> float:
    """P value of "no candidate predicts y", for the best of all candidates at once.

    ``predictions`` are the test rows, and for each candidate what it predicts there. The labels
    of the scored rows are shuffled against the predictions; the largest gain over what shuffled
    labels give on average is compared with the largest such gain among shuffles.
    """
    rows, predicted = predictions
    distinct, place = np.unique(rows, return_inverse=True)
    real = _each_score(problem, problem.y[rows], predicted)
    shuffled = [
        _each_score(problem, problem.y[rng.permutation(distinct)[place]], predicted)
        for _ in range(n_permutations)
    ]
    null = np.mean(shuffled, axis=0)
    gains = np.sqrt(PAIRING) * (shuffled - null)
    exceeded = gains.max(axis=1) >= (real - null).max() - ROUNDING
    return float((1 + exceeded.sum()) / (1 + n_permutations))


def _each_score(problem, truth, predicted):
    if problem.kind == "classes":
        return np.mean(np.stack(predicted) == truth, axis=1)
    return np.array([measure(problem, truth, own) for own in predicted])
