"""DCA-GM with projection and mixture together: one objective for all parameters.

    J(P, mixture) + generative_weight log likelihood of EM + log prior of the covariances

The alternation of `gnomon.models.dca_gm` climbs two hills in turn, this one a single hill, so
that it can be followed to its top. Parameters are unconstrained: logits of the class weights
and of the weights in a class, means, Cholesky factors with the logarithm of their diagonal.
"""

import itertools
from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data
from gnomon.linalg.solve import Cholesky
from gnomon.models.dca_gm import (
    Settings,
    State,
    prior_of,
    row_gradient,
    settle,
    through_gauge,
    visit,
    whitening,
)
from gnomon.stats.known_rows import Rows
from gnomon.stats.mixture import (
    Mixture,
    Moments,
    Prior,
    add,
    gather,
    log_prior,
    no_moments,
    scatters,
    whiten,
)


class Terms(NamedTuple):
    """Value of all terms, their derivative by z, and sums that give those by the mixture."""

    value: float
    by_Z: np.ndarray
    moments: Moments


def all_terms(mixture: Mixture, Z, rows: Rows, settings: Settings) -> Terms:
    """Discriminative terms and weighted log likelihood at coordinates Z."""
    value, by_Z, moments = 0.0, np.zeros_like(Z), no_moments(mixture)
    white = whiten(mixture)
    for kind, weight in (("discriminate", 1.0), ("generate", settings.generative_weight)):
        if weight == 0:
            continue
        for block, term, parts in visit(white, Z, rows.blocks, kind, settings):
            value += weight * term.value
            parts *= weight
            by_Z[block] += row_gradient(white, parts, Z[block])
            moments = add(moments, gather(mixture, weight * term.counts, parts, Z[block]))
    return Terms(value, by_Z, moments)


def pack(P, mixture: Mixture) -> np.ndarray:
    """All parameters as one unconstrained vector."""
    L = np.linalg.cholesky(mixture.covariances)
    q = P.shape[1]
    L[:, np.arange(q), np.arange(q)] = np.log(L[:, np.arange(q), np.arange(q)])
    parts = (P, np.log(mixture.alpha), np.log(np.maximum(mixture.beta, 1e-12)), mixture.means)
    return np.concatenate([part.ravel() for part in parts] + [L[:, *np.tril_indices(q)].ravel()])


def unpack(x, like: Mixture) -> tuple[np.ndarray, Mixture]:
    """Projection and mixture of a vector; ``like`` has their sizes."""
    q, sizes = like.means.shape[1], (len(like.alpha), len(like.beta), like.means.size)
    lower = np.tril_indices(q)
    n_forms = len(like.covariances)
    tail = np.cumsum([0, *sizes, n_forms * len(lower[0])])
    start = len(x) - tail[-1]
    a, b, means, factors = (x[start + i : start + j] for i, j in itertools.pairwise(tail))
    L = np.zeros((n_forms, q, q))
    L[:, *lower] = factors.reshape(n_forms, -1)
    diagonal = np.arange(q)
    L[:, diagonal, diagonal] = np.exp(L[:, diagonal, diagonal])
    alpha, beta = np.exp(a - a.max()), np.exp(b - b.max())
    mixture = like._replace(
        alpha=alpha / alpha.sum(),
        beta=beta / np.bincount(like.owner, beta)[like.owner],
        means=means.reshape(-1, q),
        covariances=L @ L.swapaxes(1, 2),
    )
    return x[:start].reshape(-1, q), mixture


def objective(x, X: Data, rows: Rows, settings: Settings, like: Mixture):
    """Value and gradient at a vector of parameters, with two products with X."""
    P, mixture = unpack(x, like)
    Z, G = rows.sort(np.asarray(X @ P, dtype=float)), P.T @ P
    gauge = whitening(Z, G, rows, settings)
    prior = prior_of(Z, rows, settings)
    terms = all_terms(mixture, Z @ gauge[0], rows, settings)
    slope = through_gauge((terms.value, terms.by_Z), Z, G, gauge, rows, settings)
    by_P = X.T @ rows.restore(slope.by_Z) + 2 * P @ slope.by_G
    by_mixture = mixture_gradient(mixture, terms.moments, prior)
    return slope.value + log_prior(mixture, prior), np.concatenate([by_P.ravel(), by_mixture])


def mixture_gradient(mixture: Mixture, moments: Moments, prior: Prior) -> np.ndarray:
    """Derivatives by the packed parameters of the mixture."""
    counts = moments.gaussians
    by_a = moments.classes - mixture.alpha * moments.classes.sum()
    by_b = counts - mixture.beta * np.bincount(mixture.owner, counts)[mixture.owner]
    away = moments.sums - counts[:, None] * mixture.means
    by_means = np.empty_like(away)
    scatter = scatters(mixture, moments, mixture.means) + prior.points * prior.covariance
    sizes = np.bincount(mixture.form, counts, minlength=len(scatter)) + prior.points
    lower, by_factors = np.tril_indices(away.shape[1]), []
    for s, covariance in enumerate(mixture.covariances):
        factor = Cholesky(covariance)
        own = mixture.form == s
        by_means[own] = factor.solve(away[own].T).T
        by_covariance = factor.solve(factor.solve(scatter[s]).T) - sizes[s] * factor.solve(
            np.eye(len(covariance))
        )
        by_L = by_covariance @ factor.L
        by_L[np.diag_indices(len(by_L))] *= np.diagonal(factor.L)
        by_factors.append(by_L[lower])
    return np.concatenate([by_a, by_b, by_means.ravel(), *by_factors])


def state_of(x, X: Data, rows: Rows, settings: Settings, like: Mixture) -> State:
    """The state of a vector of parameters, in the gauge P'SP = I, without further EM."""
    P, mixture = unpack(x, like)
    Z = rows.sort(np.asarray(X @ P, dtype=float))
    return settle(P, Z, mixture, rows, settings._replace(n_em=0))
