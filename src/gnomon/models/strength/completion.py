"""Stage 1 of supervision: labels completed on all rows by ridge regression on the labelled ones.

    y = m + B'(f - fbar) + e,    e ~ N(0, Sigma)

f are coordinates of the rows on some principal directions. The penalty is the one whose
leave-one-out residuals have the least log|Sigma|; it is measured in mean squared lengths of a
labelled row. Sigma is theirs too, so that outputs count by how well they are predicted.

Numbers are predicted by the mean over all penalties, by their shares exp(-n/2 log|Sigma|): the
likelihood of rows left out. Few rows hardly tell penalties apart, and the one that seems best is
then now and then far from it; of many rows it has all of the share. A few rows also say too little
of the others: that all rows, which are known by their x, shall vary as predicted is itself a
statement about the labelled ones, and its likelihood takes part (`_too_far`).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from gnomon.linalg.data import row_slices
from gnomon.linalg.solve import Cholesky, above_rounding, gaussian_log_odds
from gnomon.models.strength.rule import RULE, TINY
from gnomon.stats.gaussian import variance_of_t


class Outputs(NamedTuple):
    """Columns Y (n, c), the mask of those known, and class numbers, -1 unlabelled, or None.

    ``chunks`` are numbers of groups of rows that share a class, -1 for rows in none.
    """

    Y: np.ndarray
    observed: np.ndarray
    labels: np.ndarray | None = None
    chunks: np.ndarray | None = None

    def rows(self, index) -> "Outputs":
        """The outputs of some rows."""
        labels = None if self.labels is None else self.labels[index]
        chunks = None if self.chunks is None else self.chunks[index]
        return Outputs(self.Y[index], self.observed[index], labels, chunks)


class Completion(NamedTuple):
    """E[y|x] = offset + f'B, its covariance, and penalties and leave-one-out residuals (n, c).

    The penalty of numbers is the likeliest of those that take part.
    """

    B: np.ndarray
    offset: np.ndarray
    covariance: np.ndarray
    penalty: np.ndarray
    residuals: np.ndarray


class Votes(NamedTuple):
    """Pseudo-labels: unlabelled rows with the class they were voted, and how much it counts.

    ``weights`` multiply those of the rows. ``fit`` is stage 1 with these rows, where all labelled
    rows took part in it.
    """

    rows: np.ndarray
    labels: np.ndarray
    code_vectors: np.ndarray
    weights: np.ndarray
    fit: Completion | None = None


def complete(F, outputs: Outputs, weights, counts=None, variances=None) -> Completion:
    """Ridge regression of the labelled rows, its penalty tuned by leaving out one row.

    ``counts`` says how often a row occurs, by default as often as it weighs: weights so count
    as repeated rows. Columns seen on different rows are fitted each on its own. Where there
    are classes, all of them count the same. ``variances`` (p,) are those of the coordinates over
    all rows, where these take part in the choice of a penalty for numbers.
    """
    counts = weights if counts is None else counts
    grid, wanted = np.array(RULE.penalties), _best
    if outputs.labels is None:
        grid, wanted = grid[grid >= RULE.least_penalty_of_numbers], _likely

    def tuned(sample, columns):
        return _tuned(sample, grid, wanted, variances)

    return _by_columns(F, outputs, weights, counts, tuned)


def recomplete(F, outputs: Outputs, weights, penalty) -> Completion:
    """The same at a given penalty for each column, by one Cholesky factor."""

    def given(sample, columns):
        return *_ridge(sample, penalty[columns[0]] * sample.unit), penalty[columns[0]]

    return _by_columns(F, outputs, weights, weights, given)


def complete_with_votes(F, outputs: Outputs, weights, votes: Votes, counts) -> Completion:
    """Stage 1 on labelled rows and on those of the votes, which ``counts`` says how often occur.

    F holds the labelled rows first.
    """
    Y = np.vstack([outputs.Y, votes.code_vectors])
    labels = np.concatenate([outputs.labels, votes.labels])
    together = Outputs(Y, np.ones(Y.shape, dtype=bool), labels)
    heavy = np.concatenate([weights, counts * votes.weights])
    return complete(F, together, heavy, np.concatenate([weights, counts]))


def for_new_rows(
    completion: Completion, F, outputs: Outputs, weights, variances=None
) -> Completion:
    """The same, with the residuals of few numbers as those that a new row would have.

    Single rows left out miss too little where the others choose the penalty with their help: 90 %
    intervals from 30 rows so held 88 %. In folds rows are left out of all of stage 1.
    """
    if not few_numbers(outputs):
        return completion

    def errors(lost, kept):
        fit = complete(F[kept], outputs.rows(kept), weights[kept], variances=variances)
        return outputs.Y[lost] - fit.offset - F[lost] @ fit.B

    return completion._replace(residuals=in_folds(F, outputs, completion.residuals, errors))


def few_numbers(outputs: Outputs) -> bool:
    """Whether numbers are so few that the choice of a penalty shows in what rows left out miss."""
    return outputs.labels is None and 1 < len(outputs.Y) <= RULE.many_rows


def in_folds(F, outputs: Outputs, E, errors) -> np.ndarray:
    """Residuals E (n, c), those of each fold by ``errors(lost, kept)``, a fit to the other rows.

    Folds are by the size of a row: equal rows share one, and the order of rows does not matter.
    """
    sizes = np.einsum("ij,ij->i", F, F)
    sizes = np.round(sizes / max(sizes.max(), TINY), RULE.size_digits)
    fold = np.unique(sizes, return_inverse=True)[1] % RULE.number_folds
    E = E.copy()
    for lost in (fold == f for f in range(fold.max() + 1)):
        if not lost.all():
            E[lost] = np.where(outputs.observed[lost], errors(lost, ~lost), np.nan)
    return E


class Predictive(NamedTuple):
    """Covariance (c, c) of the outputs of a new row, and what rows left out show of classes.

    That is whether they are found better than by the shares of the classes alone, and their mean
    log loss.
    """

    covariance: np.ndarray
    finds_classes: bool = True
    left_out_loss: float | None = None


def predictive(completion: Completion, outputs: Outputs, weights) -> Predictive:
    """Covariance of the outputs of a new row; for classes such that their probabilities hold.

    The covariance of many code vectors is hardly known from few labels, and what is known of it
    is too narrow: it is drawn halfway to a sphere, and widened by the factor with the least log
    loss of the labels of rows left out. All classes count the same in stage 1, so that their
    shares among the labelled rows come in here, as a prior. Numbers keep their correlations, and
    each has the variance of its own residuals, widened as these are few.
    """
    if not outputs.Y.size:
        return Predictive(completion.covariance)
    if outputs.labels is None:
        return Predictive(_of_numbers(completion, weights))
    most = max(1, len(outputs.Y) // RULE.most_labelled)
    left_out = (outputs.Y - completion.residuals)[::most]
    # A class may have no row here, so that its number is not its place among the others.
    _, first, place = np.unique(outputs.labels, return_index=True, return_inverse=True)
    covariance = _shrunk(completion.covariance, RULE.predictive_shrinkage)
    odds = gaussian_log_odds(left_out, covariance, outputs.Y[first])
    prior, place, weights = log_shares(place, weights), place[::most], weights[::most]
    losses = [weights @ log_losses(odds / f + prior, place) for f in RULE.widenings]
    best = int(np.argmin(losses))
    # The widest leaves next to nothing but the shares.
    found = best < len(RULE.widenings) - 1 and losses[best] < -weights @ prior[place]
    loss = float(losses[best] / weights.sum())
    return Predictive(covariance * RULE.widenings[best], bool(found), loss)


def log_shares(labels, weights) -> np.ndarray:
    """Logarithms of the shares of the classes, each of which has a row."""
    return np.log(np.bincount(labels, weights) / weights.sum())


def doubtful(F, outputs: Outputs, weights) -> np.ndarray:
    """Rows whose class is wrong rather than another's, by what all others say of them.

    A class that a chunk passed on is wrong in a tenth of the cases, before x is looked at.
    """
    fit = complete(F, outputs, weights)
    covariance = predictive(fit, outputs, weights).covariance
    labels = np.asarray(outputs.labels)
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    odds = gaussian_log_odds(outputs.Y - fit.residuals, covariance, outputs.Y[first])
    odds -= odds[np.arange(len(place)), place][:, None]
    return odds.max(axis=1) > np.log(1 / RULE.wrong_members - 1)


def _of_numbers(completion, weights):
    seen = ~np.isnan(completion.residuals)
    counts = np.maximum(weights @ seen, TINY)
    variances = weights @ np.where(seen, completion.residuals, 0.0) ** 2 / counts
    wider = variances * variance_of_t(counts - 1) / np.diagonal(completion.covariance)
    scale = np.sqrt(np.where(variances > 0, wider, 1.0))
    return completion.covariance * np.outer(scale, scale)


def log_losses(odds, labels) -> np.ndarray:
    """Log loss (..., n) of the class of every row, from log odds (..., n, C)."""
    odds = odds - odds.max(axis=-1, keepdims=True)
    return np.log(np.exp(odds).sum(axis=-1)) - odds[..., np.arange(len(labels)), labels]


def class_weights(labels, weights) -> np.ndarray:
    """Weights of labelled rows that make every class count the same; their sum is unchanged."""
    counts = np.bincount(labels, weights)
    share = weights.sum() / max(np.count_nonzero(counts), 1)
    # Not the share of every class: one may have no row.
    return weights * (share / np.maximum(counts[labels], TINY))


def residual_covariance(E, weights) -> np.ndarray:
    """Covariance of residuals (n, c) with gaps, shrunk towards a sphere; I where there are none."""
    seen = ~np.isnan(E)
    if seen.all():
        return _shrunk((weights[:, None] * E).T @ E / max(weights.sum(), TINY))
    if not seen.any():
        return np.eye(E.shape[1])
    E = np.where(seen, E, 0.0)
    counts = np.maximum((weights[:, None] * seen).T @ seen.astype(float), TINY)
    S = _shrunk((weights[:, None] * E).T @ E / counts)
    # Pairwise averages over different rows need not be positive definite.
    values, vectors = np.linalg.eigh(S)
    return (vectors * np.maximum(values, RULE.shrinkage * values.mean())) @ vectors.T


class _Rows(NamedTuple):
    """Rows of a regression: their weights, those that balance classes, how often they occur."""

    F: np.ndarray
    Y: np.ndarray
    weights: np.ndarray
    balanced: np.ndarray
    counts: np.ndarray


class _Sample(NamedTuple):
    """Centred rows and outputs, each scaled by the root of its balanced weight; their means.

    ``unit`` is the mean squared length of a row, in which penalties are measured, and ``total`` the
    sum of the balanced weights.
    """

    F: np.ndarray
    Y: np.ndarray
    f_mean: np.ndarray
    y_mean: np.ndarray
    roots: np.ndarray
    weights: np.ndarray
    counts: np.ndarray
    unit: float
    total: float


def _by_columns(F, outputs, weights, counts, solve) -> Completion:
    """Columns seen on the same rows fitted together; ``solve`` gives B, residuals, penalty."""
    Y, observed, labels, _ = outputs
    balanced = weights if labels is None else class_weights(labels, weights)
    rows = _Rows(F, Y, weights, balanced, counts)
    B, offset = np.zeros((F.shape[1], Y.shape[1])), np.zeros(Y.shape[1])
    penalty, E = np.full(Y.shape[1], np.inf), np.full(Y.shape, np.nan)
    for columns in _same_pattern(observed):
        seen = observed[:, columns[0]]
        if seen.any():
            sample = _sample(_part(rows, seen, columns))
            B[:, columns], left_out, penalty[columns] = solve(sample, columns)
            # An index of every entry takes longer than a small regression.
            E[slice(None) if seen.all() else np.flatnonzero(seen)[:, None], columns] = left_out
            offset[columns] = sample.y_mean - sample.f_mean @ B[:, columns]
    return Completion(B, offset, residual_covariance(E, weights), penalty, E)


def _part(rows, seen, columns):
    """Some rows and columns, without a copy where these are all."""
    part = rows if seen.all() else _Rows(*(values[seen] for values in rows))
    return part if len(columns) == part.Y.shape[1] else part._replace(Y=part.Y[:, columns])


def _sample(rows):
    total = rows.balanced.sum()
    f_mean, y_mean = rows.balanced @ rows.F / total, rows.balanced @ rows.Y / total
    roots = np.sqrt(rows.balanced)[:, None]
    F = rows.F - f_mean
    F *= roots
    unit = max(float(np.vdot(F, F)) / total, TINY)
    Y = roots * (rows.Y - y_mean)
    return _Sample(F, Y, f_mean, y_mean, roots, rows.weights, rows.counts, unit, total)


def _same_pattern(observed) -> list[np.ndarray]:
    """Columns grouped by the rows on which they are seen."""
    if observed.shape[1] == 0:
        return []
    if observed.all():
        return [np.arange(observed.shape[1])] if observed.size else []
    _, group = np.unique(observed, axis=1, return_inverse=True)
    return [np.flatnonzero(group.ravel() == g) for g in range(group.max() + 1)]


def _shrunk(S, share=RULE.shrinkage):
    """S (..., c, c) drawn towards a sphere of the same trace; I where it is zero."""
    c = S.shape[-1]
    level = np.trace(S, axis1=-2, axis2=-1)[..., None, None] / max(c, 1)
    S = (1 - share) * S + share * level * np.eye(c)
    return np.where(level > 0, S, np.eye(c))


def likelihood_shares(E, S, weights, too_far=0.0) -> tuple[np.ndarray, np.ndarray]:
    """Shares (m,) of predictions by the likelihood of rows left out; the same without each (m, n).

    E (m, n, c) are their left-out residuals and S (m, c, c) the covariances of these; ``too_far``
    adds to the logarithms of their determinants. What a row has to say of the shares must not
    count where it is left out itself.
    """
    total, once = weights.sum(), np.minimum(weights, 1.0)
    log_determinants = (np.linalg.slogdet(S)[1] + too_far)[:, None]
    of_row = np.sum(np.swapaxes(E, 1, 2) * np.linalg.solve(S, np.swapaxes(E, 1, 2)), axis=1)
    left = np.maximum(1 - once / max(total, TINY) * of_row, RULE.rounding)
    without = -0.5 * (total - once) * (log_determinants + np.log(left))
    return softmax(-0.5 * total * log_determinants[:, 0]), softmax(without, axis=0)


def _best(log_determinants, total):
    return np.array([np.argmin(log_determinants)])


def _likely(log_determinants, total):
    """All whose share is more than next to nothing."""
    below = -0.5 * total * (log_determinants - log_determinants.min())
    return np.flatnonzero(below > np.log(RULE.rounding))


def _too_far(B, S, sample, variances):
    """What it costs each B (m, p, c) to say that all rows vary more than the labelled ones.

    With v the variance of an output over all rows that B and the residuals S imply, and s^2 that of
    the labelled rows, their likelihood falls by exp(-(n-1)/2 (log v/s^2 + s^2/v - 1)), which is
    given as what it adds to log|S|. Ten rows in ten columns may be met by a plane that is far from
    all others. Labelled rows are so taken for a sample of all.
    """
    freedom = max(sample.total - 1, 0.0)
    seen = np.sum(sample.Y**2, axis=0) / max(freedom, TINY)
    implied = variances @ B**2 + np.diagonal(S, axis1=1, axis2=2)
    ratio = np.maximum(implied / np.maximum(seen, TINY), 1.0)
    return freedom / sample.total * np.sum(np.log(ratio) + 1 / ratio - 1, axis=1)


class _Spectrum(NamedTuple):
    """Left vectors of a sample as F ``U_of``, U'Y, and how penalties (m,) shrink each direction."""

    U_of: np.ndarray
    UY: np.ndarray
    shrink: np.ndarray

    def coefficients(self, which=slice(None)) -> np.ndarray:
        """B (m, p, c) of some of the penalties."""
        return self.U_of @ (self.shrink[which, :, None] * self.UY)


