"""DCA-GM of more rows than are kept in memory: the alternation on a sample, held to all rows.

    J(P) ~ J_s(P) + J(P_0) - J_s(P_0) + <J'(P_0) - J_s'(P_0), P - P_0>
    M(theta) ~ M_s(theta) + M(theta_0) - M_s(theta_0)                     the sums of EM

s is the sample, weighted so that it stands for all rows; theta = (P, mixture). A round reads all
rows once, for J, its gradient and the sums of EM at theta_0, and then takes some steps on the
sample with these differences added: the first EM step is that of all rows, and the first step of
P goes along their gradient. So rounds end where the alternation on all rows would, after fewer
reads. It is the surrogate likelihood of [JLY19], for EM as well.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import Method, Run, iterate, keep_best
from gnomon.linalg.blocks import KEPT_ENTRIES
from gnomon.linalg.data import Matrix, Weighted, larger, placed
from gnomon.linalg.threads import in_order
from gnomon.models.dcagm.alternation import (
    SHRINKAGE,
    Model,
    State,
    ascend,
    em_moments,
    objective,
    prior_of,
    row_gradient,
    step,
    through_scale,
)
from gnomon.models.dcagm.mixture import (
    Moments,
    Whitened,
    add,
    class_densities,
    m_step,
    moments_of,
    moved,
    no_moments,
    whiten,
)
from gnomon.models.dcagm.rows import BLOCK_ROWS, Others, Rows, Sample, arrange
from gnomon.models.dcagm.start import MOST_COLUMNS
from gnomon.stats import strata

# Rows of the sample. From 10,000 of 60,000 rows with 1000 labels nine rounds reach the J of the
# alternation on all rows, from 20,000 two; more make the steps on the sample slower than a read.
SAMPLE_ROWS = 20_000
# Steps on the sample in a round. After five the Gaussians of a class may have drifted from where
# the differences were taken so far that a covariance has no inverse.
ROUND_STEPS = 3
# Rounds after which a fit ends though it has not settled, a read each; and those in which the best
# J must rise by more than tol: as many steps as the patience of the alternation.
MOST_ROUNDS, ROUND_PATIENCE = 8, 2


class Sums(NamedTuple):
    """J, its gradient by P and the sums of EM at some projection and mixture."""

    value: float
    gradient: np.ndarray
    moments: Moments


def suits(sample: Sample, model: Model) -> bool:
    """Whether rows are too many to be kept, and say what they say each on its own."""
    n, d = sample.X.shape
    alone = sample.apart is None and not sample.in_chunks.any()
    dense = not sample.X.is_sparse and d <= MOST_COLUMNS
    return n * d > KEPT_ENTRIES and dense and alone and not model.as_printed


def draw(sample: Sample) -> Sample:
    """Some rows, of each class the same number, weighted to stand for all; a pass over the rows."""
    size = min(SAMPLE_ROWS, KEPT_ENTRIES // sample.X.n_features)
    index, weights = strata.drawn(sample.labels, size, sample.weights)
    part = sample.take(index)
    return part._replace(X=Matrix(part.X.as_array()), weights=weights)


def solve(part: Sample, first: State, sample: Sample, model: Model, loop, *, max_iter, tol) -> Run:
    """Rounds from where the alternation on the sample led; an iteration is a round."""
    S, rows = covariance(sample), arrange(part)
    advance = partial(_round, rows=rows, S=S, sample=sample, model=model)
    method = keep_best(Method(_rescaled(first, S), advance))
    most = min(max_iter, MOST_ROUNDS)
    return loop(method, max_iter=most, tol=tol, patience=ROUND_PATIENCE)


def covariance(sample: Sample) -> np.ndarray:
    """Weighted mean of x x' (d, d), in one pass."""
    data = Weighted(sample.X, sample.weights) if np.ptp(sample.weights) else sample.X
    return np.asarray(data.gram(), dtype=float) / data.n_samples


def _rescaled(state, S):
    """The state with P'SP = I for the covariance of all rows."""
    P = state.P
    values, U = np.linalg.eigh(P.T @ S @ P + SHRINKAGE * P.T @ P)
    T = (U / np.sqrt(values)) @ U.T
    return state._replace(P=P @ T, Z=state.Z @ T, mixture=moved(state.mixture, T))


