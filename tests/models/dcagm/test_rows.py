import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from gnomon.models.dcagm import rows as known
from gnomon.models.dcagm.rows import arrange


def numeric(f, x, h=1e-6):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = h
        out[i] = (f(x + step) - f(x - step)) / (2 * h)
    return out


STARTS, WEIGHTS, LABELS = np.array([0, 3, 4, 9]), np.arange(1, 13) / 7, np.arange(12) % 3
# Six pairs: the first members, then the second ones; some have a label.
PAIRED = np.array([-1, -1, 2, -1, 0, -1, -1, 1, -1, -1, -1, -1])
TERMS = {
    "label": lambda L, log_alpha: known.label_given_row(L, LABELS, WEIGHTS),
    "label in EM": lambda L, log_alpha: known.label_and_row(L, LABELS, WEIGHTS),
    "row": lambda L, log_alpha: known.row_density(L, WEIGHTS),
    "chunk": lambda L, log_alpha: known.chunk_given_rows(L, STARTS, WEIGHTS),
    "doubtful chunk": lambda L, log_alpha: known.chunk_given_rows(L, STARTS, WEIGHTS, 0.2),
    "doubtful chunk in EM": lambda L, log_alpha: known.chunk_density(
        L, STARTS, WEIGHTS, log_alpha, 0.2
    ),
    "chunk in EM": lambda L, log_alpha: known.chunk_density(L, STARTS, WEIGHTS, log_alpha),
    "pairs apart": lambda L, log_alpha: known.pairs_apart(L, PAIRED, WEIGHTS[:6]),
    "doubtful pairs": lambda L, log_alpha: known.pairs_apart(L, PAIRED, WEIGHTS[:6], 0.2),
    "ratio": lambda L, log_alpha: known.chunk_ratio(L, STARTS, WEIGHTS, log_alpha),
}


@pytest.mark.parametrize("name", TERMS)
def test_parts_and_counts_are_derivatives(rng, name):
    """By the log densities, and by log alpha where the log densities have it in them."""
    given, log_alpha, term = rng.standard_normal((3, 12)), np.log([0.5, 0.2, 0.3]), TERMS[name]
    L = given + log_alpha[:, None]
    found = term(L, log_alpha)
    assert_allclose(found.parts, numeric(lambda L: term(L, log_alpha).value, L), atol=1e-7)
    by_alpha = numeric(lambda a: term(given + a[:, None], a).value, log_alpha)
    assert_allclose(found.counts, by_alpha, atol=1e-7)


def test_ratio_3_is_no_probability_and_grows_without_bound():
    """E-PGK07-1: far classes, a chunk of three."""
    L = np.log(np.array([[0.5, 0.5, 0.5], [1e-30, 1e-30, 1e-30]]))
    chunk, weights = np.array([0]), np.ones(3)
    assert_allclose(np.exp(known.chunk_ratio(L, chunk, weights, np.log([0.5, 0.5])).value), 4)
    rare = L + np.log([[0.002], [1.998]])
    value = np.exp(known.chunk_ratio(rare, chunk, weights, np.log([0.001, 0.999])).value)
    assert_allclose(value, 1e6)
    assert np.exp(known.chunk_given_rows(rare, chunk, weights).value) <= 1


@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_chunk_of_one_is_an_unlabelled_row(rng, wrong):
    L, w = rng.standard_normal((3, 7)), np.ones(7)
    chunks = known.chunk_density(L, np.arange(7), w, np.log([0.2, 0.3, 0.5]), wrong)
    # The class of a chunk and that of a stray row are drawn both: alpha counts one row more.
    n_terms = 2 if wrong else 3
    for ours, expected in zip(chunks[:n_terms], known.row_density(L, w), strict=False):
        assert_allclose(ours, expected, rtol=1e-12)
    assert abs(known.chunk_given_rows(L, np.arange(7), w, wrong).value) < 1e-14


def test_a_doubtful_chunk_is_the_sum_over_who_is_a_member(rng):
    alpha, wrong = np.array([0.2, 0.3, 0.5]), 0.3
    given = rng.standard_normal((3, 3))
    L, chunk, ones = given + np.log(alpha)[:, None], np.array([0]), np.ones(3)
    density, anywhere = np.exp(given), np.exp(L).sum(axis=0)
    expected = 0.0
    for who in np.ndindex(2, 2, 2):
        share = np.prod([wrong if w else 1 - wrong for w in who])
        of_class = [np.prod(np.where(who, anywhere, density[c])) for c in range(3)]
        expected += share * alpha @ of_class
    found = known.chunk_density(L, chunk, ones, np.log(alpha), wrong)
    assert_allclose(np.exp(found.value), expected)


