import numpy as np
from numpy.testing import assert_allclose

from gnomon.inference.lbfgs import ascend


def bowl(x):
    """A curved ridge with its top of zero at (1, 1)."""
    a, b = 1 - x[0], x[1] - x[0] ** 2
    return -(a**2) - 100 * b**2, np.array([2 * a + 400 * x[0] * b, -200 * b])


def test_climbs_to_the_top_and_never_falls():
    run = ascend(bowl, np.array([-1.2, 1.0]), max_iter=200, tol=1e-14)
    assert run.converged
    assert_allclose(run.state, 1, atol=1e-5)
    assert np.all(np.diff(run.objective) >= 0)


def test_bounds_hold():
    run = ascend(
        bowl, np.array([-1.2, 1.0]), bounds=[(None, 0.5), (None, None)], max_iter=200, tol=1e-14
    )
    assert_allclose(run.state, [0.5, 0.25], atol=1e-5)


def test_too_few_iterations_are_not_convergence():
    assert not ascend(bowl, np.array([-1.2, 1.0]), max_iter=2, tol=0).converged


def test_a_callback_stops_it():
    run = ascend(
        bowl, np.array([-1.2, 1.0]), max_iter=200, tol=0, callback=lambda n, x, value: n == 3
    )
    assert len(run.objective) == 3
    assert not run.converged
