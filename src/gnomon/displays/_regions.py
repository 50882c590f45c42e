"""Which class the model predicts where in the embedding."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.displays._reading import embed
from gnomon.linalg.data import as_data

RESOLUTION = 120
ROWS_AT_ONCE = 2_000


class Regions(NamedTuple):
    """Grid positions per axis and the class predicted at each, (rows, columns)."""

    x: np.ndarray
    y: np.ndarray
    classes: np.ndarray


def decision_regions(estimator, X, Z, components) -> Regions:
    """Predicted classes on a grid in two components; the others stay at their mean.

    The embedding is affine in X, so the rows of pinv(Z - mean) X, whose mean cancels, move an
    input by one unit along each component. This gives an input for every point of the grid.
    """
    like = _maker(X)
    data = as_data(X if sparse.issparse(X) else np.asarray(X, dtype=float))
    x_mean, z_mean = data.column_means(), Z.mean(axis=0)
    directions = np.linalg.pinv(Z - z_mean)
    moves = (data.T @ directions.T).T
    x, y = _spans(Z[:, components])
    offsets = np.zeros((len(x) * len(y), Z.shape[1]))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    offsets[:, components] = grid - z_mean[list(components)]
    probe = offsets[:: len(offsets) // 5]
    _check_affine(estimator, like(x_mean + probe @ moves), z_mean + probe)
    parts = [
        estimator.predict(like(x_mean + offsets[i : i + ROWS_AT_ONCE] @ moves))
        for i in range(0, len(offsets), ROWS_AT_ONCE)
    ]
    return Regions(x, y, np.concatenate(parts).reshape(len(y), len(x)))


def _spans(Z):
    """Positions along both axes, with a margin; the short one spans at least 0.6 of the long."""
    extents = np.maximum(np.ptp(Z, axis=0), np.finfo(float).tiny)
    centres, halves = Z.min(axis=0) + extents / 2, 0.65 * extents
    halves = np.maximum(halves, 0.6 * halves.max())
    return [np.linspace(c - h, c + h, RESOLUTION) for c, h in zip(centres, halves, strict=True)]


def _maker(X):
    """Makes of an array what X is: a data frame with its columns, or the array itself."""
    if hasattr(X, "iloc"):
        return lambda rows: type(X)(rows, columns=X.columns)
    return np.asarray


def _check_affine(estimator, X, Z):
    if not np.allclose(embed(estimator, X), Z, rtol=0, atol=0.01 * np.ptp(Z, axis=0).max()):
        raise ValueError(
            "regions=True needs an embedding that is linear in X and has no missing values; "
            f"{type(estimator).__name__} is not linear here"
        )
