"""Sweeps of BSDR that know how much scores say: Newton's steps for the weights, near ones for P.

A sweep of [G13] takes a score as if it were seen: its steps are those for a curvature of one, where
that of log Z(m) is D = I - Cov(t | y). Where classes lie far apart most rows say next to nothing
of the scores, D is a hundredth, and sweeps creep. Here

    weights   Newton's step of
              sum_i log Z(B'[1, z_i]) - tr(V' n S V) / 2 - sum prior B^2 / 2,    B = [b; V],
              whose curvature sum_i [1, z_i][1, z_i]' x D_i has (q + 1) c rows
    P         the joint equation of `sweeps` for a change of P, with V D V' in the place of V V',
              D the mean over rows

then the change of basis. A sweep integrates all scores twice. Ten reach the bound of several
hundred plain ones (6,000 rows in ten classes). One may lower the bound: then curvatures nearer to
one take the place of D.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Method, cautious
from gnomon.linalg.data import slices
from gnomon.linalg.solve import inverse_with_log_det
from gnomon.models.bsdr import sweeps
from gnomon.models.bsdr.factors import Factors, Model, bound, counted, score_means, with_ones
from gnomon.models.bsdr.outputs import NumberOutputs, known_of, with_known

# With more weights their curvature is no longer small beside the sample: 2 MB, and 3 GFlop for
# each 20,000 rows.
MOST_WEIGHTS = 500
# Rows whose curvatures (c, c) are held at once.
ROWS = 512


class Curvature(NamedTuple):
    """Of the sum of log Z: by the weights, (q + 1) c rows and columns, and a row's mean (c, c)."""

    by_weights: np.ndarray
    mean: np.ndarray


def suits(model: Model, q) -> bool:
    """Whether rows have scores to integrate, all of them, and weights are few."""
    seen = isinstance(model.outputs, NumberOutputs) or model.observed is not None
    return not seen and (q + 1) * model.outputs.n_outputs <= MOST_WEIGHTS


def method(model: Model, start: Factors) -> Method:
    """The sweeps from a start on, bolder where they gain."""
    return cautious(start, partial(step, model=model))


def step(factors: Factors, caution, model: Model):
    """One sweep; the bound returned is that of the given means with all else at its best.

    With a caution of one curvatures are one, as in a plain sweep.
    """
    factors, curvature = _with_scores(sweeps.update_spreads(factors, model), model)
    objective = bound(factors, model)
    curvature = _raised(curvature, caution, factors, model)
    factors = _update_weights(factors, curvature, model)
    factors = sweeps.update_scores(sweeps.update_latent_covariances(factors, model), model)
    return sweeps.update_basis(_update_means(factors, curvature, model), model), objective


def _with_scores(factors, model):
    """q(T), and the curvature of log Z where it is made."""
    M, Z, known = score_means(factors, model), with_ones(factors.Z, model), known_of(model.outputs)
    (n, c), size = (len(known), M.shape[1]), Z.shape[1]
    T, log_Z = np.empty((n, c)), np.empty(n)
    by_weights, total = np.zeros((size * size, c * c)), np.zeros(c * c)
    for rows in slices(n, ROWS):
        own = with_known(model.outputs, known[rows])
        T[rows], log_Z[rows], D = own.curved_scores(M[rows])
        D = counted(D.reshape(len(D), -1), model, rows)
        by_weights += (Z[rows, :, None] * Z[rows, None]).reshape(len(D), -1).T @ D
        total += D.sum(axis=0)
    square = by_weights.reshape(size, size, c, c).transpose(0, 2, 1, 3).reshape(size * c, -1)
    curvature = Curvature(square, total.reshape(c, c) / model.n_samples)
    return sweeps.with_scores(factors, M, T, log_Z, model), curvature


def _raised(curvature, caution, factors, model):
    """The curvature between what it is and one."""
    Z, same = with_ones(factors.Z, model), np.eye(len(curvature.mean))
    ones = Curvature(np.kron(counted(Z, model).T @ Z, same), same)
    return Curvature(*(a + caution * (b - a) for a, b in zip(curvature, ones, strict=True)))


def _update_weights(factors, curvature, model):
    """q(b, V): covariances as ever, means by Newton's step."""
    spread = np.zeros((len(factors.B), len(factors.B)))
    spread[1:, 1:] = np.einsum("m,mab->ab", model.patterns.counts, factors.S)
    prior = np.vstack([factors.lam.mean, factors.psi.mean])
    E = factors.T - score_means(factors, model)
    slope = with_ones(factors.Z, model).T @ counted(E, model)
    slope -= prior * factors.B + spread @ factors.B
    bend = curvature.by_weights + np.kron(spread, np.eye(E.shape[1])) + np.diag(prior.ravel())
    B = factors.B + np.linalg.solve(bend, slope.ravel()).reshape(slope.shape)
    return sweeps.update_weights(factors, model)._replace(B=B)


def _update_means(factors, curvature, model):
    """Means of q(P), those of q(Z) going with them."""
    ridge, V = model.ridge, factors.B[1:]
    factors = sweeps.update_latent_means(factors, model)
    evidence = V @ curvature.mean @ V.T + factors.C[:, 1:, 1:].sum(axis=0)
    S, _ = inverse_with_log_det(np.eye(len(V)) / ridge.noise + evidence)
    gap = factors.Z - factors.projected
    R = np.asarray(ridge.X.T @ counted(gap, model), dtype=float)
    R = (R + ridge.gram_product(factors.P - factors.P @ S / ridge.noise)) / ridge.noise
    P = sweeps.joint_solution(factors._replace(S=S[None]), model, R)
    projected = np.asarray(ridge.X @ P, dtype=float)
    return factors._replace(P=P, projected=projected, Z=projected + gap)
