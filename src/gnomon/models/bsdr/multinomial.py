"""The multinomial probit without reduction, by mean field: MNP of [G13].

    t_i ~ N(V'x_i + b, I),    v_fc ~ N(0, 1 / psi_fc),    b_c ~ N(0, 1 / lambda_c)

X is centred, so that b and V are independent in q. The columns of V are the weights of a ridge
whose outputs are the scores; precisions are per entry or one for each class.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Method, Run, squarem
from gnomon.linalg.data import Data
from gnomon.models.bsdr.factors import (
    Gamma,
    Model,
    Priors,
    count_shared,
    join,
    kl,
    make_model,
    precision_posterior,
    separate,
    sum_shared,
)
from gnomon.models.bsdr.fit import MOST_ENTRYWISE, refuse_wide_sparse
from gnomon.models.bsdr.inputs import Covariances, Inputs, loading_variances, loadings, read_inputs
from gnomon.models.bsdr.outputs import ClassOutputs


class Problem(NamedTuple):
    """Rows and their classes."""

    X: Data
    outputs: ClassOutputs


class Settings(NamedTuple):
    """Parameters of a fit, checked."""

    prior: str
    """Which weights share a precision: none ("entry"), those of a class ("column"), or "auto"."""
    weight_prior: Gamma
    standardize: bool | str
    max_iter: int
    tol: float
    """Per row, of the bound."""


class ProbitFit(NamedTuple):
    """Weights (d, c) on centred rows, bias (c,), how sure both are, and how the fit went."""

    loadings: np.ndarray
    loadings_sd: np.ndarray
    bias: np.ndarray
    bias_variance: np.ndarray
    inputs: Inputs
    precisions: np.ndarray
    run: Run


def fit(problem: Problem, settings: Settings, loop) -> ProbitFit:
    """The classifier by accelerated sweeps from weights of zero."""
    kind = choose_prior(problem.X, settings.prior)
    inputs, ridge = read_inputs(problem.X, kind, 1.0, settings.standardize)
    priors = Priors(kind, weights=settings.weight_prior, bias=settings.weight_prior)
    model = make_model(ridge, problem.outputs, priors)
    first = start(model)
    plain = Method(first, partial(step, model=model))
    method = squarem(plain, pack, partial(unpack, like=first))
    run = loop(method, max_iter=settings.max_iter, tol=settings.tol * model.n_samples)
    factors, psi = run.state, run.state.psi.mean
    variances = loading_variances(inputs, psi, factors.V_covariances.variance)
    return ProbitFit(
        loadings=loadings(inputs, factors.V),
        loadings_sd=np.sqrt(variances),
        bias=factors.b,
        bias_variance=factors.b_variance,
        inputs=inputs,
        precisions=psi,
        run=run,
    )


def choose_prior(X: Data, prior) -> str:
    """The prior that was asked for, or the one for data of this shape."""
    n, d = X.shape
    if prior == "auto":
        return "column" if d > MOST_ENTRYWISE or (X.is_sparse and n < d) else "entry"
    if prior == "entry":
        refuse_wide_sparse(X, prior)
    return prior


class Factors(NamedTuple):
    """Parameters of all factors of q."""

    psi: Gamma
    V: np.ndarray
    projected: np.ndarray
    """X V (n, c)."""
    V_covariances: Covariances
    lam: Gamma
    b: np.ndarray
    b_variance: np.ndarray
    T: np.ndarray
    T_normaliser: float


def start(model: Model) -> Factors:
    """All weights zero."""
    n, c, ridge = model.n_samples, model.outputs.n_outputs, model.ridge
    width = ridge.X.shape[1]
    factors = Factors(
        psi=Gamma(1.0, np.ones((width, c) if model.priors.kind == "entry" else c)),
        V=np.zeros((width, c)),
        projected=np.zeros((n, c)),
        V_covariances=ridge.covariances(ridge.equal_precisions(c), c),
        lam=Gamma(1.0, np.ones(c)),
        b=np.zeros(c),
        b_variance=np.full(c, 1.0 / n),
        T=np.zeros((n, c)),
        T_normaliser=0.0,
    )
    return update_precisions(factors, model)


def step(factors: Factors, model: Model):
    """One sweep; the bound returned is that of the given means with all else at its best."""
    factors = update_scores(update_covariances(factors, model), model)
    objective = bound(factors, model)
    factors = update_bias(update_weights(factors, model), model)
    return update_precisions(factors, model), objective


def update_covariances(factors, model):
    """Covariances of q(V)."""
    covariances = model.ridge.covariances(factors.psi.mean, factors.V.shape[1])
    return factors._replace(V_covariances=covariances)


def update_weights(factors, model):
    """Means of q(V)."""
    ridge = model.ridge
    R = np.asarray(ridge.X.T @ factors.T, dtype=float)
    V = ridge.solve(factors.psi.mean, factors.V_covariances, R)
    return factors._replace(V=V, projected=np.asarray(ridge.X @ V, dtype=float))


def update_bias(factors, model):
    """q(b)."""
    variance = 1.0 / (factors.lam.mean + model.n_samples)
    return factors._replace(b=variance * factors.T.sum(axis=0), b_variance=variance)


def update_precisions(factors, model):
    """q(psi) and q(lambda), as eqs. (7) and (8) of [G13]."""
    priors = model.priors
    count = count_shared(priors.kind, model.ridge.n_features, factors.V.shape[1])
    return factors._replace(
        psi=precision_posterior(priors.weights, count, _squares(factors, priors.kind)),
        lam=precision_posterior(priors.bias, 1, factors.b**2 + factors.b_variance),
    )


def update_scores(factors, model):
    """q(T), eq. (10) of [G13]."""
    M = factors.projected + factors.b
    T, log_Z = model.outputs.scores(M)
    return factors._replace(T=T, T_normaliser=log_Z + float(np.sum(M * (0.5 * M - T))))


def bound(factors: Factors, model: Model) -> float:
    """Lower bound on log p(y | X)."""
    n, c = factors.T.shape
    kind, d, priors = model.priors.kind, model.ridge.n_features, model.priors
    covariances, b_squares = factors.V_covariances, factors.b**2 + factors.b_variance
    M = factors.projected + factors.b
    scores = np.sum(M**2) + covariances.gram_trace.sum() + n * factors.b_variance.sum()
    total = factors.T_normaliser + float(np.sum(factors.T * M) - 0.5 * scores)
    fit = count_shared(kind, d, c) * np.sum(factors.psi.log_mean) + covariances.log_det.sum()
    fit -= np.sum(factors.psi.mean * _squares(factors, kind))
    fit += np.sum(factors.lam.log_mean - factors.lam.mean * b_squares)
    fit += np.sum(np.log(factors.b_variance)) + (d + 1) * c
    return total + 0.5 * float(fit) - kl(factors.psi, priors.weights) - kl(factors.lam, priors.bias)


def pack(factors: Factors):
    """Means and log scales as one vector; what a sweep recomputes first is left out."""
    means = [np.log(factors.psi.scale), factors.V, factors.projected, factors.b]
    return join([*means, np.log(factors.b_variance), np.log(factors.lam.scale)])


def unpack(x, like: Factors) -> Factors:
    """Factors of the same shapes as ``like`` from a vector of `pack`."""
    shapes = [np.shape(like.psi.scale), like.V.shape, like.projected.shape] + 3 * [like.b.shape]
    log_psi, V, projected, b, log_variance, log_lam = separate(x, shapes)
    return like._replace(
        psi=like.psi._replace(scale=np.exp(log_psi)),
        V=V,
        projected=projected,
        b=b,
        b_variance=np.exp(log_variance),
        lam=like.lam._replace(scale=np.exp(log_lam)),
    )


def _squares(factors, kind):
    squares = sum_shared(factors.V**2 + factors.V_covariances.variance, kind)
    return squares + factors.V_covariances.rest if kind == "column" else squares
