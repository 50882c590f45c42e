"""How far the learnt relational model is fitted (see `model`), and whether its links are used.

    1. Two starts: the principal axes, the smoothest first; and the axes of smoothed rows.
    2. A few rounds from each, on the graph and, as a control, on a permutation of its nodes. Links
       that gain no more than permuted ones are left out of the model.
    3. Some rounds more; the start that is likelier then is kept.
    4. The number of rounds and a factor on the shared variances, by cross-validation over the
       nodes: axes that are turned to the rows of a fit look smoother on these than on others.

The log density of held-out rows tells by how much, and when to stop turning.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gnomon.inference.loop import Method, Run, iterate, momentum, settled
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Data, center
from gnomon.linalg.distributed import Distributed
from gnomon.linalg.graph import apply, lanczos, normalized, unit_rule
from gnomon.linalg.mixed import Mixed
from gnomon.models.gaussian.ppca import leading_axes
from gnomon.models.relational import model
from gnomon.models.relational.model import Linked, State

# Beyond this many rows rounds are costly: they are run in single precision, fewer of them, and no
# rows are held out, which would take as long as five more fits.
MANY = 5000
# Rounds from each start before the links are judged: what they gain over permuted ones shows after
# few. Many rows tell after fewer, and with fewer Lanczos steps.
EARLY_ROUNDS, EARLY_ROUNDS_MANY, EARLY_STEPS_MANY = 3, 1, 8
# Nats by which the log likelihoods of two trials may differ and be the same: that of 1,400 rows is
# right to as much.
SAME = 0.01
# Rounds from each start before the likelier one is chosen, about half of those that a fit takes.
LATE_ROUNDS = 15
# Parts of the nodes; as many of them are held out in turn as make up so many rows, after which
# the mean over rows is known well enough.
FOLDS, HELD_OUT = 5, 1000
# Most rounds that are tried, and rounds without gain after which no more are. On cora with 50
# components the curve has six sevenths of its rise after 18; 30 rounds, and 100, map no better
# (.869 and .867 of labels found, .867 with 18) and take 5.4 and 7 s, not 4.
ROUNDS, PATIENCE = 18, 5
# Factors on the shared variances that are tried: 1, 1/2, ..., 1/32.
FACTORS = 0.5 ** np.arange(6)


class Task(NamedTuple):
    """Rows to be fitted, their links, mean, principal axes (d, q + r), and q.

    ``data`` are the same rows, centred, with the spectrum of the links.
    """

    X: Data
    A: Any
    mean: np.ndarray
    data: Linked
    axes: np.ndarray
    q: int
    rng: np.random.Generator


class Trial(NamedTuple):
    """A way to find start axes, the rounds from there, and the run of the first of them."""

    start_axes: Callable
    method: Method
    run: Run


class Verdict(NamedTuple):
    """Trials, the log likelihood of PPCA, the best gains over it, and the gain needed.

    The gains are those on the graph and on a permutation of its nodes.
    """

    trials: list[Trial]
    reference: float
    gain: float
    permuted_gain: float
    needed: float


class Rounds(NamedTuple):
    """How many rounds (None: until they converge), and a factor on the shared variances then."""

    number: int | None = None
    factor: float = 1.0


def smoothest_first(data: Linked, axes, q: int, rng=None) -> np.ndarray:
    """The axes with the q whose coordinates agree most across links, s'S s / s's, put first.

    The gain of a link is free of scale, so the smoothest axes are worth more than the longest.
    """
    s = data.X @ axes.astype(data.X.dtype)
    lengths = np.maximum(np.sum(s**2, axis=0), np.finfo(s.dtype).tiny)
    agreement = np.sum(s * (data.S @ s), axis=0) / lengths
    chosen = np.sort(np.argsort(-agreement)[:q])
    return np.concatenate([axes[:, chosen], np.delete(axes, chosen, axis=1)], axis=1)


def axes_of_smoothed(data: Linked, axes, q: int, rng) -> np.ndarray:
    """The q leading axes of rows smoothed by S^2, then principal axes of the rest."""
    smoothed = Mixed(data.S, Mixed(data.S, data.X))
    return join_axes(leading_axes(smoothed, q, rng), axes, data)


START_AXES = smoothest_first, axes_of_smoothed


def join_axes(smooth, principal, data: Linked) -> np.ndarray:
    """The smooth axes, then as many principal axes of the rest as fill up the number."""
    k, q = principal.shape[1], smooth.shape[1]
    outside = principal - smooth @ (smooth.T @ principal)
    basis, _, _ = np.linalg.svd(outside, full_matrices=False)
    coordinates = np.asarray(data.X @ basis.astype(data.X.dtype), dtype=float)
    _, rotation = np.linalg.eigh(coordinates.T @ coordinates)
    own = basis @ rotation[:, ::-1][:, : k - q]
    return model.orthonormal(np.column_stack([smooth, own]))


def init(U, q: int, data: Linked) -> State:
    """A start near given axes: half of each variance shared, half own, then a long step."""
    without, _ = model.independent(U, q, data)
    # An axis without variance of its own starts with some, or it would stay without.
    half = np.maximum(without.c[:q] / 2, 0.01 * without.sigma2)
    state = State(U, half, np.append(half, without.c[q:]), np.ones(q), without.sigma2)
    return model.step(state, data, max_iter=60)[0]


def accelerated(data: Linked, start: State) -> Method:
    """Rounds on these rows from a start, with momentum."""
    return momentum(Method(start, partial(model.step, data=data)), model.extrapolate)


def explore(task: Task) -> list[Trial]:
    """A few rounds from each start."""
    data, max_iter = task.data, EARLY_ROUNDS
    if data.X.shape[0] > MANY:
        data, max_iter = data._replace(steps=EARLY_STEPS_MANY), EARLY_ROUNDS_MANY
    trials = []
    for start_axes in START_AXES:
        U = start_axes(data, task.axes, task.q, task.rng)
        method = accelerated(data, init(U, task.q, data))
        trials.append(Trial(start_axes, method, iterate(method, max_iter=max_iter, tol=0.0)))
    return trials


def coarse(data: Linked) -> Linked:
    """The same rows in single precision where there are many."""
    if data.X.shape[0] <= MANY:
        return data
    X = data.X.as_float32()
    return data._replace(X=X, S=data.S.astype(X.dtype))


def permuted(data: Linked, order) -> Linked:
    """The rows at other nodes; rows in blocks stay where they are, and the graph moves."""
    if isinstance(data.X, Blocks | Distributed):
        places = np.argsort(order)
        return data._replace(S=data.S[places][:, places])
    return data._replace(X=data.X.rows(order))


def judge(task: Task, reference: float) -> Verdict:
    """Whether links gain more over the log likelihood ``reference`` of PPCA than permuted ones.

    On top of the gain by chance, which is itself a draw, comes the BIC of q strengths.
    """
    n = task.X.shape[0]
    trials = explore(task)
    control = explore(task._replace(data=permuted(task.data, task.rng.permutation(n))))
    gain, by_chance = (_likeliest(each).run.objective[-1] - reference for each in (trials, control))
    return Verdict(trials, reference, gain, by_chance, max(by_chance, 0.0) + task.q * np.log(n))


def _likeliest(trials) -> Trial:
    """The first of the likeliest: two that end at one maximum differ by rounding alone."""
    best = max(trial.run.objective[-1] for trial in trials)
    return next(trial for trial in trials if trial.run.objective[-1] >= best - SAME)


def likeliest_later(trials, n: int, *, max_iter, tol) -> Trial:
    """The trial that is likelier after more rounds, or now where n rows are many."""
    if n > MANY:
        return _likeliest(trials)
    most = min(LATE_ROUNDS, max_iter)
    return _likeliest([trial._replace(run=_continued(trial.run, most, tol)) for trial in trials])


def _continued(run, max_iter, tol) -> Run:
    if settled(run.objective, tol):
        return run._replace(converged=True)
    return iterate(run.rest, max_iter=max_iter, tol=tol, objective=run.objective)


def can_hold_out(n: int, k: int) -> bool:
    """Whether n rows are few enough for cross-validation, and enough for k axes without a fold."""
    return n <= MANY and k < n - n // FOLDS


def rounds_above(needed: float, run: Run) -> int:
    """Rounds until the log likelihood is above this, at least one.

    The axes of smoothed rows alone can be far less likely than PPCA.
    """
    return max(1, int(np.argmax(np.array(run.objective) > needed)))


def follow(method: Method, loop, number: int | None, *, max_iter, tol) -> Run:
    """The user's loop; where a number of rounds was chosen, it has converged after them."""
    most = max_iter if number is None else min(number, max_iter)
    run = loop(method, max_iter=most, tol=tol)
    return run._replace(converged=run.converged or len(run.objective) == number)


