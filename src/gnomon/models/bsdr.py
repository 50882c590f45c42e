"""Bayesian supervised dimensionality reduction: outputs, priors and prediction [G13].

    z_i ~ N(P'x_i, noise I),    t_i ~ N(V'z_i + b, 1 / eps),    y_i from t_i
    p_fs ~ N(0, 1 / phi_fs),    v_sc ~ N(0, 1 / psi_sc),    b_c ~ N(0, 1 / lambda_c)

All precisions are gamma variables. y is the largest score (classes), the signs of the scores
(labels) or the scores themselves (numbers, with a noise precision eps per output; 1 else).

    here    X   P   phi   Z    V, b   psi   lambda   T   q   c     B = [b; V] (q + 1, c)
    [G13]   X'  Q   Phi   Z'   W, b   Psi   lambda   T   R   K
"""

from typing import Any, NamedTuple

import numpy as np

from gnomon.stats.gamma import Gamma
from gnomon.stats.probit import (
    DEFAULT_NODES,
    class_scores,
    draw_class_scores,
    draw_sign_scores,
    sign_scores,
)


class ClassOutputs(NamedTuple):
    """One class per row, by the multinomial probit."""

    codes: np.ndarray
    n_outputs: int
    n_nodes: int = DEFAULT_NODES

    @property
    def observed(self):
        """None: every score takes part."""
        return None

    def scores(self, M):
        """E[T] around M and the sum of the log normalisers, eq. (10)."""
        T, log_Z = class_scores(M, self.codes, self.n_nodes)
        return T, float(log_Z.sum())

    def draw(self, M, rng):
        """Scores around M given the classes."""
        return draw_class_scores(M, self.codes, rng)

    def coding(self):
        """Columns to start from: indicators whose regression on X is discriminant analysis."""
        indicators = np.eye(self.n_outputs)[self.codes]
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
        return _mask(self.signs != 0)

    def scores(self, M):
        """E[T] around M and the sum of the log normalisers."""
        T, log_Z = sign_scores(M, self.signs)
        return T, float(log_Z.sum())

    def draw(self, M, rng):
        """Scores around M given the signs."""
        return draw_sign_scores(M, self.signs, rng)

    def coding(self):
        """Columns to start from."""
        return self.signs / np.sqrt(len(self.signs))


class NumberOutputs(NamedTuple):
    """Numbers (n, c), zero where not known, and which are (a mask of ones, or None for all)."""

    Y: np.ndarray
    observed: np.ndarray | None = None

    @property
    def n_outputs(self):
        """Number of outputs."""
        return self.Y.shape[1]

    def scores(self, M):
        """The numbers themselves; there is nothing to normalise."""
        return self.Y, 0.0

    def draw(self, M, rng):
        """The numbers themselves."""
        return self.Y

    def coding(self):
        """Columns to start from."""
        return self.Y / np.sqrt(len(self.Y))


Outputs = ClassOutputs | SignOutputs | NumberOutputs


class Priors(NamedTuple):
    """Gamma priors of the precisions; ``kind`` says which entries of P share one."""

    kind: str = "entry"
    projection: Gamma = Gamma(1.0, 1.0)
    weights: Gamma = Gamma(1.0, 1.0)
    bias: Gamma = Gamma(1.0, 1.0)
    noise: Gamma = Gamma(1.0, 1.0)


class Patterns(NamedTuple):
    """The distinct sets of observed outputs (m, c), how many rows have each, and which is whose."""

    masks: np.ndarray
    counts: np.ndarray
    row_pattern: np.ndarray | None


class Problem(NamedTuple):
    """Data and settings that stay while the factors change."""

    ridge: Any
    outputs: Outputs
    priors: Priors
    patterns: Patterns
    n_samples: int


def pose(ridge, outputs: Outputs, priors: Priors) -> Problem:
    """The problem of these inputs (as a ridge of `gnomon.stats.ridge`), outputs and priors."""
    n = ridge.X.shape[0]
    return Problem(ridge, outputs, priors, _patterns(outputs, n), n)


def shared(values, kind):
    """Sums of values (d, q) over the entries that share a precision."""
    if kind == "entry":
        return values
    return values.sum(axis=0) if kind == "column" else values.sum(axis=1)


def spread_out(phi, kind, shape):
    """Precisions as (d, q)."""
    return np.broadcast_to(phi[:, None] if kind == "row" else phi, shape)


def shared_count(kind, n_features, q):
    """How many entries of P share one precision."""
    return {"entry": 1, "column": n_features, "row": q}[kind]


def coded_start(problem: Problem, q, rng):
    """P (d, q) of regularised discriminant analysis (classes) or reduced-rank regression.

    Regresses the coded outputs on X and keeps the leading directions of the fitted values;
    columns beyond their rank are random.
    """
    coding = problem.outputs.coding()
    coding = coding - coding.mean(axis=0)
    ridge = problem.ridge
    R = np.asarray(ridge.X.T @ coding, dtype=float) / ridge.noise
    flat = flat_precision(ridge, 1.0, R.shape[1])
    weights = ridge.solve(flat, ridge.spread(flat, R.shape[1]), R)
    fitted = ridge.X @ weights
    values, vectors = np.linalg.eigh(fitted.T @ fitted)
    kept = np.flatnonzero(values > 1e-8 * values[-1])[::-1][:q]
    P = random_start(problem, q, rng)
    P[:, : len(kept)] = _unit_spread(ridge, weights @ vectors[:, kept])
    return P


def random_start(problem: Problem, q, rng):
    """P (d, q) of random directions, each with projections of unit variance."""
    P = rng.standard_normal((problem.ridge.X.shape[1], q))
    return _unit_spread(problem.ridge, P)


def flat_precision(ridge, value, q):
    """One precision for all entries, in the shape that the ridge takes."""
    return np.full(q if hasattr(ridge, "values") else ridge.n_features, value)


def lift(Z):
    """Z with a column of ones before it."""
    return np.column_stack([np.ones(len(Z)), Z])


def _unit_spread(ridge, P):
    norms = np.linalg.norm(ridge.X @ P, axis=0) / np.sqrt(ridge.X.shape[0])
    return P / np.where(norms > 0, norms, 1.0)


def _mask(known):
    return None if known.all() else known.astype(float)


def _patterns(outputs, n):
    observed = outputs.observed
    if observed is None:
        return Patterns(np.ones((1, outputs.n_outputs)), np.array([n]), None)
    masks, index, counts = np.unique(observed, axis=0, return_inverse=True, return_counts=True)
    return Patterns(masks, counts, index.ravel())
