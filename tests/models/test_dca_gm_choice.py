import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.linalg.data import Matrix
from gnomon.models import dca_gm_choice, dca_gm_problem
from gnomon.models.dca_gm import Settings
from gnomon.models.dca_gm_problem import Problem, owners

SETTINGS = Settings(0.1, 0.01, 0.3, 3.0, 1e-3, 4.0, 0.05)


@pytest.fixture
def problem(rng):
    y = np.repeat([0, 1, 2], 20)
    X = rng.standard_normal((60, 4)) + 3 * rng.standard_normal((3, 4))[y]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    codes, chunks = np.where(np.arange(60) % 2, y, -1), np.full(60, -1)
    chunks[[1, 3, 5]] = 0
    codes[41:] = -1
    codes[41] = 2
    return Problem(Matrix(X), codes, chunks, np.ones(60), owners([1, 1, 1]), 2, 4)


def test_folds_are_balanced_keep_chunks_and_the_last_label(problem, rng):
    folds = dca_gm_choice.folds(problem, 4, rng)
    assert np.all(folds[problem.codes < 0] == -1)
    assert len(set(folds[[1, 3, 5]])) == 1
    assert folds[41] == -1
    counts = np.bincount(folds[problem.codes == 1])
    assert counts.max() - counts.min() <= 1


def start_only(problem, settings):
    rows = problem.rows
    return dca_gm_problem.start(problem, rows, settings), rows.order


def test_scores_are_log_probabilities_of_hidden_labels(problem, rng):
    folds = dca_gm_choice.folds(problem, 3, rng)
    seen = []

    def fit(part, settings):
        seen.append(part.codes.copy())
        return start_only(part, settings)

    scores = dca_gm_choice.hidden_scores(problem, SETTINGS, folds, fit)
    assert scores.shape == (np.sum(folds >= 0),)
    assert np.all(scores <= 0) and np.all(scores >= np.log(1e-3))
    for fold, codes in enumerate(seen):
        assert np.all(codes[folds == fold] == -1)
        assert np.all(codes[folds != fold] == problem.codes[folds != fold])


@pytest.mark.parametrize(("noise", "expected"), [(0.0, 0.1), (5.0, 0.01)])
def test_the_default_stays_unless_another_value_is_clearly_better(
    problem, rng, monkeypatch, noise, expected
):
    """0.1 gains half a nat per label: certain without noise, less than an error with it."""
    folds = dca_gm_choice.folds(problem, 3, rng)
    n = np.sum(folds >= 0)
    swing = noise * np.where(np.arange(n) < n // 2, 1.0, -1.0)
    swing -= swing.mean()

    def scores(problem, settings, fold_of, fit):
        return -0.5 + swing if settings.unlabelled_weight == 0.1 else np.full(n, -1.0)

    monkeypatch.setattr(dca_gm_choice, "hidden_scores", scores)
    choice = dca_gm_choice.choose("unlabelled_weight", problem, SETTINGS, folds, None)
    assert choice.best == expected
    assert_allclose(choice.values, [0, 0.001, 0.01, 0.1, 1])
