"""Strength of supervision: labels completed on all rows, then SPPCA in closed form.

With learnt noise, few labels hardly turn the subspace of [YYTKW06]: n_1 c label entries stand
against n d inputs. Here the labels are first completed, E[y | x] on every row, and the label
block then holds a stated share s of the energy:

    stage 1    y = m + B'(x - xbar) + e,  e ~ N(0, Sigma)     ridge on the labelled rows
    stage 2    PCA of [sqrt((1-s)/tx) x, sqrt(s/tc) c],       c = Sigma^(-1/2) B'(x - xbar)

    tx, tc      total variance of x and of c over all rows
    r(s)        = (1-s)/s tc/tx, the ratio of noise variances at which stage 2 is Theorem 2

s = 0 is PCA and s = 1 keeps only what predicts y. Stage 2 has no iteration and no local optimum.
All algebra is in a principal space: coordinates f on the leading principal directions of all rows.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from gnomon.linalg.data import Data, center, check_spread, weighted
from gnomon.linalg.eigen import from_dual, from_moments, krylov_pairs, route
from gnomon.linalg.solve import above_rounding, column_signs, fix_signs, threads_for
from gnomon.models.sppca.fit import Prediction, SppcaFit
from gnomon.models.sppca.statistics import State
from gnomon.models.strength.completion import (
    Completion,
    Outputs,
    Votes,
    complete,
    complete_with_votes,
    for_new_rows,
    predictive,
)
from gnomon.models.strength.rule import RULE, TINY
from gnomon.stats.gaussian import NOISE_FLOOR


class PrincipalSpace(NamedTuple):
    """Leading principal directions of rows less their mean: axes V (d, p), variances (p,), tr S."""

    mean: np.ndarray
    data: Data
    axes: np.ndarray
    variances: np.ndarray
    total: float
    weights: np.ndarray | None = None


class Directions(NamedTuple):
    """Stage 2 in a principal space: T = F R, eigenvectors U (p, q), energies and shares."""

    R: np.ndarray
    U: np.ndarray
    energies: np.ndarray
    x_share: np.ndarray
    y_share: np.ndarray

    def leading(self, q) -> "Directions":
        """The first q of them."""
        return Directions(*(values[..., :q] for values in self))


def n_directions(q: int) -> int:
    """Number of principal directions that stage 1 sees for q components."""
    return max(RULE.directions, RULE.directions_per_component * q)


def principal_space(mean, X: Data, size: int, rng, leading=None, way=None) -> PrincipalSpace:
    """At most ``size`` directions of X less its mean, the first ``leading`` ones converged.

    ``way`` is the route, by default the cheapest for the shape of X.
    """
    size = min(size, *X.shape)
    way = route(X, size) if way is None else way
    if way == "subspace":
        values, V = krylov_pairs(X, size, rng, leading=leading)
        energy = X.squared_norm
    else:
        values, V, energy = (from_moments if way == "moments" else from_dual)(X, size)
    # Rows that are all equal have one direction, of next to no variance.
    kept = max(1, int(above_rounding(values).sum()))
    variances = np.maximum(values[:kept] / X.n_samples, TINY)
    total = max(energy / X.n_samples, TINY)
    axes = fix_signs(V[:, :kept])
    return PrincipalSpace(mean, X.unweighted, axes, variances, total, X.weights)


def space_of(X: Data, weights, q: int, rng, times=1) -> PrincipalSpace:
    """The principal space of all rows that stage 1 sees for q components, or times as many."""
    mean, X = center(weighted(X, weights))
    with threads_for(X):
        space = principal_space(mean, X, times * n_directions(q), rng, leading=q)
    check_spread(space.total, X.dtype)
    return space


def truncated(space: PrincipalSpace, size: int) -> PrincipalSpace:
    """The first ``size`` directions of the space; the total variance stays that of all."""
    return space._replace(axes=space.axes[:, :size], variances=space.variances[:size])


def coordinates(space: PrincipalSpace, rows) -> np.ndarray:
    """Coordinates F (m, p) of the rows that a mask or a sorted index selects."""
    return np.asarray(space.data.rows(rows) @ space.axes, dtype=float)


def weights_of(space: PrincipalSpace, n) -> np.ndarray:
    """Weights of the n rows of a space, ones where it has none."""
    return np.ones(n) if space.weights is None else space.weights


def labelled_rows(space: PrincipalSpace, observed) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the rows with an output and a weight, at most some number, and their weights."""
    weights = weights_of(space, len(observed))
    rows = np.flatnonzero(observed.T.any(axis=0) & (weights > 0))
    if len(rows) > RULE.most_rows:
        rows = np.sort(np.random.default_rng(0).choice(rows, RULE.most_rows, replace=False))
    return rows, weights[rows]


