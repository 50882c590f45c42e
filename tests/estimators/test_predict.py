import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import GridSearchCV

from gnomon import (
    BSDR,
    DCAGM,
    SPPCA,
    BSDRRegressor,
    KernelSPPCA,
    MultinomialProbit,
    SemiSupervisedSplit,
    labelled_scorer,
)
from gnomon.estimators import _heads
from gnomon.estimators._heads import (
    HEAD_C,
    LESS_SHARP,
    LINKED_C,
    NOTHING_FOUND,
    OF_LEFT_OUT,
    SHARPER,
    believed,
    class_shares,
    fit_head,
    fit_linked_head,
    fit_map_head,
    head_folds,
    less_sharp,
    no_surer_than,
    no_worse_than_shares,
    taught_rows,
    with_head,
)
from gnomon.models.dcagm.few import Fold
from gnomon.models.logistic import left_out_odds

BY_LIKELIHOOD = SPPCA(1, supervision="likelihood", noise=(1.0, 0.5))


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    return rng.normal(size=(60, 3)) + 2 * np.eye(3)[labels], labels


@pytest.mark.parametrize("model", [SPPCA(2), SPPCA(2, supervision=0.5), KernelSPPCA(2)], ids=str)
def test_a_few_rows_that_are_near_each_other_do_not_send_all_others_far_away(model, rng):
    ratios = []
    for _ in range(21):
        X, y = rng.normal(size=(200, 10)), np.full(200, np.nan)
        X[:10] /= 5
        y[:10] = 5 * X[:10, 0] + 0.3 * rng.normal(size=10)
        ratios.append(model.fit(X, y).predict(X).var() / np.var(y[:10], ddof=1))
    assert np.median(ratios) < 5


@pytest.mark.parametrize(
    "model", [DCAGM(2), BSDR(2), MultinomialProbit(), SPPCA(2), KernelSPPCA(2)]
)
@pytest.mark.parametrize("mark", [-1, None, np.nan])
@pytest.mark.filterwarnings("ignore:y has no label")
def test_rows_without_a_label_do_not_count(sample, model, mark):
    X, labels = sample
    y = labels.astype(float if mark is np.nan else object)
    y[::4] = mark
    model.fit(X, y)
    known = np.arange(60) % 4 > 0
    expected = np.mean(model.predict(X)[known] == labels[known])
    assert_allclose(model.score(X, y), expected)
    assert_allclose(model.score(sparse.csr_array(X), y.tolist()), expected)
    weights = np.where(np.arange(60) % 2, 1.0, 3.0)
    hits = model.predict(X) == labels
    assert_allclose(model.score(X, y, weights), np.average(hits[known], weights=weights[known]))
    with pytest.raises(ValueError, match="y has no labelled row"):
        model.score(X, np.full(60, -1))


def test_a_class_of_minus_one_counts(sample):
    X, labels = sample
    signs = np.where(labels > 0, 1, -1)
    model = DCAGM(1).fit(X, signs)
    lower = signs < 0
    assert_allclose(model.score(X[lower], signs[lower]), np.mean(model.predict(X[lower]) == -1))


@pytest.mark.filterwarnings("ignore:y has no label")
def test_numbers_without_gap_are_scored(sample):
    X, _ = sample
    Y = np.column_stack([X[:, 0], X[:, 1] - 1])
    gaps = Y.copy()
    gaps[::5, 0] = np.nan
    model = BSDRRegressor(2).fit(X, gaps)
    known = np.arange(60) % 5 > 0
    assert_allclose(model.score(X, gaps), model.score(X[known], Y[known]))


def test_a_number_of_minus_one_is_scored(sample):
    X, labels = sample
    y = labels - 1.0
    model = BSDRRegressor(1).fit(X, y)
    assert_allclose(model.score(X, y), r2_score(y, model.predict(X)))


def test_labels_that_are_missing_altogether_are_asked_for(sample):
    with pytest.raises(ValueError, match="DCAGM requires y to be passed"):
        DCAGM(2).fit(sample[0], None)


