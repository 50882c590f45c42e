"""What a fitted SPPCA says of new rows: coordinates, outputs and latent variables given inputs.

    E[y | x_o]   = offset + (E[x | x_o] - mean)' coef
    Cov[y | x_o] = covariance + coef' Cov[x | x_o] coef

x_o is what a row observes of x. Rows with the same gaps share a covariance, so c x c work is for
each pattern. An output that is not seen takes part as a row and a column of the identity, which
changes nothing.
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Data, as_data, has_gaps
from gnomon.linalg.solve import gaussian_log_odds, stacked_covariances, stacked_half_inverses
from gnomon.models.gaussian import gaps as gaussian_gaps
from gnomon.models.gaussian import patterns
from gnomon.models.gaussian.filling import covariances_of_gaps
from gnomon.models.sppca import gaps
from gnomon.models.sppca.em import precisions
from gnomon.models.sppca.fit import SppcaFit
from gnomon.models.sppca.statistics import State
from gnomon.stats.gaussian import variance_of_t


class Given(NamedTuple):
    """Gaussians of the rows: means (n, k), covariances (P, k, k), and which of these a row has."""

    mean: np.ndarray
    covariances: np.ndarray
    pattern: np.ndarray


def filled_rows(model: SppcaFit, X) -> Data:
    """X less its mean, gaps at their means given the rest of the row."""
    if has_gaps(X):
        state = gaussian_gaps.State(model.state.W, model.mean, np.array([model.state.sigma2]))
        groups = np.zeros(X.shape[1], dtype=int)
        data = patterns.group_rows(np.asarray(X, dtype=float), groups, shift=model.mean)
        X = gaussian_gaps.fill(state, data)[0].astype(X.dtype, copy=False)
    return as_data(X).less_mean(model.mean)


def coordinates(model: SppcaFit, X) -> np.ndarray:
    """Coordinates (n, q) of every row, in the dtype of X."""
    return filled_rows(model, X) @ model.projection.astype(X.dtype)


def placed(model: SppcaFit, X, further=None) -> tuple[Given, np.ndarray | None]:
    """Outputs of every row, section 3.4.1 of [YYTKW06] where x has no gaps.

    Also what ``further`` columns (d, k) make of the same rows, less their mean.
    """
    outputs, rows = model.outputs, filled_rows(model, X)
    mean = np.asarray(rows @ outputs.coef.astype(X.dtype) + outputs.offset, dtype=float)
    given = Given(mean, *_with_gaps(model.state, X, outputs.coef, outputs.covariance))
    return given, None if further is None else rows @ further.astype(X.dtype)


def _with_gaps(state, X, coef, covariance):
    """Covariances of (x - mean)' coef + noise, wider where x has gaps, and which a row has."""
    if not has_gaps(X):
        return covariance[None], np.zeros(X.shape[0], dtype=int)
    missing, pattern = np.unique(np.isnan(X), axis=0, return_inverse=True)
    more = covariances_of_gaps(coef, state.W, state.sigma2, missing.astype(float))
    return covariance + more, pattern.ravel()


def posterior(model: SppcaFit, X, Y, observed) -> tuple[np.ndarray, np.ndarray]:
    """Means (n, q) and covariances (n, q, q) of the coordinates given x and the outputs seen."""
    state = model.state
    if has_gaps(X):
        shift = np.concatenate([model.mean, state.mean_y])
        rows = gaps.table(X, Y, observed, per_output=True, shift=shift)
        # With a shift rows are never in parts.
        mean, covariances = gaussian_gaps.posterior(gaps.join(model.mean, state), rows)  # type: ignore[arg-type]
    else:
        XW = np.asarray(as_data(X).less_mean(model.mean) @ state.W, dtype=float)
        mean, covariances = latent_posterior(state, XW, Y, observed)
    stretch = _stretch(model)
    return mean * stretch, covariances * np.outer(stretch, stretch)


