"""Rows in standard units, and the Gaussian posterior of weights on them by the cheapest route.

    z_s = X p_s + e,   e ~ N(0, noise I),   p_fs ~ N(0, 1 / phi_fs)
    Sigma_s = (diag(phi_s) + X'X / noise)^-1,   mean_s = Sigma_s X'z_s / noise    eq. (5) of [G13]

    GramRidge       Cholesky of (d, d) matrices           phi (d, q), or (d,) where columns share it
    DualRidge       Woodbury with (n, n) matrices         the same, for n much smaller than d
    SpectralRidge   one eigendecomposition of the data    phi (q,), the same for all features

No covariance is ever formed: `Covariances` has what expectations need of it. A spectral ridge
works in coordinates along the principal axes of the data, in which X'X is diagonal, so P there
has a row for each axis:

    loadings = diag(factors) axes P    acts on x - mean
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import aslinearoperator

from gnomon.linalg.data import Data, row_slices, stored_rows
from gnomon.linalg.solve import Cholesky, above_rounding, fix_signs, inverse_with_log_det
from gnomon.linalg.standardize import are_components, column_statistics
from gnomon.models.gaussian.filling import Filling, deviations

# Fewer samples than this share of the features make (n, n) matrices the cheaper ones.
DUAL_BELOW = 0.5


class Inputs(NamedTuple):
    """What maps rows to coordinates, and what the covariances of P are made of.

    Model files hold this record: its fields keep their names.
    """

    route: str
    mean: np.ndarray
    factors: np.ndarray
    """One over the standard deviation of every feature; zero where it does not vary."""
    table: Any
    """X'X ("gram"), X ("dual") or the principal axes, an array or `Spanned` ("spectral")."""
    values: np.ndarray | None
    """Eigenvalues of a spectral route."""
    noise: float


class Spanned(NamedTuple):
    """Principal axes (d, r) of wide sparse rows, as the mixtures of these that they are.

    So they take the room of the rows, where axes of 2,000 rows with 200,000 columns would take
    3 GB. Model files hold this record: its fields keep their names.
    """

    rows: Any
    """Sparse (d, n): rows in standard units, not centred, a column for each."""
    weights: np.ndarray
    """What they are mixed by (n, r): of mean zero each, which centres the rows."""

    @property
    def shape(self):
        """Numbers of features and axes."""
        return self.rows.shape[0], self.weights.shape[1]

    def __matmul__(self, P):
        return self.rows @ (self.weights @ P)

    def of_features(self, which: slice) -> np.ndarray:
        """The axes of some features, formed."""
        return self.rows[which] @ self.weights

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """Rows (m, d) along the axes (m, r)."""
        return (self.rows.T @ X.T).T @ self.weights


def read_inputs(X: Data, kind, noise, standardize: bool | str):
    """`Inputs` and the ridge for centred X in standard units, by the route for its prior."""
    columns = column_statistics(X)
    if not columns.varying.any():
        raise ValueError("X has no variation: all rows are equal; accepted are rows that differ")
    factors = np.where(columns.varying, 1.0 / _units(columns, standardize), 0.0)
    data = columns.centered.scaled(factors)
    ridge = spectral_ridge(data, noise) if kind == "column" else gram_or_dual_ridge(data, noise)
    return Inputs(ridge.route, columns.mean, factors, ridge.table, ridge.values, noise), ridge


def _units(columns, standardize):
    """What columns are divided by; "auto" has one number for principal components.

    It is the median of their deviations: the first may be a hundred times the others, and would
    leave nothing of these.
    """
    if not standardize:
        return 1.0
    unit, varying = np.where(columns.varying, columns.sd, 1.0), columns.varying
    ones = np.ones(columns.centered.shape[0])
    if standardize == "auto" and are_components(columns.centered, unit, varying, ones):
        return np.median(unit[varying])
    return unit


def standard_rows(X: Data, inputs: Inputs) -> Data:
    """Centred rows in standard units, not formed."""
    return X.less_mean(inputs.mean).scaled(inputs.factors)


def loadings(inputs: Inputs, P):
    """Weights (d, q) on centred features."""
    return inputs.factors[:, None] * standard_loadings(inputs, P)


def standard_loadings(inputs: Inputs, P):
    """Weights (d, q) on features in standard units."""
    P = inputs.table @ P if inputs.route == "spectral" else P
    return P * (inputs.factors > 0)[:, None]


