"""A kernel as a map to features: f(x) = k(x, landmarks) basis - offset, centred on the rows.

    exact      K of all rows, centred, Kc = U diag(l) U'     basis U l^(-1/2), F = U l^(1/2)
    Nystrom    rows against m landmarks                      basis from K of the landmarks

Kc = F F', so a linear model of the features F is the dual form of that model in the space of
the kernel. Centring is by the rows of the fit, for them and for new points alike.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from gnomon.exceptions import NumericalError
from gnomon.linalg.data import Data, center

# Eigenvalues below this share of the largest are rounding, and their roots would amplify it.
RANK_SHARE = 1e-8
# Rows from which a mean distance is taken.
SAMPLED_ROWS = 200


class FeatureMap(NamedTuple):
    """Basis (m, r) and offset (r,) with f(x) = k(x, landmarks) basis - offset."""

    basis: np.ndarray
    offset: np.ndarray


def features(found: FeatureMap, K) -> np.ndarray:
    """Features (n, r) of rows whose kernel with the landmarks is K (n, m)."""
    return K @ found.basis - found.offset


def exact_map(K) -> tuple[FeatureMap, np.ndarray]:
    """The map of all rows and their energies (r,), the eigenvalues of the centred K (n, n).

    Directions of negative energy, which a kernel that is not positive definite has, are left out.
    """
    means = K.mean(axis=0)
    values, U = _positive(K - means - means[:, None] + means.mean())
    basis = U / np.sqrt(values)
    return FeatureMap(basis, means @ basis), values


def nystrom_map(K_landmarks, K) -> FeatureMap:
    """The map of rows by their kernel K (n, m) with m landmarks, whose own kernel is (m, m)."""
    values, U = _positive(K_landmarks)
    basis = U / np.sqrt(values)
    return FeatureMap(basis, K.mean(axis=0) @ basis)


def _positive(K):
    """Eigenpairs of a symmetric matrix of positive energy, descending."""
    values, U = eigh((K + K.T) / 2)
    kept = values > RANK_SHARE * max(values[-1], 0.0)
    if not kept.any():
        raise NumericalError("the kernel of the rows has no energy once it is centred")
    return values[kept][::-1], U[:, kept][:, ::-1]


def default_gamma(kernel, X: Data) -> float:
    """Width at which the kernel varies over the rows as they vary.

    One over the mean squared distance of two rows for rbf, over their mean absolute distance
    for laplacian, over the mean squared length of a row for polynomials and sigmoids.
    """
    if kernel == "laplacian":
        spread = _mean_absolute_distance(X)
    elif kernel == "rbf":
        spread = 2 * center(X)[1].squared_norm / X.n_samples
    else:
        spread = X.squared_norm / X.n_samples
    return 1 / spread if spread > 0 else 1.0


def _mean_absolute_distance(X):
    """Mean over pairs of some rows of the sum of absolute differences, from sorted columns."""
    rows = np.unique(np.linspace(0, X.shape[0] - 1, SAMPLED_ROWS).astype(int))
    columns = np.sort(np.concatenate(list(X.rows(rows).dense_blocks())), axis=0)
    n = len(rows)
    ranks = 2 * np.arange(n) - n + 1
    return 2 * float(np.sum(ranks @ columns.astype(float))) / n**2
