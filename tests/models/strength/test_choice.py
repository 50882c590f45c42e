from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.linalg.data import Matrix, Weighted, center
from gnomon.models.strength import choice as choices
from gnomon.models.strength.choice import (
    choose,
    code_vectors,
    left_out_evidence,
    left_out_gain,
    relative_losses,
)
from gnomon.models.strength.closed_form import principal_space, supervise, truncated
from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.trials import Candidate, Contest, distinct_rows, tuned


def contrasts(count):
    Q, _ = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, :-1]]))
    return Q[:, 1:]


def outputs(labels):
    code = contrasts(labels.max() + 1)
    observed = np.repeat((labels >= 0)[:, None], code.shape[1], axis=1)
    return Outputs(np.where(observed, code[labels], 0.0), observed, labels)


def space_of(rows):
    return principal_space(*center(rows), 150, np.random.default_rng(0))


def sample(rng, *, classes, n, per_class, strength):
    """Classes that differ in directions of little variance; all but a few rows unlabelled."""
    truth = np.arange(n) % classes
    X = rng.standard_normal((n, 20)) * np.r_[np.full(10, 5.0), np.ones(10)]
    X[:, 10:] += strength * rng.standard_normal((classes, 10))[truth]
    labels = np.where(np.arange(n) < classes * per_class, truth, -1)
    return X, truth, labels


def chosen(X, labels, q, seed=0, weights=None):
    rows = Matrix(X) if weights is None else Weighted(Matrix(X), weights)
    basis, known = space_of(rows), outputs(labels)
    choice = choose(basis, known, q, np.random.default_rng(seed))
    return choice, supervise(
        truncated(basis, choice.n_directions), known, q, choice.s, choice.votes
    )


def error(T, truth, labelled):
    D = np.linalg.norm(T[~labelled][:, None] - T[labelled][None], axis=2)
    return np.mean(truth[labelled][np.argmin(D, axis=1)] != truth[~labelled])


@pytest.mark.parametrize(("classes", "q"), [(4, 3), (10, 4)], ids=["folds", "half-class splits"])
def test_labels_that_pca_misses_are_found(rng, classes, q):
    X, truth, labels = sample(rng, classes=classes, n=400, per_class=6, strength=2)
    choice, found = chosen(X, labels, q)
    Xc = X - X.mean(axis=0)
    pca = np.linalg.svd(Xc, full_matrices=False)[2][:q].T
    assert choice.s > 0
    labelled = labels >= 0
    assert error(Xc @ found.projection, truth, labelled) < 0.6 * error(Xc @ pca, truth, labelled)


@pytest.mark.parametrize("classes", [2, 8])
def test_random_labels_mostly_get_weak_supervision(rng, classes):
    draws = [sample(rng, classes=classes, n=150, per_class=5, strength=0) for _ in range(9)]
    strengths = [chosen(X, labels, 3)[0].s for X, _, labels in draws]
    assert np.median(strengths) <= 0.1


def test_one_label_a_class_says_nothing(rng):
    X, _, labels = sample(rng, classes=4, n=60, per_class=1, strength=3)
    choice, _ = chosen(X, labels, 2)
    assert choice.s == 0
    assert choice.curve is None


def test_renaming_classes_and_shuffling_rows_change_nothing(rng):
    X, _, labels = sample(rng, classes=5, n=80, per_class=4, strength=2)
    first, _ = chosen(X, labels, 2)
    order = rng.permutation(80)
    renamed = np.where(labels >= 0, np.array([3, 0, 4, 2, 1])[labels], -1)[order]
    again, _ = chosen(X[order], renamed, 2)
    assert (first.s, first.n_directions) == (again.s, again.n_directions)
    assert_allclose(first.curve.criterion, again.curve.criterion, atol=1e-9)


