"""A fitted SPPCA in the form that its users read: projection, prediction, shares."""

from typing import NamedTuple

import numpy as np

from gnomon.models.sppca import State
from gnomon.models.sppca_prediction import Prediction, prediction
from gnomon.models.supervision import Supervised
from gnomon.stats.gaussian import latent_posterior


class Fitted(NamedTuple):
    """T = (x - mean)' projection, z = T * latent_scale given x; y given x; the generative part.

    ``whitener`` (c, c) makes the outputs of the completed model of y; the identity otherwise.
    """

    mean: np.ndarray
    state: State
    projection: np.ndarray
    latent_scale: np.ndarray
    latent_covariance: np.ndarray
    outputs: Prediction
    whitener: np.ndarray
    input_share: np.ndarray
    target_share: np.ndarray


def from_likelihood(mean, state: State, *, energy_scale) -> Fitted:
    """A maximum of the likelihood, axes canonical; latent scale unless energies are asked."""
    weights, covariance = latent_posterior(state.W, state.sigma2)
    stretch = axis_lengths(state) if energy_scale else np.ones(state.W.shape[1])
    squares, squares_y = np.sum(state.W**2, axis=0), np.sum(state.W_y**2, axis=0)
    return Fitted(
        mean,
        state,
        weights * stretch,
        1 / np.where(stretch > 0, stretch, 1.0),
        covariance,
        prediction(state),
        np.eye(len(state.mean_y)),
        squares / (squares.sum() + len(state.W) * state.sigma2),
        squares_y / max(squares_y.sum() + state.sigma2_y.sum(), np.finfo(float).tiny),
    )


def from_supervised(mean, found: Supervised, *, energy_scale) -> Fitted:
    """A fit at a stated strength; energy scale unless the latent one is asked."""
    levels = np.full(len(found.offset), found.sigma2_y)
    state = State(found.W, found.sigma2, found.W_y, levels, found.offset)
    return Fitted(
        mean,
        state,
        found.projection if energy_scale else found.projection * found.latent,
        found.latent if energy_scale else np.ones_like(found.latent),
        found.covariance,
        Prediction(found.coef, found.offset, found.y_covariance),
        found.whitener,
        found.x_share,
        found.y_share,
    )


def axis_lengths(state: State) -> np.ndarray:
    """Length (q,) that an axis explains, outputs measured in units of noise, as a length of x.

    Without outputs the stretched posterior means are principal components, each shrunk by
    the share of its variance that is not noise.
    """
    energy = np.sum(state.W**2, axis=0) / state.sigma2
    energy = energy + np.sum(state.W_y**2 / state.sigma2_y[:, None], axis=0)
    return np.sqrt(state.sigma2 * energy)
