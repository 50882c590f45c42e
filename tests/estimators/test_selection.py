import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from gnomon import (
    DCAGM,
    PRPCA,
    SPPCA,
    KernelSPPCA,
    LabelledOnly,
    Links,
    SemiSupervisedSplit,
    labelled_scorer,
)
from gnomon.estimators import selection
from gnomon.estimators.selection import smallest_good, stratified_folds
from gnomon.linalg.data import as_data

pandas = pytest.importorskip("pandas")


@pytest.fixture
def partly_labelled_iris():
    X, y = load_iris(return_X_y=True)
    y = y.copy()
    y[np.arange(150) % 5 > 0] = -1
    return X, y


def splits(splitter, y):
    return list(splitter.split(np.zeros((len(y), 1)), y))


def test_unlabelled_rows_are_in_every_training_fold_and_in_no_test(partly_labelled_iris):
    _, y = partly_labelled_iris
    for train, test in splits(SemiSupervisedSplit(5), y):
        assert np.isin(np.flatnonzero(y == -1), train).all()
        assert (y[test] != -1).all()
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(150))


def test_every_labelled_row_is_tested_once(partly_labelled_iris):
    _, y = partly_labelled_iris
    tests = np.concatenate([test for _, test in splits(SemiSupervisedSplit(5), y)])
    assert_array_equal(np.sort(tests), np.flatnonzero(y != -1))


def test_two_labels_a_class_leave_one_in_training():
    y = np.r_[np.repeat(np.arange(6), 2), np.full(20, -1)]
    for train, _ in splits(SemiSupervisedSplit(5), y):
        assert set(y[train]) == {-1, 0, 1, 2, 3, 4, 5}


def test_a_class_with_one_label_stays_in_training():
    y = np.array([0, 0, 0, 1, 1, 2, -1])
    for train, _ in splits(SemiSupervisedSplit(3), y):
        assert 5 in train


def test_folds_of_labels_take_the_rows_of_a_class_in_turn():
    folds = stratified_folds(np.array([0, 1, 0, 2, 1, 0]), 2)
    assert [fold.tolist() for fold in folds] == [[0, 4, 5], [1, 2]]


def test_nullable_labels_are_split_as_integers_are(partly_labelled_iris):
    pandas = pytest.importorskip("pandas")
    _, y = partly_labelled_iris
    stored = pandas.Series(y).where(y >= 0).astype("Int64")
    pairs = zip(
        splits(SemiSupervisedSplit(3), stored), splits(SemiSupervisedSplit(3), y), strict=True
    )
    for (_, test), (_, expected) in pairs:
        assert_array_equal(test, expected)


def test_a_splitter_splits_the_labelled_rows(partly_labelled_iris):
    X, y = partly_labelled_iris
    rows = np.flatnonzero(y != -1)
    inner = StratifiedKFold(3)
    expected = [rows[test] for _, test in inner.split(X[rows], y[rows])]
    actual = [test for _, test in splits(SemiSupervisedSplit(inner), y)]
    for left, right in zip(actual, expected, strict=True):
        assert_array_equal(left, right)


def test_groups_stay_together():
    y, groups = np.array([0, 1, 0, 1, 0, 1, -1, -1]), np.array([0, 0, 1, 1, 2, 2, 0, 1])
    for train, test in SemiSupervisedSplit(GroupKFold(3)).split(y[:, None], y, groups):
        labelled = train[y[train] != -1]
        assert not set(groups[test]) & set(groups[labelled])


def test_unlabelled_rows_of_ready_made_splits_are_moved_to_training():
    y = np.array([0, -1, 1, 0, 1, -1])
    ready = [(np.array([0, 1, 2]), np.array([3, 4, 5]))]
    ((train, test),) = splits(SemiSupervisedSplit(ready), y)
    assert_array_equal(test, [3, 4])
    assert_array_equal(train, [0, 1, 2, 5])


