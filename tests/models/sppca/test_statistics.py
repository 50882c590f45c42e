import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.models.sppca import em
from gnomon.models.sppca.fit import Settings
from gnomon.models.sppca.statistics import (
    NATS_PER_LABEL,
    Noise,
    State,
    at_floor,
    floors,
    from_dual,
    from_moments,
    learnt_levels,
    noise_rule,
    outputs,
    outputs_from_moments,
    tied,
    tolerance,
)

n, d, c, q = 40, 6, 3, 2


def statistics(X, Y, observed, weights=None, route=from_moments):
    data = Matrix(X) if weights is None else Weighted(Matrix(X), weights)
    return route(center(data)[1], Y, observed, weights)


def rule(stats, **settings):
    return noise_rule(stats, Settings(**settings))


def maximum(stats):
    return em.maximise(stats, q, rule(stats), max_iter=5000, tol=1e-12).state


# The data.


def test_moments_and_dual_have_one_maximum(gappy):
    (primal, axes), (dual, axes_dual) = statistics(*gappy), statistics(*gappy, route=from_dual)
    a, b = maximum(primal), maximum(dual)
    W, V = axes @ a.W, axes_dual @ b.W
    assert_allclose(V @ V.T, W @ W.T, atol=1e-8 * np.abs(W @ W.T).max())
    assert_allclose(b.sigma2_y, a.sigma2_y, rtol=1e-7)


def test_a_step_of_the_dual_is_a_step_of_the_primal(gappy):
    (primal, axes), (dual, axes_dual) = statistics(*gappy), statistics(*gappy, route=from_dual)
    noise = rule(primal)
    a, b = (
        em.em_step(em.em_step(em.init(s, q, noise), s, noise)[0], s, noise) for s in (primal, dual)
    )
    assert_allclose(b[1], a[1], rtol=1e-13)
    W, V = axes @ a[0].W, axes_dual @ b[0].W
    assert_allclose(V @ V.T, W @ W.T, atol=1e-12 * np.abs(W @ W.T).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_dual_has_the_rank_of_the_rows(gappy, rng, dtype):
    _, Y, observed = gappy
    X = (rng.normal(size=(n, 4)) @ rng.normal(size=(4, 200))).astype(dtype)
    stats, axes = statistics(X, Y, observed, route=from_dual)
    assert len(stats.g) == 4
    assert_allclose(axes.T @ axes, np.eye(4), atol=100 * np.finfo(dtype).eps)


def test_many_labelled_rows_shrink_to_their_moments(rng):
    Z = rng.normal(size=(200, q))
    X = Z @ rng.normal(size=(q, d)) + 0.5 * rng.normal(size=(200, d))
    Y = Z @ rng.normal(size=(q, c)) + 0.3 * rng.normal(size=(200, c)) + 0.4
    X -= X.mean(axis=0)
    observed = np.repeat(np.arange(200) < 150, c).reshape(200, c)
    stats, axes = statistics(X, Y, observed)
    assert len(stats.outputs.T) == d + c + 1
    rows = outputs((X @ axes)[:150], Y[:150], observed[:150])
    noise = rule(stats)
    state, _ = em.em_step(em.init(stats, q, noise), stats, noise)
    actual, expected = (
        em.em_step(state, stats._replace(outputs=kept), noise) for kept in (stats.outputs, rows)
    )
    assert_allclose(actual[1], expected[1], rtol=1e-12)
    for a, b in zip(actual[0], expected[0], strict=True):
        assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_moments_of_outputs_in_other_units_than_inputs_are_kept(rng, scale):
    X, Y = 1e6 * rng.normal(size=(80, 3)), scale * rng.normal(size=(80, 2))
    joint = np.hstack([X, Y, np.ones((80, 1))])
    found = outputs_from_moments(joint.T @ joint, 3, 80)
    assert_allclose(found.T.T @ found.T, X.T @ X, rtol=1e-9)
    assert_allclose(found.Y.T @ found.Y, Y.T @ Y, rtol=1e-9)


def test_weights_count_as_repetition(gappy, rng):
    X, Y, observed = gappy
    weights = rng.integers(1, 4, size=n)
    X = X - np.average(X, axis=0, weights=weights)
    repeated = [part.repeat(weights, axis=0) for part in (X, Y, observed)]
    a, axes = statistics(X, Y, observed, weights.astype(float))
    b, axes_b = statistics(*repeated)
    state, state_b = maximum(a), maximum(b)
    W, V = axes @ state.W, axes_b @ state_b.W
    assert_allclose(W @ W.T, V @ V.T, atol=1e-6)
    assert_allclose(state.mean_y, state_b.mean_y, atol=1e-6)


# The noise.


def test_the_rule_is_relative_to_the_variances(gappy):
    X, Y, observed = gappy
    stats, _ = statistics(X, Y, observed)
    noise = rule(stats, prior=3.0)
    variance_y = np.array([Y[seen, j].var() for j, seen in enumerate(observed.T)])
    assert_allclose(noise.floor_x, 1e-6 * X.var(axis=0).mean())
    assert_allclose(noise.floor_y, 1e-3 * variance_y)
    assert_allclose(noise.prior_x, 3.0 / X.var(axis=0).mean())
    assert_allclose(noise.prior_y, 3.0 / variance_y.mean())


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({"noise": "per_output"}, {"per_output": True}),
        ({"noise": 0.5}, {"ratio": 0.5}),
        ({"noise": (0.2, 0.1)}, {"fixed": (0.2, 0.1)}),
        ({"target_mean": "labelled"}, {"learn_mean": False}),
    ],
    ids=str,
)
def test_settings_become_the_rule(gappy, settings, fields):
    stats, _ = statistics(*gappy)
    expected = rule(stats)._replace(**fields)._asdict()
    for name, value in rule(stats, **settings)._asdict().items():
        assert np.array_equal(value, expected[name]), name


