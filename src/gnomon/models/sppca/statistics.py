"""What the likelihood of SPPCA is made of: its parameters, its noise, statistics of the data.

    z ~ N(0, I),   x = W z + e_x,   y = mean_y + W_y z + e_y,   noise sigma2 and sigma2_y

    here        W, sigma2     W_y, sigma2_y    A    q, d, c    n, n_1
    [YYTKW06]   W_x, s_x^2    W_y, s_y^2       A    K, M, L    N, N_1

All rows have x, some have y, and of those some lack a few outputs. The likelihood needs of the
rows without y only the second moments of x; of those with y only the moments of [x, y, 1].
Coordinates diagonalise the moments of x. They come by the route that suits the shape of X:

    moments    X'X in one pass, then free of n                 d moderate
    dual       X X', coordinates in the span of the rows       n small

Both are exact. `fit_by_products` makes the same statistics of its small problem, with the
energy outside of its basis counted in the total.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data, check_spread
from gnomon.linalg.solve import above_rounding

# Shares of the mean variance below which noise is not let: where the latent variables can
# explain a view wholly its noise would run to zero and the likelihood to infinity. Measured:
# EM with parameter expansion still fails at times with 1e-9, and creeps towards zero noise of
# a handful of labels unless that of y stops at 1e-3.
INPUT_FLOOR = 1e-6
OUTPUT_FLOOR = 1e-3
# The likelihood counts n d inputs: this many nats per labelled row (times the tolerance)
# make sure that the few outputs have converged too.
NATS_PER_LABEL = 1e4
TINY = np.finfo(float).tiny


class State(NamedTuple):
    """Loadings W (m, q) and W_y (c, q), noise sigma2 and sigma2_y (c,), mean of y (c,)."""

    W: np.ndarray
    sigma2: float
    W_y: np.ndarray
    sigma2_y: np.ndarray
    mean_y: np.ndarray


class Noise(NamedTuple):
    """What is learnt about noise: nothing where fixed, one number where a ratio ties both.

    ``per_output`` learns a level for each output; floors bind what is learnt.
    ``learn_mean`` False keeps the mean of y; ``prior_x``, ``prior_y`` are the precisions of a
    Gaussian prior on the loadings.
    """

    floor_x: float
    floor_y: np.ndarray
    fixed: tuple[float, float] | None = None
    ratio: float | None = None
    per_output: bool = False
    learn_mean: bool = True
    prior_x: float = 0.0
    prior_y: float = 0.0


class Outputs(NamedTuple):
    """Rows T (p, m) of x with outputs Y (p, c), zero where not seen, and the column of ones.

    ``pattern`` (p,) says which outputs a row has: row ``pattern`` of ``seen`` (P, c).
    Weighted rows are multiplied by the roots of their weights, the ones included, and
    ``counts`` (P,) adds the weights; only second moments count.
    """

    T: np.ndarray
    Y: np.ndarray
    ones: np.ndarray
    pattern: np.ndarray
    seen: np.ndarray
    counts: np.ndarray

    @property
    def alike(self) -> bool:
        """Whether all rows have all outputs."""
        return len(self.counts) == 1 and bool(self.seen.all())

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows (c,), by weight, that have an output."""
        return self.counts @ self.seen


class Statistics(NamedTuple):
    """All a fit needs: number of rows n, features d, total energy, moments g (m,), outputs."""

    n: float
    d: int
    energy: float
    g: np.ndarray
    outputs: Outputs


def noise_rule(stats: Statistics, settings) -> Noise:
    """What the settings `noise`, `target_mean` and `prior` mean for these data."""
    variance_x = stats.energy / (stats.n * stats.d)
    return noise_for(variance_x, output_means(stats.outputs)[1], settings)


def noise_for(variance_x, variance_y, settings) -> Noise:
    """The same for a mean variance of x and variances (c,) of y, to which a prior is relative."""
    noise = settings.noise
    return Noise(
        *floors(variance_x, variance_y),
        fixed=noise if isinstance(noise, tuple) else None,
        ratio=noise if isinstance(noise, float) else None,
        per_output=noise == "per_output",
        learn_mean=settings.target_mean == "likelihood",
        prior_x=settings.prior / variance_x,
        prior_y=settings.prior / (variance_y.mean() if variance_y.any() else 1.0),
    )


def floors(variance_x, variance_y) -> tuple[float, np.ndarray]:
    """Least noise of x and of every output (c,); what hardly varies takes it of a typical one."""
    typical = variance_y.mean() if variance_y.size else 0.0
    least = OUTPUT_FLOOR * np.maximum(variance_y, OUTPUT_FLOOR * typical)
    # Where no output varies, any noise far below that of a standardised one will do.
    return INPUT_FLOOR * variance_x, np.where(least > 0, least, 1e-12)


