"""Numbers that a kernel predicts, and beside it the rows themselves.

A kernel of finite width bends every plane: of numbers that are linear in x, as amounts are in a
spectrum, it knows little beyond the labelled rows. So stage 1 is done twice, on features of the
kernel and on principal directions of the rows, and each output is the mean of both by their shares
exp(-n/2 log v), with v the variance of what rows left out miss: the likelihood of those rows, as
penalties have theirs in `completion`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import as_data
from gnomon.models.sppca.fit import Prediction
from gnomon.models.strength.closed_form import PrincipalSpace, coordinates, labelled_rows
from gnomon.models.strength.completion import (
    Completion,
    Outputs,
    complete,
    few_numbers,
    in_folds,
    likelihood_shares,
    predictive,
    residual_covariance,
)
from gnomon.models.strength.rule import TINY


class NumberHead(NamedTuple):
    """Outputs linear in x: (x - mean)' coef + offset; ``say`` (c,) is their share of each output.

    The kernel has the rest.
    """

    mean: np.ndarray
    coef: np.ndarray
    offset: np.ndarray
    say: np.ndarray


def learn(
    of_kernel: PrincipalSpace, of_rows: PrincipalSpace, outputs: Outputs
) -> tuple[NumberHead, Prediction]:
    """The head, and what the kernel predicts, with the covariance of both together.

    All directions of the kernel take part, however few suit the map: fewer are fitted to the rows
    that are there, and what these miss when left out is less than what a new row does.
    """
    rows, weights = labelled_rows(of_rows, outputs.observed)
    known = outputs.rows(rows)
    views = [(coordinates(space, rows), space.variances) for space in (of_kernel, of_rows)]
    kernel, plain = (complete(F, known, weights, variances=v) for F, v in views)
    say, E = _joined(kernel.residuals, plain.residuals, weights)
    if few_numbers(known):
        E = in_folds(views[1][0], known, E, partial(_errors, views, known, weights))
    together = kernel._replace(residuals=E, covariance=residual_covariance(E, weights))
    covariance = predictive(together, known, weights).covariance
    of_features = Prediction(of_kernel.axes @ kernel.B, kernel.offset, covariance)
    return _in_columns(of_rows, plain, say), of_features


def _errors(views, known, weights, lost, kept):
    """Residuals of some rows by stage 1 of both views of the others, joined as these ask for."""
    some = known.rows(kept), weights[kept]
    fits = [complete(F[kept], *some, variances=v) for F, v in views]
    say, _ = _joined(fits[0].residuals, fits[1].residuals, weights[kept])
    guesses = (fit.offset + F[lost] @ fit.B for (F, _), fit in zip(views, fits, strict=True))
    kernel, plain = guesses
    return known.Y[lost] - (1 - say) * kernel - say * plain


def expected(head: NumberHead, X, by_kernel) -> np.ndarray:
    """Outputs (n, c) of rows without gaps, once the kernel has said its own."""
    rows = as_data(X).less_mean(head.mean.astype(X.dtype))
    plain = np.asarray(rows @ head.coef.astype(X.dtype), dtype=float) + head.offset
    return (1 - head.say) * by_kernel + head.say * plain


def _joined(E, other, weights):
    """Share (c,) of the second of two predictions, and left-out residuals (n, c) of both."""
    together, say = np.full_like(E, np.nan), np.zeros(E.shape[1])
    for j in range(E.shape[1]):
        seen = ~np.isnan(E[:, j])
        both, own = np.stack([E[seen, j], other[seen, j]])[..., None], weights[seen]
        squares = np.sum(own[:, None] * both**2, axis=1) / max(own.sum(), TINY)
        shares, without = likelihood_shares(both, np.maximum(squares, TINY)[..., None], own)
        say[j], together[seen, j] = shares[1], np.sum(without * both[..., 0], axis=0)
    return say, together


def _in_columns(space: PrincipalSpace, plain: Completion, say):
    mean = np.asarray(space.mean, dtype=float)
    return NumberHead(mean, space.axes @ plain.B, plain.offset, say)
