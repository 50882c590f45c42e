"""The maximum of the likelihood of SPPCA, from its statistics: start, accelerate, finish.

Shared by the estimators that fit by likelihood; the loop is that of the estimator.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference.lbfgs import ascend
from gnomon.inference.loop import Method, Run, anderson, iterate
from gnomon.models import sppca, sppca_blocks, sppca_closed_form, sppca_gaps, sppca_vector
from gnomon.models.gaussian import em, gaps
from gnomon.models.sppca_statistics import Statistics

# The likelihood counts n d inputs: this many nats per labelled row (times the tolerance)
# make sure that the few outputs have settled too.
NATS_PER_LABEL = 1e4


class Settings(NamedTuple):
    """The part of an estimator's parameters that rules noise, mean of y and prior."""

    noise: object = "learn"
    target_mean: str = "likelihood"
    prior: float = 0.0


def noise_rule(stats: Statistics, settings: Settings) -> sppca.Noise:
    """The rule of the M-step; a prior is relative to the mean variance of each view."""
    return _rule(*sppca.floors(stats), settings)


def _rule(floor_x, floor_y, settings):
    noise = settings.noise
    # The floors are known shares of the variances.
    variance_y = float(floor_y.mean()) / sppca.OUTPUT_FLOOR if floor_y.size else 1.0
    return sppca.Noise(
        floor_x,
        floor_y,
        fixed=noise if isinstance(noise, tuple) else None,
        ratio=noise if isinstance(noise, float) else None,
        per_output=noise == "per_output",
        learn_mean=settings.target_mean == "likelihood",
        prior_x=settings.prior * sppca.INPUT_FLOOR / floor_x,
        prior_y=settings.prior / variance_y,
    )


def tolerance(stats: Statistics, tol) -> float:
    """Nats below which a step counts as no change."""
    labelled = stats.outputs.counts.sum()
    whole = tol * stats.n * stats.d
    return min(whole, tol * NATS_PER_LABEL * labelled) if labelled else whole


def maximise(stats: Statistics, q, noise: sppca.Noise, *, max_iter, tol, loop=iterate, start=None):
    """The run to the maximum; its state is a `sppca.State` in the coordinates of the statistics.

    Where all rows are labelled the start is the closed form at the best ratio of noise levels;
    otherwise PPCA. Where noise is tied or held by its floor EM crawls, and L-BFGS finishes.
    """
    if start is None:
        exact = sppca_closed_form.applies(stats, noise)
        start = (sppca_closed_form.closed_form if exact else sppca.init)(stats, q, noise)
    method = anderson(
        Method(start, partial(sppca.em_step, stats=stats, noise=noise)),
        partial(sppca_vector.pack, noise=noise),
        partial(sppca_vector.unpack, like=start, noise=noise),
    )
    run = loop(method, max_iter=max_iter, tol=tol)
    left = max_iter - len(run.objective)
    if run.converged and left > 0 and (noise.ratio is not None or any(at_floor(run.state, noise))):
        return _finish(run, stats, noise, max_iter=left, tol=tol)
    return run


def paper_em(X, targets, weights, q, rng, *, loop, max_iter, tol):
    """Algorithm 2 of [YYTKW06] on the rows, from a random start, eq. (12) corrected."""
    blocks, mean_y = sppca_blocks.blocks(X, targets.Y, targets.observed, weights)
    start = sppca_blocks.init(blocks, q, rng)
    step = partial(em.em_step, blocks=blocks)
    run = loop(Method(start, step), max_iter=max_iter, tol=tol * X.n_samples * X.n_features)
    return run._replace(state=sppca_blocks.state(run.state, mean_y))


def maximise_with_gaps(X, targets, weights, q, settings: Settings, **options):
    """The run where X has gaps; its state is the mean of x and a `sppca.State` in full space."""
    per_output = settings.noise == "per_output"
    data = sppca_gaps.table(X, targets.Y, targets.observed, weights, per_output=per_output)
    noise = _rule(data.floors[0], data.floors[1:], settings)
    inputs = gaps.group_rows(X, np.zeros(X.shape[1], dtype=int), weights)
    start = sppca_gaps.init(data, gaps.init(inputs, q), noise)
    run = climb_with_gaps(data, start, noise, **options)
    state = sppca_gaps.split(run.state, X.shape[1], targets.Y.shape[1])
    return run._replace(state=state), noise


def climb_with_gaps(data, start, noise: sppca.Noise, *, max_iter, tol, loop) -> Run:
    """The run of EM on rows with gaps; its state is an `gaps.State`."""
    method = anderson(
        Method(start, partial(sppca_gaps.step, data=data, noise=noise)),
        gaps.pack,
        partial(sppca_gaps.unpack, like=start, data=data, noise=noise),
    )
    return loop(method, max_iter=max_iter, tol=tol * gaps.n_observed(data))


def at_floor(state: sppca.State, noise: sppca.Noise) -> tuple[bool, bool]:
    """Whether the noise of x and of any output is held by its floor."""
    if noise.fixed is not None:
        return False, False
    low_x = bool(state.sigma2 <= 1.001 * noise.floor_x)
    if noise.ratio is not None or not state.sigma2_y.size:
        return low_x, False
    floor_y = noise.floor_y if noise.per_output else noise.floor_y.mean()
    return low_x, bool(np.any(state.sigma2_y <= 1.001 * floor_y))


def _finish(run, stats, noise, *, max_iter, tol):
    found = ascend(
        partial(sppca_vector.value_and_gradient, like=run.state, stats=stats, noise=noise),
        sppca_vector.pack(run.state, noise),
        bounds=sppca_vector.bounds(run.state, noise),
        max_iter=max_iter,
        tol=tol,
    )
    if not found.objective[-1] >= run.objective[-1]:
        return run
    state = sppca_vector.unpack(found.state, run.state, noise)
    return Run(state, run.objective + found.objective, found.converged)