class Learnt(NamedTuple):
    """Stage 1 on labelled rows, with their outputs and weights in the order of its residuals.

    These are such as new rows would have.
    """

    completion: Completion
    outputs: Outputs
    weights: np.ndarray


def learn(space: PrincipalSpace, outputs: Outputs) -> Learnt:
    """Stage 1 on the labelled rows of a space."""
    rows, weights = labelled_rows(space, outputs.observed)
    F, known = coordinates(space, rows), outputs.rows(rows)
    completion = complete(F, known, weights, variances=space.variances)
    completion = for_new_rows(completion, F, known, weights, space.variances)
    return Learnt(completion, known, weights)


def supervise(
    space: PrincipalSpace, outputs: Outputs, q, s, votes: Votes | None = None, learnt=None
) -> SppcaFit:
    """SPPCA with share s of the energy in the label block.

    Directions beyond those that carry energy (s = 1 has as many as outputs) are zero. Where
    nothing is labelled, or x says nothing about y, it is PCA whatever s. Unlabelled rows that
    ``votes`` name take part in stage 1; the covariance of y is still that of labelled rows, of
    which ``learnt`` is stage 1 where it is known already.
    """
    learnt = learn(space, outputs) if learnt is None else learnt
    of_new_rows = predictive(*learnt)
    if votes is None:
        return _predicting(assemble(space, learnt.completion, q, s), of_new_rows)
    together = votes.fit
    if together is None:
        rows, weights = labelled_rows(space, outputs.observed)
        F = np.vstack([coordinates(space, rows), coordinates(space, votes.rows)])
        counts = weights_of(space, len(outputs.Y))[votes.rows]
        together = complete_with_votes(F, outputs.rows(rows), weights, votes, counts)
    return _predicting(assemble(space, together, q, s), of_new_rows)


def _predicting(found, of_new_rows):
    return found._replace(outputs=found.outputs._replace(**of_new_rows._asdict()))


def label_block(completion: Completion, variances) -> np.ndarray:
    """G = S^(1/2) B Sigma^(-1/2) (p, c): the label block along directions of unit variance."""
    return np.sqrt(variances)[:, None] * (completion.B @ inverse_root(completion.covariance))


def inverse_root(S) -> np.ndarray:
    """S^(-1/2), symmetric: turning the outputs turns it alike."""
    values, vectors = np.linalg.eigh(S)
    return (vectors / np.sqrt(values)) @ vectors.T


def directions(variances, total, G, q, s) -> Directions:
    """Stage 2: leading eigenvectors U of (1-s)/tx S + s/tc G G' and T = F S^(-1/2) U l^(1/2).

    T is scaled to the units of x; at s = 0 it is the principal components.
    """
    energy = float(np.sum(G**2))
    s = s if energy > 0 else 0.0
    GG = G @ G.T / energy if energy > 0 else np.zeros((len(G), len(G)))
    A = s * GG
    A[np.diag_indices_from(A)] += (1 - s) / total * variances
    q = min(q, len(A))
    values, U = eigh(A, subset_by_index=(len(A) - q, len(A) - 1))
    values, U = values[::-1], U[:, ::-1]
    active = values > RULE.no_energy
    energies = np.where(active, values, 0.0)
    U = np.where(active, U, 0.0)
    R = np.sqrt(total / variances)[:, None] * U * np.sqrt(energies)
    x_share = variances @ U**2 / total
    return Directions(R, U, energies, x_share, np.sum((G.T @ U) ** 2, axis=0) / max(energy, TINY))


