"""From raw rows to the ridge of BSDR and back: standard units, routes, kernels.

loadings = diag(factors) axes P    acts on x - mean; axes are those of a spectral ridge
"""

from typing import NamedTuple

import numpy as np

from gnomon.linalg.data import Centered, Data, center
from gnomon.linalg.standardize import Scaled, column_spread, varies
from gnomon.stats.ridge import (
    DualRidge,
    GramRidge,
    SpectralRidge,
    gram_or_dual,
    spectral,
    spectral_of_kernel,
)


class Inputs(NamedTuple):
    """What maps rows to coordinates, and what the covariances of P are made of."""

    route: str
    mean: np.ndarray
    factors: np.ndarray
    """One over the standard deviation of every feature; zero where it does not vary."""
    table: np.ndarray
    """X'X ("gram"), X ("dual"), axes ("spectral") or weights on k(x) ("kernel")."""
    values: np.ndarray | None
    """Eigenvalues of a spectral route."""
    noise: float


def read_inputs(X: Data, kind, noise, standardize):
    """`Inputs` and the ridge for centred X in standard units, by the route for its prior."""
    mean, centered = center(X)
    spread = column_spread(centered, np.ones(X.shape[0]))
    varying = varies(spread, mean, X.dtype)
    units = spread if standardize else 1.0
    factors = np.where(varying, 1.0 / np.where(varying, units, 1.0), 0.0)
    data = Scaled(centered, factors)
    if kind == "column":
        ridge, axes = spectral(data, noise)
        return Inputs("spectral", mean, factors, axes, ridge.values, noise), ridge
    ridge = gram_or_dual(data, noise)
    if isinstance(ridge, DualRidge):
        return Inputs("dual", mean, factors, ridge.X, None, noise), ridge
    return Inputs("gram", mean, factors, ridge.gram, None, noise), ridge


def read_kernel(K, noise):
    """`Inputs` and the ridge of a centred kernel matrix."""
    ridge, weights = spectral_of_kernel(K, noise)
    nothing = np.empty(0)
    return Inputs("kernel", nothing, nothing, weights, ridge.values, noise), ridge


def center_kernel(K, means):
    """Kernel values (m, n) of features less their mean over the n training rows.

    ``means`` (n,) are the column means of the training kernel.
    """
    return K - K.mean(axis=1, keepdims=True) - means + means.mean()


def loadings(inputs: Inputs, P):
    """Weights (d, q) on centred features; on centred k(x) for kernels."""
    standard = standard_loadings(inputs, P)
    return standard if inputs.route == "kernel" else inputs.factors[:, None] * standard


def standard_loadings(inputs: Inputs, P):
    """Weights (d, q) on features in standard units; on centred k(x) for kernels."""
    if inputs.route == "kernel":
        return inputs.table @ P
    P = inputs.table @ P if inputs.route == "spectral" else P
    return P * (inputs.factors > 0)[:, None]


def loading_variances(inputs: Inputs, phi, variance):
    """Variances (d, q) of the `loadings`, from those of P."""
    if inputs.route == "spectral":
        inside = inputs.table**2
        outside = np.maximum(1.0 - inside.sum(axis=1, keepdims=True), 0.0)
        variance = inside @ variance + outside / phi
    return inputs.factors[:, None] ** 2 * variance


def latent_variances(inputs: Inputs, phi, q, X):
    """Variances (m, q) of z for new rows: `Data`, or centred k(x) for kernels."""
    if inputs.route == "kernel":
        coordinates = X @ inputs.table
        return inputs.noise + _spectral(inputs).forms(phi, coordinates, np.zeros(len(X)))
    evaluate = _forms(inputs, phi, q)
    rows = Scaled(Centered(X, inputs.mean), inputs.factors)
    return inputs.noise + np.concatenate([evaluate(block) for block in rows.dense_blocks()])


def _forms(inputs, phi, q):
    if inputs.route == "spectral":
        ridge = _spectral(inputs)
        return lambda rows: ridge.forms(phi, rows @ inputs.table, np.sum(rows**2, axis=1))
    if inputs.route == "dual":
        return DualRidge(inputs.table, inputs.noise).forms(phi, q)
    return GramRidge(None, inputs.noise, inputs.table).forms(phi, q)


def _spectral(inputs):
    return SpectralRidge(None, inputs.values, len(inputs.values), inputs.noise)
