import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import kstest, truncnorm

from gnomon.stats.probit import (
    class_probabilities,
    class_scores,
    draw_class_scores,
    draw_sign_scores,
    sign_scores,
)

EXACT_NODES = 150


def case(rng, n, c, spread):
    return spread * rng.standard_normal((n, c)), rng.integers(0, c, n)


@pytest.mark.parametrize("c", [2, 3, 10, 26])
@pytest.mark.parametrize("spread", [0.3, 1, 3, 10, 30])
def test_sixteen_nodes_err_below_two_in_100000(rng, c, spread):
    M, codes = case(rng, 200, c, spread)
    T, log_Z = class_scores(M, codes, 16)
    exact_T, exact_log_Z = class_scores(M, codes, EXACT_NODES)
    assert_allclose(log_Z, exact_log_Z, atol=2e-5, rtol=0)
    assert_allclose(T, exact_T, atol=2e-5, rtol=0)


def test_plain_nodes_fail_when_scores_are_far_apart(rng):
    """Why nodes are centred: fixed at the origin they lose the mass altogether."""
    M, codes = case(rng, 200, 5, 10)
    points, weights = np.polynomial.hermite_e.hermegauss(32)
    own = M[np.arange(200), codes]
    differences = own[:, None] - M
    differences[np.arange(200), codes] = np.inf
    with np.errstate(divide="ignore"):
        plain = np.log(
            ndtr(points[None, :, None] + differences[:, None, :]).prod(axis=2)
            @ (weights / np.sqrt(2 * np.pi))
        )
    error = np.abs(plain - class_scores(M, codes)[1])
    assert np.max(error) > 10


def test_means_are_the_gradient_of_the_log_normaliser(rng):
    M, codes = case(rng, 6, 4, 2.0)
    T, _ = class_scores(M, codes, EXACT_NODES)
    h = 1e-5
    for c in range(4):
        up, down = M.copy(), M.copy()
        up[:, c] += h
        down[:, c] -= h
        slope = class_scores(up, codes, EXACT_NODES)[1] - class_scores(down, codes, EXACT_NODES)[1]
        assert_allclose(T[:, c] - M[:, c], slope / (2 * h), atol=1e-7)


def test_two_classes_are_a_probit(rng):
    M, codes = case(rng, 20, 2, 2.0)
    gap = np.where(codes == 0, 1, -1) * (M[:, 0] - M[:, 1])
    assert_allclose(class_scores(M, codes)[1], np.log(ndtr(gap / np.sqrt(2))), atol=1e-8)


def test_probabilities_agree_with_draws(rng):
    M = rng.standard_normal((3, 4))
    variance = rng.uniform(0.5, 3, (3, 4))
    draws = M + np.sqrt(variance) * rng.standard_normal((400_000, 3, 4))
    frequency = np.stack([(draws.argmax(axis=2) == c).mean(axis=0) for c in range(4)], axis=1)
    assert_allclose(class_probabilities(M, variance), frequency, atol=4e-3)


def test_variance_in_place_of_its_root_is_off(rng):
    """Erratum E-G13-5: the printed prediction takes the variance for a standard deviation."""
    M, variance = np.array([[1.0, 0.0]]), np.array([[3.0, 1.0]])
    right = class_probabilities(M, variance)[0, 0]
    printed = class_probabilities(M, variance**2)[0, 0]
    assert_allclose(right, ndtr(0.5), atol=1e-6)
    assert abs(printed - right) > 0.05


def test_drawn_scores_have_the_moments_and_the_winner(rng):
    M, codes = case(rng, 4, 5, 2.0)
    draws = draw_class_scores(np.tile(M, (20_000, 1)), np.tile(codes, 20_000), rng)
    draws = draws.reshape(20_000, *M.shape)
    assert np.all(draws.argmax(axis=2) == codes)
    assert_allclose(draws.mean(axis=0), class_scores(M, codes, 64)[0], atol=0.05)


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
