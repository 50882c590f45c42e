"""Centred features of a kernel, exact or by landmarks, for every linear model.

    f(x) = k(x, landmarks) basis - offset, centred on the rows

    exact      K of all rows, centred, Kc = U diag(l) U'     basis U l^(-1/2), F = U l^(1/2)
    Nystrom    rows against m landmarks                      basis from K of the landmarks

Weights w count rows: the mean is theirs, and D^(1/2) Kc D^(1/2) with D = diag(w) has the
eigenvectors U, so that the basis is D^(1/2) U l^(-1/2) and F'D F is diagonal.

Kc = F F', so a linear model of the features F is the dual form of that model in the space of
the kernel. Centring is by the rows of the fit, for them and for new points alike. Values of the
kernel come in as arrays; what is said here of rows is how wide a kernel, and around what.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.exceptions import NumericalError
from gnomon.linalg.blocks import KEPT_ENTRIES
from gnomon.linalg.data import SAFE_SHIFT, Data, Matrix, center, larger, placed, row_norms, weighted
from gnomon.linalg.eigen import symmetric_pairs
from gnomon.linalg.solve import fix_signs, one_thread
from gnomon.linalg.threads import in_order

# Eigenvalues below this share of the largest are left out. The rank cut of other matrices is
# lower, but here features are roots, which make 1e-4 of what was 1e-8, and dividing by them
# makes rounding of new rows as large.
RANK_SHARE = 1e-8
# Up to so many rows a whole kernel matrix is quick; beyond, so many landmarks are.
MOST_EXACT = 2000
LANDMARKS = 1000
# Rows from which a mean absolute distance is taken: it is then right to some hundredths.
SAMPLED_ROWS = 200
# Rows whose features are found at a time: a call for each block of X would take longer than its
# kernel.
MAPPED_ROWS = 2048


class FeatureMap(NamedTuple):
    """Basis (m, r) and offset (r,) with f(x) = k(x, landmarks) basis - offset."""

    basis: np.ndarray
    offset: np.ndarray


class Features(NamedTuple):
    """The feature map, the features (n, r) of the rows, and their energies where exact.

    Energies (r,) are the squared lengths of the features, which are then orthogonal; ``total``
    is the energy of all features, also of those that were left out; of rows elsewhere nobody
    asks for it.
    """

    map: FeatureMap
    F: Data
    energies: np.ndarray | None
    total: float


def choose_landmarks(n, size, rng) -> np.ndarray:
    """Sorted numbers of the rows that are landmarks: all, or ``size`` by chance; None decides."""
    if size is None:
        size = n if n <= MOST_EXACT else LANDMARKS
    return np.arange(n) if size >= n else np.sort(rng.choice(n, size, replace=False))


class Mapped(Data):
    """Features of rows that are read anew each time they are needed; some blocks are in memory.

    ``values(rows)`` (b, m) is the kernel of some rows with the landmarks. Features of rows that
    were selected are kept while they are few, so that asking again is no read.
    """

    def __init__(self, X: Data, values: Callable, found: FeatureMap, gram=None):
        super().__init__(float, (X.shape[0], found.basis.shape[1]))
        self.X, self.values, self.map, self._gram = X, values, found, gram
        self._kept: list[tuple[np.ndarray, Data]] = []

    def dense_blocks(self):
        """Features of runs of rows, by several threads."""
        return self.of_blocks(lambda rows, F: F)

    def of_blocks(self, function: Callable):
        """``function(rows, F)`` for features F of runs of rows, which threads share."""

        def of_run(run):
            return function(run[0], features(self.map, self.values(run[1])))

        runs = placed(larger(self.X.dense_blocks(), MAPPED_ROWS))
        return in_order(of_run, runs, self.shape[0] * self.map.basis.size)

    def gram(self):
        """F'F, as it was found with the map."""
        return super().gram() if self._gram is None else self._gram

    def rows(self, mask):
        """Features of some rows."""
        index = np.flatnonzero(mask) if np.asarray(mask).dtype == bool else np.asarray(mask)
        for known, part in self._kept:
            if np.isin(index, known).all():
                return part.rows(np.searchsorted(known, index))
        found = Mapped(self.X.rows(index), self.values, self.map)
        entries = sum(part.shape[0] for _, part in self._kept) + found.shape[0]
        if entries * self.shape[1] > KEPT_ENTRIES:
            return found
        self._kept.append((index, Matrix(found.as_array())))
        return self._kept[-1][1]

    def _matmat(self, B):
        return np.concatenate(list(self.of_blocks(lambda rows, F: F @ B)))

    def _rmatmat(self, Z):
        return sum(self.of_blocks(lambda rows, F: F.T @ Z[rows]))


