"""From an embedding of any dimension to the plane that is drawn."""

from typing import NamedTuple

import numpy as np

from gnomon.displays._reading import last_step


class Mixture(NamedTuple):
    """Gaussians in the embedding: means (m, q), covariances (m, q, q), class of each (m,)."""

    means: np.ndarray
    covariances: np.ndarray
    classes: np.ndarray


def pair(components, Z):
    """Columns to draw, as a list; one where the embedding has only one."""
    components = list(components)[: Z.shape[1]]
    if not components or min(components) < 0 or max(components) >= Z.shape[1]:
        raise ValueError(
            f"components == {components!r}; accepted are two numbers from 0 to {Z.shape[1] - 1}"
        )
    return components


def shared(covariance):
    """The covariance of all points if they share one, else None."""
    if covariance.ndim == 2:
        return covariance
    return covariance[0] if np.ptp(covariance, axis=0).max() == 0 else None


def ends(grid):
    """First and last position of a grid."""
    return grid[0], grid[-1]


def heights(labels, n):
    """Second coordinate of a single component: y itself, or the class with some spread."""
    if labels is not None and labels.classes is None:
        return np.where(labels.labelled, labels.values, np.nanmean(labels.values))
    spread = np.random.default_rng(0).uniform(-0.3, 0.3, size=n)
    return spread if labels is None else labels.codes + spread


def mixture_of(estimator) -> Mixture:
    """The Gaussians of a fitted mixture model, with the class of each."""
    model, _ = last_step(estimator)
    if not hasattr(model, "gaussian_classes_"):
        raise TypeError(f"mixture=True needs a mixture; {type(model).__name__} has none")
    classes = np.asarray(model.classes_)[model.gaussian_classes_]
    return Mixture(model.means_, model.covariances_, classes)
