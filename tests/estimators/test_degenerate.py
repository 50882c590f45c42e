"""Data at the limits of sense, for every public estimator: a right result or a clear error."""

import numpy as np
import pytest
from every import DEFAULTS, fit, gap, outcome, outputs, ring, rows, span
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone, is_regressor

from gnomon import PPCA, PRPCA, SPPCA

X, CLASSES = rows()
SUPERVISED = [n for n in DEFAULTS if hasattr(DEFAULTS[n], "predict")]
OF_CLASSES = [n for n in SUPERVISED if not is_regressor(DEFAULTS[n])]
LEARNS_WITHOUT_LABELS = ("SPPCA", "KernelSPPCA")
PRIOR_OF_EACH_WEIGHT = ("BSDR", "BSDRRegressor", "MultinomialProbit")
# DCAGM has maxima within .05 of each other, of which either fit may find another.
NEAR = dict.fromkeys(PRIOR_OF_EACH_WEIGHT, 0.2) | {"DCAGM": 0.1}


def fitted(name, data, known=None):
    model = clone(DEFAULTS[name])
    return fit(model, data, outputs(model, X, CLASSES) if known is None else known)


@pytest.mark.parametrize("name", DEFAULTS)
def test_columns_that_occur_twice_do_not_turn_the_map(name):
    """They may stretch it; with a prior of each weight two weights are more than one of the sum."""
    twice = np.hstack([X, X])
    assert gap(span(fitted(name, twice), twice), span(fitted(name, X), X)) < NEAR.get(name, 0.02)


@pytest.mark.parametrize("name", DEFAULTS)
def test_an_offset_of_a_hundred_million_in_each_column_does_not_matter(name):
    far = X + 1e8 * np.array([1, -1, 1, -3, 2])
    expected = outcome(fitted(name, X), X)
    assert gap(outcome(fitted(name, far), far), expected) < 1e-4


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("name", DEFAULTS)
def test_rows_of_low_rank_have_a_finite_map_of_that_rank(name, rank):
    """Two components of rows that lie on a line or in a plane, without any noise; or fewer."""
    U, lengths, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    flat = (U[:, :rank] * lengths[:rank]) @ Vt[:rank]
    try:
        found = outcome(fitted(name, flat), flat)
    except ValueError as error:
        assert "n_components" in str(error) and "rank" in str(error)
    else:
        assert np.isfinite(found).all()
        if hasattr(DEFAULTS[name], "transform") and not name.startswith("Kernel"):
            assert np.linalg.matrix_rank(found, tol=1e-6 * np.linalg.norm(found, 2)) <= rank


@pytest.mark.parametrize("dtype, near", [(np.float16, 5e-2), (np.longdouble, 1e-8)])
@pytest.mark.parametrize("name", DEFAULTS)
def test_numbers_of_other_lengths_give_the_same_map(name, dtype, near):
    expected = outcome(fitted(name, X), X)
    assert gap(outcome(fitted(name, X.astype(dtype)), X.astype(dtype)), expected) < near


