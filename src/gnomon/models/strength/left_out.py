"""Which of several views of the labelled rows serves their outputs: each row left out of stage 1.

A view is a matrix of coordinates, those of content smoothed over links or of a kernel. Its loss of
a row is the log loss of the class, or the squared error of the numbers, that stage 1 finds for it
without it. The first view stays unless another is clearly better: where the labels say nothing,
what is tried changes nothing.

The width of a kernel is such a choice. Its powers k(a, b)^f are 1/f as wide, in squared (rbf) or
absolute (laplacian) distance, and the kernel of the labelled rows alone judges them. Few labels in
many columns are told apart by what is nearly linear, as faces are: a narrow kernel then knows
little beyond the labelled rows themselves.
"""

import numpy as np

from gnomon.linalg.solve import gaussian_log_odds, one_thread
from gnomon.models.strength.completion import (
    Outputs,
    complete,
    log_losses,
    log_shares,
    predictive,
)
from gnomon.models.strength.rule import TINY
from gnomon.models.strength.trials import capped_errors

# Standard errors by which a view must lower the losses of labelled rows: permuted graphs of eight
# sets then never do in 110 fits (benchmarks/links.py).
CLEARLY = 2.0
# Kernels whose powers are the same kernel of another width.
OF_KERNELS = ("rbf", "laplacian")
# Powers of the kernel: from that as wide as the rows are apart to one that is nearly linear. On 24
# tasks predictions have a log loss of .626 (benchmarks/calibration.py), and .72 without a choice.
POWERS = (1.0, 1 / 3, 1 / 10, 1 / 30)
# Labelled rows that judge: their kernel is decomposed for each width.
MOST_JUDGING = 500


def judging_rows(labels) -> np.ndarray:
    """Numbers of the labelled rows that judge; none where fewer than two classes have two."""
    rows = np.flatnonzero(labels >= 0)
    rows = rows[:: 1 + max(len(rows) - 1, 0) // MOST_JUDGING]
    return rows if np.sum(np.bincount(labels[rows], minlength=2) > 1) > 1 else rows[:0]


@one_thread
def clearly_best(views, known: Outputs, weights, least_gain=0.0) -> int:
    """Number of the view of least loss; 0 unless it is clearly better than the first.

    ``views`` are coordinates of the labelled rows, whose outputs are ``known``. ``least_gain`` is
    the share of the loss that it must gain beyond its standard errors.
    """
    losses = np.array([left_out_losses(F, known, weights) for F in views])
    best = int(np.argmin(losses @ weights))
    gains, total = losses[0] - losses[best], weights.sum()
    mean = weights @ gains / total
    variance = weights @ (gains - mean) ** 2 / total
    least = least_gain * weights @ losses[0] / total
    return best if mean > least + CLEARLY * np.sqrt(variance / max(total - 1, 1)) else 0


@one_thread
def second_is_better(views, known: Outputs, weights) -> bool:
    """Whether the second of two views, asked for where the first has some loss, has less."""
    losses = (weights @ left_out_losses(F, known, weights) for F in views)
    first = next(losses)
    return first > 0 and next(losses) < first


@one_thread
def best_power(K, known: Outputs, weights) -> float:
    """The power of the kernel K (m, m) of labelled rows that finds their classes best."""
    views = [coordinates_of(K**power) for power in POWERS]
    return POWERS[clearly_best(views, known, weights)]


@one_thread
def finds_classes(K, known: Outputs, weights) -> bool:
    """Whether labelled rows left out are found better than by the shares of their classes.

    By what is linear in the rows, whose products are K (n, n), or by how near they are.
    """
    squares = np.diagonal(K)
    distances = np.maximum(squares[:, None] + squares - 2 * K, 0.0)
    near = np.exp(-distances / max(distances.mean(), TINY))
    fits = (complete(coordinates_of(G), known, weights) for G in (K, near))
    return any(predictive(fit, known, weights).finds_classes for fit in fits)


def coordinates_of(K) -> np.ndarray:
    """Rows (n, n) whose products are K."""
    values, U = np.linalg.eigh((K + K.T) / 2)
    return U * np.sqrt(np.maximum(values, 0.0))


def left_out_losses(F, known: Outputs, weights) -> np.ndarray:
    """Loss of every labelled row where it is left out of stage 1 on the columns of F."""
    fit = complete(F, known, weights)
    if known.labels is None:
        Y = np.where(known.observed, known.Y, np.nan)
        variance = np.maximum(np.nanvar(Y, axis=0), TINY)
        return capped_errors(fit.residuals, known.observed, variance)
    covariance = predictive(fit, known, weights).covariance
    _, first, place = np.unique(known.labels, return_index=True, return_inverse=True)
    odds = gaussian_log_odds(known.Y - fit.residuals, covariance, known.Y[first])
    return log_losses(odds + log_shares(place, weights), place)
