"""Values as a JSON tree plus named arrays, and back.

Numbers, strings, None, booleans and lists stand for themselves; everything else is an object
with one tag that says how to rebuild it. No tag names code: estimators are looked up among
gnomon's public names and the classes of scikit-learn that `pipelines` lists, records among those
of `RECORDS`.
"""

import math
import re
from importlib import import_module
from inspect import signature
from types import MappingProxyType

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

import gnomon
from gnomon.exceptions import ModelFileError
from gnomon.tools import pipelines

# Objectives are long lists of numbers: as an array they are exact and small.
LONG_LIST = 16
# What watches a fit is no part of the model: attributes, and a parameter, which is None in a file.
NOT_FITTED = ("_skl_callbacks", "_parent_callback_ctx")
WATCHING = ("callback",)
# Bytes that all arrays of strings of a file may take: each entry has room for the longest one.
MOST_STRING_BYTES = 2**30
# Booleans, integers and floats of so many bytes are what safetensors holds.
STORED_KINDS = "biuf"
# Bytes of a number: wider ones differ between machines.
STORED_SIZES = (1, 2, 4, 8)
SPARSE_PARTS = {"csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr")}
# The named tuples that fitted models hold, by the names that files have for them: where a tuple
# is defined may change, its name here and its fields may not.
RECORDS = {
    "ClassHead": "gnomon.estimators._heads",
    "Coding": "gnomon.estimators._targets",
    "Filling": "gnomon.models.gaussian.filling",
    "Inputs": "gnomon.models.bsdr.inputs",
    "LinkedRows": "gnomon.models.strength.links",
    "Moments": "gnomon.linalg.moments",
    "NumberHead": "gnomon.models.strength.numbers",
    "Spanned": "gnomon.models.bsdr.inputs",
}
# Types of numbers as scikit-learn takes them for a parameter, by the names that files have.
TYPES = {cls.__name__: cls for cls in (bool, int, float, str, np.float32, np.float64)} | {
    f"{kind}{bits}": getattr(np, f"{kind}{bits}")
    for kind in ("int", "uint")
    for bits in (8, 16, 32, 64)
}
# Of a parameter that is gone: any value it had is neutral.
ANY = object()
ATTRIBUTE = re.compile(r"_?[A-Za-z][A-Za-z0-9_]*")