def _tuned(sample, grid, wanted, variances=None):
    """B and leave-one-out residuals by the shares of the penalties; the likeliest penalty."""
    many = sample.counts.sum() > RULE.many_rows
    grid = grid[::2] if many else grid
    spectrum, total = _spectrum(sample, grid), sample.weights.sum()
    # Of many rows with classes the penalty is seen in single precision, too, in half the time.
    dtype = np.float32 if many and wanted is _best else float
    leverage, S = _left_out_moments(sample, spectrum, dtype)
    S, too_far = _shrunk(S / max(total, TINY)), np.zeros(len(grid))
    if variances is not None and wanted is _likely and not many:
        too_far = _too_far(spectrum.coefficients(), S, sample, variances)
    log_determinants = np.linalg.slogdet(S)[1] + too_far
    kept, likeliest = wanted(log_determinants, total), grid[np.argmin(log_determinants)]
    B = spectrum.coefficients(kept)
    E = (sample.Y - sample.F @ B) / _left_out_scale(sample, leverage[kept])[..., None]
    if len(kept) == 1:
        return B[0], E[0], likeliest
    shares, without = likelihood_shares(E, S[kept], sample.weights, too_far[kept])
    left_out = np.sum(without[..., None] * E, axis=0)
    return np.tensordot(shares, B, axes=1), left_out, likeliest


