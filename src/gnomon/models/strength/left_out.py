"""Which of several views of the labelled rows serves their outputs: each row left out of stage 1.

A view is a matrix of coordinates, those of content smoothed over links or of a kernel. Its loss of
a row is the log loss of the class, or the squared error of the numbers, that stage 1 finds for it
without it. The first view stays unless another is clearly better: where the labels say nothing,
what is tried changes nothing.
"""

import numpy as np

from gnomon.linalg.solve import gaussian_log_odds, one_thread
from gnomon.models.strength.completion import (
    Outputs,
    complete,
    log_losses,
    log_shares,
    predictive_covariance,
)
from gnomon.models.strength.rule import TINY
from gnomon.models.strength.trials import capped_errors

# Standard errors by which a view must lower the losses of labelled rows: permuted graphs of eight
# sets then never do in 110 fits (benchmarks/links.py).
CLEARLY = 2.0


@one_thread
def clearly_best(views, known: Outputs, weights) -> int:
    """Number of the view of least loss; 0 unless it is clearly better than the first.

    ``views`` are coordinates of the labelled rows, whose outputs are ``known``.
    """
    losses = np.array([left_out_losses(F, known, weights) for F in views])
    best = int(np.argmin(losses @ weights))
    gains, total = losses[0] - losses[best], weights.sum()
    mean = weights @ gains / total
    variance = weights @ (gains - mean) ** 2 / total
    least = CLEARLY * np.sqrt(variance / max(total - 1, 1))
    return best if mean > least else 0


def left_out_losses(F, known: Outputs, weights) -> np.ndarray:
    """Loss of every labelled row where it is left out of stage 1 on the columns of F."""
    fit = complete(F, known, weights)
    if known.labels is None:
        Y = np.where(known.observed, known.Y, np.nan)
        variance = np.maximum(np.nanvar(Y, axis=0), TINY)
        return capped_errors(fit.residuals, known.observed, variance)
    covariance, _ = predictive_covariance(fit, known, weights)
    _, first, place = np.unique(known.labels, return_index=True, return_inverse=True)
    odds = gaussian_log_odds(known.Y - fit.residuals, covariance, known.Y[first])
    return log_losses(odds + log_shares(place, weights), place)
