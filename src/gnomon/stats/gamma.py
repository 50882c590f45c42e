"""Gamma factors in shape and scale: E[x] = shape * scale."""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln


class Gamma(NamedTuple):
    """A gamma distribution, or an array of independent ones that share the shape."""

    shape: float | np.ndarray
    scale: float | np.ndarray

    @property
    def mean(self):
        """E[x]."""
        return self.shape * self.scale

    @property
    def log_mean(self):
        """E[log x]."""
        return digamma(self.shape) + np.log(self.scale)


def precision_posterior(prior: Gamma, counts, squares) -> Gamma:
    """Precision of ``counts`` centred normal variables with this sum of expected squares."""
    return Gamma(prior.shape + 0.5 * counts, 1.0 / (1.0 / prior.scale + 0.5 * squares))


def kl(q: Gamma, p: Gamma) -> float:
    """KL(q, p), summed over the entries of q."""
    terms = (
        (q.shape - p.shape) * digamma(q.shape)
        - gammaln(q.shape)
        + gammaln(p.shape)
        + p.shape * (np.log(p.scale) - np.log(q.scale))
        + q.shape * (q.scale / p.scale - 1.0)
    )
    return float(np.sum(np.broadcast_to(terms, np.shape(q.scale))))


def log_density(x, p: Gamma) -> float:
    """Log density of independent draws, summed."""
    terms = (p.shape - 1) * np.log(x) - x / p.scale - gammaln(p.shape) - p.shape * np.log(p.scale)
    return float(np.sum(terms))
