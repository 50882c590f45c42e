import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gnomon
from gnomon import SemiSupervisedSplit
from gnomon.tools.compare import trials as running

LINEAR = ("PCA", "whitened PCA", "LDA", "PLS", "PPCA")
MOST = (*LINEAR, "kernel PCA", "SPPCA")


def noise(seed, n=120, d=8, n_classes=4, labelled=60):
    rng = np.random.default_rng(seed)
    y = np.full(n, -1)
    y[:labelled] = np.arange(labelled) % n_classes
    return rng.standard_normal((n, d)), y


def planted(seed, n=300, d=10, n_classes=8, per_class=2):
    """Classes on a circle in a plane, three stronger directions that say nothing, two labels each.

    Returns inputs, labels with -1, and the truth of all rows.
    """
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(n_classes) / n_classes
    truth = rng.integers(n_classes, size=n)
    truth[: per_class * n_classes] = np.tile(np.arange(n_classes), per_class)
    X = 0.3 * rng.standard_normal((n, d))
    X[:, :2] += 4 * np.c_[np.cos(angles), np.sin(angles)][truth]
    X[:, :2] += 0.3 * rng.standard_normal((n, 2))
    X[:, 2:5] += 4 * rng.standard_normal((n, 3))
    y = np.full(n, -1)
    y[: per_class * n_classes] = truth[: per_class * n_classes]
    return X @ np.linalg.qr(rng.standard_normal((d, d)))[0], y, truth


def unseen_accuracy(model, X, y, truth):
    """1-NN accuracy on the unlabelled rows, of a model fitted with the labels of y."""
    Z, known = model.fit(X, y).transform(X), y >= 0
    neighbour = KNeighborsClassifier(1).fit(Z[known], y[known])
    return np.mean(neighbour.predict(Z[~known]) == truth[~known])


def beats_pca(result, X, y, truth):
    pca = make_pipeline(StandardScaler(), PCA(result.leader.n_components))
    ours = unseen_accuracy(result.pipeline, X, y, truth)
    return ours > unseen_accuracy(pca, X, y, truth)


@pytest.mark.parametrize("seed", range(3))
def test_pure_noise_has_no_structure(seed):
    result = gnomon.compare(*noise(seed), models=LINEAR, n_components=(1, 2, 4), cv=5)
    assert not result.structure
    assert result.recommendation.startswith("No structure found")
    assert result.snippet() == ""


@pytest.mark.one_sample("it is found in eighteen of twenty samples, which a slow test asks for")
@pytest.mark.parametrize("seed", range(2))
def test_a_planted_plane_is_found_with_two_labels_a_class(seed):
    X, y, truth = planted(seed)
    result = gnomon.compare(X, y, models=LINEAR, n_components=(1, 2, 4), cv=5)
    assert result.structure
    assert result.leader.n_components == 2
    assert beats_pca(result, X, y, truth)


@pytest.mark.slow
def test_noise_is_mistaken_for_structure_in_at_most_one_of_twenty():
    found = [
        gnomon.compare(*noise(seed), models=MOST, n_components=(1, 2, 4)).structure
        for seed in range(20)
    ]
    assert sum(found) <= 1


@pytest.mark.slow
def test_the_planted_plane_is_found_in_at_least_eighteen_of_twenty():
    """Two dimensions hold it; where four score more than the margin above, they are taken."""
    sizes = []
    for seed in range(20):
        X, y, truth = planted(seed)
        result = gnomon.compare(X, y, models=MOST, n_components=(1, 2, 4, 8))
        if result.structure and beats_pca(result, X, y, truth):
            sizes.append(result.leader.n_components)
    assert np.isin(sizes, (2, 4)).sum() >= 18
    assert sizes.count(2) >= 16


def test_scores_are_those_of_a_loop_by_hand():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 2, y, -1)
    cv = SemiSupervisedSplit(4)
    result = gnomon.compare(X, y, models=["PCA"], n_components=2, cv=cv, control=False)
    by_hand = []
    for train, test in cv.split(X, y):
        model = make_pipeline(StandardScaler(), PCA(2)).fit(X[train])
        known = train[y[train] >= 0]
        neighbour = KNeighborsClassifier(1).fit(model.transform(X[known]), y[known])
        by_hand.append(neighbour.score(model.transform(X[test]), y[test]))
    assert_allclose(sorted(o.score for o in result.outcomes), sorted(by_hand))
    weights = [len(test) for _, test in cv.split(X, y)]
    assert_allclose(result.rows[0].score, np.average(by_hand, weights=weights))
    assert result.rows[0].n_rows == sum(weights) == 75