@pytest.mark.parametrize("model", [SPPCA(1), BY_LIKELIHOOD, KernelSPPCA(1)])
def test_numbers_are_scored_by_their_determination(sample, model):
    X, labels = sample
    y = X @ [1.0, -0.5, 0.2] + labels
    y[::5] = np.nan
    model.fit(X, y)
    known = ~np.isnan(y)
    assert_allclose(model.score(X, y), r2_score(y[known], model.predict(X[known])))
    weights = np.where(np.arange(60) % 2, 1.0, 3.0)
    expected = r2_score(y[known], model.predict(X[known]), sample_weight=weights[known])
    assert_allclose(model.score(X, y, weights), expected)


def test_indicators_are_scored_row_by_row(sample):
    X, labels = sample
    Y = np.column_stack([labels == 0, labels > 1]).astype(float)
    gaps = np.where(np.arange(60)[:, None] % 6 == 0, np.nan, Y)
    model = SPPCA(2).fit(X, gaps)
    known = np.arange(60) % 6 > 0
    expected = np.mean((model.predict(X) == Y).all(axis=1)[known])
    assert_allclose(model.score(X, gaps), expected)


def test_the_score_without_outputs_is_the_log_density(sample):
    X, labels = sample
    model = SPPCA(2).fit(X, labels)
    assert_allclose(model.score(X), model.score_samples(X).mean())
    weights = np.arange(1.0, 61)
    assert_allclose(
        model.score(X, sample_weight=weights), np.average(model.score_samples(X), weights=weights)
    )
    alone = SPPCA(1).fit(X)
    assert_allclose(alone.score(X, labels), alone.score_samples(X).mean())
    with pytest.raises(ValueError, match="KernelSPPCA has for supervision='likelihood' alone"):
        KernelSPPCA(1).fit(X, labels).score(X)