def test_numbers_are_split_at_nan_and_keep_minus_one():
    y = np.array([0.5, -1.0, np.nan, 2.5, 3.5])
    tests = np.concatenate([test for _, test in splits(SemiSupervisedSplit(2), y)])
    assert_array_equal(np.sort(tests), [0, 1, 3, 4])


def test_a_number_of_folds_may_be_one_of_numpy():
    assert SemiSupervisedSplit(np.int64(4)).get_n_splits() == 4


def test_number_of_splits_is_that_of_split(partly_labelled_iris):
    X, y = partly_labelled_iris
    assert SemiSupervisedSplit(4).get_n_splits(X, y) == 4
    assert SemiSupervisedSplit(4).get_n_splits() == 4


def test_folds_repeat_with_the_seed_and_change_with_it():
    y = np.repeat([0, 1], 20)
    first, again = splits(SemiSupervisedSplit(5), y), splits(SemiSupervisedSplit(5), y)
    other = splits(SemiSupervisedSplit(5, random_state=1), y)
    assert_array_equal(first[0][1], again[0][1])
    assert not np.array_equal(first[0][1], other[0][1])


def test_no_label_is_an_error_that_names_y():
    with pytest.raises(ValueError, match="y has no labelled row"):
        splits(SemiSupervisedSplit(5), np.full(4, -1))


def test_one_label_in_every_class_is_an_error_that_names_y():
    with pytest.raises(ValueError, match="y has one labelled row in every class"):
        splits(SemiSupervisedSplit(5), np.array([0, 1, 2, -1]))


def test_scores_equal_a_loop_by_hand(partly_labelled_iris):
    X, y = partly_labelled_iris
    model = make_pipeline(PCA(2), LabelledOnly(KNeighborsClassifier(3)))
    by_hand = []
    for train, test in SemiSupervisedSplit(5).split(X, y):
        pca = PCA(2).fit(X[train])
        known = train[y[train] != -1]
        knn = KNeighborsClassifier(3).fit(pca.transform(X[known]), y[known])
        by_hand.append(np.mean(knn.predict(pca.transform(X[test])) == y[test]))
    scores = cross_val_score(
        model, X, y, cv=SemiSupervisedSplit(5), scoring=labelled_scorer("accuracy")
    )
    assert_allclose(scores, by_hand)


def test_the_naive_call_scores_minus_one_as_a_class():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600].copy()
    for name in range(10):  # each keeps as many labels as there are folds, and more
        own = np.flatnonzero(y == name)
        y[np.random.default_rng(name).choice(own, len(own) * 4 // 5, replace=False)] = -1
    model = SelfTrainingClassifier(KNeighborsClassifier(1))
    naive = cross_val_score(model, X, y, cv=5).mean()
    ours = cross_val_score(model, X, y, cv=SemiSupervisedSplit(5), scoring=labelled_scorer())
    assert naive < 0.25
    assert ours.mean() > 0.85


def test_the_scorer_alone_ignores_unlabelled_rows(partly_labelled_iris):
    X, y = partly_labelled_iris
    model = LabelledOnly(KNeighborsClassifier(1)).fit(X, y)
    known = y != -1
    expected = np.mean(model.predict(X[known]) == y[known])
    assert labelled_scorer("accuracy")(model, X, y) == expected
    assert np.isnan(labelled_scorer("accuracy")(model, X, np.full(150, -1)))


def test_grid_search_chooses_by_labelled_rows(partly_labelled_iris):
    X, y = partly_labelled_iris
    search = GridSearchCV(
        make_pipeline(PCA(), LabelledOnly(KNeighborsClassifier(1))),
        {"pca__n_components": [1, 2, 3]},
        cv=SemiSupervisedSplit(3),
        scoring=labelled_scorer("accuracy"),
        n_jobs=2,
    ).fit(X, y)
    assert search.best_score_ > 0.85
    assert -1 not in search.predict(X)


def test_strings_with_none_are_scored_as_classes(partly_labelled_iris):
    X, y = partly_labelled_iris
    names = np.array(["a", "b", "c", None], dtype=object)[y]
    result = cross_validate(
        LabelledOnly(KNeighborsClassifier(1)),
        X,
        names,
        cv=SemiSupervisedSplit(5),
        scoring=labelled_scorer("balanced_accuracy"),
    )
    expected = cross_validate(
        LabelledOnly(KNeighborsClassifier(1)),
        X,
        y,
        cv=SemiSupervisedSplit(5),
        scoring=labelled_scorer("balanced_accuracy"),
    )
    assert_allclose(result["test_score"], expected["test_score"])


def test_splitter_repr_and_clone_of_a_search(partly_labelled_iris):
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1]}, cv=SemiSupervisedSplit(5))
    assert "SemiSupervisedSplit" in repr(clone(search).cv)


