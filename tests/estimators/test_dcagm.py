import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import DCAGM, Links, chunks_from_pairs
from gnomon.estimators._heads import NOTHING_FOUND
from gnomon.estimators.dcagm import _together
from gnomon.inference.callbacks import Checkpoint
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Matrix
from gnomon.linalg.standardize import row_space
from gnomon.models.dcagm import alternation, weights
from gnomon.models.dcagm.alternation import State


@parametrize_with_checks(
    [
        DCAGM(tol=0.01),
        DCAGM(covariance="gaussian", n_gaussians=1, metric="raw", standardize=False, tol=0.01),
        DCAGM(objective="paper", tol=0.05),
    ]
)
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def partly(wine):
    """Wine with a fifth of its labels."""
    X, y = wine
    labels = np.where(np.random.default_rng(1).random(len(y)) < 0.2, y, -1)
    return X, labels


@pytest.fixture(scope="module")
def model(partly):
    return DCAGM().fit(*partly)


def span(model):
    """Projection on the subspace, in units where features have unit variance."""
    Q = np.linalg.qr(model.components_.T)[0]
    return Q @ Q.T


def same_fit(a, b, rtol=1e-7):
    assert_allclose(
        a.components_, b.components_, rtol=rtol, atol=rtol * np.abs(b.components_).max()
    )
    assert_allclose(a.covariances_, b.covariances_, rtol=rtol, atol=rtol)


def test_few_labels_and_many_rows_classify_wine(model, wine, partly):
    X, y = wine
    hidden = partly[1] < 0
    assert model.score(X[hidden], y[hidden]) > 0.93
    assert model.converged_


def test_probabilities_sum_to_one_and_agree_with_labels(model, wine):
    X, _ = wine
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert_allclose(np.log(p), model.predict_log_proba(X), atol=1e-6)
    by_gaussian = model.responsibilities(X)
    by_class = [by_gaussian[:, model.gaussian_classes_ == c].sum(axis=1) for c in range(3)]
    head = model.class_head_
    by_map = softmax(model.transform(X) @ head.coef + head.intercept, axis=1)
    doubt, shares = model.class_doubt_, model.class_shares_
    known = model.labels_[model.labels_ >= 0]
    assert_allclose(shares, np.bincount(known) / len(known))
    assert_allclose(doubt, 0.5 / (np.sum(model.labels_ >= 0) + 0.5))
    expected = (1 - doubt) * (np.column_stack(by_class) + by_map) / 2 + doubt * shares
    assert_allclose(expected, p, atol=1e-12)


@pytest.mark.filterwarnings("ignore:DCAGM stopped")
def test_the_objective_of_the_paper_has_the_probabilities_of_its_mixtures(partly):
    X, _ = partly
    model = DCAGM(objective="paper", max_iter=5).fit(*partly)
    assert model.class_head_ is None
    by_gaussian = model.responsibilities(X)
    by_class = [by_gaussian[:, model.gaussian_classes_ == c].sum(axis=1) for c in range(3)]
    assert_allclose(np.column_stack(by_class), model.predict_proba(X), atol=1e-12)


@pytest.mark.filterwarnings("ignore:DCAGM stopped")
def test_weight_in_em_and_metric_follow_the_objective_unless_given(partly):
    X, _ = partly
    printed = DCAGM(objective="paper", max_iter=3).fit(*partly).transform(X)
    named = DCAGM(objective="paper", em_weight=1.0, metric="raw", max_iter=3).fit(*partly)
    assert_allclose(named.transform(X), printed)
    default = DCAGM(max_iter=3).fit(*partly).transform(X)
    assert_allclose(
        DCAGM(em_weight=0.3, metric="within", max_iter=3).fit(*partly).transform(X), default
    )
    assert not np.allclose(DCAGM(em_weight=0.1, max_iter=3).fit(*partly).transform(X), default)


