import json
import math
import sys
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans

import gnomon
from gnomon.estimators._targets import Coding
from gnomon.exceptions import ModelFileError
from gnomon.tools.encoding import RECORDS, Decoder, Encoder, find_record


class Estimator(BaseEstimator):
    def __init__(self, size=1, callback=None):
        self.size = size
        self.callback = callback


class Foreign(NamedTuple):
    a: int


@pytest.fixture(autouse=True)
def public(monkeypatch):
    monkeypatch.setitem(gnomon._HOMES, "Estimator", __name__)
    monkeypatch.setattr(gnomon, "Estimator", Estimator, raising=False)


def there_and_back(value):
    encoder = Encoder()
    tree = encoder.encode(value, "value")
    return Decoder(encoder.arrays).decode(json.loads(json.dumps(tree, allow_nan=False)))


@pytest.mark.parametrize(
    "value",
    [None, True, 3, -(2**70), 0.1, 1e308, "", "é\u2028\x00", [], [1, "a"], (1, (2,)), {"a": [1]}],
    ids=repr,
)
def test_plain_values_come_back_with_their_types(value):
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_json_lacks_come_back(value):
    assert repr(there_and_back(value)) == repr(value)


def test_keys_of_a_dictionary_keep_their_type():
    assert there_and_back({1: "a", (1, 2): None}) == {1: "a", (1, 2): None}


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u8", "?"])
def test_numbers_come_back_bit_for_bit(dtype, rng):
    array = rng.integers(0, 2, size=(3, 4)).astype(dtype)
    back = there_and_back(array)
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()


def test_not_a_number_keeps_its_bits():
    array = np.array([np.nan, -0.0, np.inf])
    assert there_and_back(array).tobytes() == array.tobytes()


def test_memory_order_is_kept(rng):
    array = np.asfortranarray(rng.normal(size=(4, 3)))
    back = there_and_back(array)
    assert_array_equal(back, array)
    assert back.flags.f_contiguous


def test_views_and_foreign_byte_order_keep_their_values(rng):
    array = rng.normal(size=(6, 5))
    assert_array_equal(there_and_back(array[::2, 1::2]), array[::2, 1::2])
    assert_array_equal(there_and_back(array.astype(">f8")), array)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 3, 4)])
def test_shapes_are_kept(shape):
    assert there_and_back(np.zeros(shape)).shape == shape


