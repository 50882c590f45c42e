import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import softmax

from gnomon.linalg.solve import gaussian_log_odds
from gnomon.models.strength import completion
from gnomon.models.strength.completion import (
    Outputs,
    Votes,
    class_weights,
    complete,
    complete_with_votes,
    for_new_rows,
    predictive,
    recomplete,
    residual_covariance,
)
from gnomon.models.strength.rule import RULE

n, p, c = 14, 6, 3


@pytest.fixture
def rows(rng):
    F = rng.standard_normal((n, p)) * np.arange(p, 0, -1)
    Y = F @ rng.standard_normal((p, c)) * 0.3 + rng.standard_normal((n, c))
    return F, Y, np.ones((n, c), dtype=bool), np.ones(n)


def completed(F, Y, observed, weights, labels=None):
    return complete(F, Outputs(Y, observed, labels), weights)


def refit(F, Y, weights, a):
    """Weighted ridge with intercept by its normal equations."""
    total = weights.sum()
    f_mean, y_mean = weights @ F / total, weights @ Y / total
    Fc = F - f_mean
    B = np.linalg.solve(
        Fc.T @ (weights[:, None] * Fc) + a * np.eye(p), Fc.T @ (weights[:, None] * (Y - y_mean))
    )
    return B, y_mean - f_mean @ B


def brute_residuals(F, Y, weights, a):
    E = np.empty_like(Y)
    for i in range(len(F)):
        kept = np.arange(len(F)) != i
        B, offset = refit(F[kept], Y[kept], weights[kept], a)
        E[i] = Y[i] - offset - F[i] @ B
    return E


def absolute(F, weights, penalty):
    centred = F - weights @ F / weights.sum()
    return penalty * np.sum(weights[:, None] * centred**2) / weights.sum()


def shares_by_hand(residuals):
    """Of predictions with these left-out residuals (m, n, c), by their likelihoods."""
    logs = [np.linalg.slogdet(residual_covariance(E, np.ones(len(E))))[1] for E in residuals]
    likelihoods = np.exp(-len(residuals[0]) / 2 * (np.array(logs) - min(logs)))
    return likelihoods / likelihoods.sum()


def test_numbers_are_predicted_by_all_penalties_as_likely_as_rows_left_out_make_them(rows):
    F, Y, observed, ones = rows
    fit = completed(F, Y, observed, ones)
    grid = [g for g in RULE.penalties if g >= RULE.least_penalty_of_numbers]
    left_out = [brute_residuals(F, Y, ones, absolute(F, ones, g)) for g in grid]
    shares = shares_by_hand(left_out)
    assert np.sum(shares > 0.01) > 2
    assert fit.penalty[0] == grid[np.argmax(shares)]
    B = [refit(F, Y, ones, absolute(F, ones, g))[0] for g in grid]
    assert_allclose(fit.B, np.tensordot(shares, B, axes=1), rtol=1e-6, atol=1e-8)


def test_a_row_left_out_has_no_say_in_the_shares_of_its_own_prediction(rows):
    F, Y, observed, ones = rows
    Y, observed = Y[:, :1], observed[:, :1]
    grid = [g for g in RULE.penalties if g >= RULE.least_penalty_of_numbers]
    left_out = np.array([brute_residuals(F, Y, ones, absolute(F, ones, g)) for g in grid])
    expected = []
    for i in range(n):
        shares = shares_by_hand(np.delete(left_out, i, axis=1))
        expected.append(shares @ left_out[:, i])
    fit = completed(F, Y, observed, ones)
    assert_allclose(fit.residuals, expected, rtol=1e-6, atol=1e-8)


