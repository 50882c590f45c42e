from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.datasets import remove_entries
from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix, center
from gnomon.models import supervision_gaps
from gnomon.models.gaussian import gaps
from gnomon.models.sppca import gaps as sppca_gaps
from gnomon.models.supervision import pool, supervise

n, d, q = 60, 6, 3


@pytest.fixture
def rows(rng):
    """Rows, their numbers of two outputs, and which of these are known."""
    X = rng.normal(size=(n, d)) * np.linspace(3, 1, d) + 4
    Y = X[:, 3:5] + 0.5 * rng.normal(size=(n, 2))
    return X, Y - Y.mean(axis=0), np.repeat((np.arange(n) < 30)[:, None], 2, axis=1)


def stages(X, Y, observed, s):
    """The filled rows, the closed form on them, and the problem of stage 2."""
    data = sppca_gaps.table(X, *sppca_gaps.no_outputs(n))
    ppca = iterate(
        Method(gaps.init(data, q), partial(gaps.step, data=data)),
        max_iter=5000,
        tol=1e-10,
    ).state
    filled = supervision_gaps.fill(ppca, data)
    basis = pool(center(Matrix(filled.X))[1], 150, np.random.default_rng(0))
    found = supervise(basis._replace(total=filled.total), np.where(observed, Y, 0), observed, q, s)
    return filled, found, supervision_gaps.problem(X, filled, found, s, None)


def climb(problem, **options):
    step = partial(sppca_gaps.step, data=problem.data, noise=problem.noise)
    return iterate(Method(problem.start, step), **options)


@pytest.mark.parametrize("s", [0.3, 0.99])
def test_the_objective_is_the_density_of_what_is_observed(rows, s):
    X, Y, observed = rows
    X = remove_entries(X, 0.3)
    filled, found, problem = stages(X, Y, observed, s)
    W, mean, (sigma2, level) = problem.start
    C = (filled.X - filled.state.mean) @ found.coef @ found.whitener
    energy = np.var(C, axis=0).sum()
    assert_allclose(level / sigma2, (1 - s) / s * energy / filled.total)
    covariance = W @ W.T + np.diag(np.repeat([sigma2, level], [d, 2]))
    total = 0.0
    for row in np.hstack([X, C]):
        o = ~np.isnan(row)
        total += multivariate_normal(mean[o], covariance[np.ix_(o, o)]).logpdf(row[o])
    assert_allclose(climb(problem, max_iter=1, tol=0).objective[0], total)


@pytest.mark.parametrize("s", [0.1, 0.9, 1.0])
def test_the_objective_never_falls_and_noise_stays_tied(rows, s):
    X, Y, observed = rows
    _, _, problem = stages(remove_entries(X, 0.3), Y, observed, s)
    run = climb(problem, max_iter=200, tol=0)
    assert np.all(np.diff(run.objective) >= -1e-10 * np.abs(run.objective[:-1]))
    assert run.objective[-1] > run.objective[0]
    assert_allclose(run.state.noise[1] / run.state.noise[0], problem.noise.ratio)


@pytest.mark.parametrize("s", [0.0, 0.2, 0.9, 1.0])
def test_without_gaps_it_is_the_closed_form(rows, s):
    X, Y, observed = rows
    filled, found, problem = stages(X, Y, observed, s)
    start = problem.start
    if s < 1:
        # From elsewhere, so that staying at the start would not pass; at s = 1 EM creeps.
        start = start._replace(W=1.3 * start.W, noise=2 * start.noise)
    state = climb(problem._replace(start=start), max_iter=1000, tol=1e-12).state
    mean, again = supervision_gaps.assemble(state, found.sigma2, problem, filled, found)
    assert_allclose(mean, X.mean(axis=0))
    close = {"rtol": 1e-4, "atol": 1e-4}
    for name in ("W", "projection", "latent", "covariance", "W_y", "offset", "x_share", "y_share"):
        assert_allclose(getattr(again, name), getattr(found, name), err_msg=name, **close)
    if 0 < s < 1:
        assert_allclose(again.sigma2_y, found.sigma2_y, rtol=1e-5)


def test_the_expected_total_counts_what_the_gaps_hide(rng):
    X = rng.normal(size=(4000, 2)) @ rng.normal(size=(2, d)) + 0.5 * rng.normal(size=(4000, d))
    data = sppca_gaps.table(remove_entries(X, 0.3), *sppca_gaps.no_outputs(4000))
    ppca = iterate(
        Method(gaps.init(data, 2), partial(gaps.step, data=data)),
        max_iter=500,
        tol=1e-4,
    ).state
    assert_allclose(supervision_gaps.fill(ppca, data).total, X.var(axis=0).sum(), rtol=0.02)


def test_noise_alone_climbs_to_its_maximum(rows, rng):
    X, _, _ = rows
    data = gaps.group_rows(remove_entries(X, 0.3), np.zeros(d, dtype=int))
    start = gaps.State(rng.normal(size=(d, q)), data.shift, np.ones(1))
    run = iterate(Method(start, partial(gaps.noise_step, data=data)), max_iter=2000, tol=1e-12)
    assert np.all(np.diff(run.objective) >= -1e-10 * np.abs(run.objective[:-1]))
    levels = run.state.noise[0] * np.array([0.999, 1.0, 1.001])
    values = [
        gaps.log_density(start._replace(noise=np.array([level])), data).sum() for level in levels
    ]
    assert np.argmax(values) == 1
    assert_allclose(run.state.W, start.W)
