"""What a labelling session learns: maps that stay put, queues, progress."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

from gnomon import BSDR
from gnomon.models.gaussian import filling
from gnomon.tools.label.learning import MODELS, Learner


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    return rng.normal(size=(120, 6)) + 4 * np.eye(3, 6)[y], y


def labelled(y, n, seed=1):
    some = np.random.default_rng(seed).permutation(len(y))[:n]
    labels = np.full(len(y), -1)
    labels[some] = y[some]
    return labels


def test_a_session_learns_from_its_own_queue(rows):
    X, y = rows
    learner, labels = Learner(X, ["a", "b", "c"]), np.full(len(y), -1)
    for _ in range(12):
        state = learner.update(labels)
        labels[state.queue[0].row] = y[state.queue[0].row]
    assert np.mean(learner.update(labels).probabilities.argmax(axis=1) == y) > 0.9


def test_without_two_classes_the_map_is_that_of_the_rows_alone_and_probabilities_are_even(rows):
    X, _ = rows
    state = Learner(X, ["a", "b"]).update(np.where(np.arange(120) == 5, 0, -1))
    assert state.coordinates.shape == state.sd.shape == (120, 2)
    np.testing.assert_allclose(state.probabilities, 0.5)
    assert all(s.row != 5 for s in state.queue)


def test_a_state_is_turned_to_lie_as_the_last_one(rows):
    X, y = rows
    learner = Learner(X, ["a", "b", "c"])
    first = learner.update(labelled(y, 30)).coordinates
    second = learner.update(labelled(y, 31)).coordinates
    for flip in ([1, -1], [-1, 1], [-1, -1]):
        assert np.sum((first - second) ** 2) < np.sum((first - second * flip) ** 2)


def test_the_same_labels_move_nothing(rows):
    X, y = rows
    learner, labels = Learner(X, ["a", "b", "c"]), labelled(y, 30)
    first, second = learner.update(labels), learner.update(labels)
    np.testing.assert_allclose(first.coordinates, second.coordinates, atol=1e-4)
    assert (second.version, second.n_moved) == (2, 0.0)


def test_a_new_class_widens_the_probabilities(rows):
    X, y = rows
    learner = Learner(X, ["a", "b"])
    learner.update(labelled(np.minimum(y, 1), 20))
    assert learner.update(labelled(y, 20)).probabilities.shape == (120, 3)


def test_rows_with_gaps_are_placed_less_surely(rows):
    X, y = rows
    X = X.copy()
    X[3, :4] = np.nan
    state = Learner(X, ["a", "b", "c"]).update(labelled(y, 30))
    assert state.sd[3].sum() > 1.1 * np.delete(state.sd, 3, axis=0).sum(axis=1).max()


def test_a_slip_is_found_surprising(rows):
    X, y = rows
    learner, labels = Learner(X, ["a", "b", "c"]), labelled(y, 60)
    slip = int(np.flatnonzero(labels == 0)[0])
    labels[slip] = 1
    progress = learner.progress(labels)
    assert progress.surprising[0][:3] == (slip, 1, 0)
    assert progress.low < progress.accuracy < progress.high
    assert progress.permuted < 0.6 < progress.accuracy
    labels[slip] = 0
    assert slip not in [s.row for s in learner.update(labels).surprising]


def test_too_few_labels_are_said_to_be_so(rows):
    X, y = rows
    progress = Learner(X, ["a", "b", "c"]).progress(labelled(y, 2))
    assert np.isnan(progress.accuracy)
    assert progress.few == ("a", "b", "c")


def test_rows_that_were_skipped_are_not_offered_again(rng):
    X = rng.normal(size=(40, 4))
    learner = Learner(X, ["a", "b"])
    labels = np.full(40, -1)
    first = [suggestion.row for suggestion in learner.update(labels).queue]
    skipped = np.isin(np.arange(40), first)
    later = [suggestion.row for suggestion in learner.update(labels, skipped=skipped).queue]
    assert later
    assert not set(later) & set(first)


def test_labels_that_settle_the_other_rows_are_said_to_be_enough(rows):
    X, y = rows
    progress = Learner(X, ["a", "b", "c"]).progress(labelled(y, 80))
    assert progress.is_flat
    assert progress.verdict.startswith("more labels will not change much")
    assert progress.expected == pytest.approx(1.0, abs=0.1)


def test_labels_that_leave_the_other_rows_open_are_said_to_be_too_few():
    X, y = load_digits(return_X_y=True)
    progress = Learner(X[:400], [str(c) for c in range(10)]).progress(labelled(y[:400], 40))
    assert not progress.is_flat
    assert progress.verdict.startswith("more labels help")


@pytest.mark.one_sample("in one sample of some ten labels of noise are found by chance")
def test_labels_that_mean_nothing_are_said_to_be_guesses(rows):
    _, y = rows
    noise = np.random.default_rng(3).normal(size=(120, 6))
    progress = Learner(noise, ["a", "b", "c"]).progress(labelled(y, 60))
    assert progress.verdict == "labels left out are not found better than by guessing"


def test_chunks_pass_labels_on_unless_their_labels_disagree(rows):
    X, _ = rows
    labels, chunks = np.full(120, -1), np.full(120, -1)
    labels[[0, 40, 41, 80]] = [0, 1, 1, 2]
    chunks[[0, 1, 2]], chunks[[40, 80, 81]] = 3, 5
    state = Learner(X, ["a", "b", "c"]).update(labels, chunks)
    assert set(state.probabilities[[1, 2]].argmax(axis=1)) == {0}
    chunks[[40, 80, 81]] = -1
    again = Learner(X, ["a", "b", "c"]).update(labels, chunks)
    np.testing.assert_allclose(state.probabilities, again.probabilities)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_that_has_a_name_draws_the_map(rows, model):
    X, y = rows
    chunks = np.where(np.arange(120) < 3, 0, -1)
    state = Learner(X, ["a", "b", "c"], model).update(labelled(y, 40), chunks)
    assert np.isfinite(state.coordinates).all()
    assert np.mean(state.probabilities.argmax(axis=1) == y) > 0.9


def test_bsdr_learns_from_labelled_rows_alone(rows):
    X, y = rows
    labels = labelled(y, 40)
    learner = Learner(X, ["a", "b", "c"], "BSDR")
    state = learner.update(labels)
    alone = BSDR(2, n_init=1, random_state=0).fit(X[labels >= 0], labels[labels >= 0])
    np.testing.assert_allclose(learner.fitted.transform(X), alone.transform(X))
    assert np.all(state.sd > 0)
    assert learner.progress(labels).accuracy > 0.8


@pytest.mark.filterwarnings("ignore:BSDR found the null solution")
def test_labels_in_which_bsdr_finds_no_direction_leave_the_map_of_the_rows():
    noise = np.random.default_rng(0).normal(size=(60, 3))
    labels = np.where(np.arange(60) < 6, np.arange(60) % 3, -1)
    state = Learner(noise, ["a", "b", "c"], "BSDR").update(labels)
    alone = Learner(noise, ["a", "b", "c"]).update(np.full(60, -1))
    assert not state.predicts
    np.testing.assert_allclose(state.coordinates, alone.coordinates)
    np.testing.assert_allclose(state.probabilities, 1 / 3)


def test_gaps_are_filled_as_every_model_without_a_density_fills_them(rows):
    X = rows[0].copy()
    X[::7, 2] = np.nan
    expected = filling.fill(filling.learn(X), X)
    np.testing.assert_allclose(Learner(X, ["a", "b"])._whole, expected)


def test_a_model_or_rule_without_a_name_is_refused(rows):
    with pytest.raises(ValueError, match="model == 'tree'"):
        Learner(rows[0], ["a", "b"], "tree")
    with pytest.raises(ValueError, match="rule == 'tree'"):
        Learner(rows[0], ["a", "b"], rule="tree")


@pytest.mark.parametrize("make", [sparse.csr_array, lambda X: X[:, :1]])
def test_sparse_rows_and_a_single_column_have_a_map(rows, make):
    X, y = rows
    state = Learner(make(np.where(X > 1, X, 0)), ["a", "b", "c"]).update(labelled(y, 40))
    assert state.coordinates.shape == (120, 2)
    assert state.queue


@pytest.mark.one_sample("in one sample of ten the strength of fits afresh hardly moves either")
def test_a_refit_keeps_the_strength_of_the_last_one(rows):
    X, y = rows
    moves, moves_afresh = 0, 0
    for seed in (1, 2):
        kept = Learner(X, ["a", "b", "c"])
        strengths, strengths_afresh = [], []
        for n in range(20, 32):
            afresh = Learner(X, ["a", "b", "c"])
            kept.update(labelled(y, n, seed))
            afresh.update(labelled(y, n, seed))
            strengths.append(kept.fitted.supervision_)
            strengths_afresh.append(afresh.fitted.supervision_)
        moves += np.sum(np.diff(strengths) != 0)
        moves_afresh += np.sum(np.diff(strengths_afresh) != 0)
    assert moves <= moves_afresh / 2 + 1