def test_weights_count_as_repeated_rows(rng):
    X, _, labels = sample(rng, classes=3, n=40, per_class=6, strength=2)
    counts = rng.integers(0, 4, 40)
    again = np.repeat(np.arange(40), counts)
    weighted, _ = chosen(X, labels, 2, weights=counts)
    repeated, _ = chosen(X[again], labels[again], 2)
    assert_allclose(weighted.curve.criterion, repeated.curve.criterion, atol=1e-9)


def test_errors_are_over_distinct_rows(rng):
    losses = rng.random((2, 10))
    once = relative_losses(losses, np.ones(10), np.arange(10))
    again = relative_losses(np.tile(losses, 3), np.ones(30), np.tile(np.arange(10), 3))
    assert_allclose(once, again)


def test_no_single_loss_decides():
    losses = np.full((2, 10), 0.1)
    losses[1, 0] = 1e6
    assert relative_losses(losses, np.ones(10), np.arange(10))[0][1] < 2


def test_left_out_evidence_is_the_score_of_correct_classes(rng):
    X, _, labels = sample(rng, classes=4, n=40, per_class=5, strength=3)
    basis = space_of(Matrix(X))
    labelled = distinct_rows(basis, outputs(labels))
    fits = tuned(Contest(basis, labelled, 3))
    predicted = labelled.outputs.Y - fits[20].residuals
    hits = np.mean(np.argmax(predicted @ code_vectors(labelled).T, axis=1) == labelled.labels)
    assert_allclose(left_out_evidence(fits, labelled), (hits - 0.25) / np.sqrt(0.25 * 0.75 / 20))


@pytest.mark.one_sample("where principal axes tell classes apart, in one of 20, no row need join")
def test_unlabelled_rows_join_with_their_own_class(rng):
    X, truth, labels = sample(rng, classes=5, n=200, per_class=4, strength=4)
    choice, _ = chosen(X, labels, 3)
    sure = choice.votes.weights > 0.5
    assert np.all(labels[choice.votes.rows] == -1)
    assert np.mean(choice.votes.labels[sure] == truth[choice.votes.rows][sure]) > 0.95
    assert_allclose(choice.votes.code_vectors, contrasts(5)[choice.votes.labels], atol=1e-12)


def test_unlabelled_rows_that_join_make_the_map_better(rng):
    errors = []
    for _ in range(3):  # none may join in one
        X, truth, labels = sample(rng, classes=6, n=600, per_class=4, strength=2)
        choice, found = chosen(X, labels, 4)
        basis = space_of(Matrix(X))
        alone = supervise(truncated(basis, choice.n_directions), outputs(labels), 4, choice.s)
        maps = ((X - X.mean(axis=0)) @ each.projection for each in (found, alone))
        errors.append([error(T, truth, labels >= 0) for T in maps])
    together, apart = np.mean(errors, axis=0)
    assert together < 0.9 * apart


def test_numbers_that_pca_misses_are_found(rng):
    X = rng.standard_normal((200, 12)) * np.r_[np.full(6, 5.0), np.ones(6)]
    y = X[:, 6:].sum(axis=1) + 0.3 * rng.standard_normal(200)
    observed = (np.arange(200) < 60)[:, None]
    basis = space_of(Matrix(X))
    known = Outputs(np.where(observed, y[:, None], 0.0), observed)
    choice = choose(basis, known, 2, rng)
    assert choice.s >= 0.5
    found = supervise(basis, known, 2, choice.s)
    T = (X - X.mean(axis=0)) @ found.projection
    fit = np.linalg.lstsq(np.column_stack([np.ones(60), T[:60]]), y[:60])[0]
    rest = y[60:] - fit[0] - T[60:] @ fit[1:]
    assert np.mean(rest**2) < 0.3 * np.var(y[60:])


def test_numbers_without_relation_get_at_most_weak_supervision(rng):
    strengths = []
    for _ in range(9):
        X, Y = rng.standard_normal((60, 12)), rng.standard_normal((60, 2))
        observed = rng.random((60, 2)) < 0.7
        basis = space_of(Matrix(X))
        strengths.append(choose(basis, Outputs(np.where(observed, Y, 0.0), observed), 2, rng).s)
    assert np.median(strengths) <= 0.1


