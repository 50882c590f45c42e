"""SPPCA at a stated strength where x has gaps, by the likelihood of what is observed.

Stage 1 sees a row at its mean given what it observes, E[x | x_o] under PPCA, and completes the
labels c on all rows. Stage 2 then has no closed form; it is EM on the observed entries,

    x_o = mean_o + W_o z + e,    c = mean_c + W_y z + e_y,    noise sigma2 and r(s) sigma2

with r(s) = (1-s)/s tc/tx as without gaps; tx counts the variance that is left in the gaps. The
rows [x, c / sqrt(r)] have one noise variance, so that a step is that of PPCA with gaps. Without
gaps the maximum is that of `closed_form`, at s = 0 it is PPCA.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Method, Run, iterate
from gnomon.linalg.blocks import Made
from gnomon.linalg.data import Data, Matrix, as_data
from gnomon.linalg.solve import column_signs, one_thread
from gnomon.models.gaussian import gaps as observed
from gnomon.models.gaussian import patterns
from gnomon.models.sppca.fit import SppcaFit
from gnomon.models.sppca.statistics import State
from gnomon.models.strength.closed_form import padded
from gnomon.models.strength.rule import RULE, TINY


class Filled(NamedTuple):
    """Rows with their gaps at their means, and their expected total variance.

    ``data`` are the rows as observed, ``ppca`` the model that filled them, after ``n_steps``.
    Rows that are too many to sort at once are filled anew each time they are needed.
    """

    X: Data
    total: float
    data: patterns.Table
    ppca: observed.State
    n_steps: int


class Joint(NamedTuple):
    """Rows [x, c] with the columns divided by ``scale``, so that all have one noise variance.

    ``ratios`` are the noise variances of x and c over that of x, ``constant`` is what the scale
    adds to the log likelihood, ``energy`` the variance tc of the completed labels.
    """

    data: patterns.Table
    scale: np.ndarray
    ratios: np.ndarray
    constant: float
    mean_c: np.ndarray
    s: float
    energy: float


@one_thread
def fill(X, weights, settings) -> Filled:
    """The rows as stage 1 sees them, by PPCA of what is observed."""
    data = patterns.inputs_of_any_number(X, weights)
    limits = {"max_iter": settings.max_iter, "tol": settings.tol}
    run = observed.maximise(data, settings.n_components, iterate, **limits)
    if isinstance(data, patterns.Parts):
        known = partial(_fill_rows, state=run.state, shift=data.shift)
        rows: Data = Made(as_data(X), known, patterns.PART_ROWS)
    else:
        rows = Matrix(observed.fill(run.state, data)[0].astype(X.dtype))
    return Filled(rows, _expected_total(run.state, data), data, run.state, len(run.objective))


def _fill_rows(rows, state, shift):
    groups = np.zeros(len(shift), dtype=int)
    return observed.fill(state, patterns.group_rows(rows.astype(float), groups, shift=shift))[0]


def _expected_total(state, data):
    """The variance of all columns together, that of the gaps among it."""
    total = 0.0
    for rows in patterns.each(data):
        values, deviations = observed.fill(state, rows)
        squares = np.sum((values - state.mean) ** 2 + deviations**2, axis=1)
        total += float(rows.weights @ squares[rows.order])
    return total / patterns.total_weight(data)


def refine(X, weights, filled: Filled, model: SppcaFit, s, settings, loop) -> tuple[SppcaFit, Run]:
    """The model at the maximum, from the closed form on the filled rows, and the run."""
    joint = joint_rows(X, weights, filled, model, s)
    run = climb(joint, start(joint, filled, model), settings, loop)
    noise = input_noise(run.state, filled.data, settings)
    return assemble(run.state, noise, joint, filled, model), run


def joint_rows(X, weights, filled: Filled, model: SppcaFit, s) -> Joint:
    """Stage 2 for rows with gaps; ``model`` is the closed form on the filled rows."""
    C = np.asarray(filled.X.less_mean(filled.ppca.mean) @ (model.outputs.coef @ model.whitener))
    share = np.full(len(C), 1 / len(C)) if weights is None else weights / weights.sum()
    mean_c = share @ C
    energy = float(np.sum(share @ (C - mean_c) ** 2))
    s = min(s, RULE.largest_share) if energy > 0 else 0.0
    ratios = np.ones(1)
    if s > 0:
        ratios = np.array([1.0, (1 - s) / s * energy / filled.total])
    C, mean_c = (C, mean_c) if s > 0 else (C[:, :0], mean_c[:0])
    scale = np.sqrt(np.repeat(ratios, [X.shape[1], C.shape[1]][: len(ratios)]))
    data = _beside(X, C / scale[X.shape[1] :], weights)
    # The labels are no measure of what noise is too small for x.
    data = data._replace(floors=filled.data.floors)
    constant = patterns.total_weight(data) * float(np.log(scale).sum())
    return Joint(data, scale, ratios, constant, mean_c, s, energy)


def _beside(X, C, weights) -> patterns.Table:
    """Rows [x, c] of one noise variance, by what they observe."""
    if patterns.too_many(X):
        return patterns.in_parts(X, weights, (C.__getitem__, C.shape[1]))
    groups = np.zeros(X.shape[1] + C.shape[1], dtype=int)
    return patterns.group_rows(np.hstack([X, C]), groups, weights)


def start(joint: Joint, filled: Filled, model: SppcaFit) -> observed.State:
    """The closed form on the filled rows; without labels the PPCA that filled them."""
    if joint.s == 0:
        return filled.ppca
    W = np.vstack([model.state.W, model.state.W_y])
    return observed.State(
        # A direction without energy, at s = 1 all but those of the labels, stays out.
        W[:, W.any(axis=0)],
        np.concatenate([filled.ppca.mean, joint.mean_c]),
        max(model.state.sigma2, joint.data.floors[0]) * joint.ratios,
    )


@one_thread
def climb(joint: Joint, start: observed.State, settings, loop) -> Run:
    """EM with Anderson's mixing; the tolerance is in nats per observed entry."""
    joint = joint._replace(data=patterns.condensed(joint.data))
    method = Method(start, partial(step, joint=joint))
    method = observed.mixing(method, patterns.units(joint.data) * joint.scale)
    tol = settings.tol * patterns.n_observed(joint.data)
    return loop(method, max_iter=settings.max_iter, tol=tol)


