"""The scores of a model's own predictions and of the neighbours on its map."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import gnomon
from gnomon.tools.compare import held_out as held
from gnomon.tools.compare.held_out import held_out
from gnomon.tools.compare.scoring import Deadline, constant_guess, row_splits


def iris(some=True):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"], dtype=object)[y]
    return X, np.where(np.arange(150) % 3 < 2, names, None) if some else names


def test_the_held_out_score_is_that_of_a_loop_by_hand():
    X, y = iris()
    model = gnomon.SPPCA(2, supervision=0.5)
    score = held_out(model, X, y, "classes")
    hits, rows = 0, 0
    for train, test in gnomon.SemiSupervisedSplit(5).split(X, y):
        hits += np.sum(clone(model).fit(X[train], y[train]).predict(X[test]) == y[test])
        rows += len(test)
    assert (score.name, score.n_rows) == ("accuracy", rows)
    assert_allclose(score.value, hits / rows)
    assert score.of == "the model's prediction"
    assert score.low < score.value < score.high
    assert_allclose(score.baseline, 1 / 3, atol=0.03)
    assert score.control < 0.5


def test_the_control_is_the_score_of_permuted_labels():
    X, y = iris()
    shuffled, known = y.copy(), np.flatnonzero([label is not None for label in y])
    shuffled[known] = y[np.random.default_rng(0).permutation(known)]
    model = gnomon.SPPCA(2, supervision=0.5)
    by_hand = held_out(model, X, shuffled, "classes")
    assert_allclose(held_out(model, X, y, "classes").control, by_hand.value)


def test_numbers_are_scored_with_an_interval_by_resampling():
    X, y = load_diabetes(return_X_y=True)
    model = gnomon.SPPCA(2, supervision=0.5, target="numeric")
    score = held_out(model, X, np.where(np.arange(len(y)) % 2, y, np.nan), "numeric")
    truth, guess = [], []
    halved = np.where(np.arange(len(y)) % 2, y, np.nan)
    for train, test in gnomon.SemiSupervisedSplit(5).split(X, halved):
        truth.append(y[test])
        guess.append(clone(model).fit(X[train], halved[train]).predict(X[test]))
    assert score.name == "R²"
    assert_allclose(score.value, r2_score(np.concatenate(truth), np.concatenate(guess)))
    assert 0.25 < score.low < score.value < score.high < 0.6
    assert score.control < 0.05


def test_without_a_target_the_score_is_the_held_out_likelihood():
    X, _ = iris()
    model = gnomon.PPCA(2)
    score = held_out(model, X, None, None)
    values = [clone(model).fit(X[a]).score_samples(X[b]) for a, b in row_splits(150)]
    assert score.name == "log likelihood per row"
    assert_allclose(score.value, np.mean(np.concatenate(values)))
    assert held_out(model, X[:9], None, None) is None


def test_chunks_do_not_contradict_the_permuted_labels():
    """They know the real classes; with permuted labels they would be refused."""
    X, y = load_iris(return_X_y=True)
    chunks = np.where(np.arange(150) % 10 < 4, np.arange(150) // 10, -1)
    labels = np.where(np.arange(150) % 2, y, -1)
    score = held_out(gnomon.DCAGM(1, random_state=0), X, labels, "classes", chunks=chunks)
    assert score.value > 0.9
    assert score.control < 0.6


@pytest.mark.parametrize("labels", [["a", None, None], ["a", "b", None], ["a", "a", None]])
def test_too_few_labels_give_no_score(labels, rng):
    y = np.array(labels * 3, dtype=object)
    y[3:] = None
    X = rng.normal(size=(9, 2))
    assert held_out(gnomon.SPPCA(1, supervision=0.5), X, y, "classes") is None


def test_of_a_large_table_a_sample_is_scored_with_its_labels(monkeypatch):
    X, y = iris(some=False)
    y[np.arange(150) % 3 > 0] = None
    monkeypatch.setattr(held, "LARGE", 400)
    model = gnomon.SPPCA(1, supervision=0.5)
    assert held_out(model, X, y, "classes").n_rows == 50
    y[np.arange(150) % 30 > 0] = None
    sample, labels, _ = held._sample(X, y, "classes", None)
    assert len(sample) == 100
    assert np.sum(labels != np.array(None)) == 5


def test_the_map_is_scored_by_its_neighbours_in_the_same_folds():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], np.where(np.arange(300) % 2, y[:300], -1)
    model = gnomon.SPPCA(3, supervision=0.5)
    score = held_out(model, X, y, "classes")
    whole, drawn = score.more
    hits = {3: [], 2: []}
    for train, test in gnomon.SemiSupervisedSplit(5).split(X, y):
        known = train[y[train] >= 0]
        fitted = clone(model).fit(X[train], y[train])
        Z, Z_test = fitted.transform(X[known]), fitted.transform(X[test])
        for q, own in hits.items():
            nearest = KNeighborsClassifier(1).fit(Z[:, :q], y[known])
            own.extend(nearest.predict(Z_test[:, :q]) == y[test])
    assert whole.of == "nearest labelled rows on the map (all 3 dimensions)"
    assert drawn.of == "nearest labelled rows on the map (its first 2 axes alone)"
    assert_allclose([whole.value, drawn.value], [np.mean(hits[3]), np.mean(hits[2])])
    assert whole.control < whole.low
    assert whole.baseline == score.baseline


def test_numbers_are_read_off_the_map_by_five_neighbours():
    X, y = load_diabetes(return_X_y=True)
    model = gnomon.SPPCA(2, supervision=0.5, target="numeric")
    score = held_out(model, X, y, "numeric")
    (near,) = score.more
    truth, guess, constant = [], [], []
    for train, test in gnomon.SemiSupervisedSplit(5).split(X, y):
        fitted = clone(model).fit(X[train], y[train])
        five = KNeighborsRegressor(5).fit(fitted.transform(X[train]), y[train])
        truth.append(y[test])
        guess.append(five.predict(fitted.transform(X[test])))
        constant.append(DummyRegressor().fit(X[train], y[train]).predict(X[test]))
    truth, guess, constant = map(np.concatenate, (truth, guess, constant))
    assert_allclose(near.value, r2_score(truth, guess))
    assert_allclose(near.baseline, r2_score(truth, constant))
    assert_allclose(near.rmse[0], np.sqrt(np.mean((truth - guess) ** 2)))
    assert near.rmse[1] < near.rmse[0] < near.rmse[2]


def test_each_output_has_its_score_under_its_name(rng):
    X = rng.standard_normal((80, 5))
    y = np.c_[X[:, 0], rng.standard_normal(80)] + 0.1 * rng.standard_normal((80, 2))
    model = gnomon.SPPCA(2, supervision=0.5)
    score = held_out(model, X, y, "numeric", names=("fat", "noise"))
    assert [part.of for part in score.parts] == ["fat", "noise"]
    fat, noise = score.parts
    assert_allclose(score.value, (fat.value + noise.value) / 2)
    assert fat.low > 0.8
    assert fat.rmse is not None
    assert not noise.is_better_than_guessing
    plain = score.plain()
    assert plain["parts"]["fat"]["value"] == fat.value
    assert "more" not in plain


def test_several_labels_are_scored_by_f1_each(rng):
    X = rng.standard_normal((90, 5))
    y = (X[:, :2] > 0).astype(float)
    score = held_out(gnomon.SPPCA(2, supervision=0.5), X, y, "multilabel")
    assert score.name == "F1"
    assert [part.of for part in score.parts] == ["output 1", "output 2"]
    assert score.low > score.baseline


def test_a_model_that_predicts_nothing_is_scored_by_its_map():
    X, y = iris()
    score = held_out(gnomon.PPCA(2), X, y, "classes")
    assert score.of == "nearest labelled rows on the map (all 2 dimensions)"
    assert score.more == ()


def test_the_guess_is_the_best_constant(rng):
    y = rng.integers(3, size=20)
    dummy = DummyClassifier().fit(np.zeros((20, 1)), y).predict([[0]])[0]
    assert constant_guess("classes", y, 2).tolist() == [dummy, dummy]
    assert_allclose(constant_guess("numeric", np.array([1.0, 2.0, 6.0]), 2), [3, 3])


def test_rare_classes_are_no_reason_for_pride(rng):
    """Nine of ten rows are of one class: .9 is what a constant guess has."""
    X, y = rng.standard_normal((100, 4)), (np.arange(100) % 10 == 0).astype(int)
    score = held_out(gnomon.SPPCA(2, supervision=0.5), X, y, "classes")
    (near,) = score.more
    assert near.value > 0.7
    assert_allclose([score.baseline, near.baseline], 0.9)
    assert not near.is_better_than_guessing


class Clock:
    """A second passes each time that it is looked at."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_scoring_ends_in_time_with_the_folds_it_has():
    X, y = iris()
    model = gnomon.SPPCA(1, supervision=0.5)
    score = held_out(model, X, y, "classes", until=Deadline(6, clock=Clock()))
    assert 0 < score.n_rows < 100
    assert score.control is None
    assert held_out(model, X, y, "classes", until=Deadline(0.5, clock=Clock())) is None


