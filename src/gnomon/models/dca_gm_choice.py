"""Weights of chunks and of unlabelled rows by cross-validation on the labelled rows.

The labels of a fold are hidden, the model is fitted to all rows without them, and what it
says of the hidden labels is scored by their log probability. The weight used by default is
left only for one that is better by more than a standard error of the difference.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gnomon.models.dca_gm import Settings, State
from gnomon.models.dca_gm_problem import Problem
from gnomon.stats.mixture import log_joint, log_sum, split_classes

GRIDS = {
    "chunk_weight": (0.0, 0.01, 0.1, 1.0),
    "unlabelled_weight": (0.0, 0.001, 0.01, 0.1, 1.0),
}
# One row that is wrong and certain must not outweigh all others.
LEAST_PROBABILITY = 1e-3

Fit = Callable[[Problem, Settings], tuple[State, np.ndarray]]


class Choice(NamedTuple):
    """Values tried, the mean log probability of hidden labels at each, and the value taken."""

    values: np.ndarray
    scores: np.ndarray
    best: float


def folds(problem: Problem, n_folds: int, rng) -> np.ndarray:
    """Fold of every labelled row, balanced in each class; -1 for rows that keep their label.

    Labels a chunk has passed on are hidden with the chunk. A class known from one row or one
    chunk alone keeps it.
    """
    out = np.full(len(problem.codes), -1)
    own = problem.chunks.max() + 1 + np.arange(len(out))
    units = np.where(problem.chunks >= 0, problem.chunks, own)
    for c in np.unique(problem.codes[problem.codes >= 0]):
        rows = np.flatnonzero(problem.codes == c)
        names, numbers = np.unique(units[rows], return_inverse=True)
        if len(names) > 1:
            out[rows] = rng.permutation(len(names))[numbers] % n_folds
    return out


def hidden_scores(problem: Problem, settings: Settings, fold_of, fit: Fit) -> np.ndarray:
    """Log probability of every label that was hidden in its fold, row after row."""
    scores = np.zeros(len(fold_of))
    for fold in np.unique(fold_of[fold_of >= 0]):
        hidden = fold_of == fold
        state, order = fit(problem._replace(codes=np.where(hidden, -1, problem.codes)), settings)
        Z = np.empty_like(state.Z)
        Z[order] = state.Z
        L, _ = split_classes(state.mixture, log_joint(state.mixture, Z[hidden]))
        given = L[problem.codes[hidden], np.arange(hidden.sum())] - log_sum(L)
        scores[hidden] = np.maximum(given, np.log(LEAST_PROBABILITY))
    return scores[fold_of >= 0]


def choose(name: str, problem: Problem, settings: Settings, fold_of, fit: Fit) -> Choice:
    """The value of a weight on its grid, starting from the one in the settings."""
    grid, default = GRIDS[name], getattr(settings, name)
    values = np.array(sorted({*grid, default}))
    table = np.array(
        [hidden_scores(problem, settings._replace(**{name: v}), fold_of, fit) for v in values]
    )
    weights = problem.weights[fold_of >= 0]
    means = table @ weights / weights.sum()
    best = int(np.argmax(means))
    gain = table[best] - table[list(values).index(default)]
    error = np.sqrt(weights @ (gain - gain.mean()) ** 2) / weights.sum()
    taken = values[best] if gain @ weights / weights.sum() > error else default
    return Choice(values, means, float(taken))