def test_one_gaussian_per_class_is_quadratic_discriminant_analysis(wine, monkeypatch):
    """At the projection found, without prior and with all labels, the classifier is QDA."""
    X, y = wine
    monkeypatch.setattr(alternation, "PRIOR_SCALE", 1e-12)
    model = DCAGM(n_gaussians=1).fit(X, y)
    Z, counts = model.transform(X), np.bincount(y)
    for c in range(3):
        shrunk = counts[c] / (counts[c] + 4)
        assert_allclose(model.covariances_[c] / shrunk, np.cov(Z[y == c].T, bias=True), rtol=1e-5)
    qda = QuadraticDiscriminantAnalysis().fit(Z, y)
    assert np.mean(qda.predict(Z) == model.predict(X)) > 0.97


def test_metrics_are_what_they_say(partly, wine):
    X, _ = partly
    within, raw = (DCAGM(metric=metric).fit(*partly) for metric in ("within", "raw"))
    assert_allclose(np.cov(raw.transform(X).T, bias=True), np.eye(2), atol=0.01)
    average = np.zeros((2, 2))
    for c in range(3):
        own = within.gaussian_classes_ == c
        w, means = (
            within.weights_[own],
            within.means_[own] - within.weights_[own] @ within.means_[own],
        )
        inside = np.tensordot(w, within.covariances_[own], 1) + (w * means.T) @ means
        average += within.class_weights_[c] * inside
    assert_allclose(average, np.eye(2), atol=1e-10)
    Z = within.transform(X)
    difference = X[0] - X[1]
    assert_allclose(difference @ within.metric_ @ difference, np.sum((Z[0] - Z[1]) ** 2))
    assert_allclose(raw.responsibilities(X), within.responsibilities(X), atol=1e-8)
    assert_allclose(span(raw), span(within), atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*a chunk whose label does not fit")
def test_chunks_help_where_labels_are_few():
    gains = []
    for seed in range(4):
        X, y, labels, _ = rows_apart(seed)
        chunks = np.full(len(y), -1)
        for c in (0, 1):
            own = np.flatnonzero((y == c) & (labels < 0))[:36]
            chunks[own] = 100 * c + np.arange(len(own)) // 4
        hidden = (labels < 0) & (chunks < 0)
        scores = [
            DCAGM(1).fit(X, labels, chunks=groups).score(X[hidden], y[hidden])
            for groups in (None, chunks)
        ]
        gains.append(scores[1] - scores[0])
    assert np.mean(gains) > 0.05


def test_members_that_x_speaks_against_leave_their_chunk_with_a_warning(wine):
    X, y = wine
    labels, chunks = np.full(len(y), -1), np.full(len(y), -1)
    first = np.array([np.flatnonzero(y == c)[0] for c in range(3)])
    members = np.concatenate([np.flatnonzero(y == c)[1:11] for c in range(3)])
    labels[first], chunks[first], chunks[members] = range(3), range(3), y[members]
    strays = members[::5]
    chunks[strays] = (y[strays] + 1) % 3
    with pytest.warns(UserWarning, match=r"rows have a chunk whose label does not fit"):
        model = DCAGM().fit(X, labels, chunks=chunks)
    left = np.flatnonzero((chunks >= 0) & (model.labels_ < 0))
    assert len(np.intersect1d(left, strays)) >= 3
    assert len(np.setdiff1d(left, strays)) <= 1
    trusting = DCAGM(objective="paper", max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trusting.fit(X, labels, chunks=chunks)
    assert_array_equal(trusting.labels_[strays], chunks[strays])


def test_a_chunk_of_one_changes_nothing(partly, model):
    X, labels = partly
    chunks = np.where(labels < 0, np.arange(len(labels)), -1)
    same_fit(DCAGM().fit(X, labels, chunks=chunks), model, rtol=0)


def test_a_labelled_member_labels_its_chunk(partly):
    X, labels = partly
    chunks = chunks_from_pairs(
        [[np.flatnonzero(labels == 0)[0], np.flatnonzero(labels < 0)[0]]], 178
    )
    given = labels.copy()
    given[np.flatnonzero(labels < 0)[0]] = 0
    chunked = DCAGM().fit(X, labels, chunks=chunks)
    same_fit(chunked, DCAGM().fit(X, given), rtol=0)
    assert_array_equal(chunked.labels_, given)
    assert chunked.labels_.dtype == int


def test_conflicting_chunk_is_refused_and_leaves_nothing_behind(partly):
    X, labels = partly
    pair = [np.flatnonzero(labels == 0)[0], np.flatnonzero(labels == 1)[0]]
    model = DCAGM()
    with pytest.raises(ValueError, match="chunks puts rows"):
        model.fit(X, labels, chunks=chunks_from_pairs([pair], len(X)))
    assert not hasattr(model, "components_")


def test_features_in_other_units_give_the_same_map(partly, model, rng):
    X, labels = partly
    scale, shift = 10.0 ** rng.integers(-3, 4, size=13), rng.uniform(-50, 50, size=13)
    other = DCAGM().fit(X * scale + shift, labels)
    assert_allclose(other.transform(X * scale + shift), model.transform(X), atol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_any_scale_gives_the_same_map(partly, model, scale):
    X, labels = partly
    other = DCAGM().fit(X * scale, labels)
    assert_allclose(other.transform(X * scale), model.transform(X), atol=1e-3)


def test_offset_does_not_matter(partly, rng):
    X, labels = partly
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    here, there = DCAGM().fit(X, labels), DCAGM().fit(X + 1e8, labels)
    assert_allclose(span(there), span(here), atol=1e-4)


def test_constant_and_duplicate_columns_are_harmless(partly, model):
    X, labels = partly
    constant = DCAGM().fit(np.column_stack([X, np.full(len(X), 1e8 / 3)]), labels)
    assert_allclose(constant.components_[:, -1], 0)
    assert_allclose(constant.components_[:, :-1], model.components_, rtol=1e-8)
    twice = DCAGM().fit(np.column_stack([X, X[:, :1]]), labels)
    assert_allclose(twice.components_[:, 0], twice.components_[:, -1], rtol=1e-6)


def test_rank_below_the_number_of_components_is_kept(rng):
    X = rng.standard_normal((40, 1)) @ rng.standard_normal((1, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DCAGM(3).fit(X, (X[:, 0] > 0).astype(int))
    Z = model.transform(X)
    assert np.linalg.matrix_rank(Z, tol=1e-6 * np.linalg.norm(Z)) == 1
    assert model.score(X, (X[:, 0] > 0).astype(int)) > 0.9


def test_one_label_per_class_is_enough(wine):
    X, y = wine
    labels = np.full(len(y), -1)
    labels[[0, 80, 170]] = [0, 1, 2]
    model = DCAGM().fit(X, labels)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, y) > 0.6


STORAGE = {
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "big-endian": lambda X: X.astype(">f8"),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "blocks": lambda X: Blocks([Matrix(X[:50]), Matrix(X[50:])]),
}


@pytest.mark.parametrize("store", STORAGE)
def test_storage_does_not_matter(partly, model, store):
    X, labels = partly
    same_fit(DCAGM().fit(STORAGE[store](X), labels), model, rtol=1e-6)


def test_sparse_wide_rows_give_what_dense_ones_give(rng):
    y = np.repeat([0, 1, 2], 20)
    X = rng.poisson(0.3, size=(60, 90)) + 2.0 * (rng.random((60, 90)) < 0.1 * (y[:, None] == 1))
    X[y == 2, :5] += rng.poisson(2, size=(20, 5))
    X[rng.random(X.shape) < 0.6] = 0
    labels = np.where(rng.random(60) < 0.5, y, -1)
    dense = DCAGM(tol=10).fit(X, labels)
    stored = DCAGM(tol=10).fit(sparse.csr_array(X), labels)
    assert_allclose(stored.transform(X), dense.transform(X), atol=1e-5)


def test_rare_features_do_not_drown_the_others(rng):
    # Words of a class are in one row of 16, the 5000 others in one of 250: each of these in
    # unit variance hides the classes, in most draws nearly all, also from discriminant analysis.
    n, d, n_classes = 500, 5000, 4
    y = rng.integers(n_classes, size=n)
    words = (y[:, None] * 20 + rng.integers(20, size=(n, 5))).ravel()
    rows = np.repeat(np.arange(n), 5)
    told = sparse.csr_array((np.ones(5 * n), (rows, words)), shape=(n, 20 * n_classes))
    noise = sparse.random_array((n, d), density=0.004, rng=rng, format="csr")
    X, labels = sparse.hstack([noise, told]).tocsr(), np.where(rng.random(n) < 0.3, y, -1)
    known, hidden = labels >= 0, labels < 0
    peer = LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.5)
    T = row_space(Matrix(StandardScaler().fit_transform(X.toarray()))).T
    reached = peer.fit(T[known], y[known]).score(T[hidden], y[hidden])
    model = DCAGM(3).fit(X, labels)
    found = model.score(X[hidden], y[hidden])
    assert found > 0.95
    assert 1 - found < (1 - reached) / 2


def test_float32_stays_and_agrees(partly, model):
    X, labels = partly
    single = DCAGM().fit(X.astype(np.float32), labels)
    assert single.components_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(span(single), span(model), atol=1e-3)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["x", "y", "z"], dtype=object),
        np.array([2, 5, 2**40]),
        np.array([7.0, 8.0, 9.0]),
        np.array(["b", "c", "a"], dtype=object),
    ],
    ids=["str", "large", "float", "other order"],
)
def test_names_of_classes_do_not_matter(partly, model, names):
    X, labels = partly
    y = names[labels]
    if y.dtype == object:
        y[labels < 0] = None
    else:
        y[labels < 0] = -1
    renamed = DCAGM().fit(X, y)
    assert_allclose(renamed.transform(X), model.transform(X), atol=1e-6)
    assert_array_equal(renamed.predict(X), names[model.predict(X)])