def test_a_grid_search_tunes_what_is_predicted(sample):
    X, labels = sample
    rng = np.random.default_rng(1)
    wide = np.hstack([X, 10 * rng.normal(size=(60, 2))])
    y = np.where(np.arange(60) % 2, labels, -1)
    search = GridSearchCV(
        SPPCA(2), {"supervision": [0.0, 0.9]}, cv=SemiSupervisedSplit(3), scoring=labelled_scorer()
    )
    search.fit(wide, y)
    assert 0 <= search.best_score_ <= 1
    by_name = GridSearchCV(search.estimator, search.param_grid, cv=search.cv)
    by_name.set_params(scoring=labelled_scorer("accuracy")).fit(wide, y)
    assert_allclose(search.best_score_, by_name.best_score_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_head_is_a_logistic_regression_of_scaled_coordinates(sample, n_classes):
    X, labels = sample
    y = np.minimum(labels, n_classes - 1)
    head = fit_head(7 + 3 * X, y)
    scaled = (X - X.mean(axis=0)) / np.sqrt(np.sum(X.var(axis=0)))
    expected = LogisticRegression(C=HEAD_C, max_iter=1000).fit(scaled, y).predict_proba(scaled)
    odds = (7 + 3 * X) @ head.coef + head.intercept
    assert_allclose(with_head(odds, odds), expected, atol=1e-3)
    nothing = np.zeros_like(odds)
    assert_allclose(with_head(nothing, odds), (expected + 1 / n_classes) / 2, atol=1e-3)
    assert_allclose(with_head(nothing, None), 1 / n_classes)


@pytest.mark.parametrize("model", [SPPCA(1), BY_LIKELIHOOD, KernelSPPCA(1)])
def test_probabilities_are_the_mean_of_model_and_head(sample, model):
    X, labels = sample
    model.fit(X, labels)
    P, head = model.predict_proba(X), model.class_head_
    model.class_head_ = None
    own = model.predict_proba(X)
    model.class_head_ = head._replace(coef=0 * head.coef, intercept=np.zeros(3))
    assert_allclose(model.predict_proba(X), (own + 1 / 3) / 2)
    assert np.all(P >= own / 2)
    model.class_head_ = head._replace(say=0.0)
    assert_allclose(model.predict_proba(X), own)
    assert not np.allclose(P, own, atol=1e-3)


def test_the_head_sees_more_than_the_map_shows():
    rng = np.random.default_rng(2)
    labels = np.arange(120) // 2 % 6
    X = rng.normal(size=(120, 8)) + 4 * np.eye(8)[labels]
    for shown in (1, 2):
        model = SPPCA(shown).fit(X[::2], labels[::2])
        assert model.score(X[1::2], labels[1::2]) > 0.9
        assert log_loss(labels[1::2], model.predict_proba(X[1::2])) < 0.4


@pytest.mark.parametrize("model", [SPPCA(2), KernelSPPCA(2)])
def test_labels_that_cannot_be_found_have_the_probabilities_of_the_shares_and_no_head(model):
    """In nine draws of ten, where chance does not find them."""
    rng, no_head = np.random.default_rng(4), 0
    for _ in range(5):
        X, y = rng.normal(size=(80, 6)), rng.permutation(np.arange(80) // 2 % 5 % 4)
        model.fit(X, y)
        assert_allclose(model.class_shares_, [0.4, 0.2, 0.2, 0.2])
        if model.class_head_ is None:
            no_head += 1
            assert model.class_doubt_ == NOTHING_FOUND
            assert np.all(np.abs(model.predict_proba(X) - model.class_shares_) < 0.001)
    assert no_head >= 2


@pytest.mark.parametrize("model", [SPPCA(2), SPPCA(1, supervision=0.5), KernelSPPCA(2), DCAGM(2)])
@pytest.mark.parametrize("apart", [0.0, 2.0])
def test_a_rare_class_is_as_rare_in_the_probabilities(model, apart):
    rng = np.random.default_rng(0)
    y = (np.arange(800) % 50 == 0).astype(int)
    X = rng.normal(size=(800, 5))
    X[:, 0] += apart * y
    P = model.fit(X[:400], y[:400]).predict_proba(X[400:])[:, 1]
    # Eight rows of 400 are of it, and what these are given moves the mean by .006.
    assert 0.004 < P.mean() < 0.04
    assert log_loss(y[400:], P) < -0.02 * np.log(0.02) - 0.98 * np.log(0.98) + 0.03


@pytest.mark.parametrize("model", [SPPCA(3), KernelSPPCA(3, kernel="linear")])
def test_the_likelihood_gives_a_rare_class_its_share_of_rows_not_seen(model):
    model.set_params(supervision="likelihood")
    given, there = 0.0, 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = (rng.random(1500) < 0.04).astype(int)
        X = rng.normal(size=(1500, 8)) * np.linspace(2, 0.5, 8)
        X[:, 2] += 1.5 * y
        given += model.fit(X[:600], y[:600]).predict_proba(X[600:])[:, 1].sum()
        there += y[600:].sum()
    # Some 140 rows have it here, and 100 told of it: both are chance to a tenth.
    assert 0.7 < given / there < 1.4


@pytest.mark.parametrize("model", [SPPCA(2, supervision=0.5), KernelSPPCA(2, supervision=0.5)])
def test_class_shares_count_as_half_a_labelled_row(sample, model):
    X, labels = sample
    y = np.where(np.arange(60) < 12, labels, -1)
    model.fit(X, y)
    assert_allclose(model.class_doubt_, 0.5 / 12.5)
    assert model.predict_proba(100 * X).min() >= 0.04 * model.class_shares_.min() * (1 - 1e-9)
    model.fit(X, np.where(y < 0, np.nan, X[:, 0]))
    assert not hasattr(model, "class_doubt_")


def test_the_head_of_linked_rows_is_the_mean_over_penalties_each_as_sharp_as_rows_left_out_ask():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1, 2], 20)
    Z = np.hstack([0.5 * np.eye(3)[labels], rng.normal(size=(60, 40))])
    head = fit_linked_head(Z, labels)
    assert_allclose(head.say, 20 / (20 + 2))
    coefs, folds = [], head_folds(Z, labels)
    for C in LINKED_C:
        plain = fit_head(Z, labels, C=C)
        P = left_out_odds(Z, labels, None, folds, (plain.coef, plain.intercept), C)
        losses = [log_loss(labels, softmax(sharper * P, axis=1)) for sharper in SHARPER]
        coefs.append(SHARPER[np.argmin(losses)] * plain.coef)
    mean = np.mean(coefs, axis=0)
    factor = np.linalg.norm(head.coef) / np.linalg.norm(mean)
    assert_allclose(head.coef, factor * mean)
    # None at all where rows left out are not found.
    assert np.min(np.abs(np.append(LESS_SHARP, 0.0) - factor)) < 1e-9
    one_each = fit_linked_head(Z[[0, 20, 40]], np.arange(3))
    assert_allclose(one_each.coef, fit_head(Z[[0, 20, 40]], np.arange(3)).coef)