def test_processes_give_what_one_process_gives():
    X, y = load_iris(return_X_y=True)
    settings = dict(models=["PCA", "LDA"], n_components=(1, 2), cv=3)
    alone = gnomon.compare(X, y, **settings)
    together = gnomon.compare(X, y, n_jobs=2, **settings)
    for left, right in zip(alone.rows, together.rows, strict=True):
        assert left[:9] == pytest.approx(right[:9], nan_ok=True)


def test_a_method_that_overfits_is_shown_by_its_control():
    X, y = noise(0, n=60, d=40, n_classes=2, labelled=60)
    result = gnomon.compare(X, y, models=["LDA"], n_components=1, cv=3)
    row = result.rows[0]
    assert row.control_apparent > 0.8
    assert row.control < 0.7
    assert not result.structure


def test_best_is_marked_only_where_the_test_supports_it():
    X, y, _ = planted(1)
    result = gnomon.compare(X, y, models=["LDA", "PCA"], n_components=2)
    assert result.leader.mark == "best"
    same = gnomon.compare(X, y, models={"one": PCA(), "two": PCA()}, n_components=2, cv=3)
    assert [row.mark for row in same.rows] == ["leads", "open"]


def test_a_model_that_fails_is_reported_and_the_others_go_on():
    class Broken(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            raise RuntimeError("no luck")

        def transform(self, X):
            return X

    X, y = load_iris(return_X_y=True)
    result = gnomon.compare(X, y, models=["PCA", ("broken", Broken())], n_components=1, cv=2)
    assert result.failed == {"broken": "RuntimeError: no luck"}
    assert "no luck" in str(result)
    assert result.leader.model == "PCA"


def test_what_is_done_is_kept_when_interrupted(monkeypatch):
    X, y = load_iris(return_X_y=True)
    run, calls = running.run_trial, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return run(*args)

    monkeypatch.setattr(running, "run_trial", interrupted)
    result = gnomon.compare(X, y, models=["PCA", "LDA"], n_components=2)
    assert result.stopped == "interrupted"
    assert len(result.outcomes) == 6
    assert "interrupted" in str(result)


def test_no_trial_is_started_after_the_time_limit():
    X, y = load_iris(return_X_y=True)
    result = gnomon.compare(X, y, models=["PCA"], n_components=2, time_limit=1e-9)
    assert "time limit" in result.stopped
    assert result.leader is None
    assert result.recommendation.startswith("Nothing could be scored")


def test_numbers_are_scored_by_r2():
    X, y = load_diabetes(return_X_y=True)
    result = gnomon.compare(
        X, y, models=["PCA", "PLS"], n_components=(1, 2), target="numeric", cv=3
    )
    assert result.measure == "R2"
    assert result.leader.model == "PLS"
    assert result.structure


def test_several_labels_are_scored_by_f1(rng):
    X = rng.standard_normal((120, 6))
    y = (X[:, :3] + 0.3 * rng.standard_normal((120, 3)) > 0).astype(float)
    y[::4] = np.nan
    result = gnomon.compare(X, y, models=["PCA", "PLS"], n_components=3, cv=3)
    assert result.measure == "macro F1"
    assert result.leader.model == "PLS"


def linked(seed=0, n=90):
    """Faint content, three classes, links mostly inside a class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, 12)) + 1.2 * np.eye(3, 12)[y]
    A = rng.random((n, n)) < np.where(y[:, None] == y, 0.15, 0.01)
    return X, y, np.triu(A, 1) | np.triu(A, 1).T


@pytest.mark.parametrize("transductive", ["auto", False])
def test_links_are_used_by_the_models_that_take_them(transductive):
    X, y, A = linked()
    models = ["PCA", "PRPCA", "PRPCA filter", "PRPCA learnt"]
    result = gnomon.compare(
        X, y, models=models, n_components=2, links=A, cv=3, transductive=transductive
    )
    assert not result.failed
    assert result.leader.model.startswith("PRPCA")
    assert result.leader.mark == "best" or result.leader.score > result.rows[-1].score


@pytest.mark.parametrize("model", ["SPPCA", "DCAGM", "BSDR"])
def test_our_models_take_partly_labelled_rows_in_strings_with_chunks(model):
    X, y = load_iris(return_X_y=True)
    chunks = np.where(np.arange(150) % 10 < 3, np.arange(150) // 10, -1)
    y = np.array(["a", "b", "c", None], dtype=object)[np.where(np.arange(150) % 3, y, -1)]
    result = gnomon.compare(X, y, models=[model], n_components=2, cv=2, chunks=chunks)
    assert not result.failed
    assert result.leader.score > 0.85
    names = {"X": X, "y": y, "chunks": chunks}
    exec(result.snippet(), names)
    assert names["Z"].shape == (150, 2)


def test_our_models_take_numbers_and_several_labels(rng):
    X, y = load_diabetes(return_X_y=True)
    settings = dict(models=["SPPCA", "BSDR"], n_components=2, cv=2)
    assert not gnomon.compare(X[:150], y[:150], target="numeric", **settings).failed
    labels = (X[:150, :3] > 0).astype(float)
    assert not gnomon.compare(X[:150], labels, **settings).failed


def test_names_of_classes_do_not_matter():
    X, y = load_iris(return_X_y=True)
    names = np.array(["b", "c", "a"], dtype=object)[y]
    settings = dict(models=["PCA"], n_components=2, cv=SemiSupervisedSplit(3, shuffle=False))
    assert_allclose(
        gnomon.compare(X, names, **settings).leader.score,
        gnomon.compare(X, y, **settings).leader.score,
    )


def test_a_learning_curve_rises_with_labels():
    X, y = load_iris(return_X_y=True)
    result = gnomon.compare(
        X, y, models=["LDA", "PCA"], n_components=2, cv=5, learning_curve=(2, 20)
    )
    points = {(p.model, p.labels): p.score for p in result.learning_curve}
    assert points["LDA", 20] > points["LDA", 2]
    assert len(points) == 4


@pytest.mark.parametrize("evaluate", ["nearest", "linear", "own", KNeighborsClassifier(3)])
def test_every_evaluator_scores(evaluate):
    X, y = load_iris(return_X_y=True)
    result = gnomon.compare(X, y, models=["LDA"], n_components=2, cv=2, evaluate=evaluate)
    assert result.leader.score > 0.9


def test_own_prediction_is_that_of_the_model():
    X, y = load_iris(return_X_y=True)
    cv = SemiSupervisedSplit(2)
    result = gnomon.compare(X, y, models=["LDA"], n_components=2, cv=cv, evaluate="own")
    model = result.pipeline
    expected = [model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in cv.split(X, y)]
    assert_allclose(result.leader.score, np.mean(expected))


def test_own_prediction_is_made_anew_for_every_size():
    X, y = load_diabetes(return_X_y=True)
    cv = SemiSupervisedSplit(2)
    settings = dict(models=["PLS"], target="numeric", cv=cv, evaluate="own", control=False)
    together = gnomon.compare(X, y, n_components=(1, 3), **settings)
    alone = gnomon.compare(X, y, n_components=1, **settings)
    (small,) = [row for row in together.rows if row.n_components == 1]
    assert_allclose(small.score, alone.leader.score)


def test_progress_goes_to_stderr(capsys):
    X, y = load_iris(return_X_y=True)
    gnomon.compare(X, y, models=["PCA"], n_components=2, cv=2, progress=True)
    captured = capsys.readouterr()
    assert "comparing" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"models": ["PCB"]}, "models has 'PCB'; known are"),
        ({"evaluate": "best"}, "evaluate == 'best'; accepted are"),
        ({"n_components": 0}, "n_components == 0"),
        ({"target": "class"}, "target == 'class'"),
        ({"time_limit": 0}, "time_limit == 0"),
    ],
)
def test_errors_name_the_argument(settings, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        gnomon.compare(X, y, **settings)


def test_without_y_the_error_says_what_to_use():
    with pytest.raises(ValueError, match="choose_dimension"):
        gnomon.compare(np.eye(5), None)
