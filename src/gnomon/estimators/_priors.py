"""Settings of a fit of BSDR after looking at the data: prior, components, hyperparameters."""

import warnings
from typing import NamedTuple

import numpy as np

from gnomon.estimators._door import check_integer, check_option, check_real
from gnomon.models import bsdr
from gnomon.stats.gamma import Gamma

PRIORS = ("auto", "entry", "column", "row")
# With more features the factors of the entrywise prior cost more than they give.
MOST_ENTRYWISE = 1000
# Precisions with this prior drop what the data do not support [G13].
SPARSE_PRIOR = (0.001, 1000.0)


class Plan(NamedTuple):
    """Settings of one fit after looking at the data."""

    kind: str
    q: int
    priors: bsdr.Priors
    noise: float


def make_plan(model, data, outputs) -> Plan:
    """Components, prior and hyperparameters for these data."""
    n, d = data.shape
    limit = n - 1 if model.kernel is not None else d
    auto = model.n_components == "auto"
    if auto:
        classes = isinstance(outputs, bsdr.ClassOutputs)
        q = max(1, min(limit, outputs.n_outputs - classes))
    else:
        high_is = f", the number of {'rows less one' if model.kernel else 'features'}"
        q = check_integer(
            "n_components", model.n_components, low=1, high=max(limit, 1), high_is=high_is
        )
    kind = _kind(model, data, auto)
    sparse_prior = auto or kind == "row"
    default = SPARSE_PRIOR if sparse_prior else (1.0, 1.0)
    priors = bsdr.Priors(
        kind,
        default_prior("projection_prior", model.projection_prior, default),
        default_prior("weight_prior", model.weight_prior, (1.0, 1.0)),
        default_prior("bias_prior", model.bias_prior, (1.0, 1.0)),
    )
    return Plan(kind, q, priors, float(model.latent_noise) ** 2)


def _kind(model, data, auto):
    n, d = data.shape
    if model.prior == "auto":
        wide = d > MOST_ENTRYWISE or data.is_sparse
        return "column" if auto or wide or model.kernel is not None else "entry"
    if auto and model.prior != "column":
        raise ValueError(
            f"prior == {model.prior!r} with n_components == 'auto'; accepted are 'auto' and "
            "'column', whose precisions switch components off"
        )
    if model.prior != "column" and data.is_sparse and n < d:
        raise ValueError(
            f"prior == {model.prior!r} with a sparse X of more features than rows; accepted "
            "are 'auto' and 'column', which need products with X only"
        )
    return model.prior


def default_prior(name, value, default) -> Gamma:
    """A gamma prior from a pair (shape, scale) of positive numbers, or the default for "auto"."""
    if isinstance(value, str):
        check_option(name, value, ("auto",))
        value = default
    if np.shape(value) != (2,):
        raise ValueError(f"{name} == {value!r}; accepted are 'auto' and pairs (shape, scale)")
    shape, scale = (
        check_real(f"{name}[{i}]", v, low=0, open_low=True) for i, v in enumerate(value)
    )
    return Gamma(shape, scale)


def warn_unlabelled(model, keep):
    """Say that rows without any output are left out."""
    if not keep.all():
        warnings.warn(
            f"y has no label for {np.sum(~keep)} of {len(keep)} rows; {type(model).__name__} "
            "leaves them out, as they say nothing of the projection in this model",
            UserWarning,
            stacklevel=3,
        )
