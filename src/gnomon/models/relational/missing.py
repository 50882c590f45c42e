"""PRPCA of the paper with missing entries: EM on the likelihood of what is observed.

    E = X - 1 mu' ~ N(0, Delta^-1 x C)
    C = W W' + sigma2 I,    K = Delta x C^-1, the precision of all entries

    E_M = -K_MM^-1 K_MO E_O      means of the entries M that are missing
    T = E'Delta E + spread       expected second moment; its closed form, Theorem 4 of [LYZ09], is
                                 the M-step, and (16) on the filled rows that of mu

``spread`` sums Delta_ik Cov(E_ij, E_kl) over pairs of missing entries, as a (d, d) matrix. Up to
some number of gaps K_MM is factored, and all is exact. With more, gaps of different rows are taken
as independent given what is observed: the means are the same, and the objective a lower bound.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import Method, Run, anderson
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.solve import Cholesky
from gnomon.models.gaussian import ppca
from gnomon.stats import gaussian
from gnomon.stats.gaussian import View

# Gaps up to which the precision of all of them is factored, in some tenths of a second a step.
MOST_EXACT = 1000
# Conjugate gradients end at this share of the right-hand side, far below what a step changes.
CG_TOLERANCE = 1e-8


class Rows(NamedTuple):
    """Rows (n, d) with NaN for gaps, their precision (n, n), and the places of the gaps."""

    X: np.ndarray
    Delta: sparse.csr_array
    places: tuple[np.ndarray, ...]


class State(NamedTuple):
    """Relational mean, loadings with noise, and the rows with their gaps filled."""

    mean: np.ndarray
    view: View
    filled: np.ndarray


def maximise(X, Delta, filled, q, loop, *, max_iter, tol) -> Run:
    """The maximum of the likelihood of the observed entries, from rows that are filled somehow."""
    rows = Rows(X, sparse.csr_array(Delta), np.nonzero(np.isnan(X)))
    start = m_step(filled, 0.0, rows, q)
    method = Method(start, partial(step, rows=rows))
    unit = float(np.sqrt(np.nanmean((X - start.mean) ** 2))) or 1.0
    like = partial(_unpack, like=start, unit=unit)
    method = anderson(method, partial(_pack, unit=unit), like)
    return loop(method, max_iter=max_iter, tol=tol * (X.size - len(rows.places[0])))


def step(state: State, rows: Rows) -> tuple[State, float]:
    """One EM step, and the log likelihood, less d/2 log |Delta|, of the state it was given."""
    exact = len(rows.places[0]) <= MOST_EXACT
    complete = exactly if exact else row_by_row
    filled, spread, log_det = complete(state, rows)
    E = filled - state.mean
    size, (n, d) = len(rows.places[0]), rows.X.shape
    M = Cholesky(state.view.sigma2 * np.eye(state.view.W.shape[1]) + state.view.W.T @ state.view.W)
    log_det_c = (d - state.view.W.shape[1]) * np.log(state.view.sigma2) + M.logdet()
    distance = np.vdot(E, rows.Delta @ _by_precision(state.view, E))
    constant = (n * d - size) * np.log(2 * np.pi) + n * log_det_c + log_det
    return m_step(filled, spread, rows, state.view.W.shape[1]), -0.5 * float(constant + distance)


def m_step(filled, spread, rows: Rows, q) -> State:
    """Mean (16) and closed form of Theorem 4 of [LYZ09] from expected moments."""
    weights = rows.Delta @ np.ones(len(filled))
    mean = weights @ filled / weights.sum()
    E = filled - mean
    T = E.T @ (rows.Delta @ E) + spread
    values, vectors = np.linalg.eigh((T + T.T) / 2)
    spectrum = Spectrum(
        np.maximum(values[::-1][:q], 0.0), vectors[:, ::-1][:, :q], float(np.trace(T))
    )
    return State(mean, ppca.closed_form(spectrum, q, len(filled)).view, filled)


def exactly(state: State, rows: Rows):
    """Filled rows, spread (d, d) and log |K_MM| by a factor of K_MM."""
    (i, j), d = rows.places, rows.X.shape[1]
    C_inverse = gaussian.precision(*state.view)
    between = rows.Delta[i][:, i].toarray()
    try:
        factor = Cholesky(between * C_inverse[np.ix_(j, j)])
    except NumericalError as error:
        raise ValueError(
            "X has gaps that the links leave without a finite variance; accepted are gamma > 0, "
            "relation='learnt', and rows without gaps"
        ) from error
    E = np.where(np.isnan(rows.X), 0.0, rows.X - state.mean)
    filled = E + state.mean
    filled[i, j] += factor.solve(-(rows.Delta @ _by_precision(state.view, E))[i, j])
    pick = sparse.csr_array((np.ones(len(j)), (np.arange(len(j)), j)), shape=(len(j), d))
    return filled, pick.T @ (between * factor.solve(np.eye(len(j)))) @ pick, factor.logdet()


def row_by_row(state: State, rows: Rows):
    """The same with the gaps of each row on their own; log |K_MM| is then an upper bound."""
    filled = _conditional_means(state, rows)
    (W, sigma2), (_, d) = state.view, rows.X.shape
    missing, which = np.unique(np.isnan(rows.X), axis=0, return_inverse=True)
    counts, own = np.bincount(which.ravel()), np.log(rows.Delta.diagonal())
    whole = Cholesky(np.eye(W.shape[1]) + W.T @ W / sigma2).logdet()
    spread, log_det = np.zeros((d, d)), float(np.isnan(rows.X).sum(axis=1) @ own)
    for gaps, count in zip(missing, counts, strict=True):
        A = Cholesky(np.eye(W.shape[1]) + W[~gaps].T @ W[~gaps] / sigma2)
        S = W[gaps] @ A.solve(W[gaps].T) + sigma2 * np.eye(gaps.sum())
        spread[np.ix_(gaps, gaps)] += count * S
        log_det -= count * (gaps.sum() * np.log(sigma2) + whole - A.logdet())
    return filled, spread, log_det


def _conditional_means(state, rows):
    """Rows with their gaps at their means given all that is observed, by conjugate gradients."""
    i, j = rows.places
    E = np.where(np.isnan(rows.X), 0.0, rows.X - state.mean)
    content = np.zeros_like(E)

    def product(x):
        content[i, j] = x
        return (rows.Delta @ _by_precision(state.view, content))[i, j]

    operator = LinearOperator((len(i), len(i)), matvec=product, dtype=float)
    guess = (state.filled - state.mean)[i, j]
    right = -(rows.Delta @ _by_precision(state.view, E))[i, j]
    found, _ = cg(operator, right, guess, rtol=CG_TOLERANCE, maxiter=500)
    filled = E + state.mean
    filled[i, j] += found
    return filled


def _by_precision(view, E):
    """E C^-1, through the q x q matrix of PPCA."""
    W, sigma2 = view
    M = Cholesky(sigma2 * np.eye(W.shape[1]) + W.T @ W)
    return (E - M.solve((E @ W).T).T @ W.T) / sigma2


def _pack(state, unit):
    W, mean = state.view.W / unit, state.mean / unit
    return np.concatenate([W.ravel(), mean, [np.log(state.view.sigma2)]])


def _unpack(x, like, unit):
    size, d = like.view.W.size, len(like.mean)
    view = View(x[:size].reshape(like.view.W.shape) * unit, float(np.exp(x[-1])))
    return State(x[size : size + d] * unit, view, like.filled)