def test_too_few_numbers_say_nothing(rng):
    X = rng.standard_normal((30, 4))
    observed = (np.arange(30) < 4)[:, None]
    basis = space_of(Matrix(X))
    assert choose(basis, Outputs(X[:, :1] * observed, observed), 2, rng).s == 0


def test_left_out_gain_is_large_where_numbers_are_predicted(rng):
    X = rng.standard_normal((40, 6))
    Y = np.column_stack([X[:, 0], rng.standard_normal(40)])
    basis = space_of(Matrix(X))
    seen = np.ones((40, 1), dtype=bool)
    gains = []
    for column in (Y[:, :1], Y[:, 1:]):
        labelled = distinct_rows(basis, Outputs(column, seen))
        gains.append(left_out_gain(tuned(Contest(basis, labelled, 2)), labelled))
    assert gains[0] > 3
    assert gains[1] < 2


def test_an_outlying_number_does_not_decide(rng):
    X = rng.standard_normal((60, 6)) * np.r_[np.full(3, 5.0), np.ones(3)]
    y = X[:, 4] + 0.1 * rng.standard_normal(60)
    y[3] = 1e3
    seen = np.ones((60, 1), dtype=bool)
    basis = space_of(Matrix(X))
    choice = choose(basis, Outputs((y / y.std())[:, None], seen), 1, rng)
    assert np.abs(choice.curve.criterion).max() < 10
    assert np.ptp(choice.curve.loss) < 1


def test_training_rows_of_pure_noise_are_not_drawn_apart(rng):
    """Random labels: held-out rows find their class as by chance, labelled rows in most draws.

    Some strength is chosen in one draw of twelve, which draws the labelled rows apart.
    """
    held_out, training = [], []
    for _ in range(12):
        X, truth, labels = sample(rng, classes=4, n=160, per_class=5, strength=0)
        truth = rng.permutation(truth)
        labels = np.where(np.arange(160) < 20, truth, -1)
        _, found = chosen(X, labels, 3)
        T = (X - X.mean(axis=0)) @ found.projection
        held_out.append(1 - error(T, truth, labels >= 0))
        D = np.linalg.norm(T[:20, None] - T[None, :20], axis=2) + np.diag(np.full(20, np.inf))
        training.append(np.mean(truth[:20][np.argmin(D, axis=1)] == truth[:20]))
    spread = np.std(held_out) / np.sqrt(12)
    assert abs(np.mean(held_out) - 0.25) < 4 * max(spread, 0.012)
    assert np.sum(np.array(training) > 0.6) <= 5


def test_very_unbalanced_classes_are_told_apart(rng):
    truth = np.repeat([0, 1, 2], [240, 30, 30])
    X = rng.standard_normal((300, 20)) * np.r_[np.full(10, 5.0), np.ones(10)]
    X[:, 10:] += 2.5 * rng.standard_normal((3, 10))[truth]
    labelled = np.zeros(300, dtype=bool)
    labelled[np.r_[0:24, 240:243, 270:273]] = True
    choice, found = chosen(X, np.where(labelled, truth, -1), 2)
    T = (X - X.mean(axis=0)) @ found.projection
    near = np.argmin(np.linalg.norm(T[:, None] - T[labelled][None], axis=2), axis=1)
    right = truth[labelled][near] == truth
    assert choice.s > 0
    assert min(right[~labelled & (truth == c)].mean() for c in range(3)) > 0.8


def few_labels(seed):
    """Two labels in each of eight classes, of which trials leave one."""
    X, truth, _ = sample(np.random.default_rng(seed), classes=8, n=400, per_class=2, strength=3)
    rng = np.random.default_rng(seed)
    labelled = np.zeros(400, dtype=bool)
    labelled[[rng.choice(np.flatnonzero(truth == c), 2, replace=False) for c in range(8)]] = True
    return X, truth, labelled