def test_links_pass_whole_and_rows_are_cut(rng):
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 6)) + 2 * np.eye(3, 6)[y]
    A = np.triu(rng.random((60, 60)) < np.where(y[:, None] == y, 0.3, 0.02), 1)
    shown = np.where(np.arange(60) % 2, y, -1)
    model = make_pipeline(PRPCA(2, relation="paper"), LabelledOnly(KNeighborsClassifier(1)))
    links, splitter = Links(A | A.T), SemiSupervisedSplit(3)
    result = cross_validate(
        model,
        X,
        shown,
        cv=splitter,
        scoring=labelled_scorer("accuracy"),
        params={"prpca__links": links, "prpca__sample_index": np.arange(60)},
        error_score="raise",
    )
    by_hand = []
    for train, test in splitter.split(X, shown):
        fitted = PRPCA(2, relation="paper").fit(X[train], links=links, sample_index=train)
        known = train[shown[train] >= 0]
        neighbour = KNeighborsClassifier(1).fit(fitted.transform(X[known]), shown[known])
        by_hand.append(neighbour.score(fitted.transform(X[test]), shown[test]))
    assert_allclose(result["test_score"], by_hand)


def table_of_kinds(n=90, n_classes=6):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % n_classes
    X = rng.normal(size=(n, 8)) + 4 * np.eye(8)[labels]
    return X, np.where(np.arange(n) % 7 == 0, -1, labels), labels


@pytest.mark.parametrize(
    "model", [SPPCA("auto"), KernelSPPCA("auto"), DCAGM("auto", max_iter=20)], ids=str
)
@pytest.mark.filterwarnings("ignore:DCAGM stopped")
def test_the_number_of_components_is_chosen_by_held_out_rows(model):
    X, y, _ = table_of_kinds()
    model.fit(X, y)
    assert model.n_components == "auto"
    assert model.n_components_ == model.transform(X).shape[1]
    scores = model.size_scores_
    assert list(scores) == [2, 3, 5]
    best = max(scores.values())
    good = [size for size, score in scores.items() if score >= best - 0.02]
    assert model.n_components_ == min(good)
    assert model.n_components_ > 2
    assert str(model.n_components_) in model.size_reason_
    same = clone(model).set_params(n_components=model.n_components_).fit(X, y)
    assert_allclose(same.transform(X), model.transform(X))
    assert not hasattr(same, "size_scores_")


def test_the_number_for_numbers_weights_and_links():
    X, _, labels = table_of_kinds()
    y = X @ np.arange(8.0)
    y[::3] = np.nan
    model = SPPCA("auto").fit(X, y, sample_weight=np.ones(90))
    assert model.n_components_ == 2
    assert max(model.size_scores_.values()) > 0.9
    A = (labels[:, None] == labels) & ~np.eye(90, dtype=bool)
    linked = SPPCA("auto").fit(X, labels, links=A)
    assert max(linked.size_scores_.values()) > 0.95


def folds_of(X, y):
    """The fold of each row, -1 for those that are never held out."""
    fold = np.full(len(y), -1)
    for k, (train, test) in enumerate(selection._splits(X, y)):
        fold[test] = k
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
    return fold