def loading_variances(inputs: Inputs, phi, variance):
    """Variances (d, q) of the `loadings`, from those of P."""
    if inputs.route == "spectral":
        slices = row_slices(inputs.table.shape)
        parts = [_off_axes(_of_features(inputs.table, s), phi, variance) for s in slices]
        variance = np.concatenate(parts)
    return inputs.factors[:, None] ** 2 * variance


def _of_features(axes, which):
    return axes.of_features(which) if isinstance(axes, Spanned) else axes[which]


def _off_axes(axes, phi, variance):
    """Variances of weights on some features, from those along the axes and outside of them."""
    inside = axes**2
    outside = np.maximum(1.0 - inside.sum(axis=1, keepdims=True), 0.0)
    return inside @ variance + outside / phi


def latent_variances(inputs: Inputs, phi, q, X: Data):
    """Variances (m, q) of z for new rows: noise + x' Sigma_s x."""
    forms = _ridge_of(inputs).forms(phi, q)
    blocks = standard_rows(X, inputs).dense_blocks()
    return inputs.noise + np.concatenate([forms(block) for block in blocks])


def gap_variances(inputs: Inputs, phi, q, filling: Filling, X):
    """E[e' Sigma_s e] (n, q): what unseen parts e of rows X add to the variances of z.

    They do so by the uncertainty of the projection; that by its mean is P' Cov[e] P.
    """
    forms, (d, k) = _ridge_of(inputs).forms(phi, q), filling.W.shape
    alone, out = forms(np.eye(d)), np.empty((len(X), q))
    for rows in row_slices((len(X), k * d)):
        R, own = deviations(filling, X[rows])
        shared = forms((R * inputs.factors).reshape(-1, d)).reshape(-1, k, q)
        out[rows] = shared.sum(axis=1) + (own * inputs.factors**2) @ alone
    return out


class Covariances(NamedTuple):
    """What is needed of the covariances Sigma_s of the columns."""

    variance: np.ndarray
    """Diagonals (d, q)."""
    rest: np.ndarray
    """Variance summed over features outside the span of the data (q,)."""
    log_det: np.ndarray
    """Log determinants (q,)."""
    gram_trace: np.ndarray
    """tr(X'X Sigma_s) (q,)."""
    factor: np.ndarray
    """What the ridge solves with, one for every column, or one for all where they share it."""

    def take(self, order) -> "Covariances":
        """Those of some columns, in this order."""
        return Covariances(
            self.variance[:, order],
            self.rest[order],
            self.log_det[order],
            self.gram_trace[order],
            self.factor if len(self.factor) == 1 else self.factor[order],
        )


class _FactoredRidge:
    """What the routes by Cholesky factors share: one for every distinct column of phi."""

    values = None
    # Of each route.
    n_features: int
    _solve: Any
    _form: Any
    _matrix: Any

    def equal_precisions(self, q):
        """Precisions of one for all entries."""
        return np.ones(self.n_features)

    def solver(self, phi):
        """The function R -> Sigma_s r_s, for phi not met before."""
        return partial(self._solve, phi, self._factors(phi))

    def forms(self, phi, q):
        """The function of rows (m, d) that returns x' Sigma_s x, (m, q)."""
        pairs = list(zip(_columns(phi), self._factors(phi), strict=True))

        def evaluate(rows):
            columns = [self._form(rows, *pair) for pair in pairs]
            return np.broadcast_to(np.stack(columns, axis=1), (len(rows), q))

        return evaluate

    def _factors(self, phi):
        return [Cholesky(self._matrix(column)) for column in _columns(phi)]


