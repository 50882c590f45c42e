import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gnomon.inference.search import line_search
from gnomon.linalg.data import Matrix
from gnomon.models import dca_gm, dca_gm_batch, dca_gm_problem
from gnomon.models.dca_gm import Settings
from gnomon.models.dca_gm_problem import Problem, owners

SETTINGS = Settings(0.1, 0.01, 0.3, 3.0, 1e-3, 4.0, 0.05)


@pytest.fixture
def problem(rng):
    """Two clusters per class in three of eight directions; half labelled, some in chunks."""
    n = 2000
    y = rng.integers(3, size=n)
    centres = 3 * rng.standard_normal((2, 3, 3))
    X = rng.standard_normal((n, 8))
    X[:, :3] += centres[rng.integers(2, size=n), y]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    chunks = np.full(n, -1)
    order = np.argsort(y[1000:1500], kind="stable")
    chunks[1000:1500][order] = np.arange(500) // 5
    codes = np.where(np.arange(n) < 1000, y, -1)
    return Problem(Matrix(X), codes, chunks, np.ones(n), owners([2, 2, 2]), 2, 8)


def test_batches_hold_every_row_once_and_whole_chunks(problem, rng):
    batches = dca_gm_batch.cut(problem, 150, rng)
    assert_array_equal(np.sort(np.concatenate(batches)), np.arange(2000))
    assert all(len(batch) >= 150 for batch in batches[:-1])
    for batch in batches:
        assert not set(problem.chunks[batch]) & set(
            problem.chunks[np.setdiff1d(np.arange(2000), batch)]
        ) - {-1}


def test_one_batch_of_all_rows_is_all_rows(problem, rng):
    (batch,) = dca_gm_batch.cut(problem, 5000, rng)
    assert_array_equal(batch, np.arange(2000))


def value(state, problem):
    rows = problem.rows
    return dca_gm.objective(state.Z, state.P.T @ state.P, state.mixture, rows, SETTINGS).value


def test_batches_gain_more_than_half_of_what_all_rows_gain(problem):
    """Over three partitions on average: a single one is noisy with batches this small."""
    rows = problem.rows
    state = first = dca_gm_problem.start(problem, rows, SETTINGS)
    for _ in range(30):
        state, _ = dca_gm.step(state, problem.X, rows, SETTINGS, line_search)
    low, high = value(first, problem), value(state, problem)
    shares = []
    for seed in range(3):
        batches = dca_gm_batch.cut(problem, 400, np.random.default_rng(seed))
        stream = dca_gm_batch.begin(problem, batches[0], SETTINGS)
        for _ in range(4):
            stream, _ = dca_gm_batch.epoch(stream, problem, batches, SETTINGS, line_search)
        end = dca_gm_batch.finish(stream, problem, rows, SETTINGS)
        shares.append((value(end, problem) - low) / (high - low))
    assert np.mean(shares) > 0.5