def _spectrum(sample, grid) -> _Spectrum:
    squares, V = _principal(sample.F)
    UY = V.T @ (sample.F.T @ sample.Y) / np.sqrt(squares)[:, None]
    return _Spectrum(V / np.sqrt(squares), UY, squares / (squares + (grid * sample.unit)[:, None]))


def _left_out_moments(sample, spectrum: _Spectrum, dtype):
    """Leverages (m, n) and moments (m, c, c) of residuals of rows left out, for each penalty."""
    (n, c), m = sample.Y.shape, len(spectrum.shrink)
    leverage, S, root = np.empty((m, n)), np.zeros((m, c, c)), np.sqrt(sample.unit)
    fitted = spectrum.shrink[:, :, None] * spectrum.UY
    in_units, share, fitted, Y, weights = (
        values.astype(dtype)
        for values in (spectrum.U_of * root, spectrum.shrink, fitted, sample.Y, sample.weights)
    )
    # A row of F takes with it four copies, on the way, of its residuals for all penalties.
    for rows in row_slices((n, sample.F.shape[1] + 4 * m * c)):
        U = (sample.F[rows] / root).astype(dtype) @ in_units
        leverage[:, rows] = share @ (U**2).T
        scale = _left_out_scale(sample, leverage[:, rows], rows).astype(dtype)
        E = _products(U, fitted)
        np.subtract(Y[rows], E, out=E)
        E /= scale[..., None]
        S += np.swapaxes(weights[rows, None] * E, 1, 2) @ E
    return leverage, S


