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
from gnomon.linalg.data import Data, Matrix, Weighted, placed
from gnomon.models.dcagm.alternation import (
    SHRINKAGE,
    Model,
    State,
    alone_parts,
    ascend,
    em_moments,
    objective,
    prior_of,
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
    row_gradient,
    whiten,
)
from gnomon.models.dcagm.rows import Alone, Others, Rows, Sample, arrange
from gnomon.models.dcagm.start import MOST_COLUMNS, start_at, start_directions
from gnomon.stats import strata

# Rows of the sample. From 10,000 of 60,000 rows with 1000 labels nine rounds reach the J of the
# alternation on all rows, from 20,000 two; more make the steps on the sample slower than a read.
SAMPLE_ROWS = 20_000
# Where labels are so few that any sample has them all, others lead to it: the alternation goes by
# itself on the least, where its many steps cost a quarter, and rounds on the largest save three of
# all rows, with steps on a smaller sample, of which a round has no need.
LARGE_ROWS, STEP_ROWS, SMALL_ROWS = 60_000, 10_000, 5_000
# The alternation on the least sample ends where it raises J by less than this share of its
# sampling error: where it goes on, it follows the sample.
NOTICED = 0.2
# Rows that a thread works on at a time: what Python does between products holds up other threads,
# so fewer and larger ones, of which 1,000,000 rows take .35 s with two threads, not .5.
SHARED_ROWS = 2**14
# Steps on the sample in a round, and those of EM after each, where labels are few: with five of EM,
# as the alternation has, Gaussians of a class drift along what the sample does not tell, and J of
# all rows falls.
ROUND_STEPS, ROUND_EM = 4, 1
# Rounds on the largest sample, and on all rows, a read each: on 1,000,000 x 200 rows with 1000
# labels J ends at -112,275, as with 8 and 5 rounds of larger samples in the same time; on 400,000
# x 60 at -46,854, where these end at -46,862 and steps on all rows at -46,854. And those in which
# the best J must rise by more than tol: as many steps as the patience of the alternation.
SAMPLE_ROUNDS, MOST_ROUNDS, ROUND_PATIENCE = 24, 3, 2
# Rounds on all rows where labels are many, after none on a larger sample.
ALONE_ROUNDS = 6


class Nested(NamedTuple):
    """Samples of rows, each of the one before, and the rise of J that the least can tell."""

    most: Sample
    part: Sample
    first: Sample
    least_rise: float


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


def draw_nested(sample: Sample, model: Model) -> Nested:
    """The samples that a fit is led through; a pass over the rows."""
    if np.count_nonzero(sample.labels >= 0) > SMALL_ROWS // 2:
        part, least_rise = draw(sample, model, SAMPLE_ROWS)
        return Nested(part, part, part, least_rise)
    most = draw(sample, model, LARGE_ROWS)[0]
    part = draw(most, model, STEP_ROWS)[0]
    return Nested(most, part, *draw(part, model, SMALL_ROWS))