def test_folds_for_sizes_depend_on_rows_and_not_on_how_they_are_given(rng):
    X, y = rng.normal(size=(47, 3)), np.array(["a", "b", "c", None, "b"] * 10, dtype=object)[:47]
    expected, order = folds_of(X, y), rng.permutation(47)
    assert_array_equal(np.bincount(expected + 1), [9, 8, 8, 8, 7, 7])
    names = dict(zip("abc", "zyx", strict=True))
    assert_array_equal(folds_of(X, np.array([names.get(v) for v in y], dtype=object)), expected)
    assert_array_equal(folds_of(X[order], y[order]), expected[order])
    assert_array_equal(folds_of(1e-3 * X[:, ::-1] + 7e3, y), expected)
    twice = np.repeat(np.arange(47), 1 + np.arange(47) % 2)
    assert_array_equal(folds_of(X[twice], y[twice]), expected[twice])
    for same in (sparse.csr_array(X), as_data(X), pandas.DataFrame(X)):
        assert_array_equal(folds_of(same, y), expected)


def test_equal_rows_without_a_label_stay_where_those_with_one_are_held_out(rng):
    X = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)
    y = np.where(np.arange(40) % 2, -1, np.arange(40) // 2 % 2)
    assert_array_equal(folds_of(X, y) < 0, y < 0)


def test_weights_count_in_the_score_of_a_size():
    X, _, classes = table_of_kinds()
    weights = np.random.default_rng(0).integers(1, 4, size=len(classes)).astype(float)
    twice = np.repeat(np.arange(len(classes)), weights.astype(int))
    weighted = SPPCA("auto").fit(X, classes, sample_weight=weights)
    repeated = SPPCA("auto").fit(X[twice], classes[twice])
    assert_allclose(
        list(weighted.size_scores_.values()), list(repeated.size_scores_.values()), rtol=1e-9
    )


@pytest.mark.parametrize("model", [SPPCA("auto"), DCAGM("auto")])
def test_rows_without_weight_have_no_say_in_the_number_of_components(model):
    for seed in (3, 4):
        rng = np.random.default_rng(seed)
        y = np.arange(80) % 4
        X = 2 * rng.normal(size=(4, 12))[y] + rng.normal(size=(80, 12))
        others = 20 * rng.normal(size=(40, 12))
        weights = np.append(np.ones(80), np.zeros(40))
        every = np.vstack([X, others]), np.append(y, rng.integers(0, 4, 40))
        scores = clone(model).fit(*every, sample_weight=weights).size_scores_
        assert scores == clone(model).fit(X, y).size_scores_


def test_what_cannot_be_chosen_is_said():
    X, _, _ = table_of_kinds()
    with pytest.raises(ValueError, match="requires y to be passed"):
        SPPCA("auto").fit(X)
    y = np.full(90, -1)
    y[:6] = np.arange(6)
    with pytest.warns(UserWarning, match="2 components were taken, not chosen"):
        model = SPPCA("auto").fit(X, y)
    assert model.n_components_ == 2
    assert model.size_scores_ == {}


def test_the_smallest_of_equal_sizes_is_taken_without_a_margin_too():
    assert smallest_good([4, 2, 3], [0.7, 0.7, 0.7 + 1e-15], margin=0.0) == 2
    assert smallest_good([4, 2, 3], [0.7, 0.6, 0.7], margin=0.05) == 3


def test_folds_of_sparse_rows_are_those_of_dense_ones_and_nothing_becomes_dense(monkeypatch, rng):
    X = sparse.random_array((60, 40), density=0.1, rng=rng, format="csr")
    y = np.arange(60) % 3
    X, y = sparse.vstack([X, X[:10]], format="csr"), np.concatenate([y, y[:10]])
    dense = list(selection._splits(X.toarray(), y))
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    for (train, test), (_, expected) in zip(selection._splits(X, y), dense, strict=True):
        assert_array_equal(test, expected)
        # Copies are held out with their originals.
        assert set(test[test < 10] + 60) == set(test[test >= 60])
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(70))
