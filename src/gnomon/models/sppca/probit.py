"""SPPCA of classes by a probit likelihood, which [YYTKW06] left to future work.

    z ~ N(0, I),   x = mu + W z + e_x,   t = b + V z + e,   e ~ N(0, I)
    class = argmax_c t_c,          or for several labels          y_c = [t_c > 0]

Of the scores t nothing but their order is seen: V and b sum to zero over the classes. So
V = H W_y and b = H mean_y with orthonormal contrasts H, and a `State` of SPPCA whose outputs have
unit noise is a state of this model too. For several labels H is the identity.

Given x, z = zx + L u with u ~ N(0, I). With u_0 the noise of the winner's score

    p(y | x) = E_w[prod_j Phi(a_j'w + c_j)],   w = (u, u_0),   j != y
    a_j = [L'(v_y - v_j), 1],   c_j = (v_y - v_j)'zx + b_y - b_j

and of labels with signs s_j the same with w = u, a_j = s_j L'v_j, c_j = s_j (v_j'zx + b_j).
`propagation` has the moments of w. What they say of z and of the noise of the scores makes the
M-step of SPPCA, `em.m_step`; it stands still where the objective does, since the derivatives of
EP's log Z are those of expected statistics. Rows without label count as in SPPCA.

Where the map separates the classes V would grow without end: it has a Gaussian prior.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Method, Run, anderson, iterate
from gnomon.inference.subspace import SmallSolution
from gnomon.linalg.data import slices
from gnomon.models.sppca import em
from gnomon.models.sppca.fit_by_products import Small
from gnomon.models.sppca.propagation import BLOCK_ENTRIES, Factors, Tilted, propagate
from gnomon.models.sppca.statistics import (
    Noise,
    State,
    Statistics,
    noise_for,
    tolerance,
)

# Precision of the loadings of the scores, besides that asked for: it has the least calibration
# error, .095 where 0.1 has .098 and 1 has .127 (benchmarks/sppca_probit.py --priors).
PRIOR = 0.3
# Steps inside a basis that may be the last: scores take longer than codes, which start at a
# regression.
MANY = 300


class Classes(NamedTuple):
    """Numbers of the classes (p,) of labelled rows, and the contrasts (C, C - 1) of scores."""

    labels: np.ndarray
    contrasts: np.ndarray

    @property
    def seen(self):
        """A class says something of every score."""
        return None

    def rows(self, part):
        """The same of some rows."""
        return self._replace(labels=self.labels[part])

    def factors(self, M, B) -> Factors:
        """Factors of rows whose outputs are N(M, B B' + I) given x: M (p, c), B (c, r) or more."""
        n, labels = len(M), self.labels[:, None]
        others = _others(len(self.contrasts))[self.labels]
        scores, V = M @ self.contrasts.T, self.contrasts @ B
        V = np.broadcast_to(V, (n, *V.shape[-2:]))
        c = np.take_along_axis(scores, labels, axis=1) - np.take_along_axis(scores, others, axis=1)
        rows = np.arange(n)[:, None]
        A = V[rows, labels] - V[rows, others]
        return Factors(np.concatenate([A, np.ones((*c.shape, 1))], axis=2), c, np.ones_like(c))

    def noise(self, tilted: Tilted, mean, covariance):
        """Means (p, c) of the noise of the scores and covariances (p, c, k) with w.

        Given are those of the losing scores; the noise of the winning one is part of w.
        """
        n, C = len(self.labels), len(self.contrasts)
        all_means, all_covariances = np.empty((n, C)), np.empty((n, C, covariance.shape[2]))
        own = np.arange(C) == self.labels[:, None]
        all_means[~own], all_covariances[~own] = mean.ravel(), covariance.reshape(n * (C - 1), -1)
        all_means[own], all_covariances[own] = tilted.mean[:, -1], tilted.covariance[:, -1]
        return all_means @ self.contrasts, self.contrasts.T @ all_covariances


class Signs(NamedTuple):
    """Labels +1 and -1 of labelled rows (p, c), 0 where not known."""

    signs: np.ndarray

    @property
    def seen(self):
        """Which labels a row has; None where all have all."""
        return None if self.signs.all() else self.signs != 0

    def rows(self, part):
        """The same of some rows."""
        return Signs(self.signs[part])

    def factors(self, M, B) -> Factors:
        """Factors of rows whose outputs are N(M, B B' + I) given x: M (p, c), B (c, r) or more."""
        return Factors(self.signs[:, :, None] * B, self.signs * M, np.abs(self.signs))

    def noise(self, tilted: Tilted, mean, covariance):
        """Means (p, c) of the noise of the scores and covariances (p, c, k) with w."""
        return -self.signs * mean, -self.signs[:, :, None] * covariance


def _others(C):
    """The other classes (C, C - 1) of each."""
    every = np.broadcast_to(np.arange(C), (C, C))
    return every[~np.eye(C, dtype=bool)].reshape(C, C - 1)


class Scored(NamedTuple):
    """z of labelled rows given x and y: means (p, q), covariances (p, q, q); log p(y | x) (p,).

    ``noise`` (p, c) are the means of the noise of the scores, ``noise_z`` (p, c, q) its
    covariances with z.
    """

    Z: np.ndarray
    covariances: np.ndarray
    log_probabilities: np.ndarray
    noise: np.ndarray
    noise_z: np.ndarray


def scored(state: State, Z, covariance, targets) -> Scored:
    """Rows whose z is N(Z, covariance) given x, once their classes or labels are known too."""
    q, L = Z.shape[1], np.linalg.cholesky(covariance)
    factors = targets.factors(Z @ state.W_y.T + state.mean_y, state.W_y @ L)
    tilted = propagate(factors)
    (A, c, _), (mean, V, tau, nu, log_probabilities) = factors, tilted
    # The noise of a score whose own factor this is has the mean tau f - nu, given f.
    f = (A @ mean[:, :, None])[:, :, 0] + c
    noise, noise_w = targets.noise(tilted, tau * f - nu, tau[:, :, None] * (A @ V))
    u, U, turn = mean[:, :q], V[:, :q, :q], np.swapaxes(L, -1, -2)
    Z = Z + (u[:, None] @ turn)[:, 0]
    return Scored(Z, L @ U @ turn, log_probabilities, noise, noise_w[:, :, :q] @ turn)


class Labelled(NamedTuple):
    """Coordinates T (p, m) of the labelled rows, their weights (p,) and what is known of them."""

    T: np.ndarray
    weights: np.ndarray
    targets: Classes | Signs


class Sums(NamedTuple):
    """Sums over labelled rows: <[z; 1][z; 1]'> where an output is seen, noise times [z; 1].

    ``tables`` (c, q + 1, q + 1), or one for all where every row has all outputs; ``every``
    (q, q) is <z z'> of all rows.
    """

    tables: np.ndarray
    noise: np.ndarray
    every: np.ndarray
    log_probability: float


def sums(found: Scored, weights, seen) -> Sums:
    """What the M-step needs of labelled rows."""
    Z = np.column_stack([found.Z, np.ones(len(found.Z))])
    q, heavy = found.Z.shape[1], weights[:, None]
    if seen is None:
        tables = ((heavy * Z).T @ Z)[None]
        tables[0, :q, :q] += np.einsum("n,nij->ij", weights, found.covariances)
        every = tables[0, :q, :q]
    else:
        second = Z[:, :, None] * Z[:, None, :]
        second[:, :q, :q] += found.covariances
        tables = np.tensordot((heavy * seen).T, second, axes=1)
        every = np.tensordot(weights, second, axes=1)[:q, :q]
    noise = (heavy * found.noise).T @ Z
    noise[:, :q] += np.einsum("n,ncq->cq", weights, found.noise_z)
    return Sums(tables, noise, every, float(weights @ found.log_probabilities))


def e_step(state: State, stats: Statistics, rows: Labelled):
    """Expected moments by EP, the log likelihood, and the means of z (p, q) of labelled rows.

    The moments of ``stats`` count every row as if it had no label; those that have one are then
    corrected.
    """
    expected, log_likelihood = em.e_step(state, stats)
    alone, (T, weights, targets) = em.given_inputs(state), rows
    Zx, Z, every = T @ alone.h, np.empty((len(T), state.W.shape[1])), []
    for part in blocks(state, len(T)):
        found = scored(state, Zx[part], alone.covariance, targets.rows(part))
        Z[part] = found.Z
        every.append(sums(found, weights[part], targets.rows(part).seen))
    total = add_up(every)
    less = (weights[:, None] * Zx).T @ Zx + weights.sum() * alone.covariance
    moments = em.Expected(
        expected.XZ + T.T @ (weights[:, None] * (Z - Zx)),
        expected.ZZ + total.every - less,
        *output_moments(state, total),
    )
    return moments, log_likelihood + total.log_probability, Z


def blocks(state: State, n) -> Iterator[slice]:
    """Slices of n labelled rows, few enough for the cache."""
    c, q = state.W_y.shape
    return slices(n, max(1, BLOCK_ENTRIES // ((c + 1) * (q + 1))))


def add_up(parts) -> Sums:
    """The sums of all parts."""
    return Sums(*(sum(part) for part in zip(*parts, strict=True)))


def output_moments(state: State, total: Sums) -> tuple[np.ndarray, np.ndarray]:
    """Expected moments of the scores with [z, 1], and of [z, 1] where they are seen."""
    V = np.column_stack([state.W_y, state.mean_y])
    return np.squeeze(V[:, None] @ total.tables, axis=1) + total.noise, total.tables


def step(state: State, stats: Statistics, rows: Labelled, noise: Noise) -> tuple[State, float]:
    """One step of EM, and the objective it started from."""
    expected, log_likelihood, _ = e_step(state, stats, rows)
    found = em.m_step(state, expected, stats, noise)
    return found._replace(sigma2_y=state.sigma2_y), log_likelihood - em.penalty(state, noise)


class Settled(NamedTuple):
    """What stays the same in a fit: number of components, noise rule, tolerance in nats."""

    q: int
    noise: Noise
    tol: float


def settle(stats: Statistics, settings) -> Settled:
    """The rule of `fit.Settings` for these data."""
    noise = noise_rule(stats.energy / (stats.n * stats.d), stats.outputs.Y.shape[1], settings)
    return Settled(settings.n_components, noise, tolerance(stats, settings.tol))


def noise_rule(variance_x, c, settings) -> Noise:
    """The noise of x is learnt; that of c scores is one, and their loadings have a prior."""
    noise = noise_for(variance_x, np.ones(c), settings)
    return noise._replace(prior_y=PRIOR + noise.prior_y)


def maximise(
    stats: Statistics, rows: Labelled, rule: Settled, *, max_iter, loop=iterate, start=None
) -> Run:
    """The run of EM with Anderson's mixing to the maximum, from PPCA."""
    q, noise, tol = rule
    start = first_state(stats, q, noise) if start is None else start
    method = anderson(
        Method(start, partial(step, stats=stats, rows=rows, noise=noise)),
        partial(em.pack, noise=noise),
        partial(_unpack, like=start, noise=noise),
    )
    return loop(method, max_iter=max_iter, tol=tol)


def first_state(stats: Statistics, q, noise: Noise) -> State:
    """PPCA of x, and scores that know nothing of it."""
    start = em.init(stats, q, noise)
    return start._replace(sigma2_y=np.ones_like(start.sigma2_y))


def _unpack(x, like, noise):
    return em.unpack(x, like, noise)._replace(sigma2_y=like.sigma2_y)


def small(reduced, *, stats: Statistics, weights, targets, rule: Settled) -> Small:
    """The model inside the basis of `fit_by_products`, whose rows carry roots of their weights."""
    rows = Labelled(reduced.special / np.sqrt(weights)[:, None], weights, targets)
    stats = stats._replace(g=reduced.energies)
    return Small(
        first_state(stats, rule.q, rule.noise),
        partial(step, stats=stats, rows=rows, noise=rule.noise),
        partial(maximise, stats, rows, rule),
        partial(_answer, stats=stats, rows=rows, noise=rule.noise),
        MANY,
    )


def _answer(state, stats, rows, noise):
    expected, log_likelihood, Z = e_step(state, stats, rows)
    return SmallSolution(
        em.given_inputs(state).h,
        np.sqrt(rows.weights)[:, None] * Z,
        expected.ZZ,
        state.sigma2,
        log_likelihood - em.penalty(state, noise),
        state,
    )


def read_targets(problem) -> tuple[np.ndarray, np.ndarray, Classes | Signs]:
    """Which rows of a `fit.Problem` have a label (n,), their weights, and what is known of them."""
    rows = problem.observed.any(axis=1)
    weights = np.ones(rows.sum()) if problem.weights is None else problem.weights[rows]
    if problem.labels is None:
        return rows, weights, Signs(np.where(problem.observed, np.sign(problem.Y), 0.0)[rows])
    labels = problem.labels[rows]
    _, first = np.unique(labels, return_index=True)
    return rows, weights, Classes(labels, problem.Y[rows][first])
