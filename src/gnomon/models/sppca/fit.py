"""The fit of SPPCA by maximum likelihood: one maximum, by the route that suits the shape of X.

    moments     statistics from X'X, one pass; then `em.maximise`           moderate d
    dual        statistics from X X', in the span of the rows               few rows
    subspace    products with a growing basis, see `fit_by_products`        large X
    gaps        EM on the observed entries, see `gaps`                      X with NaN
    em          Algorithms 1 and 2 of [YYTKW06] from their own start, for study

With all rows labelled this is SPPCA, with some S2PPCA, with none PPCA. Classes may have a probit
likelihood in the place of Gaussian codes, see `probit`, by all routes but the last.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gnomon.inference.loop import Method, Run
from gnomon.inference.subspace import EXTRA
from gnomon.linalg import eigen
from gnomon.linalg.data import (
    Data,
    Matrix,
    Weighted,
    as_data,
    center,
    check_spread,
    weighted,
)
from gnomon.linalg.moments import Summed
from gnomon.linalg.solve import Cholesky, threads_for
from gnomon.linalg.tall import mixed
from gnomon.models.gaussian import em as gaussian_em
from gnomon.models.sppca import fit_by_products, gaps, parts, probit
from gnomon.models.sppca.em import canonical, maximise
from gnomon.models.sppca.statistics import (
    State,
    Statistics,
    at_floor,
    counted_outputs,
    from_dual,
    from_moments,
    input_moments,
    noise_rule,
    tolerance,
)
from gnomon.stats.gaussian import View


class Problem(NamedTuple):
    """Rows X, their outputs Y (n, c) with the mask of those observed, weights of the rows.

    X is an array with NaN for gaps, a sparse array or `Data`. ``labels`` are the numbers of the
    classes where y holds classes, ``chunks`` those of groups of rows that share a class, -1 for
    rows in none; the Gaussian likelihood needs neither. The probit likelihood takes the classes
    by their numbers, and where there are none the signs of Y.
    """

    X: Any
    Y: np.ndarray
    observed: np.ndarray
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    chunks: np.ndarray | None = None


class Settings(NamedTuple):
    """The number of components, the solver, what is learnt, the scale, when to stop.

    ``noise`` is "learn", "per_output", a ratio, or a pair of levels; ``target_mean`` "labelled"
    keeps the mean of y; ``prior`` is the precision of the loadings, in units of the variances;
    ``likelihood`` is "gaussian" or "probit".
    """

    n_components: int = 2
    solver: str = "auto"
    noise: str | float | tuple[float, float] = "learn"
    target_mean: str = "likelihood"
    prior: float = 0.0
    scale: str = "auto"
    max_iter: int = 500
    tol: float = 1e-7
    rng: np.random.Generator | None = None
    likelihood: str = "gaussian"


class Prediction(NamedTuple):
    """y | x ~ N(offset + (x - mean)' coef, covariance): coef (d, c), covariance (c, c).

    ``finds_classes`` is False where rows left out are not found better than by class shares, and
    ``left_out_loss`` the mean log loss of their classes; None where no row was left out.
    """

    coef: np.ndarray
    offset: np.ndarray
    covariance: np.ndarray
    finds_classes: bool = True
    left_out_loss: float | None = None


class SppcaFit(NamedTuple):
    """T = (x - mean)' projection, z = T * latent_scale given x; y given x; the generative part.

    ``whitener`` (c, c) makes the outputs of the completed model of y; the identity otherwise.
    ``at_floor`` says whether the noise of x, and of any output, is held by its floor. ``wide``
    (d, 20) is the projection on a map with more components, where it has one.
    """

    mean: np.ndarray
    state: State
    projection: np.ndarray
    latent_scale: np.ndarray
    latent_covariance: np.ndarray
    outputs: Prediction
    whitener: np.ndarray
    input_share: np.ndarray
    target_share: np.ndarray
    run: Run | None = None
    n_passes: int = 0
    log_likelihood: float | None = None
    at_floor: tuple[bool, bool] = (False, False)
    wide: np.ndarray | None = None


class _Maximum(NamedTuple):
    """A maximum in coordinates of a basis (d, m), or in those of X (None), and what it cost.

    The objective of a run in single precision is not exact; ``log_likelihood`` is.
    """

    run: Run
    basis: np.ndarray | None
    at_floor: tuple[bool, bool]
    n_passes: int
    log_likelihood: float


def fit(problem: Problem, settings: Settings, loop) -> SppcaFit:
    """The maximum of the likelihood of all that is observed."""
    # Kept as `Data`: what tells of gaps is the mean, a pass over the rows.
    rows = as_data(problem.X)
    with threads_for(rows):
        mean, found = _solved(rows, problem, settings, loop)
        return _fitted(mean, found, settings)


def fit_moments(seen: parts.Seen, code: parts.Code, settings: Settings, loop) -> SppcaFit:
    """The same of rows that are known by their moments."""
    mean, X = center(Summed(seen.every))
    stats, axes = input_moments(X)
    stats = stats._replace(outputs=parts.outputs(seen, code, axes))
    return _fitted(mean, _by_statistics(stats, axes, settings, loop), settings)


def _fitted(mean, found, settings):
    """A maximum as the result of a fit."""
    run, basis, floored, n_passes, log_likelihood = found
    fitted = from_likelihood(mean, canonical(run.state, basis), settings.scale == "energy")
    return fitted._replace(
        run=run, n_passes=n_passes, log_likelihood=log_likelihood, at_floor=floored
    )


def _solved(rows, problem, settings, loop):
    if rows.has_gaps:
        return _with_gaps(problem, settings, loop)
    mean, X = center(weighted(rows, problem.weights))
    solve = _by_probit if _is_probit(problem, settings) else _by_route
    return mean, solve(X, problem, settings, loop)


def _is_probit(problem, settings):
    """Whether there are scores; without labels there is nothing but PPCA."""
    return settings.likelihood == "probit" and problem.observed.any()


def _by_route(X, problem, settings, loop):
    solve = {"em": _by_paper, "subspace": _by_products, "dual": _by_dual}
    return solve.get(_route(X, settings), _by_moments)(X, problem, settings, loop)


def _route(X, settings):
    """The cheapest route; a basis that would soon fill the space is formed at once."""
    q, solver = settings.n_components, settings.solver
    solver = eigen.route(X, q) if solver == "auto" else solver
    if solver == "subspace" and 4 * (q + EXTRA) >= min(X.shape):
        return "dual" if X.shape[0] < X.shape[1] else "moments"
    return solver


def _by_moments(X, problem, settings, loop, statistics_of=from_moments):
    stats, basis = statistics_of(X, problem.Y, problem.observed, problem.weights)
    return _by_statistics(stats, basis, settings, loop)


def _by_statistics(stats, basis, settings, loop):
    noise, tol = noise_rule(stats, settings), tolerance(stats, settings.tol)
    q, max_iter = settings.n_components, settings.max_iter
    run = maximise(stats, q, noise, max_iter=max_iter, tol=tol, loop=loop)
    return _Maximum(run, basis, at_floor(run.state, noise), 1, run.objective[-1])


def _by_dual(X, problem, settings, loop):
    return _by_moments(X, problem, settings, loop, from_dual)._replace(n_passes=2)


def _by_products(X, problem, settings, loop):
    energy = check_spread(X.squared_norm, X.dtype)
    return _from_subspace(*fit_by_products.maximise(X, energy, problem, settings, loop))


def _from_subspace(found, noise):
    run = Run(found.small.state, found.objective, found.converged)
    basis, floored = np.asarray(found.basis, dtype=float), at_floor(run.state, noise)
    return _Maximum(run, basis, floored, 2 * len(run.objective) + 1, found.small.objective)


# Classes by a probit likelihood: labelled rows stay rows, since every one has scores of its own.


def _by_probit(X, problem, settings, loop):
    mask, weights, targets = probit.read_targets(problem)
    (n, d), c, route = X.shape, problem.Y.shape[1], _route(X, settings)
    counted = counted_outputs(c, weights.sum())
    # Coordinates of many labelled rows on all axes would be as large as a dense X.
    wide = 4 * (settings.n_components + EXTRA) < min(n, d)
    if route == "subspace" or (wide and len(weights) > 2 * (d + c)):
        energy = check_spread(X.squared_norm, X.dtype)
        stats = Statistics(X.n_samples, d, energy, np.zeros(0), counted)
        rule = probit.settle(stats, settings)
        small = partial(probit.small, stats=stats, weights=weights, targets=targets, rule=rule)
        found = fit_by_products.grow(X, np.flatnonzero(mask), small, settings, loop)
        return _from_subspace(found, rule.noise)
    statistics_of = from_dual if route == "dual" else from_moments
    stats, basis = statistics_of(X, problem.Y, np.zeros_like(problem.observed))
    T = np.asarray(X.rows(mask) @ basis, dtype=float) / np.sqrt(weights)[:, None]
    rows, stats = probit.Labelled(T, weights, targets), stats._replace(outputs=counted)
    rule = probit.settle(stats, settings)
    run = probit.maximise(stats, rows, rule, max_iter=settings.max_iter, loop=loop)
    return _Maximum(run, basis, at_floor(run.state, rule.noise), 2, run.objective[-1])


def _with_gaps(problem, settings, loop):
    maximise = gaps.maximise_probit if _is_probit(problem, settings) else gaps.maximise
    run, noise = maximise(problem, settings, loop)
    mean, state = run.state
    run, n_passes = run._replace(state=state), 2 * len(run.objective)
    return mean, _Maximum(run, None, at_floor(state, noise), n_passes, run.objective[-1])


# Algorithms 1 and 2 of [YYTKW06] as printed but for eq. (12), see E-YYTKW06-1: on the rows, with
# the mean of the labelled y; rows that lack an output count as unlabelled. Its experiments start
# both noise variances here.
START_NOISE = 1e-5


def _by_paper(X, problem, settings, loop):
    if settings.noise != "learn" or settings.prior:
        raise ValueError(
            f"solver == 'em', noise == {settings.noise!r} and prior == {settings.prior!r}; the EM "
            "of the paper accepts noise='learn' and prior=0"
        )
    check_spread(X.squared_norm, X.dtype)
    blocks, mean_y = _blocks(X, problem)
    method = Method(
        _start_views(blocks, settings.n_components, settings.rng),
        partial(gaussian_em.em_step, blocks=blocks),
        partial(_state, mean_y=mean_y),
    )
    tol = settings.tol * X.n_samples * X.n_features
    run = loop(method, max_iter=settings.max_iter, tol=tol)
    return _Maximum(run, None, (False, False), 2 * len(run.objective), run.objective[-1])


def _blocks(X: Data, problem):
    """Labelled and unlabelled rows of centred X, and the mean of y over the labelled ones."""
    Y, weights = problem.Y, problem.weights
    labelled = problem.observed.all(axis=1) & bool(Y.shape[1])
    if not labelled.any():
        return [(X, None)], np.zeros(Y.shape[1])
    own = np.ones(len(Y)) if weights is None else weights
    mean = np.average(Y[labelled], axis=0, weights=own[labelled])
    outputs = Weighted(Matrix(Y[labelled] - mean), own[labelled])
    blocks: list = [(X.rows(labelled), outputs)]
    return blocks + ([] if labelled.all() else [(X.rows(~labelled), None)]), mean


def _start_views(blocks, q, rng):
    """The start of section 6.2 of [YYTKW06]: standard normal loadings, noise variances 1e-5."""
    seen = [
        next((part for part in parts if part is not None), None)
        for parts in zip(*blocks, strict=True)
    ]
    sizes = [part.n_features for part in seen if part is not None]
    return tuple(View(rng.standard_normal((size, q)), START_NOISE) for size in sizes)


def _state(views, mean_y) -> State:
    """The views as a state; outputs that no row has keep loadings of zero."""
    c, q = len(mean_y), views[0].W.shape[1]
    outputs = views[1] if len(views) > 1 else View(np.zeros((c, q)), 1.0)
    return State(views[0].W, views[0].sigma2, outputs.W, np.full(c, outputs.sigma2), mean_y)


def from_likelihood(mean, state: State, energy_scale) -> SppcaFit:
    """A maximum of the likelihood, axes canonical; latent scale unless energies are asked.

    The posterior of z is eqs. (9)-(10) of [TB99], the prediction section 3.4.1 of [YYTKW06].
    The energy scale is the length that an axis explains, outputs measured in units of noise, as
    a length of x: without outputs the coordinates are principal components, each shrunk by the
    share of its variance that is not noise.
    """
    W, sigma2, W_y, sigma2_y, mean_y = state
    M = Cholesky(sigma2 * np.eye(W.shape[1]) + W.T @ W)
    covariance = sigma2 * M.solve(np.eye(W.shape[1]))
    weights = mixed(W, covariance / sigma2)
    squares, squares_y = np.einsum("dq,dq->q", W, W), np.sum(W_y**2, axis=0)
    lengths = np.sqrt(squares + sigma2 * np.sum(W_y**2 / sigma2_y[:, None], axis=0))
    stretch = lengths if energy_scale else np.ones(W.shape[1])
    return SppcaFit(
        mean,
        state,
        weights * stretch if energy_scale else weights,
        1 / np.where(stretch > 0, stretch, 1.0),
        covariance,
        Prediction(weights @ W_y.T, mean_y, W_y @ covariance @ W_y.T + np.diag(sigma2_y)),
        np.eye(len(mean_y)),
        squares / (squares.sum() + len(W) * sigma2),
        squares_y / max(squares_y.sum() + sigma2_y.sum(), np.finfo(float).tiny),
    )