def test_one_row_elsewhere_hardly_moves_a_doubtful_chunk():
    far = np.log(np.array([[0.5, 0.5, 0.5, 1e-30], [1e-30, 1e-30, 1e-30, 0.5]]))
    term = known.chunk_given_rows(far, np.array([0]), np.ones(4), 0.1)
    assert term.value > np.log(0.05) + 3 * np.log(0.94)
    assert np.abs(term.parts).max() < 1e-10


def test_chunks_of_one_do_not_change_the_arrangement(sample):
    ones = sample.chunks.copy()
    ones[50:] = 100 + np.arange(10)
    rows, again = arrange(sample), arrange(sample._replace(chunks=ones))
    assert_array_equal(again.order, rows.order)
    assert len(again.blocks) == len(rows.blocks)


@pytest.mark.parametrize("block_rows", [4096, 5])
def test_blocks_hold_every_row_once_with_what_is_known_of_it(sample, monkeypatch, block_rows):
    monkeypatch.setattr(known, "BLOCK_ROWS", block_rows)
    rows = arrange(sample)
    assert_array_equal(np.sort(rows.order), np.arange(60))
    assert_array_equal(np.concatenate([np.r_[block.rows] for block in rows.blocks]), np.arange(60))
    assert_array_equal(rows.labels, sample.labels[rows.order[:20]])
    for block in rows.blocks:
        inside = rows.order[block.rows]
        assert_array_equal(block.weights, sample.weights[inside])
        if isinstance(block, known.Chunked):
            sizes = np.diff(np.r_[block.starts, len(inside)])
            numbers, counts = np.unique(sample.chunks[inside], return_counts=True)
            assert_array_equal(sizes, counts)
            assert_array_equal(np.repeat(numbers, counts), sample.chunks[inside])


def test_projection_and_derivative_go_through_the_order_and_back(sample, rng):
    rows, P = arrange(sample), rng.standard_normal((5, 2))
    assert_array_equal(rows.restore(rows.project(P)), sample.X @ P)
    by_Z = rng.standard_normal((60, 2))
    assert_allclose(rows.by_columns(by_Z), sample.X.X[rows.order].T @ by_Z)
    Z = sample.X @ P
    expected = np.cov(Z.T, aweights=sample.weights, bias=True)
    mean = sample.weights @ Z / sample.weights.sum()
    assert_allclose(rows.covariance(rows.project(P)), expected + np.outer(mean, mean))


def test_units_are_chunks_and_rows_in_none(sample):
    units = sample.units
    assert len(np.unique(units)) == 5 + np.sum(sample.chunks < 0)
    for chunk in range(5):
        assert len(np.unique(units[sample.chunks == chunk])) == 1


def test_part_of_a_sample_has_its_rows(sample):
    index = np.array([1, 24, 59])
    part = sample.take(index)
    assert_array_equal(part.X.X, sample.X.X[index])
    assert_array_equal(part.labels, sample.labels[index])
    assert_array_equal(part.chunks, sample.chunks[index])
    assert_array_equal(part.weights, sample.weights[index])


def test_pairs_apart_are_the_sum_over_different_classes(rng):
    L = rng.standard_normal((3, 4))
    p = np.exp(L) / np.exp(L).sum(axis=0)
    p[:, 2] = [0, 1, 0]
    expected = 0.0
    for weight, (i, j) in zip([2.0, 0.5], [(0, 2), (1, 3)], strict=True):
        different = sum(p[a, i] * p[b, j] for a in range(3) for b in range(3) if a != b)
        expected += weight * np.log(different)
    found = known.pairs_apart(L, np.array([-1, -1, 1, -1]), np.array([2.0, 0.5]))
    assert_allclose(found.value, expected)


def test_pairs_follow_their_rows_and_those_with_two_labels_say_nothing(sample):
    labels = sample.labels.copy()
    labels[:4], labels[4:8] = [0, 1, 0, 1], -1
    pairs = [(0, 1), (0, 5), (6, 5), (7, 2)]
    A = sparse.lil_array((len(labels),) * 2)
    for i, j in pairs:
        A[i, j] = A[j, i] = 1.0
    whole = sample._replace(labels=labels, apart=sparse.csr_array(A))
    rows = arrange(whole)
    found = rows.order[rows.apart.rows].reshape(2, -1).T
    assert sorted(map(tuple, found)) == [(0, 5), (2, 7), (5, 6)]
    assert_array_equal(rows.apart.labels, labels[found.T.ravel()])
    part = arrange(whole.take(np.array([5, 0, 7])))
    assert_array_equal(part.order[part.apart.rows], [0, 1])
