import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gnomon import SPPCA
from gnomon.models.strength import clusters


def long_classes(seed, gap=2.5, n=200, d=2):
    """[YYTKW06], Figure 2: two classes apart along a direction of small variance, four labels."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    X = rng.standard_normal((n, d)) * np.r_[3.0, np.full(d - 1, 0.5)]
    X[:, 1] += gap * y
    labels = np.full(n, -1)
    for c in (0, 1):
        labels[rng.permutation(np.flatnonzero(y == c))[:2]] = c
    return X, y, labels


def angle(model):
    axis = model.projection_[:, 0]
    return np.degrees(np.arccos(min(abs(axis[1]) / np.linalg.norm(axis), 1)))


def test_the_direction_that_splits_unlabelled_rows_is_found_from_four_labels():
    angles = [angle(SPPCA(1).fit(*long_classes(seed)[::2])) for seed in range(10)]
    assert np.median(angles) < 5
    # Four labels may lie such that another direction parts them: in one sample of ten.
    assert np.sort(angles)[-3] < 20


def split(F, labels):
    order = np.argsort(labels < 0, kind="stable")
    return F[order], labels[labels >= 0], order


def shares_of(F, known, weights=None):
    return clusters.cluster_shares(F, known, np.ones(len(F)) if weights is None else weights)


def unlabelled(F):
    """Rows that count as one each, none of which has a label."""
    return clusters.Rows(F, np.ones(len(F)), np.zeros(0, dtype=int))


@pytest.mark.parametrize("d", [2, 5])
def test_rows_without_clusters_give_no_evidence(d):
    for seed in range(20):
        X, _, labels = long_classes(seed, gap=0.0, d=d)
        F, known, _ = split(X, labels)
        assert shares_of(F, known) is None


def test_shares_of_clusters_are_the_classes():
    X, y, labels = long_classes(0, gap=4.0)
    F, known, order = split(X, labels)
    shares = shares_of(F, known)
    assert np.mean(np.argmax(shares, axis=1) == y[order]) > 0.98
    # Labels that cut across the clusters are no names of these.
    F[[0, 2]] = F[[2, 0]]
    assert shares_of(F, known) is None


def test_the_posterior_is_that_of_a_mixture():
    rng = np.random.default_rng(0)
    F, P = rng.standard_normal((12, 3)), rng.dirichlet(np.ones(2), 12).T
    mixture = clusters.mixture_of(unlabelled(F), P)
    joint = np.column_stack(
        [
            share * multivariate_normal(mean, mixture.covariance).pdf(F)
            for share, mean in zip(mixture.shares, mixture.means, strict=True)
        ]
    )
    found, log_likelihood = clusters.fit_to(unlabelled(F), mixture)
    assert_allclose(clusters.posterior(F, mixture), found)
    assert_allclose(found.T, joint / joint.sum(axis=1, keepdims=True))
    assert_allclose(log_likelihood, np.log(joint.sum(axis=1)).sum())
    away = mixture.means[0] - mixture.means[1]
    expected = np.sqrt(away @ np.linalg.solve(mixture.covariance, away))
    assert_allclose(clusters.separation(mixture), expected)


def test_mixtures_in_a_stack_are_those_found_one_by_one():
    rng = np.random.default_rng(0)
    F, P = rng.standard_normal((20, 3)), rng.dirichlet(np.ones(2), (4, 20)).swapaxes(1, 2)
    rows = unlabelled(F)
    shares, log_likelihood = clusters.fit_to(rows, clusters.mixture_of(rows, P))
    alone = [clusters.fit_to(rows, clusters.mixture_of(rows, start)) for start in P]
    assert_allclose(shares, [found for found, _ in alone])
    assert_allclose(log_likelihood, [value for _, value in alone])


def test_em_of_the_mixture_ascends():
    X, _, labels = long_classes(1, d=4)
    F, known, _ = split(X, labels)
    P = np.full((2, 200), 0.5) + 0.1 * np.random.default_rng(0).standard_normal(200) * [[1], [-1]]
    found = []
    for _ in range(30):
        P[:, :4] = np.eye(2)[:, known]
        mixture = clusters.mixture_of(unlabelled(F), P)
        P, all_rows = clusters.fit_to(unlabelled(F), mixture)
        joint = np.log(np.maximum(P[known, np.arange(4)], 1e-300))
        # Labelled rows count with their own class alone.
        found.append(all_rows + joint.sum())
    assert np.all(np.diff(found) > -1e-6)


def counted_steps(monkeypatch, F, known):
    """Shares, and the number of steps of EM that they took."""
    steps, step = [], clusters.mixture_of
    monkeypatch.setattr(clusters, "mixture_of", lambda *args: steps.append(0) or step(*args))
    return shares_of(F, known), len(steps)


def test_clusters_far_apart_end_early_where_all_steps_end(monkeypatch):
    X, _, labels = long_classes(0, gap=10.0)
    F, known, _ = split(X, labels)
    shares, n_steps = counted_steps(monkeypatch, F, known)
    monkeypatch.setattr(clusters, "RULE", clusters.RULE._replace(cluster_change=-1.0))
    every, n_all = counted_steps(monkeypatch, F, known)
    assert_allclose(shares, every, atol=1e-9)
    assert n_steps < n_all / 2


def test_labels_across_clusters_are_given_up_after_the_trial_steps(monkeypatch):
    X, _, labels = long_classes(0, gap=8.0)
    F, known, _ = split(X, labels)
    F[[0, 2]] = F[[2, 0]]
    F[:4, 0] = 0.0  # nor does the other axis tell them apart, as it may by chance
    shares, n_steps = counted_steps(monkeypatch, F, known)
    assert shares is None
    assert n_steps <= clusters.RULE.cluster_trial_steps


@pytest.mark.parametrize(("excess", "trusted"), [(-0.1, False), (0.1, True)])
def test_clusters_pay_for_their_means_and_shares(monkeypatch, excess, trusted):
    """By the criterion of Schwarz: p + 1 numbers for every cluster beyond the first."""
    n, p, labels = 40, 3, np.array([0, 1, 2])
    F, means = np.zeros((n, p)), 100.0 * np.eye(3)
    mixture = clusters.Mixture(means, np.eye(p), np.full(3, 1 / 3))
    price = 2 * (p + 1) * np.log(n) / 2

    def fit_to(rows, mixture):
        several = len(mixture.shares) > 1
        return np.eye(3, n) + 0.1, (price + excess if several else 0.0)

    monkeypatch.setattr(clusters, "fit_to", fit_to)
    assert clusters._trusted(clusters.Rows(F, np.ones(n), labels), mixture) == trusted


@pytest.mark.parametrize("n", [200, 1300])
def test_a_weight_is_a_repetition_and_the_order_of_rows_says_nothing(n):
    X, _, labels = long_classes(0, gap=4.0, n=n)
    F, known, _ = split(X, labels)
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, n).astype(float)
    weights[:4] = 2
    shares = shares_of(F, known, weights)
    again = np.r_[:4, np.repeat(np.arange(4, n), weights[4:].astype(int))]
    repeated = shares_of(F[again], known, np.r_[weights[:4], np.ones(len(again) - 4)])
    assert_allclose(repeated, shares[again], atol=1e-6)
    order = np.r_[:4, 4 + rng.permutation(n - 4)]
    assert_allclose(shares_of(F[order], known, weights[order]), shares[order], atol=1e-6)
