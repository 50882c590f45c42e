"""EM for the relational model with missing entries (see `model`).

The gaps of each row are given a Gaussian of their own: its mean is the conditional mean given
everything observed in the graph, its covariance that of a row whose precision is the mean
over all rows. Without links this is the exact EM of PPCA.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Method, Run
from gnomon.linalg.data import Matrix
from gnomon.models.relational import model
from gnomon.models.relational.model import Linked, State, variances_at
from gnomon.models.relational.posterior import fill, gap_blocks


class Filled(NamedTuple):
    """A state and the centred rows (n, d) with their gaps filled."""

    state: State
    rows: np.ndarray


def fit_with_gaps(start: Filled, holes, data: Linked, loop) -> tuple[State, Run, float]:
    """State, run and log likelihood where ``loop(method)`` ends.

    ``holes`` (n, d) are the centred rows with NaN for gaps.
    """
    run = loop(Method(start, partial(step, holes=holes, data=data)))
    expected, _, _ = complete(run.state, holes, data)
    state, log_likelihood = model.final_variances(run.state.state, expected)
    return state, run, log_likelihood


def step(current: Filled, holes, data: Linked) -> tuple[Filled, float]:
    """One EM step, and the bound on the log likelihood that it started from."""
    expected, rows, entropy = complete(current, holes, data)
    state, objective = model.step(current.state, expected)
    return Filled(state, rows), objective + entropy


def complete(current: Filled, holes, data: Linked) -> tuple[Linked, np.ndarray, float]:
    """Expected statistics of the rows, the filled rows, and the entropy of the gaps."""
    state, observed = current.state, ~np.isnan(holes)
    gaps = np.flatnonzero(~observed.all(axis=1))
    rows = current.rows.copy()
    rows[gaps], _ = fill(state, data.S, rows @ state.U, gaps, holes[gaps], start=rows[gaps])
    covariance, entropy = gap_covariances(state, observed[gaps], mean_noise_shares(state, data))
    X = Matrix(rows)
    total = X.squared_norm + np.trace(covariance)
    return data._replace(X=X, total=total, gap_covariance=covariance), rows, entropy


def mean_noise_shares(state: State, data: Linked) -> np.ndarray:
    """Mean of sigma2 / v over the spectrum, for every axis (q + r,)."""
    lam, counts = data.spectrum
    q, sigma2 = len(state.a), state.sigma2
    smooth = counts @ (sigma2 / variances_at(state, lam[:, None])) / counts.sum()
    return np.append(smooth, sigma2 / (state.c[q:] + sigma2))


def gap_covariances(state: State, observed, shares) -> tuple[np.ndarray, float]:
    """Sum of the covariances of missing entries (d, d), and their entropy.

    ``observed`` (m, d) are the patterns, ``shares`` the mean of sigma2 / v over the spectrum for
    every axis (q + r,): rows are taken one at a time, each with the mean precision of a row.
    """
    d = len(state.U)
    missing, counts = np.unique(~observed, axis=0, return_counts=True)
    total, entropy = np.zeros((d, d)), 0.0
    for rows, columns, covariances, log_dets in gap_blocks(state, missing, shares[None]):
        weights = counts[rows]
        where = columns[:, :, None], columns[:, None, :]
        np.add.at(total, where, weights[:, None, None] * covariances)
        constant = columns.shape[1] * (1 + np.log(2 * np.pi * state.sigma2))
        entropy += 0.5 * weights @ (constant + log_dets)
    return total, float(entropy)