class FreeLevels(NamedTuple):
    """The noise levels [x, y_1, ..., y_c] are ``factor`` times free numbers ``[group]``.

    The first levels are the free numbers themselves. They have floors (k,); k is zero where
    the noise is fixed.
    """

    group: np.ndarray
    factor: np.ndarray
    floors: np.ndarray


def free_levels(noise: Noise, c) -> FreeLevels:
    """How c + 1 noise levels follow from the numbers that are learnt."""
    group, factor = np.zeros(c + 1, dtype=int), np.ones(c + 1)
    if noise.fixed is not None:
        return FreeLevels(group, factor, np.zeros(0))
    if noise.ratio is not None:
        factor[1:] = noise.ratio
        return FreeLevels(group, factor, np.array([noise.floor_x]))
    if noise.per_output or not c:
        return FreeLevels(np.arange(c + 1), factor, np.append(noise.floor_x, noise.floor_y))
    group[1:] = 1
    return FreeLevels(group, factor, np.array([noise.floor_x, noise.floor_y.mean()]))


def units(noise: Noise) -> tuple[float, np.ndarray]:
    """A standard deviation of x and one of each output (c,), of which the floors are shares."""
    return float(np.sqrt(noise.floor_x / INPUT_FLOOR)), np.sqrt(noise.floor_y / OUTPUT_FLOOR)


def learnt_levels(squares, sizes, noise: Noise) -> np.ndarray:
    """Noise levels [x, y_1, ..., y_c] from the expected squares and numbers of their entries."""
    group, factor, least = free_levels(noise, len(squares) - 1)
    total = np.bincount(group, squares / factor, len(least))
    free = total / np.maximum(np.bincount(group, sizes, len(least)), TINY)
    return factor * np.maximum(free, least)[group]


def tied(levels, noise: Noise) -> np.ndarray:
    """Noise levels [x, y_1, ...] as the rule fixes them, or ties those of y to that of x."""
    outputs = np.arange(len(levels)) > 0
    if noise.fixed is not None:
        return np.where(outputs, noise.fixed[1], noise.fixed[0])
    if noise.ratio is not None:
        return np.where(outputs, noise.ratio * levels[0], levels)
    return levels


def at_floor(state: State, noise: Noise) -> tuple[bool, bool]:
    """Whether the noise of x, and that of any output, is held by its floor."""
    least = free_levels(noise, len(state.mean_y)).floors
    levels = np.append(state.sigma2, state.sigma2_y)[: len(least)]
    # The logarithm of a floor and back rounds.
    low = levels <= 1.001 * least
    return bool(low[:1].any()), bool(low[1:].any())


def tolerance(stats: Statistics, tol) -> float:
    """Nats below which a step counts as no change, for a tolerance per entry of X."""
    labelled = stats.outputs.counts.sum()
    whole = tol * stats.n * stats.d
    return min(whole, tol * NATS_PER_LABEL * labelled) if labelled else whole


def has_closed_form(stats: Statistics, noise: Noise) -> bool:
    """Whether all rows have all outputs, which vary, with noise of one level for each view."""
    outputs = stats.outputs
    if not output_means(outputs)[1].any():
        return False
    everywhere = outputs.alike and np.isclose(outputs.counts.sum(), stats.n, rtol=1e-12)
    return everywhere and not noise.per_output and noise.prior_x == 0 == noise.prior_y


def from_moments(X: Data, Y, observed, weights=None) -> tuple[Statistics, np.ndarray]:
    """Statistics of centred X (weighted where it is) and its principal axes (d, d)."""
    stats, axes = input_moments(X)
    labelled = observed.T.any(axis=0)
    rows = int(labelled.sum())
    complete = rows > 0 and bool(observed[labelled].all())
    if complete and rows > 2 * (X.n_features + Y.shape[1]):
        found = _outputs_by_moments(X, Y, labelled, weights, stats.g, axes)
    elif rows:
        T = np.asarray(X.rows(labelled) @ axes, dtype=float)
        found = _labelled_outputs(T, Y, observed, labelled, weights)
    else:
        found = no_outputs(len(axes), Y.shape[1])
    return stats._replace(outputs=found), axes


def input_moments(X: Data) -> tuple[Statistics, np.ndarray]:
    """Statistics of centred X without outputs, and its principal axes (d, d)."""
    S = X.gram()
    energy = check_spread(float(np.trace(S)), X.dtype)
    g, axes = np.linalg.eigh(S)
    g, axes = np.maximum(g[::-1], 0.0), axes[:, ::-1]
    return Statistics(X.n_samples, X.n_features, energy, g, no_outputs(len(g))), axes


