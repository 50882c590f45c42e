"""What a gap may hold, for models that have no density of x: PPCA of columns in standard units.

    u = (x - mean) / scale = W z + e,    z ~ N(0, I),    e ~ N(0, noise I)

    E[x | x_o]      fills a row that observes x_o
    Cov[x | x_o]    widens what is said of it; of anything linear in x it is P' Cov[x | x_o] P

Units are those of the columns, so that none is filled by the loudest ones. What is not linear in
x, as a kernel, is seen at draws from N(E[x | x_o], Cov[x | x_o]).
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gnomon.inference.loop import iterate
from gnomon.linalg.blocks import Made
from gnomon.linalg.data import Data, as_data, check_columns, has_gaps
from gnomon.linalg.solve import fix_signs, ranks_of_rows, threads_for
from gnomon.linalg.standardize import varies
from gnomon.models.gaussian import gaps, patterns
from gnomon.stats.gaussian import NOISE_FLOOR

# On three sets with 30 % of gaps 5 to 8 components fill best and 12 no better
# (benchmarks/gaps.py --sizes); half of the columns leave the noise something.
MOST_COMPONENTS, SHARE_OF_COLUMNS = 8, 0.5
# Rows that PPCA learns from, evenly taken where there are more: so few components are known then.
MOST_ROWS = 2000
# EM ends at so many steps or when entries gain less than so many nats: fillings settle early.
MAX_ITER, TOL = 200, 1e-5


class Filling(NamedTuple):
    """PPCA by which gaps are filled: mean (d,), loadings (d, q), noise variance, scale (d,).

    Loadings and noise are in units of the scale. Model files hold this record: its fields keep
    their names.
    """

    mean: np.ndarray
    W: np.ndarray
    noise: float
    scale: np.ndarray | float = 1.0


def learn(X, weights=None) -> Filling | None:
    """The filling of an array, NaN for gaps; None for rows that are sparse or in whole blocks."""
    in_blocks = isinstance(X, Data) and X.has_gaps
    if not (in_blocks or isinstance(X, np.ndarray)):
        return None
    check_columns(X)
    rows = np.arange(0, X.shape[0], 1 + X.shape[0] // MOST_ROWS)
    X = (X.rows(rows).as_array() if in_blocks else X[rows]).astype(float)
    weights = np.ones(len(X)) if weights is None else weights[rows]
    mean, scale = _units(X, weights)
    U = (X - mean) / scale
    q = max(1, min(MOST_COMPONENTS, int(SHARE_OF_COLUMNS * X.shape[1]), len(X) - 1))
    with threads_for(as_data(U)):
        W, center, noise = _of_gaps(U, weights, q) if has_gaps(U) else _complete(U, weights, q)
    # Draws go along the loadings: their signs must not be left to rounding.
    return Filling(mean + scale * center, fix_signs(W), float(noise), scale)


def fill(filling: Filling, X) -> Any:
    """Rows in the dtype of X, gaps at their means given the rest of the row.

    Rows in blocks are filled each time they are needed, and count as known from then on.
    """
    if not has_gaps(X):
        return X
    if isinstance(X, Data):
        return Made(X, partial(fill, filling), patterns.PART_ROWS)
    U = gaps.fill(*_in_units(filling, X))[0]
    return np.where(np.isnan(X), filling.mean + filling.scale * U, X).astype(X.dtype, copy=False)


def covariances(filling: Filling, X, P) -> tuple[np.ndarray, np.ndarray]:
    """P' Cov[x | x_o] P (p, k, k) for the patterns of gaps in X, and which of them a row has."""
    missing, pattern = np.unique(np.isnan(X), axis=0, return_inverse=True)
    scaled = np.asarray(P, dtype=float) * np.reshape(filling.scale, (-1, 1))
    found = covariances_of_gaps(scaled, filling.W, filling.noise, missing.astype(float))
    return found, pattern.ravel()


def covariances_of_gaps(coef, W, sigma2, missing) -> np.ndarray:
    """The same, coef' Cov[x | x_o] coef (p, c, c), for patterns (p, d) of gaps and plain PPCA."""
    (d, q), c, p = W.shape, coef.shape[1], len(missing)
    # Sizes are spelt out: of a single class there is no column, and -1 has no answer.
    products = (W[:, :, None] * W[:, None, :]).reshape(d, q * q) / sigma2
    A = np.eye(q) + ((1.0 - missing) @ products).reshape(p, q, q)
    through = (coef[:, :, None] * W[:, None, :]).reshape(d, c * q)
    through = (missing @ through).reshape(p, c, q)
    own = (coef[:, :, None] * coef[:, None, :]).reshape(d, c * c)
    shared = through @ np.linalg.solve(A, np.swapaxes(through, 1, 2))
    return shared + sigma2 * (missing @ own).reshape(p, c, c)


