import numpy as np
from numpy.testing import assert_allclose

from gnomon.inference.ascent import ascent_direction, begin, lbfgs
from gnomon.inference.loop import Method, iterate


def hill(x):
    """Minus Rosenbrock's function in pairs of coordinates."""
    a, b = x[::2], x[1::2]
    value = np.sum(100 * (b - a**2) ** 2 + (1 - a) ** 2)
    gradient = np.empty_like(x)
    gradient[::2] = -400 * a * (b - a**2) - 2 * (1 - a)
    gradient[1::2] = 200 * (b - a**2)
    return -value, -gradient


def test_finds_the_top_of_a_curved_ridge():
    start = np.tile([-1.2, 1.0], 3)
    run = iterate(Method(begin(hill, start), lbfgs(hill)), max_iter=200, tol=1e-14)
    assert run.converged
    assert_allclose(run.state.x, np.ones(6), atol=1e-5)


def test_never_descends():
    run = iterate(Method(begin(hill, np.array([-1.2, 1.0])), lbfgs(hill)), max_iter=50, tol=0)
    assert np.diff(run.objective).min() >= 0


def test_direction_on_a_quadratic_is_newtons(rng):
    """With as many moves as dimensions, along conjugate axes, the curvature is known."""
    H = np.diag([1.0, 10.0, 100.0])
    path = begin(lambda x: (-0.5 * x @ H @ x, -H @ x), rng.standard_normal(3))
    moves = np.eye(3)
    path = path._replace(moves=moves, changes=-moves @ H)
    assert_allclose(ascent_direction(path), -path.x)


def test_stays_at_the_top():
    path = begin(hill, np.ones(4))
    moved, value = lbfgs(hill)(path)
    assert value == 0
    assert_allclose(moved.x, 1.0)