def test_what_all_rows_would_vary_takes_part_in_the_shares_of_few(rows):
    """With v the variance of y over all rows, (n - 1) s^2 / v has a chi-squared distribution."""
    F, Y, observed, ones = rows
    y, seen, wide = Y[:, :1], observed[:, :1], 100.0 * np.ones(p)
    grid = np.array([a for a in RULE.penalties if a >= RULE.least_penalty_of_numbers])
    fits = [recomplete(F, Outputs(y, seen), ones, np.array([a])) for a in grid]
    errors = np.array([np.mean(fit.residuals**2) for fit in fits])
    implied = np.array([100 * np.sum(fit.B**2) for fit in fits]) + errors
    ratio = np.maximum(implied / y.var(ddof=1), 1)
    density = stats.chi2(n - 1).logpdf((n - 1) / ratio) - np.log(ratio)
    shares = softmax(density - 0.5 * n * np.log(errors))
    found = complete(F, Outputs(y, seen), ones, variances=wide)
    assert_allclose(found.B, np.tensordot(shares, [fit.B for fit in fits], axes=1), rtol=1e-6)
    alone = complete(F, Outputs(y, seen), ones)
    assert np.sum(found.B**2) < np.sum(alone.B**2)


def test_rows_that_vary_as_the_labelled_ones_do_say_nothing_of_the_shares(rows):
    F, Y, observed, ones = rows
    F = np.linalg.qr(F - F.mean(axis=0))[0]
    outputs = Outputs(F @ Y[:p, :1], observed[:, :1])
    found = complete(F, outputs, ones, variances=np.full(p, 1 / n))
    assert_allclose(found.B, complete(F, outputs, ones).B, rtol=1e-12)


def test_many_rows_leave_one_penalty_nearly_all_of_the_share(rng):
    F = rng.standard_normal((3000, p))
    Y = F @ rng.standard_normal((p, 1)) + rng.standard_normal((3000, 1))
    seen, ones = np.ones((3000, 1), dtype=bool), np.ones(3000)
    fit = completed(F, Y, seen, ones)
    best = recomplete(F, Outputs(Y, seen), ones, fit.penalty)
    assert np.linalg.norm(fit.B - best.B) < 0.01 * np.linalg.norm(best.B)


def test_a_class_without_rows_leaves_the_weights_of_the_others():
    labels, weights = np.array([0, 0, 0, 2]), np.full(4, 1e10)
    assert_allclose(class_weights(labels, weights), [2e10 / 3] * 3 + [2e10])


def test_leave_one_out_holds_with_class_weights(rows, rng):
    F, Y, observed, ones = rows
    labels = np.repeat([0, 1, 2], [2, 4, 8])
    balanced = class_weights(labels, ones)
    fit = completed(F, Y, observed, ones, labels)
    a = absolute(F, balanced, fit.penalty[0])
    assert_allclose(fit.residuals, brute_residuals(F, Y, balanced, a), rtol=1e-9, atol=1e-10)


def test_the_penalty_has_the_least_log_determinant_of_all(rows):
    F, Y, observed, ones = rows
    labels = np.arange(n) % 3
    balanced = class_weights(labels, ones)
    values = [
        np.linalg.slogdet(
            residual_covariance(brute_residuals(F, Y, balanced, absolute(F, balanced, g)), ones)
        )[1]
        for g in RULE.penalties
    ]
    assert completed(F, Y, observed, ones, labels).penalty[0] == RULE.penalties[np.argmin(values)]


@pytest.mark.parametrize("wide", [True, False], ids=["dual", "primal"])
def test_a_given_penalty_gives_the_same_fit(rows, rng, wide):
    F, Y, observed, ones = rows
    F = np.hstack([F, 0.1 * rng.standard_normal((n, 12))]) if wide else F
    labels = np.arange(n) % 3
    fit = completed(F, Y, observed, ones, labels)
    again = recomplete(F, Outputs(Y, observed, labels), ones, fit.penalty)
    assert_allclose(again.B, fit.B, rtol=1e-8, atol=1e-10)
    assert_allclose(again.offset, fit.offset, rtol=1e-8, atol=1e-10)
    assert_allclose(again.residuals, fit.residuals, rtol=1e-8, atol=1e-9)


def test_weights_count_as_repeated_rows(rows, rng):
    F, Y, observed, _ = rows
    labels, counts = np.arange(n) % 3, rng.integers(1, 5, n)
    weighted = completed(F, Y, observed, counts.astype(float), labels)
    again = np.repeat(np.arange(n), counts)
    repeated = completed(F[again], Y[again], observed[again], np.ones(len(again)), labels[again])
    assert_allclose(weighted.B, repeated.B, rtol=1e-9, atol=1e-12)
    assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-9)


