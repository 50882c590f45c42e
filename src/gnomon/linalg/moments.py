"""Rows known by their moments alone: all that a stream need leave behind for a Gaussian model.

    n, mean, S = sum of (x - mean) (x - mean)'

Sets of rows join exactly, [CGL83]: the scatter of both is the sum of the scatters and of what
the distance of the means adds. So each part is centred by itself, and no digits are lost to a
mean that is large for the spread.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data, center


class Moments(NamedTuple):
    """Number of rows, their weight n, mean (d,) and scatter about it (d, d), in float64.

    Model files hold this record: its fields keep their names.
    """

    n_rows: int
    weight: float
    mean: np.ndarray
    scatter: np.ndarray


def moments_of(X: Data) -> Moments:
    """Moments of rows, weighted where they are, in two passes over them."""
    mean, centered = center(X)
    return Moments(X.shape[0], float(X.n_samples), mean, centered.gram().astype(float))


def joined(a: Moments, b: Moments) -> Moments:
    """Moments of two sets of rows together."""
    weight, step = a.weight + b.weight, b.mean - a.mean
    between = a.weight * b.weight / weight
    return Moments(
        a.n_rows + b.n_rows,
        weight,
        a.mean + (b.weight / weight) * step,
        a.scatter + b.scatter + between * np.outer(step, step),
    )


class Summed(Data):
    """Rows of these moments; they have no products, only sums."""

    def __init__(self, moments: Moments):
        super().__init__(float, (moments.n_rows, len(moments.mean)), moments.weight)
        self.moments = moments

    @property
    def squared_norm(self):
        return float(np.trace(self.gram()))

    def column_sums(self):
        return self.moments.weight * self.moments.mean

    def less_mean(self, mean):
        return Summed(self.moments._replace(mean=self.moments.mean - mean))

    def gram(self):
        mean = self.moments.mean
        return self.moments.scatter + self.moments.weight * np.outer(mean, mean)
