"""Clusters that unlabelled rows show, told apart by the labels: evidence that few labels lack.

    x | class c  ~  N(mu_c, S)        one covariance; labelled rows keep their class

EM on some leading principal directions, each of unit variance, so that a direction of small
variance counts as much as one of large. The classes are clusters where the mixture explains all
rows better than one Gaussian (by BIC), every two means are far apart for their common
covariance, and every labelled row lies in the cluster of its class.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.solve import Cholesky, ranks_of_rows, stacked_half_inverses
from gnomon.models.strength.rule import RULE


class Mixture(NamedTuple):
    """Means (..., classes, p), the common covariance (..., p, p) and the shares (..., classes).

    A stack of mixtures of the same rows is one of these.
    """

    means: np.ndarray
    covariance: np.ndarray
    shares: np.ndarray


class Rows(NamedTuple):
    """Rows in few directions and what each counts; the first ones have the classes ``labels``."""

    F: np.ndarray
    weights: np.ndarray
    labels: np.ndarray

    @property
    def squares(self):
        """F'F, each row as often as it counts."""
        return (self.F.T * self.weights) @ self.F


def cluster_shares(F, labels, weights) -> np.ndarray | None:
    """Probabilities (n, classes) of the rows of F, None where they show no clusters.

    F holds the labelled rows, of the class numbers ``labels``, and then the others; a weight is a
    repetition.
    """
    most = int(weights.sum()) // RULE.rows_per_cluster_direction
    p = min(RULE.cluster_directions, most, F.shape[1])
    if p < 1:
        return None
    F = F[:, :p] - np.average(F[:, :p], axis=0, weights=weights)
    variances = np.average(F**2, axis=0, weights=weights)
    F /= np.sqrt(np.maximum(variances, RULE.rounding**2 * variances.mean()))
    seen = _shown(Rows(F, weights, labels))
    P, log_likelihood = _climb(seen, _starts(seen), RULE.cluster_trial_steps)
    P = P[np.argmax(log_likelihood)]
    if _agreement(P, seen) < RULE.cluster_agreement:
        return None
    P, _ = _climb(seen, P, RULE.cluster_steps)
    mixture = mixture_of(seen, P)
    return posterior(F, mixture).T if _trusted(seen, mixture) else None


def _shown(rows: Rows) -> Rows:
    """All rows where they are few, else the labelled ones and an even part of the others.

    By their distance from the mean, so that neither the order of rows nor their repetition counts.
    """
    n, step = len(rows.labels), 1 + int(rows.weights.sum()) // RULE.cluster_rows
    if step == 1:
        return rows
    order = n + np.argsort(ranks_of_rows(np.sum(rows.F[n:] ** 2, axis=1)), kind="stable")
    counts = np.diff(np.floor(np.cumsum(rows.weights[order]) / step), prepend=0.0)
    index = np.r_[:n, order[counts > 0]]
    return Rows(rows.F[index], np.r_[rows.weights[:n], counts[counts > 0]], rows.labels)


def _starts(rows):
    """Probabilities (starts, classes, n): nearness to labelled means, on all axes and on each."""
    F, labels, n = rows.F, rows.labels, len(rows.labels)
    known = np.eye(labels.max() + 1)[:, labels] * rows.weights[:n]
    means = known @ F[:n] / known.sum(axis=1, keepdims=True)
    away = (F.T[:, None] - means.T[:, :, None]) ** 2
    near = np.exp(-np.concatenate([away.sum(axis=0)[None], away]) / 2)
    return near / near.sum(axis=1, keepdims=True)


def _climb(rows, P, steps):
    """Probabilities after some steps of EM, and the log likelihood of all rows before the last.

    All starts of a stack climb at once: a step of one takes hardly less time than one of all.
    Clusters far apart are at their end after a few.
    """
    labels, squares, before = rows.labels, rows.squares, np.array(-np.inf)
    P, known = P.copy(), np.eye(labels.max() + 1)[:, labels]
    for _ in range(steps):
        P[..., : len(labels)] = known
        mixture = mixture_of(rows, P, squares)
        P, log_likelihood = fit_to(rows, mixture, squares)
        if np.all(log_likelihood - before <= RULE.cluster_change * np.abs(log_likelihood)):
            break
        before = log_likelihood
    return P, log_likelihood


def mixture_of(rows: Rows, P, squares=None) -> Mixture:
    """M step; a trace of the rows' own covariance keeps that of the clusters regular."""
    squares, total = rows.squares if squares is None else squares, rows.weights.sum()
    P = P * rows.weights
    counts = P.sum(axis=-1)
    means = P @ rows.F / counts[..., None]
    between = np.swapaxes(means, -1, -2) @ (counts[..., None] * means)
    covariance = (squares - between) / total + RULE.rounding * np.eye(rows.F.shape[1])
    return Mixture(means, covariance, counts / total)


def posterior(F, mixture: Mixture) -> np.ndarray:
    """Probabilities (..., classes, n) of the classes of every row."""
    return _joint(F, mixture)[0]


def fit_to(rows: Rows, mixture: Mixture, squares=None) -> tuple[np.ndarray, np.ndarray]:
    """The same, and the log likelihood of all rows.

    x'S^-1 x is the same for all classes, and its sum over the rows is tr S^-1 F'F.
    """
    p, squares = rows.F.shape[1], rows.squares if squares is None else squares
    P, own, precision, log_det = _joint(rows.F, mixture)
    shared = rows.weights.sum() * (p * np.log(2 * np.pi) + log_det)
    shared = shared + np.sum(precision * squares, axis=(-1, -2))
    return P, own @ rows.weights - shared / 2


def _joint(F, mixture):
    """Probabilities, log densities (..., n) but for what all rows share, precision, log |S|."""
    half, log_det = stacked_half_inverses(mixture.covariance)
    precision = np.swapaxes(half, -1, -2) @ half
    A = mixture.means @ precision
    constants = np.log(mixture.shares) - np.sum(mixture.means * A, axis=-1) / 2
    joint = A @ F.T + constants[..., None]
    # As logsumexp of SciPy, whose checks take longer than these few hundred rows.
    top = joint.max(axis=-2, keepdims=True)
    P = np.exp(joint - top)
    sums = P.sum(axis=-2, keepdims=True)
    return P / sums, (top + np.log(sums))[..., 0, :], precision, log_det


def _trusted(rows, mixture):
    total, p, n_more = rows.weights.sum(), rows.F.shape[1], len(mixture.shares) - 1
    P, log_likelihood = fit_to(rows, mixture)
    _, of_one = fit_to(rows, mixture_of(rows, np.ones((1, len(rows.F)))))
    better = 2 * (log_likelihood - of_one) > n_more * (p + 1) * np.log(total)
    agree = _agreement(P, rows) == 1
    return better and agree and separation(mixture) > RULE.cluster_separation


def _agreement(P, rows):
    """Share of the labelled rows that lie in the cluster of their class."""
    n = len(rows.labels)
    right = np.argmax(P[:, :n], axis=0) == rows.labels
    return 1.0 if right.all() else np.average(right, weights=rows.weights[:n])


def separation(mixture: Mixture) -> float:
    """Least distance between two means, in deviations of their common covariance."""
    M = Cholesky(mixture.covariance).half_solve(mixture.means.T).T
    apart = np.linalg.norm(M[:, None] - M[None], axis=2)
    return float(apart[np.triu_indices(len(M), 1)].min())
