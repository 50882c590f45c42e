"""SPPCA by likelihood of rows that come part after part: all that they need leave are moments.

    all rows          number, mean and scatter of x
    labelled rows     the same of [x, y], classes as indicators, numbers in their own units

Both join exactly, see `gnomon.linalg.moments`. Codes of y are linear in these columns, so that they
are settled when the model is fitted: a class that comes late was an indicator of zeros before.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data, Matrix, weighted
from gnomon.linalg.moments import Moments, joined, moments_of
from gnomon.models.sppca.statistics import Outputs, no_outputs, outputs_from_moments


class Seen(NamedTuple):
    """Moments of x over all rows, and of [x, y] over the labelled ones, None where none are."""

    every: Moments
    labelled: Moments | None


class Code(NamedTuple):
    """Codes (y - center) turn of the columns of y: center (k,), turn (k, c)."""

    center: np.ndarray
    turn: np.ndarray


def see(X: Data, Y, labelled, weights=None) -> Seen:
    """Moments of rows; Y (p, k) has columns of those that the mask ``labelled`` (n,) selects."""
    own = None if weights is None else weights[labelled]
    every = moments_of(weighted(X, weights))
    if not labelled.any():
        return Seen(every, None)
    rows = np.hstack([X.rows(labelled).as_array().astype(float), Y])
    return Seen(every, moments_of(weighted(Matrix(rows), own)))


def join(before: Seen, after: Seen) -> Seen:
    """Moments of both sets of rows; columns of y are the same in both."""
    pairs = before.labelled, after.labelled
    known = [part for part in pairs if part is not None]
    labelled = joined(*known) if len(known) == 2 else (known[0] if known else None)
    return Seen(joined(before.every, after.every), labelled)


def with_columns(moments: Moments, d, places, size) -> Moments:
    """Moments of [x, y] with the columns of y at their ``places`` among ``size``, others zero."""
    index = np.concatenate([np.arange(d), d + np.asarray(places, dtype=int)])
    mean, scatter = np.zeros(d + size), np.zeros((d + size, d + size))
    mean[index] = moments.mean
    scatter[np.ix_(index, index)] = moments.scatter
    return moments._replace(mean=mean, scatter=scatter)


def spread_of_outputs(moments: Moments, d) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations (k,) of the columns of y over the labelled rows."""
    variances = np.diagonal(moments.scatter)[d:] / moments.weight
    return moments.mean[d:], np.sqrt(np.maximum(variances, 0.0))


def outputs(seen: Seen, code: Code, axes) -> Outputs:
    """Labelled rows by their moments in the coordinates ``axes`` (d, m) about the mean of all."""
    (d, m), labelled = axes.shape, seen.labelled
    if labelled is None:
        return no_outputs(m, code.turn.shape[1])
    L = np.zeros((len(labelled.mean), m + code.turn.shape[1]))
    L[:d, :m], L[d:, m:] = axes, code.turn
    offset = np.concatenate([seen.every.mean, code.center])
    mean, n = (labelled.mean - offset) @ L, labelled.weight
    squares = L.T @ labelled.scatter @ L + n * np.outer(mean, mean)
    J = np.block([[squares, n * mean[:, None]], [n * mean[None], np.full((1, 1), n)]])
    return outputs_from_moments(J, m, n)