def test_labels_found_surely_count_against_the_trials():
    """Of 100 samples trials prefer no supervision in about ten; it is taken in some of them."""
    against = []
    for seed in range(100):
        X, truth, labelled = few_labels(seed)
        choice, found = chosen(X, np.where(labelled, truth, -1), 4, seed)
        if np.argmin(choice.curve.loss) == 0 and choice.s > 0:
            Xc = X - X.mean(axis=0)
            pca = np.linalg.svd(Xc, full_matrices=False)[2][:4].T
            maps = Xc @ found.projection, Xc @ pca
            against.append(np.divide(*(error(T, truth, labelled) for T in maps)))
    assert len(against) > 0
    assert np.mean(against) < 0.5


@pytest.mark.one_sample("in one sample of 40 the centres lie at a distance of 7, not of 18")
def test_ten_labels_in_all_are_enough_where_classes_are_clear(rng):
    X, truth, labels = sample(rng, classes=2, n=200, per_class=5, strength=4)
    _, found = chosen(X, labels, 2)
    T = (X - X.mean(axis=0)) @ found.projection
    assert error(T, truth, labels >= 0) < 0.1


def test_a_choice_before_stays_unless_another_is_clearly_better(rng):
    X, _, labels = sample(rng, classes=3, n=300, per_class=6, strength=3)
    space, known = space_of(Matrix(X)), outputs(labels)
    held = {
        s: choose(space, known, 2, np.random.default_rng(0), Candidate(20, s)).s
        for s in (0.0, 0.1, 0.25, 0.5, 0.9, 0.99)
    }
    free = choose(space, known, 2, np.random.default_rng(0)).s
    assert held[free] == free
    assert all(kept in (s, free) for s, kept in held.items())


@pytest.mark.parametrize("best", [0, 1])
@pytest.mark.parametrize(("behind", "stays"), [(1.9, True), (2.1, False)])
def test_what_clearly_better_means_is_in_errors_of_the_difference(best, behind, stays):
    """Also against the map without supervision, which losses are relative to: it has no error."""
    candidates = [Candidate(5, s) for s in (0.0, 0.5, 0.9)]
    criterion = np.array([5.0, 5.0, 3 + 0.1 * behind])
    criterion[best] = 3.0
    contest = SimpleNamespace(candidates=candidates, before=candidates[2])
    found = choices._least(contest, criterion, np.array([0.0, 0.1, 0.1]))
    assert found == (2 if stays else best)


def test_the_evidence_of_trials_is_in_standard_errors_of_guesses(monkeypatch):
    """Three of four rows are found where a guess finds two, give or take one."""
    lost = [np.array([0, 1]), np.array([2, 3])]
    trials = [SimpleNamespace(lost=rows, classes=[0, 1], fits={3: None}) for rows in lost]
    monkeypatch.setattr(choices, "_found", lambda labelled, trial, p: trial.lost < 3)
    assert_allclose(choices.trial_evidence(None, trials), 1.0)


@pytest.mark.parametrize(
    ("loss", "finds_labels", "chosen"), [(-0.1, False, 0), (-9.0, False, 1), (-0.1, True, 1)]
)
def test_labels_are_used_where_they_can_be_found_or_do_clearly_better(loss, finds_labels, chosen):
    candidates = [Candidate(5, 0.0), Candidate(5, 0.7)]
    contest = SimpleNamespace(candidates=candidates, before=None)
    losses, errors = np.array([0.0, loss]), np.array([0.0, 0.01 if finds_labels else 1.0])
    found = choices._first_choice(contest, losses, errors, np.zeros(2), finds_labels)
    assert found.s == candidates[chosen].s


def test_nobody_has_no_votes():
    shares = choices.vote_shares(np.zeros((5, 0)), np.zeros((0, 3)), np.zeros(0, dtype=int))
    assert shares.shape == (0, 3)