class Deviations(NamedTuple):
    """Cov[x | x_o] = R'R + diag(own) of every row: R (n, q, d), own (n, d)."""

    R: np.ndarray
    own: np.ndarray


def deviations(filling: Filling, X) -> Deviations:
    """How rows may lie about what `fill` gives, zero where they are observed."""
    _, spread = gaps.posterior(*_in_units(filling, X))
    missing = np.isnan(X) * filling.scale
    through = np.swapaxes(np.linalg.cholesky(spread), 1, 2) @ filling.W.T
    return Deviations(through * missing[:, None, :], filling.noise * missing**2)


def draws(filling: Filling, X, size, rng, kinds=None) -> Iterator[np.ndarray]:
    """``size`` copies of X with gaps drawn given the rest of the row.

    All rows share the random numbers of a copy, so that what is drawn of one does not depend on
    those beside it; or rows of one number (n,) in ``kinds`` do.
    """
    means, spread = gaps.posterior(*_in_units(filling, X))
    L, missing = np.linalg.cholesky(spread), np.isnan(X)
    kinds = np.zeros(len(X), dtype=int) if kinds is None else kinds
    n_kinds = kinds.max(initial=0) + 1
    for _ in range(size):
        normals = rng.standard_normal((n_kinds, means.shape[1]))[kinds]
        z = means + np.einsum("nij,nj->ni", L, normals)
        noise = np.sqrt(filling.noise) * rng.standard_normal((n_kinds, X.shape[1]))[kinds]
        drawn = filling.mean + filling.scale * (z @ filling.W.T + noise)
        yield np.where(missing, drawn, X).astype(X.dtype, copy=False)


def copies(filling: Filling, X, size, rng) -> tuple[np.ndarray, np.ndarray]:
    """Rows without gaps once, the others ``size`` times with gaps drawn; which row each one is.

    Random numbers go by the length of a row, so that neither the order of rows nor their
    repetition counts.
    """
    holed = np.flatnonzero(np.isnan(X).any(axis=1))
    whole = np.setdiff1d(np.arange(len(X)), holed)
    lengths = np.nansum(((X[holed] - filling.mean) / filling.scale) ** 2, axis=1)
    drawn = list(draws(filling, X[holed], size, rng, ranks_of_rows(lengths)))
    return np.concatenate([X[whole], *drawn]), np.concatenate([whole, np.tile(holed, size)])


def second_moments(drawn: Iterable[np.ndarray], center) -> np.ndarray:
    """Second moments (n, k, k) about ``center`` (n, k) of what draws give."""
    total, size = np.zeros((*center.shape, center.shape[1])), 0
    for values in drawn:
        away = values - center
        total, size = total + away[:, :, None] * away[:, None, :], size + 1
    return total / max(size, 1)


def _units(X, weights):
    """Means and standard deviations of what columns observe; one for those that do not vary."""
    seen = ~np.isnan(X)
    counts = np.maximum(weights @ seen, np.finfo(float).tiny)
    mean = weights @ np.where(seen, X, 0.0) / counts
    sd = np.sqrt(weights @ np.where(seen, X - mean, 0.0) ** 2 / counts)
    return mean, np.where(varies(sd, mean), sd, 1.0)


def _of_gaps(U, weights, q):
    data = patterns.group_rows(U, np.zeros(U.shape[1], dtype=int), weights)
    state = gaps.maximise(data, q, iterate, max_iter=MAX_ITER, tol=TOL).state
    return state.W, state.mean, state.noise[0]


def _complete(U, weights, q):
    """PPCA in closed form, eqs. (7)-(8) of [TB99], by the smaller side of the rows."""
    n, d = weights.sum(), U.shape[1]
    rows = U * np.sqrt(weights / n)[:, None]
    wide = len(rows) < d
    values, V = np.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    values, V = np.maximum(values[::-1][:q], 0.0), V[:, ::-1][:, :q]
    V = rows.T @ V / np.sqrt(np.maximum(values, np.finfo(float).tiny)) if wide else V
    total = float(np.sum(rows**2))
    noise = max((total - values.sum()) / max(d - q, 1), NOISE_FLOOR * max(total, 1.0) / d)
    return V * np.sqrt(np.maximum(values - noise, 0.0)), np.zeros(d), noise


def _in_units(filling, X):
    """PPCA as the model of rows with gaps, and the rows in its units."""
    state = gaps.State(filling.W, np.zeros(len(filling.mean)), np.array([filling.noise]))
    U = (np.asarray(X, dtype=float) - filling.mean) / filling.scale
    groups = np.zeros(U.shape[1], dtype=int)
    return state, patterns.group_rows(U, groups, shift=np.zeros(U.shape[1]))
