"""Clusters that unlabelled rows show, told apart by the labels: evidence that few labels lack.

    x | class c  ~  N(mu_c, S)        one covariance; labelled rows keep their class

EM on some leading principal directions, each of unit variance, so that a direction of small
variance counts as much as one of large. The classes are clusters where the mixture explains all
rows better than one Gaussian (by BIC), every two means are far apart for their common
covariance, and every labelled row lies in the cluster of its class.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.solve import Cholesky, stacked_half_inverses
from gnomon.models.strength.rule import RULE


class Mixture(NamedTuple):
    """Means (..., classes, p), the common covariance (..., p, p) and the shares (..., classes).

    A stack of mixtures of the same rows is one of these.
    """

    means: np.ndarray
    covariance: np.ndarray
    shares: np.ndarray


def cluster_shares(F, labels) -> np.ndarray | None:
    """Probabilities (n, classes) of the rows of F, None where they show no clusters.

    F holds the labelled rows, of the class numbers ``labels``, and then the others.
    """
    p = min(RULE.cluster_directions, len(F) // RULE.rows_per_cluster_direction, F.shape[1])
    if p < 1:
        return None
    F = F[:, :p] - F[:, :p].mean(axis=0)
    F /= np.maximum(F.std(axis=0), RULE.rounding * F.std())
    seen = F[np.r_[: len(labels), len(labels) : len(F) : 1 + len(F) // RULE.cluster_rows]]
    P, log_likelihood = _climb(seen, labels, _starts(seen, labels), RULE.cluster_trial_steps)
    P = P[np.argmax(log_likelihood)]
    if _agreement(P, labels) < RULE.cluster_agreement:
        return None
    P, _ = _climb(seen, labels, P, RULE.cluster_steps)
    mixture = mixture_of(seen, P)
    return posterior(F, mixture)[0].T if _trusted(seen, labels, mixture) else None


def _starts(F, labels):
    """Probabilities (starts, classes, n): nearness to labelled means, on all axes and on each."""
    means = np.array([F[: len(labels)][labels == c].mean(axis=0) for c in range(labels.max() + 1)])
    away = (F.T[:, None] - means.T[:, :, None]) ** 2
    near = np.exp(-np.concatenate([away.sum(axis=0)[None], away]) / 2)
    return near / near.sum(axis=1, keepdims=True)


def _climb(F, labels, P, steps):
    """Probabilities after some steps of EM, and the log likelihood of all rows before the last.

    All starts of a stack climb at once: a step of one takes hardly less time than one of all.
    Clusters far apart are at their end after a few.
    """
    P, known = P.copy(), np.eye(labels.max() + 1)[:, labels]
    before = np.array(-np.inf)
    for _ in range(steps):
        P[..., : len(labels)] = known
        P, log_likelihood = posterior(F, mixture_of(F, P))
        if np.all(log_likelihood - before <= RULE.cluster_change * np.abs(log_likelihood)):
            break
        before = log_likelihood
    return P, log_likelihood


def mixture_of(F, P) -> Mixture:
    """M step; a trace of the rows' own covariance keeps that of the clusters regular."""
    counts = P.sum(axis=-1)
    means = P @ F / counts[..., None]
    between = np.swapaxes(means, -1, -2) @ (counts[..., None] * means)
    covariance = (F.T @ F - between) / len(F) + RULE.rounding * np.eye(F.shape[1])
    return Mixture(means, covariance, counts / len(F))


def posterior(F, mixture: Mixture) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (..., classes, n) of the classes of every row, and the log likelihood of all.

    x'S^-1 x is the same for all classes, and its sum over the rows is tr S^-1 F'F.
    """
    (n, p), means = F.shape, mixture.means
    half, log_det = stacked_half_inverses(mixture.covariance)
    precision = np.swapaxes(half, -1, -2) @ half
    A = means @ precision
    constants = np.log(mixture.shares) - np.sum(means * A, axis=-1) / 2
    joint = A @ F.T + constants[..., None]
    # As logsumexp of SciPy, whose checks take longer than these few hundred rows.
    top = joint.max(axis=-2, keepdims=True)
    P = np.exp(joint - top)
    sums = P.sum(axis=-2, keepdims=True)
    shared = n * (p * np.log(2 * np.pi) + log_det) + np.sum(precision * (F.T @ F), axis=(-1, -2))
    return P / sums, np.sum(top + np.log(sums), axis=(-1, -2)) - shared / 2


def _trusted(F, labels, mixture):
    (n, p), n_more = F.shape, len(mixture.shares) - 1
    P, log_likelihood = posterior(F, mixture)
    _, of_one = posterior(F, mixture_of(F, np.ones((1, n))))
    better = 2 * (log_likelihood - of_one) > n_more * (p + 1) * np.log(n)
    agree = _agreement(P, labels) == 1
    return better and agree and separation(mixture) > RULE.cluster_separation


def _agreement(P, labels):
    """Share of the labelled rows that lie in the cluster of their class."""
    return np.mean(np.argmax(P[:, : len(labels)], axis=0) == labels)


def separation(mixture: Mixture) -> float:
    """Least distance between two means, in deviations of their common covariance."""
    M = Cholesky(mixture.covariance).half_solve(mixture.means.T).T
    apart = np.linalg.norm(M[:, None] - M[None], axis=2)
    return float(apart[np.triu_indices(len(M), 1)].min())