def latent_posterior(state: State, XW, Y, observed) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances of z given X W and the outputs seen, eqs. (5)-(6) of [YYTKW06]."""
    seen, pattern = np.unique(observed, axis=0, return_inverse=True)
    covariances = stacked_covariances(precisions(state, seen))[0][pattern.ravel()]
    residual = np.where(observed, Y - state.mean_y, 0.0)
    b = XW / state.sigma2 + (residual / state.sigma2_y) @ state.W_y
    return np.einsum("nij,nj->ni", covariances, b), covariances


def completed_posterior(model: SppcaFit, X, Y, observed) -> tuple[np.ndarray, np.ndarray]:
    """The same where outputs count by their completion; a known y replaces its prediction."""
    mean = np.asarray(filled_rows(model, X) @ model.projection, dtype=float)
    own = coordinate_covariance(model)
    covariances, pattern = _with_gaps(model.state, X, model.projection, own)
    if observed.any():
        mean = mean + turned_by_outputs(model, placed(model, X)[0], Y, observed)
    if len(covariances) == 1:
        return mean, np.broadcast_to(covariances[0], (len(mean), *own.shape))
    return mean, covariances[pattern]


def coordinate_covariance(model: SppcaFit) -> np.ndarray:
    """Covariance (q, q) of the coordinates of a row without gaps."""
    stretch = _stretch(model)
    return model.latent_covariance * np.outer(stretch, stretch)


def turned_by_outputs(model: SppcaFit, given: Given, Y, observed) -> np.ndarray:
    """By how much (n, q) coordinates move where the outputs seen replace their predictions."""
    surprise = (fill(given, Y, observed)[0] - given.mean) @ model.whitener
    return surprise @ _output_gain(model) * _stretch(model)


def with_outputs(state: State, mean, covariances, Y, observed) -> tuple[np.ndarray, np.ndarray]:
    """Means and covariances of z ~ N(mean, covariances) of every row, once it has outputs too."""
    known = observed / state.sigma2_y
    own, _ = stacked_covariances(covariances)
    more = np.einsum("nc,ci,cj->nij", known, state.W_y, state.W_y)
    both, _ = stacked_covariances(own + more)
    residual = np.where(observed, Y - state.mean_y, 0.0)
    b = np.einsum("nij,nj->ni", own, mean) + (residual * known) @ state.W_y
    return np.einsum("nij,nj->ni", both, b), both


def _output_gain(model):
    """What z gains from outputs other than expected (c, q)."""
    return model.state.W_y / model.state.sigma2_y[:, None] @ model.latent_covariance


def _stretch(model):
    """Factors from the latent variables to the coordinates; an axis without any has one."""
    scale = np.asarray(model.latent_scale, dtype=float)
    return 1 / np.where(scale > 0, scale, 1.0)


def widening(given: Given, Y, observed, weights, n_components) -> np.ndarray:
    """How much wider (c,) than it says the prediction of outputs is, as their own rows show.

    The likelihood knows no error of its own parameters, of which every output has a mean and a
    loading for each component. Outputs that no row has stay as they are.
    """
    counts, squares = weights @ observed, np.where(observed, Y - given.mean, 0.0) ** 2
    freedom = counts - n_components - 1
    shown = weights @ squares / np.maximum(freedom, 1) * variance_of_t(freedom)
    variances = np.diagonal(given.covariances, axis1=1, axis2=2)[given.pattern]
    said = weights @ np.where(observed, variances, 0.0) / np.maximum(counts, 1)
    return np.where(shown > 0, shown / np.where(said > 0, said, 1.0), 1.0)


def log_density(given: Given, Y, observed) -> np.ndarray:
    """Log density (n,) of the outputs seen."""
    residual = np.where(observed, Y - given.mean, 0.0)
    solved, logdets = _solve_seen(given, residual, observed)
    distances = np.sum(residual * solved, axis=1)
    return -0.5 * (distances + logdets + observed.sum(axis=1) * np.log(2 * np.pi))


def fill(given: Given, Y, observed) -> tuple[np.ndarray, np.ndarray]:
    """Outputs (n, c) with those not seen at their means given x and the others; deviations."""
    residual = np.where(observed, Y - given.mean, 0.0)
    solved, _ = _solve_seen(given, residual, observed)
    means = given.mean + np.einsum("nij,nj->ni", given.covariances[given.pattern], solved)
    keys, which = _joint_patterns(given, observed)
    left = np.stack([_left_variance(given.covariances[p], seen) for p, seen in keys])
    return np.where(observed, Y, means), np.where(observed, 0.0, np.sqrt(left)[which])


def class_log_odds(mean, covariances, pattern, code_vectors) -> np.ndarray:
    """Log density (n, C) of every class's code vector (C, c) as an output, up to a constant."""
    if len(covariances) == 1:
        return gaussian_log_odds(mean, covariances[0], code_vectors)
    half, _ = stacked_half_inverses(covariances)
    away = np.swapaxes(code_vectors[None] - mean[:, None], 1, 2)
    return -0.5 * np.sum((half[pattern] @ away) ** 2, axis=1)


def bayes_odds(shares, mean, W_y, sigma2_y, code_vectors) -> np.ndarray:
    """What is added (C,) to the log density of the code of each class given x.

    A class has its share of the rows, p(class | x) ~ share p(x | code), and by Bayes' rule
    p(x | code) ~ p(code | x) / p(code). Codes are Gaussian to the likelihood, which makes the
    densities p(code) of rare classes far smaller than their shares. Complete rows have so the log
    odds of linear discriminant analysis with the model's covariances of x and y.
    """
    codes = gaussian_log_odds(mean[None], W_y @ W_y.T + np.diag(sigma2_y), code_vectors)[0]
    return np.log(shares) - codes


def _solve_seen(given, residual, observed):
    """C_oo^-1 r for every row, zero where not seen, and log |C_oo|."""
    keys, which = _joint_patterns(given, observed)
    masked = np.stack([_seen_block(given.covariances[p], seen) for p, seen in keys])
    inverses, logdets = stacked_covariances(masked)
    return np.einsum("nij,nj->ni", inverses[which], residual), -logdets[which]


def _joint_patterns(given, observed):
    """Distinct pairs (pattern of x, outputs seen) and which of them a row has."""
    joint = np.column_stack([given.pattern, observed])
    keys, which = np.unique(joint, axis=0, return_inverse=True)
    return [(int(key[0]), key[1:].astype(bool)) for key in keys], which.ravel()


def _seen_block(C, seen):
    both = np.outer(seen, seen)
    return np.where(both, C, 0.0) + np.diag(1.0 - seen)


def _left_variance(C, seen):
    """Variances of all outputs once those seen are known."""
    cross = np.where(seen[:, None], C, 0.0)
    return np.maximum(np.diagonal(C - cross.T @ np.linalg.solve(_seen_block(C, seen), cross)), 0.0)
