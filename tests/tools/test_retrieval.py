import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import average_precision_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import FunctionTransformer

from gnomon import retrieval_score, retrieve

PLAIN = FunctionTransformer()


@pytest.fixture
def rows(rng):
    return rng.standard_normal((30, 3)), rng.standard_normal((600, 3))


def test_neighbours_are_those_of_the_cosine(rows):
    gallery, queries = rows
    expected = np.argsort(-cosine_similarity(queries, gallery), axis=1)[:, :4]
    assert_array_equal(retrieve(PLAIN, queries, gallery, k=4), expected)


def test_score_is_the_mean_average_precision(rows, rng):
    gallery, queries = rows
    labels, asked = rng.integers(0, 3, 30), rng.integers(0, 3, 600)
    closeness = cosine_similarity(queries, gallery)
    expected = [
        average_precision_score(labels == a, c) for a, c in zip(asked, closeness, strict=True)
    ]
    assert_allclose(retrieval_score(PLAIN, queries, asked, gallery, labels), np.mean(expected))


def test_queries_of_unknown_classes_are_left_out(rows):
    gallery, queries = rows
    asked = np.where(np.arange(600) < 300, 0, 9)
    score = retrieval_score(PLAIN, queries, asked, gallery, np.zeros(30))
    assert score == 1.0
    with pytest.raises(ValueError, match="no class in common"):
        retrieval_score(PLAIN, queries, np.full(600, 9), gallery, np.zeros(30))


def test_wrong_lengths_are_named(rows):
    gallery, queries = rows
    with pytest.raises(ValueError, match=r"query_labels has shape \(3,\)"):
        retrieval_score(PLAIN, queries, np.zeros(3), gallery, np.zeros(30))
