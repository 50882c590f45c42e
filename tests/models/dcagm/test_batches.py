import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gnomon.linalg.data import Matrix
from gnomon.models.dcagm.alternation import Model, em_moments, objective, state_at, step
from gnomon.models.dcagm.batches import batch_step, begin, cut, epoch
from gnomon.models.dcagm.rows import Sample, arrange
from gnomon.models.dcagm.start import start

MODEL = Model(2, chunk_weight=0.1, unlabelled_weight=0.01, em_weight=0.3, ridge=3.0)


@pytest.fixture
def sample(rng):
    """Two opposite clusters per class on a hexagon; half labelled, some in chunks."""
    n = 2000
    y = rng.integers(3, size=n)
    turns = np.pi * (y / 3 + rng.integers(2, size=n))
    X = rng.standard_normal((n, 8))
    X[:, :2] += 2 * np.column_stack([np.cos(turns), np.sin(turns)])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    chunks = np.full(n, -1)
    order = np.argsort(y[1000:1500], kind="stable")
    chunks[1000:1500][order] = np.arange(500) // 5
    labels = np.where(np.arange(n) < 1000, y, -1)
    class_of = np.repeat([0, 1, 2], 2)
    return Sample(Matrix(X), labels, chunks, np.ones(n), class_of, 8.0)


def test_batches_hold_every_row_once_and_whole_chunks(sample, rng):
    batches = cut(sample, 150, rng)
    assert_array_equal(np.sort(np.concatenate(batches)), np.arange(2000))
    assert all(abs(len(batch) - 150) < 5 for batch in batches[:-1])
    for batch in batches:
        others = np.setdiff1d(np.arange(2000), batch)
        assert not set(sample.chunks[batch]) & set(sample.chunks[others]) - {-1}


def test_one_batch_of_all_rows_is_all_rows(sample, rng):
    (batch,) = cut(sample, 5000, rng)
    assert_array_equal(batch, np.arange(2000))


def test_the_first_batch_of_all_rows_is_a_step_on_all_rows(sample):
    """Neither is shortened nor mixed with what was before."""
    rows, all_rows = arrange(sample), np.arange(2000)
    stream, value = batch_step(begin(sample, all_rows, MODEL), sample, all_rows, MODEL)
    state, expected = step(start(sample, rows, MODEL), rows, MODEL)
    assert_allclose(value, expected)
    assert_allclose(stream.state.P, state.P)
    assert_allclose(stream.state.mixture.means, state.mixture.means)


def test_later_batches_count_less(sample):
    """After k batches the sums count (1 + k / 3) ** -0.6, the step is (1 + k / 10) ** -0.6."""
    all_rows, half = np.arange(2000), np.arange(0, 1000, 2)
    stream = begin(sample, all_rows, MODEL)._replace(n_batches=20)
    moved, _ = batch_step(stream, sample, half, MODEL)
    whole, _ = batch_step(stream._replace(n_batches=0), sample, half, MODEL)
    assert moved.n_batches == 21
    assert_allclose(moved.state.rise / whole.state.rise, 3**-0.6)
    new, old = moved.moments.classes.sum(), stream.moments.classes.sum()
    rows = arrange(sample.take(half))
    seen, _ = em_moments(moved.state.mixture, moved.state.Z, rows, MODEL)
    rate = (1 + 20 / 3) ** -0.6
    assert_allclose(new, (1 - rate) * old + rate * 4 * seen.classes.sum())


def test_a_batch_bears_its_share_of_the_ridge(sample):
    quarter = np.arange(0, 1000, 2)
    stream, rows = begin(sample, np.arange(2000), MODEL), arrange(sample.take(quarter))
    _, value = batch_step(stream, sample, quarter, MODEL)
    P, mixture = stream.state.P, stream.state.mixture
    part = MODEL._replace(ridge=MODEL.ridge / 4)
    assert_allclose(value, objective(P, rows.project(P), mixture, rows, part).value)


def value(state, rows):
    return objective(state.P, state.Z, state.mixture, rows, MODEL).value


def test_batches_gain_more_than_half_of_what_all_rows_gain(sample):
    """In eight epochs, over three partitions on average: one is noisy with batches this small."""
    rows = arrange(sample)
    state = first = start(sample, rows, MODEL)
    for _ in range(30):
        state, _ = step(state, rows, MODEL)
    low, high = value(first, rows), value(state, rows)
    shares = []
    for seed in range(3):
        batches = cut(sample, 400, np.random.default_rng(seed))
        stream = begin(sample, batches[0], MODEL)
        for _ in range(8):
            stream, _ = epoch(stream, sample, batches, MODEL)
        P, mixture = stream.state.P, stream.state.mixture
        end = state_at(P, rows.project(P), mixture, rows, MODEL)
        shares.append((value(end, rows) - low) / (high - low))
    assert np.mean(shares) > 0.5


def test_batches_end_where_a_chunk_ends(rng):
    """Chunks of two rows, and batches of two chunks, whatever the order."""
    n = 40
    sample = Sample(Matrix(np.zeros((n, 1))), np.full(n, -1), np.arange(n) // 2, np.ones(n), [0], 1)
    for _ in range(5):
        assert [len(batch) for batch in cut(sample, 4, rng)] == [4] * 10
        for batch in cut(sample, 4, rng):
            assert_array_equal(np.bincount(sample.chunks[batch])[sample.chunks[batch]], 2)