class Encoder:
    """Turns values into a JSON tree; collects the arrays on the way."""

    def __init__(self):
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value, where):
        """The tree of a value; ``where`` names it in the error if it cannot be stored."""
        for accepts, encode in self._rules():
            if accepts(value):
                return encode(value, where)
        raise ModelFileError(
            f"{where} is {_describe(value)}, which a model file does not hold; accepted are "
            "numbers, strings, None, arrays, lists, dictionaries, and gnomon's own estimators, "
            "alone or with scikit-learn's common preprocessing"
        )

    def _rules(self):
        return (
            (lambda v: isinstance(v, np.generic), self._scalar),
            (lambda v: v is None or isinstance(v, bool | int | str), lambda v, _: v),
            (lambda v: isinstance(v, float), lambda v, _: encode_float(v)),
            (lambda v: isinstance(v, np.ndarray), self._array),
            (sparse.issparse, self._sparse),
            (lambda v: isinstance(v, tuple) and hasattr(v, "_fields"), self._named_tuple),
            (lambda v: isinstance(v, tuple), lambda v, where: {"tuple": self._items(v, where)}),
            (lambda v: isinstance(v, list), self._list),
            (lambda v: isinstance(v, dict), self._dictionary),
            (lambda v: isinstance(v, slice), self._slice),
            (lambda v: isinstance(v, np.dtype), lambda v, _: {"dtype": v.str}),
            (lambda v: v in TYPES.values() if isinstance(v, type) else False, self._type),
            (lambda v: isinstance(v, BaseEstimator), self._estimator),
        )

    def _store(self, array) -> str:
        name = f"a{len(self.arrays)}"
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        # safetensors writes the buffer as it lies in memory, so the order must be C.
        self.arrays[name] = native.copy(order="C")
        return name

    def _scalar(self, value, where):
        if isinstance(value, str):
            return str(value)
        return {"scalar": self._array(np.asarray(value), where)}

    def _array(self, array, where):
        if type(array) is not np.ndarray:
            array = _plain(array, where)
        kind = array.dtype.kind
        if kind in STORED_KINDS and array.dtype.itemsize in STORED_SIZES:
            return self._numbers(array)
        if kind in "mM":
            return {"time": self._numbers(array.view(np.int64)), "dtype": array.dtype.str}
        if kind not in "UO":
            raise ModelFileError(f"{where} is {_describe(array)}; numbers and strings are accepted")
        if kind == "U" and array.nbytes > MOST_STRING_BYTES:
            raise ModelFileError(
                f"{where} is an array of strings of {array.nbytes:,} bytes, which no file holds"
            )
        items = [self.encode(item, f"an entry of {where}") for item in array.ravel().tolist()]
        return {"strings" if kind == "U" else "objects": items, "shape": list(array.shape)}

    def _numbers(self, array):
        # Memory order is part of the answer: sums over another order differ in the last bits.
        if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
            return {"array": self._store(array.T), "order": "F"}
        return {"array": self._store(array)}

    def _sparse(self, matrix, where):
        if matrix.format not in SPARSE_PARTS:
            matrix = matrix.tocsr()
        parts = {part: getattr(matrix, part) for part in SPARSE_PARTS[matrix.format]}
        return {
            "sparse": matrix.format,
            "shape": list(matrix.shape),
            "old": isinstance(matrix, sparse.spmatrix),
            "parts": {part: self._array(array, where) for part, array in parts.items()},
        }

    def _named_tuple(self, value, where):
        name = type(value).__name__
        if name not in RECORDS or find_record(name) is not type(value):
            raise ModelFileError(f"{where} is {_describe(value)}, which is not a record of gnomon")
        fields = {field: getattr(value, field) for field in value._fields}
        return {"record": name, "fields": self._mapping(fields, where)}

    def _list(self, value, where):
        if len(value) > LONG_LIST and all(type(item) is float for item in value):
            return {"floats": self._store(np.array(value))}
        return self._items(value, where)

    def _items(self, value, where):
        return [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]

    def _dictionary(self, value, where):
        pairs = value.items()
        return {"dict": [[self.encode(k, where), self.encode(v, where)] for k, v in pairs]}

    def _slice(self, value, where):
        bounds = [b.item() if isinstance(b, np.integer) else b for b in (value.start, value.stop)]
        return {"slice": self._items((*bounds, value.step), where)}

    def _type(self, value, where):
        return {"type": value.__name__}

    def _mapping(self, values, where):
        return {name: self.encode(value, f"{where}.{name}") for name, value in values.items()}

    def _estimator(self, model, where):
        name = type(model).__name__
        if find_estimator(name, _describe(model)) is not type(model):
            raise ModelFileError(f"{where} is {_describe(model)}, not the {name} that files hold")
        if name in pipelines.ALLOWED:
            params, fitted = pipelines.parts(model, where)
        else:
            params, fitted = _parts(model)
        return {
            "estimator": name,
            "params": self._mapping(params, where),
            "attributes": self._mapping(fitted, where),
        }


