"""Every part of a small model file replaced, cut or flipped: refused, or the same answer."""

import copy
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gnomon
from gnomon.exceptions import ModelFileError
from gnomon.tools import modelfile

safetensors_numpy = pytest.importorskip("safetensors.numpy")

# What no field of a header means, and what some mean to a reader that trusts them.
NUMBERS = (-1, 0, 1, 7, 2**31, 2**32 + 8, 2**53, 2**63 - 1, 2**64, 10**30)
OTHERS = (None, True, 1.5, 1e308, "", "x", "../../etc/passwd", [], [[]], [-1], {}, {"a": 1})
# Tags of a document with something else behind them than they announce.
TAGS = [
    {"array": "nobody"},
    {"scalar": 1},
    {"float": "1"},
    {"tuple": 5},
    {"dict": [[[], 1]]},
    {"dict": 3},
    {"record": "Coding", "fields": {}},
    {"record": "subprocess.Popen", "fields": {"args": "id"}},
    {"estimator": "PPCA", "params": {}, "attributes": {"__class__": 1}},
    {"strings": ["a"], "shape": [10**12]},
    {"objects": [{"dict": []}], "shape": [-1, 0]},
    {"time": {"array": "a0"}, "dtype": "M8[s]"},
    {"sparse": "csr", "shape": [2, 2], "old": False, "parts": {}},
    {"dtype": "O"},
    {"type": "eval"},
    {"slice": [0, 10**9, {}]},
]


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((12, 3)).round(2)


@pytest.fixture
def small(X, tmp_path):
    """A small model file, and what its model says."""
    model = gnomon.PPCA(1).fit(X)
    path = modelfile.save(model, tmp_path / "model.gnomon", notes={"a": 1})
    return path, model.transform(X)


def outcome(path):
    """The model, or None where the file is refused; anything else is a fault of the reader."""
    try:
        return modelfile.load(path)
    except ModelFileError:
        return None


def test_a_file_is_refused_wherever_it_is_cut(small):
    path, _ = small
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        assert outcome(path) is None, size


def flipped(content, bits):
    for bit in bits:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        yield bit, bytes(changed)


def check_flips(small, X, bits):
    path, expected = small
    content = path.read_bytes()
    for bit, changed in flipped(content, bits(8 * len(content))):
        path.write_bytes(changed)
        model = outcome(path)
        if model is not None:
            assert_array_equal(model.transform(X), expected, err_msg=str(bit))


def test_a_file_with_a_flipped_bit_is_refused_or_answers_alike(small, X):
    check_flips(small, X, lambda n: range(int(n % 7), n, 7))


@pytest.mark.slow
def test_a_file_with_any_flipped_bit_is_refused_or_answers_alike(small, X):
    check_flips(small, X, range)


def places(tree, path=()):
    """The way to every node of a tree of JSON, the root without."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, part in pairs:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


def changed(tree, path, value):
    """The tree with another value at a place; the value ... takes the place out."""
    tree = copy.deepcopy(tree)
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return tree


def header_of(content):
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def with_header(header, rest):
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + rest


def test_a_file_with_another_header_is_refused_or_answers_alike(small, X):
    path, expected = small
    header, rest = header_of(path.read_bytes())
    every = [place for place in places(header) if place[0] != "__metadata__"]
    assert len(every) > 12
    values = (..., *NUMBERS, *OTHERS, "F32", "I64", "BOOL", [0, 2**63], [8, 0], [2**40, 2**40])
    for place in [*every, ("__metadata__",), ("__metadata__", "gnomon")]:
        for value in values:
            path.write_bytes(with_header(changed(header, place, value), rest))
            model = outcome(path)
            if model is not None:
                assert_array_equal(model.transform(X), expected, err_msg=f"{place} {value}")


def test_a_file_with_other_names_in_its_header_is_refused(small):
    path, _ = small
    header, rest = header_of(path.read_bytes())
    first = next(name for name in header if name != "__metadata__")
    for name in ("", "x", "__metadata__ ", "../a", "a" * 10**4, "\x1b[2J"):
        renamed = {name if key == first else key: part for key, part in header.items()}
        path.write_bytes(with_header(renamed, rest))
        assert outcome(path) is None
    for more in (10**2, 10**4):
        crowd = {
            f"n{i}": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]} for i in range(more)
        }
        path.write_bytes(with_header(header | crowd, rest))
        assert outcome(path) is None


@pytest.mark.parametrize("size", [0, 1, 7, 2**31, 2**63, 2**64 - 1])
def test_a_file_that_lies_about_its_header_is_refused(small, size):
    path, _ = small
    path.write_bytes(size.to_bytes(8, "little") + path.read_bytes()[8:])
    assert outcome(path) is None


def fitted(name, X):
    """Models whose files hold between them every kind of value."""
    y = np.where(X[:, 0] > 0, "up", "down")
    ring = sparse.csr_array(np.roll(np.eye(len(X)), 1, axis=0))
    made = {
        "SPPCA": lambda: gnomon.SPPCA(1, random_state=0).fit(X, y),
        "PRPCA": lambda: gnomon.PRPCA(1, relation="learnt", random_state=0).fit(X, links=ring),
        "BSDR": lambda: gnomon.BSDR(1, max_iter=3, tol=1e9).fit(X, y),
        "Pipeline": lambda: make_pipeline(StandardScaler(), gnomon.PPCA(1)).fit(X),
    }
    return made[name]()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["SPPCA", "PRPCA", "BSDR", "Pipeline"])
def test_a_forged_document_is_refused_or_makes_a_model(name, X, tmp_path):
    """Whoever forges a file makes its checksum right: what is built may be wrong, no more."""
    path = modelfile.save(fitted(name, X), tmp_path / "model.gnomon", notes={"a": [1.5, "b"]})
    document, arrays = modelfile.read(path, lambda file: (file.document, file.arrays))
    every, values = list(places(document)), [..., *NUMBERS, *OTHERS, *TAGS]
    rng = np.random.default_rng(len(name))
    chosen = rng.permutation([(i, j) for i in range(len(every)) for j in range(len(values))])
    for i, j in chosen[:400]:
        text = json.dumps(changed(document, every[i], values[j]))
        path.write_bytes(modelfile._pack(text, arrays))
        outcome(path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["PRPCA"])
def test_forged_arrays_are_refused_or_make_a_model(name, X, tmp_path):
    """Arrays of another type, shape or order, with a right checksum."""
    path = modelfile.save(fitted(name, X), tmp_path / "model.gnomon")
    document, arrays = modelfile.read(path, lambda file: (file.document, file.arrays))
    text = json.dumps(document)
    for key, array in arrays.items():
        large = np.full_like(array, 1) * (2**30 if array.dtype.kind in "iu" else 1)
        others = [array[:0], array.ravel()[:1], array[None], array.astype("f4"), large, -large]
        for other in [*others, array.astype("i8"), array.astype(bool), array.astype("u1")]:
            path.write_bytes(modelfile._pack(text, arrays | {key: np.ascontiguousarray(other)}))
            outcome(path)