class GramRidge(_FactoredRidge):
    """Cholesky factors of diag(phi_s) + X'X / noise."""

    route = "gram"

    def __init__(self, X, noise, gram=None):
        self.X, self.noise = X, noise
        self.table = double_gram(X) if gram is None else gram
        self.n_features = len(self.table)

    def with_array(self) -> "GramRidge":
        """The same with its rows as one array."""
        return GramRidge(_as_array(self.X), self.noise, self.table)

    def gram_product(self, P):
        """X'X P."""
        return self.table @ P

    def covariances(self, phi, q) -> Covariances:
        """The `Covariances` of q columns, whose factors are the matrices Sigma_s themselves."""
        pairs = [inverse_with_log_det(self._matrix(column)) for column in _columns(phi)]
        inverses = np.stack([inverse for inverse, _ in pairs])
        variance = np.diagonal(inverses, axis1=1, axis2=2).T
        log_det = -np.array([log_det for _, log_det in pairs])
        trace = self.noise * (self.n_features - np.sum(_columns(phi).T * variance, axis=0))
        return _of_columns(variance, log_det, trace, inverses, q)

    def solve(self, phi, covariances, R):
        """The columns Sigma_s r_s."""
        inverses = covariances.factor
        if len(inverses) == 1:
            return inverses[0] @ R
        return np.matmul(inverses, R.T[:, :, None])[:, :, 0].T

    def _matrix(self, column):
        precision = self.table / self.noise
        precision[np.diag_indices_from(precision)] += column
        return precision

    def _solve(self, phi, factors, R):
        return _by_column(factors, R)

    def _form(self, rows, column, factor):
        return np.sum(factor.half_solve(rows.T) ** 2, axis=0)


class DualRidge(_FactoredRidge):
    """Cholesky factors of noise I + X diag(1 / phi_s) X', by Woodbury's identity."""

    route = "dual"

    def __init__(self, X: np.ndarray, noise):
        self.X, self.noise = X, noise
        self.table = X
        self.n_features = X.shape[1]

    def with_array(self) -> "DualRidge":
        """The same: its rows are one array."""
        return self

    def gram_product(self, P):
        """X'X P."""
        return self.X.T @ (self.X @ P)

    def covariances(self, phi, q) -> Covariances:
        """The `Covariances` of q columns."""
        columns, factors = _columns(phi), self._factors(phi)
        reduction = np.stack([np.sum(f.half_solve(self.X) ** 2, axis=0) for f in factors])
        variance = ((1.0 - reduction / columns) / columns).T
        log_det = [len(self.X) * np.log(self.noise) - f.logdet() for f in factors]
        log_det = np.array(log_det) - np.log(columns).sum(axis=1)
        trace = self.noise * np.sum(reduction / columns, axis=1)
        # Upper triangles row by row are lower ones in the order that LAPACK reads.
        triangles = np.stack([factor.L.T for factor in factors])
        return _of_columns(variance, log_det, trace, triangles, q)

    def solve(self, phi, covariances, R):
        """The columns Sigma_s r_s."""
        return self._solve(phi, [Cholesky.of_factor(U.T) for U in covariances.factor], R)

    def _matrix(self, column):
        covariance = (self.X / column) @ self.X.T
        covariance[np.diag_indices_from(covariance)] += self.noise
        return covariance

    def _solve(self, phi, factors, R):
        scaled = R / _columns(phi).T
        inner = _by_column(factors, self.X @ scaled)
        return scaled - (self.X.T @ inner) / _columns(phi).T

    def _form(self, rows, column, factor):
        scaled = rows / column
        known = np.sum(factor.half_solve(self.X @ scaled.T) ** 2, axis=0)
        return np.sum(scaled * rows, axis=1) - known


class SpectralRidge:
    """Coordinates along the principal axes (d, r), where X'X is diagonal with these values.

    ``X`` maps coordinates to rows. Weights outside the span of the data keep their prior.
    """

    route = "spectral"

    def __init__(self, X, noise, axes, values):
        self.X, self.noise, self.table, self.values = X, noise, axes, values
        self.n_features = axes.shape[0]

    def with_array(self) -> "SpectralRidge":
        """The same with its rows as one array."""
        return SpectralRidge(_as_array(self.X), self.noise, self.table, self.values)

    def gram_product(self, P):
        """X'X P."""
        return self.values[:, None] * P

    def equal_precisions(self, q):
        """Precisions of one for all entries."""
        return np.ones(q)

    def covariances(self, phi, q) -> Covariances:
        """The `Covariances` of q columns, for phi (q,)."""
        precision = self._precision(phi)
        outside = self.n_features - len(self.values)
        log_det = -np.log(precision).sum(axis=0) - outside * np.log(phi)
        trace = np.sum(self.values[:, None] / precision, axis=0)
        return Covariances(1.0 / precision, outside / phi, log_det, trace, precision.T)

    def solve(self, phi, covariances: Covariances, R):
        """The columns Sigma_s r_s."""
        return R / covariances.factor.T

    def solver(self, phi):
        """The function R -> Sigma_s r_s, for phi not met before."""
        precision = self._precision(phi)
        return lambda R: R / precision

    def forms(self, phi, q):
        """The function of rows (m, d) that returns x' Sigma_s x, (m, q)."""
        variance = 1.0 / self._precision(phi)

        def evaluate(rows):
            inside = _along(self.table, rows) ** 2
            outside = np.maximum(np.sum(rows**2, axis=1) - inside.sum(axis=1), 0.0)
            return inside @ variance + outside[:, None] / phi

        return evaluate

    def _precision(self, phi):
        return phi + self.values[:, None] / self.noise