class Decoder:
    """Turns the tree of an `Encoder` and its arrays into values; refuses what it does not know.

    ``removed`` has for each estimator the parameters that are gone, with their neutral values.
    """

    def __init__(self, arrays, removed=MappingProxyType({})):
        self.arrays, self.removed, self.room = arrays, removed, MOST_STRING_BYTES
        self.from_scikit_learn: set[str] = set()
        self.rules = {
            "float": self._float,
            "scalar": lambda node: self.decode(node["scalar"])[()],
            "array": self._array,
            "time": self._time,
            "strings": lambda node: self._entries(node, "strings", str),
            "objects": lambda node: self._entries(node, "objects", object),
            "sparse": self._sparse,
            "record": lambda node: find_record(node["record"])(**self._mapping(node["fields"])),
            "tuple": lambda node: tuple(self._items(node["tuple"])),
            "floats": lambda node: self._named(node["floats"]).tolist(),
            "dict": lambda node: {self.decode(k): self.decode(v) for k, v in node["dict"]},
            "slice": self._slice,
            "dtype": self._dtype,
            "type": lambda node: TYPES[node["type"]],
            "estimator": self._estimator,
        }

    def decode(self, node):
        """The value of a tree."""
        if isinstance(node, list):
            return self._items(node)
        if not isinstance(node, dict):
            return node
        tag = next(iter(node), None)
        if tag not in self.rules:
            raise ModelFileError(f"the file holds a value of the unknown kind {tag!r}")
        return self.rules[tag](node)

    def _items(self, nodes):
        return [self.decode(node) for node in nodes]

    def _mapping(self, nodes):
        return {name: self.decode(node) for name, node in nodes.items()}

    def _named(self, name):
        if name not in self.arrays:
            raise ModelFileError(f"the file names an array {name!r} that it does not hold")
        return self.arrays[name]

    def _float(self, node):
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[node["float"]]

    def _array(self, node):
        array = self._named(node["array"])
        return array.T if node.get("order") == "F" else array

    def _time(self, node):
        dtype = np.dtype(node["dtype"])
        if dtype.kind not in "mM":
            raise ModelFileError(f"the file holds times of the kind {node['dtype']!r}")
        return self.decode(node["time"]).view(dtype)

    def _entries(self, node, tag, dtype):
        items = self._items(node[tag])
        if dtype is str and not all(isinstance(item, str) for item in items):
            raise ModelFileError("the file holds an array of strings with other entries in it")
        if dtype is str:
            self._take_room(items)
        flat = np.empty(len(items), dtype=object)
        flat[:] = items
        return flat.reshape(node["shape"]).astype(dtype)

    def _take_room(self, texts):
        """Refuse strings of which one is so long that an array of them fills the memory."""
        self.room -= _string_bytes(texts)
        if self.room < 0:
            raise ModelFileError(
                f"holds arrays of strings that take more than {MOST_STRING_BYTES:,} bytes"
            )

    def _sparse(self, node):
        names = SPARSE_PARTS[node["sparse"]]
        kind = "matrix" if node["old"] else "array"
        build = getattr(sparse, f"{node['sparse']}_{kind}")
        parts = tuple(self.decode(node["parts"][name]) for name in names)
        matrix = build(parts, shape=tuple(node["shape"]))
        # SciPy's loops trust the indices: a wrong one would read memory that is not ours.
        matrix.check_format(full_check=True)
        return matrix

    def _slice(self, node):
        bounds = node["slice"]
        plain = all(bound is None or isinstance(bound, int | str) for bound in bounds)
        if not (plain and isinstance(bounds, list)):
            raise ModelFileError(f"the file holds a slice of {bounds!r}")
        return slice(*bounds)

    def _dtype(self, node):
        dtype = np.dtype(node["dtype"]) if isinstance(node["dtype"], str) else None
        if dtype is None or dtype.kind not in STORED_KINDS + "UO":
            raise ModelFileError(f"the file holds the type {node['dtype']!r}")
        return dtype

    def _estimator(self, node):
        cls = find_estimator(node["estimator"])
        params, attributes = self._mapping(node["params"]), self._mapping(node["attributes"])
        if node["estimator"] in pipelines.ALLOWED:
            self.from_scikit_learn.add(node["estimator"])
            return pipelines.build(cls, params, attributes)
        model = cls(**self._parameters(cls, params))
        for name, value in attributes.items():
            if not ATTRIBUTE.fullmatch(name) or callable(getattr(cls, name, None)):
                raise ModelFileError(f"the file sets {name!r}, which is no fitted attribute")
            setattr(model, name, value)
        return model

    def _parameters(self, cls, params):
        """The parameters that the class still takes; the others must be neutral."""
        removed, taken = self.removed.get(cls.__name__, {}), signature(cls).parameters
        gone = {name for name in params if name in removed and name not in taken}
        for name in gone:
            if removed[name] is not ANY and params[name] not in removed[name]:
                raise ModelFileError(
                    f"is a {cls.__name__} with {name}={params[name]!r}, a parameter that gnomon "
                    "no longer has; an older gnomon loads it"
                )
        return {name: value for name, value in params.items() if name not in gone}


def _string_bytes(texts):
    """What an array of strings takes: NumPy has four bytes for each sign of the longest one."""
    return 4 * len(texts) * max(map(len, texts), default=0)


def encode_float(value):
    """A float as JSON has it; what JSON has no word for as an object."""
    return value if math.isfinite(value) else {"float": repr(float(value))}


def _parts(model):
    """Parameters and fitted attributes of one of gnomon's estimators."""
    params = model.get_params(deep=False)
    known = {*params, *NOT_FITTED}
    params |= {name: None for name in WATCHING if name in params}
    return params, {key: value for key, value in vars(model).items() if key not in known}


def find_estimator(name, described=None):
    """The public class of gnomon with that name, or the one of scikit-learn that files may hold."""
    if name in pipelines.ALLOWED:
        return pipelines.find_class(name)
    found = getattr(gnomon, name, None) if name in gnomon._HOMES else None
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise ModelFileError(
            f"{described or repr(name)} is neither a model of gnomon nor one of scikit-learn's "
            f"classes that a model file holds ({', '.join(pipelines.ALLOWED)}); "
            f"{pipelines.WAY_OUT}"
        )
    return found


def find_record(name):
    """The named tuple that files know by this name."""
    if name not in RECORDS:
        raise ModelFileError(f"{name!r} is not a record of gnomon; it has {', '.join(RECORDS)}")
    return getattr(import_module(RECORDS[name]), name)


def _plain(array, where):
    if isinstance(array, np.ma.MaskedArray):
        raise ModelFileError(f"{where} is a masked array; plain arrays are accepted")
    return np.asarray(array)


def _describe(value):
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype}"
    return f"a {type(value).__module__}.{type(value).__qualname__}"
