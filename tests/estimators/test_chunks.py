import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gnomon import SPPCA, KernelSPPCA, chunks_from_pairs
from gnomon.estimators._door import read_chunks, share_labels
from gnomon.models.strength.choice import vote_shares

NAMES = np.array(["a", "b"])


def test_pairs_close_transitively():
    chunks = chunks_from_pairs([[0, 1], [3, 4], [1, 2]], 6)
    assert_array_equal(chunks, [0, 0, 0, 1, 1, -1])


def test_no_pairs_and_pairs_of_a_row_with_itself_are_no_chunks():
    assert_array_equal(chunks_from_pairs([], 3), [-1, -1, -1])
    assert_array_equal(chunks_from_pairs([[1, 1]], 3), [-1, -1, -1])


@pytest.mark.parametrize(
    ("pairs", "error", "words"),
    [
        ([[0, 9]], ValueError, "row number 9"),
        ([[-1, 0]], ValueError, "row number -1"),
        ([0, 1], ValueError, "shape"),
        ([[0.5, 1.0]], TypeError, "dtype"),
    ],
)
def test_bad_pairs_are_named(pairs, error, words):
    with pytest.raises(error, match=words):
        chunks_from_pairs(pairs, 5)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, float])
def test_ids_of_any_number_type_are_the_same_chunks(dtype):
    ids = np.array([7, 3, 7, 100, 3]).astype(dtype)
    assert_array_equal(read_chunks(ids, 5), [1, 0, 1, 2, 0])


def test_minus_one_is_no_chunk_and_large_ids_cost_nothing():
    assert_array_equal(read_chunks(np.array([2**40, -1, 2**40]), 3), [0, -1, 0])
    assert_array_equal(read_chunks(None, 2), [-1, -1])


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        (np.zeros(4), ValueError),
        (np.zeros((3, 2)), ValueError),
        ([0.5, 0, 0], ValueError),
        ([np.nan, 0, 0], ValueError),
        ([-2, 0, 0], ValueError),
        (["a", "b", "c"], TypeError),
    ],
)
def test_bad_chunks_are_named(chunks, error):
    with pytest.raises(error, match="chunks"):
        read_chunks(chunks, 3)


def test_a_label_is_passed_on_in_its_chunk():
    labels = share_labels(np.array([1, -1, -1, -1, 0]), np.array([0, 0, 1, 1, -1]), NAMES)
    assert_array_equal(labels, [1, 1, -1, -1, 0])


def test_conflicting_labels_in_a_chunk_are_an_error():
    with pytest.raises(ValueError, match=r"rows 0, 2 in one chunk.*a, b"):
        share_labels(np.array([0, -1, 1]), np.array([4, 4, 4]), NAMES)


def chunked(seed=0, wrong=0.0, apart=3.0):
    """Three noisy classes, two labels each, and chunks of five around the labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(150) % 3
    X = rng.standard_normal((150, 12)) + apart * np.eye(12)[y]
    labels, chunks = np.full(150, -1), np.full(150, -1)
    labels[:6] = y[:6]
    chunks[:30] = np.tile(np.arange(6), 5)
    moved = 6 + np.flatnonzero(rng.random(24) < wrong)
    chunks[moved] = chunks[rng.permutation(moved)]
    return X, y, labels, chunks


@pytest.mark.parametrize("model", [SPPCA, KernelSPPCA])
def test_a_label_is_that_of_its_chunk(model):
    # Far apart, or a row of noise looks unlike its chunk and is left out; no score can be lower.
    X, y, labels, chunks = chunked(apart=6.0)
    alone, together = (model(2).fit(X, labels, chunks=c) for c in (None, chunks))
    assert together.score(X[30:], y[30:]) >= alone.score(X[30:], y[30:])
    assert together.score(X[30:], y[30:]) > 0.95
    if model is SPPCA:
        spread = np.where(np.arange(150) < 30, y, -1)
        expected = SPPCA(2, supervision=0.5).fit(X, spread).transform(X)
        found = SPPCA(2, supervision=0.5).fit(X, labels, chunks=chunks).transform(X)
        assert_allclose(found, expected)


def test_a_member_that_is_nothing_like_its_chunk_is_left_out():
    X, y, labels, chunks = chunked()
    X[6] = X[7]  # of another class than its chunk
    X[:30] += 5 * np.eye(12)[y[:30]]
    X[6] = X[7]
    with pytest.warns(UserWarning, match=r"1 row has a chunk whose label does not fit.*row 6"):
        SPPCA(2).fit(X, labels, chunks=chunks)


def test_chunks_without_a_label_vote_together():
    share = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    votes = np.argmax(share, axis=1)[None]
    stage_one = share == share.max(axis=1, keepdims=True)
    group = np.array([0, 0, 0, 1])
    pooled = vote_shares(votes, stage_one, group)
    alone = vote_shares(votes, stage_one)
    assert_allclose(pooled[:3], np.tile(alone[:3].mean(axis=0), (3, 1)))
    assert_allclose(pooled[3], alone[3])


def test_chunks_are_of_classes():
    X, _, labels, chunks = chunked(apart=6.0)
    with pytest.raises(ValueError, match="chunks are rows of one class, and y has numeric"):
        SPPCA(2).fit(X, X[:, 0], chunks=chunks)
    with pytest.raises(ValueError, match="y has no outputs"):
        SPPCA(2).fit(X, chunks=chunks)
    weights = np.r_[0, np.ones(149)]
    model = SPPCA(2).fit(X, labels, weights, chunks=chunks)
    expected = SPPCA(2).fit(X[1:], labels[1:], chunks=chunks[1:])
    assert_allclose(model.transform(X), expected.transform(X))


def test_a_row_with_a_label_of_its_own_keeps_it_whatever_its_chunk():
    """Of any class, the first too: only labels that were passed on are doubted."""
    X, y, labels, chunks = chunked()
    X[:30] += 5 * np.eye(12)[y[:30]]
    X[0] = X[7]  # labelled as class 0, and like class 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SPPCA(2, supervision=0.5).fit(X, labels, chunks=chunks)
