"""Few labels: among which axes a projection is sought, and what hidden labels say of answers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from gnomon.linalg.data import Matrix
from gnomon.models.dcagm import few
from gnomon.models.dcagm.rows import Sample


@pytest.fixture
def sample(rng):
    """Three classes of four labelled rows, two of them a chunk, and eight others."""
    labels = np.r_[np.repeat([0, 1, 2], 4), np.full(8, -1)]
    chunks = np.full(20, -1)
    chunks[[0, 1]] = 0
    X = Matrix(rng.standard_normal((20, 5)))
    return Sample(X, labels, chunks, np.ones(20), np.arange(3), 5.0)


def test_labels_are_few_below_two_a_column_and_never_from_a_thousand_on():
    labels, weights = np.r_[np.zeros(10, int), -1], np.ones(11)
    assert few.are_few(labels, weights, 6) and not few.are_few(labels, weights, 5)
    # Weights count as repeated rows.
    assert not few.are_few(labels, 2 * weights, 6)
    assert not few.are_few(labels, 100 * weights, 10**6)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array])
def test_axes_are_the_leading_ones_and_have_unit_variance_on_average(rng, store):
    X = rng.standard_normal((80, 60)) * np.linspace(5, 0.1, 60)
    labels = np.r_[np.zeros(50, int), np.full(30, -1)]
    axes = few.leading_axes(Matrix(store(X)), labels, np.ones(80), 2)
    assert axes.T.shape == (80, 25)
    assert_allclose(axes.T, X @ axes.V, atol=1e-10)
    assert_allclose(np.mean(axes.T**2), 1)
    leading = np.linalg.svd(X)[2][:25]
    lengths = np.linalg.norm(leading @ axes.V, axis=0)
    assert_allclose(lengths, np.linalg.norm(axes.V, axis=0), rtol=1e-5)


def test_axes_do_not_depend_on_whether_a_row_is_repeated_or_weighted(rng):
    X, counts = rng.standard_normal((15, 40)), rng.integers(1, 4, 15)
    labels = np.zeros(15, dtype=int)
    weighted = few.leading_axes(Matrix(X), labels, counts, 2)
    again = np.repeat(X, counts, axis=0)
    repeated = few.leading_axes(Matrix(again), np.zeros(len(again), int), np.ones(len(again)), 2)
    assert weighted.V.shape == repeated.V.shape == (40, 15)
    assert_allclose(weighted.V @ weighted.V.T, repeated.V @ repeated.V.T, atol=1e-10)


def test_no_axes_where_columns_are_no_more_than_may_be_used(rng):
    labels, weights = np.zeros(30, int), np.ones(30)
    assert few.leading_axes(Matrix(rng.standard_normal((30, 20))), labels, weights, 2) is None
    assert few.leading_axes(Matrix(rng.standard_normal((30, 21))), labels, weights, 2) is not None


def test_axes_that_would_not_fit_in_memory_are_not_formed(rng, monkeypatch):
    monkeypatch.setattr(few, "KEPT_ENTRIES", 20 * 30 - 1)
    X, labels = Matrix(rng.standard_normal((30, 40))), np.zeros(30, int)
    assert few.leading_axes(X, labels, np.ones(30), 2) is None


def test_folds_take_rows_of_every_class_and_keep_chunks_together(sample):
    fold_of = few.folds(sample)
    assert_array_equal(fold_of >= 0, sample.labels >= 0)
    assert fold_of[0] == fold_of[1]
    for c in range(3):
        assert len(np.unique(fold_of[sample.labels == c])) == few.N_FOLDS


def test_folds_do_not_depend_on_the_order_of_rows_or_the_names_of_classes(sample, rng):
    order = rng.permutation(20)
    assert_array_equal(few.folds(sample.take(order)), few.folds(sample)[order])
    renamed = np.where(sample.labels >= 0, 2 - sample.labels, -1)
    assert_array_equal(few.folds(sample._replace(labels=renamed)), few.folds(sample))


def test_equal_rows_are_in_one_fold_and_a_class_known_from_one_keeps_it(sample):
    twice = sample.take(np.r_[np.arange(20), 5])
    fold_of = few.folds(twice)
    assert fold_of[5] == fold_of[20]
    alone = sample._replace(labels=np.where(np.arange(20) > 8, -1, sample.labels))
    assert few.folds(alone)[8] == -1 and np.all(few.folds(alone)[:8] >= 0)


def test_a_refit_does_not_see_the_labels_that_it_is_judged_by(sample, monkeypatch):
    monkeypatch.setattr(few, "FOLD_OTHERS", 4)
    seen = []

    def refit(part):
        seen.append(part)
        raise StopIteration

    with pytest.raises(StopIteration):
        few.held_out(sample, refit)
    # Twelve labelled rows and every second of the others; those of a fold have lost their label.
    assert seen[0].X.shape == (16, 5)
    fold_of = few.folds(sample)[:12]
    assert_array_equal(seen[0].labels[:12], np.where(fold_of == 0, -1, sample.labels[:12]))
