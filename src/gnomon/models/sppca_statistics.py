"""What a fit of SPPCA needs of the data, by the route that suits the shape of X.

    moments    X'X in one pass, then free of n                 d moderate
    dual       X X', coordinates in the span of the rows       n small

Both are exact. The subspace solver makes the same statistics of its small problem, with the
energy outside of its basis counted in the total.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data

# Directions of less than this share of the largest energy are rounding.
RANK_SHARE = 1e-13


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


class Statistics(NamedTuple):
    """All a fit needs: number of rows n, features d, total energy, moments g (m,), outputs."""

    n: float
    d: int
    energy: float
    g: np.ndarray
    outputs: Outputs


def from_moments(X: Data, Y, observed, weights=None) -> tuple[Statistics, np.ndarray]:
    """Statistics of centred X (weighted where it is) and its principal axes (d, d)."""
    S = X.gram()
    g, axes = np.linalg.eigh(S)
    g, axes = np.maximum(g[::-1], 0.0), axes[:, ::-1]
    labelled = observed.any(axis=1)
    rows = int(labelled.sum())
    complete = rows > 0 and bool(observed[labelled].all())
    if complete and rows > 2 * sum(X.shape[1:]) + 2 * Y.shape[1]:
        found = _outputs_by_moments(X, Y, labelled, weights, S, axes)
    else:
        found = _outputs_by_rows(X, axes, Y, observed, labelled, weights)
    return Statistics(X.n_samples, X.n_features, float(np.trace(S)), g, found), axes


def from_dual(X: Data, Y, observed, weights=None) -> tuple[Statistics, np.ndarray]:
    """Statistics of centred X with few rows and an orthonormal basis (d, m) of their span."""
    K = X.dual_gram()
    g, U = np.linalg.eigh(K)
    g, U = g[::-1], U[:, ::-1]
    kept = g > RANK_SHARE * max(g[0], 0.0)
    g, U = g[kept], U[:, kept]
    axes = np.asarray(X.T @ U, dtype=float) / np.sqrt(g)
    labelled = observed.any(axis=1)
    T = (U * np.sqrt(g))[labelled]
    found = _grouped(T, Y, observed, labelled, weights)
    return Statistics(X.n_samples, X.n_features, float(np.trace(K)), g, found), axes


def _outputs_by_rows(X, axes, Y, observed, labelled, weights):
    T = np.asarray(X.rows(labelled) @ axes, dtype=float) if labelled.any() else None
    return (
        _grouped(T, Y, observed, labelled, weights)
        if T is not None
        else no_outputs(axes.shape[1], Y.shape[1])
    )


def _grouped(T, Y, observed, labelled, weights):
    if not len(T):
        return no_outputs(T.shape[1], Y.shape[1])
    return outputs(
        T, Y[labelled], observed[labelled], None if weights is None else weights[labelled]
    )


def _outputs_by_moments(X, Y, labelled, weights, S, axes):
    """Moments of [x, y, 1] over the labelled rows, which are too many to keep."""
    rows = X if labelled.all() else X.rows(labelled)
    S = S if labelled.all() else rows.gram()
    weights = np.ones(len(Y)) if weights is None else weights
    roots = np.sqrt(weights[labelled])[:, None]
    rest = np.hstack([Y[labelled] * roots, roots])
    cross = axes.T @ np.asarray(rows.T @ rest, dtype=float)
    J = np.block([[axes.T @ S @ axes, cross], [cross.T, rest.T @ rest]])
    return outputs_from_moments(J, axes.shape[1], weights[labelled].sum())


def outputs(T, Y, observed, weights=None) -> Outputs:
    """Labelled rows as `Outputs`, grouped by which outputs they have.

    Rows of T come multiplied by the roots of their weights, rows of Y do not.
    """
    seen, pattern = np.unique(observed, axis=0, return_inverse=True)
    pattern = pattern.ravel()
    weights = np.ones(len(T)) if weights is None else weights
    counts = np.bincount(pattern, weights, minlength=len(seen))
    roots = np.sqrt(weights)
    return Outputs(T, np.where(observed, Y, 0.0) * roots[:, None], roots, pattern, seen, counts)


def shrunk(rows: Outputs) -> Outputs:
    """The same moments by fewer rows, where all rows have the same outputs and are many."""
    width = rows.T.shape[1] + rows.Y.shape[1] + 1
    if len(rows.counts) != 1 or not rows.seen.all() or len(rows.T) <= 2 * width:
        return rows
    joint = np.hstack([rows.T, rows.Y, rows.ones[:, None]])
    return outputs_from_moments(joint.T @ joint, rows.T.shape[1], rows.counts[0])


def outputs_from_moments(J, m, count) -> Outputs:
    """`Outputs` from the moments J of [x, y, 1] (m + c + 1 rows); all outputs are seen."""
    energies = np.diagonal(J)
    # Inputs and outputs may differ by many orders; what is empty within each is rounding.
    least = np.where(np.arange(len(J)) < m, energies[:m].max(initial=0.0), energies[m:].max())
    scale = np.sqrt(np.maximum(energies, np.maximum(1e-16 * least, np.finfo(float).tiny)))
    values, vectors = np.linalg.eigh(J / np.outer(scale, scale))
    rows = (np.sqrt(np.maximum(values, 0.0)) * vectors).T * scale
    seen = np.ones((1, rows.shape[1] - m - 1), dtype=bool)
    pattern = np.zeros(len(rows), dtype=int)
    return Outputs(rows[:, :m], rows[:, m:-1], rows[:, -1], pattern, seen, np.array([float(count)]))


def no_outputs(m, c=0) -> Outputs:
    """The `Outputs` of no row."""
    nothing = np.zeros((0, c))
    pattern = np.zeros(0, dtype=int)
    return Outputs(np.zeros((0, m)), nothing, np.zeros(0), pattern, nothing > 0, np.zeros(0))


def output_means(outputs: Outputs) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance (c,) of every output over the rows that have it."""
    counts = np.maximum(outputs.counts @ outputs.seen, np.finfo(float).tiny)
    mean = outputs.ones @ outputs.Y / counts
    return mean, np.maximum(np.sum(outputs.Y**2, axis=0) / counts - mean**2, 0.0)