def finish(run, data: Linked, loop) -> tuple[State, Run, float]:
    """State, run and log likelihood where ``loop(method)`` ends, going on from a run."""
    if not run.converged:
        # The same memory, on rows that are measured in full.
        method = accelerated(data, run.state)._replace(start=run.rest.start)
        rest = loop(method)
        run = rest._replace(objective=run.objective + rest.objective)
    state, log_likelihood = model.final_variances(run.state, data)
    return state, run, log_likelihood


class HeldOut(NamedTuple):
    """All rows X of a graph, centred as those of a fit, and S; the held-out ones are ``rows``.

    Also their squared lengths, and a rule for their entries on the diagonal of a function of L:
    eigenvalues and weights (steps, m).
    """

    X: Data
    S: Any
    rows: np.ndarray
    norms: np.ndarray
    eigenvalues: np.ndarray
    weights: np.ndarray


class Fold(NamedTuple):
    """The rows that are fitted, a start from them, and the rows that are held out."""

    data: Linked
    start: State
    held_out: HeldOut


def choose(task: Task, start_axes, least: int) -> Rounds:
    """The rounds, at least so many, and the factor with which held-out rows are likeliest."""
    curve = _curve(_folds(task, start_axes), least)[least - 1 :]
    more, factor = np.unravel_index(np.argmax(curve), curve.shape)
    return Rounds(least + int(more), float(FACTORS[factor]))