def test_nullable_pandas_labels(partly, model):
    pandas = pytest.importorskip("pandas")
    X, labels = partly
    y = pandas.Series(labels, dtype="Int64").where(labels >= 0)
    same_fit(DCAGM().fit(pandas.DataFrame(X).rename(columns=str), y), model, rtol=1e-9)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [(1, [1, 1, 1]), ([1, 2, 3], [1, 2, 3]), ({0: 3, 1: 1, 2: 2}, [3, 1, 2])],
)
def test_classes_may_have_different_numbers_of_gaussians(partly, numbers, expected):
    model = DCAGM(n_gaussians=numbers, covariance="gaussian").fit(*partly)
    assert_array_equal(np.bincount(model.gaussian_classes_), expected)
    assert model.covariances_.shape == (sum(expected), 2, 2)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"n_components": 0}, ValueError),
        ({"n_components": -1}, ValueError),
        ({"n_components": 14}, ValueError),
        ({"n_components": 2.5}, TypeError),
        ({"n_components": "two"}, TypeError),
        ({"n_gaussians": 0}, ValueError),
        ({"n_gaussians": [1, 2]}, ValueError),
        ({"n_gaussians": {0: 1}}, ValueError),
        ({"n_gaussians": 1.5}, TypeError),
        ({"covariance": "full"}, ValueError),
        ({"objective": "other"}, ValueError),
        ({"metric": "euclid"}, ValueError),
        ({"unlabelled_weight": -1}, ValueError),
        ({"chunk_weight": "much"}, (ValueError, TypeError)),
        ({"ridge": np.nan}, ValueError),
        ({"em_weight": -0.1}, ValueError),
        ({"n_init": 0}, ValueError),
        ({"max_iter": 0}, ValueError),
        ({"tol": -1}, ValueError),
        ({"standardize": "yes"}, ValueError),
    ],
    ids=str,
)
def test_errors_name_the_parameter(partly, parameters, error):
    with pytest.raises(error, match=next(iter(parameters))):
        DCAGM(**parameters).fit(*partly)


