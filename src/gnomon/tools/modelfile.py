"""Models in files: arrays in the safetensors format, the rest as JSON in its header.

Loading runs no code from the file: a class is a name looked up in a list, an array is bytes with
a stated size. A SHA-256 over both shows damage. It does not show who wrote the file.
"""

import hashlib
import json
import os
import platform
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn

import gnomon
from gnomon.estimators import count
from gnomon.exceptions import ModelFileError, how_to_install, visible
from gnomon.inference.checkpoint import write_atomically
from gnomon.tools.encoding import ANY, Decoder, Encoder
from gnomon.tools.table_model import TableModel

# Number of the layout: 1 named records by their modules, 2 had no preprocessing of scikit-learn
# and no ranges of columns in the rule for tables.
FORMAT = 3
# Names and parameters take kilobytes; a header of more is a fault, or means harm.
MAX_HEADER = 64 * 2**20


def _name_records(node):
    """Format 1 named a record by the module that defined it then: ``module:name``."""
    if isinstance(node, list):
        return [_name_records(part) for part in node]
    if not isinstance(node, dict):
        return node
    named = {key: _name_records(value) for key, value in node.items()}
    if isinstance(named.get("record"), str):
        named["record"] = named["record"].rpartition(":")[2]
    return named


# From a format to the next one: each takes and returns the document of a file.
MIGRATIONS: dict[int, Callable] = {1: _name_records, 2: lambda document: document}
# Parameters that constructors had once, with the values that asked for nothing: a file with one
# of these loads without it, a file with another value is refused. ANY is for parameters of the
# fit alone, whose answers are in the file, and for those of a kernel that is None.
NO_KERNEL = {"kernel": (None,), "gamma": ANY, "degree": ANY, "coef0": ANY}
OF_BSDR = {"bias_prior": ANY, "thin": ANY, "n_nodes": (16,)}
REMOVED = {
    "BSDR": NO_KERNEL | OF_BSDR,
    "BSDRRegressor": NO_KERNEL | OF_BSDR,
    "MultinomialProbit": OF_BSDR,
    "PRPCA": {"link_components": (0,)},
    "DCAGM": {
        "solver": ("alternating",),
        "generative_weight": ANY,
        "shrinkage": ANY,
        "prior_scale": ANY,
        "n_em_steps": ANY,
    },
}


class ModelFile(NamedTuple):
    """What a file says of itself, and its arrays."""

    document: dict
    arrays: dict[str, np.ndarray]

    @property
    def notes(self) -> dict:
        """What the writer added to the model."""
        return Decoder(self.arrays).decode(self.document["notes"])

    def model(self):
        """The estimator."""
        decoder = Decoder(self.arrays, REMOVED)
        model = decoder.decode(self.document["model"])
        if decoder.from_scikit_learn:
            self._check_version(min(decoder.from_scikit_learn))
        return model

    def _check_version(self, name):
        """Warn where scikit-learn's classes may have changed since."""
        then, now = self.document["versions"]["scikit-learn"], sklearn.__version__
        if then.split(".")[:2] != now.split(".")[:2]:
            warnings.warn(
                f"the {name} in this file is of scikit-learn {then}, this is {now}; compare some "
                "of its results with known ones",
                stacklevel=6,
            )


