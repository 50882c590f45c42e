"""What the model predicts: classes, labels or numbers, as scores.

y is the largest score (classes), the signs of the scores (labels), or the scores themselves
(numbers, with a noise precision for each output; it is 1 for the others).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from gnomon.models.bsdr import probit


class ClassOutputs(NamedTuple):
    """One class per row, its number in ``labels`` (n,), by the multinomial probit."""

    labels: np.ndarray
    n_outputs: int

    @property
    def observed(self):
        """None: every score takes part."""
        return None

    def scores(self, M, counts=1.0):
        """E[T] around M and the sum of the log normalisers, eq. (10) of [G13].

        Rows may count (n, 1) more than once in the sum.
        """
        T, log_Z = self.row_scores(M)
        return T, float(np.sum(counts * log_Z[:, None]))

    def row_scores(self, M):
        """E[T] around M and the log normaliser of every row (n,)."""
        return probit.class_scores(M, self.labels)

    def curved_scores(self, M):
        """The same and I - Cov(t), by which log Z curves (n, c, c)."""
        return probit.curved_class_scores(M, self.labels)

    def draw(self, M, rng):
        """Scores around M (..., n, c) given the classes."""
        labels = np.broadcast_to(self.labels, M.shape[:-1]).ravel()
        flat = M.reshape(-1, self.n_outputs)
        return probit.draw_class_scores(flat, labels, rng).reshape(M.shape)

    def log_chances(self, noise):
        """The function M (k, n, c) -> log P(classes), given the noise of their own scores alone.

        What the other scores are is integrated out, which is a product of normal laws.
        """
        own, others = probit.rivals(self.labels, self.n_outputs)
        u = noise.reshape(len(noise), -1)[:, own]

        def log_chances(M):
            M = M.reshape(len(M), -1)
            return log_ndtr(u + M[:, own] - M[:, others]).sum(axis=1)

        return log_chances

    def start_columns(self):
        """Indicators whose regression on X is discriminant analysis."""
        indicators = np.eye(self.n_outputs)[self.labels]
        return indicators / np.sqrt(np.maximum(indicators.sum(axis=0), 1.0))


class SignOutputs(NamedTuple):
    """Labels +1 and -1, 0 where not known, by one probit for each (n, c)."""

    signs: np.ndarray

    @property
    def n_outputs(self):
        """Number of labels."""
        return self.signs.shape[1]

    @property
    def observed(self):
        """1 where a label is known; None where all are."""
        return mask_of(self.signs != 0)

    def scores(self, M, counts=1.0):
        """E[T] around M and the sum of the log normalisers."""
        T, log_Z = probit.sign_scores(M, self.signs)
        return T, float(np.sum(counts * log_Z))

    def row_scores(self, M):
        """E[T] around M and the log normaliser of every row (n,)."""
        T, log_Z = probit.sign_scores(M, self.signs)
        return T, log_Z.sum(axis=1)

    def curved_scores(self, M):
        """The same and I - Cov(t), by which log Z curves (n, c, c)."""
        T, log_Z = self.row_scores(M)
        # With h = phi / Phi at a = m y: h (h + a), where T - M = y h.
        return T, log_Z, ((T - M) * T)[:, :, None] * np.eye(M.shape[1])

    def draw(self, M, rng):
        """Scores around M (..., n, c) given the signs."""
        return probit.draw_sign_scores(M, self.signs, rng)

    def log_chances(self, noise):
        """The function M (k, n, c) -> log P(signs), whatever the noise of the scores."""
        known = self.signs != 0
        return lambda M: log_ndtr((self.signs * M)[:, known]).sum(axis=1)

    def start_columns(self):
        """Columns to regress on X for a first projection."""
        return self.signs / np.sqrt(len(self.signs))


class NumberOutputs(NamedTuple):
    """Numbers (n, c), zero where not known, and which are (a mask of ones, or None for all)."""

    Y: np.ndarray
    observed: np.ndarray | None = None

    @property
    def n_outputs(self):
        """Number of outputs."""
        return self.Y.shape[1]

    def scores(self, M, counts=1.0):
        """The numbers themselves; there is nothing to normalise."""
        return self.Y, 0.0

    def row_scores(self, M):
        """The same for every row."""
        return self.Y, np.zeros(len(self.Y))

    def curved_scores(self, M):
        """There is nothing that curves."""
        return self.Y, np.zeros(len(self.Y)), np.zeros((*self.Y.shape, self.n_outputs))

    def draw(self, M, rng):
        """The numbers themselves."""
        return self.Y

    def start_columns(self):
        """Columns to regress on X for a first projection."""
        return self.Y / np.sqrt(len(self.Y))


Outputs = ClassOutputs | SignOutputs | NumberOutputs


def known_of(outputs: Outputs) -> np.ndarray:
    """What is known of every row, (n,) or (n, c): the first field of each."""
    return outputs[0]


def with_known(outputs: Outputs, known) -> Outputs:
    """The same outputs of other rows; all of them must be known."""
    return type(outputs)(known, *outputs[1:])


def mask_of(known):
    """A boolean mask as ones and zeros; None where all are known."""
    return None if known.all() else known.astype(float)
