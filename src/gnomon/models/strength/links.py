"""Linked rows for a strength of supervision: content, and content smoothed over the links.

    F         coordinates of the rows on the principal directions of their content
    S         D^(-1/2) (A + I) D^(-1/2), the normalised adjacency
    blocks    S^k F for some steps k, side by side, each of mean squared length one

Content alone (k = 0) is always a candidate. Smoothed content (k = 2) suits graphs that join rows of
a kind, all of it side by side (k = 0, 1, 2) those whose rows are like the neighbours of their
neighbours, or nothing like them. The candidate is taken that finds the outputs of labelled rows
best where each is left out of stage 1, if it does so clearly better than content alone: a graph
without meaning, or with links that say nothing of y, changes nothing.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg import graph
from gnomon.linalg.data import as_data, center, weighted
from gnomon.linalg.solve import gaussian_log_odds
from gnomon.models.strength.closed_form import n_directions, principal_space
from gnomon.models.strength.completion import (
    Outputs,
    complete,
    log_losses,
    predictive_covariance,
)
from gnomon.models.strength.rule import RULE, TINY
from gnomon.models.strength.trials import capped_errors

# Steps over the links whose smoothed content stands side by side, content alone first.
CANDIDATES = ((0,), (2,), (0, 1, 2))
# Standard errors by which links must lower the losses of labelled rows: permuted graphs of eight
# sets then never do in 110 fits (benchmarks/links.py).
CLEARLY = 2.0


class LinkedRows(NamedTuple):
    """What makes blocks of rows: mean and axes (d, p) of content, steps, lengths of the blocks.

    ``coordinates`` (n, p) are those of the rows of the fit, whose links new rows may share.
    """

    mean: np.ndarray
    axes: np.ndarray
    steps: np.ndarray
    lengths: np.ndarray
    coordinates: np.ndarray


def learn(X, A, outputs: Outputs, weights, q, rng) -> LinkedRows | None:
    """The blocks that serve the outputs best, None where content alone does."""
    mean, rows = center(weighted(as_data(X), weights))
    space = principal_space(mean, rows, n_directions(q), rng, leading=q)
    F = np.asarray(as_data(X).less_mean(mean) @ space.axes, dtype=float)
    counts = np.ones(len(F)) if weights is None else weights
    S = graph.normalized(A)
    tried = [_candidate(F, S, steps) for steps in CANDIDATES]
    losses = [_losses(E, outputs, counts) for E, _ in tried]
    best = int(np.argmin([loss.mean() for loss in losses]))
    gains = losses[0] - losses[best]
    if gains.mean() <= CLEARLY * gains.std() / np.sqrt(max(len(gains) - 1, 1)):
        return None
    steps = np.array(CANDIDATES[best])
    return LinkedRows(np.asarray(mean), space.axes, steps, tried[best][1], F)


def _candidate(F, S, steps):
    """The blocks of all rows, each of mean squared length one, and the lengths they had."""
    blocks = list(_blocks(F, S, steps))
    lengths = np.array([np.sqrt(max(np.mean(np.sum(b**2, axis=1)), TINY)) for b in blocks])
    return _side_by_side(blocks, lengths), lengths


def _blocks(F, S, steps):
    """S^k F for the steps k, ascending."""
    for k in range(max(steps) + 1):
        if k in steps:
            yield F
        F = S @ F


def _side_by_side(blocks, lengths):
    return np.hstack([block / length for block, length in zip(blocks, lengths, strict=True)])


def expand(linked: LinkedRows, X, A, kept) -> np.ndarray:
    """The blocks of rows X, in the dtype of X.

    A links the rows ``kept`` of the fit and then those of X.
    """
    F = np.asarray(as_data(X).less_mean(linked.mean) @ linked.axes, dtype=float)
    together = np.vstack([linked.coordinates[kept], F])
    blocks = _blocks(together, graph.normalized(A), linked.steps.tolist())
    new = [block[len(together) - len(F) :] for block in blocks]
    return _side_by_side(new, linked.lengths).astype(X.dtype)


def _losses(E, outputs, weights):
    """Loss of every labelled row where it is left out of stage 1 on leading directions of E."""
    rows = np.flatnonzero(outputs.observed.any(axis=1))
    E = _leading(E)[rows]
    known, weights = outputs.rows(rows), weights[rows]
    fit = complete(E, known, weights)
    if known.labels is None:
        Y = np.where(known.observed, known.Y, np.nan)
        variance = np.maximum(np.nanvar(Y, axis=0), TINY)
        return capped_errors(fit.residuals, known.observed, variance)
    covariance, _ = predictive_covariance(fit, known, weights)
    _, first, place = np.unique(known.labels, return_index=True, return_inverse=True)
    odds = gaussian_log_odds(known.Y - fit.residuals, covariance, known.Y[first])
    return log_losses(odds, place)


def _leading(E):
    E = E - E.mean(axis=0)
    _, V = np.linalg.eigh(E.T @ E)
    return E @ V[:, : -RULE.directions - 1 : -1]