def from_dual(X: Data, Y, observed, weights=None) -> tuple[Statistics, np.ndarray]:
    """Statistics of centred X with few rows and an orthonormal basis (d, m) of their span."""
    K = X.dual_gram()
    energy = check_spread(float(np.trace(K)), X.dtype)
    g, U = np.linalg.eigh(K)
    g, U = g[::-1], U[:, ::-1]
    kept = above_rounding(g, X.dtype)
    g, U = g[kept], U[:, kept]
    axes = np.asarray(X.T @ U, dtype=float) / np.sqrt(g)
    labelled = observed.T.any(axis=0)
    T = (U * np.sqrt(g))[labelled]
    found = _labelled_outputs(T, Y, observed, labelled, weights)
    return Statistics(X.n_samples, X.n_features, energy, g, found), axes


def _labelled_outputs(T, Y, observed, labelled, weights):
    own = None if weights is None else weights[labelled]
    return outputs(T, Y[labelled], observed[labelled], own)


def _outputs_by_moments(X, Y, labelled, weights, g, axes):
    """Moments of [x, y, 1] over the labelled rows, which are too many to keep."""
    all_of_them = labelled.all()
    rows = X if all_of_them else X.rows(labelled)
    squares = np.diag(g) if all_of_them else axes.T @ rows.gram() @ axes
    roots = np.ones(labelled.sum()) if weights is None else np.sqrt(weights[labelled])
    rest = np.empty((len(roots), Y.shape[1] + 1))
    np.multiply(Y if all_of_them else Y[labelled], roots[:, None], out=rest[:, :-1])
    rest[:, -1] = roots
    cross = axes.T @ np.asarray(rows.T @ rest, dtype=float)
    J = np.block([[squares, cross], [cross.T, rest.T @ rest]])
    return outputs_from_moments(J, axes.shape[1], float(roots @ roots))


def outputs(T, Y, observed, weights=None) -> Outputs:
    """Labelled rows as `Outputs`, grouped by which outputs they have.

    Rows of T come multiplied by the roots of their weights, rows of Y do not.
    """
    if not len(T):
        return no_outputs(T.shape[1], Y.shape[1])
    seen, pattern = np.unique(observed, axis=0, return_inverse=True)
    pattern = pattern.ravel()
    weights = np.ones(len(T)) if weights is None else weights
    counts = np.bincount(pattern, weights, minlength=len(seen))
    roots = np.sqrt(weights)
    return Outputs(T, np.where(observed, Y, 0.0) * roots[:, None], roots, pattern, seen, counts)


def shrunk(rows: Outputs) -> Outputs:
    """The same moments by fewer rows, where all rows have the same outputs and are many."""
    width = rows.T.shape[1] + rows.Y.shape[1] + 1
    if not rows.alike or len(rows.T) <= 2 * width:
        return rows
    joint = np.hstack([rows.T, rows.Y, rows.ones[:, None]])
    return outputs_from_moments(joint.T @ joint, rows.T.shape[1], rows.counts[0])


def outputs_from_moments(J, m, count) -> Outputs:
    """`Outputs` from the moments J of [x, y, 1] (m + c + 1 rows); all outputs are seen."""
    energies = np.diagonal(J)
    # Inputs and outputs may differ by many orders; what is empty within each is rounding.
    largest = np.where(np.arange(len(J)) < m, energies[:m].max(initial=0.0), energies[m:].max())
    least = np.maximum(np.finfo(float).eps * largest, TINY)
    scale = np.sqrt(np.maximum(energies, least))
    values, vectors = np.linalg.eigh(J / np.outer(scale, scale))
    # What is zero in all rows stays zero: of what rounding leaves a fit would make something.
    rows = (np.sqrt(np.maximum(values, 0.0)) * vectors).T * np.where(energies > 0, scale, 0.0)
    seen = np.ones((1, rows.shape[1] - m - 1), dtype=bool)
    pattern = np.zeros(len(rows), dtype=int)
    return Outputs(rows[:, :m], rows[:, m:-1], rows[:, -1], pattern, seen, np.array([float(count)]))


def no_outputs(m, c=0) -> Outputs:
    """The `Outputs` of no row."""
    nothing = np.zeros((0, c))
    pattern = np.zeros(0, dtype=int)
    return Outputs(np.zeros((0, m)), nothing, np.zeros(0), pattern, nothing > 0, np.zeros(0))


def counted_outputs(c, count) -> Outputs:
    """The `Outputs` of no row, where so many (by weight) are known to have them elsewhere."""
    seen, counts = np.ones((1, c), dtype=bool), np.array([float(count)])
    return no_outputs(0, c)._replace(seen=seen, counts=counts)


def output_means(outputs: Outputs) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance (c,) of every output over the rows that have it."""
    sizes = np.maximum(outputs.sizes, TINY)
    mean = outputs.ones @ outputs.Y / sizes
    return mean, np.maximum(np.sum(outputs.Y**2, axis=0) / sizes - mean**2, 0.0)
