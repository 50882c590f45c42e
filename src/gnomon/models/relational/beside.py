"""PPCA of content beside that of neighbours, for graphs whose links join rows of different kinds.

    x = mu + W z + e,    y = t M (X - 1 mu') = V z + e',    s = u S^p (X - 1 mu') = U z + e''
    M = D^-1 A, the mean over the neighbours of a row, without the row itself
    S = D^-1/2 (A + I) D^-1/2, by which a row and its neighbours become alike

z is told by a row, by its neighbours and by what they share, each through loadings of its own:
where pages of courses link to those of teachers, averages blur both, and loadings of their own tell
one from the other. Where rows of a kind are linked it is what they share that tells it, and
content alone does not know which graph it is. t and u make both together count half as much as the
row (HALF). A row without links is told by its content alone.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.linalg import eigen
from gnomon.linalg.data import Data
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.mixed import Mixed, SideBySide
from gnomon.linalg.solve import Cholesky, one_thread
from gnomon.models.gaussian import em, ppca
from gnomon.models.relational.paper import filtered, smooth
from gnomon.models.relational.posterior import Nodes
from gnomon.stats.gaussian import View

# Squared norm of what links tell over that of content, the neighbours' and the smoothed part alike.
# Neighbours alone gain over content on six web graphs from a quarter to a half, and lose on some at
# one; a quarter of each is better than a half of neighbours on five of the six, by .02 in the mean
# and by .06 where rows of a kind are linked (benchmarks/links.py --relations).
HALF = 0.5
# Axes by which the two halves of the columns tell one another; with 10 or 50 the verdicts are the
# same on eleven graphs.
AXES = 20
# Fewer columns are not split: halves of a few say little, and depend on how the axes are turned.
LEAST_COLUMNS = 20
# Standard errors by which neighbours must tell more than those of permuted links: 8 and more on
# eleven graphs of text, below 1.5 where the graph was permuted before.
CLEARLY = 3.0
# The same for content over smoothed content: 2.7 and more on six graphs of web pages and on parts
# of them, at most 1.9 on five of citations.
BLURRED = 2.0


class Parts(NamedTuple):
    """Loadings (d, q) of content W, of neighbours V and of smoothed content U, and the noise.

    ``factors`` are t and u, ``power`` the number of steps p.
    """

    W: np.ndarray
    V: np.ndarray
    U: np.ndarray
    sigma2: float
    factors: tuple[float, ...]
    power: int


def neighbour_means(A) -> sparse.csr_array:
    """M = D^-1 A; rows without neighbours are zero."""
    degrees = np.asarray(A.sum(axis=1), dtype=float).ravel()
    return sparse.csr_array(A / np.where(degrees > 0, degrees, 1.0)[:, None])


def linked_parts(A, centered: Data, power: int) -> tuple[Data, Data]:
    """M X and S^p X, never formed."""
    means = Mixed(neighbour_means(A).astype(centered.dtype), centered)
    return means, filtered(A, centered, power)


def side_by_side(centered: Data, linked, factors) -> Data:
    """[X, t M X, u S^p X], never formed."""
    rows = centered
    for factor, part in zip(factors, linked, strict=True):
        rows = SideBySide(rows, Mixed((factor * part.R).astype(centered.dtype), part.X))
    return rows


def fit_parts(A, centered: Data, total: float, q: int, power: int, rng) -> tuple[Parts, float]:
    """Loadings at the maximum of the likelihood of all parts, and that."""
    linked = linked_parts(A, centered, power)
    energies = [part.squared_norm for part in linked]
    share = HALF / len(linked) * total
    factors = tuple(float(np.sqrt(share / own)) if own > 0 else 0.0 for own in energies)
    rows, d = side_by_side(centered, linked, factors), centered.n_features
    if eigen.suits_lanczos(rows, q):
        energy = total + share * np.count_nonzero(factors)
        spectrum = Spectrum(*eigen.from_lanczos(rows, q, rng), energy)
    else:
        spectrum = ppca.leading_spectrum(rows, q, rng)
    found = ppca.closed_form(spectrum, q, rows.n_samples)
    W, sigma2 = found.view
    return Parts(W[:d], W[d : 2 * d], W[2 * d :], sigma2, factors, power), found.log_likelihood


def known_of(parts: Parts, centered: Data) -> np.ndarray:
    """What others need of rows (n, 2q): their products with V and with U."""
    both = np.hstack([parts.V, parts.U]).astype(centered.dtype)
    return np.asarray(centered @ both, dtype=float)


def embed(parts: Parts, rows: Data, nodes: Nodes) -> np.ndarray:
    """E[z | x, y, s] of centred new rows among their neighbours, E[z | x] where one has none."""
    W, V, U, sigma2, (t, u), power = parts
    own, A = np.asarray(rows @ W.astype(rows.dtype), dtype=float), nodes.adjacency
    around, shared = np.split(nodes.stack(known_of(parts, rows)), 2, axis=1)
    told = t * (neighbour_means(A) @ around) + u * smooth(A, shared, power)
    linked = np.diff(A.indptr)[len(nodes.known) :, None] > 0
    alone = sigma2 * np.eye(W.shape[1]) + W.T @ W
    together = Cholesky(alone + V.T @ V + U.T @ U).solve((own + told[len(nodes.known) :]).T).T
    return np.where(linked, together, Cholesky(alone).solve(own.T).T)


def log_density(parts: Parts, centered: Data, A) -> float:
    """Log density of the rows beside what their links tell."""
    view = View(np.concatenate([parts.W, parts.V, parts.U]), parts.sigma2)
    rows = side_by_side(centered, linked_parts(A, centered, parts.power), parts.factors)
    return em.e_step((view,), (rows,))[2]


class Told(NamedTuple):
    """What tells content that was not seen: shares of its variance that are left.

    Of one half of the columns, told by the other half, as it is and smoothed; and of all, told by
    neighbours, and by those of permuted links; after each two the standard error, over rows, of
    their difference. The first three are NaN where there are few columns.
    """

    content: float
    smoothed: float
    blur_error: float
    neighbours: float
    permuted: float
    links_error: float

    @property
    def links_are_noise(self) -> bool:
        """Whether content tells something, and neighbours no more than by permuted links.

        Content that tells nothing even of itself says nothing of links, and has nothing to lose.
        """
        clearly = self.permuted - self.neighbours > CLEARLY * self.links_error
        return not clearly and not self.content >= 1.0

    @property
    def smoothing_blurs(self) -> bool:
        """Whether content tells something of columns not seen, and smoothed content less.

        Where it tells hardly less, rows of a kind gain by it.
        """
        return self.content < min(1.0, self.smoothed - BLURRED * self.blur_error)


@one_thread
def tell_content(A, centered: Data, power: int, rng) -> Told:
    """What tells content that was not seen, by ridge regression with each row left out.

    Links that join rows of a kind take noise out of content, and smoothed it tells more; others
    blur it. Neighbours tell nothing where links are noise.
    """
    (n, d), split = centered.shape, (np.nan, np.nan, np.nan)
    if d >= LEAST_COLUMNS:
        split = _tell_halves(A, centered, power, rng)
    order = rng.permutation(n)
    B, graphs = _on_leading_axes(centered, d, rng), (A, A[order][:, order])
    means = (Mixed(neighbour_means(links).astype(centered.dtype), centered) for links in graphs)
    links = [_left_out_errors(_on_leading_axes(X, d, rng), B) for X in means]
    return Told(*split, *_compared(*links))


def _tell_halves(A, centered, power, rng):
    """One half of the columns told by the other, as it is and smoothed, each in turn."""
    d, errors = centered.n_features, []
    half = rng.permutation(d) < d / 2
    for seen in (half, ~half):
        own, other = centered.scaled(seen), centered.scaled(~seen)
        B = _on_leading_axes(other, d // 2, rng)
        ways = own, filtered(A, own, power)
        errors.append([_left_out_errors(_on_leading_axes(X, d // 2, rng), B) for X in ways])
    return _compared(*np.mean(errors, axis=0))


def _compared(first, second):
    """Means of two columns of errors, and the standard error of their difference."""
    error = np.std(second - first) / np.sqrt(len(first))
    return float(first.mean()), float(second.mean()), float(error)


def _on_leading_axes(rows, most, rng):
    axes = ppca.leading_axes(rows, max(1, min(AXES, most, rows.shape[0] // 3)), rng)
    return np.asarray(rows @ axes.astype(rows.dtype), dtype=float)


def _left_out_errors(F, B):
    """Squared error of every row, told without itself, over the mean square of B.

    By a ridge of one row's weight, on coordinates F of mean squared length one.
    """
    F, B = F - F.mean(axis=0), B - B.mean(axis=0)
    F /= max(np.sqrt(np.mean(np.sum(F**2, axis=1))), np.finfo(float).tiny)
    H = np.linalg.solve(F.T @ F + np.eye(F.shape[1]), F.T)
    leverages = np.einsum("nk,kn->n", F, H) + 1 / len(F)
    squares = np.sum((B - F @ (H @ B)) ** 2, axis=1) / (1 - leverages) ** 2
    return squares / max(np.mean(np.sum(B**2, axis=1)), np.finfo(float).tiny)