def assemble(space: PrincipalSpace, completion: Completion, q, s) -> SppcaFit:
    """Both stages in the units of x: projection, loadings, noise, and prediction of y.

    Loadings and noise are those of Theorem 2 of [YYTKW06] for the rows [x, c]; coordinates have
    the scale of x, and are z after multiplication with the latent scale.
    """
    G = label_block(completion, space.variances)
    s = s if np.any(G) else 0.0
    wide = directions(space.variances, space.total, G, max(q, RULE.wide_components), s)
    found = wide.leading(q)
    d, c = space.axes.shape[0], G.shape[1]
    noise = _discarded(found.energies, d + (c if s > 0 else 0))
    energies = np.maximum(found.energies, RULE.no_energy)
    left = np.where(found.energies > 0, np.minimum(noise / energies, 1.0), 1.0)
    shrink = np.sqrt(1 - left)
    loadings = np.sqrt(space.variances)[:, None] * found.U * shrink
    W = space.axes @ loadings
    signs = column_signs(W)
    W_y = (G.T @ found.U) * shrink * signs
    level = noise * float(np.sum(G**2)) / s if s > 0 else np.inf
    sigma2, offset = _input_noise(space, loadings), completion.offset
    return SppcaFit(
        mean=space.mean,
        state=State(padded(W * signs, q), sigma2, padded(W_y, q), np.full(c, level), offset),
        projection=padded(space.axes @ (found.R * signs), q),
        latent_scale=padded(shrink / np.sqrt(space.total * energies), q),
        latent_covariance=np.diag(np.pad(left, (0, q - len(left)), constant_values=1.0)),
        outputs=Prediction(space.axes @ completion.B, offset, completion.covariance),
        whitener=inverse_root(completion.covariance),
        input_share=padded(found.x_share, q),
        target_share=padded(found.y_share, q),
        wide=space.axes @ wide.R,
    )


def in_latent_scale(found: SppcaFit) -> SppcaFit:
    """The same with coordinates that are the posterior means of z."""
    ones = np.ones_like(found.latent_scale)
    return found._replace(projection=found.projection * found.latent_scale, latent_scale=ones)


def _input_noise(space, loadings):
    """The most likely noise of x for these loadings (p, q), those of the labels left aside.

    The noise that is tied to that of the labels is lower, since these repeat what x says. With
    t_k the variance along the axes of the loadings, of lengths l_k, the step is EM's.
    """
    d = len(space.axes)
    Q, lengths, _ = np.linalg.svd(loadings / np.sqrt(space.total), full_matrices=False)
    along, squares = (space.variances / space.total) @ Q**2, lengths**2
    outside, least = max(1 - along.sum(), 0.0), NOISE_FLOOR / d
    sigma2 = max(outside / max(d - len(along), 1), least)
    for _ in range(RULE.noise_steps):
        before, whole = sigma2, squares + sigma2
        left = along * (sigma2 / whole) ** 2 + squares * sigma2 / whole
        sigma2 = max((outside + left.sum()) / d, least)
        if not abs(sigma2 - before) > RULE.noise_change * sigma2:
            break
    return sigma2 * space.total


def _discarded(energies, dimension):
    """Mean energy of the directions left out: the noise of Theorem 2 in shares of the total.

    Without any, so little that what is known exactly is the limit of what is nearly so.
    """
    left = dimension - len(energies)
    share = (1.0 - float(energies.sum())) / left if left > 0 else 0.0
    return max(share, RULE.no_energy**2)


def padded(values, q) -> np.ndarray:
    """Zeros for components that a space of fewer than q directions cannot have."""
    missing = q - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]) if missing else values