def _round(state: State, rows: Rows, S, sample: Sample, model: Model):
    """Steps on the sample held to all rows as they are at a state; and J of all rows there."""
    whole = sums_of_all(sample, S, state, model)
    begin = state._replace(gradient=np.zeros((0, 0)), direction=np.zeros((0, 0)))
    held = rows._replace(others=_others(whole, rows, S, begin, model))
    method = Method(begin, partial(step, rows=held, model=model))
    try:
        return iterate(method, max_iter=ROUND_STEPS, tol=-1.0).state, whole.value
    except NumericalError:
        # The sample is too far from all rows: a step of P, and one of EM on all of them.
        mixture = m_step(begin.mixture, whole.moments, prior_of(begin.Z, rows, model))
        return ascend(begin._replace(mixture=mixture), held, model)[0], whole.value


def _others(whole: Sums, rows: Rows, S, state: State, model: Model) -> Others:
    """What all rows have and the sample has not, at a state."""
    P, (moments, _) = state.P, em_moments(state.mixture, state.Z, rows, model)
    here = rows._replace(others=Others(S, 0.0, np.zeros_like(P), no_moments(state.mixture)))
    slope = objective(P, state.Z, state.mixture, here, model)
    gradient = whole.gradient - rows.by_columns(slope.by_Z) - slope.by_P
    constant = whole.value - slope.value - float(np.sum(gradient * P))
    pairs = zip(whole.moments, moments, strict=True)
    return Others(S, constant, gradient, Moments(*(a - b for a, b in pairs)))


def sums_of_all(sample: Sample, S, state: State, model: Model) -> Sums:
    """The sums over all rows, a block at a time in one pass; P'SP = I at a state."""
    P, mixture = state.P, state.mixture
    q, value, gradient = P.shape[1], 0.0, np.zeros(P.shape)
    moments, by_T = no_moments(mixture), np.zeros((q, q))
    blocks = placed(larger(sample.X.dense_blocks(), BLOCK_ROWS))
    of_block = partial(_sums_of_block, sample=sample, P=P, white=whiten(mixture), model=model)
    for found, own_T in in_order(of_block, blocks, sample.X.shape[0] * mixture.means.size):
        value, gradient, by_T = value + found.value, gradient + found.gradient, by_T + own_T
        add(moments, found.moments)
    penalty, by_P, by_K = through_scale(P, by_T, np.ones(q), np.eye(q), model)
    return Sums(value - penalty, gradient + by_P + 2 * S @ P @ by_K, moments)


def _sums_of_block(part, sample: Sample, P, white: Whitened, model: Model):
    """What a block of rows adds to the sums, and to the derivative by the scale of P."""
    here, block = part
    rows, moments = arrange(_block(sample, here, block)), no_moments(white.mixture)
    Z = rows.project(P)
    value, by_Z = _add_terms(white, Z, rows, model, moments)
    return Sums(value, rows.by_columns(by_Z), moments), Z.T @ by_Z


def _add_terms(white: Whitened, Z, rows: Rows, model: Model, moments: Moments):
    """What rows add to J and its derivative by Z; their sums of EM are added in place."""
    value, by_Z, mixture = 0.0, np.empty_like(Z), white.mixture
    log_alpha = np.log(mixture.alpha)
    for block in rows.blocks:
        here = Z[block.rows]
        L, shares = class_densities(white, here)
        term = block.em_term(L, log_alpha, model)
        parts = shares * term.parts[mixture.class_of]
        add(moments, moments_of(mixture, term.counts, parts, here))
        term = block.objective_term(L, log_alpha, model)
        shares *= term.parts[mixture.class_of]
        by_Z[block.rows] = row_gradient(white, shares, here)
        value += term.value
    return value, by_Z


def _block(sample, here, block):
    known = sample.labels[here], sample.chunks[here], sample.weights[here]
    return Sample(Matrix(block), *known, sample.class_of, sample.total_variance)
