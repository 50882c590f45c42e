"""Numbers that a kernel predicts, and beside it the rows themselves.

A kernel of finite width bends every plane: of numbers that are linear in x, as amounts are in a
spectrum, it knows little beyond the labelled rows. So stage 1 is done twice, on features of the
kernel and on principal directions of the rows, and each output is the mean of both by their shares
exp(-n/2 log v), with v the variance of what rows left out miss: the likelihood of those rows, as
penalties have theirs in `completion`.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from gnomon.linalg.data import as_data
from gnomon.models.strength.closed_form import PrincipalSpace, coordinates, labelled_rows
from gnomon.models.strength.completion import (
    Completion,
    Outputs,
    complete,
    predictive_covariance,
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
) -> tuple[NumberHead, np.ndarray]:
    """The head, and the covariance of what it and the kernel predict of a new row together."""
    rows, weights = labelled_rows(of_rows, outputs.observed)
    known = outputs.rows(rows)
    kernel, plain = (complete(coordinates(s, rows), known, weights) for s in (of_kernel, of_rows))
    say = _share_of_second(kernel.residuals, plain.residuals, weights)
    E = (1 - say) * kernel.residuals + say * plain.residuals
    together = kernel._replace(residuals=E, covariance=residual_covariance(E, weights))
    covariance, _ = predictive_covariance(together, known, weights)
    return _in_columns(of_rows, plain, say), covariance


def expected(head: NumberHead, X, by_kernel) -> np.ndarray:
    """Outputs (n, c) of rows without gaps, once the kernel has said its own."""
    rows = as_data(X).less_mean(head.mean.astype(X.dtype))
    plain = np.asarray(rows @ head.coef.astype(X.dtype), dtype=float) + head.offset
    return (1 - head.say) * by_kernel + head.say * plain


def _share_of_second(E, other, weights):
    """Share (c,) of the second of two predictions, by the likelihood of rows left out."""
    seen = ~np.isnan(E)
    counts = weights @ seen
    squares = [weights @ np.where(seen, part, 0.0) ** 2 for part in (E, other)]
    variances = np.maximum(squares / np.maximum(counts, TINY), TINY)
    return softmax(-0.5 * counts * np.log(variances), axis=0)[1]


def _in_columns(space: PrincipalSpace, plain: Completion, say):
    mean = np.asarray(space.mean, dtype=float)
    return NumberHead(mean, space.axes @ plain.B, plain.offset, say)
