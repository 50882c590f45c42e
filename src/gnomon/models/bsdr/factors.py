"""The model of BSDR, its mean-field factors as one value, and the lower bound (3) of [G13].

    z_i ~ N(P'x_i, noise I),    t_i ~ N(V'z_i + b, 1 / eps),    y_i from t_i
    p_fs ~ N(0, 1 / phi_fs),    v_sc ~ N(0, 1 / psi_sc),    b_c ~ N(0, 1 / lambda_c)

All precisions are gamma variables in shape and scale, E[x] = shape * scale.

    here    X   P   phi   Z    V, b   psi   lambda   T   q   c     B = [b; V] (q + 1, c)
    [G13]   X'  Q   Phi   Z'   W, b   Psi   lambda   T   R   K
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from gnomon.models.bsdr.inputs import Covariances, Ridge
from gnomon.models.bsdr.outputs import Outputs, known_of, with_known


class Gamma(NamedTuple):
    """A gamma distribution, or an array of independent ones that share the shape."""

    shape: float | np.ndarray
    scale: float | np.ndarray

    @property
    def mean(self):
        """E[x]."""
        return self.shape * self.scale

    @property
    def log_mean(self):
        """E[log x]."""
        return digamma(self.shape) + np.log(self.scale)


def precision_posterior(prior: Gamma, counts, squares) -> Gamma:
    """Precision of ``counts`` centred normal variables with this sum of expected squares."""
    return Gamma(prior.shape + 0.5 * counts, 1.0 / (1.0 / prior.scale + 0.5 * squares))


def kl(q: Gamma, p: Gamma) -> float:
    """KL(q, p), summed over the entries of q."""
    terms = (
        (q.shape - p.shape) * digamma(q.shape)
        - gammaln(q.shape)
        + gammaln(p.shape)
        + p.shape * (np.log(p.scale) - np.log(q.scale))
        + q.shape * (q.scale / p.scale - 1.0)
    )
    return float(np.sum(np.broadcast_to(terms, np.shape(q.scale))))


def log_densities(x, p: Gamma) -> np.ndarray:
    """Log densities of draws."""
    constant = gammaln(p.shape) + p.shape * np.log(p.scale)
    return (p.shape - 1) * np.log(x) - x / p.scale - constant


class Priors(NamedTuple):
    """Gamma priors of the precisions; ``kind`` says which entries of P share one."""

    kind: str = "entry"
    projection: Gamma = Gamma(1.0, 1.0)
    weights: Gamma = Gamma(1.0, 1.0)
    bias: Gamma = Gamma(1.0, 1.0)
    noise: Gamma = Gamma(1.0, 1.0)


class Patterns(NamedTuple):
    """The distinct sets of observed outputs (m, c), and how many rows have each (m,)."""

    masks: np.ndarray
    counts: np.ndarray
    of_row: np.ndarray | None
    """Which of the sets each row has (n,); None where all rows have all outputs."""


class Standing(NamedTuple):
    """Rows that stand for more rows than they are; for the last log Z(m) is that of a tangent."""

    counts: np.ndarray
    """How often each counts (n, 1); the last may count less than nothing."""
    ones: np.ndarray
    """What multiplies the biases (n, 1): one, but for the last."""
    slopes: np.ndarray
    """Slopes (k, c) of the tangents of the last: what E[t] is beyond m."""
    constant: float
    """Sum of these tangents at m = 0."""


class Model(NamedTuple):
    """Rows, outputs and priors, which stay while the factors change."""

    ridge: Ridge
    outputs: Outputs
    observed: np.ndarray | None
    """1 where an output is known (n, c); None where all are."""
    priors: Priors
    patterns: Patterns
    n_samples: int
    standing: Standing | None = None
    """None where every row stands for itself."""


def make_model(ridge: Ridge, outputs: Outputs, priors: Priors) -> Model:
    """The model of these inputs, outputs and priors."""
    n, observed = ridge.X.shape[0], outputs.observed
    if observed is None:
        patterns = Patterns(np.ones((1, outputs.n_outputs)), np.array([n]), None)
    else:
        masks, index, counts = np.unique(observed, axis=0, return_inverse=True, return_counts=True)
        patterns = Patterns(masks, counts, index.ravel())
    return Model(ridge, outputs, observed, priors, patterns, n)


def of_rows(model: Model, rows) -> Model:
    """What the scores of some rows need of a model, by a mask; all outputs must be known."""
    known, standing = known_of(model.outputs), model.standing
    if standing is not None:
        counts, ones, slopes, constant = standing
        tangents = slopes[rows[len(known) :]]
        standing = Standing(counts[rows], ones[rows], tangents, constant)
    outputs = with_known(model.outputs, known[rows[: len(known)]])
    return model._replace(outputs=outputs, standing=standing)


def sum_shared(values, kind):
    """Sums of values (..., d, q) over the entries that share a precision."""
    if kind == "entry":
        return values
    return values.sum(axis=-2 if kind == "column" else -1)


def count_shared(kind, n_features, q):
    """How many entries of P share one precision."""
    return {"entry": 1, "column": n_features, "row": q}[kind]


def projection_precisions(squares, model, q) -> Gamma:
    """q(phi), eq. (4) of [G13], from the expected squares of the entries that share one."""
    count = count_shared(model.priors.kind, model.ridge.n_features, q)
    return precision_posterior(model.priors.projection, count, squares)


def of_entries(phi, kind, shape):
    """Precisions as (..., d, q)."""
    phi = {"entry": phi, "column": phi[..., None, :], "row": phi[..., None]}[kind]
    return np.broadcast_to(phi, shape)


def with_ones(Z, model=None):
    """Z (..., n, q) with a column of ones before it, or of what the rows of a model have there."""
    standing = None if model is None else model.standing
    ones = np.ones((*Z.shape[:-1], 1)) if standing is None else standing.ones
    return np.concatenate([ones, Z], axis=-1)


def counted(values, model, rows=None):
    """Values of the rows (n, ...), of the first or of some of them, as often as each counts."""
    if model.standing is None:
        return values
    return values * model.standing.counts[slice(len(values)) if rows is None else rows]


class Factors(NamedTuple):
    """Parameters of all factors of q."""

    phi: Gamma
    P: np.ndarray
    projected: np.ndarray
    """X P (n, q)."""
    P_covariances: Covariances
    Z: np.ndarray
    S: np.ndarray
    """Covariance of z for every pattern of observed outputs (m, q, q)."""
    S_log_det: np.ndarray
    T: np.ndarray
    T_normaliser: float
    """Sum of log Z(m) + m^2 / 2 - E[t] m at the means m that q(T) was made with."""
    psi: Gamma
    lam: Gamma
    B: np.ndarray
    """Means of [b; V] (q + 1, c)."""
    C: np.ndarray
    """Covariances of the columns of [b; V] (c, q + 1, q + 1)."""
    C_log_det: np.ndarray
    eps: Gamma | None
    """Noise precisions of numbers (c,)."""


def pack(factors: Factors):
    """Means and log scales as one vector; what a sweep recomputes first is left out."""
    L = np.linalg.cholesky(factors.C)
    below = np.tril_indices(L.shape[1], -1)
    diagonal = np.diagonal(L, axis1=1, axis2=2)
    parts = [np.log(factors.phi.scale), factors.P, factors.projected, factors.Z, factors.B]
    parts += [np.log(diagonal), L[:, below[0], below[1]]]
    parts += [] if factors.eps is None else [np.log(factors.eps.scale)]
    return join(parts)


def unpack(x, like: Factors) -> Factors:
    """Factors of the same shapes as ``like`` from a vector of `pack`."""
    size, c = like.B.shape
    below = np.tril_indices(size, -1)
    shapes = [np.shape(like.phi.scale), like.P.shape, like.projected.shape, like.Z.shape]
    shapes += [like.B.shape, (c, size), (c, len(below[0]))]
    shapes += [] if like.eps is None else [(c,)]
    log_phi, P, projected, Z, B, log_diagonal, entries, *log_eps = separate(x, shapes)
    L = np.zeros((c, size, size))
    L[:, np.arange(size), np.arange(size)] = np.exp(log_diagonal)
    L[:, below[0], below[1]] = entries
    return like._replace(
        phi=like.phi._replace(scale=np.exp(log_phi)),
        P=P,
        projected=projected,
        Z=Z,
        B=B,
        C=L @ np.swapaxes(L, 1, 2),
        C_log_det=2 * log_diagonal.sum(axis=1),
        eps=None if like.eps is None else like.eps._replace(scale=np.exp(log_eps[0])),
    )


def join(parts):
    """Arrays as one vector."""
    return np.concatenate([np.ravel(part) for part in parts])


def separate(x, shapes):
    """The arrays of these shapes of which a vector was joined."""
    stops = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(x, stops), shapes, strict=True)]


def reorder(factors: Factors, order, signs, kind) -> Factors:
    """The same fit with its components in another order and with other signs."""
    rows = np.concatenate([[0], 1 + np.asarray(order)])
    turn = np.concatenate([[1.0], signs])
    phi = np.asarray(factors.phi.scale)
    return factors._replace(
        phi=factors.phi._replace(scale=phi if kind == "row" else phi[..., order]),
        P=factors.P[:, order] * signs,
        projected=factors.projected[:, order] * signs,
        P_covariances=factors.P_covariances.take(order),
        Z=factors.Z[:, order] * signs,
        S=factors.S[:, order][:, :, order] * np.outer(signs, signs),
        psi=factors.psi._replace(scale=np.asarray(factors.psi.scale)[order]),
        B=factors.B[rows] * turn[:, None],
        C=factors.C[:, rows][:, :, rows] * np.outer(turn, turn),
    )


def score_means(factors, model=None):
    """E[V'z + b] (n, c)."""
    return with_ones(factors.Z, model) @ factors.B


def weight_squares(factors):
    """E[b^2] and below it E[v^2] (q + 1, c)."""
    return factors.B**2 + np.diagonal(factors.C, axis1=1, axis2=2).T


def weight_moments(factors):
    """E[[b; v_c] [b; v_c]'] (c, q + 1, q + 1)."""
    B = factors.B.T
    return factors.C + B[:, :, None] * B[:, None, :]


def latent_moments(factors, model):
    """Sum over the rows that observe output c of E[[1, z] [1, z]'] (c, q + 1, q + 1)."""
    Z, observed = with_ones(factors.Z, model), model.observed
    if observed is None:
        moments = np.repeat((counted(Z, model).T @ Z)[None], model.outputs.n_outputs, axis=0)
    else:
        moments = np.stack([(Z * column[:, None]).T @ Z for column in observed.T])
    counts = model.patterns.masks * model.patterns.counts[:, None]
    moments[:, 1:, 1:] += np.einsum("mc,mab->cab", counts, factors.S)
    return moments


def projection_squares(factors, kind):
    """Expected squares of P, summed over the entries that share a precision."""
    squares = sum_shared(factors.P**2 + factors.P_covariances.variance, kind)
    return squares + factors.P_covariances.rest if kind == "column" else squares


def noise_precision(factors):
    """E[eps] (c,); ones for classes and labels."""
    return np.ones(factors.B.shape[1]) if factors.eps is None else factors.eps.mean


def observed_counts(model):
    """Number of rows that observe each output (c,)."""
    return (model.patterns.masks * model.patterns.counts[:, None]).sum(axis=0)


def observed_only(values, model):
    """Values (n, c) with zeros where the output is not observed."""
    return values if model.observed is None else values * model.observed


def residual_squares(factors, model):
    """Sum over observed rows of E[(y - V'z - b)_c^2] (c,)."""
    Y = observed_only(factors.T, model)
    cross = np.sum(counted(Y * (Y - 2 * score_means(factors, model)), model), axis=0)
    return cross + _score_squares(factors, model)


def bound(factors: Factors, model: Model) -> float:
    """The lower bound (3) of [G13] on log p(y | X), for any values of the factors."""
    return (
        _score_term(factors, model)
        + _latent_term(factors, model)
        + _projection_term(factors, model)
        + _weight_term(factors, model)
    )


def _score_squares(factors, model):
    """Sum over observed rows of E[(V'z + b)_c^2] (c,)."""
    return np.einsum("cab,cab->c", weight_moments(factors), latent_moments(factors, model))


def _score_term(factors, model):
    """E log p(y, T | Z, V, b) - E log q(T); E|t|^2 cancels."""
    if factors.eps is not None:
        counts, eps = observed_counts(model), factors.eps
        fit = counts * (eps.log_mean - np.log(2 * np.pi))
        fit -= eps.mean * residual_squares(factors, model)
        return 0.5 * float(np.sum(fit)) - kl(eps, model.priors.noise)
    T = counted(observed_only(factors.T, model), model)
    agreement = np.sum(T * score_means(factors, model))
    return factors.T_normaliser + float(agreement - 0.5 * np.sum(_score_squares(factors, model)))


def _latent_term(factors, model):
    """E log p(Z | P, X) - E log q(Z)."""
    n, q = model.n_samples, factors.Z.shape[1]
    noise, counts = model.ridge.noise, model.patterns.counts
    squares = np.sum(counted((factors.Z - factors.projected) ** 2, model))
    squares += np.sum(factors.P_covariances.gram_trace)
    squares += counts @ np.trace(factors.S, axis1=1, axis2=2)
    entropy = counts @ factors.S_log_det + n * q * (1.0 - np.log(noise))
    return 0.5 * float(entropy - squares / noise)


def _projection_term(factors, model):
    """E log p(P, phi) - E log q(P, phi)."""
    kind, d, q = model.priors.kind, model.ridge.n_features, factors.P.shape[1]
    fit = count_shared(kind, d, q) * np.sum(factors.phi.log_mean)
    fit -= np.sum(factors.phi.mean * projection_squares(factors, kind))
    fit += np.sum(factors.P_covariances.log_det) + d * q
    return 0.5 * float(fit) - kl(factors.phi, model.priors.projection)


def _weight_term(factors, model):
    """E log p(b, V, lambda, psi) - E log q(b, V, lambda, psi)."""
    squares = weight_squares(factors)
    fit = np.sum(factors.lam.log_mean - factors.lam.mean * squares[0])
    fit += np.sum(factors.psi.log_mean - factors.psi.mean * squares[1:])
    fit += np.sum(factors.C_log_det) + factors.B.size
    penalty = kl(factors.lam, model.priors.bias) + kl(factors.psi, model.priors.weights)
    return 0.5 * float(fit) - penalty
