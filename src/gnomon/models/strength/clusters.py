"""Clusters that unlabelled rows show, told apart by the labels: evidence that few labels lack.

    x | class c  ~  N(mu_c, S)        one covariance; labelled rows keep their class

EM on some leading principal directions, each of unit variance, so that a direction of small
variance counts as much as one of large. The classes are clusters where the mixture explains all
rows better than one Gaussian (by BIC), every two means are far apart for their common
covariance, and every labelled row lies in the cluster of its class.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.solve import Cholesky
from gnomon.models.strength.rule import RULE


class Mixture(NamedTuple):
    """Means (classes, p), the common covariance (p, p) and the shares of the classes."""

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
    seen = np.r_[: len(labels), len(labels) : len(F) : 1 + len(F) // RULE.cluster_rows]
    starts = [
        _climb(F[seen], labels, P, RULE.cluster_trial_steps) for P in _starts(F[seen], labels)
    ]
    P, _ = max(starts, key=lambda found: found[1])
    P, _ = _climb(F[seen], labels, P, RULE.cluster_steps)
    mixture = mixture_of(F[seen], P)
    return posterior(F, mixture)[0] if _trusted(F[seen], labels, mixture) else None


def _starts(F, labels):
    """Probabilities to begin with: nearness to the labelled means, on all axes and on each."""
    means = np.array([F[: len(labels)][labels == c].mean(axis=0) for c in range(labels.max() + 1)])
    for axes in (slice(None), *(slice(k, k + 1) for k in range(F.shape[1]))):
        away = np.sum((F[:, None, axes] - means[None, :, axes]) ** 2, axis=2)
        yield np.exp(-away / 2) / np.exp(-away / 2).sum(axis=1, keepdims=True)


def _climb(F, labels, P, steps):
    """Probabilities after some steps of EM, and the log likelihood of all rows before the last."""
    known = np.eye(labels.max() + 1)[labels]
    for _ in range(steps):
        P, log_likelihood = posterior(F, mixture_of(F, np.vstack([known, P[len(labels) :]])))
    return P, log_likelihood


def mixture_of(F, P) -> Mixture:
    """M step; a trace of the rows' own covariance keeps that of the clusters regular."""
    counts = P.sum(axis=0)
    means = P.T @ F / counts[:, None]
    covariance = (F.T @ F - (means.T * counts) @ means) / len(F)
    return Mixture(means, covariance + RULE.rounding * np.eye(F.shape[1]), counts / len(F))


def posterior(F, mixture: Mixture) -> tuple[np.ndarray, float]:
    """Probabilities (n, classes) of the classes of every row, and the log likelihood of all.

    x'S^-1 x is the same for all classes, and its sum over the rows is tr S^-1 F'F.
    """
    (n, p), root = F.shape, Cholesky(mixture.covariance)
    A = root.solve(mixture.means.T)
    constants = np.log(mixture.shares) - np.sum(mixture.means.T * A, axis=0) / 2
    joint = F @ A + constants
    # As logsumexp of SciPy, whose checks take longer than these few hundred rows.
    top = joint.max(axis=1, keepdims=True)
    P = np.exp(joint - top)
    sums = P.sum(axis=1, keepdims=True)
    shared = n * (p * np.log(2 * np.pi) + root.logdet()) + np.trace(root.solve(F.T @ F))
    return P / sums, float(np.sum(top + np.log(sums)) - shared / 2)


def _trusted(F, labels, mixture):
    (n, p), n_more = F.shape, len(mixture.shares) - 1
    P, log_likelihood = posterior(F, mixture)
    _, of_one = posterior(F, mixture_of(F, np.ones((n, 1))))
    better = 2 * (log_likelihood - of_one) > n_more * (p + 1) * np.log(n)
    agree = np.all(np.argmax(P[: len(labels)], axis=1) == labels)
    return better and agree and separation(mixture) > RULE.cluster_separation


def separation(mixture: Mixture) -> float:
    """Least distance between two means, in deviations of their common covariance."""
    M = Cholesky(mixture.covariance).half_solve(mixture.means.T).T
    apart = np.linalg.norm(M[:, None] - M[None], axis=2)
    return float(apart[np.triu_indices(len(M), 1)].min())
