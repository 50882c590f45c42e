"""Rows in files, read a block at a time by the libraries that know the files.

from_rows       what has a shape and slices: HDF5 (h5py), Zarr, memory maps
from_parquet    row groups of Parquet files (pyarrow)
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gnomon.exceptions import how_to_install
from gnomon.linalg.blocks import Blocks, from_loaders
from gnomon.linalg.data import slices

# Entries of a block: 32 MiB in double precision, so that two are well below any machine's memory.
SOURCE_ENTRIES = 2**22


def from_rows(array: Any, *, block_rows: int | None = None) -> Blocks:
    """Rows of anything that has a shape and can be sliced, read a block at a time.

    Parameters
    ----------
    array : array-like of shape (n_samples, n_features)
        A data set of h5py, an array of zarr, a memory map: what gives an array for
        ``array[start:stop]``. It must stay open, and the same, while the rows are in use.
    block_rows : int, default=None
        Rows of a block. None takes as many as make some 32 MB, whole chunks of the array where
        it has chunks.

    Returns
    -------
    X : Blocks
        To be given to an estimator in the place of an array; one block is in memory at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PPCA, from_rows
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> model = PPCA().fit(from_rows(X, block_rows=30))
    >>> bool(np.allclose(model.mean_, X.mean(axis=0)))
    True
    """
    shape = getattr(array, "shape", None)
    if shape is None or len(shape) != 2:
        what = type(array).__name__ if shape is None else f"shape {shape}"
        raise ValueError(f"array has {what}; accepted is what has a shape of 2 dimensions")
    size = _block_rows(array) if block_rows is None else block_rows
    if size < 1:
        raise ValueError(f"block_rows == {block_rows!r}; accepted are integers >= 1")
    return from_loaders([partial(_slice, array, rows) for rows in slices(shape[0], size)])


def _block_rows(array):
    """Rows that make a block of the right size, in whole chunks of the array."""
    rows = max(SOURCE_ENTRIES // max(array.shape[1], 1), 1)
    chunk = (getattr(array, "chunks", None) or (1,))[0]
    return max(rows // chunk, 1) * chunk


def _slice(array, rows):
    return np.asarray(array[rows])


def from_parquet(path: Any, *, columns: Sequence[str] | None = None) -> Blocks:
    """Rows of Parquet files, a row group at a time.

    Parameters
    ----------
    path : str, Path or list of these
        A file, a folder of files, or several files, whose rows are stacked in the order of
        their names, or in that of the list.
    columns : list of str, default=None
        The features, in this order; None for all columns. They hold numbers without gaps.

    Returns
    -------
    X : Blocks
        To be given to an estimator in the place of an array; one row group is in memory at a
        time. A file that is changed while its rows are in use is an error.
    """
    try:
        import pyarrow.dataset as dataset
    except ImportError as missing:
        raise ImportError(f"from_parquet reads by pyarrow: {how_to_install('cli')}") from missing
    paths = [str(part) for part in path] if isinstance(path, list | tuple) else str(path)
    files = dataset.dataset(paths, format="parquet")
    columns = list(files.schema.names) if columns is None else list(columns)
    _check_columns(files.schema, columns)
    groups = [group for file in files.get_fragments() for group in file.split_by_row_group()]
    return from_loaders([_Group(group, columns) for group in groups if group.count_rows()])


def _check_columns(schema, columns):
    """Raise where a column is not there or holds no numbers."""
    import pyarrow.types as types

    missing = [name for name in columns if name not in schema.names]
    if missing:
        raise ValueError(f"columns has {missing[0]!r}; accepted are {', '.join(schema.names)}")
    for name in columns:
        kind = schema.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise TypeError(
                f"column {name!r} holds {kind}; accepted are numbers, name those by columns="
            )


class _Group:
    """Reads a row group; its file must stay as it was."""

    def __init__(self, group, columns):
        self.group, self.columns = group, columns
        self.stamp = self._stamp()

    def _stamp(self):
        facts = Path(self.group.path).stat()
        return facts.st_size, facts.st_mtime_ns

    def __call__(self):
        if self._stamp() != self.stamp:
            raise ValueError(f"{self.group.path} was changed since its rows were declared")
        table = self.group.to_table(columns=self.columns)
        dtype = np.float32 if all(f.type == "float" for f in table.schema) else np.float64
        return np.column_stack([self._numbers(table, name, dtype) for name in self.columns])

    def _numbers(self, table, name, dtype):
        column = table.column(name)
        if column.null_count:
            raise ValueError(
                f"{self.group.path} has gaps in {name!r}; accepted in arrays in memory only"
            )
        return column.to_numpy().astype(dtype)