def linked(n=60):
    """Faint content, two classes, links mostly inside a class."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 8)) + 0.8 * np.eye(2, 8)[y]
    A = rng.random((n, n)) < np.where(y[:, None] == y, 0.2, 0.01)
    return X, y, gnomon.Links(np.triu(A, 1) | np.triu(A, 1).T)


@pytest.mark.parametrize(
    "model", [gnomon.PRPCA(2, relation="filter"), gnomon.SPPCA(2, supervision=0.5)]
)
def test_links_serve_the_held_out_rows_too(model):
    X, y, links = linked()
    score = held_out(model, X, y, "classes", links=links)
    assert score.n_rows == 60
    assert score.low > score.baseline


def test_a_score_keeps_what_was_predicted_of_rows_that_no_fit_had_seen(rng):
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + 2 * np.eye(4)[y]
    names = np.array(["a", "b", "c"])[y]
    found = held_out(gnomon.SPPCA(2, supervision=0.5), X, names, "classes")
    rows = found.rows
    assert rows.names.tolist() == ["a", "b", "c"]
    assert_allclose(np.mean(rows.truth == rows.predicted), found.value)
    assert rows.proba.shape == (60, 3)
    assert np.array_equal(rows.proba.argmax(axis=1), rows.predicted)
    assert sorted(rows.truth.tolist()) == sorted(y.tolist())
    assert "rows" not in found.plain()


def test_a_score_of_numbers_keeps_their_standard_deviations(rng):
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    rows = held_out(gnomon.BSDRRegressor(2), X, y, "numeric").rows
    assert rows.std.shape == rows.truth.shape
    assert np.mean(np.abs(rows.truth - rows.predicted) < 1.96 * rows.std) > 0.8