@pytest.mark.parametrize(
    "array",
    [
        np.array(["b", "aé"]),
        np.array([["a"], ["bc"]]),
        np.array(["a", None, 3, 0.5], dtype=object),
        np.array([], dtype=str),
        np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_strings_objects_and_times_come_back(array):
    back = there_and_back(array)
    assert back.dtype.kind == array.dtype.kind
    assert_array_equal(back, array)


def test_numpy_scalars_keep_their_type():
    back = there_and_back(np.float32(0.1))
    assert type(back) is np.float32
    assert back == np.float32(0.1)


def test_a_long_list_of_floats_stays_a_list():
    value = [0.1 * i for i in range(100)]
    back = there_and_back(value)
    assert back == value
    assert type(back[0]) is float


@pytest.mark.parametrize("build", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_arrays_come_back(build, rng):
    matrix = build(rng.poisson(0.3, size=(5, 4)).astype(float))
    back = there_and_back(matrix)
    assert type(back) is type(matrix)
    assert_array_equal(back.toarray(), matrix.toarray())


def test_records_of_gnomon_come_back():
    coding = Coding("numeric", np.empty(0), np.ones(2), np.ones(2), False)
    back = there_and_back(coding)
    assert type(back) is Coding
    assert_array_equal(back.center, coding.center)


def test_every_record_is_found_where_it_is_said_to_be():
    for name in RECORDS:
        assert find_record(name).__name__ == name


@pytest.mark.parametrize(
    "value",
    [
        slice(1, 5),
        slice(None),
        slice("a", "c"),
        np.dtype("f4"),
        np.dtype("O"),
        np.float64,
        int,
        str,
    ],
    ids=repr,
)
def test_slices_and_types_come_back(value):
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_an_estimator_comes_back_with_parameters_and_attributes():
    model = Estimator(size=3)
    model.inner_ = Estimator(size=np.int64(4))
    back = there_and_back(model)
    assert back.size == 3
    assert back.inner_.size == 4


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (len, "builtin_function_or_method"),
        (KMeans(), "KMeans is neither a model of gnomon nor one of scikit-learn's classes"),
        (Foreign(1), "is not a record of gnomon"),
        (np.array([1j]), "complex128"),
        (np.ma.masked_array([1.0]), "masked"),
        (np.array([len], dtype=object), "an entry of value"),
        ({1, 2}, "builtins.set"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_unknown_is_refused_when_saving(value, message):
    with pytest.raises(ModelFileError, match=message):
        there_and_back(value)


def test_the_error_names_the_attribute():
    with pytest.raises(ModelFileError, match=r"Estimator\.size is a builtins\.builtin"):
        Encoder().encode(Estimator(size=print), "Estimator")


def test_a_class_of_the_same_name_is_not_taken_for_ours():
    impostor = type("Estimator", (BaseEstimator,), {})
    with pytest.raises(ModelFileError, match="not the Estimator that files hold"):
        there_and_back(impostor())


BAD_CSR = {
    "sparse": "csr",
    "shape": [2, 2],
    "old": False,
    "parts": {
        "data": {"array": "x"},
        "indices": {"objects": [0, 999999], "shape": [2]},
        "indptr": {"objects": [0, 1, 2], "shape": [3]},
    },
}


@pytest.mark.parametrize(
    "node",
    [
        {"pickle": "gASVAAAA"},
        {},
        {"estimator": "os.system", "params": {}, "attributes": {}},
        {"estimator": "datasets", "params": {}, "attributes": {}},
        {"estimator": "__getattr__", "params": {}, "attributes": {}},
        {"estimator": "Estimator", "params": {"command": "id"}, "attributes": {}},
        {"estimator": "Estimator", "params": {}, "attributes": {"get_params": 1}},
        {"estimator": "Estimator", "params": {}, "attributes": {"__class__": 1}},
        {"estimator": "Estimator", "params": {}, "attributes": {"__dict__": {"dict": []}}},
        {"estimator": "Estimator", "params": {}, "attributes": {"__doc__": "text"}},
        {"estimator": "Estimator", "params": {}, "attributes": {"__reduce__": "os.system"}},
        {"estimator": "Estimator", "params": {}, "attributes": {"a b": 1}},
        {"estimator": ["Estimator"], "params": {}, "attributes": {}},
        {"estimator": "Estimator", "params": {}, "attributes": {1: 1}},
        {"estimator": "TableModel", "params": {"saved": 1}, "attributes": {}},
        {"estimator": "Pipeline", "params": {"steps": 1}, "attributes": {}},
        {"slice": [1, 2, 3, 4]},
        {"slice": [1.5, 2, 3]},
        {"slice": "abc"},
        {"type": "system"},
        {"type": ["float"]},
        {"dtype": "V16"},
        {"dtype": "M8[ns]"},
        {"dtype": None},
        {"record": "os:stat_result", "fields": {}},
        {"record": "gnomon.tools.modelfile:ModelFile", "fields": {}},
        {"record": "Run", "fields": {}},
        {"record": "Coding", "fields": {"kind": "classes"}},
        {"record": ["Coding"], "fields": {}},
        {"array": "missing"},
        {"strings": ["a", 1], "shape": [2]},
        {"objects": [1], "shape": [1000000000000]},
        {"time": {"array": "x"}, "dtype": "O"},
        BAD_CSR,
    ],
    ids=repr,
)
def test_forged_trees_are_refused(node):
    errors = (ModelFileError, ValueError, TypeError, KeyError)
    with pytest.raises(errors):
        Decoder({"x": np.ones(2)}).decode(node)


def test_looking_up_a_name_imports_nothing_but_gnomon(monkeypatch):
    trap = ModuleType("trap")
    monkeypatch.setitem(sys.modules, "trap", trap)
    for home in ("trap:Run", "trap:Coding", "trap"):
        with pytest.raises(ModelFileError):
            Decoder({}).decode({"record": home, "fields": {}})
