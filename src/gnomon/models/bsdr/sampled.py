"""BSDR of more rows than are kept in memory: sweeps on a sample that is held to all rows.

Given the scores T every sum over rows that a sweep needs is one of products of [1, X, T], since
Z = [1, X, T] A with an A that is the same for all rows. So a few rows can stand for all others:
with

    G = [1, X, T]'[1, X, T] of all rows  -  the same of the sample, weighted    = U diag(s) U',

the rows of diag(|s|)^(1/2) U', each counted as the sign of s, add what the sample lacks. A round
reads all rows once, with scores and latent means of each settled given the factors that rows share
(`sweeps.settle`), a block at a time; then sweeps run on the sample and these rows. The first of
them is the sweep of all rows, to the digit; later ones let the scores of the sample move alone. So
rounds end where sweeps over all rows would. It is the surrogate likelihood of [JLY19] for sweeps.

The bound of a round is that of all rows. Where it fell, the round is taken back and a shorter one
from the same factors takes its place, in the end a plain sweep, which cannot lower it.

Numbers are their own scores: one read is all, and the sample has no rows.
"""

from functools import partial
from operator import add, sub
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import Method, iterate
from gnomon.linalg.blocks import KEPT_ENTRIES, Blocks
from gnomon.linalg.data import Data, Matrix, placed
from gnomon.linalg.solve import above_rounding
from gnomon.models.bsdr import curved, sweeps
from gnomon.models.bsdr.factors import Factors, Model, Standing, bound, score_means, with_ones
from gnomon.models.bsdr.inputs import GramRidge, Inputs, SpectralRidge, standard_loadings
from gnomon.models.bsdr.outputs import NumberOutputs, known_of, with_known
from gnomon.stats import strata

# Rows of the sample, as for DCA-GM: with 5,000 of 30,000 rows in ten classes six rounds end at a
# bound that is not below that of the fit in memory.
SAMPLE_ROWS = 20_000
# With more columns the matrix of what the sample lacks is no longer small beside the sample.
MOST_COLUMNS = 1000
# Rows of a block that is settled at once.
BLOCK_ROWS = 4096
# Rounds after which a fit ends though it has not settled, a read each; four reads come before.
MOST_ROUNDS = 24
# Steps on the sample alone, which has maxima of its own: with more of them 30 rows that a line
# separates end so far out that nothing leads back.
FIRST_STEPS = 6
# The steps of a round go on until one gains less than this share of what ends the rounds, or for so
# many: others are for the next round, which knows more.
ROUND_TOL, ROUND_STEPS = 0.3, 8
# Share of what ends sweeps by which rounds end, each of which is several of them: with all of it
# 2,000 rows of two classes ended 8e-6 of the bound below sweeps over all rows, with a fifth above.
LAST = 0.2
# After a round that lost the next has so many times fewer steps, after one that gained more.
SHORTER, LONGER = 8, 2
# The last of some faster steps is not looked at, so that one alone leads nowhere.
FEWEST = 2


class Whole(NamedTuple):
    """All rows in standard units, their model, and how P is turned to act on them."""

    X: Data
    model: Model
    inputs: Inputs


class Sums(NamedTuple):
    """Sums over rows: X'[1, E] (d, 1 + c), [1, E]'[1, E], and of the tangents at m = 0."""

    by_columns: np.ndarray
    by_slopes: np.ndarray
    constant: float


class Sample(NamedTuple):
    """The model of some rows, the rows, what they stand for, and X'X of all rows less theirs."""

    model: Model
    X: Data
    standing: Standing
    gram: np.ndarray


class Round(NamedTuple):
    """Factors to go on from; the best ones before, with the sums and the bound of all rows there.

    Factors are without those that a row has of its own.
    """

    factors: Factors
    best: Factors
    sums: Sums
    value: float
    gain: float
    """Bound at the last factors that were read less that of the best before."""
    steps: int
    """Faster steps of the last round; a plain sweep where there are none."""
    most: int
    """Steps that it was given."""


def suits(whole: Whole) -> bool:
    """Whether rows are too many to be kept, dense, and all outputs of each are known."""
    n, d = whole.X.shape
    dense = not whole.X.is_sparse and d <= min(n, MOST_COLUMNS)
    return n * d > KEPT_ENTRIES and dense and whole.model.observed is None


