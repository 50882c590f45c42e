import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.linalg.data import Matrix, center
from gnomon.models.strength import trials
from gnomon.models.strength.closed_form import (
    directions,
    label_block,
    principal_space,
    truncated,
)
from gnomon.models.strength.completion import Completion, Outputs
from gnomon.models.strength.rule import RULE
from gnomon.models.strength.trials import (
    Contest,
    class_distances,
    class_losses,
    distinct_rows,
    draw_splits,
    embed,
    maps_of,
    number_losses,
    run_trials,
    soft_losses,
    strength_maps,
    thinned,
    tuned,
)


def contrasts(count):
    Q, _ = np.linalg.qr(np.column_stack([np.ones(count), np.eye(count)[:, :-1]]))
    return Q[:, 1:]


@pytest.fixture
def contest(rng):
    """Four classes in 60 rows of twelve columns, all labelled."""
    labels = np.arange(60) % 4
    X = rng.standard_normal((60, 12)) + 2 * rng.standard_normal((4, 12))[labels]
    space = principal_space(*center(Matrix(X)), 150, rng)
    known = Outputs(contrasts(4)[labels], np.ones((60, 3), dtype=bool), labels)
    return Contest(space, distinct_rows(space, known), 2)


def test_equal_rows_are_merged(contest, rng):
    space, labelled = contest.space, contest.labelled
    X, again = space.data.X.X, np.r_[np.arange(12), np.arange(5)]
    labels = again % 3
    known = Outputs(contrasts(3)[labels], np.ones((17, 2), dtype=bool), labels)
    merged = distinct_rows(principal_space(*center(Matrix(X[again])), 150, rng), known)
    assert len(labelled.F) == 60
    assert len(merged.F) == 12
    assert sorted(merged.weights) == [1] * 7 + [2] * 5


def test_rows_that_differ_in_their_outputs_alone_are_not_merged(contest, rng):
    X = np.repeat(contest.space.data.X.X[:8], 2, axis=0)
    numbers = Outputs(np.arange(16.0)[:, None], np.ones((16, 1), dtype=bool))
    assert len(distinct_rows(principal_space(*center(Matrix(X)), 150, rng), numbers).F) == 16


def test_thinning_keeps_the_rare_classes(contest, rng, monkeypatch):
    monkeypatch.setattr(trials, "RULE", RULE._replace(most_labelled=30))
    labels = np.where(np.arange(60) < 5, 1, 0)
    known = contest.labelled.outputs._replace(labels=labels)
    few = thinned(contest.labelled._replace(outputs=known), rng)
    assert np.bincount(few.labels).tolist() == [25, 5]


def test_half_class_splits_take_rows_of_the_classes_that_compete(rng):
    labels = np.repeat(np.arange(9), 2)
    splits = draw_splits(labels, 3, rng)
    for split in splits:
        assert set(labels[split.lost]) == set(split.classes)
        assert set(labels[split.kept]) == set(range(9))
        assert not set(split.lost) & set(split.kept)
    # Half of the classes compete at a time, so that each does in about half of the splits.
    assert np.bincount(np.concatenate([labels[s.lost] for s in splits])).min() >= 1


def test_plain_folds_keep_a_row_of_every_class(rng):
    labels = np.repeat(np.arange(3), [2, 5, 30])
    for split in draw_splits(labels, 2, rng):
        assert set(labels[split.kept]) == {0, 1, 2}


def test_class_distances_are_those_to_the_nearest_row(rng):
    A, B, labels = (
        rng.standard_normal((4, 2)),
        rng.standard_normal((7, 2)),
        np.array([0, 0, 1, 1, 1, 2, 2]),
    )
    D = np.linalg.norm(A[:, None] - B[None], axis=2) ** 2
    expected = np.column_stack([D[:, labels == c].min(axis=1) for c in range(3)])
    assert_allclose(class_distances(A, B, labels), expected, atol=1e-12)


def test_losses_are_those_of_the_soft_nearest_neighbour(rng):
    D = rng.random((1, 30, 3))
    truth = rng.integers(3, size=30)
    scale = np.median(D[0].min(axis=1))

    def mean_loss(width):
        P = np.exp(-D[0] / (2 * width * scale))
        return -np.log((P / P.sum(axis=1, keepdims=True))[np.arange(30), truth])

    best = min((mean_loss(2.0**k) for k in range(-4, 7)), key=np.mean)
    assert_allclose(soft_losses(D, truth)[0], best)


def test_distances_of_equal_rows_are_no_width(rng):
    """Most rows have a twin but for rounding; one is wrong, and its loss is finite."""
    D = np.column_stack([1e-15 * rng.random(20), 1 + rng.random(20)])[None]
    truth = np.zeros(20, dtype=int)
    truth[0] = 1
    for distances in (D, D * [0, 1]):
        losses = soft_losses(distances, truth)[0]
        width = 2 * RULE.widths[-1] * RULE.rounding * distances.max()
        assert_allclose(losses[0], np.ptp(distances[0, 0]) / width)
        assert_allclose(losses[1:], 0, atol=1e-300)