def save(model: Any, path: str | Path, *, notes: Any = None) -> Path:
    """Write a fitted model to a file that `load` reads without running code from it.

    The file is written whole or not at all: an older file at ``path`` is replaced in one step,
    and its rights stay. A ``callback`` watches a fit and is no part of the model: it is not kept.

    Parameters
    ----------
    model : estimator or TableModel
        One of gnomon's estimators; what `load` gives for a file of ``gnomon fit``; or a
        scikit-learn `Pipeline`, `ColumnTransformer` or `FeatureUnion` of these with
        scikit-learn's common preprocessing: the scalers, ``SimpleImputer``, ``OneHotEncoder``,
        ``OrdinalEncoder``, ``PCA``, ``TruncatedSVD``, the vectorizers of texts and the others
        that the page on model files lists. Anything else is refused by its name.
    path : str or path-like
        Where to write. The suffix is free; ``.gnomon`` is usual.
    notes : dict, default=None
        Numbers, strings, lists, dictionaries and arrays to keep beside the model.

    Returns
    -------
    pathlib.Path
        The path written.

    Raises
    ------
    gnomon.exceptions.ModelFileError
        Where the model holds something that no file may: a function, or a class that is not on
        the list.

    Examples
    --------
    >>> import tempfile, gnomon
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = gnomon.PPCA(n_components=2).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = gnomon.save(model, f"{folder}/iris.gnomon")
    ...     same = gnomon.load(path)
    >>> bool((same.transform(X) == model.transform(X)).all())
    True
    """
    if isinstance(model, TableModel):
        model, notes = model.model, model.notes | (notes or {})
    encoder = Encoder()
    document = {
        "format": FORMAT,
        "model": encoder.encode(model, type(model).__name__),
        "notes": encoder.encode(notes or {}, "notes"),
        "versions": versions(),
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    content = _pack(text, encoder.arrays)
    if _header_size(content[:8]) > MAX_HEADER:
        raise ModelFileError(
            f"the names in this model take more than {MAX_HEADER} bytes, which no file holds"
        )
    return write_atomically(path, content)


def load(path: str | Path) -> Any:
    """Read a model that `save` or ``gnomon fit`` wrote.

    Only gnomon's own classes and those of scikit-learn that are on a list are built, and only
    from numbers and strings, so that a file from a stranger can do no more than be wrong.
    Damaged, cut or foreign files are refused.

    Parameters
    ----------
    path : str or path-like
        A file written by `save` or ``gnomon fit``, by this or an earlier version.

    Returns
    -------
    estimator or TableModel
        The model, as it was saved; for a file of ``gnomon fit`` a `TableModel`, which takes
        tables as the command line does.

    Raises
    ------
    gnomon.exceptions.ModelFileError
        Where the file is not a whole model file.

    See Also
    --------
    TableModel : What is returned for a file of ``gnomon fit``.

    Examples
    --------
    >>> import gnomon
    >>> gnomon.load("README.md")
    Traceback (most recent call last):
    gnomon.exceptions.ModelFileError: README.md is not a gnomon model file
    """
    return read(path, _loaded)


def _loaded(file):
    """The model alone, or with the rule for tables that is beside it."""
    model, notes = file.model(), file.notes
    if not {"recipe", "question"} <= set(notes):
        return model
    from gnomon.tools.prepare import saved_model

    return TableModel(saved_model(model, notes))


def read(path, what=lambda file: file):
    """``what(ModelFile)`` of the file at ``path``, or ModelFileError with the path in it."""
    try:
        return what(_parse(_content(Path(path))))
    except ModelFileError as error:
        raise ModelFileError(f"{path} {error}") from None
    except _malformed() as error:
        first_line = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise ModelFileError(f"{path} is damaged: {visible(first_line)}") from error


def versions() -> dict[str, str]:
    """The versions that decide what a model does."""
    return {
        "gnomon": gnomon.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def _content(path) -> bytes:
    """The bytes of a regular file; a pipe or a device would never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError("is not a file")
    with path.open("rb") as file:
        start = file.read(9)
        if len(start) < 9 or start[8:] != b"{":
            raise ModelFileError(f"is not a gnomon model file{_looks_like(start)}")
        size = _header_size(start)
        if size > min(MAX_HEADER, status.st_size - 8):
            raise ModelFileError(f"is damaged: it announces a header of {count(size, 'byte')}")
        return start + file.read(os.fstat(file.fileno()).st_size - 9)


def _looks_like(start):
    kinds = {b"PK": "a zip archive", b"\x80": "a pickle", b"\x1f\x8b": "a gzip file"}
    for magic, kind in kinds.items():
        if start.startswith(magic):
            return f" but looks like {kind}, which gnomon never opens as a model"
    return ""


def _pack(text, arrays) -> bytes:
    """The file: one entry of metadata, since safetensors writes several in any order."""
    return _safetensors().save(arrays, {"gnomon": f"{_digest(text, arrays)}\n{text}"})


def _parse(content) -> ModelFile:
    text, digest = _metadata(content)
    arrays = {name: array.copy() for name, array in _safetensors().load(content).items()}
    if _digest(text, arrays) != digest:
        raise ModelFileError("is damaged: its content does not match its checksum")
    document = _strict_json(text)
    return ModelFile(_migrate(document), arrays)


def _metadata(content):
    header = _strict_json(content[8 : 8 + _header_size(content)])
    metadata = header.get("__metadata__", {})
    if "gnomon" not in metadata:
        raise ModelFileError("is a safetensors file but not a gnomon model file")
    digest, _, text = metadata["gnomon"].partition("\n")
    return text, digest


def _migrate(document):
    version = document["format"]
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise ModelFileError(
            f"has format {version!r}; gnomon {gnomon.__version__} reads 1 to {FORMAT}, "
            "a newer gnomon may read it"
        )
    for step in range(version, FORMAT):
        document = MIGRATIONS[step](document)
    return document


def _digest(text, arrays):
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _strict_json(text):
    """JSON without repeated names, which two readers could read in two ways."""
    return json.loads(text, object_pairs_hook=_unique_names, parse_constant=_no_constant)


def _unique_names(pairs):
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ModelFileError("is damaged: its header has a name twice")
    return names


def _no_constant(name):
    raise ModelFileError(f"is damaged: its header has {name}")


def _header_size(start) -> int:
    return int.from_bytes(start[:8], "little")


def _safetensors():
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(f"model files need safetensors: {how_to_install('files')}") from error
    return safetensors.numpy


def _malformed():
    """What parsing a damaged file can raise; anything else is a fault of ours."""
    from safetensors import SafetensorError

    lookups = (KeyError, IndexError, AttributeError, RecursionError, OverflowError)
    return (SafetensorError, ValueError, TypeError, *lookups)