def test_data_that_cannot_be_fitted_are_named(partly):
    X, labels = partly
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        DCAGM().fit(X, np.zeros(len(X), dtype=int))
    with pytest.raises(ValueError, match="needs at least 2 classes"):
        DCAGM().fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="no variation"):
        DCAGM().fit(np.ones_like(X), labels)
    with pytest.raises(ValueError, match="y has 177 rows"):
        DCAGM().fit(X, labels[1:])
    broken = X.copy()
    broken[3, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        DCAGM().fit(broken, labels)
    with pytest.raises(ValueError, match="no observed value in column 3"):
        DCAGM().fit(np.where(np.arange(X.shape[1]) == 3, np.nan, X), labels)


def test_paper_objective_collapses_and_the_invariant_one_does_not(partly, wine):
    X, _ = wine
    spread = {}
    for objective in ("paper", "invariant"):
        model = DCAGM(objective=objective, unlabelled_weight=0.1, metric="raw", tol=1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            Z = model.fit(*partly).transform(X)
        spread[objective] = np.linalg.svd(Z, compute_uv=False)[-1] / np.sqrt(len(Z))
    assert spread["paper"] < 0.3 < 0.9 < spread["invariant"]


def test_too_few_iterations_warn_once(partly):
    with pytest.warns(ConvergenceWarning, match="max_iter == 2") as caught:
        model = DCAGM(max_iter=2, tol=0).fit(*partly)
    assert len(caught) == 1
    assert model.n_iter_ == 2 and not model.converged_


def test_callback_sees_iterations_and_stops(partly):
    seen = []

    def stop_at_three(n_iter, state, objective):
        assert isinstance(state, State)
        seen.append(objective)
        return n_iter == 3

    with pytest.warns(ConvergenceWarning):
        model = DCAGM(callback=stop_at_three).fit(*partly)
    assert seen == model.objective_
    assert model.n_iter_ == 3


def test_restarts_do_not_lower_the_objective_and_repeat(partly, model):
    runs = [DCAGM(n_init=3, random_state=5).fit(*partly) for _ in range(2)]
    assert max(runs[0].objective_) >= max(model.objective_)
    assert_array_equal(runs[0].components_, runs[1].components_)


def test_rows_of_a_new_class_have_low_density(rng):
    """Three classes on a line were known; a fourth one lies further along it."""
    y = rng.integers(4, size=400)
    X = rng.standard_normal((400, 5))
    X[:, 1] += 4 * y
    known = y < 3
    model = DCAGM().fit(X[known][::2], y[known][::2])
    new, old = model.density_quantile(X[~known]), model.density_quantile(X[known][1::2])
    assert np.median(new) < 0.05
    assert np.median(old) > 0.3
    assert new.min() >= 0 and old.max() <= 1


def test_refit_forgets_and_pickle_keeps(partly, wine, model):
    X, y = wine
    again = clone(model).fit(X[:130], y[:130])
    assert len(again.fit(*partly).classes_) == 3
    same_fit(again, model, rtol=0)
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))


