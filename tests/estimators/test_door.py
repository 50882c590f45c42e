import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator

from gnomon import from_loaders
from gnomon.estimators._door import (
    check_dense,
    check_integer,
    check_option,
    check_real,
    check_strength,
    count,
    generator,
    n_rows,
    read_data,
    read_numbers,
    read_weights,
    repeatable,
    take_rows,
)


class Model(BaseEstimator):
    pass


ROWS = np.arange(12.0).reshape(4, 3)


def read(X, model=None, fitting=True, **options):
    return read_data(Model() if model is None else model, X, fitting=fitting, **options)


# X


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_are_read_without_a_copy(dtype):
    X = ROWS.astype(dtype)
    assert read(X) is X


def test_integers_become_doubles():
    assert read(ROWS.astype(np.int8)).dtype == np.float64


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array])
def test_compressed_rows_and_columns_stay_as_they_are(container):
    assert isinstance(read(container(ROWS)), container)


def test_other_sparse_forms_become_rows():
    assert read(sparse.coo_array(ROWS)).format == "csr"


def test_masked_entries_are_missing_values():
    X = np.ma.array(ROWS.astype(int), mask=ROWS == 5)
    assert_array_equal(np.isnan(read(X)), ROWS == 5)


def test_nan_is_refused_where_gaps_are():
    X = np.where(ROWS == 5, np.nan, ROWS)
    assert np.isnan(read(X)).sum() == 1
    with pytest.raises(ValueError, match="Input X contains NaN"):
        read(X, allow_nan=False)


def test_nan_in_sparse_rows_is_refused():
    X = sparse.csr_array(np.where(ROWS == 5, np.nan, ROWS))
    with pytest.raises(ValueError, match="sparse; missing values are accepted in dense X only"):
        read(X)


def test_sparse_rows_are_refused_where_they_cannot_be_used():
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        read(sparse.csr_array(ROWS), accept_sparse=False)


def test_dates_are_refused():
    dates = np.array([["2020-01-01", "NaT"], ["2020-01-03", "2020-01-02"]], dtype="datetime64[D]")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": dates[:, 0].astype("datetime64[s]")})
    for X in (dates, dates - dates[0, 0], frame):
        with pytest.raises(ValueError, match="X has dates or times; accepted are numbers"):
            read(X)


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="contains infinity"):
        read(np.where(ROWS == 5, np.inf, ROWS))


def test_too_few_rows_are_refused_with_their_number():
    with pytest.raises(ValueError, match=r"1 sample.* minimum of 2"):
        read(ROWS[:1], min_samples=2)


def test_a_fit_keeps_the_number_of_features_and_new_rows_must_have_it():
    model = Model()
    read(ROWS, model)
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 2 features, but Model is expecting 3"):
        read(ROWS[:, :2], model, fitting=False)


def test_rows_in_blocks_are_counted_alike():
    model, X = Model(), from_loaders([lambda: ROWS])
    assert read(X, model) is X
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 2 features, but Model is expecting 3"):
        read(from_loaders([lambda: ROWS[:, :2]]), model, fitting=False)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda X: X[0], "X has 1 dimensions; accepted is a dask array with 2"),
        (lambda X: X / 0, "X is a dask array with infinity, or with NaN in sparse chunks"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_dask_arrays_that_cannot_be_used_are_refused(change, message):
    X = pytest.importorskip("dask.array").from_array(ROWS, chunks=2)
    with pytest.raises(ValueError, match=message):
        read(change(X))


def test_dask_arrays_of_integers_are_read():
    X = pytest.importorskip("dask.array").from_array(ROWS.astype(int), chunks=2)
    assert_array_equal(np.concatenate(list(read(X).dense_blocks())), ROWS)


def test_only_arrays_can_have_gaps_to_fill():
    check_dense(ROWS)
    with pytest.raises(TypeError, match="X is sparse; impute accepts an array"):
        check_dense(sparse.csr_array(ROWS))
    with pytest.raises(TypeError, match="X is in blocks; impute accepts an array"):
        check_dense(from_loaders([lambda: ROWS]))


def frame(X):
    return pytest.importorskip("pandas").DataFrame(X, index=list("dcba"))


TABLES = {
    "array": np.asarray,
    "list": np.ndarray.tolist,
    "csr": sparse.csr_array,
    "coo": sparse.coo_array,
    "frame": frame,
    "blocks": lambda X: from_loaders([lambda: X[:1], lambda: X[1:]]),
}


@pytest.mark.parametrize("keep", [[False, True, False, True], [1, 3]])
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_rows_are_taken_by_mask_or_index_from_every_table(table, keep):
    X = table(ROWS)
    part = take_rows(X, keep)
    assert n_rows(X) == 4 and n_rows(part) == 2
    assert_array_equal(part.toarray() if sparse.issparse(part) else part, ROWS[[1, 3]])


# Weights


def test_no_weights_stay_none():
    assert read_weights(None, 4) is None


def test_one_weight_is_that_of_all_rows():
    assert_array_equal(read_weights(2, 3), [2.0, 2.0, 2.0])


def test_weights_are_floats():
    weights = read_weights([0, 1, 2], 3)
    assert weights.dtype == np.float64
    assert_array_equal(weights, [0, 1, 2])


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1, 2], r"sample_weight has shape \(2,\); accepted is \(3,\)"),
        ([[1, 2, 3]], r"sample_weight has shape \(1, 3\); accepted is \(3,\)"),
        ([1, -2, 3], r"sample_weight has the value -2.0; accepted are numbers >= 0"),
        ([0, 0, 0], r"sample_weight is zero in every row; accepted are weights with a sum > 0"),
        ([1, np.nan, 1], "sample_weight contains NaN"),
        ([1, np.inf, 1], "sample_weight contains infinity"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        read_weights(weights, 3)


# Numbers and options


@pytest.mark.parametrize("value", [2, np.int32(2)])
def test_an_integer_is_a_plain_int(value):
    assert type(check_integer("k", value, low=1)) is int


@pytest.mark.parametrize("value", [True, 2.0, "2", None, np.bool_(True)])
def test_what_is_no_integer_is_named_with_its_type(value):
    with pytest.raises(
        TypeError, match=f"k must be an integer, got .* of type {type(value).__name__}"
    ):
        check_integer("k", value, low=0)


def test_an_integer_out_of_range_is_named_with_the_range():
    with pytest.raises(ValueError, match="k == 0; accepted are integers >= 1"):
        check_integer("k", 0, low=1)
    with pytest.raises(ValueError, match="k == 9; accepted are integers from 1 to 4, the columns"):
        check_integer("k", 9, low=1, high=4, high_is=", the columns")


@pytest.mark.parametrize("value", [2, 0.5, np.float32(0.5)])
def test_a_number_is_a_plain_float(value):
    assert type(check_real("tol", value)) is float


@pytest.mark.parametrize("value", [True, "1", None, 1j])
def test_what_is_no_number_is_named_with_its_type(value):
    with pytest.raises(
        TypeError, match=f"tol must be a number, got .* of type {type(value).__name__}"
    ):
        check_real("tol", value)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf])