def test_many_rows_by_weight_try_the_penalties_of_many_rows(rng):
    F = rng.standard_normal((150, p))
    Y = F @ rng.standard_normal((p, c)) + rng.standard_normal((150, c))
    seen = np.ones((150, c), dtype=bool)
    twice = completed(F, Y, seen, np.full(150, 2.0))
    repeated = completed(*(np.tile(part, (2, 1)) for part in (F, Y, seen)), np.ones(300))
    assert_allclose(twice.penalty, repeated.penalty)
    assert_allclose(twice.B, repeated.B)


def test_columns_with_gaps_are_fitted_on_their_own_rows(rows):
    F, Y, observed, ones = rows
    observed = observed.copy()
    observed[:4, 0] = False
    fit = completed(F, np.where(observed, Y, 0), observed, ones)
    alone = completed(F[4:], Y[4:, :1], observed[4:, :1], ones[4:])
    assert_allclose(fit.B[:, :1], alone.B)
    assert np.linalg.eigvalsh(fit.covariance).min() > 0


def test_a_column_nowhere_seen_predicts_nothing(rows):
    F, Y, observed, ones = rows
    observed = observed.copy()
    observed[:, 1] = False
    fit = completed(F, np.where(observed, Y, 0), observed, ones)
    assert not fit.B[:, 1].any()
    assert_allclose(np.delete(fit.covariance[1], 1), 0, atol=1e-12)
    assert np.linalg.eigvalsh(fit.covariance).min() > 0


def test_votes_of_next_to_no_weight_change_nothing_and_whole_ones_count_as_labels(rows, rng):
    F, Y, observed, ones = rows
    labels, winners = np.arange(n) % 3, np.array([0, 1, 1])
    more, codes = rng.standard_normal((3, p)), rng.standard_normal((3, c))
    known, together = Outputs(Y, observed, labels), np.vstack([F, more])
    nobody = Votes(np.arange(3), winners, codes, np.full(3, 1e-12))
    fit = complete_with_votes(together, known, ones, nobody, np.ones(3))
    assert_allclose(fit.B, completed(F, Y, observed, ones, labels).B, atol=1e-9)
    everybody = nobody._replace(weights=np.ones(3))
    fit = complete_with_votes(together, known, ones, everybody, np.ones(3))
    whole = Outputs(np.vstack([Y, codes]), np.ones((n + 3, c), dtype=bool), np.r_[labels, winners])
    assert_allclose(fit.B, complete(together, whole, np.ones(n + 3)).B, atol=1e-12)


@pytest.fixture
def classes(rng):
    labels = np.arange(24) % 4
    code_vectors = np.linalg.qr(np.column_stack([np.ones(4), np.eye(4)[:, :3]]))[0][:, 1:]
    F = rng.standard_normal((24, p)) + 2 * rng.standard_normal((4, p))[labels]
    outputs = Outputs(code_vectors[labels], np.ones((24, 3), dtype=bool), labels)
    return F, outputs, code_vectors


def left_out_loss(completion, outputs, code_vectors, covariance):
    odds = gaussian_log_odds(outputs.Y - completion.residuals, covariance, code_vectors)
    P = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    return -np.log(P[np.arange(len(P)), outputs.labels]).sum()


def test_probabilities_of_classes_are_widened_by_what_rows_left_out_ask_for(classes):
    F, outputs, code_vectors = classes
    ones = np.ones(24)
    fit = complete(F, outputs, ones)
    found = predictive(fit, outputs, ones).covariance
    sphere = np.trace(fit.covariance) / 3 * np.eye(3)
    halfway = (fit.covariance + sphere) / 2
    factor = found[0, 0] / halfway[0, 0]
    assert_allclose(found, factor * halfway)
    losses = [left_out_loss(fit, outputs, code_vectors, f * halfway) for f in RULE.widenings]
    assert_allclose(factor, RULE.widenings[np.argmin(losses)])
    assert factor >= 1
    assert_allclose(predictive(fit, outputs, ones).left_out_loss, min(losses) / 24)