def map_features(X: Data, values: Callable, K_landmarks, weights=None) -> Features:
    """Features by landmarks, whose own kernel is (m, m), of rows that are too many to keep theirs.

    One pass: sums are about the mean of the landmarks, from which that of all rows is not far.
    """
    weights = np.ones(X.shape[0]) if weights is None else weights
    first = nystrom_map(K_landmarks, K_landmarks.mean(axis=0))
    size = first.basis.shape[1]
    sums, squares = np.zeros(size), np.zeros((size, size))

    def moments(rows, F):
        own = weights[rows, None] * F
        return own.sum(axis=0), own.T @ F

    for part in Mapped(X, values, first).of_blocks(moments):
        sums += part[0]
        squares += part[1]
    mean, total = sums / weights.sum(), weights.sum()
    found = first._replace(offset=first.offset + mean)
    gram = squares - total * np.outer(mean, mean)
    mapped = Mapped(X, values, found, gram)
    mapped.n_samples = float(total)
    return Features(found, mapped, None, float(np.trace(gram)))


def fit_features(K, index, most=None, weights=None) -> Features:
    """Features of rows whose kernel with the landmarks, the rows of ``index``, is K (n, m).

    Of the exact ones those of most energy, ``most`` of them, are enough where it is given.
    """
    weights = np.ones(len(K)) if weights is None else weights
    if len(index) == len(K):
        found, energies, total = exact_map(K, most, weights)
        F = found.basis / weights[:, None] * energies
        return Features(found, Matrix(F), energies, total)
    found = nystrom_map(K[index], np.average(K, axis=0, weights=weights))
    F = features(found, K)
    return Features(found, Matrix(F), None, float(weights @ F**2 @ np.ones(F.shape[1])))


def features(found: FeatureMap, K) -> np.ndarray:
    """Features (n, r) of rows whose kernel with the landmarks is K (n, m)."""
    return K @ found.basis - found.offset


def exact_map(K, most=None, weights=None) -> tuple[FeatureMap, np.ndarray, float]:
    """The map of all rows, their energies (r,), the eigenvalues of the centred K (n, n), and all.

    Directions of negative energy, which a kernel that is not positive definite has, are left out.
    """
    weights = np.ones(len(K)) if weights is None else weights
    roots, means = np.sqrt(weights), np.average(K, axis=0, weights=weights)
    about = np.average(means, weights=weights)
    centred = (K - means - means[:, None] + about) * np.outer(roots, roots)
    values, U = _positive(centred, most)
    total = float(np.trace(centred)) if len(values) == most else float(values.sum())
    # Orthogonal to constants but for rounding, of which roots of small energies make much.
    U = roots[:, None] * U
    basis = (U - np.outer(weights / weights.sum(), U.sum(axis=0))) / np.sqrt(values)
    return FeatureMap(basis, means @ basis), values, total


def nystrom_map(K_landmarks, means) -> FeatureMap:
    """The map of rows whose kernel with m landmarks has these means (m,), their own is (m, m)."""
    values, U = _positive(K_landmarks)
    basis = U / np.sqrt(values)
    return FeatureMap(basis, means @ basis)


def distant_features(K: Data, K_landmarks, weights=None) -> Features:
    """The same where K (n, m) is made of rows elsewhere: the features are `Data` there, too."""
    found = nystrom_map(K_landmarks, weighted(K, weights).column_means())
    return Features(found, K.mapped(partial(_of_rows, found), found.basis.shape[1]), None, np.nan)


def _of_rows(found, K):
    return K @ found.basis - found.offset