def test_an_output_that_does_not_vary_has_a_floor_of_those_that_do():
    _, floor_y = floors(1.0, np.array([2.0, 0.0]))
    assert_allclose(floor_y, [2e-3, 1e-6])
    assert floors(1.0, np.zeros(2))[1].min() > 0
    assert floors(1.0, np.zeros(0))[1].size == 0


FREE = Noise(0.01, np.array([0.1, 0.3]))
SQUARES, SIZES = np.array([8.0, 6.0, 2.0]), np.array([4.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        (FREE, [2.0, 2.0, 2.0]),
        (FREE._replace(per_output=True), [2.0, 3.0, 1.0]),
        # (8 + 8 / 0.5) / 8, and half of it.
        (FREE._replace(ratio=0.5), [3.0, 1.5, 1.5]),
        (FREE._replace(floor_x=5.0, floor_y=np.array([2.5, 3.5])), [5.0, 3.0, 3.0]),
        (FREE._replace(floor_y=np.array([2.5, 3.5]), per_output=True), [2.0, 3.0, 3.5]),
    ],
)
def test_levels_are_mean_squares_of_what_is_learnt_together(noise, expected):
    assert_allclose(learnt_levels(SQUARES, SIZES, noise), expected)


def test_levels_are_fixed_or_tied_to_that_of_x():
    assert_allclose(tied(SIZES, FREE), SIZES)
    assert_allclose(tied(SIZES, FREE._replace(ratio=0.5)), [4, 2, 2])
    assert_allclose(tied(SIZES, FREE._replace(fixed=(0.2, 0.1))), [0.2, 0.1, 0.1])


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        (FREE, (True, True)),
        (FREE._replace(per_output=True), (True, True)),
        (FREE._replace(per_output=True, floor_y=np.array([0.1, 0.19])), (True, False)),
        (FREE._replace(ratio=20.0), (True, False)),
        (FREE._replace(fixed=(0.01, 0.2)), (False, False)),
    ],
)
def test_noise_at_its_floor_is_told(noise, expected):
    state = State(np.ones((d, q)), 0.01, np.ones((2, q)), np.array([0.2, 0.2]), np.zeros(2))
    assert at_floor(state, noise) == expected
    assert not any(at_floor(state._replace(sigma2=0.02, sigma2_y=np.ones(2)), noise))


def test_few_labels_tighten_the_tolerance(gappy):
    stats, _ = statistics(*gappy)
    labelled = gappy[2].any(axis=1).sum()
    assert tolerance(stats, 1e-7) == 1e-7 * n * d
    assert_allclose(tolerance(stats._replace(n=1e9), 1e-7), 1e-7 * NATS_PER_LABEL * labelled)
