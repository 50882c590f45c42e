"""EM for the relational model with missing entries.

The gaps of each row are given a Gaussian of their own: its mean is the conditional mean given
everything observed in the graph, its covariance that of a row whose precision is the mean
over all rows. Without links this is the exact EM of PPCA.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Matrix
from gnomon.models import relational
from gnomon.models.relational import Linked, Relational, variances_at
from gnomon.models.relational_posterior import fill, gap_covariances


class Gapped(NamedTuple):
    """A state and the centred rows (n, d) with their gaps filled."""

    state: Relational
    filled: np.ndarray


def complete(gapped: Gapped, holes, data: Linked) -> tuple[Linked, np.ndarray, float]:
    """Expected statistics of the rows, the filled rows, and the entropy of the gaps.

    ``holes`` (n, d) are the centred rows with NaN for gaps.
    """
    state = gapped.state
    observed = ~np.isnan(holes)
    rows = np.flatnonzero(~observed.all(axis=1))
    filled = gapped.filled.copy()
    filled[rows], _ = fill(state, data.S, filled @ state.U, rows, holes[rows], start=filled[rows])
    spread, entropy = gap_covariances(state, observed[rows], _noise_shares(state, data))
    X = Matrix(filled)
    expected = data._replace(X=X, total=X.squared_norm + np.trace(spread), spread=spread)
    return expected, filled, entropy


def step(gapped: Gapped, holes, data: Linked) -> tuple[Gapped, float]:
    """One EM step, and the bound on the log likelihood that it started from."""
    expected, filled, entropy = complete(gapped, holes, data)
    state, objective = relational.step(gapped.state, expected)
    return Gapped(state, filled), objective + entropy


def _noise_shares(state, data):
    """Mean of sigma2 / v over the spectrum, for every axis."""
    lam, weights = data.spectrum
    q, sigma2 = len(state.a), state.sigma2
    smooth = weights @ (sigma2 / variances_at(state, lam[:, None])) / weights.sum()
    return np.append(smooth, sigma2 / (state.c[q:] + sigma2))
