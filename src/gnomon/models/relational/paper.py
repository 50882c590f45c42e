"""Probabilistic relational PCA [LYZ09]: PPCA of rows that are mixed over their links.

    X = 1 mu' + Z W' + E,    cov(rows of Z) = cov(rows of E) / sigma2 = Delta^-1
    Delta = gamma I + (alpha I + A)(alpha I + A) = R'R

Since (R X)'(R X) = X' Delta X, the model is PPCA of R (X - 1 mu'), with R never squared and
Delta never formed. Theorem 4 is the closed form of PPCA on these rows, and EM by (19)-(22)
is its EM. Without links and with gamma = 0, alpha = 1 this is PPCA.

    here      X     Z     W, sigma2     A     n, d, q     mu
    [LYZ09]   T'    X'    W, sigma^2    A     N, d, q     mu, (16)

Any other positive-definite precision of the rows has a root R too, and the same fit. With missing
entries see `missing`. A fixed low-pass filter in the place of R, powers of the normalised
adjacency, gives PCA of smoothed content.
"""

from functools import partial

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import Method
from gnomon.linalg import eigen
from gnomon.linalg.data import Data
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.graph import normalized
from gnomon.linalg.mixed import MANY_PRODUCTS, Mixed
from gnomon.models.gaussian import em, ppca
from gnomon.stats.gaussian import View

# Rows on which the noise of large mixed data is measured, right to about 1 %. Mixed rows are far
# less sparse than rows are, and the norm of all would cost more than the rest of the fit.
SAMPLED_ROWS = 4000
# Where the experiments of [LYZ09] start the noise variance of EM.
START_NOISE = 1e-6


def mixing(A, alpha: float, gamma: float) -> sparse.csr_array:
    """R with R'R = Delta: alpha I + A, stacked on sqrt(gamma) I where gamma is not zero."""
    eye = sparse.eye_array(A.shape[0], format="csr")
    R = sparse.csr_array(alpha * eye + A)
    if gamma == 0:
        return R
    return sparse.csr_array(sparse.vstack([R, np.sqrt(gamma) * eye], format="csr"))


