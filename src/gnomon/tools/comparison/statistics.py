"""Tests behind the words "best" and "structure".

Splits share training rows, so the differences of two models over splits are not independent;
their variance is corrected as in Nadeau and Bengio (2003) [NB03].
"""

import numpy as np
from scipy.stats import t as student

from gnomon.tools.comparison.scoring import measure

LEVEL = 0.05
# A row and its nearest neighbour vouch for each other in different folds, so correct answers come
# in pairs: under no structure the variance of a mean over folds is up to twice that of free rows.
PAIRING = 2.0


def paired_test(differences, test_share) -> tuple[float, float]:
    """Corrected standard error of the mean difference over splits, and its two-sided p value.

    ``test_share`` is the number of test rows over that of training rows.
    """
    differences = np.asarray(differences, dtype=float)
    count = len(differences)
    if count < 2:
        return np.nan, 1.0
    mean, error = differences.mean(), np.sqrt(differences.var(ddof=1) * (1 / count + test_share))
    if error < 1e-12:
        # Without spread only the common sign of the differences counts.
        return 0.0, 1.0 if abs(mean) < 1e-12 else 2.0 ** (1 - count)
    return float(error), float(2 * student.sf(abs(mean) / error, count - 1))


def holm(p_values) -> np.ndarray:
    """P values corrected for their number, by Holm's step-down rule."""
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values)
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty_like(scaled)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return corrected


def smallest_good(sizes, scores, test_share) -> int:
    """Smallest size whose mean score is within a standard error of the best size's.

    ``scores`` has a row for each size and a column for each split.
    """
    means = np.mean(scores, axis=1)
    best = int(np.argmax(means))
    for index in range(best):
        error, _ = paired_test(scores[best] - scores[index], test_share)
        if means[best] - means[index] <= (0 if np.isnan(error) else error):
            return sizes[index]
    return sizes[best]


def structure_test(problem, predictions, rng, n_permutations=499) -> float:
    """P value of "no candidate predicts y", for the best of all candidates at once.

    ``predictions`` has for each candidate a list of (test rows, predicted). The labels of the
    scored rows are shuffled against the predictions; the largest gain over what shuffled labels
    give on average is compared with the largest such gain among shuffles.
    """
    rows = np.unique(np.concatenate([test for splits in predictions for test, _ in splits]))
    shuffles = np.stack([rng.permutation(rows) for _ in range(n_permutations)])
    place = np.full(len(problem.y), -1)
    place[rows] = np.arange(len(rows))
    real, shuffled = [], []
    for splits in predictions:
        truth = _mean_score(problem, splits, lambda test: problem.y[test])
        null = _mean_score(problem, splits, lambda test: problem.y[shuffles[:, place[test]]])
        real.append(truth - null.mean())
        shuffled.append(np.sqrt(PAIRING) * (null - null.mean()))
    exceeded = np.max(shuffled, axis=0) >= max(real) - 1e-12
    return float((1 + exceeded.sum()) / (1 + n_permutations))


def _mean_score(problem, splits, truth_of):
    scores = [measure(problem.kind, truth_of(test), predicted) for test, predicted in splits]
    return np.mean(scores, axis=0)