def compressed(whole: Whole) -> Model:
    """The model of numbers with a few rows in the place of all; a pass over the rows."""
    model = whole.model
    sums = whole.X.reduced(_number_sums, known_of(model.outputs), join=_joined)
    (ones, X, Y), signs = _rows_of(_turned(sums, whole), _gram(model))
    return model._replace(
        ridge=_with_rows(model.ridge, Matrix(X)),
        outputs=NumberOutputs(Y),
        standing=Standing(signs, ones, Y[:0], 0.0),
    )


def draw(whole: Whole) -> Sample:
    """Some rows, of each class the same number, counted so as to stand for all; a pass."""
    model, known = whole.model, known_of(whole.model.outputs)
    size = min(SAMPLE_ROWS, KEPT_ENTRIES // model.ridge.n_features)
    index, counts = strata.drawn(_kinds(known), size)
    # In double precision, or sweeps would make the last digits of all sums those of single ones.
    rows = whole.X.rows(index).as_array().astype(float, copy=False)
    spectral = whole.inputs.route == "spectral"
    X = Matrix(rows @ whole.inputs.table if spectral else rows)
    no_slopes = np.zeros((0, model.outputs.n_outputs))
    standing = Standing(counts[:, None], np.ones((len(rows), 1)), no_slopes, 0.0)
    outputs = with_known(model.outputs, known[index])
    part = model._replace(ridge=_with_rows(model.ridge, X), outputs=outputs, standing=standing)
    return Sample(part, X, standing, _gram(model) - X.weighted(counts).gram())


def alone(sample: Sample) -> Model:
    """The model of a sample that lacks nothing of all rows but products of X."""
    lack = _no_sums(len(sample.gram), sample.model.outputs.n_outputs)
    lack.by_columns[:, :1] -= sample.X.T @ sample.standing.counts
    return _with_lack(sample, lack)


def rounds(first: Factors, sample: Sample, whole: Whole, *, steps, tol) -> Method:
    """The method from factors of the sample on; a step of it is a round."""
    steps = min(steps, ROUND_STEPS)
    advance = partial(_round, sample=sample, whole=whole, steps=steps, tol=tol)
    shared, nothing = without_rows(first), _no_sums(len(first.P), first.B.shape[1])
    start = Round(shared, shared, nothing, -np.inf, np.inf, steps, steps)
    return Method(start, advance, lambda state: state.best, lambda state: abs(state.gain) <= tol)


def faster(model: Model, start: Factors) -> Method:
    """Sweeps from a start on that know how the scores curve, where there are some."""
    if curved.suits(model, start.P.shape[1]):
        return curved.method(model, start)
    return sweeps.accelerated(model, start)


def without_rows(factors: Factors) -> Factors:
    """The factors that all rows share, with those of a row's own for no row."""
    rows = {name: getattr(factors, name)[:0] for name in ("projected", "Z", "T")}
    return factors._replace(**rows)


def _round(state: Round, sample: Sample, whole: Whole, steps, tol):
    """All rows read at the factors at hand, then sweeps on the sample held to them."""
    factors = sweeps.update_spreads(state.factors, sample.model)
    sums = sums_of_all(factors, whole)
    model, begin = held(factors, sums, sample)
    value = bound(begin, model)
    gain = value - state.value
    if gain >= 0:
        most = min(steps, max(FEWEST, LONGER * state.most))
    else:
        factors, sums, value = state.best, state.sums, state.value
        most = state.steps // SHORTER
        model, begin = held(factors, sums, sample)
    after, steps = _swept(begin, model, most, ROUND_TOL * tol)
    return Round(without_rows(after), without_rows(factors), sums, value, gain, steps, most), value


def _swept(begin, model, steps, tol):
    """Faster steps and their number; or a plain sweep, that of all rows at these factors."""
    if steps >= FEWEST:
        try:
            run = iterate(faster(model, begin), max_iter=steps, tol=tol)
            return run.state, len(run.objective)
        except NumericalError:
            pass  # The sample is too far from all rows.
    return sweeps.step(begin, model)[0], 0


def held(factors: Factors, sums: Sums, sample: Sample) -> tuple[Model, Factors]:
    """The model of the sample and of what it lacks at some factors, and all factors there."""
    own = _sums_at(sample.X, sample.X @ factors.P, factors, sample.model)
    model = _with_lack(sample, Sums(*map(sub, sums, own)))
    return model, _settled(model.ridge.X @ factors.P, factors, model)


def _with_lack(sample: Sample, lack: Sums) -> Model:
    """The model of a sample and of rows that have what it lacks."""
    part, standing = sample.model, sample.standing
    (ones, X, slopes), signs = _rows_of(lack, sample.gram)
    return part._replace(
        ridge=_with_rows(part.ridge, Blocks([sample.X, Matrix(X)])),
        standing=Standing(
            np.concatenate([standing.counts, signs]),
            np.concatenate([standing.ones, ones]),
            slopes,
            lack.constant,
        ),
    )


def sums_of_all(factors: Factors, whole: Whole) -> Sums:
    """The sums over all rows at some factors, a block at a time in one pass."""
    few = factors._replace(P_covariances=factors.P_covariances._replace(factor=np.zeros(0)))
    ridge = GramRidge(None, whole.model.ridge.noise, np.zeros((0, 0)))
    outputs = with_known(whole.model.outputs, known_of(whole.model.outputs)[:0])
    model = whole.model._replace(ridge=ridge, outputs=outputs)
    read = partial(
        _score_sums, P=standard_loadings(whole.inputs, factors.P), factors=few, model=model
    )
    return _turned(whole.X.reduced(read, known_of(whole.model.outputs), join=_joined), whole)


def _score_sums(X: Data, known, P, factors, model):
    """Sums over some rows, whose scores are settled; run where the rows are."""
    total = _no_sums(X.shape[1], model.outputs.n_outputs)
    for rows, block in placed(X.large_blocks(BLOCK_ROWS)):
        own = model._replace(outputs=with_known(model.outputs, known[rows]))
        # Sums of single precision would depend on how rows are parted, as X'X (`double_gram`).
        block = block.astype(float, copy=False)
        total = _joined(total, _sums_at(block, block @ P, factors, own))
    return total


def _number_sums(X: Data, Y):
    """Sums over some rows whose scores are known."""
    total = _no_sums(X.shape[1], Y.shape[1])
    for rows, block in placed(X.dense_blocks()):
        block = block.astype(float, copy=False)
        total = _joined(total, _products(block, with_ones(Y[rows]), 1.0, 0.0))
    return total


def _sums_at(X, projected, factors, model) -> Sums:
    """Sums over rows X at some factors."""
    here = _settled(projected, factors, model)
    M, counts = score_means(here, model), 1.0
    if model.standing is not None:
        counts = model.standing.counts
    constant = here.T_normaliser + 0.5 * float(np.sum(counts * M**2))
    return _products(X, with_ones(here.T - M), counts, constant)


def _products(X, E, counts, constant) -> Sums:
    weighed = counts * E
    return Sums(np.asarray(X.T @ weighed, dtype=float), E.T @ weighed, constant)


def _settled(projected, factors, model):
    projected = np.asarray(projected, dtype=float)
    return sweeps.settle(factors._replace(projected=projected, Z=projected), model)


def _no_sums(d, c) -> Sums:
    return Sums(np.zeros((d, 1 + c)), np.zeros((1 + c, 1 + c)), 0.0)


def _joined(a: Sums, b: Sums) -> Sums:
    return Sums(*map(add, a, b))


def _turned(sums: Sums, whole: Whole) -> Sums:
    """Sums of rows in standard units for the coordinates of the ridge."""
    if whole.inputs.route != "spectral":
        return sums
    return sums._replace(by_columns=whole.inputs.table.T @ sums.by_columns)


def _rows_of(sums: Sums, gram):
    """Rows, as their parts (1, X, E), that have these sums, each counted as 1 or -1."""
    first, rest = sums.by_columns[:, :1], sums.by_columns[:, 1:]
    top, slopes = sums.by_slopes[:1], sums.by_slopes[1:]
    G = np.block(
        [
            [top[:, :1], first.T, top[:, 1:]],
            [first, gram, rest],
            [slopes[:, :1], rest.T, slopes[:, 1:]],
        ]
    )
    values, U = eigh(G, check_finite=False)
    kept = above_rounding(np.abs(values), float)
    rows = (U[:, kept] * np.sqrt(np.abs(values[kept]))).T
    return np.split(rows, [1, 1 + len(gram)], axis=1), np.sign(values[kept])[:, None]


def _gram(model):
    return model.ridge.gram_product(np.eye(model.ridge.X.shape[1]))


def _with_rows(ridge, X):
    """The same ridge for the sums of all rows, with other rows."""
    if isinstance(ridge, SpectralRidge):
        return SpectralRidge(X, ridge.noise, ridge.table, ridge.values)
    return GramRidge(X, ridge.noise, ridge.table)


def _kinds(known):
    """Kinds of rows that are sampled alike: classes, or the values of the one label."""
    if known.ndim == 1 or known.shape[1] == 1:
        return known.ravel()
    return np.zeros(len(known))