def _along(axes, rows):
    return axes.coordinates(rows) if isinstance(axes, Spanned) else rows @ axes


Ridge = GramRidge | DualRidge | SpectralRidge


def gram_or_dual_ridge(X: Data, noise) -> Ridge:
    """The route of less work for precisions that differ between features."""
    if X.shape[0] >= DUAL_BELOW * X.shape[1]:
        return GramRidge(X, noise)
    return DualRidge(np.asarray(X.as_array(), dtype=float), noise)


def spectral_ridge(X: Data, noise) -> SpectralRidge:
    """The route along the principal axes, from X'X or, where that is smaller, X X'.

    Their signs are fixed, since a random start is drawn along them: LAPACK's own depend on the
    processor.
    """
    if X.shape[1] <= X.shape[0]:
        values, axes = eigh(double_gram(X), check_finite=False)
        axes = fix_signs(axes)
        return SpectralRidge(X @ aslinearoperator(axes), noise, axes, np.maximum(values, 0.0))
    values, vectors = eigh(X.dual_gram(), check_finite=False)
    kept = above_rounding(values, X.dtype, X.shape[1])
    values, vectors = values[kept], fix_signs(vectors[:, kept])
    return SpectralRidge(vectors * np.sqrt(values), noise, _axes(X, vectors, values), values)


def _axes(X, vectors, values):
    """Principal axes of centred rows from the eigenvectors of X X'."""
    weights, stored = vectors / np.sqrt(values), stored_rows(X)
    if stored is None:
        return np.asarray(X.T @ weights, dtype=float)
    if stored.shift.any():
        weights -= weights.mean(axis=0)
    # Row by row: a sparse product would copy other orders every time.
    return Spanned(stored.array.T.tocsr().astype(float), np.ascontiguousarray(weights))


def double_gram(X: Data) -> np.ndarray:
    """X'X (d, d) with sums in double precision.

    Those of single precision depend on how rows are parted: in blocks 57,000 of them ended 1e-5
    from where they do as an array.
    """
    return X.gram() if X.is_sparse or X.dtype == np.float64 else X.reduced(_double_sums)


def _double_sums(X):
    blocks = (block.astype(float) for block in X.dense_blocks())
    return sum((block.T @ block for block in blocks), np.zeros((X.n_features,) * 2))


def _ridge_of(inputs: Inputs) -> Ridge:
    """The ridge of a fit, without its rows."""
    if inputs.route == "spectral":
        return SpectralRidge(None, inputs.noise, inputs.table, inputs.values)
    if inputs.route == "dual":
        return DualRidge(inputs.table, inputs.noise)
    return GramRidge(None, inputs.noise, inputs.table)


def _as_array(X):
    """Rows, or their coordinates, as an array."""
    return X if isinstance(X, np.ndarray) else np.asarray(X @ np.eye(X.shape[1]), dtype=float)


def _columns(phi):
    """Precisions (d,) or (d, q) as rows, one for every distinct column."""
    return phi[None] if phi.ndim == 1 else phi.T


def _by_column(factors, R):
    """R solved with the one factor, or each column with its own."""
    if len(factors) == 1:
        return factors[0].solve(R)
    return np.hstack([factor.solve(R[:, [s]]) for s, factor in enumerate(factors)])


def _of_columns(variance, log_det, trace, factor, q):
    d = len(variance)
    return Covariances(
        np.broadcast_to(variance, (d, q)),
        np.zeros(q),
        np.broadcast_to(log_det, q),
        np.broadcast_to(trace, q),
        factor,
    )