def step(state: observed.State, joint: Joint) -> tuple[observed.State, float]:
    """One EM step with the noise of c tied to that of x, and the log likelihood before it."""
    scale = joint.scale
    scaled = observed.State(state.W / scale[:, None], state.mean / scale, state.noise[:1])
    found, objective = observed.step(scaled, joint.data)
    W, mean = found.W * scale[:, None], found.mean * scale
    return observed.State(W, mean, found.noise * joint.ratios), objective - joint.constant


@one_thread
def input_noise(state: observed.State, data: patterns.Table, settings) -> float:
    """The most likely noise of x for the loadings of x, those of the labels left aside."""
    d, data = len(data.shift), patterns.condensed(data)
    alone = observed.State(state.W[:d], state.mean[:d], state.noise[:1])
    method = Method(alone, partial(observed.noise_step, data=data))
    tol = settings.tol * patterns.n_observed(data)
    return float(iterate(method, max_iter=settings.max_iter, tol=tol).state.noise[0])


def assemble(
    state: observed.State, noise, joint: Joint, filled: Filled, model: SppcaFit
) -> SppcaFit:
    """SPPCA at the maximum, in the form of the closed one.

    ``noise`` is the variance of the noise of x for these loadings, the labels left aside.
    """
    d, q = model.state.W.shape
    block = model.outputs.coef @ model.whitener
    mean, sigma2 = state.mean[:d], float(state.noise[0])
    W, W_y = _principal_axes(state.W, joint.scale, d)
    level = float(state.noise[1]) if joint.s > 0 else np.inf
    W_y = W_y if joint.s > 0 else block.T @ W
    strength = np.sum(W**2, axis=0) / sigma2 + np.sum(W_y**2, axis=0) / level
    strength = np.maximum(strength, TINY)
    latent = np.sqrt(strength / (sigma2 * (1 - joint.s))) / (1 + strength)
    through = (W / sigma2 + block @ W_y / level) / (1 + strength)
    whole = 1 + 1 / strength
    offset = model.outputs.offset + (mean - filled.ppca.mean) @ model.outputs.coef
    levels = np.full(len(offset), level)
    return model._replace(
        mean=mean,
        state=State(padded(W, q), noise, padded(W_y, q), levels, offset),
        projection=padded(through / latent, q),
        latent_scale=padded(latent, q),
        latent_covariance=np.diag(1 / (1 + padded(strength, q))),
        outputs=model.outputs._replace(offset=offset),
        input_share=padded(whole * np.sum(W**2, axis=0) / filled.total, q),
        target_share=padded(whole * np.sum(W_y**2, axis=0) / max(joint.energy, TINY), q),
    )


def _principal_axes(W, scale, d):
    """Loadings of x (d, q) and of c along the axes of their common energy, signs fixed by x."""
    scaled = W / scale[:, None]
    _, R = np.linalg.eigh(scaled.T @ scaled)
    turned = W @ R[:, ::-1]
    turned *= column_signs(turned[:d])
    return turned[:d], turned[d:]
