import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import kstest, norm, truncnorm

from gnomon.models.bsdr import probit
from gnomon.models.bsdr.probit import (
    HIGHEST,
    LOWEST,
    cdf_and_density,
    class_probabilities,
    class_scores,
    draw_class_scores,
    draw_sign_scores,
    hazard,
    sign_scores,
)


@pytest.fixture
def with_nodes(monkeypatch):
    """The same function with another number of nodes."""

    def call(n_nodes, function, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(probit, "N_NODES", n_nodes)
            return function(*arguments)

    return call


def case(rng, n, c, spread):
    return spread * rng.standard_normal((n, c)), rng.integers(0, c, n)


@pytest.mark.parametrize("c", [2, 3, 10, 26])
@pytest.mark.parametrize("spread", [0.3, 1, 3, 10, 30])
def test_sixteen_nodes_err_below_two_in_100000(rng, c, spread, with_nodes):
    M, labels = case(rng, 200, c, spread)
    assert probit.N_NODES == 16
    T, log_Z = class_scores(M, labels)
    exact_T, exact_log_Z = with_nodes(150, class_scores, M, labels)
    assert_allclose(log_Z, exact_log_Z, atol=2e-5, rtol=0)
    assert_allclose(T, exact_T, atol=2e-5, rtol=0)


def test_plain_nodes_fail_when_scores_are_far_apart(rng):
    """Why nodes are centred: fixed at the origin they lose the mass altogether."""
    M, labels = case(rng, 200, 5, 10)
    points, weights = np.polynomial.hermite_e.hermegauss(32)
    own = M[np.arange(200), labels]
    differences = own[:, None] - M
    differences[np.arange(200), labels] = np.inf
    with np.errstate(divide="ignore"):
        plain = np.log(
            ndtr(points[None, :, None] + differences[:, None, :]).prod(axis=2)
            @ (weights / np.sqrt(2 * np.pi))
        )
    error = np.abs(plain - class_scores(M, labels)[1])
    assert np.max(error) > 10


def test_means_are_the_gradient_of_the_log_normaliser(rng, with_nodes):
    M, labels = case(rng, 6, 4, 2.0)
    T, _ = with_nodes(150, class_scores, M, labels)
    h = 1e-5
    for c in range(4):
        up, down = M.copy(), M.copy()
        up[:, c] += h
        down[:, c] -= h
        above, below = (with_nodes(150, class_scores, m, labels)[1] for m in (up, down))
        assert_allclose(T[:, c] - M[:, c], (above - below) / (2 * h), atol=1e-7)


def test_two_classes_are_a_probit(rng):
    M, labels = case(rng, 20, 2, 2.0)
    gap = np.where(labels == 0, 1, -1) * (M[:, 0] - M[:, 1])
    assert_allclose(class_scores(M, labels)[1], np.log(ndtr(gap / np.sqrt(2))), atol=1e-8)


def test_probabilities_agree_with_draws(rng):
    M = rng.standard_normal((3, 4))
    variance = rng.uniform(0.5, 3, (3, 4))
    draws = M + np.sqrt(variance) * rng.standard_normal((400_000, 3, 4))
    frequency = np.stack([(draws.argmax(axis=2) == c).mean(axis=0) for c in range(4)], axis=1)
    assert_allclose(class_probabilities(M, variance), frequency, atol=4e-3)


def test_small_factors_between_smaller_ones_do_not_underflow(monkeypatch):
    """Those below the table are summed as logarithms, those between are multiplied in sixes."""
    M, variance = np.zeros((1, 16)), np.ones((1, 16))
    M[0, 0], variance[0, 0] = 5.0, 9.0
    variance[0, 6::6] = 0.09
    found = class_probabilities(M, variance)
    monkeypatch.setattr(probit, "MANY_CLASSES", 15)
    assert_allclose(found, class_probabilities(M, variance), atol=1e-4)


@pytest.mark.parametrize("spread", [0.1, 1, 5, 30])
@pytest.mark.parametrize("c", [3, 12, 40])
def test_one_grid_for_all_classes_gives_the_probabilities_of_nodes_for_each(
    rng, with_nodes, monkeypatch, c, spread
):
    M, variance = spread * rng.standard_normal((20, c)), 1 + rng.gamma(1.0, 4.0, size=(20, c))
    monkeypatch.setattr(probit, "MANY_CLASSES", c)
    expected = with_nodes(150, class_probabilities, M, variance)
    monkeypatch.setattr(probit, "MANY_CLASSES", c - 1)
    assert_allclose(class_probabilities(M, variance), expected, atol=2e-6)


def test_probabilities_of_many_classes_are_those_of_the_largest_of_many_draws(rng):
    """A thousand alike, and one that is ahead of them."""
    M = np.zeros((1, 1000))
    M[0, 7] = 3.0
    t = np.linspace(-9, 12, 20001)
    ahead = np.trapezoid(norm.pdf(t, 3.0) * ndtr(t) ** 999, t)
    P = class_probabilities(M, np.ones(1000))[0]
    assert_allclose(P[7], ahead, rtol=1e-8)
    assert_allclose(np.delete(P, 7), (1 - ahead) / 999, rtol=1e-8)


def test_variance_in_place_of_its_root_is_off(rng):
    """Erratum E-G13-5: the printed prediction takes the variance for a standard deviation."""
    M, variance = np.array([[1.0, 0.0]]), np.array([[3.0, 1.0]])
    right = class_probabilities(M, variance)[0, 0]
    printed = class_probabilities(M, variance**2)[0, 0]
    assert_allclose(right, ndtr(0.5), atol=1e-6)
    assert abs(printed - right) > 0.05


def test_drawn_scores_have_the_moments_and_the_winner(rng):
    M, labels = case(rng, 4, 5, 2.0)
    draws = draw_class_scores(np.tile(M, (20_000, 1)), np.tile(labels, 20_000), rng)
    draws = draws.reshape(20_000, *M.shape)
    assert np.all(draws.argmax(axis=2) == labels)
    assert_allclose(draws.mean(axis=0), class_scores(M, labels)[0], atol=0.05)


def test_drawn_pairs_follow_the_exact_law(rng):
    """Given two classes, the difference of scores is a truncated normal."""
    M = np.tile([0.3, 1.5], (20_000, 1))
    T = draw_class_scores(M, np.zeros(20_000, dtype=int), rng)
    difference = T[:, 0] - T[:, 1]
    law = truncnorm(1.2 / np.sqrt(2), np.inf, loc=-1.2, scale=np.sqrt(2))
    assert kstest(difference, law.cdf).pvalue > 1e-3


def test_draws_do_not_stall_with_many_improbable_classes(rng):
    M = np.full((200, 300), 30.0)
    M[:, 0] = -30.0
    T = draw_class_scores(M, np.zeros(200, dtype=int), rng)
    assert np.all(T.argmax(axis=1) == 0)


def test_sign_scores_are_truncated_normal_means():
    M = np.array([[0.5, -2.0, 1.0, -9.0]])
    signs = np.array([[1.0, 1.0, -1.0, 1.0]])
    T, log_Z = sign_scores(M, signs)
    expected = [
        s * truncnorm(-m * s, np.inf, loc=m * s).mean() for m, s in zip(M[0], signs[0], strict=True)
    ]
    assert_allclose(T[0], expected, rtol=1e-6)
    assert_allclose(log_Z[0, :3], np.log(ndtr(M[0, :3] * signs[0, :3])))


def test_unknown_signs_leave_scores_free():
    T, log_Z = sign_scores(np.array([[0.7]]), np.array([[0.0]]))
    assert_allclose(T, 0.7)
    assert_allclose(log_Z, 0)


def test_drawn_signs_are_exact(rng):
    M, signs = np.full((20_000, 1), -1.5), np.ones((20_000, 1))
    T = draw_sign_scores(M, signs, rng)
    assert kstest(T.ravel(), truncnorm(1.5, np.inf, loc=-1.5).cdf).pvalue > 1e-3
    free = draw_sign_scores(M, 0 * signs, rng)
    assert kstest(free.ravel() + 1.5, "norm").pvalue > 1e-3


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


def test_hazard_keeps_its_digits_far_out():
    """By the first terms of its series in 1 / a, which has as many digits there."""
    x = np.array([60.0, 1e3, 1e5, 1e8])
    assert_allclose(hazard(-x), x + 1 / x - 2 / x**3 + 10 / x**5, rtol=1e-12)
    assert_allclose(hazard(np.array([-50.0])), hazard(np.array([-50.0 - 1e-9])), rtol=1e-10)


@pytest.mark.parametrize("size", [1e3, 1e5, 1e7])
def test_moments_exist_where_means_are_far_on_the_wrong_side(size, rng):
    M, labels = -size * rng.random((200, 3)), rng.integers(3, size=200)
    T, log_Z = class_scores(M, labels)
    assert np.isfinite(T).all() and np.isfinite(log_Z).all()
    assert np.all(T[np.arange(200), labels] >= T.max(axis=1) - 1e-6 * size)


def test_hazard_is_the_derivative_of_log_cdf():
    A = np.array([-40.0, -3.0, 0.0, 2.0, 12.0])
    h = 1e-5
    slope = (norm.logcdf(A + h) - norm.logcdf(A - h)) / (2 * h)
    assert_allclose(hazard(A), slope, rtol=1e-6, atol=1e-12)


def test_probabilities_on_one_grid_do_not_depend_on_the_unit(rng):
    m, s = rng.normal(size=(4, 10)), rng.uniform(1, 3, size=(4, 10))
    expected = probit._on_one_grid(m, s)
    assert_allclose(probit._on_one_grid(0.01 * m, 0.01 * s), expected, rtol=1e-9)


def test_draws_are_exact_from_a_curve_that_touches_elsewhere_than_at_the_mode(rng, monkeypatch):
    """Newton's steps end near the mode; what is left is a gradient that the curve takes up."""
    monkeypatch.setattr(probit, "_mode", lambda shift, slope: (np.zeros(shift.shape[1]), None))
    shift = np.array([[-3.0]])
    u = np.linspace(-8, 8, 4001)
    density = np.exp(-0.5 * u**2) * np.prod(ndtr(u + shift), axis=0)
    mean = u @ density / density.sum()
    drawn = probit._draw_winner(np.tile(shift, 20_000), rng)
    assert abs(drawn.mean() - mean) < 5 * drawn.std() / np.sqrt(20_000)
