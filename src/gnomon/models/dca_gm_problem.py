"""A fit of DCA-GM set up: the data, what is known of the rows, where to start."""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data, Matrix
from gnomon.linalg.standardize import row_space
from gnomon.models import dca_gm
from gnomon.models.dca_gm import Settings, State
from gnomon.stats.discriminant import Groups, start_directions
from gnomon.stats.known_rows import Rows, arrange, in_chunks

# Added to the within-class variances of standardised features before directions are sought.
START_SHRINKAGE = 0.01


class Problem(NamedTuple):
    """Data in standard units, what is known of its rows, and the sizes of the model.

    Class codes and chunk ids are -1 where there is none; owner is the class of each Gaussian;
    n_varying is the number of columns that vary before any change of basis.
    """

    X: Data
    codes: np.ndarray
    chunks: np.ndarray
    weights: np.ndarray
    owner: np.ndarray
    q: int
    n_varying: int

    @property
    def rows(self) -> Rows:
        """The rows, sorted by what is known of them."""
        return arrange(self.codes, self.chunks, self.weights)

    @property
    def labelled(self) -> float:
        """Weight of all rows with a label."""
        return float(self.weights[self.codes >= 0].sum())


def groups(problem: Problem) -> Groups:
    """Classes of labelled rows, then chunks of two others or more; -1 for rows in neither."""
    n_classes = int(problem.owner[-1]) + 1
    ids = problem.codes.copy()
    chunked = in_chunks(ids, problem.chunks)
    ids[chunked] = n_classes + np.unique(problem.chunks[chunked], return_inverse=True)[1]
    return Groups(ids, problem.weights, n_classes)


def start_directions_of(problem: Problem) -> np.ndarray:
    """Discriminant directions, padded by principal ones (d, q)."""
    known = groups(problem)
    return start_directions(problem.X, known, problem.q, start_shrinkage(problem, known))


def start_shrinkage(problem: Problem, known: Groups) -> float:
    """What is added to the within-group variances before directions are sought.

    Where the groups leave fewer degrees of freedom than there are directions to vary in, the
    within-group covariance is singular, and shrunk by the mean of its eigenvalues that are not 0.
    """
    inside = known.ids >= 0
    spare = max(known.weights[inside].sum() - len(np.unique(known.ids[inside])), 1.0)
    variance = min(problem.n_varying, problem.weights.sum())
    return START_SHRINKAGE if variance <= spare else variance / spare


def start(problem: Problem, rows: Rows, settings: Settings, rng=None) -> State:
    """The first state: discriminant directions, clusters in classes; ``rng`` adds chance."""
    P = start_directions_of(problem)
    if rng is not None:
        size = np.linalg.norm(P, axis=0) / np.sqrt(len(P))
        P = P + size * (problem.X.T @ (problem.X @ rng.standard_normal(P.shape))) / len(rows.order)
    return dca_gm.start(P, problem.X, rows, problem.owner, settings, rng)


def in_row_space(X: Data, q: int):
    """The data in a basis of the span of its rows where X is dense and wide, and the way back.

    Steps never leave that span, so the fit is the same in fewer columns.
    """
    n, d = X.shape
    if X.is_sparse or d <= n:
        return X, lambda P: P
    space = row_space(X)
    if space.T.shape[1] < q:
        return X, lambda P: P
    return Matrix(space.T), lambda P: np.asarray(X.T @ (space.lift @ P), dtype=float)


def owners(numbers) -> np.ndarray:
    """The class of every Gaussian, from the number of Gaussians of each class."""
    return np.repeat(np.arange(len(numbers)), numbers)