def test_rows_left_out_of_a_head_have_no_higher_loss_than_the_shares(rng):
    smaller = 0
    for _ in range(10):
        Z, labels = rng.standard_normal((30, 8)), rng.permutation(np.arange(30) % 4 % 3)
        head, plain = fit_map_head(Z, labels), fit_head(Z, labels)
        shares = class_shares(labels, None, 3)[0]
        assert_allclose(softmax(less_sharp(plain.intercept, 0.0, shares)), shares)
        factor = np.linalg.norm(head.coef) / np.linalg.norm(plain.coef)
        losses = []
        for fold in head_folds(Z, labels):
            rest = np.setdiff1d(np.arange(30), fold)
            other = fit_head(Z[rest], labels[rest])
            odds = less_sharp(Z[fold] @ other.coef + other.intercept, factor, shares)
            losses.append(-np.log(softmax(odds, axis=1)[np.arange(len(fold)), labels[fold]]).sum())
        assert np.sum(losses) <= -np.log(shares[labels]).sum() + 1e-9
        smaller += factor < 0.99
    assert smaller > 5


def test_a_head_of_linked_rows_is_as_sharp_as_rows_left_out_allow(sample, monkeypatch):
    sharp = fit_linked_head(*sample)
    monkeypatch.setattr(_heads, "no_worse_than_shares", lambda *found: 0.5)
    assert_allclose(fit_linked_head(*sample).coef, sharp.coef / 2)


def test_a_head_that_finds_rows_left_out_is_as_it_was(sample):
    X, labels = sample
    for found, plain in zip(fit_map_head(X, labels), fit_head(X, labels), strict=True):
        assert_allclose(found, plain)
    one_each = fit_map_head(X[:3], labels[:3])
    assert_allclose(one_each.coef, fit_head(X[:3], labels[:3]).coef)


def test_a_row_of_a_class_that_the_others_do_not_show_is_not_judged(rng):
    odds = np.log(np.array([[0.9, 0.1], [0.8, 0.2], [1.0, 1e-300]]))
    odds[2, 1] = -np.inf
    assert no_worse_than_shares(odds, np.array([0, 0, 1]), np.array([0.5, 0.5])) == 1.0
    assert no_worse_than_shares(-odds[:2], np.array([0, 0]), np.array([0.5, 0.5])) == 0.0


def test_labelled_rows_become_as_unsure_as_rows_left_out_in_part(rng):
    # So sure that a third of it is surer than the shares are: they bound what is asked for.
    shares, odds = np.array([0.7, 0.3]), 9 * rng.standard_normal((50, 2))
    of_head = 8 * rng.standard_normal((50, 2))

    def entropy(factor):
        P = with_head(less_sharp(odds, factor, shares), less_sharp(of_head, factor, shares))
        return np.mean(-np.sum(P * np.log(P), axis=1))

    assert no_surer_than(entropy(1.0), odds, of_head, shares) == 1.0
    factor = no_surer_than(entropy(0.3), odds, of_head, shares)
    assert_allclose(factor, 0.3**OF_LEFT_OUT, rtol=1e-2)
    assert no_surer_than(9.0, odds, of_head, shares) == LESS_SHARP[-1] ** OF_LEFT_OUT


@pytest.mark.parametrize("model", [SPPCA(2), KernelSPPCA(2)])
def test_where_classes_overlap_probabilities_are_less_sure(model, monkeypatch):
    """On average: of one sample the loss may rise by as much as it falls."""
    gains = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels = np.arange(400) % 3
        X = rng.standard_normal((400, 10)) + np.eye(10)[labels]
        y, losses = np.where(np.arange(400) < 120, labels, -1), []
        for power in (0.0, OF_LEFT_OUT):
            monkeypatch.setattr(_heads, "OF_LEFT_OUT", power)
            P = clone(model).fit(X, y).predict_proba(X[120:])
            losses.append(log_loss(labels[120:], P))
        gains.append(losses[0] - losses[1])
    assert np.mean(gains) > 0


def test_a_head_counts_weights_as_repeated_rows(sample):
    X, labels = sample
    weights = np.where(np.arange(60) % 3, 1.0, 2.0)
    twice = np.repeat(np.arange(60), weights.astype(int))
    weighted = SPPCA(2, supervision=0.5).fit(X, labels, sample_weight=weights)
    repeated = SPPCA(2, supervision=0.5).fit(X[twice], labels[twice])
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