@pytest.mark.parametrize("name", DEFAULTS)
def test_sparse_rows_with_long_indices_are_the_same_rows(name):
    some = np.where(np.abs(X) > 1, X, 0)
    long = sparse.csr_array(some)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    model = DEFAULTS[name]
    known = outputs(model, X, CLASSES)
    short = fit(clone(model), sparse.csr_array(some), known)
    assert_allclose(outcome(fitted(name, long), some), outcome(short, some), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", DEFAULTS)
def test_frames_with_nulls_are_rows_with_gaps_or_are_refused(name):
    pandas = pytest.importorskip("pandas")
    holes = X.copy()
    holes[[3, 17], [0, 2]] = np.nan
    frame = pandas.DataFrame(holes, columns=list("abcde")).convert_dtypes()
    if DEFAULTS[name].__sklearn_tags__().input_tags.allow_nan:
        expected = outcome(fitted(name, holes), holes)
        assert gap(outcome(fitted(name, frame), frame), expected) < 1e-8
    else:
        with pytest.raises(ValueError, match="NaN"):
            fitted(name, frame)


@pytest.mark.parametrize("name", DEFAULTS)
def test_rows_that_do_not_differ_are_refused_in_words(name):
    for value in (0.0, 0.1, 1e8 / 3):
        with pytest.raises(ValueError, match="X"):
            fitted(name, np.full_like(X, value))


# Outputs


@pytest.mark.parametrize("name", SUPERVISED)
def test_outputs_of_another_length_or_without_an_end_are_named(name):
    known = outputs(DEFAULTS[name], X, CLASSES)["y"]
    with pytest.raises(ValueError, match=r"y|samples"):
        fitted(name, X, {"y": known[:-1]})
    endless = known.astype(float)
    endless[4] = np.inf
    with pytest.raises(ValueError, match=r"y|infinity"):
        fitted(name, X, {"y": endless})


@pytest.mark.one_sample(
    "of one label a class DCAGM gives two clusters each other's names in 1 of 40"
)
@pytest.mark.parametrize("name", OF_CLASSES)
def test_one_labelled_row_of_each_class_is_enough(name):
    X, classes = rows()
    few = np.where(np.arange(len(X)) < 3, classes, -1)
    model = fitted(name, X, {"y": few})
    assert list(model.classes_) == [0, 1, 2]
    assert np.mean(model.predict(X) == classes) > 0.6


@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_class_that_no_row_has_is_not_there(name):
    known = np.where(CLASSES == 1, -1, CLASSES)
    model = fitted(name, X, {"y": known})
    assert list(model.classes_) == [0, 2]
    assert set(model.predict(X)) <= {0, 2}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_one_class_alone_is_a_map_or_is_refused(name):
    known = np.where(CLASSES == 1, 5, -1)
    if name in LEARNS_WITHOUT_LABELS:
        model = fitted(name, X, {"y": known})
        assert set(model.predict(X)) == {5}
        assert_allclose(model.predict_proba(X), 1.0)
    else:
        with pytest.raises(ValueError, match="class"):
            fitted(name, X, {"y": known})


@pytest.mark.parametrize("name", OF_CLASSES)
def test_no_label_at_all_is_ppca_or_is_refused(name):
    if name == "SPPCA":
        whole, none = fit(PPCA(2), X, {}), {"y": np.full(len(X), -1)}
        assert gap(span(fitted(name, X, none), X), span(whole, X)) < 1e-6
        by_likelihood = clone(DEFAULTS[name]).set_params(supervision="likelihood")
        assert gap(outcome(fit(by_likelihood, X, none), X), outcome(whole, X)) < 1e-6
    elif name not in LEARNS_WITHOUT_LABELS:
        with pytest.raises(ValueError, match=r"label|class"):
            fitted(name, X, {"y": np.full(len(X), -1)})


# Links


@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
@pytest.mark.parametrize("dtype", [np.int8, bool, np.uint8, np.int64])
def test_a_hub_of_more_links_than_a_small_integer_counts_is_counted(relation, dtype):
    n = 200
    data, _ = rows(n)
    hub = sparse.lil_array((n, n))
    hub[0, 1:] = 1
    hub[1:, 0] = 1
    model = PRPCA(2, relation=relation, random_state=0)
    expected = outcome(fit(clone(model), data, {"links": sparse.csr_array(hub)}), data)
    small = sparse.csr_array(hub).astype(dtype)
    assert gap(outcome(fit(clone(model), data, {"links": small}), data), expected) < 1e-9


GRAPHS = {
    "no links": np.zeros((45, 45)),
    "one link": np.eye(45, k=1) * (np.arange(45) == 0)[:, None],
    "a perfect matching": np.kron(np.eye(23), [[0, 1], [0, 0]])[:45, :45],
    "two cliques": np.kron(np.eye(2), np.ones((23, 23)))[:45, :45] - np.eye(45),
    "two sides": np.kron([[0, 1], [1, 0]], np.ones((23, 23)))[:45, :45],
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_graphs_without_shape_have_a_map_that_direction_does_not_change(relation, graph):
    A, model = sparse.csr_array(GRAPHS[graph]), PRPCA(2, relation=relation, random_state=0)
    found = outcome(fit(clone(model), X, {"links": A}), X)
    assert np.isfinite(found).all() and np.abs(found).max() > 0
    assert gap(outcome(fit(clone(model), X, {"links": A.T.tocsr()}), X), found) < 1e-8


def test_a_complete_graph_has_the_map_of_ppca_unless_it_makes_all_rows_one():
    """It mixes each row with the mean of all, which changes their lengths alone."""
    everyone = {"links": sparse.csr_array(1 - np.eye(len(X)))}
    expected = outcome(PPCA(2).fit(X), X)
    for relation in ("paper", "learnt"):
        found = outcome(fit(PRPCA(2, relation=relation), X, everyone), X)
        length = np.linalg.norm(found) / np.linalg.norm(expected)
        assert gap(found / length, expected) < 1e-10
    with pytest.raises(ValueError, match="no variation left once its rows are mixed"):
        fit(PRPCA(2, relation="filter"), X, everyone)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_of_links_that_are_no_weights_are_refused(weight):
    A = ring(len(X))
    A.data[7] = weight
    with pytest.raises(ValueError, match=r"adjacency has .* weights"):
        fit(PRPCA(2), X, {"links": A})


IN_ANOTHER_UNIT = [
    (PPCA(2), {}),
    (PPCA(2, prior="ard"), {}),
    (SPPCA(2, supervision="likelihood"), {"y": 1}),
    (SPPCA(2, supervision="likelihood", noise="per_output"), {"y": 1}),
    (SPPCA(2, supervision="likelihood", likelihood="probit"), {"y": 0}),
    (SPPCA(2, supervision=0.5), {"y": 1}),
]


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize(("model", "known"), IN_ANOTHER_UNIT, ids=str)
def test_a_fit_takes_the_same_steps_in_another_unit(model, known, holes, rng):
    """What mixes steps, or decides where they end, must not have a unit of its own."""
    Z = rng.normal(size=(80, 2)) * [3, 2]
    X = Z @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(80, 6))
    numbers = np.where(np.arange(80) < 40, X[:, 0] + rng.normal(size=80), np.nan)
    outputs = [(numbers > 0) - 1 * np.isnan(numbers), np.column_stack([numbers, numbers**2])]
    X[rng.random(X.shape) < 0.2 * holes] = np.nan

    def fitted(unit, unit_of_y):
        units = {"y": unit_of_y if known.get("y") else 1}
        ours = {name: outputs[one] * units[name] for name, one in known.items()}
        found = clone(model).fit(X * unit, **ours)
        return found.n_iter_, span(found, X * unit)

    steps, expected = fitted(1.0, 1.0)
    for unit, unit_of_y in ((1e4, 1.0), (1e-6, 1.0), (1.0, 1e3)):
        n_iter, found = fitted(unit, unit_of_y)
        assert n_iter == steps
        assert gap(found, expected) < 1e-4