def _principal(F):
    """Squared singular values above rounding and right vectors (p, r), by the smaller side."""
    wide = F.shape[0] < F.shape[1]
    squares, vectors = np.linalg.eigh(F @ F.T if wide else F.T @ F)
    kept = above_rounding(squares)
    squares, vectors = squares[kept], vectors[:, kept]
    return squares, (F.T @ vectors) / np.sqrt(squares) if wide else vectors


def _products(U, stack):
    """U times every matrix (p, c) of a stack, as one product."""
    m, p, c = stack.shape
    side_by_side = U @ np.swapaxes(stack, 0, 1).reshape(p, m * c)
    return np.swapaxes(side_by_side.reshape(len(U), m, c), 0, 1)


def _ridge(sample, a):
    """B and leave-one-out residuals at penalty a, on the smaller side of the rows."""
    n, p = sample.F.shape
    if n <= p:
        M = Cholesky(sample.F @ sample.F.T + a * np.eye(n))
        dual = M.solve(sample.Y)
        B, left = sample.F.T @ dual, a * dual
        leverage = 1 - a * np.sum(M.half_solve(np.eye(n)) ** 2, axis=0)
    else:
        M = Cholesky(sample.F.T @ sample.F + a * np.eye(p))
        B = M.solve(sample.F.T @ sample.Y)
        left = sample.Y - sample.F @ B
        leverage = np.sum(M.half_solve(sample.F.T) ** 2, axis=0)
    return B, left / _left_out_scale(sample, leverage)[:, None]


def _left_out_scale(sample, leverage, rows=slice(None)):
    """By what weighted residuals are divided when one occurrence of their row is left out.

    A row that counts less than once is left out whole.
    """
    roots = sample.roots[rows, 0]
    leverage = leverage + roots**2 / sample.total
    share = 1 - leverage / np.maximum(sample.counts[rows], 1.0)
    return roots * np.maximum(share, RULE.rounding)