def draw(sample: Sample, model: Model, size: int) -> tuple[Sample, float]:
    """Some rows, of each class the same number, weighted to stand for all; a pass over the rows.

    And the rise of J below which steps would follow the sample, not what it stands for.
    """
    size = min(size, KEPT_ENTRIES // sample.X.n_features)
    index, weights = strata.drawn(sample.labels, size, sample.weights)
    taken = sample.take(index)
    part = taken._replace(X=Matrix(taken.X.as_array()), weights=weights)
    return part, NOTICED * sampling_error(part, taken.weights, model)


def sampling_error(part: Sample, own_weights, model: Model) -> float:
    """About what J of another sample of the same size differs by.

    From row to row a log density varies by q / 2, as that of a Gaussian, and log p(c | z) by about
    one; rows that stand for themselves alone, with ``own_weights``, add nothing.
    """
    density = 0.5 * model.n_components * model.unlabelled_weight**2
    of_row = np.where(part.labels >= 0, 1.0, density)
    return float(np.sqrt(np.sum(of_row * part.weights * (part.weights - own_weights))))


def solve(nested: Nested, first: State, sample: Sample, model, loop, *, max_iter, tol) -> Run:
    """Rounds on the largest sample, then on all rows, of which each is an iteration."""
    rows, S = arrange(nested.part), covariance(sample)
    state = first._replace(Z=rows.project(first.P))
    limits = {"tol": tol, "patience": ROUND_PATIENCE}
    most, n_em = ALONE_ROUNDS, None
    if nested.most is nested.part:
        state = _higher(state, rows, S, sample, model)
    else:
        most, n_em = MOST_ROUNDS, ROUND_EM
        led = _rounds(rows, state, covariance(nested.most), nested.most, model, n_em)
        state = iterate(led, max_iter=SAMPLE_ROUNDS, **limits).state
    method = _rounds(rows, state, S, sample, model, n_em)
    return loop(method, max_iter=min(max_iter, most), **limits)


def _higher(state: State, rows: Rows, S, sample: Sample, model: Model) -> State:
    """That state, or the start by all rows, whichever has the higher J.

    Of many labels a sample is parted better than all rows: 20,000 of 400,000 rows lead lower than
    the directions in which the classes of all rows differ (-12,626 against -12,067).
    """
    P = start_directions(sample, model.n_components)
    pair = state, start_at(P, rows, sample.class_of, model)
    return max(pair, key=lambda s: sums_of_all(sample, S, _rescaled(s, S), model).value)


def _rounds(rows: Rows, state: State, S, sample: Sample, model: Model, n_em) -> Method:
    """Rounds of steps on some rows, held to the sample of covariance S that these are of."""
    advance = partial(_round, rows=rows, S=S, sample=sample, model=model, n_em=n_em)
    return keep_best(Method(_rescaled(state, S), advance))


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


def _round(state: State, rows: Rows, S, sample: Sample, model: Model, n_em=None):
    """Steps on the sample held to all rows as they are at a state; and J of all rows there."""
    whole = sums_of_all(sample, S, state, model)
    begin = state._replace(gradient=np.zeros((0, 0)), direction=np.zeros((0, 0)))
    held = rows._replace(others=_others(whole, rows, S, begin, model))
    method = Method(begin, partial(step, rows=held, model=model, n_em=n_em))
    try:
        found = iterate(method, max_iter=ROUND_STEPS, tol=-1.0).state
        whiten(found.mixture)  # What the last step led to has been used by none yet.
        return found, whole.value
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
    """The sums over all rows in one pass, by threads or where the rows are; P'SP = I there."""
    P, mixture = state.P, state.mixture
    q, read = P.shape[1], partial(_sums_of_rows, P=P, white=whiten(mixture), model=model)
    found, by_T = sample.X.reduced(read, sample.labels, sample.weights, join=_joined)
    value, gradient, moments = found
    penalty, by_P, by_K = through_scale(P, by_T, np.ones(q), np.eye(q), model)
    return Sums(value - penalty, gradient + by_P + 2 * S @ P @ by_K, moments)


def _joined(some, others):
    (value, gradient, moments), by_T = some
    (more, by_P, found), own_T = others
    add(moments, found)
    return Sums(value + more, gradient + by_P, moments), by_T + own_T


def _sums_of_rows(X: Data, labels, weights, P, white: Whitened, model: Model):
    """What some rows add to the sums, and to the derivative by the scale of P."""
    nothing = Sums(0.0, np.zeros(P.shape), no_moments(white.mixture))
    total = nothing, np.zeros((P.shape[1], P.shape[1]))
    for here, block in placed(X.large_blocks(SHARED_ROWS)):
        known = labels[here], np.full(len(block), -1), weights[here]
        part = Sample(Matrix(block), *known, white.mixture.class_of, 0.0)
        total = _joined(total, _sums_of_block(block, part, P, white, model))
    return total


def _sums_of_block(X, part: Sample, P, white: Whitened, model: Model):
    rows, moments = arrange(part, SHARED_ROWS), no_moments(white.mixture)
    # In the precision of the rows: their sums lose a millionth, and take half the time.
    Z = (X @ P.astype(X.dtype))[rows.order]
    value, by_Z = _add_terms(white.astype(Z.dtype), Z, rows, model, moments)
    # The short side first, for which BLAS takes two thirds of the time.
    gradient = (rows.restore(by_Z).T @ X).T
    return Sums(value, gradient, moments), Z.T @ by_Z


def _add_terms(white: Whitened, Z, rows: Rows, model: Model, moments: Moments):
    """What rows add to J and its derivative by Z; their sums of EM are added in place."""
    value, by_Z, mixture = 0.0, np.empty_like(Z), white.mixture
    log_alpha = np.log(mixture.alpha)
    for block in rows.blocks:
        here = Z[block.rows]
        if isinstance(block, Alone):
            found, by_Z[block.rows] = _add_alone(white, here, block.weights, model, moments)
            value += found
            continue
        L, shares = class_densities(white, here)
        term = block.em_term(L, log_alpha, model)
        parts = shares * term.parts[mixture.class_of]
        add(moments, moments_of(mixture, term.counts, parts, here))
        term = block.objective_term(L, log_alpha, model)
        shares *= term.parts[mixture.class_of]
        by_Z[block.rows] = row_gradient(white, shares, here)
        value += term.value
    return value, by_Z


def _add_alone(white: Whitened, Z, weights, model: Model, moments: Moments):
    """The same of rows of which nothing is known, for which J and EM ask the same."""
    value, parts, counts = alone_parts(white, Z, weights)
    sums = moments_of(white.mixture, counts, parts, Z)
    add(moments, Moments(*(model.em_weight * of for of in sums)))
    return model.unlabelled_weight * value, model.unlabelled_weight * row_gradient(white, parts, Z)
