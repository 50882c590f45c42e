"""The fit of the relational model behind PRPCA, `relation="learnt"`."""

from functools import partial

import numpy as np
from scipy import sparse

from gnomon.estimators._base import has_gaps
from gnomon.estimators._linked import Fitted, axes_of, spectrum_of, tolerance, without_gaps
from gnomon.estimators._validation import check_spread
from gnomon.inference.acceleration import at_rest, momentum
from gnomon.inference.fixed_point import Run, iterate, settled
from gnomon.linalg import graph, lanczos
from gnomon.linalg.data import as_data
from gnomon.linalg.stacked import Blocks, center
from gnomon.models import relational, relational_gaps
from gnomon.models.linear_gaussian import View

# Rows beyond which rounds are run in single precision, and fewer of them.
MANY = 5000
# Rounds after the first from each start, on the graph and on a permutation, before the links are
# judged; many rows tell after fewer, and with fewer Lanczos steps.
EARLY_ROUNDS, EARLY_ROUNDS_MANY, EARLY_STEPS_MANY = 3, 1, 8
# Rounds from each start before one is chosen, where rows are not many.
LATE_ROUNDS = 30
# Nats per entry of X that a round must gain, and the same where it is costly.
TOL, TOL_COSTLY = 1e-7, 1e-5
# Fewer rows per axis than ENOUGH cannot settle all parameters of the axes: further rounds
# turn them to what is smooth by chance, and lower the likelihood of rows held out. The
# tolerance is then TOL_SCARCE over the cube of rows per axis.
ENOUGH, TOL_SCARCE = 20, 6e-2


def learnt(model, X, A, q, rng) -> Fitted:
    """The relational model, or PPCA where a permuted graph explains the rows as well."""
    n, k = X.shape[0], q + min(model.own_components, max(0, min(X.shape) // 2 - q))
    X, A = _in_near_order(X, A)
    filled = without_gaps(model, X, k)
    mean, centered = center(as_data(filled))
    check_spread(centered.squared_norm)
    S = graph.normalized(A)
    data = relational.link(centered, S, lanczos.density(S, graph.component_basis(A), rng))
    axes = spectrum_of(centered, k, rng).vectors
    without, reference = relational.independent(axes, q, data)
    coarse = _coarse(data)
    runs = _explore(coarse, axes, q, rng)
    blank = _explore(_permuted(coarse, rng.permutation(n)), axes, q, rng)
    gains = _best(runs).objective[-1] - reference, _best(blank).objective[-1] - reference
    # BIC of q strengths on top: the permuted gain is itself a draw.
    least = max(gains[1], 0.0) + q * np.log(n)
    if gains[0] <= least:
        return _rejected(mean, without, q, Run(without, [reference], True), gains)
    tol = _tol(model, X, k) * n * X.shape[1]
    runs = _settle(runs, coarse, min(LATE_ROUNDS, model.max_iter), tol)
    # Scarce rows do not tell which axes are better for others; smoothed rows are nearer to these.
    if n < ENOUGH * k and runs[1].objective[-1] > reference + least:
        runs = runs[1:]
    loop = partial(model._iterate, max_iter=model.max_iter, tol=tol)
    if has_gaps(X):
        start = relational_gaps.Gapped(_best(runs).state.plain, np.asarray(filled, float) - mean)
        state, run, log_likelihood = _bridge(loop, start, X.astype(float) - mean, data)
    else:
        state, run, log_likelihood = _finish(loop, _best(runs), coarse)
    return _accepted(mean, state, run, data, (log_likelihood - reference, gains[1]))


def _tol(model, X, k) -> float:
    """Nats per entry of X that a round must gain."""
    n = X.shape[0]
    if n < ENOUGH * k:
        return tolerance(model, TOL_SCARCE * (k / n) ** 3)
    return tolerance(model, TOL_COSTLY if n > MANY or has_gaps(X) else TOL)


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
    X = data.X.single()
    return data._replace(X=X, S=data.S.astype(X.dtype))


def _explore(data, axes, q, rng) -> list[Run]:
    """Some rounds from the smoothest principal axes, and some from axes of smoothed rows."""
    rounds = EARLY_ROUNDS
    if data.X.shape[0] > MANY:
        data, rounds = data._replace(steps=EARLY_STEPS_MANY), EARLY_ROUNDS_MANY
    smooth = axes_of(relational.smoothed(data), q, rng)
    starts = (
        relational.smoothest_first(axes, q, data),
        relational.join_axes(smooth, axes, data),
    )
    step = _accelerated(data)
    return [
        iterate(step, at_rest(relational.init(U, q, data)), max_iter=rounds, tol=0.0)
        for U in starts
    ]


def _settle(runs, data, max_iter, tol) -> list[Run]:
    """The runs, gone on with until they have settled; as they are where there are many rows."""
    if data.X.shape[0] > MANY:
        return runs
    step = _accelerated(data)
    return [
        run._replace(converged=True)
        if settled(run.objective, tol)
        else iterate(step, run.state, max_iter=max_iter, tol=tol, objective=run.objective)
        for run in runs
    ]


def _finish(loop, run, data):
    """State, run and log likelihood at the end of the user's loop, on complete rows."""
    if not run.converged:
        rest = loop(_accelerated(data), run.state)
        run = rest._replace(objective=run.objective + rest.objective)
    state, log_likelihood = relational.settle(run.state.plain, data)
    return state, run, log_likelihood


def _bridge(loop, start, holes, data):
    """The same on rows with gaps, by EM."""
    run = loop(partial(relational_gaps.step, holes=holes, data=data), start)
    last, _, _ = relational_gaps.complete(run.state, holes, data)
    state, log_likelihood = relational.settle(run.state.state, last)
    return state, run, log_likelihood


def _accelerated(data):
    return momentum(partial(relational.step, data=data), relational.leap)


def _best(runs) -> Run:
    return max(runs, key=lambda run: run.objective[-1])


def _rejected(mean, state, q, run, gains) -> Fitted:
    view = View(state.U[:, :q] * np.sqrt(state.c[:q]), state.sigma2)
    return Fitted(mean, view, run, False, state, *map(float, gains))


def _accepted(mean, state, run, data, gains) -> Fitted:
    scales = np.sqrt(relational.shared_variance(state, data.spectrum))
    view = View(state.U[:, : len(scales)] * scales, state.sigma2)
    return Fitted(mean, view, run, True, state, *map(float, gains))