def _positive(K, most=None):
    """Eigenpairs of a symmetric matrix of positive energy, descending, at most so many."""
    if not np.isfinite(K.sum()):
        raise NumericalError("values of the kernel leave the range of numbers; rescale X")
    n = len(K)
    with one_thread if n <= MOST_EXACT else nullcontext():
        values, U = symmetric_pairs((K + K.T) / 2, n if most is None else min(most, n))
    kept = values > RANK_SHARE * max(values[0], 0.0)
    if not kept.any():
        raise NumericalError(
            "the kernel of the rows has no energy once it is centred: they are equal, or closer "
            "than numbers tell; rescale X if they differ"
        )
    return values[kept], fix_signs(U[:, kept])


def far_mean(X: Data) -> np.ndarray | None:
    """Mean of rows so far from the origin that products would round their distances, or None.

    Sparse rows have most of their entries at the origin, and stay as they are.
    """
    if X.is_sparse:
        return None
    mean, centered = center(X)
    return mean if X.n_samples * (mean @ mean) > SAFE_SHIFT * centered.squared_norm else None


def default_gamma(kernel, X: Data) -> float:
    """Width at which the kernel varies over the rows as they vary.

    One over the mean squared distance of two rows for rbf, over their mean absolute distance
    for laplacian, over the mean squared length of a row for polynomials and sigmoids.
    """
    if kernel == "laplacian":
        typical = _mean_absolute_distance(X)
    elif kernel == "rbf":
        typical = 2 * centred_energy(X) / X.n_samples
    else:
        typical = X.squared_norm / X.n_samples
    return _gamma_of(typical)


def _gamma_of(typical):
    """One over a typical size, where numbers have such a size."""
    if not typical < np.inf or 0 < typical < 1e6 * np.finfo(float).tiny:
        raise NumericalError("distances of its rows leave the range of numbers; rescale X")
    return 1 / typical if typical > 0 else 1.0


def centred_energy(X: Data) -> float:
    """Squared norm of X less its mean; in one pass where rows are not in memory at once."""
    if isinstance(X.unweighted, Matrix) or X.is_elsewhere:
        return center(X)[1].squared_norm
    weights = np.ones(X.shape[0]) if X.weights is None else X.weights
    return _energy(X.unweighted.dense_blocks(), weights)


def landmarks_and_gamma(X: Data, index, weights=None) -> tuple[np.ndarray, float]:
    """The rows of a sorted index and the width of rbf, in one pass over rows in blocks."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    landmarks = np.empty((len(index), X.n_features), dtype=X.dtype)

    def seen():
        for rows, block in placed(X.dense_blocks()):
            own = slice(*np.searchsorted(index, [rows.start, rows.stop]))
            landmarks[own] = block[index[own] - rows.start]
            yield block

    return landmarks, _gamma_of(2 * _energy(seen(), weights) / weights.sum())


def _energy(blocks, weights):
    """Weighted squared norm of rows less their mean: blocks joined as their moments are."""
    weight, mean, energy = 0.0, 0.0, 0.0
    for rows, block in placed(blocks):
        w = weights[rows]
        if w.any():
            own = w @ block / w.sum()
            energy += float(w @ row_norms(block - own))
            step, share = own - mean, w.sum() / (weight + w.sum())
            energy += weight * share * float(step @ step)
            weight, mean = weight + w.sum(), mean + share * step
    return energy


def _mean_absolute_distance(X):
    """Mean over pairs of some rows of the sum of absolute differences, from sorted columns."""
    weights, X = np.ones(X.shape[0]) if X.weights is None else X.weights, X.unweighted
    rows = np.unique(np.linspace(0, X.shape[0] - 1, SAMPLED_ROWS).astype(int))
    columns = np.concatenate(list(X.rows(rows).dense_blocks())).astype(float)
    order = np.argsort(columns, axis=0)
    counts = weights[rows][order]
    below = np.cumsum(counts, axis=0)
    ranks = counts * (2 * below - counts - below[-1])
    return 2 * float(np.sum(ranks * np.take_along_axis(columns, order, 0))) / below[-1, 0] ** 2
