from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.datasets import remove_entries
from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import center
from gnomon.models.gaussian import gaps as observed_rows
from gnomon.models.gaussian import patterns
from gnomon.models.strength import gaps
from gnomon.models.strength.closed_form import principal_space, supervise
from gnomon.models.strength.completion import Outputs
from gnomon.stats.gaussian import NOISE_FLOOR

n, d, q = 60, 6, 3


@pytest.fixture
def rows(rng):
    """Rows, their numbers of two outputs, and which of these are known."""
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d) + 4
    Y = X[:, 3:5] + 0.5 * rng.normal(size=(n, 2))
    return X, Y - Y.mean(axis=0), np.repeat((np.arange(n) < 30)[:, None], 2, axis=1)


class Limits(NamedTuple):
    n_components: int = q
    max_iter: int = 5000
    tol: float = 1e-13


def stages(X, Y, observed, s):
    """The filled rows, the closed form on them, and the rows of stage 2."""
    filled = gaps.fill(X, None, Limits())
    space = principal_space(*center(filled.X), 150, np.random.default_rng(0))
    known = Outputs(np.where(observed, Y, 0), observed)
    found = supervise(space._replace(total=filled.total), known, q, s)
    return filled, found, gaps.joint_rows(X, None, filled, found, s)


def climb(joint, start, **options):
    return iterate(Method(start, partial(gaps.step, joint=joint)), **options)


@pytest.mark.parametrize("s", [0.3, 0.99])
def test_the_objective_is_the_density_of_what_is_observed(rows, s):
    X, Y, observed = rows
    X = remove_entries(X, 0.3)
    filled, found, joint = stages(X, Y, observed, s)
    start = gaps.start(joint, filled, found)
    W, mean, (sigma2, level) = start
    C = (filled.X.as_array() - filled.ppca.mean) @ found.outputs.coef @ found.whitener
    energy = np.var(C, axis=0).sum()
    assert_allclose(level / sigma2, (1 - s) / s * energy / filled.total)
    covariance = W @ W.T + np.diag(np.repeat([sigma2, level], [d, 2]))
    total = 0.0
    for row in np.hstack([X, C]):
        o = ~np.isnan(row)
        total += multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(row[o])
    assert_allclose(climb(joint, start, max_iter=1, tol=0).objective[0], total)


@pytest.mark.parametrize("s", [0.1, 0.9, 1.0])
def test_the_objective_never_falls_and_noise_stays_tied(rows, s):
    X, Y, observed = rows
    filled, found, joint = stages(remove_entries(X, 0.3), Y, observed, s)
    run = climb(joint, gaps.start(joint, filled, found), max_iter=200, tol=0)
    assert np.all(np.diff(run.objective) >= -1e-10 * np.abs(run.objective[:-1]))
    assert run.objective[-1] > run.objective[0]
    assert_allclose(run.state.noise[1] / run.state.noise[0], joint.ratios[1])


@pytest.mark.parametrize("s", [0.0, 0.2, 0.9, 1.0])
def test_without_gaps_it_is_the_closed_form(rows, s):
    X, Y, observed = rows
    filled, found, joint = stages(X, Y, observed, s)
    start = gaps.start(joint, filled, found)
    if s < 1:
        # From elsewhere, so that staying at the start would not pass; at s = 1 EM creeps.
        start = start._replace(W=1.3 * start.W, noise=2 * start.noise)
    state = climb(joint, start, max_iter=1000, tol=1e-12).state
    again = gaps.assemble(state, found.state.sigma2, joint, filled, found)
    assert_allclose(again.mean, X.mean(axis=0))
    close = {"rtol": 1e-4, "atol": 1e-4}
    for name in ("projection", "latent_scale", "latent_covariance", "input_share", "target_share"):
        assert_allclose(getattr(again, name), getattr(found, name), err_msg=name, **close)
    for name in ("W", "W_y", "mean_y"):
        actual, expected = getattr(again.state, name), getattr(found.state, name)
        assert_allclose(actual, expected, err_msg=name, **close)
    if 0 < s < 1:
        assert_allclose(again.state.sigma2_y, found.state.sigma2_y, rtol=1e-5)


def test_the_floor_of_the_noise_is_that_of_x_alone(rows):
    """At s = 1 the scaled labels are longer than x by orders of magnitude."""
    X, Y, observed = rows
    X = remove_entries(X, 0.3)
    _, _, joint = stages(X, Y, observed, 1.0)
    squares = (X - np.nanmean(X, axis=0)) ** 2
    assert_allclose(joint.data.floors, [NOISE_FLOOR * np.nanmean(squares)])


@pytest.mark.parametrize("s", [0.0, 0.7])
def test_refining_ends_at_the_maximum_with_its_own_noise_of_x(rows, s):
    X, Y, observed = rows
    X = remove_entries(X, 0.3)
    filled, found, joint = stages(X, Y, observed, s)
    fit, run = gaps.refine(X, None, filled, found, s, Limits(), iterate)
    plain = climb(joint, gaps.start(joint, filled, found), max_iter=5000, tol=1e-11)
    assert_allclose(run.objective[-1], plain.objective[-1], rtol=1e-9)
    assert run.converged
    alone = observed_rows.State(fit.state.W, fit.mean, np.array([fit.state.sigma2]))
    densities = [
        observed_rows.log_density(alone._replace(noise=alone.noise * factor), filled.data).sum()
        for factor in (0.99, 1.0, 1.01)
    ]
    assert np.argmax(densities) == 1


def test_the_expected_total_counts_what_the_gaps_hide(rng):
    X = rng.normal(size=(4000, 2)) @ rng.normal(size=(2, d)) + 0.5 * rng.normal(size=(4000, d))
    filled = gaps.fill(remove_entries(X, 0.3), None, Limits(2, 500, 1e-8))
    assert_allclose(filled.total, X.var(axis=0).sum(), rtol=0.02)


def test_noise_alone_climbs_to_its_maximum(rows, rng):
    X, _, _ = rows
    data = patterns.inputs(remove_entries(X, 0.3))
    start = observed_rows.State(rng.normal(size=(d, q)), data.shift, np.ones(1))
    noise = gaps.input_noise(start, data, Limits(q, 2000, 1e-14))
    values = [
        observed_rows.log_density(start._replace(noise=np.array([level])), data).sum()
        for level in noise * np.array([0.999, 1.0, 1.001])
    ]
    assert np.argmax(values) == 1


def test_the_energy_of_filled_rows_has_what_their_gaps_may_hold(rows):
    X = remove_entries(rows[0], 0.3)
    filled = gaps.fill(X, None, Limits())
    W, mean, (sigma2,) = filled.ppca
    C, total = W @ W.T + sigma2 * np.eye(d), 0.0
    for x in X:
        o = ~np.isnan(x)
        K = C[~o][:, o] @ np.linalg.inv(C[o][:, o])
        total += np.sum((x[o] - mean[o]) ** 2) + np.sum((K @ (x[o] - mean[o])) ** 2)
        total += np.trace(C[~o][:, ~o] - K @ C[o][:, ~o])
    assert_allclose(filled.total, total / len(X))
