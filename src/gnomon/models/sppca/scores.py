"""What SPPCA with a probit likelihood says of new rows: classes or labels from their scores.

Given x the scores are Gaussian, `predict.Given`, as outputs are: their covariance is that of z
through the loadings, of low rank, and a unit of noise. Probabilities integrate over it by EP
(`propagation`), which is exact for two classes and for one label.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, softmax

from gnomon.linalg.data import slices
from gnomon.models.sppca import predict
from gnomon.models.sppca.fit import SppcaFit
from gnomon.models.sppca.predict import Given
from gnomon.models.sppca.probit import Classes, Signs, scored
from gnomon.models.sppca.propagation import BLOCK_ENTRIES, propagate


class ClassScores(NamedTuple):
    """Scores whose largest is the class, coded by vectors (C, C - 1); rank of their covariance."""

    code_vectors: np.ndarray
    rank: int

    def targets(self, Y, observed) -> Classes:
        """The classes of rows that have them, from their codes."""
        return Classes(np.argmax(Y @ self.code_vectors.T, axis=1), self.code_vectors)

    def probabilities(self, given: Given) -> np.ndarray:
        """Probabilities (n, C) of the classes."""
        n, C = len(given.mean), len(self.code_vectors)
        own = [Classes(np.full(n, label), self.code_vectors) for label in range(C)]
        odds = [log_probabilities(given, targets, self.rank) for targets in own]
        return softmax(np.column_stack(odds), axis=1)

    def means(self, given: Given) -> np.ndarray:
        """Expected codes (n, c)."""
        return self.probabilities(given) @ self.code_vectors

    def outputs(self, given: Given) -> Given:
        """Means and covariances of the codes of every row."""
        P, H = self.probabilities(given), self.code_vectors
        means, second = P @ H, np.einsum("nk,ki,kj->nij", P, H, H, optimize=True)
        return Given(means, second - means[:, :, None] * means[:, None, :], np.arange(len(P)))

    def fill(self, given: Given, Y, observed):
        """Codes with those not known at their means, and deviations of these."""
        found = self.outputs(given)
        variances = np.maximum(np.diagonal(found.covariances, axis1=1, axis2=2), 0.0)
        return np.where(observed, Y, found.mean), np.where(observed, 0.0, np.sqrt(variances))

    def columns(self, drawn) -> np.ndarray:
        """Codes of the classes of drawn scores (n, c)."""
        return self.code_vectors[np.argmax(drawn @ self.code_vectors.T, axis=1)]


class LabelScores(NamedTuple):
    """Scores above zero where a label holds; labels are 0 and 1 less a center (c,)."""

    center: np.ndarray
    rank: int

    def targets(self, Y, observed) -> Signs:
        """The signs of the labels known."""
        return Signs(np.where(observed, np.sign(Y + self.center - 0.5), 0.0))

    def means(self, given: Given) -> np.ndarray:
        """Probabilities of the labels, less their center."""
        deviations = np.sqrt(np.diagonal(given.covariances, axis1=1, axis2=2))
        return ndtr(given.mean / deviations[given.pattern]) - self.center

    def outputs(self, given: Given) -> Given:
        """Means and covariances of the labels of every row."""
        means = self.means(given)
        n, c = means.shape
        second, P = np.empty((n, c, c)), means + self.center
        for i, j in combinations(range(c), 2):
            both = Signs(np.tile(np.isin(np.arange(c), (i, j)).astype(float), (n, 1)))
            second[:, i, j] = second[:, j, i] = np.exp(log_probabilities(given, both, self.rank))
        second[:, np.arange(c), np.arange(c)] = P
        return Given(means, second - P[:, :, None] * P[:, None, :], np.arange(n))

    def fill(self, given: Given, Y, observed):
        """Labels with those not known at their probabilities given the others, and deviations."""
        P = np.empty_like(Y)
        for rows, B, tilted in _propagated(given, self.targets(Y, observed), self.rank):
            mean = given.mean[rows] + (B @ tilted.mean[:, :, None])[:, :, 0]
            variance = 1.0 + np.sum((B @ tilted.covariance) * B, axis=2)
            P[rows] = ndtr(mean / np.sqrt(variance))
        filled = np.where(observed, Y, P - self.center)
        return filled, np.where(observed, 0.0, np.sqrt(P * (1 - P)))

    def columns(self, drawn) -> np.ndarray:
        """Labels of drawn scores (n, c), less their center."""
        return (drawn > 0) - self.center


def log_probabilities(given: Given, targets, rank) -> np.ndarray:
    """Log probability (n,) of the class, or of the labels known, of every row."""
    found = np.empty(len(given.mean))
    for rows, _, tilted in _propagated(given, targets, rank):
        found[rows] = tilted.log_Z
    return found


def _propagated(given, targets, rank):
    """Rows in blocks, with the roots of the covariances of their scores and what EP finds."""
    roots, (n, c) = _roots(given.covariances, rank), given.mean.shape
    for rows in slices(n, max(1, BLOCK_ENTRIES // ((c + 1) * (rank + 1)))):
        B = roots[0] if len(roots) == 1 else roots[given.pattern[rows]]
        yield rows, B, propagate(targets.rows(rows).factors(given.mean[rows], B))


def _roots(covariances, rank):
    """Roots (P, c, rank) of the covariances of scores beyond their unit noise."""
    c = covariances.shape[1]
    values, vectors = np.linalg.eigh(covariances - np.eye(c))
    kept = slice(max(c - rank, 0), c)
    return vectors[:, :, kept] * np.sqrt(np.maximum(values[:, None, kept], 0.0))


def posterior(model: SppcaFit, X, Y, observed, scores) -> tuple[np.ndarray, np.ndarray]:
    """Means (n, q) and covariances (n, q, q) of the coordinates given x and the outputs seen."""
    mean, covariances = predict.posterior(model, X, Y, np.zeros_like(observed))
    rows = observed.any(axis=1)
    if not rows.any():
        return mean, covariances
    # Coordinates are latent variables over these.
    scale, known = model.latent_scale, scores.targets(Y[rows], observed[rows])
    given = mean[rows] * scale, covariances[rows] * np.outer(scale, scale)
    found = scored(model.state, *given, known)
    mean[rows], covariances[rows] = found.Z / scale, found.covariances / np.outer(scale, scale)
    return mean, covariances
