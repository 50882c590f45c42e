"""The fit of the relational model behind PRPCA, `relation="learnt"`."""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.estimators._linked import Fitted, spectrum_of, tolerance, without_gaps
from gnomon.estimators._linked_plan import FOLDS, STARTS, accelerated, linked, plan
from gnomon.inference.loop import Method, Run, iterate, settled
from gnomon.linalg import graph
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import as_data, center, check_spread, has_gaps
from gnomon.models import relational, relational_gaps
from gnomon.stats.gaussian import View

# Rows beyond which rounds are run in single precision, fewer of them, and without a plan.
MANY = 5000
# Rounds after the first from each start, on the graph and on a permutation, before the links are
# judged; many rows tell after fewer, and with fewer Lanczos steps.
EARLY_ROUNDS, EARLY_ROUNDS_MANY, EARLY_STEPS_MANY = 3, 1, 8
# Rounds from each start before the likelier one is chosen, where rows are not many.
LATE_ROUNDS = 15
# Nats per entry of X that a round must gain, and the same where it is costly.
TOL, TOL_COSTLY = 1e-7, 1e-5


class Course(NamedTuple):
    """A run to go on with, the rounds it is to take (None: until it settles), a factor on a."""

    run: Run
    rounds: int | None = None
    factor: float = 1.0


def learnt(model, X, A, q, rng) -> Fitted:
    """The relational model, or PPCA where a permuted graph explains the rows as well."""
    n, k = X.shape[0], q + min(model.own_components, max(0, min(X.shape) // 2 - q))
    X, A = _in_near_order(X, A)
    filled = without_gaps(model, X, k)
    mean, centered = center(as_data(filled))
    check_spread(centered.squared_norm)
    data = linked(centered, A, rng)
    axes = spectrum_of(centered, k, rng).vectors
    without, reference = relational.independent(axes, q, data)
    coarse = _coarse(data)
    starts, runs = _explore(coarse, axes, q, rng)
    _, blank = _explore(_permuted(coarse, rng.permutation(n)), axes, q, rng)
    gains = _best(runs).objective[-1] - reference, _best(blank).objective[-1] - reference
    # BIC of q strengths on top: the permuted gain is itself a draw.
    least = max(gains[1], 0.0) + q * np.log(n)
    if gains[0] <= least:
        return _rejected(mean, without, q, Run(without, [reference], True), gains)
    tol = tolerance(model, TOL_COSTLY if n > MANY or has_gaps(X) else TOL) * n * X.shape[1]
    runs = _settle(runs, coarse, min(LATE_ROUNDS, model.max_iter), tol)
    course = Course(_best(runs))
    if model.tol is None and n <= MANY and k < n - n // FOLDS:
        likelier = int(np.argmax([run.objective[-1] for run in runs]))
        # The axes of smoothed rows alone can be far less likely than PPCA.
        rounds = int(np.argmax(np.array(runs[likelier].objective) > reference + least))
        sizes = q, max(1, rounds)
        best = plan(as_data(filled), A, axes, STARTS[likelier], sizes, rng)
        course = Course(
            Run(starts[likelier].start.plain, [], False, starts[likelier]), best.rounds, best.factor
        )
    loop = partial(_follow, model, course.rounds, tol)
    if has_gaps(X):
        start = relational_gaps.Gapped(course.run.state, np.asarray(filled, float) - mean)
        state, run, log_likelihood = _bridge(loop, start, X.astype(float) - mean, data)
    else:
        state, run, log_likelihood = _finish(loop, course.run, coarse)
    state = state._replace(a=course.factor * state.a)
    return _accepted(mean, state, run, data, (log_likelihood - reference, gains[1]))


def _follow(model, rounds, tol, method) -> Run:
    """The user's loop; rounds that were planned and taken are all there were to take."""
    most = model.max_iter if rounds is None else min(rounds, model.max_iter)
    run = model._iterate(method, max_iter=most, tol=tol)
    return run._replace(converged=run.converged or len(run.objective) == rounds)


def _in_near_order(X, A):
    """Many rows such that linked ones are close; the model does not depend on their order."""
    if X.shape[0] <= MANY or not sparse.issparse(X):
        return X, A
    order = graph.near_order(A)
    return X[order], A[order][:, order]


def _permuted(data, order):
    """The rows at other nodes; rows in blocks stay where they are, and the graph moves."""
    if isinstance(data.X, Blocks):
        places = np.argsort(order)
        return data._replace(S=data.S[places][:, places])
    return data._replace(X=data.X.rows(order))


def _coarse(data):
    """The same rows in single precision where there are many."""
    if data.X.shape[0] <= MANY:
        return data
    X = data.X.as_float32()
    return data._replace(X=X, S=data.S.astype(X.dtype))


def _explore(data, axes, q, rng) -> tuple[list, list[Run]]:
    """Two starts, and some rounds from each."""
    rounds = EARLY_ROUNDS
    if data.X.shape[0] > MANY:
        data, rounds = data._replace(steps=EARLY_STEPS_MANY), EARLY_ROUNDS_MANY
    starts = [relational.init(start(data, axes, q, rng), q, data) for start in STARTS]
    methods = [accelerated(data, start) for start in starts]
    return methods, [iterate(method, max_iter=rounds, tol=0.0) for method in methods]


def _settle(runs, data, max_iter, tol) -> list[Run]:
    """The runs, gone on with until they have settled; as they are where there are many rows."""
    if data.X.shape[0] > MANY:
        return runs
    return [
        run._replace(converged=True)
        if settled(run.objective, tol)
        else iterate(run.rest, max_iter=max_iter, tol=tol, objective=run.objective)
        for run in runs
    ]


def _finish(loop, run, data):
    """State, run and log likelihood at the end of the user's loop, on complete rows."""
    if not run.converged:
        # The same memory, on rows that are measured in full.
        method = accelerated(data, run.state)._replace(start=run.rest.start)
        rest = loop(method)
        run = rest._replace(objective=run.objective + rest.objective)
    state, log_likelihood = relational.settle(run.state, data)
    return state, run, log_likelihood


def _bridge(loop, start, holes, data):
    """The same on rows with gaps, by EM."""
    run = loop(Method(start, partial(relational_gaps.step, holes=holes, data=data)))
    last, _, _ = relational_gaps.complete(run.state, holes, data)
    state, log_likelihood = relational.settle(run.state.state, last)
    return state, run, log_likelihood


def _best(runs) -> Run:
    return max(runs, key=lambda run: run.objective[-1])


def _rejected(mean, state, q, run, gains) -> Fitted:
    view = View(state.U[:, :q] * np.sqrt(state.c[:q]), state.sigma2)
    return Fitted(mean, view, run, False, state, *map(float, gains))


def _accepted(mean, state, run, data, gains) -> Fitted:
    scales = np.sqrt(relational.shared_variance(state, data.spectrum))
    view = View(state.U[:, : len(scales)] * scales, state.sigma2)
    return Fitted(mean, view, run, True, state, *map(float, gains))