def test_a_number_out_of_range_is_named_with_the_range(value):
    with pytest.raises(ValueError, match=rf"tol == {value}; accepted are numbers in \[0, 1\]"):
        check_real("tol", value, low=0, high=1)


def test_an_open_end_is_out_of_range():
    assert check_real("tol", 0, low=0) == 0
    with pytest.raises(ValueError, match=r"tol == 0; accepted are numbers in \(0, inf\]"):
        check_real("tol", 0, low=0, open_low=True)


@pytest.mark.parametrize("value", ["auto", "likelihood", 0, 0.5, 1])
def test_strengths_are_words_or_shares(value):
    check_strength(value)


@pytest.mark.parametrize("value", [None, "strong"])
def test_other_strengths_are_refused(value):
    with pytest.raises(ValueError, match=f"supervision == {value!r}; accepted are 'auto', 'likel"):
        check_strength(value)
    with pytest.raises(ValueError, match=r"supervision == 2; accepted are numbers in \[0, 1\]"):
        check_strength(2)


@pytest.mark.parametrize("value", ["em", np.str_("em"), None, True])
def test_options_are_taken(value):
    assert check_option("solver", value, ("em", None, True)) is value


@pytest.mark.parametrize("value", ["EM", 1, np.array(["em"]), ["em"]])
def test_other_options_are_refused(value):
    with pytest.raises(ValueError, match=r"solver == .*; accepted are 'em', None, True$"):
        check_option("solver", value, ("em", None, True))


CLASSES = ["a", "b", "c"]


@pytest.mark.parametrize(
    "value, numbers",
    [(2, [2, 2, 2]), ({"c": 3, "a": 1, "b": 2}, [1, 2, 3]), (np.array([4, 5, 6]), [4, 5, 6])],
)
def test_numbers_for_classes_come_in_three_forms(value, numbers):
    assert read_numbers("n", value, CLASSES) == numbers


@pytest.mark.parametrize(
    "value, error, message",
    [
        ({"a": 1, "b": 2}, ValueError, "n has no number for class 'c'; a dict must name every"),
        ([1, 2], ValueError, "n has 2 numbers; accepted is one for each class, 3 in all"),
        ([1, 2, 0], ValueError, "n == 0; accepted are integers >= 1"),
        (0, ValueError, "n == 0; accepted are integers >= 1"),
        ([1, 2, 2.5], TypeError, "n must be an integer, got 2.5 of type float"),
        (True, TypeError, "n must be an integer, got True of type bool"),
        ("two", TypeError, "n must be an integer, a dict or a sequence of integers, got 'two'"),
        (1.5, TypeError, "n must be an integer, a dict or a sequence of integers, got 1.5"),
    ],
)
def test_wrong_numbers_for_classes_are_refused(value, error, message):
    with pytest.raises(error, match=message):
        read_numbers("n", value, CLASSES)


# Chance


def draws(rng):
    return rng.random(3).tolist()


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(3)
    assert generator(rng) is rng and repeatable(rng) is rng


def test_a_seed_gives_the_generator_of_numpy():
    assert draws(generator(7)) == draws(np.random.default_rng(7)) == draws(generator(np.int64(7)))


def test_a_random_state_seeds_another_generator_each_time():
    state = np.random.RandomState(0)
    first, second = draws(generator(state)), draws(generator(state))
    assert first != second
    assert draws(generator(np.random.RandomState(0))) == first


def test_without_a_seed_chance_differs_where_it_is_asked_for():
    assert draws(generator(None)) != draws(generator(None))


def test_without_a_seed_a_repeatable_fit_takes_zero():
    assert draws(repeatable(None)) == draws(repeatable(0)) == draws(generator(0))


@pytest.mark.parametrize("value", [-1, 2**40, 1.5, "seed"])
def test_other_seeds_are_refused(value):
    with pytest.raises(ValueError, match=f"random_state == {value!r}; accepted are None, integers"):
        generator(value)


@pytest.mark.parametrize(
    "number, nouns, expected",
    [
        (1, ("row",), "1 row"),
        (0, ("row",), "0 rows"),
        (2000, ("labelled row",), "2,000 labelled rows"),
        (np.int64(1), ("gap was", "gaps were"), "1 gap was"),
        (3, ("entry", "entries"), "3 entries"),
    ],
)
def test_a_number_goes_with_its_noun(number, nouns, expected):
    assert count(number, *nouns) == expected