def test_a_class_of_one_row_is_taught_among_many(rng):
    labels = np.where(np.arange(10_002) == 1, 2, np.arange(10_002) % 2)
    labels[7] = -1
    rows = taught_rows(labels)
    assert set(labels[rows]) == {0, 1, 2} and np.all(np.diff(rows) > 0)
    assert len(rows) <= 5001
    X = rng.standard_normal((10_002, 2)) + labels[:, None]
    assert SPPCA(1, supervision=0.5).fit(X, labels).predict_proba(X[:2]).shape == (2, 3)


def test_classes_with_one_row_each_are_no_cause_for_a_warning(rng):
    head = fit_head(rng.standard_normal((10, 3)), np.arange(10))
    assert head.coef.shape == (3, 10)


def hidden_fold(odds, labels):
    """A fold whose mixture gives these odds, and whose head knows two rows of each class."""
    Z, own = np.array([[-1.0], [-1.0], [1.0], [1.0]]), np.array([0, 0, 1, 1])
    nowhere = np.zeros((len(labels), 1))
    return Fold(Z, own, np.ones(4), nowhere, labels, np.ones(len(labels)), odds)


def test_odds_are_believed_half_as_far_as_hidden_labels_say():
    shares = np.array([0.5, 0.5])
    assert believed([], shares, 0.0) == (1.0, True)
    # Six of ten are right of which the odds are sure: smaller ones have less loss.
    labels = np.r_[np.zeros(6, int), np.ones(4, int)]
    odds = np.tile([4.0, 0.0], (10, 1))
    fold = hidden_fold(odds, labels)
    losses = []
    for factor in LESS_SHARP:
        proba = (softmax(factor * odds, axis=1) + 0.5) / 2
        losses.append(-np.log(proba[np.arange(10), labels]).sum())
    best = LESS_SHARP[np.argmin(losses)]
    assert 0.05 < best < 1
    assert_allclose(believed([fold], shares, 0.0), (np.sqrt(best), True))


def test_what_is_believed_is_never_worse_than_the_shares(rng):
    shares, found_some = np.array([0.5, 0.3, 0.2]), 0
    for _ in range(30):
        labels = rng.choice(3, 20, p=shares)
        odds = np.log(shares) + rng.uniform(0, 3) * rng.standard_normal((20, 3))
        odds[np.arange(20), labels] += rng.uniform(0, 2)
        fold = hidden_fold(odds, labels)._replace(
            Z=np.zeros((3, 1)), labels=np.arange(3), weights=shares
        )
        found = believed([fold], shares, 0.0)
        proba = with_head(
            found.sharpness * odds, np.tile(found.sharpness * np.log(shares), (20, 1))
        )
        loss = -np.log(proba[np.arange(20), labels]).sum()
        assert not found.finds or loss <= -np.log(shares[labels]).sum() + 1e-3
        found_some += found.finds
    assert 5 < found_some < 30


def test_nothing_is_found_where_hidden_labels_are_hit_by_chance():
    labels = np.arange(20) % 2
    odds = np.where(np.arange(20)[:, None] % 3 == 0, [0.0, 90.0], [90.0, 0.0])
    found = believed([hidden_fold(odds, labels)], np.array([0.5, 0.5]), 0.0)
    assert found.sharpness == LESS_SHARP[-1] and not found.finds


def test_folds_of_a_head_know_no_order_and_equal_rows_share_one(rng):
    Z, labels = rng.normal(size=(30, 3)), np.arange(30) % 3
    again = np.r_[rng.permutation(30), 3, 3, 4]
    fold, there = np.full(30, -1), np.full(33, -1)
    for number, rows in enumerate(head_folds(Z, labels, np.bincount(again, minlength=30))):
        fold[rows] = number
    for number, rows in enumerate(head_folds(Z[again], labels[again])):
        there[rows] = number
    assert_array_equal(there, fold[again])
    assert sorted(np.bincount(fold)) == [6] * 5


def test_a_row_and_its_copy_are_no_two_rows_of_a_class(rng):
    Z, labels = rng.normal(size=(4, 3))[[0, 0, 1, 2, 3]], np.array([0, 0, 1, 1, 2])
    assert head_folds(Z, labels) == []