def root_of(Delta) -> sparse.csr_array:
    """R with R'R = Delta for a sparse positive-definite Delta, by a factor without pivoting.

    Of a symmetric matrix P Delta P' = L U with U = D L', so that R = D^(1/2) L' P.
    """
    Delta = sparse.csc_array(Delta)
    options = {"SymmetricMode": True}
    try:
        lu = splu(Delta, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError as error:
        raise NumericalError("the precision of the rows is singular") from error
    pivots = lu.U.diagonal()
    if np.any(lu.perm_r != lu.perm_c) or not np.all(pivots > 0):
        raise NumericalError("the precision of the rows is not positive definite")
    upper = sparse.csr_array(lu.L.T) * np.sqrt(pivots)[:, None]
    return sparse.csr_array(sparse.csr_array(upper)[:, lu.perm_c])


def relational_mean(X: Data, R) -> np.ndarray:
    """The maximum-likelihood mean X' Delta 1 / (1' Delta 1), eq. (16) of [LYZ09], in float64."""
    weights = R.T @ (R @ np.ones(R.shape[1]))
    weights /= weights.sum()
    mean = np.asarray(X.T @ weights[:, None], dtype=float).ravel()
    if X.is_sparse:
        return mean
    return mean + np.asarray(X.less_mean(mean).T @ weights[:, None], dtype=float).ravel()


def closed_form(rows: Mixed, total: float, q: int, rng) -> ppca.Maximum:
    """The maximum of the likelihood for rows that are mixed or filtered, Theorem 4 of [LYZ09].

    ``total`` is the squared norm of the centred rows before that.
    """
    return ppca.closed_form(checked_spectrum(rows, total, q, rng), q, rows.n_samples)


def checked_spectrum(rows: Mixed, total: float, q: int, rng) -> Spectrum:
    """The q leading eigenpairs of mixed rows, refused where these do not vary."""
    spectrum = _spectrum(rows, q, rng)
    _check_variation(spectrum.trace, total, rows.dtype)
    return spectrum


def em_method(rows: Mixed, total: float, q: int, rng) -> Method:
    """The EM of section 4.2.2 of [LYZ09], eqs. (19)-(22), from its own start, section 5.

    That is PCA of the content for W, and 1e-6 for the noise.
    """
    _check_variation(rows.squared_norm, total, rows.dtype)
    axes = ppca.leading_spectrum(rows.X, q, rng).vectors[:, :q]
    step = partial(em.em_step, blocks=[(rows,)])
    return Method((View(np.asarray(axes, dtype=float), START_NOISE),), step)


def _check_variation(mixed, total, dtype):
    """Refuse rows that cancel over their links, so that nothing but rounding is left."""
    if mixed <= np.finfo(dtype).eps * total:
        raise ValueError(
            "X has no variation left once its rows are mixed over the links: linked rows cancel; "
            "accepted are relation='paper' with gamma > 0, and relation='learnt'"
        )


def _spectrum(rows, q, rng) -> Spectrum:
    """Leading eigenpairs, and the energy of all of them."""
    if not eigen.suits_lanczos(rows, q):
        return ppca.leading_spectrum(rows, q, rng)
    values, vectors = eigen.from_lanczos(rows, q, rng)
    n, products = rows.shape[0], rows.R.nnz * rows.shape[1]
    if n <= SAMPLED_ROWS or products < MANY_PRODUCTS:
        return Spectrum(values, vectors, rows.squared_norm)
    sample = rows.rows(np.sort(rng.choice(n, SAMPLED_ROWS, replace=False)))
    inside = np.asarray(sample @ vectors.astype(rows.dtype), dtype=float)
    outside = (sample.squared_norm - np.sum(inside**2)) * n / SAMPLED_ROWS
    return Spectrum(values, vectors, float(values.sum() + max(outside, 0.0)))


def of_row(view: View, scale: float) -> View:
    """The view of a row with this Delta_ii, whose covariance is (W W' + sigma2 I) / Delta_ii."""
    return View(view.W / np.sqrt(scale), view.sigma2 / scale)


def log_density(view: View, centered: Data, A, alpha: float, gamma: float) -> float:
    """Log density of all rows, eq. (14) of [LYZ09], from the view of a row without links."""
    scale = alpha**2 + gamma
    mixed = Mixed(mixing(A, alpha, gamma), centered)
    of_mixed = View(view.W * np.sqrt(scale), view.sigma2 * scale)
    constant = 0.5 * centered.shape[1] * log_determinant(A, alpha, gamma)
    return em.e_step((of_mixed,), (mixed,))[2] + constant


def log_determinant(A, alpha: float, gamma: float) -> float:
    """Logarithm of |Delta| from a sparse LU of (alpha + i sqrt(gamma)) I + A; -inf if singular.

    Erratum E-LYZ09-2: a singular Delta is a singular precision, and has no density.
    """
    eye = sparse.eye_array(A.shape[0], format="csc")
    shifted = sparse.csc_array((alpha + 1j * np.sqrt(gamma)) * eye + A)
    try:
        diagonal = splu(shifted).U.diagonal()
    except RuntimeError:
        return -np.inf
    with np.errstate(divide="ignore"):
        return 2.0 * float(np.sum(np.log(np.abs(diagonal))))


def neighbour_sums(A, Z, alpha: float) -> np.ndarray:
    """(alpha I + A) Z over alpha: latent variables of neighbour sums, in the scale of a row's."""
    return (alpha * Z + A @ Z) / alpha


def filtered(A, X: Data, power: int) -> Data:
    """S^power X for the normalised adjacency S with self-loops, never formed."""
    S = normalized(A).astype(X.dtype)
    for _ in range(power):
        X = Mixed(S, X)
    return X


def smooth(A, Z, power: int) -> np.ndarray:
    """S^power Z, formed."""
    S = normalized(A)
    for _ in range(power):
        Z = S @ Z
    return Z


def filtered_log_density(view: View, centered: Data, A, power: int) -> float:
    """Log density of the smoothed rows."""
    return em.e_step((view,), (filtered(A, centered, power),))[2]
