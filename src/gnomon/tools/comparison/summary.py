"""From outcomes of trials to the rows of a table."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from gnomon.tools.comparison.result import CurvePoint, Row
from gnomon.tools.comparison.statistics import LEVEL, holm, paired_test, smallest_good
from gnomon.tools.comparison.trials import Outcome

Key = tuple[str, int]


def table(outcomes: Sequence[Outcome], test_share) -> list[Row]:
    """A row for each model and size, the leader first, then by score."""
    real, control = _by_key(outcomes, "real"), _by_key(outcomes, "permuted")
    rows = [_row(key, done, control.get(key, [])) for key, done in real.items()]
    if not rows:
        return []
    chosen = _chosen_sizes(real, test_share)
    rows = [row._replace(chosen=chosen[row.model] == row.n_components) for row in rows]
    leader = max((row for row in rows if row.chosen), key=lambda row: row.score)
    rows = _against(leader, rows, real, test_share)
    return sorted(rows, key=lambda row: (row.model != leader.model or not row.chosen, -row.score))


def curve(outcomes: Sequence[Outcome]) -> list[CurvePoint]:
    """Means and standard deviations by model and number of labels."""
    scores = defaultdict(list)
    for outcome in outcomes:
        if isinstance(outcome.labels, int) and not outcome.error:
            scores[outcome.model, outcome.labels].append(outcome.score)
    return [CurvePoint(*key, float(np.mean(s)), _sd(s)) for key, s in sorted(scores.items())]


def first_of(outcomes: Sequence[Outcome], field) -> dict[str, str]:
    """The first non-empty ``error`` or ``warning`` of each model."""
    found: dict[str, str] = {}
    for outcome in outcomes:
        if getattr(outcome, field):
            found.setdefault(outcome.model, getattr(outcome, field))
    return found


def predictions(outcomes: Sequence[Outcome], splits) -> list[list]:
    """For each model and size its (test rows, predicted), where all splits were run."""
    groups = _by_key(outcomes, "real").values()
    full = max((len(group) for group in groups), default=0)
    return [[(splits[o.split][1], o.predicted) for o in g] for g in groups if len(g) == full]


def _by_key(outcomes, labels) -> dict[Key, list[Outcome]]:
    groups: dict[Key, list[Outcome]] = defaultdict(list)
    for outcome in sorted(outcomes, key=lambda o: o.split):
        if outcome.labels == labels and not outcome.error:
            groups[outcome.model, outcome.n_components].append(outcome)
    return groups


def _row(key, real, control):
    scores = [outcome.score for outcome in real]
    # The first split is fitted under the memory meter, which slows it.
    timed = [outcome.seconds for outcome in real if np.isnan(outcome.memory)]
    return Row(
        *key,
        score=float(np.mean(scores)),
        sd=_sd(scores),
        n_splits=len(scores),
        chosen=False,
        mark="",
        difference=np.nan,
        p_value=np.nan,
        apparent=_mean(real, "apparent"),
        control=_mean(control, "score"),
        control_apparent=_mean(control, "apparent"),
        seconds=float(np.median(timed or [outcome.seconds for outcome in real])),
        memory_mb=_mean([o for o in real if not np.isnan(o.memory)], "memory"),
    )


def _mean(outcomes, field):
    return float(np.mean([getattr(o, field) for o in outcomes])) if outcomes else np.nan


def _sd(scores):
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else np.nan


def _chosen_sizes(real, test_share):
    sizes = defaultdict(list)
    for model, size in sorted(real, key=lambda key: key[1]):
        sizes[model].append(size)
    chosen = {}
    for model, own in sizes.items():
        shared = set.intersection(*({o.split for o in real[model, q]} for q in own))
        scores = [[o.score for o in real[model, q] if o.split in shared] for q in own]
        chosen[model] = smallest_good(own, np.array(scores), test_share)
    return chosen


def _against(leader, rows, real, test_share):
    own = {o.split: o.score for o in real[leader.model, leader.n_components]}
    compared = []
    for row in rows:
        done = [o for o in real[row.model, row.n_components] if o.split in own]
        differences = [o.score - own[o.split] for o in done]
        p_value = paired_test(differences, test_share)[1]
        mean = float(np.mean(differences)) if differences else np.nan
        compared.append(row._replace(difference=mean, p_value=p_value))
    return _marked(leader, compared)


def _marked(leader, rows):
    rivals = [row for row in rows if row.chosen and row.model != leader.model]
    corrected = {
        row.model: p for row, p in zip(rivals, holm([r.p_value for r in rivals]), strict=True)
    }
    won = all(p < LEVEL for p in corrected.values())
    marked = []
    for row in rows:
        p_value = corrected.get(row.model, np.nan) if row.chosen else np.nan
        mark = "tied" if p_value >= LEVEL else ""
        if row.chosen and row.model == leader.model:
            mark = "best" if won else "tied"
        marked.append(row._replace(p_value=p_value, mark=mark))
    return marked
