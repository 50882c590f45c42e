import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gnomon.linalg.data import Matrix
from gnomon.models.dcagm import weights
from gnomon.models.dcagm.alternation import Model
from gnomon.models.dcagm.rows import Sample, arrange
from gnomon.models.dcagm.start import start

MODEL = Model(2, chunk_weight=0.1, unlabelled_weight=0.01, em_weight=0.3, ridge=3.0)


@pytest.fixture
def sample(rng):
    y = np.repeat([0, 1, 2], 20)
    X = rng.standard_normal((60, 4)) + 3 * rng.standard_normal((3, 4))[y]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels, chunks = np.where(np.arange(60) % 2, y, -1), np.full(60, -1)
    chunks[[1, 3, 5]] = 0
    labels[41:] = -1
    labels[41] = 2
    return Sample(Matrix(X), labels, chunks, np.ones(60), np.arange(3), 4.0)


def test_folds_are_balanced_keep_chunks_and_the_last_label(sample, rng):
    folds = weights.folds(sample, 4, rng)
    assert np.all(folds[sample.labels < 0] == -1)
    assert len(set(folds[[1, 3, 5]])) == 1
    assert folds[41] == -1
    counts = np.bincount(folds[sample.labels == 1])
    assert counts.max() - counts.min() <= 1


def start_only(sample, model):
    return start(sample, arrange(sample), model)


def test_scores_are_log_probabilities_of_hidden_labels(sample, rng):
    folds = weights.folds(sample, 3, rng)
    seen = []

    def fit(part, model):
        seen.append((part, start_only(part, model)))
        return seen[-1][1]

    scores = weights.hidden_log_probabilities(sample, MODEL, folds, fit)
    expected = np.zeros(60)
    for fold, (part, state) in enumerate(seen):
        hidden = folds == fold
        assert np.all(part.labels[hidden] == -1)
        assert_array_equal(part.labels[~hidden], sample.labels[~hidden])
        expected[hidden] = log_posteriors(state, sample, hidden)
    assert_allclose(scores, np.maximum(expected, np.log(1e-3))[folds >= 0], atol=1e-12)


def log_posteriors(state, sample, rows):
    """Log p(c | z) of the labels of some rows, one Gaussian per class, the obvious way."""
    mixture, Z = state.mixture, sample.X.X[rows] @ state.P
    logs = []
    for alpha, mean, S in zip(mixture.alpha, mixture.means, mixture.covariances, strict=True):
        forms = np.sum((Z - mean) * np.linalg.solve(S, (Z - mean).T).T, axis=1)
        logs.append(np.log(alpha) - 0.5 * (forms + np.linalg.slogdet(S)[1]))
    own = np.array(logs)[sample.labels[rows], np.arange(len(Z))]
    return own - np.logaddexp.reduce(logs, axis=0)


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 0.1), (5.0, 0.01)])
def test_the_default_stays_unless_another_value_is_clearly_better(
    sample, rng, monkeypatch, noise, expected
):
    """0.1 gains half a nat per label: certain without noise, less than an error with it."""
    folds = weights.folds(sample, 3, rng)
    n = np.sum(folds >= 0)
    swing = noise * np.where(np.arange(n) < n // 2, 1.0, -1.0)
    swing -= swing.mean()

    def scores(sample, model, fold_of, fit):
        return -0.5 + swing if model.unlabelled_weight == 0.1 else np.full(n, -1.0)

    monkeypatch.setattr(weights, "hidden_log_probabilities", scores)
    choice = weights.choose("unlabelled_weight", sample, MODEL, folds, None)
    assert choice.best == expected
    assert_allclose(choice.values, [0, 0.001, 0.01, 0.1, 1])


def test_only_weights_that_are_named_and_have_rows_are_chosen(sample, rng, monkeypatch):
    tried = []

    def choose(name, sample, model, fold_of, fit):
        tried.append(name)
        return weights.Choice(np.array([1.0]), np.array([-1.0]), 1.0)

    monkeypatch.setattr(weights, "choose", choose)
    both = ("unlabelled_weight", "chunk_weight")
    model, scores = weights.choose_weights(sample, MODEL, both, None, rng)
    assert tried == ["unlabelled_weight"] == list(scores)
    assert model == MODEL._replace(unlabelled_weight=1.0)
    sample.chunks[[2, 4]] = 9
    model, _ = weights.choose_weights(sample, MODEL, both, None, rng)
    assert (model.chunk_weight, model.unlabelled_weight) == (1.0, 1.0)
    assert weights.choose_weights(sample, MODEL, (), None, rng) == (MODEL, {})


@pytest.mark.parametrize(("share", "expected"), [(0.99, 0.1), (1.01, 0.01)])
def test_the_error_of_a_gain_is_that_of_its_mean(sample, rng, monkeypatch, share, expected):
    """A gain of one nat is clear where it is more than its deviations over the root of n."""
    sample = sample._replace(weights=np.ones(len(sample.labels)))
    folds = weights.folds(sample, 3, rng)
    n = np.sum(folds >= 0)
    swing = np.where(np.arange(n) % 2, 1.0, -1.0)
    swing = share * np.sqrt(n) * (swing - swing.mean()) / swing.std()

    def scores(sample, model, fold_of, fit):
        return swing if model.unlabelled_weight == 0.1 else np.full(n, -1.0)

    monkeypatch.setattr(weights, "hidden_log_probabilities", scores)
    assert weights.choose("unlabelled_weight", sample, MODEL, folds, None).best == expected