@pytest.mark.one_sample("which of two axes nearly as good is taken moves the map by up to a sixth")
@pytest.mark.parametrize("q", [2, 6])
def test_maps_of_all_strengths_are_nearly_those_of_stage_2(rng, q):
    """Exact where the space holds all directions, some hundredths off where it does not.

    A mean over pairs of rows: where two axes are nearly as good as each other either may be taken,
    which moves some rows further.
    """
    X = rng.standard_normal((200, 80)) * np.geomspace(9, 0.3, 80)
    labels = np.arange(200) % 5
    X[:, 40:] += rng.standard_normal((5, 40))[labels]
    space = principal_space(*center(Matrix(X)), 150, rng)
    known = Outputs(contrasts(5)[labels], np.ones((200, 4), dtype=bool), labels)
    contest = Contest(space, distinct_rows(space, known), q)
    for p, tolerance in ((10, 1e-8), (80, 0.08)):
        fit = tuned(contest._replace(space=truncated(space, p)))[p]
        G = label_block(fit, space.variances[:p])
        F = contest.labelled.F[:, :p]
        for R, s in zip(strength_maps(space, G, q), RULE.strengths, strict=True):
            exact = F @ directions(space.variances[:p], space.total, G, q, s).R
            T = F @ R
            ours, theirs = (np.linalg.norm(A[:, None] - A[None], axis=2) for A in (T, exact))
            assert np.mean(np.abs(ours - theirs)) < tolerance * np.mean(theirs)


def test_rows_are_embedded_by_every_candidate(contest):
    fits = tuned(contest)
    T = embed(contest, contest.labelled.F, fits)
    assert [c.s for c in contest.candidates] == [0, *RULE.strengths]
    assert {c.n_directions for c in contest.candidates} == {12}
    assert_allclose(T[0], contest.labelled.F[:, :2])
    R = strength_maps(contest.space, label_block(fits[12], contest.space.variances), 2)
    assert_allclose(T[3], contest.labelled.F @ R[2])


@pytest.mark.parametrize("n_outputs", [3, 40])
def test_maps_of_few_and_many_outputs_are_those_of_their_label_block(contest, n_outputs, rng):
    space, p = contest.space, contest.sizes[-1]
    A = rng.standard_normal((n_outputs, n_outputs))
    B = rng.standard_normal((p, n_outputs))
    fit = Completion(B, None, A @ A.T + np.eye(n_outputs), None, None)
    found = maps_of(contest, [{size: fit._replace(B=B[:size]) for size in contest.sizes}])[0]
    G = label_block(fit, space.variances[:p])
    expected = strength_maps(space, G, contest.q)
    for ours, theirs in zip(found[-1], expected, strict=True):
        assert_allclose(ours @ ours.T, theirs @ theirs.T, rtol=1e-9, atol=1e-11)


def test_losses_of_classes_are_by_rows_that_kept_their_label(contest, rng):
    splits = run_trials(contest, tuned(contest), rng)
    losses, chance = class_losses(contest, splits)
    assert_allclose(chance, np.log(4))
    labels, distances, truth = contest.labelled.labels, [], []
    for split in splits:
        T = embed(contest, contest.labelled.F, split.fits)[-1]
        D = np.linalg.norm(T[split.lost][:, None] - T[split.kept][None], axis=2) ** 2
        nearest = [
            D[:, labels[split.kept] == c].min(axis=1)
            if c in split.classes
            else np.full(len(D), np.inf)
            for c in range(4)
        ]
        distances.append(np.column_stack(nearest))
        truth.append(labels[split.lost])
    expected = soft_losses(np.vstack(distances)[None], np.concatenate(truth))[0]
    assert_allclose(losses[-1], expected, rtol=1e-6)


def test_losses_of_numbers_are_those_of_a_regression_on_the_map(rng):
    X = rng.standard_normal((50, 6))
    y = X[:, :1] + 0.1 * rng.standard_normal((50, 1))
    space = principal_space(*center(Matrix(X)), 150, rng)
    labelled = distinct_rows(space, Outputs(y, np.ones((50, 1), dtype=bool)))
    contest = Contest(space, labelled, 1)
    splits = run_trials(contest, tuned(contest), rng)
    losses, chance = number_losses(contest, splits)
    lost = np.concatenate([split.lost for split in splits])
    assert sorted(lost) == list(range(50))
    assert losses.shape == (1 + len(RULE.strengths), 50)
    assert losses[-1].mean() < 0.1 * chance.mean()
    kept = splits[0].kept
    away = labelled.outputs.Y[splits[0].lost] - labelled.outputs.Y[kept].mean()
    expected = np.minimum(away[:, 0] ** 2 / np.var(y), RULE.largest_error)
    assert_allclose(chance[: len(expected)], expected)
