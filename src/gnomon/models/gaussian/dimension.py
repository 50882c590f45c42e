"""The number of latent dimensions of PPCA: held-out likelihood, or a share of the variance.

The maximum for q components needs only the q leading eigenpairs, so on complete data one
decomposition per fold gives the held-out log likelihood of every q.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data, center, row_norms
from gnomon.linalg.eigen import Spectrum
from gnomon.linalg.solve import one_thread, ranks_of_rows
from gnomon.models.gaussian import gaps, patterns, whole
from gnomon.models.gaussian.ppca import closed_form

# Folds of the rows: each costs a decomposition.
FOLDS = 5
# Nats per entry by which a fit to a fold may still rise: scores differ by thousands of these.
FOLD_TOLERANCE = 1e-6
# The most components that are tried.
MOST = 100


class Curve(NamedTuple):
    """Mean and deviation over the folds of the log likelihood per held-out row, for each q."""

    n_components: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    best: int


def curve_from(sizes, scores) -> Curve:
    """The curve of scores (sizes, folds), and the least q that the folds do not rank below the top.

    A q is ranked below where its deficit exceeds one standard error of itself over the folds, and
    rounding: of rows without noise every size from their rank on has the same score but for that.
    """
    scores = np.asarray(scores)
    top = np.argmax(scores.mean(axis=1))
    deficits = scores[top] - scores
    errors = deficits.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    rounding = np.sqrt(np.finfo(float).eps) * np.max(np.abs(scores[top]))
    tied = deficits.mean(axis=1) <= errors + rounding
    best = int(np.asarray(sizes)[np.argmax(tied)])
    return Curve(np.asarray(sizes), scores.mean(axis=1), scores.std(axis=1), best)


def held_out_curve(X: Data, centered: Data, spectrum_of, rng) -> Curve:
    """The curve for complete X, given ``spectrum_of(centred rows, k) -> Spectrum``."""
    rows = centered.unweighted
    mixtures = rows @ rng.standard_normal((X.n_features, 1)).astype(X.dtype)
    folds = _folds(rows.row_squared_norms(), mixtures)
    most = _most(X.shape, folds)
    scores = []
    for k in range(folds.max() + 1):
        mean, train = center(X.rows(folds != k))
        spectrum = spectrum_of(train, most)
        scores.append(_scores(spectrum, train.n_samples, X.rows(folds == k).less_mean(mean)))
    return curve_from(np.arange(1, most + 1), np.transpose(scores))


def _scores(spectrum: Spectrum, n, test: Data) -> np.ndarray:
    """Log likelihood per row of ``test`` for every q, from energies along the eigenvectors."""
    d, m = test.n_features, test.n_samples
    energies = np.sum((test @ spectrum.vectors).astype(float) ** 2, axis=0) / m
    total = test.squared_norm / m
    out = []
    for q in range(1, len(spectrum.values) + 1):
        view = closed_form(spectrum, q, n).view
        variances = np.sum(view.W**2, axis=0) + view.sigma2
        signal = np.sum(np.log(variances) + energies[:q] / variances)
        rest = (d - q) * np.log(view.sigma2) + (total - energies[:q].sum()) / view.sigma2
        out.append(-0.5 * (d * np.log(2 * np.pi) + signal + rest))
    return np.array(out)


@one_thread
def search_curve(data: patterns.Patterns, rng, max_iter, tol) -> Curve:
    """The curve where entries are missing.

    Every q costs a fit per fold, so q climbs in growing steps until the score has fallen twice.
    Between the steps around the best one the top is bracketed, and all below it are tried, as
    the least of them that is as good is wanted.
    """
    mixture = rng.standard_normal((2, data.X.shape[1]))
    pattern = np.repeat(data.observed @ mixture[1], np.diff(data.starts))
    place = np.argsort(data.order)
    folds = _folds(row_norms(data.X)[place], (data.X @ mixture[0] + pattern)[place])
    limits = {"max_iter": max_iter, "tol": max(tol, FOLD_TOLERANCE)}
    parts = [
        (patterns.select(data, folds != k), patterns.select(data, folds == k))
        for k in range(folds.max() + 1)
    ]
    seen: dict[int, np.ndarray] = {}
    completed: list[dict] = [{} for _ in parts]

    def held_out_mean(q, train, test, ends):
        # Rows as the nearest size completes them are near their end for this one.
        nearest = min(ends, key=lambda size: abs(size - q), default=None)
        state, ends[q] = whole.fit_state(train, q, ends.get(nearest), **limits)
        density = gaps.log_density(state, test)[test.order]
        return float(test.weights @ density / test.weights.sum())

    def score(q):
        if q not in seen:
            scores = zip(parts, completed, strict=True)
            seen[q] = np.array([held_out_mean(q, *part, ends) for part, ends in scores])
        return seen[q].mean()

    best = _climb(score, _most(data.X.shape, folds))
    lowest, _ = _neighbours(seen, best)
    for q in range(lowest, _top(score, seen, best)):
        score(q)
    sizes = sorted(seen)
    return curve_from(sizes, [seen[q] for q in sizes])


def _climb(score, most):
    q, falls = 1, 0
    best = 1
    while q <= most and falls < 2:
        falls = 0 if q == 1 or score(q) > score(best) else falls + 1
        best = q if score(q) > score(best) else best
        q = max(q + 1, int(1.4 * q))
    return best


def _neighbours(seen, q):
    """The nearest sizes below and above that were tried; the size itself where there are none."""
    below = max([size for size in seen if size < q], default=q)
    return below, min([size for size in seen if size > q], default=q)


def _top(score, seen, best):
    """The best size, by ones halfway to its neighbours until these are next to it."""
    while True:
        below, above = _neighbours(seen, best)
        q = (below + best) // 2 if best - below > above - best else (best + above + 1) // 2
        if q in seen:
            return best
        best = q if score(q) > score(best) else best


def explained(X: Data, spectrum_of, k) -> np.ndarray:
    """Cumulative shares of variance of the k leading components."""
    spectrum = spectrum_of(X, k)
    return np.cumsum(spectrum.values) / spectrum.trace


def explained_with_gaps(data: patterns.Patterns, fit, k) -> np.ndarray:
    """The same by the covariance that is fitted to the observed entries."""
    W, _, (sigma2,) = fit(data, k)
    variances = np.linalg.svd(W, compute_uv=False) ** 2 + sigma2
    return np.cumsum(variances) / (np.sum(W**2) + W.shape[0] * sigma2)


def size_for_share(share, shares_of, limit) -> int:
    """The least number of components that explain more than a share of the variance."""
    k = min(limit, 16)
    while True:
        shares = shares_of(k)
        if shares[-1] > share or k == limit:
            return int(min(np.searchsorted(shares, share, side="right") + 1, k))
        k = min(2 * k, limit)


def _folds(distances, mixtures):
    """A fold for each row by the rank of its squared distance from the mean.

    So the folds are alike in how far out their rows lie, and do not depend on the order of rows,
    columns or axes. Rows at equal distances are told apart by a random mixture of their entries;
    equal rows share their fold, so that one that is repeated, or that has a weight, is never
    held out from itself.
    """
    ranks = ranks_of_rows(mixtures, distances)
    return ranks % min(FOLDS, ranks.max() + 1)


def _most(shape, folds):
    """The largest q that every fold can fit with a noise variance to spare."""
    smallest = shape[0] - np.bincount(folds).max()
    most = min(MOST, smallest - 2, shape[1] - 1)
    if most < 1:
        raise ValueError(
            f"n_components == 'auto' needs at least 4 rows and 2 features; X has shape {shape}"
        )
    return most
