import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import norm

from gnomon.stats.normal import HIGHEST, LOWEST, cdf_and_density, hazard


@pytest.mark.parametrize(("low", "high", "error"), [(-5, 5, 2e-12), (LOWEST, HIGHEST, 1e-10)])
def test_table_agrees_with_the_functions(rng, low, high, error):
    A = rng.uniform(low, high, (50, 400))
    cdf, density = cdf_and_density(A)
    assert_allclose(cdf, ndtr(A), rtol=error)
    assert_allclose(density, norm.pdf(A), rtol=error)


def test_beyond_the_table_probability_is_one():
    cdf, density = cdf_and_density(np.array([HIGHEST + 1, 40.0, 1e300, np.inf]))
    assert_array_equal(cdf, 1.0)
    assert np.all(density < 1e-17)


def test_nothing_becomes_a_number():
    with np.errstate(invalid="ignore"):
        assert np.all(np.isnan(cdf_and_density(np.array([np.nan]))))


def test_room_is_used_and_may_hold_the_argument(rng):
    work = np.empty((5, 30))
    work[4] = rng.standard_normal(30)
    expected = cdf_and_density(work[4])
    cdf, density = cdf_and_density(work[4], work)
    assert np.shares_memory(cdf, work) and np.shares_memory(density, work)
    assert_array_equal([cdf, density], expected)


def test_hazard_is_the_derivative_of_log_cdf():
    A = np.array([-40.0, -3.0, 0.0, 2.0, 12.0])
    h = 1e-5
    slope = (norm.logcdf(A + h) - norm.logcdf(A - h)) / (2 * h)
    assert_allclose(hazard(A), slope, rtol=1e-6, atol=1e-12)