@pytest.mark.parametrize(("widest", "expected"), [(1e9, True), (1.0, False)])
def test_what_is_found_is_told_unless_the_widest_probabilities_are_best(
    classes, monkeypatch, widest, expected
):
    F, outputs, _ = classes
    widenings = (1.0, widest) if expected else (1e9, widest)
    monkeypatch.setattr(completion, "RULE", RULE._replace(widenings=widenings))
    found = predictive(complete(F, outputs, np.ones(24)), outputs, np.ones(24)).finds_classes
    assert found == expected


def test_labels_that_x_does_not_predict_get_even_probabilities(classes, rng):
    _, outputs, code_vectors = classes
    ones, largest = np.ones(24), []
    for _ in range(5):
        fit = complete(rng.standard_normal((24, 60)), outputs, ones)
        covariance = predictive(fit, outputs, ones).covariance
        odds = gaussian_log_odds(rng.standard_normal((200, 60)) @ fit.B, covariance, code_vectors)
        P = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
        largest.append(P.max(axis=1).mean())
    # A third each, and what 24 labels of chance say: .41 was seen; names of their own have .9.
    assert np.mean(largest) < 0.5


def test_numbers_have_the_variances_of_their_residuals_widened_as_few_rows_show_them(rows):
    F, Y, observed, ones = rows
    fit = completed(F, Y, observed, ones)
    found = predictive(fit, Outputs(Y, observed), ones).covariance
    freedom = observed.sum(axis=0) - 1
    expected = np.nanmean(fit.residuals**2, axis=0) * freedom / (freedom - 2)
    assert_allclose(np.diagonal(found), expected)


def test_numbers_keep_their_correlations(rows):
    F, Y, observed, ones = rows
    fit = completed(F, Y, observed, ones)
    found = predictive(fit, Outputs(Y, observed), ones).covariance
    assert_allclose(correlations(found), correlations(fit.covariance))


def test_numbers_that_are_all_alike_keep_their_covariance(rng):
    F, Y = rng.standard_normal((6, p)), np.zeros((6, 2))
    observed, ones = np.ones((6, 2), dtype=bool), np.ones(6)
    fit = completed(F, Y, observed, ones)
    assert_allclose(predictive(fit, Outputs(Y, observed), ones).covariance, fit.covariance)


def correlations(C):
    scale = np.sqrt(np.diagonal(C))
    return C / np.outer(scale, scale)


def test_a_class_without_a_row_here_does_not_shift_the_others(classes):
    F, outputs, _ = classes
    ones, there = np.ones(24), outputs.labels != 1
    some = outputs.rows(there)
    renumbered = some._replace(labels=np.unique(some.labels, return_inverse=True)[1])
    fit = complete(F[there], renumbered, ones[there])
    expected = predictive(fit, renumbered, ones[there]).covariance
    assert_allclose(predictive(fit, some, ones[there]).covariance, expected)


def test_residuals_of_few_numbers_are_those_of_rows_left_out_of_the_choice_of_a_penalty(rng):
    """They are larger in the mean, do not depend on the order, and equal rows leave together."""
    smaller = []
    for _ in range(20):
        F = rng.standard_normal((30, 20))
        Y = F[:, :1] + rng.standard_normal((30, 1))
        outputs, ones = Outputs(Y, np.ones((30, 1), dtype=bool)), np.ones(30)
        fit = complete(F, outputs, ones)
        found = for_new_rows(fit, F, outputs, ones).residuals
        smaller.append(np.mean(fit.residuals**2) / np.mean(found**2))
    assert np.mean(smaller) < 0.97
    order = rng.permutation(30)
    again = for_new_rows(fit, F[order], outputs.rows(order), ones).residuals
    assert_allclose(again, found[order])
    twice = np.repeat(np.arange(30), 2)
    whole = for_new_rows(complete(F, outputs, 2 * ones), F, outputs, 2 * ones).residuals
    double = Outputs(Y[twice], np.ones((60, 1), dtype=bool))
    split = complete(F[twice], double, np.ones(60))
    assert_allclose(for_new_rows(split, F[twice], double, np.ones(60)).residuals, whole[twice])
