"""Files that hold a matrix: npz, mtx, svmlight, h5ad."""

import zipfile

import numpy as np
import pyarrow as pa
from scipy import sparse

from gnomon.exceptions import TableError, how_to_install

# What a zip may grow to; a bomb of a few kilobytes would otherwise fill the memory.
MAX_RATIO = 200
INPUTS = ("X", "x", "data", "x_train", "X_train", "arr_0")
TARGETS = ("y", "target", "labels", "y_train", "arr_1")


def read_matrix(path, suffix):
    """Matrix, named columns and names of the features."""
    readers = {".npz": _npz, ".mtx": _mtx, ".h5ad": _h5ad}
    try:
        matrix, columns, features = readers.get(suffix, _svmlight)(path)
    except TableError:
        raise
    except (ValueError, TypeError, LookupError, OSError, MemoryError, zipfile.BadZipFile) as error:
        text = " ".join(str(error).split())[:200]
        raise TableError(f"{path} cannot be read: {text}") from error
    if isinstance(matrix, bytes):
        raise TableError(f"{path} holds something else than arrays; a matrix of numbers is wanted")
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype.kind not in "biuf":
        raise TableError(
            f"{path} holds an array of shape {matrix.shape} and dtype {matrix.dtype}; "
            "a matrix of numbers is wanted"
        )
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(float)
    return matrix, columns, features or [f"x{i + 1}" for i in range(matrix.shape[1])]


def _npz(path):
    _check_ratio(path)
    with np.load(path, allow_pickle=False) as file:
        if "indptr" in file:
            return sparse.csr_array(sparse.load_npz(path)), {}, None
        matrix = file[_pick(path, file.files, INPUTS)]
        names = [name for name in TARGETS if name in file.files]
        if not names:
            return matrix, {}, None
        target = file[names[0]]
    if target.shape != matrix.shape[:1]:
        raise TableError(
            f"{path} has {names[0]!r} of shape {target.shape}; "
            f"one value a row is wanted, {matrix.shape[0]:,} in all"
        )
    return matrix, {"target": pa.chunked_array([pa.array(target)])}, None


def _check_ratio(path):
    with zipfile.ZipFile(path) as archive:
        grown = sum(member.file_size for member in archive.infolist())
    if grown > MAX_RATIO * path.stat().st_size:
        raise TableError(f"{path} would grow to {grown} bytes, more than {MAX_RATIO} times its own")


def _pick(path, names, wanted):
    for name in wanted:
        if name in names:
            return name
    raise TableError(f"{path} holds {', '.join(map(repr, names))}; an array 'X' is wanted")


def _mtx(path):
    from scipy.io import mmread

    matrix = mmread(path)
    return (sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix), {}, None


def _svmlight(path):
    from sklearn.datasets import load_svmlight_file

    matrix, target = load_svmlight_file(str(path))
    return sparse.csr_array(matrix), {"target": pa.chunked_array([pa.array(target)])}, None


def _h5ad(path):
    try:
        import anndata
    except ImportError as error:
        raise TableError(f"{path} needs anndata: {how_to_install('anndata')}") from error
    data = anndata.read_h5ad(path)
    obs = pa.Table.from_pandas(data.obs.reset_index(names="cell"), preserve_index=False)
    matrix = sparse.csr_array(data.X) if sparse.issparse(data.X) else np.asarray(data.X)
    columns = dict(zip(obs.column_names, obs.columns, strict=True))
    return matrix, columns, [str(name) for name in data.var_names]