def test_automatic_weights_are_chosen_on_labelled_rows(partly, wine, monkeypatch):
    grids = {"chunk_weight": (0.0, 0.1), "unlabelled_weight": (0.01, 0.1)}
    monkeypatch.setattr(weights, "GRIDS", grids)
    X, labels = partly
    chunks = np.where((labels < 0) & (wine[1] == 1), np.arange(len(labels)) // 20, -1)
    model = DCAGM(unlabelled_weight="auto", chunk_weight="auto", tol=0.1, random_state=0)
    model.fit(X, labels, chunks=chunks)
    assert set(model.weight_scores_) == {"unlabelled_weight", "chunk_weight"}
    for name, scores in model.weight_scores_.items():
        assert getattr(model, f"{name}_") in scores["values"]
        assert np.all(scores["scores"] <= 0)
    same = DCAGM(unlabelled_weight="auto", random_state=0).fit(*wine)
    assert same.weight_scores_ == {} and same.unlabelled_weight_ == 0.01


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("batch_size", [1, 2, 5])
def test_batches_without_rows_of_some_class_leave_it_as_it_is(wine, batch_size):
    model = DCAGM(batch_size=batch_size, max_iter=3, random_state=0).fit(*wine)
    assert np.all(model.class_weights_ > 0)
    assert model.score(*wine) > 0.45  # .4 is the share of the largest class, .6 to .95 usual


def test_batches_classify_and_repeat(partly, wine):
    X, y = wine
    fits = [DCAGM(batch_size=40, random_state=2, tol=0.05).fit(*partly) for _ in range(2)]
    assert fits[0].score(X, y) > 0.9
    assert_array_equal(fits[0].components_, fits[1].components_)
    with pytest.raises(ValueError, match="batch_size"):
        DCAGM(batch_size=0).fit(*partly)


@pytest.mark.parametrize("batch_size", [None, 40])
def test_a_killed_fit_goes_on_from_its_checkpoint_to_the_same_bits(partly, tmp_path, batch_size):
    class Killer(Checkpoint):
        def __call__(self, n_iter, state, objective):
            super().__call__(n_iter, state, objective)
            if n_iter == 2:
                raise KeyError("killed")

    seen = []

    class Counter(Checkpoint):
        def __call__(self, n_iter, state, objective):
            seen.append(n_iter)

    model = DCAGM(batch_size=batch_size, max_iter=7, tol=0, random_state=0)
    with pytest.raises(KeyError, match="killed"):
        clone(model).set_params(callback=Killer(tmp_path / "fit", every=1)).fit(*partly)
    with warnings.catch_warnings():  # some draws of batches end after their third
        warnings.simplefilter("ignore", ConvergenceWarning)
        resumed = clone(model).set_params(callback=Counter(tmp_path / "fit")).fit(*partly)
        whole = clone(model).fit(*partly)
    assert seen == list(range(3, 3 + len(seen)))
    assert resumed.n_iter_ == whole.n_iter_ > 2
    assert_array_equal(resumed.components_, whole.components_)


def test_a_checkpoint_holds_one_start(partly, tmp_path):
    with pytest.raises(ValueError, match=r"n_init == 2.*callback is a checkpoint"):
        DCAGM(n_init=2, callback=Checkpoint(tmp_path / "fit")).fit(*partly)


def rows_apart(seed):
    """Two classes along one of ten columns, two labels each, and pairs of different classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 160)
    X = rng.standard_normal((160, 10))
    X[:, 0] += 4 * y
    labels = np.full(160, -1)
    for c in (0, 1):
        labels[rng.choice(np.flatnonzero(y == c), 2, replace=False)] = c
    free = np.flatnonzero(labels < 0)
    pairs = np.column_stack([rng.choice(free[y[free] == c], 60) for c in (0, 1)])
    return X, y, labels, pairs


def test_pairs_of_different_classes_help_rows_that_are_in_none():
    gains = []
    for seed in range(4):
        X, y, labels, pairs = rows_apart(seed)
        hidden = np.setdiff1d(np.flatnonzero(labels < 0), pairs)
        apart = Links.from_edges(pairs, n_nodes=len(X))
        scores = [
            DCAGM(1).fit(X, labels, cannot_link=graph).score(X[hidden], y[hidden])
            for graph in (None, apart)
        ]
        gains.append(scores[1] - scores[0])
    assert np.mean(gains) > 0.05


def test_pairs_are_named_by_nodes_and_rows_without_weight_have_none():
    X, _, labels, pairs = rows_apart(0)
    apart = Links.from_edges(pairs, n_nodes=len(X))
    order = np.random.default_rng(0).permutation(len(X))[:120]
    order = np.append(order, np.setdiff1d(np.flatnonzero(labels >= 0), order))
    part = DCAGM(1).fit(X[order], labels[order], cannot_link=apart, sample_index=order)
    same = DCAGM(1).fit(X[order], labels[order], cannot_link=apart.subset(order))
    same_fit(part, same, rtol=0)
    weights = np.isin(np.arange(len(X)), order).astype(float)
    weighted = DCAGM(1).fit(X, labels, cannot_link=apart, sample_weight=weights)
    assert_allclose(np.abs(weighted.components_), np.abs(part.components_), rtol=1e-4, atol=1e-6)
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.05, np.nan, X)
    assert DCAGM(1).fit(holes, labels, cannot_link=apart).converged_


def test_pairs_survive_the_choice_of_the_size():
    y = np.arange(40) % 2
    X = np.random.default_rng(0).standard_normal((40, 3)) + 2 * y[:, None]
    apart = Links.from_edges([(i, i + 1) for i in range(20, 39)], n_nodes=40)
    labels = np.where(np.arange(40) < 20, y, -1)
    model = DCAGM("auto").fit(X, labels, cannot_link=apart)
    again = DCAGM(model.n_components_).fit(X, labels, cannot_link=apart.adjacency)
    same_fit(model, again, rtol=0)


@pytest.mark.parametrize(("what", "label"), [("label", 0), ("label", 1), ("chunk", -1)])
def test_pairs_that_labels_or_chunks_deny_are_refused(what, label):
    X, _, labels, _ = rows_apart(0)
    first, second = np.flatnonzero(labels == label)[:2]
    chunks = np.full(len(X), -1)
    if what == "chunk":
        chunks[[first, second]] = 0
    apart = Links.from_edges([(first, second)], n_nodes=len(X))
    message = f"cannot_link joins rows {first} and {second}, which have one {what}"
    with pytest.raises(ValueError, match=message):
        DCAGM(1).fit(X, labels, chunks=chunks, cannot_link=apart)


def test_principal_components_keep_their_scales(rng):
    X = rng.standard_normal((90, 12)) * np.geomspace(10, 0.1, 12)
    y = np.arange(90) % 3
    X[:, :2] += 15 * np.eye(3)[y][:, :2]
    Z = PCA().fit_transform(X)
    models = [DCAGM(2, standardize=way, random_state=0).fit(Z, y) for way in ("auto", False, True)]
    assert_allclose(models[0].components_, models[1].components_)
    assert not np.allclose(models[0].components_, models[2].components_)
    unit, auto = (DCAGM(2, standardize=way, random_state=0).fit(X, y) for way in (True, "auto"))
    assert_allclose(auto.components_, unit.components_)


@pytest.mark.filterwarnings("ignore:DCAGM stopped")
def test_probabilities_are_the_shares_where_labels_left_out_are_not_found(rng):
    """Noise mostly says nothing; rings around each other do, though no line parts them."""
    labels, doubted = np.arange(200) % 3, []
    for _ in range(12):
        X = rng.standard_normal((200, 20))
        model = DCAGM(2, max_iter=20).fit(X, np.where(np.arange(200) < 45, labels, -1))
        if model.class_doubt_ == NOTHING_FOUND:
            doubted.append(model.predict_proba(X))
            assert model.class_head_ is None
    assert len(doubted) >= 5  # of some nine in ten, with 45 labels
    for proba in doubted:
        assert_allclose(proba, np.full((200, 3), 1 / 3), atol=0.01)
        assert np.ptp(proba) > 0
    angle, ring = rng.uniform(0, 2 * np.pi, 200), 1 + 2 * (np.arange(200) % 2)
    rings = ring[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    rings += 0.1 * rng.standard_normal(rings.shape)
    assert DCAGM(2).fit(rings, np.where(np.arange(200) < 60, ring, -1)).class_doubt_ < 0.05


def wide_rows(rng, apart):
    """Rows of 60 columns, five classes with three labels each, and their means ``apart``."""
    y = np.arange(150) % 5
    X = rng.standard_normal((150, 60)) + apart * rng.standard_normal((5, 60))[y]
    return X, np.where(np.arange(150) < 15, y, -1), y


def losses_of(model, X, y):
    """Mean log loss of what is said, and of the map as it is."""
    found = [-np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()]
    model.class_sharpness_, model.class_doubt_ = 1.0, 0.0
    return [*found, -np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()]


def test_few_labels_of_noise_are_not_believed(rng):
    found = []
    for _ in range(8):
        X, labels, y = wide_rows(rng, 0.0)
        model, hidden = DCAGM(2).fit(X, labels), labels < 0
        found.append(losses_of(model, X[hidden], y[hidden]))
    # The map parts the labelled rows all the same, and would be sure of every row. Now and then
    # the few that are hidden are found by chance, and then believed.
    believed, as_they_are = np.median(found, axis=0)
    assert believed < np.log(5) + 0.5 and as_they_are > np.log(5) + 2


def test_few_labels_of_classes_far_apart_are_believed(rng):
    X, labels, y = wide_rows(rng, 2.0)
    model = DCAGM(2).fit(X, labels)
    assert model.class_sharpness_ > 0.5
    assert model.score(X, y) > 0.9


def test_what_is_believed_multiplies_the_log_odds(rng):
    X, labels, _ = wide_rows(rng, 1.0)
    model = DCAGM(2).fit(X, labels)
    model.class_head_, model.class_doubt_, model.class_sharpness_ = None, 0.0, 1.0
    whole = np.log(model.predict_proba(X))
    model.class_sharpness_ = 0.25
    odds = np.log(model.predict_proba(X))
    assert_allclose(odds - odds[:, :1], 0.25 * (whole - whole[:, :1]), atol=1e-9)


def test_many_labels_and_the_paper_are_as_they_are(rng):
    X, labels, y = wide_rows(rng, 1.0)
    assert DCAGM(2).fit(X, y).class_sharpness_ == 1.0
    assert DCAGM(2, objective="paper", tol=0.1).fit(X, labels).class_sharpness_ == 1.0


def test_few_labels_end_after_few_steps_and_say_that_they_have_settled(rng):
    X, labels, _ = wide_rows(rng, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DCAGM(2, tol=0.0).fit(X, labels)
    assert 3 < model.n_iter_ <= 10 and model.converged_  # fewer where nothing moves any more
    with pytest.warns(ConvergenceWarning):
        assert DCAGM(2, tol=0.0, max_iter=3).fit(X, labels).n_iter_ == 3


def test_copies_of_a_row_with_gaps_are_left_out_together():
    chunks, labels = np.array([-1, 3, -1, -1]), np.array([0, 0, -1, 1])
    assert_array_equal(_together(chunks, labels) == -1, [False, False, True, False])
    assert len(np.unique(_together(chunks, labels)[[0, 1, 3]])) == 3


@pytest.mark.parametrize("c", [0, 1, 2])
@pytest.mark.parametrize("gaps", [False, True])
def test_a_class_whose_rows_have_no_weight_is_no_class(c, gaps):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    if gaps:
        X[::7, 3] = np.nan
    weighted = DCAGM(2).fit(X, y, sample_weight=(y != c).astype(float))
    without = DCAGM(2).fit(X[y != c], y[y != c])
    assert weighted.classes_.tolist() == without.classes_.tolist()
    if not gaps:  # which have draws of their own, by the rows that have gaps
        assert_allclose(weighted.predict_proba(X), without.predict_proba(X), atol=1e-6)
    assert weighted.score(X[y != c], y[y != c]) > 0.9


def test_the_order_of_many_rows_without_a_label_says_nothing():
    X, truth = load_digits(return_X_y=True)
    X, truth, rng = X[:300], truth[:300], np.random.default_rng(1)
    y = np.full(300, -1)
    for k in range(10):
        y[rng.choice(np.flatnonzero(truth == k), 3, replace=False)] = k
    one = DCAGM(5).fit(X, y)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(300)
        other = DCAGM(5).fit(X[order], y[order])
        assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-6)


def test_a_row_of_weight_zero_passes_no_label_on():
    X, truth = load_wine(return_X_y=True)
    y, chunks, weights = np.full(178, -1), np.full(178, -1), np.ones(178)
    for k in range(3):
        y[np.flatnonzero(truth == k)[:4]] = k
    chunks[[0, 10, 11]], weights[0] = 0, 0.0
    some = weights > 0
    weighted = DCAGM(2).fit(X, y, sample_weight=weights, chunks=chunks)
    without = DCAGM(2).fit(X[some], y[some], chunks=chunks[some])
    assert_allclose(weighted.predict_proba(X), without.predict_proba(X), atol=1e-6)
