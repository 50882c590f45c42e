import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gnomon import chunks_from_pairs
from gnomon.estimators._door import read_chunks, share_labels

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