def _folds(task, start_axes) -> Iterator[Fold]:
    """Every row is held out once, or some are where there are many.

    Folds follow the distances of the rows from their mean, so that they depend neither on the
    order of the nodes nor on the axes.
    """
    n, rng = task.X.shape[0], task.rng
    ranks = np.argsort(np.argsort(task.data.X.row_squared_norms()))
    number = (rng.permutation(n) % FOLDS)[ranks]
    S = normalized(task.A).astype(task.X.dtype)
    for fold in range(min(FOLDS, math.ceil(FOLDS * HELD_OUT / n))):
        kept = np.flatnonzero(number != fold)
        mean, centered = center(task.X.rows(kept))
        data = model.link(centered, task.A[kept][:, kept], rng)
        axes = leading_axes(centered, task.axes.shape[1], rng)
        start = init(start_axes(data, axes, task.q, rng), task.q, data)
        yield Fold(data, start, hold_out(task.X.less_mean(mean), S, np.flatnonzero(number == fold)))


def _curve(folds, least) -> np.ndarray:
    """Held-out log density (rounds, factors) after every round, summed over the folds."""
    paths = [_held_out_path(fold) for fold in folds]
    curve: list[np.ndarray] = []
    while len(curve) < ROUNDS and not settled(
        [each.max() for each in curve[least - 1 :]], 0.0, PATIENCE
    ):
        curve.append(np.sum([next(path) for path in paths], axis=0))
    return np.array(curve)


def _held_out_path(fold) -> Iterator[np.ndarray]:
    """Held-out log density (factors,) after every round on the rows of a fold."""
    method = accelerated(fold.data, fold.start)
    memory = method.start
    while True:
        memory, _ = method.step(memory)
        state, _ = model.final_variances(method.finish(memory), fold.data)
        yield held_out_log_density(state, fold.held_out, FACTORS)


def hold_out(X: Data, S, rows) -> HeldOut:
    """All rows of a graph, some of which are held out."""
    theta, weights = unit_rule(S, rows, model.STEPS)
    norms = X.rows(rows).row_squared_norms()
    return HeldOut(X, S, rows, norms, model.eigenvalues(theta), weights)


def held_out_log_density(state: State, held_out: HeldOut, factors) -> np.ndarray:
    """Log density of each held-out row given all other rows, summed, for a times each factor."""
    (d, k), q, sigma2 = state.U.shape, len(state.a), state.sigma2
    coordinates = held_out.X @ state.U.astype(held_out.X.dtype)
    squares = coordinates[held_out.rows].astype(float) ** 2
    own = state.c[q:] + sigma2
    alone = np.sum(np.log(2 * np.pi * own) + squares[:, q:] / own)
    alone += np.sum(held_out.norms - squares.sum(axis=1)) / sigma2
    alone += len(held_out.rows) * (d - k) * np.log(2 * np.pi * sigma2)
    krylov = lanczos(held_out.S, coordinates[:, :q], model.STEPS)
    krylov = krylov._replace(basis=krylov.basis[:, held_out.rows])
    h = model.smoothness(held_out.eigenvalues[:, :, None], state.beta)
    shrunk = (state._replace(a=factor * state.a) for factor in factors)
    return np.array([_smooth_density(each, h, krylov, held_out) for each in shrunk]) - 0.5 * alone


def _smooth_density(state, h, krylov, held_out):
    """The part of the smooth axes, from Krylov spaces at the held-out rows and h at their rules.

    With the precision P = v(L)^-1 of all coordinates s of an axis, that of one of them given the
    others is P_ii, and its distance from its mean is (P s)_i / P_ii.
    """
    variances = state.a * h + (state.c[: len(state.a)] + state.sigma2)
    precisions = np.einsum("jm,jmq->mq", held_out.weights, 1.0 / variances)
    lam = model.eigenvalues(krylov.theta)
    distances = apply(krylov, 1.0 / model.variances_at(state, lam))
    return 0.5 * np.sum(np.log(precisions / (2 * np.pi)) - distances**2 / precisions)
