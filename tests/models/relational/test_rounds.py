from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon.inference.loop import Method, Run, iterate
from gnomon.linalg.blocks import from_loaders
from gnomon.linalg.data import Matrix, center
from gnomon.models.gaussian import ppca
from gnomon.models.relational import model, rounds


@pytest.fixture
def task(linked, rng):
    X, A = linked
    mean, centered = center(Matrix(X))
    data = model.link(centered, A, rng)
    axes = ppca.leading_axes(centered, 4, rng)
    return rounds.Task(Matrix(X), A, mean, data, axes, 2, rng)


def reference(task):
    return model.independent(task.axes, task.q, task.data)[1]


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_held_out_density_is_that_of_each_row_given_all_others(
    state, data, X, covariance_of, factor
):
    new, (n, d) = np.array([2, 5, 6]), X.shape
    C = covariance_of(state._replace(a=factor * state.a))
    expected = 0.0
    for node in new:
        old = np.repeat(np.arange(n) != node, d)
        expected += multivariate_normal(cov=C).logpdf(X.ravel())
        expected -= multivariate_normal(cov=C[np.ix_(old, old)]).logpdf(X.ravel()[old])
    held_out = rounds.hold_out(data.X, data.S, new)
    assert_allclose(rounds.held_out_log_density(state, held_out, [1.0, factor])[1], expected)


def test_smoothest_axes_come_first(task):
    U = rounds.smoothest_first(task.data, task.axes, 2)
    Z = task.data.X @ U
    agreement = np.sum(Z * (task.data.S @ Z), axis=0) / np.sum(Z**2, axis=0)
    assert agreement[:2].min() > agreement[2:].max()
    assert_allclose(U @ U.T, task.axes @ task.axes.T)


def test_axes_of_smoothed_rows_come_before_principal_axes_of_the_rest(task, rng):
    U = rounds.axes_of_smoothed(task.data, task.axes, 2, rng)
    S, X = task.data.S.toarray(), np.concatenate(list(task.data.X.dense_blocks()))
    _, _, V = np.linalg.svd(S @ S @ X, full_matrices=False)
    assert_allclose(U.T @ U, np.eye(4), atol=1e-12)
    assert_allclose(U[:, :2] @ U[:, :2].T, V[:2].T @ V[:2], atol=1e-6)


def test_true_links_pass_and_permuted_links_fail(task):
    verdict = rounds.judge(task, reference(task))
    assert verdict.gain > verdict.needed + 20
    order = np.random.default_rng(5).permutation(task.X.shape[0])
    chance = task._replace(data=rounds.permuted(task.data, order))
    verdict = rounds.judge(chance, reference(task))
    assert verdict.gain <= verdict.needed
    assert_allclose(verdict.needed, max(verdict.permuted_gain, 0) + 2 * np.log(len(order)))


def test_rows_in_blocks_are_permuted_by_moving_the_graph(task):
    X = np.concatenate(list(task.data.X.dense_blocks()))
    order = np.random.default_rng(5).permutation(len(X))
    parts = from_loaders([lambda: X[:50], lambda: X[50:]])
    moved = rounds.permuted(task.data._replace(X=parts), order)
    expected = rounds.permuted(task.data, order)
    one, two = (model.measure(task.axes, 2, each) for each in (moved, expected))
    start, _ = model.independent(task.axes, 2, task.data)
    start = start._replace(a=np.ones(2), beta=np.ones(2))
    assert_allclose(model.log_likelihood(start, one), model.log_likelihood(start, two))


def test_more_rounds_raise_the_trial_that_is_kept(task):
    trials = rounds.judge(task, reference(task)).trials
    best = rounds.likeliest_later(trials, 120, max_iter=100, tol=1e-9)
    assert best.run.objective[-1] >= max(trial.run.objective[-1] for trial in trials)
    assert len(best.run.objective) == rounds.LATE_ROUNDS
    many = rounds.likeliest_later(trials, rounds.MANY + 1, max_iter=100, tol=1e-9)
    assert len(many.run.objective) == rounds.EARLY_ROUNDS


def test_no_fewer_rounds_are_chosen_than_the_least(task):
    chosen = rounds.choose(task, rounds.smoothest_first, 7)
    assert 7 <= chosen.number <= rounds.ROUNDS
    assert chosen.factor in rounds.FACTORS


def test_every_row_is_held_out_once(task):
    folds = list(rounds._folds(task, rounds.smoothest_first))
    rows = np.concatenate([fold.held_out.rows for fold in folds])
    assert_allclose(np.sort(rows), np.arange(120))
    assert all(fold.data.X.shape[0] == 96 for fold in folds)


def test_folds_do_not_depend_on_the_signs_of_axes(task):
    held_out = []
    for axes in (task.axes, -task.axes):
        turned = task._replace(axes=axes, rng=np.random.default_rng(0))
        held_out.append([f.held_out.rows for f in rounds._folds(turned, rounds.smoothest_first)])
    assert_allclose(*held_out)


def test_rounds_until_the_likelihood_is_high_enough():
    run = SimpleNamespace(objective=[-9.0, -5.0, -1.0, 2.0])
    assert rounds.rounds_above(-4.0, run) == 2
    assert rounds.rounds_above(-20.0, run) == 1


def test_chosen_rounds_are_convergence():
    def loop(method, *, max_iter, tol):
        return iterate(method, max_iter=max_iter, tol=tol)

    count = Method(0, lambda k: (k + 1, float(k)))
    run = rounds.follow(count, loop, 4, max_iter=10, tol=0.0)
    assert run.converged and run.state == 4
    assert not rounds.follow(count, loop, 4, max_iter=3, tol=0.0).converged
    assert not rounds.follow(count, loop, None, max_iter=3, tol=0.0).converged


def test_a_run_goes_on_as_if_it_had_not_been_left(task):
    method = rounds.accelerated(task.data, rounds.init(task.axes, 2, task.data))
    whole = iterate(method, max_iter=8, tol=0.0)
    early = iterate(method, max_iter=4, tol=0.0)
    _, run, _ = rounds.finish(early, task.data, partial(iterate, max_iter=4, tol=0.0))
    assert_allclose(run.objective, whole.objective, rtol=1e-12)


def test_a_run_that_has_converged_is_only_finished(task):
    start = rounds.init(task.axes, 2, task.data)
    done = Run(start, [1.0], True)
    state, run, log_likelihood = rounds.finish(done, task.data, loop=None)
    assert run is done
    expected, value = model.final_variances(start, task.data)
    assert_allclose(log_likelihood, value)
    assert_allclose(state.U, expected.U)


@pytest.mark.parametrize(("n", "k", "possible"), [(100, 79, True), (100, 80, False), (5001, 3, 0)])
def test_rows_are_held_out_where_they_are_few_but_enough(n, k, possible):
    assert rounds.can_hold_out(n, k) == bool(possible)


def test_of_two_starts_that_end_at_one_maximum_the_first_is_kept():
    """Rounding decided: with features in another order another start was cut after few rounds."""

    def trial(value):
        return rounds.Trial(None, None, Run(None, [-9.0, value], converged=True))

    first, second, likelier = trial(-5.0), trial(-5.0 + 1e-9), trial(-4.9)
    assert rounds._likeliest([first, second]) is first
    assert rounds._likeliest([first, likelier]) is likelier
