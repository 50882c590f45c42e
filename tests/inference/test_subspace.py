import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.inference import subspace
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.linalg.eigen import from_moments
from gnomon.linalg.mixed import Mixed
from gnomon.models.gaussian.ppca import leading_spectrum


@pytest.fixture
def X(rng):
    X = sparse.random_array((500, 300), density=0.05, rng=rng, format="csr")
    return X @ sparse.diags_array(np.arange(1, 301) ** -0.6)


def test_it_finds_the_leading_eigenpairs_of_sparse_data(X, rng):
    _, centered = center(Matrix(X))
    expected = from_moments(centered, 8)
    actual = leading_spectrum(centered, 8, rng, solver="subspace", tol=1e-13)
    assert_allclose(actual.values, expected.values, rtol=1e-9)
    assert_allclose(
        actual.vectors @ actual.vectors.T, expected.vectors @ expected.vectors.T, atol=1e-6
    )
    assert_allclose(actual.trace, expected.trace)


def test_products_in_single_precision_lose_nothing_at_the_tolerance(X, rng):
    _, centered = center(Matrix(X))
    expected = from_moments(centered, 8)
    actual = leading_spectrum(centered, 8, rng, solver="subspace", tol=1e-7)
    assert_allclose(actual.values.sum(), expected.values.sum(), rtol=1e-5)


@pytest.mark.parametrize("kind", ["blocks", "weighted", "mixed"])
def test_every_kind_of_data_goes_through(X, rng, kind):
    data = {
        "blocks": Blocks([Matrix(X[:100]), Matrix(X[100:])]),
        "weighted": Weighted(Matrix(X), rng.random(500)),
        "mixed": Mixed(sparse.random_array((400, 500), density=0.02, rng=rng).tocsr(), Matrix(X)),
    }[kind]
    if kind != "mixed":
        _, data = center(data)
    expected = from_moments(data, 4)
    actual = leading_spectrum(data, 4, rng, solver="subspace", tol=1e-12)
    assert_allclose(actual.values, expected.values, rtol=1e-7)


def test_the_objective_rises_and_the_bound_is_honest(X, rng):
    _, centered = center(Matrix(X))
    n, q = 500, 5
    total = centered.squared_norm

    def solve_small(reduced):
        values = reduced.energies[:q] / n
        sigma2 = (total / n - values.sum()) / (300 - q)
        H = np.zeros((len(reduced.energies), q))
        np.fill_diagonal(H, np.sqrt(values - sigma2) / values)
        objective = -0.5 * n * (np.log(values).sum() + (300 - q) * np.log(sigma2))
        return subspace.SmallSolution(H, None, n * np.eye(q), sigma2, objective, None)

    start = centered.T @ rng.normal(size=(500, 10))
    exact = subspace.maximise(centered, solve_small, start, tol=1e-9)
    loose = subspace.maximise(centered, solve_small, start, tol=1.0)
    assert np.diff(exact.objective).min() > 0
    assert loose.converged
    assert exact.converged
    assert loose.n_products < exact.n_products
    assert 0 <= exact.small.objective - loose.small.objective < 1.0


def test_stopping_early_is_not_convergence(X, rng):
    _, centered = center(Matrix(X))
    calls = []

    def solve_small(reduced):
        calls.append(reduced)
        H = np.zeros((len(reduced.energies), 3))
        np.fill_diagonal(H, 1.0)
        return subspace.SmallSolution(
            H, None, np.eye(3), 1e-6, float(reduced.energies[:3].sum()), None
        )

    start = centered.T @ rng.normal(size=(500, 6))
    solution = subspace.maximise(centered, solve_small, start, tol=1e-12, max_rounds=2)
    assert not solution.converged
    assert len(solution.objective) == 2


def test_orthonormal_is_orthonormal_and_drops_what_is_dependent(rng):
    B = rng.normal(size=(200, 5)) * np.array([1, 1e-3, 1e3, 1, 1])
    Q = subspace.orthonormal(B)
    assert_allclose(Q.T @ Q, np.eye(5), atol=1e-12)
    assert_allclose(Q @ (Q.T @ B), B, atol=1e-9)
    assert subspace.orthonormal(np.column_stack([B, B[:, 0]])).shape[1] == 5


def test_directions_to_add_are_orthonormal_and_the_bound_is_their_length(rng):
    A, outside = rng.normal(size=(4, 4)), rng.normal(size=(50, 4)) * np.array([1, 10, 0.1, 3])
    small = subspace.SmallSolution(None, None, A @ A.T + np.eye(4), 0.3, 0.0, None)
    block, gain = subspace._ascent_directions(outside, outside.T @ outside, small, 1e-12)
    assert_allclose(block.T @ block, np.eye(4), atol=1e-10)
    expected = np.trace(outside @ np.linalg.solve(small.second, outside.T)) / (2 * small.sigma2)
    assert_allclose(gain, expected)


@pytest.mark.parametrize(("reached", "ratio"), [(-94.0, 3.0), (-99.0, 1.0), (0.0, 10.0)])
def test_the_bound_is_held_against_what_the_last_round_gained(reached, ratio):
    before = subspace._Round(None, objective=-100.0, gain=2.0)
    assert subspace._ratio(before, reached) == ratio


def test_directions_fill_up_the_lanes_of_a_product_but_not_with_rounding():
    def kept(gains):
        return subspace._whole_lanes(np.array(gains), 1.0).tolist()

    assert kept([0.5, 0.5, 0.5, 2.0, 2.0]) == [False, True, True, True, True]
    assert kept([1e-9, 0.5, 0.5, 2.0, 2.0]) == [False, True, True, True, True]
    assert kept([1e-9, 1e-9, 0.5, 2.0]) == [False, False, True, True]
    assert kept([0.5, 0.5]) == [False, False]
    assert kept([2.0, 2.0, 2.0]) == [True, True, True]
