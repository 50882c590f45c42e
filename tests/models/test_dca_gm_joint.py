from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.inference.ascent import begin, lbfgs
from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix
from gnomon.models import dca_gm, dca_gm_joint
from gnomon.models.dca_gm import Settings
from gnomon.stats.known_rows import arrange

SETTINGS = Settings(
    chunk_weight=0.7,
    unlabelled_weight=0.3,
    em_weight=0.5,
    ridge=0.4,
    shrinkage=1e-2,
    prior_count=4.0,
    prior_scale=0.05,
    generative_weight=0.2,
)
n, d, q = 60, 5, 2
OWNER = np.array([0, 0, 1, 2, 2, 2])


@pytest.fixture
def problem(rng):
    classes = rng.integers(3, size=n)
    X = rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((3, d))[classes]
    codes = np.where(np.arange(n) < 30, classes, -1)
    chunks = np.full(n, -1)
    chunks[35:50] = np.repeat(np.arange(5), 3)
    return Matrix(X - X.mean(axis=0)), arrange(codes, chunks, rng.uniform(0.5, 2, n))


def start(problem, settings, rng):
    X, rows = problem
    return dca_gm.start(rng.standard_normal((d, q)), X, rows, OWNER, settings)


@pytest.mark.parametrize("per_gaussian", [False, True])
@pytest.mark.parametrize("generative_weight", [0.0, 0.2])
def test_gradient_by_all_parameters_equals_central_differences(
    problem, rng, per_gaussian, generative_weight
):
    X, rows = problem
    settings = SETTINGS._replace(per_gaussian=per_gaussian, generative_weight=generative_weight)
    state = start(problem, settings, rng)
    f = partial(dca_gm_joint.objective, X=X, rows=rows, settings=settings, like=state.mixture)
    x = dca_gm_joint.pack(state.P, state.mixture)
    x += 0.1 * rng.standard_normal(len(x))
    h = 1e-6
    numeric = [(f(x + h * e)[0] - f(x - h * e)[0]) / (2 * h) for e in np.eye(len(x))]
    gradient = f(x)[1]
    assert np.linalg.norm(gradient - numeric) < 1e-6 * np.linalg.norm(numeric)


def test_unpack_undoes_pack(problem, rng):
    state = start(problem, SETTINGS, rng)
    P, mixture = dca_gm_joint.unpack(dca_gm_joint.pack(state.P, state.mixture), state.mixture)
    assert_allclose(P, state.P)
    for actual, expected in zip(mixture, state.mixture, strict=True):
        assert_allclose(actual, expected, rtol=1e-10)


def test_value_is_that_of_the_alternation_plus_prior(problem, rng):
    X, rows = problem
    settings = SETTINGS._replace(generative_weight=0.0, prior_count=0.0)
    state = start(problem, SETTINGS, rng)
    x = dca_gm_joint.pack(state.P, state.mixture)
    value, _ = dca_gm_joint.objective(x, X, rows, settings, state.mixture)
    expected = dca_gm.objective(state.Z, state.P.T @ state.P, state.mixture, rows, settings).value
    assert_allclose(value, expected)


def test_ascent_is_monotone_and_settles(problem, rng):
    X, rows = problem
    state = start(problem, SETTINGS, rng)
    f = partial(dca_gm_joint.objective, X=X, rows=rows, settings=SETTINGS, like=state.mixture)
    path = begin(f, dca_gm_joint.pack(state.P, state.mixture))
    run = iterate(Method(path, lbfgs(f)), max_iter=500, tol=1e-8)
    assert run.converged
    assert np.diff(run.objective).min() >= 0
    end = dca_gm_joint.state_of(run.state.x, X, rows, SETTINGS, state.mixture)
    assert_allclose(end.Z, rows.sort(X @ end.P), atol=1e-10)
    assert np.linalg.norm(f(run.state.x)[1]) < 1e-2
