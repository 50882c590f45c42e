"""The multinomial probit without reduction, by mean field: MNP of [G13].

    t_i ~ N(V'x_i + b, I),    v_fc ~ N(0, 1 / psi_fc),    b_c ~ N(0, 1 / lambda_c)

X is centred, so that b and V are independent in q. The columns of V are the weights of a ridge
whose outputs are the scores; precisions are per entry or one for each class.
"""

from typing import NamedTuple

import numpy as np

from gnomon.models.bsdr import Problem, flat_precision, shared, shared_count
from gnomon.stats.gamma import Gamma, kl, precision_posterior
from gnomon.stats.ridge import Spread


class Factors(NamedTuple):
    """Parameters of all factors of q."""

    psi: Gamma
    V: np.ndarray
    projected: np.ndarray
    """X V (n, c)."""
    spread: Spread
    lam: Gamma
    b: np.ndarray
    b_variance: np.ndarray
    T: np.ndarray
    T_normaliser: float


def init(problem: Problem) -> Factors:
    """All weights zero."""
    n, c = problem.n_samples, problem.outputs.n_outputs
    width, ridge, priors = problem.ridge.X.shape[1], problem.ridge, problem.priors
    flat = flat_precision(ridge, 1.0, c)
    psi = np.ones((width, c)) if priors.kind == "entry" else np.ones(c)
    factors = Factors(
        psi=Gamma(1.0, psi),
        V=np.zeros((width, c)),
        projected=np.zeros((n, c)),
        spread=ridge.spread(flat, c),
        lam=Gamma(1.0, np.ones(c)),
        b=np.zeros(c),
        b_variance=np.full(c, 1.0 / n),
        T=np.zeros((n, c)),
        T_normaliser=0.0,
    )
    return update_precisions(factors, problem)


def step(factors: Factors, problem: Problem):
    """One sweep; the bound returned is that of the given means with all else at its best."""
    factors = update_scores(update_spread(factors, problem), problem)
    objective = bound(factors, problem)
    for update in (update_weights, update_bias, update_precisions):
        factors = update(factors, problem)
    return factors, objective


def update_spread(factors, problem):
    """Covariances of q(V)."""
    return factors._replace(spread=problem.ridge.spread(factors.psi.mean, factors.V.shape[1]))


def update_weights(factors, problem):
    """Means of q(V)."""
    ridge = problem.ridge
    R = np.asarray(ridge.X.T @ factors.T, dtype=float)
    V = ridge.solve(factors.psi.mean, factors.spread, R)
    return factors._replace(V=V, projected=np.asarray(ridge.X @ V, dtype=float))


def update_bias(factors, problem):
    """q(b)."""
    variance = 1.0 / (factors.lam.mean + problem.n_samples)
    return factors._replace(b=variance * factors.T.sum(axis=0), b_variance=variance)


def update_precisions(factors, problem):
    """q(psi) and q(lambda)."""
    priors = problem.priors
    count = shared_count(priors.kind, problem.ridge.n_features, factors.V.shape[1])
    return factors._replace(
        psi=precision_posterior(priors.weights, count, _squares(factors, priors.kind)),
        lam=precision_posterior(priors.bias, 1, factors.b**2 + factors.b_variance),
    )


def update_scores(factors, problem):
    """q(T)."""
    M = factors.projected + factors.b
    T, log_Z = problem.outputs.scores(M)
    return factors._replace(T=T, T_normaliser=log_Z + float(np.sum(M * (0.5 * M - T))))


def bound(factors: Factors, problem: Problem) -> float:
    """Lower bound on log p(y | X)."""
    n, c = factors.T.shape
    kind, ridge, priors = problem.priors.kind, problem.ridge, problem.priors
    M = factors.projected + factors.b
    scores = np.sum(M**2) + factors.spread.gram_trace.sum() + n * factors.b_variance.sum()
    total = factors.T_normaliser + float(np.sum(factors.T * M) - 0.5 * scores)
    count = shared_count(kind, ridge.n_features, c)
    fit = count * np.sum(factors.psi.log_mean) + factors.spread.log_det.sum()
    fit -= np.sum(factors.psi.mean * _squares(factors, kind))
    fit += np.sum(factors.lam.log_mean - factors.lam.mean * (factors.b**2 + factors.b_variance))
    fit += np.sum(np.log(factors.b_variance)) + (ridge.n_features + 1) * c
    return total + 0.5 * float(fit) - kl(factors.psi, priors.weights) - kl(factors.lam, priors.bias)


def pack(factors: Factors):
    """Means and log scales as one vector; what `step` recomputes first is left out."""
    parts = [
        np.log(factors.psi.scale),
        factors.V,
        factors.projected,
        factors.b,
        np.log(factors.b_variance),
        np.log(factors.lam.scale),
    ]
    return np.concatenate([np.ravel(part) for part in parts])


def unpack(x, like: Factors) -> Factors:
    """Factors of the same shapes as ``like`` from a vector of `pack`."""
    shapes = [np.shape(like.psi.scale), like.V.shape, like.projected.shape] + 3 * [like.b.shape]
    stops = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    log_psi, V, projected, b, log_variance, log_lam = (
        part.reshape(shape) for part, shape in zip(np.split(x, stops), shapes, strict=True)
    )
    return like._replace(
        psi=like.psi._replace(scale=np.exp(log_psi)),
        V=V,
        projected=projected,
        b=b,
        b_variance=np.exp(log_variance),
        lam=like.lam._replace(scale=np.exp(log_lam)),
    )


def _squares(factors, kind):
    squares = shared(factors.V**2 + factors.spread.variance, kind)
    return squares + factors.spread.rest if kind == "column" else squares
